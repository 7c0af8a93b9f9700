# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Latency and bandwidth over message size, with unmodified perftest."""
import os
import re
import resource
import statistics
import subprocess

from lab import MIB, Failed, Skipped, is_root, size, us
from programs import Veth, finish, kill, spawn, values

TITLE = "Latency and bandwidth over message size"
ABOUT = """Unmodified ib_write_lat and ib_write_bw over message size, unpinned
memory against every registration mode (NetVM's unpinned writes took less than
5 % longer than pinned ones), in turns. WRITEs to warm memory, on one page and at
random, of a pinned and an unpinned pair that live side by side. Then the share of a link of 1 Gb/s (tc
tbf on a veth with an IP MTU of 9000, path MTU 4096) that is payload; NetVM
reached 97.2 % of its link."""
BUDGET_S = (270, 180)

SIZES = [1 << k for k in range(3, 23, 2)]
LINK_BITS = 1_000_000_000
SWEEP_LOCKS = 16 * MIB  # perftest -a registers twice 8 MiB


def rows_of(out):
    """bytes -> the numbers of perftest's line."""
    found = {}
    for line in out.splitlines():
        if re.match(r"\s*\d+\s+\d+\s+[\d.]+\s", line):
            numbers = [float(x) for x in line.split()]
            found[int(numbers[0])] = numbers
    if not found:
        raise Failed("perftest: no result")
    return found


def sweep(lab, program, mode, count):
    """bytes -> us (median) or GB/s."""
    out = lab.perftest(f"{program} -a -n {count} -m 4096",
                       env={"NOPIN_REG": mode})
    column, factor = (4, 1) if program.endswith("lat") else (3, (1 << 20) / 1e9)
    return {n: row[column] * factor for n, row in rows_of(out).items()
            if n in SIZES}


def may_lock(count):
    """May a program lock so many bytes? (RLIMIT_MEMLOCK)"""
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    return is_root() or limit == resource.RLIM_INFINITY or limit >= count


def turns_of(lab, found, program, count, turns):
    """mode -> bytes -> a value for each turn."""
    modes = []
    for mode, reason in lab.modes():
        if reason:
            found.skip(f"{program}, {mode}", reason)
        elif mode == "pin" and not may_lock(SWEEP_LOCKS):
            found.skip(f"{program}, {mode}", "locking "
                       f"{SWEEP_LOCKS // MIB} MiB needs root, or ulimit -l")
        elif mode in ("ondemand", "pin") or not lab.quick:
            modes.append(mode)
    got = {mode: {} for mode in modes}
    for i in range(turns):
        for mode in modes[i % len(modes):] + modes[:i % len(modes)]:
            if got[mode] is None:
                continue
            try:
                one = sweep(lab, program, mode, count)
            except Skipped:
                raise
            except Failed as why:
                if mode == "ondemand":
                    raise
                found.skip(f"{program}, {mode}", f"it does not run: {why}")
                got[mode] = None
                continue
            for n, value in one.items():
                got[mode].setdefault(n, []).append(value)
    return {mode: values for mode, values in got.items() if values}


def compare(lab, found, program, count, turns, unit, name):
    got = turns_of(lab, found, program, count, turns)
    middle = {mode: {n: statistics.median(v) for n, v in values.items()}
              for mode, values in got.items()}
    text = us if unit == "us" else (lambda x: f"{x:.3g} GB/s")
    found.table(f"{name}, {program}", ["message", *middle],
                [[size(n), *(text(m[n]) for m in middle.values())]
                 for n in SIZES])
    found.lines(f"a_{program}", f"{name} over message size", "bytes", unit,
                {mode: sorted(m.items()) for mode, m in middle.items()}, "xy",
                xsize=True)
    if "pin" not in got:
        return None
    return {n: statistics.median(
        a / b for a, b in zip(got["ondemand"][n], got["pin"][n]))
        for n in SIZES}


def slow_link(lab, found):
    if not subprocess.run(["sh", "-c", "command -v tc"], check=False,
                          capture_output=True).returncode == 0:
        raise Skipped("no tc(8)")
    try:
        veth = Veth(9000)
        place = veth.__enter__()
    except Skipped as reason:
        raise Skipped(f"a slow link: {reason}") from reason
    try:
        for name in veth.names:
            done = subprocess.run(
                ["tc", "-n", name, "qdisc", "add", "dev", "v0", "root", "tbf",
                 "rate", str(LINK_BITS), "burst", "64kb", "latency", "50ms"],
                capture_output=True, text=True, check=False)
            if done.returncode:
                raise Skipped(f"tc: {done.stderr.strip()}")
        count = 300 if lab.quick else 2000
        out = lab.perftest(f"ib_write_bw -s 1048576 -n {count} -m 4096",
                           place=place, patience=60)
    finally:
        veth.__exit__()
    mib_s = rows_of(out)[1 << 20][3]
    share = mib_s * (1 << 20) * 8 / LINK_BITS
    frame = 4096 + 12 + 4 + 8 + 20 + 14  # BTH, ICRC, UDP, IPv4, Ethernet
    found.table("ib_write_bw over a link of 1 Gb/s", ["what", "value"], [
        ["payload", f"{mib_s * (1 << 20) / 1e6:.2f} MB/s"],
        ["share of the link", f"{share:.1%}"],
        ["share of payload in a full packet", f"{4096 / frame:.1%}"]])
    found.see(f"Of a link of 1 Gb/s, {share:.1%} are payload; headers alone "
              f"leave {4096 / frame:.1%}.")
    found.verdict("payload share of a link (NetVM's 97.2 %)", share >= 0.972,
                  f"{share:.1%}")


# --- warm --------------------------------------------------------------------


def warm(lab, found):
    """bench-unpinned: a pinned and an unpinned pair side by side, in turns."""
    region, turns, ms = (256, 2, 20) if lab.quick else (4096, 8, 100)
    if not may_lock(region * MIB):
        raise Skipped(f"locking {size(region * MIB)} needs root or ulimit -l")
    if available_mib() < 2 * region + 1024:
        raise Skipped(f"two regions of {region} MiB do not fit")
    program = os.path.join(lab.build, "bench", "bench-unpinned")
    process = spawn([*lab.nopin, program, "-r", str(region), "-n", str(turns),
                     "-t", str(ms)], {"NOPIN_ADDR": "lo"})
    try:
        got = values(finish(process, "bench-unpinned", lab.patience(60)))
    finally:
        kill(process)
    kinds = [name.removesuffix(", ratio") for name in got
             if name.endswith(", ratio")]
    found.table(f"warm WRITEs, at random over {size(region * MIB)}",
                ["", "unpinned", "pinned", "ratio"],
                [[kind, *(f"{got[f'{kind}, {mode}'] / 1e3:.1f} k/s"
                          for mode in ("ondemand", "pin")),
                  f"{got[f'{kind}, ratio']:.3f}"] for kind in kinds])
    for where, limit in (("hot", 0.99), ("random", 0.98)):
        worst = min(got[f"{kind}, ratio"] for kind in kinds
                    if kind.startswith(where))
        found.verdict(f"warm, {where}: unpinned within {1 - limit:.0%} of "
                      "pinned", worst >= limit, f"at worst {worst - 1:+.1%}")


def available_mib():
    with open("/proc/meminfo", encoding="ascii") as info:
        return int(re.search(r"MemAvailable:\s*(\d+)", info.read())[1]) >> 10


def run(lab, found):
    turns, count = (1, 20) if lab.quick else (2, 40)
    latency = compare(lab, found, "ib_write_lat", count, turns, "us",
                      "half round trip of a WRITE")
    bandwidth = compare(lab, found, "ib_write_bw", count, turns, "GB/s",
                        "bandwidth of WRITEs")
    target = "WRITE latency unpinned < 5 % over pinned (NetVM), every size"
    if latency:
        worst = max(latency, key=latency.get)
        found.verdict(target, latency[worst] < 1.05,
                      f"at most {latency[worst] - 1:+.1%} ({size(worst)})")
        found.see(f"Unpinned, a WRITE takes {min(latency.values()):.2f} to "
                  f"{max(latency.values()):.2f} times as long as pinned; "
                  f"bandwidth is {min(bandwidth.values()):.2f} to "
                  f"{max(bandwidth.values()):.2f} times pinned's.")
    else:
        found.verdict(target, None, "see what was skipped")
        found.see("There is nothing pinned to compare with.")
    found.attempt("warm, pinned", warm, lab, found)
    found.attempt("payload share of 1 Gb/s", slow_link, lab, found)
