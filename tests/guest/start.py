#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""start.py NOPIN: what a program pays for nopin before and after it does
anything: `ibv_devinfo` beside `true`, both under `nopin run`. Prints the best
of some runs of each; how long anything takes is no reason to fail."""
import shutil
import subprocess
import sys
import time

RUNS = 10


def best_ms(nopin, program):
    best = None
    for _ in range(RUNS):
        start = time.monotonic()
        done = subprocess.run([nopin, "run", "--", program], check=False,
                              timeout=60, capture_output=True)
        took = (time.monotonic() - start) * 1e3
        if done.returncode:
            sys.exit(f"{program}: {done}")
        best = min(best or took, took)
    return best


def main():
    if not shutil.which("ibv_devinfo"):
        print("SKIP: ibv_devinfo is not installed")
        sys.exit(77)
    idle = best_ms(sys.argv[1], "true")
    info = best_ms(sys.argv[1], "ibv_devinfo")
    print(f"true {idle:.1f} ms, ibv_devinfo {info:.1f} ms, "
          f"ratio {info / idle:.1f}")


main()
