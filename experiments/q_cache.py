# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What it costs to know that remote memory is ready (q_cache.c)."""
import os

from lab import size, us

TITLE = "A cache of handles that are ready, against a pin-down cache"
ABOUT = """WRITEs to blocks of another process's memory, of which 50 to 99 % go to
blocks that were used lately and the others to blocks that had their turn long
ago. The initiator asks nobody; or asks a cache of 32 handles, which the target's
upcalls invalidate, before each WRITE (nopin_cache_ready); or has a cache that is
large enough for all blocks; or a pin-down cache of 32 blocks whose target locks
what is missed and unlocks what is dropped, as Firehose does. Either all blocks are
in the target's memory, or what was not used for 64 turns is not there any more
and comes back with 100 us a page (userfaultfd). And how soon an owner is told: a
peer WRITEs to one page after another of a region that is larger than the NIC's table
(1024 entries), and each replaced entry is an upcall."""
BUDGET_S = (30, 75)

HITS = (50, 75, 90, 95, 99)
WAYS = {"none": "no cache", "handle": "handles", "all": "handles, all blocks",
        "pin": "pin-down"}
FITS = {"fits": "all blocks are in memory", "slow": "cold blocks are not in memory"}
UPCALLS = {"get": "asleep in nopin_upcalls_get()", "fd": "asleep in poll(2)",
           "spin": "polling"}


def measure(lab, found, n, fits):
    """way -> Output, for WRITEs of @n bytes."""
    ops = 60 if lab.quick else 500
    outs = {}
    for way in WAYS:
        out = found.attempt(f"{WAYS[way]}, {size(n)}, {fits}", lab.own,
                            "q_cache", way, n, ops, fits, patience=60)
        if out:
            outs[way] = out
    return outs


def show(found, n, fits, outs):
    head, rows = ["blocks used lately"], [[f"{h} %"] for h in HITS]
    for way, out in outs.items():
        head += [WAYS[way], "p50", "p99"] + (["hits"] if way != "none" else [])
        rates = dict(out.rows["hits"])
        for row, h in zip(rows, HITS):
            took = out.dist[str(h)]
            row += [us(took["mean"]), us(took[50]), us(took[99])]
            if way != "none":
                row.append(f"{float(rates[str(h)]):.0%}")
    found.table(f"WRITE of {size(n)}, {FITS[fits]}: mean", head, rows)
    found.lines(f"q_{fits}_{n}", f"WRITE of {size(n)}, {FITS[fits]}",
                "used lately, %", "us a WRITE, mean",
                {WAYS[way]: [(h, out.dist[str(h)]["mean"]) for h in HITS]
                 for way, out in outs.items()})


def compare(found, n, fits, outs):
    mean = {way: {h: out.dist[str(h)]["mean"] for h in HITS}
            for way, out in outs.items()}
    where = f"{size(n)}, {FITS[fits]}: "
    for other in ("pin", "none"):
        if "handle" not in mean or other not in mean:
            continue
        ratio = {h: mean["handle"][h] / mean[other][h] for h in HITS}
        found.see(f"{where}with 32 handles a WRITE takes "
                  + ", ".join(f"{ratio[h]:.2f}" for h in HITS)
                  + f" of what it takes with {WAYS[other]}, at "
                  + ", ".join(map(str, HITS)) + " %.")


def told(lab, found):
    program = os.path.join("..", "tests", "host", "host-upcall")
    writes = 1500 if lab.quick else 12000
    rows, p99 = [], []
    for mode, what in UPCALLS.items():
        out = found.attempt(f"upcalls, {what}", lab.own, program, mode, writes,
                            patience=30)
        if out:
            _, events, *took = out.rows["upcall"][0]
            rows.append([what, events, *(us(float(t)) for t in took)])
            p99.append(float(took[2]))
    found.table("from when an entry is replaced until the program has its upcall",
                ["the program", "upcalls", "median", "p90", "p99", "longest"], rows)
    found.verdict("an upcall reaches the program within 100 us (p99)",
                  len(p99) == len(UPCALLS) and max(p99) <= 100,
                  ", ".join(map(us, p99)))


def run(lab, found):
    told(lab, found)
    for n in (4096, 65536):
        for fits in FITS:
            outs = measure(lab, found, n, fits)
            show(found, n, fits, outs)
            compare(found, n, fits, outs)
