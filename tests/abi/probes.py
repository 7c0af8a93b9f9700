#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""probes.py LIBRARY PROBE_DEF (sdt | none): the library has each static trace
point of probe.def, with so many arguments, and no other."""
import re
import subprocess
import sys

LIBRARY, DEF, KIND = sys.argv[1:4]


def wanted():
    with open(DEF, encoding="utf-8") as lines:
        return {name: int(n) for name, n in
                re.findall(r"^PROBE\((\w+), (\d), ", lines.read(), re.M)}


def found():
    notes = subprocess.run(["readelf", "-n", LIBRARY], check=True, text=True,
                           capture_output=True).stdout
    return {(name, len(arguments.split())) for name, arguments in re.findall(
        r"Provider: nopin\n\s+Name: (\w+)\n\s+Location:.*\n"
        r"\s+Arguments: (.*)", notes)}


def main():
    if KIND == "none":
        assert not found(), found()
        print("SKIP: built without sys/sdt.h")
        return 77
    assert wanted() and found() == set(wanted().items()), (wanted(), found())
    return 0


sys.exit(main())
