# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Packet damming and packet flood (e_damming.c)."""
from lab import DEFAULT, us

TITLE = "Packet damming and packet flood"
ABOUT = """What "Pitfalls of InfiniBand with On-Demand Paging" found on cards:
an operation posted while another waits for its page is dammed until a timeout,
and many QPs that meet one cold page send the same packets again and again.
Here a page of the target takes 1 ms to come. A gap is the time from when
nothing is missing any more (the page is there, the operation is posted) to the
completion."""
BUDGET_S = (90, 150)

SCENES = {"same": "posted behind a fault, same QP",
          "other": "posted behind a fault, another QP",
          "flood": "64 QPs on one cold page"}
AGAIN = ("retransmits", "timeouts", "rnr_tx", "naks_tx", "read_restarts")
GAP_US = 1000


def biggest(out):
    return max(d[100] for d in out.dist.values())


def row(scene, op, out):
    behind = out.dist.get("behind", {})
    return [SCENES[scene], op.upper(), us(out.dist["waited"][50]),
            us(out.dist["waited"][100]),
            us(behind[50]) if behind else "-",
            us(behind[100]) if behind else "-",
            f"{out.total('tx_packets') / out.value('operations'):.1f}",
            *(str(out.total(name)) for name in AGAIN)]


HEAD = ["gap of the waiting, p50", "max", "of the other, p50", "max",
        "packets an operation", *AGAIN]


def one(lab, scene, op, strategy=None):
    rounds = 10 if lab.quick else 100
    if strategy == "drop":
        rounds = 2  # what is dropped comes again after a timeout of seconds
    env = {"NOPIN_FAULT": strategy} if strategy else None
    return lab.own("e_damming", scene, op, rounds, env=env, patience=60)


def by_scene(lab, found):
    rows, outs = [], []
    for scene in SCENES:
        for op in ("write", "read"):
            out = found.attempt(f"slow pages, {scene}, {op}", one, lab, scene,
                                op)
            if out:
                rows.append(row(scene, op, out))
                outs.append((f"{SCENES[scene]}, {op.upper()}", out))
    found.table("gaps and repeated packets, as the NIC comes",
                ["", "operation", *HEAD], rows)
    found.bars("e_gaps", "gaps after the page has come", "us",
               [label for label, _ in outs],
               {"median": [o.dist["waited"][50] for _, o in outs],
                "largest": [biggest(o) for _, o in outs]}, log=True)
    return [out for _, out in outs]


def by_strategy(lab, found):
    rows = []
    for strategy, reason in lab.strategies():
        if reason:
            found.skip(f"flood, {strategy}", reason)
            continue
        for scene in ("same", "flood"):
            out = found.attempt(f"slow pages, {scene}, {strategy}", one, lab,
                                scene, "write", strategy)
            if out:
                rows.append([strategy, *row(scene, "write", out)])
    found.table("the same by strategy, WRITE", ["strategy", "", "operation",
                                                *HEAD], rows)


def run(lab, found):
    outs = by_scene(lab, found)
    by_strategy(lab, found)
    targets = ("no gap over 1 ms", "no timeout, ever")
    if not outs:
        for target in targets:
            found.verdict(target, None, "see what was skipped")
        return
    gap = max(biggest(out) for out in outs)
    timeouts = sum(out.total("timeouts") for out in outs)
    found.see(f"As the NIC comes {DEFAULT}, the longest gap of "
              f"{sum(out.value('operations') for out in outs):.0f} operations "
              f"is {us(gap)}; {sum(out.total('retransmits') for out in outs)} "
              "packets were sent again.")
    found.verdict(targets[0], gap <= GAP_US, f"the longest is {us(gap)}")
    found.verdict(targets[1], timeouts == 0, f"{timeouts} timeouts")
