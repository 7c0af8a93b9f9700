#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""mutate.py [--seeds N] [--sample N] [WORD]: breaks the tree on purpose, one mistake
of mutations.py at a time (those with WORD in their names, or N of them drawn at
random), in a copy of the tree, and runs UNITS and the simulator on each. Ends with a
line "N passed, N failed": a mistake that no test catches has failed.

mutate.py --fits only checks that each entry still fits the tree."""
import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile

from mutations import MUTATIONS

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
SCENARIOS = ["pair", "lossy", "fault", "preempt", "replay", "rnr", "evict",
             "teardown", "mixed", "card", "busy", "full", "slow", "refuse", "reg",
             "strategy", "fixed", "queue", "adaptive", "prefetch", "suspend",
             "ud", "flood", "resume", "notify", "upcall", "sync",
             "order", "budget", "open", "ending", "rescue", "reads"]
UNITS = ["mem_ticket_test", "mem_dma_test", "mem_ahead_test", "mem_pattern_test",
         "mem_release_test", "nic_prefetch_test", "mem_spt_test", "mem_mr_test",
         "mem_model_test", "xport_window_test", "xport_flow_test",
         "xport_credit_test", "xport_open_test", "xport_reorder_test",
         "xport_live_test", "xport_live_window_test", "nic_peers_test",
         "xport_hold_test", "xport_fault_resume_test", "xport_replay_test",
         "xport_ahead_test", "xport_life_test", "xport_fault_test",
         "xport_exec_test", "xport_fault_adaptive_test", "xport_fault_rnr_test",
         "xport_reset_test", "xport_resp_test", "xport_next_test",
         "xport_receive_test", "xport_fault_backup_test", "xport_req_test",
         "xport_reply_test", "xport_retry_test", "xport_blame_test",
         "xport_scatter_test", "xport_transport_rc_test", "xport_places_test",
         "xport_ud_rx_test", "xport_ud_tx_test", "xport_qp_test",
         "xport_burst_test", "xport_comp_test", "xport_reads_test",
         "xport_owe_test", "xport_deadline_test", "xport_ack_test",
         "xport_wqe_test", "xport_access_test", "wire_grh_test", "nic_ud_test",
         "mem_moving_test", "mem_renew_test", "nic_takeover_test",
         "nic_overlap_test", "nic_unsent_test", "nic_owed_test", "nic_lastack_test",
         "nic_scatter_test", "nic_pins_test", "nic_reg_test", "nic_errors_test",
         "nic_states_test", "nic_pair_test", "nic_mr_test",
         "verbs/verbs_mr_api_test", "ext/ext_attributes_test",
         "verbs/verbs_post_test", "verbs/verbs_wr_test", "verbs/verbs_ah_test",
         "verbs/verbs_sysfs_test", "mem_account_test", "mem_overwrite_test",
         "nic_demux_test", "os_fresh_test", "os_backing_test", "os_lane_test",
         "nic_cq_test", "mem_suspend_test", "nic_suspend_test", "os_move_test",
         "mem_share_test", "mem_handover_test", "mem_eventcount_test",
         "os_file_test", "os_fork_test",
         "os_thread_test", "nic_notes_test", "nic_counter_test", "mem_upcall_test",
         "mem_spare_test", "nic_upcall_test", "session_sync_home_test", "session_sync_member_test",
         "session_sync_model_test", "base_fair_test", "mem_pool_test", "mem_resize_test",
         "os_board_test", "nic_arbiter_test", "session_blocks_test",
         "session_news_model_test", "session_news_test", "nic_roce_test", "nic_holder_test",
         "nic_responder_test", "os_cred_test", "os_ctl_test", "os_name_test",
         "os_door_test", "os_signal_test", "os_wait_test", "os_fd_test",
         "os_mounts_test", "os_copy_test", "os_probe_test", "nic_events_test",
         "nic_trace_test"]
# worlds that few seeds make
SEEDS = [("upcall", 139), ("notify", 128), ("notify", 16386),
         ("order", 10208), ("order", 12188), ("order", 14085)]
# what takes its time is asked last
SLOW = ["ext/ext_upcall_test", "ext/ext_counter_test", "ext/ext_sync_test",
        "ext/ext_cache_test"]
PATIENCE_S = 300


def run(command):
    """Whether @command succeeds, in good time."""
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False,
                              timeout=PATIENCE_S).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def not_sources(folder, names):
    return [n for n in names if n == ".git" or (
        n.startswith("build") and os.path.isdir(os.path.join(folder, n)))]


def build(tree):
    targets = ["tests/sim/sim_run"] + [f"tests/unit/{u}" for u in UNITS + SLOW]
    return run(["ninja", "-C", f"{tree}/build"] + targets)


def caught_by(tree, seeds):
    """The first test that fails, or None."""
    for unit in UNITS:
        if not run([f"{tree}/build/tests/unit/{unit}"]):
            return unit
    for scenario in SCENARIOS:
        if not run([f"{tree}/build/tests/sim/sim_run", "--scenario",
                    scenario, "--seeds", str(seeds)]):
            return f"sim/{scenario}"
    for scenario, seed in SEEDS:
        if not run([f"{tree}/build/tests/sim/sim_run", "--scenario",
                    scenario, "--seed", str(seed)]):
            return f"sim/{scenario}, seed {seed}"
    for unit in SLOW:
        if not run([f"{tree}/build/tests/unit/{unit}"]):
            return unit
    return None


def misfit(entry):
    """What is wrong with an entry of MUTATIONS, or None."""
    if len(entry) != 4:
        return f"{len(entry)} fields instead of 4"
    _, path, old, new = entry
    try:
        with open(os.path.join(TOP, path), encoding="utf-8") as file:
            times = file.read().count(old)
    except OSError as err:
        return str(err)
    if times != 1:
        return f"{path}: {times} times instead of once: {old!r}"
    return "changes nothing" if old == new else None


def check_entries(entries):
    """Exit if entries do not fit the tree, or share a name."""
    wrong = [f"{e[0]}: {misfit(e)}" for e in entries if misfit(e)]
    names = [e[0] for e in entries]
    wrong += [f"{n}: the name of several" for n in sorted(set(names))
              if names.count(n) > 1]
    if wrong:
        sys.exit("\n".join(wrong))


def mutated(tree, path, old, new):
    """Put the mistake into the copy. Return: the file, and what was in it."""
    name = os.path.join(tree, path)
    with open(name, encoding="utf-8") as file:
        text = file.read()
    with open(name, "w", encoding="utf-8") as file:
        file.write(text.replace(old, new))
    return name, text


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--seeds", type=int, default=60)
    args.add_argument("--sample", type=int)
    args.add_argument("--fits", action="store_true")
    args.add_argument("word", nargs="?", default="")
    args = args.parse_args()
    passed = failed = 0
    check_entries(MUTATIONS)
    if args.fits:
        print(f"{len(MUTATIONS)} entries fit")
        return 0
    chosen = [e for e in MUTATIONS if args.word in e[0]]
    if args.sample is not None:
        chosen = random.sample(chosen, min(args.sample, len(chosen)))

    with tempfile.TemporaryDirectory() as directory:
        tree = os.path.join(directory, "tree")
        shutil.copytree(TOP, tree, ignore=not_sources)
        run(["meson", "setup", f"{tree}/build", tree])
        if not build(tree):
            sys.exit("the tree does not build")
        test = caught_by(tree, args.seeds)
        if test:
            sys.exit(f"without a mistake {test} fails")
        for name, path, old, new in chosen:
            file, text = mutated(tree, path, old, new)
            test = caught_by(tree, args.seeds) if build(tree) else "nobody: " \
                "it does not compile"
            bad = test is None or test.startswith("nobody")
            print(f"{name}: {test or 'not caught'}", flush=True)
            failed += bad
            passed += not bad
            with open(file, "w", encoding="utf-8") as original:
                original.write(text)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
