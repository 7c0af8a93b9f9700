#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""denied_list.py DENIED SOURCES

Every system call that src/os makes is one of those that DENIED denies.
"""
import glob
import re
import subprocess
import sys


def main():
    denied, sources = sys.argv[1:3]
    made = set()
    for pattern in ("*.c", "*.h"):
        for path in glob.glob(f"{sources}/{pattern}"):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            made |= set(re.findall(r"\bSYS_([a-z]\w+)", text))
            made |= set(re.findall(r"^\t(?:NEEDS|EITHER)\((\w+)", text,
                                   re.M))
    tried = set(subprocess.run([denied, "--list"], capture_output=True,
                               text=True, check=True).stdout.split())
    missing = made - tried
    if len(made) < 40 or missing:
        sys.exit(f"{len(made)} are made; not denied: {sorted(missing)}")


if __name__ == "__main__":
    main()
