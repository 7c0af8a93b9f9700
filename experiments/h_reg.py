# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What registration costs (h_reg.c)."""
from lab import GIB, MIB, TIB, Skipped, size, us

TITLE = "Registration: what it costs, and what a pin-down cache saves"
ABOUT = """ibv_reg_mr() of memory that was never touched, 4 KiB to 1 TiB, in
each registration mode; a program that registers and deregisters around each
WRITE, beside one that registered once; and the same program against pin-down
caches that hit 50 to 99 % of the time. NetVM found unpinned memory cheaper
than a pin-down cache up to a hit rate of 94.5 %."""
BUDGET_S = (50, 90)

PIN_MAX = GIB  # what locking modes are asked to register at most
HITS = (50, 75, 90, 95, 99)
LOOP_BYTES = (4096, 65536, MIB)
CACHE_BYTES = 65536


def registration(lab, found):
    sizes = [4096 << k for k in range(0, 29, 2)]
    curves, rows = {}, {n: [size(n)] for n in sizes}
    if lab.quick:
        sizes = [sizes[0], sizes[4], TIB]
    names = []
    for mode, reason in lab.modes():
        if reason:
            found.skip(f"registration, {mode}", reason)
            continue
        curves[mode] = []
        names.append(mode)
        for n in sizes:
            locks = mode in ("pin", "pin-cache", "prefault")
            if locks and n > PIN_MAX:
                rows[n].append("-")
                continue
            times = 3 if n > 16 * MIB and locks else 20 if lab.quick else 200
            try:
                took = lab.own("h_reg", "reg", n, times,
                               env={"NOPIN_REG": mode}).dist
            except Skipped as reason:
                rows[n].append(str(reason))
                continue
            rows[n].append(us(took["reg"][50]))
            curves[mode].append((n, took["reg"][50]))
    found.table("ibv_reg_mr, median", ["size", *names],
                [rows[n] for n in sizes])
    found.lines("h_registration", "ibv_reg_mr() of memory that was never "
                "touched", "bytes", "us", curves, "xy", xsize=True)
    ours = dict(curves["ondemand"])
    found.see(f"Registering {size(max(ours))} takes {us(ours[max(ours)])}, "
              f"{size(min(ours))} takes {us(ours[min(ours)])}.")
    pin = dict(curves.get("pin", ()))
    if pin:
        n = max(pin)
        found.see(f"Locked, {size(n)} takes {us(pin[n])}, "
                  f"{pin[n] / ours[n] if n in ours else 0:.0f} times as long.")


def loop(lab, found):
    rows, worst = [], 0
    turns = 10 if lab.quick else 100
    for n in LOOP_BYTES:
        for mode in ("ondemand", "pin"):
            got = found.attempt(f"loop, {size(n)}, {mode}", lab.own, "h_reg",
                                "loop", n, turns, env={"NOPIN_REG": mode})
            if not got:
                continue
            more = got.dist["ratio"][50] - 1
            rows.append([size(n), mode, us(got.dist["alone"][50]),
                         us(got.dist["loop"][50]), f"{more:+.1%}"])
            if mode == "ondemand":
                worst = max(worst, more)
    found.table("registering around each WRITE",
                ["WRITE of", "mode", "alone", "reg + WRITE + dereg", "more"],
                rows)
    found.verdict("reg + WRITE + dereg in a loop <= 5 % slower than WRITE",
                  worst <= 0.05, f"at most {worst:+.1%}")


def one_cache(lab, hits, ops, mode, kind):
    got = lab.own("h_reg", "cache", CACHE_BYTES, hits, ops, kind,
                  env={"NOPIN_REG": mode})
    return got.dist["op"]["mean"], got.value("hits")


def cache(lab, found):
    ways = {"unpinned": ("ondemand", "nic"),
            "pin-down cache of the program": ("pin", "own"),
            "pin-cache": ("pin-cache", "nic")}
    refused = {mode: why for mode, why in lab.modes() if why}
    curves, rows = {}, {h: [f"{h} %"] for h in HITS}
    ops = 300 if lab.quick else 3000
    for name, (mode, kind) in ways.items():
        if mode in refused:
            found.skip(name, refused[mode])
            continue
        curves[name] = []
        for hits in HITS:
            got = found.attempt(f"{name}, {hits} %", one_cache, lab, hits,
                                ops, mode, kind)
            rows[hits].append(us(got[0]) if got else "-")
            if got:
                curves[name].append((hits, got[0]))
    found.table(f"mean time of an operation of {size(CACHE_BYTES)}, by hit "
                "rate", ["hits", *curves], [rows[h] for h in HITS])
    found.lines("h_cache", "unpinned memory against pin-down caches",
                "hit rate, %", "us an operation", curves)
    ours = dict(curves.get("unpinned", ()))
    for name, points in curves.items():
        if name == "unpinned" or not points:
            continue
        cheaper = [h for h, t in points if h in ours and ours[h] < t]
        found.see(f"Against {name}, unpinned memory is cheaper at hit rates "
                  f"of {', '.join(f'{h} %' for h in cheaper) or 'none'} "
                  "of those tried.")


def run(lab, found):
    registration(lab, found)
    loop(lab, found)
    cache(lab, found)
