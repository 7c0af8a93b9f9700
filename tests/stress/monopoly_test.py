#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""monopoly_test.py NOPIN BUILD TESTS/NET: two unmodified programs beside a
monopolist, an ib_write_bw of four times as many pages as all of them may
have, which begins. By `nopin stat --host` each of the two gets all that it
works on, and keeps it, and the monopolist keeps to what is left; the two come to
a good end."""
import json
import shutil
import subprocess
import sys
import time

NOPIN, BUILD, NET = sys.argv[1:4]
sys.path.append(NET)
import pair  # noqa: E402 (it is beside another test)

PATIENCE_S = 60
BUDGET = 16384
PAGE = 4096
# of a program, at each of its sides
PAGES = 1024
MONOPOLIST = ["ib_write_bw", "-F", "-s", str(4 * BUDGET * PAGE), "-D", "600"]
PROGRAMS = [["ib_write_bw", "-F", "-s", str(PAGES * PAGE), "-D", "10"],
            ["ib_read_bw", "-F", "-s", str(PAGES * PAGE), "-D", "10"]]


def shares():
    """pid -> its entries, of all that share the budget."""
    out = subprocess.run([NOPIN, "stat", "--host", "--json"], text=True,
                         timeout=60, capture_output=True, check=False)
    if out.returncode != 0:
        return {}
    host = json.loads(out.stdout)
    assert host["budget"]["entries"] == BUDGET, host
    return {p["pid"]: p["entries"] for p in host["processes"]}


def holds(program):
    return shares().get(program.pid, {"used": 0})["used"]


def fair(programs, monopolist):
    """Do all have what is theirs, and no more?"""
    now = shares()
    if not all(p.pid in now for p in programs + monopolist):
        return False
    return (all(now[p.pid]["used"] >= PAGES for p in programs) and
            all(one["used"] <= one["share"] for one in now.values()) and
            sum(one["share"] for one in now.values()) <= BUDGET)


def keep(programs):
    """Do they have all that they work on? Shares are on the move between looks."""
    now = shares()
    return (all(now[p.pid]["used"] >= PAGES for p in programs) and
            sum(one["used"] for one in now.values()) <= BUDGET)


def end(programs):
    for program in programs:
        _, errors = program.communicate(timeout=PATIENCE_S)
        assert program.returncode == 0, (program.args, errors)


def beside_a_monopolist():
    env = {"NOPIN_BUDGET": str(BUDGET)}
    monopolist, programs = [], []
    try:
        pair.on_loopback(NOPIN, BUILD, MONOPOLIST, env, monopolist)
        pair.expect("the monopolist leaves less than one needs", lambda: sum(
            map(holds, monopolist)) > BUDGET - PAGES)
        for argv in PROGRAMS:
            pair.on_loopback(NOPIN, BUILD, argv, env, programs)
        pair.expect("each has its own", lambda: fair(programs, monopolist))
        for _ in range(20):
            assert keep(programs), shares()
            time.sleep(0.1)
        end(programs)
        for one in monopolist:
            assert one.poll() is None, "the monopolist ended"
    finally:
        for program in monopolist + programs:
            program.kill()
            program.communicate()


def main():
    for tool in ("ib_write_bw", "ib_read_bw"):
        if not shutil.which(tool):
            print(f"SKIP: {tool} is not installed")
            return 77
    beside_a_monopolist()
    return 0


sys.exit(main())
