# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The cross table: strategy by backing by loss (c_table.c)."""
import os
import statistics
import subprocess

from lab import TOP, Failed, Skipped, Swap, is_root, us
from programs import kill, spawn

TITLE = "Every strategy on every kind of memory, with and without loss"
ABOUT = """The same mixed work (WRITEs of 512 bytes, 64 KiB and 1 MiB, READs of
and into cold memory, SENDs into cold receive buffers; two connections) for each
strategy, kind of memory and loss of packets: the table that nobody has. Loss is
made by nftables between two network namespaces, with an IP MTU of 1500 and
packets that are sent one by one. A cell ends after a few seconds whether its
work is done or not; what was done until then counts. Not in the table: backup
is redirect, and park and replay are resume, for these operations."""
BUDGET_S = (175, 90)

# What there is to compare; the first is judged against the rest.
STRATEGIES = ("adaptive", "inline", "redirect", "overwrite", "resume", "rnr",
              "drop", "block")
# name, cold_open()'s word, rounds of work; slower pages get less
BACKINGS = (("minor", "minor", 12), ("swap", "swap", 8), ("file", "file", 4),
            ("slow pages, 1 ms", "slow1", 2),
            ("slow pages, 10 ms", "slow10", 1))
LOSSES = (0, 1, 10)  # of 1000 packets
LIMIT_S = 3
NOTHING = 1e-6  # MB/s
ANSWERS = ("park", "inline", "overwrite", "redirect", "replay", "resume", "rnr",
           "drop")


class Wire:
    """Two network namespaces; or, without loss and root, the loopback."""

    def __init__(self, permille):
        self.permille, self.process, self.names = permille, None, None

    def __enter__(self):
        if not is_root():
            if self.permille:
                raise Skipped("network namespaces need root")
            return self
        command = [os.path.join(TOP, "tests", "net", "topology.sh"), "--no-gso",
                   "--loss", str(self.permille),
                   "sh", "-c", 'echo "on $NS_A $NS_B"; exec cat']
        self.process = spawn(command, {"TOPOLOGY_IDLE": "1"},
                             stdin=subprocess.PIPE)
        said = self.process.stdout.readline().split()
        if said[:1] != ["on"]:
            self.process.communicate()
            raise Skipped(" ".join(said).removeprefix("SKIP: "))
        self.names = said[1:]
        return self

    def __exit__(self, *_):
        if not self.process:
            return
        try:
            self.process.communicate(timeout=20)  # cat ends, and all with it
        finally:
            kill(self.process)

    def run(self, lab, strategy, kind, rounds):
        # faults that moves take are counted with NOPIN_LOG=info
        env, before, where = {"NOPIN_FAULT": strategy,
                              "NOPIN_LOG": "info"}, (), ()
        if self.names:
            env["NOPIN_ADDR"] = "n0"
            before = ("ip", "netns", "exec", self.names[0])
            where = (self.names[1],)
        return lab.own("c_table", kind, rounds, 1 if lab.quick else LIMIT_S,
                       *where, env=env, before=before, patience=20)


# --- a cell -------------------------------------------------------------------


def rate(out):
    """MB/s of payload; of what was done, where the time was over."""
    return out.value("bytes") / out.value("seconds") / 1e6


def cell(lab, wire, strategy, kind, rounds):
    """Return: Output of the run in the middle."""
    turns = 1 if lab.quick or kind.startswith("slow") else 3
    outs = sorted((wire.run(lab, strategy, kind, rounds)
                   for _ in range(turns)), key=rate)
    return outs[len(outs) // 2]


def answers(out):
    """The share of each strategy in the answers at both ends. What the NIC did
    not know to be there and was is no answer of inline."""
    said = {name: out.total(f"fault_{name}") for name in ANSWERS}
    taken = out.total("engine_minflt") - said["overwrite"]
    said["inline"] = min(said["inline"], max(taken, 0))
    total = max(sum(said.values()), 1)
    return {name: n / total for name, n in said.items()}


def percentile(out, lane, q):
    return us(out.dist[lane][q]) if lane in out.dist else "-"


def shown(shares):
    return ", ".join(f"{name} {share:.0%}" for name, share in
                     sorted(shares.items(), key=lambda x: -x[1])
                     if share >= 0.005)


def row(backing, permille, strategy, out, best):
    chosen = shown(answers(out))
    done, every = out.rows["operations"][-1]
    return [backing, f"{permille / 10:g} %", strategy,
            f"{out.value('seconds') * 1000:.1f} ms" if out.value("ended")
            else f"{done} of {every} done", f"{rate(out):.3g}",
            f"{rate(out) / max(best, NOTHING):.2f}", percentile(out, "mixed", 50),
            percentile(out, "mixed", 99), percentile(out, "large", 50),
            percentile(out, "large", 99), chosen]


HEAD = ["memory", "loss", "strategy", "time", "MB/s", "of the best",
        "mixed p50", "p99", "large p50", "p99", "answers"]


# --- the table ----------------------------------------------------------------


def measure(lab, found):
    """Return: (backing, permille) -> strategy -> Output."""
    cells = {}
    strategies = [(s, dict(lab.strategies())[s]) for s in STRATEGIES]
    losses = LOSSES[::2] if lab.quick else LOSSES
    for strategy, reason in strategies:
        if reason:
            found.skip(strategy, reason)
    strategies = [s for s, reason in strategies if not reason]
    for permille in losses:
        try:
            with Wire(permille) as wire:
                for backing in BACKINGS[::2 if lab.quick else 1]:
                    one_backing(lab, found, wire, backing, strategies, cells)
        except Skipped as why:
            found.skip(f"loss of {permille / 10:g} %", why)
    return cells


def one_backing(lab, found, wire, backing, strategies, cells):
    """A host that swaps is short of memory, where a NIC takes no fault inline:
    so there is swap only where it is what is measured."""
    if backing[1] != "swap":
        column(lab, found, wire, backing, strategies, cells)
        return
    with Swap() as swap:
        if swap.reason:
            found.skip(f"swap, loss of {wire.permille / 10:g} %", swap.reason)
        else:
            column(lab, found, wire, backing, strategies, cells)


def column(lab, found, wire, backing, strategies, cells):
    name, kind, rounds = backing
    got = cells.setdefault((name, wire.permille), {})
    for strategy in strategies:
        try:
            got[strategy] = cell(lab, wire, strategy, kind,
                                 1 if lab.quick else rounds)
        except Skipped as why:
            found.skip(f"{name}, loss of {wire.permille / 10:g} %, {strategy}",
                       why)
        except Failed as why:
            if strategy not in ("drop", "block"):
                raise
            # whose packets are dropped for ever gives up
            found.see(f"With {strategy} on {name} at a loss of "
                      f"{wire.permille / 10:g} % the work did not come to an "
                      f"end: {str(why).rsplit(': ', 1)[-1]}.")
    if not got:
        del cells[name, wire.permille]


def judge(table):
    """Return: of each cell adaptive's rate over the best fixed one's, and over
    the worst one's; the share of each answer, in the mean of the cells (inline
    and overwrite count pages: where these are fast there are more of them)."""
    best, worst, sums = {}, {}, dict.fromkeys(ANSWERS, 0)
    for where, got in table.items():
        fixed = [rate(out) for s, out in got.items() if s != "adaptive"]
        if "adaptive" not in got or not fixed:
            continue
        own = rate(got["adaptive"])
        # in its few seconds a strategy may have got nowhere
        best[where] = own / max(max(fixed), NOTHING)
        worst[where] = own / max(min(fixed), NOTHING)
        for name, share in answers(got["adaptive"]).items():
            sums[name] += share
    cells = max(len(best), 1)
    return best, worst, {name: s / cells for name, s in sums.items()}


def named(where):
    return f"{where[0].removeprefix('slow pages, ')}, {where[1] / 10:g} %"


TARGETS = ("adaptive is within 10 % of the best fixed strategy in every cell",
           "adaptive is >= 1.5 x better than the worst in a third of the cells",
           "adaptive chooses at least four strategies more than 5 % of the "
           "time over the table")


def verdicts(found, cells):
    best, worst, shares = judge(cells)
    if not best:
        for target in TARGETS:
            found.verdict(target, None, "see what was skipped")
        return
    within = sum(r >= 1 / 1.1 for r in best.values())
    least = min(best, key=best.get)
    found.verdict(TARGETS[0], within == len(best),
                  f"{within} of {len(best)}; the worst is {best[least]:.2f} "
                  f"of the best ({named(least)})")
    better = sum(r >= 1.5 for r in worst.values())
    found.verdict(TARGETS[1], 3 * better >= len(worst),
                  f"{better} of {len(worst)}")
    found.verdict(TARGETS[2], sum(s > 0.05 for s in shares.values()) >= 4,
                  shown(shares))
    found.see(f"Over {len(best)} cells adaptive reaches "
              f"{statistics.median(best.values()):.2f} of the best fixed "
              f"strategy's throughput (median), and "
              f"{statistics.median(worst.values()):.1f} times the worst one's.")


def run(lab, found):
    cells = measure(lab, found)
    rows, heat = [], {}
    for where, got in cells.items():
        best = max(rate(out) for out in got.values())
        for strategy, out in got.items():
            rows.append(row(*where, strategy, out, best))
            heat.setdefault(strategy, {})[where] = rate(out) / max(best, NOTHING)
    found.table("mixed work on cold memory", HEAD, rows)
    found.heat("c_table", "throughput, of the best in the cell", "of the best",
               [named(where) for where in cells],
               {s: [of.get(where) for where in cells]
                for s, of in heat.items()})
    verdicts(found, cells)
