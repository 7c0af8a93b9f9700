# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A monopolist among processes that share one NIC memory (p_monopoly.c)."""
import json

from lab import Failed, quantile

TITLE = "Monopoly: one process touches 100 times more pages than seven others"
ABOUT = """Eight processes of a host share a budget of entries of the table of
pages. Memory of each is READ and WRITTEN at random by a ninth process, in turns,
so that they compete for the table and not for the CPUs. Seven work on what fits
an eighth of the budget; the eighth has a hundred times as many pages, and begins.
By shares (fair), first come first served (first), and without a common budget
(off); beside it each of the seven alone, with one eighth of the entries. An entry
that is missing costs a question to a pager thread (NOPIN_FAULT=redirect: faults
are not taken inline, however cheap they are). The speed of a process is the
upper quartile of its turns, for in some of them the scheduler has both ends on
one CPU, which halves it whatever the rule is."""
BUDGET_S = (300, 120)

PROCESSES = 8
ENTRIES = 16384
PAGES = 1024
RULES = ("fair", "first", "off")


def jain(values):
    """1: all are equal; 1 / n: one has everything."""
    squares = sum(v * v for v in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


def play(lab, monopolists, **env):
    turns = 8 if lab.quick else 100
    return lab.own("p_monopoly", PROCESSES, monopolists, PAGES, turns,
                   lab.nopin[0], patience=80,
                   env={"NOPIN_ADDR": "lo", "NOPIN_FAULT": "redirect",
                        "NOPIN_AHEAD": "page", **env})


def alone(lab):
    return play(lab, 0, NOPIN_ARBITER="off",
                NOPIN_ENTRIES=str(ENTRIES // PROCESSES))


def shared(lab, rule, monopolists):
    return play(lab, monopolists, NOPIN_ARBITER=rule,
                NOPIN_BUDGET=str(ENTRIES))


def speeds(out):
    """Of the seven: requests per ms, the upper quartile of the turns: in some of
    them the scheduler has both ends on one CPU, which halves the speed."""
    return [out.dist[f"speed.{i}"][75] for i in range(1, PROCESSES)]


def per_process(out, name):
    return [int(n) for _, n in sorted((int(i), n) for i, n in out.rows[name])]


def entries(out):
    """What each holds at the end, who asks for the ninth aside; largest first."""
    if "host" not in out.rows:
        raise Failed("nopin stat --host said nothing")
    told = json.loads(out.rows["host"][-1][0])["processes"]
    return sorted((p["entries"]["used"] for p in told), reverse=True)[
        :PROCESSES]


def monopoly(lab, found):
    rounds = 1 if lab.quick else 3
    runs = {name: [] for name in ("alone", *RULES)}
    for _ in range(rounds):
        runs["alone"].append(alone(lab))
        for rule in RULES:
            runs[rule].append(shared(lab, rule, 1))
    rows, median = [], {}
    for name, outs in runs.items():
        each = [quantile(values, 50)
                for values in zip(*(speeds(out) for out in outs))]
        median[name] = each
        ratios = [v / a for v, a in zip(each, median["alone"])]
        misses = per_process(outs[-1], "misses")
        held = entries(outs[-1]) if name in ("fair", "first") else None
        rows.append([
            name, f"{quantile(each, 50):.3g}", f"{min(ratios):.2f}",
            f"{quantile(ratios, 50):.2f}", f"{jain(each):.3f}",
            f"{quantile(misses[1:], 50)}",
            f"{held[0]} / {held[-1]}" if held else "-"])
    found.table("seven processes beside a monopolist",
                ["rule", "requests per ms", "worst / alone", "median / alone",
                 "Jain index of speeds", "misses of one",
                 "entries: monopolist / least"], rows)
    found.bars("p_monopoly", "speed of each of the seven",
               "requests per ms", [str(i) for i in range(1, PROCESSES)],
               median)
    ratios = [v / a for v, a in zip(median["fair"], median["alone"])]
    found.verdict("each of the seven >= 0.9 x its speed alone with one eighth "
                  "of the entries", min(ratios) >= 0.9,
                  f"worst {min(ratios):.2f}, median {quantile(ratios, 50):.2f}")
    first = [v / a for v, a in zip(median["first"], median["alone"])]
    found.see("First come, first served, the seven run at "
              f"{min(first):.2f} to {max(first):.2f} of their speed alone.")


def equal(lab, found):
    """All eight want everything."""
    rows = []
    for rule in ("fair", "first"):
        held = entries(shared(lab, rule, PROCESSES))
        rows.append([rule, f"{jain(held):.3f}", str(held[0]), str(held[-1]),
                     str(sum(held))])
        if rule == "fair":
            found.verdict("Jain index >= 0.95 over eight equal shares",
                          jain(held) >= 0.95, f"{jain(held):.3f}")
    found.table(f"eight monopolists, {ENTRIES} entries",
                ["rule", "Jain index of entries", "most", "least", "all"],
                rows)


def run(lab, found):
    monopoly(lab, found)
    equal(lab, found)
