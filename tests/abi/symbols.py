#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""symbols.py OURS INSTALLED NOPIN_H

Both libraries export the same names in the same versions, default or not, of the
same type (function or variable), their version nodes have the same parents, and
ours has the name that programs are linked to and is never unloaded. Besides,
ours has what NOPIN_H declares, in a version of its own.
"""
import re
import subprocess
import sys

OWN_NODE = "NOPIN_1.0"
SYMBOL = re.compile(r"\s(FUNC|OBJECT)\s+(?:GLOBAL|WEAK)\s+DEFAULT\s+(\S+)\s+(\S+)$")
NODE = re.compile(r"Name: (\S+)$")
PARENT = re.compile(r"Parent \d+: (\S+)$")


def readelf(option, library):
    return subprocess.run(["readelf", "-W", option, library], check=True,
                          capture_output=True, text=True).stdout


def exports(library):
    found = set()
    for line in readelf("--dyn-syms", library).splitlines():
        match = SYMBOL.search(line)
        if match and match[2] not in ("UND", "ABS"):
            found.add((match[3], match[1]))
    return found


def nodes(library):
    """{node: {parents}} of the versions that a library defines."""
    text = readelf("-V", library)
    text = text[text.index("section '.gnu.version_d'"):]
    end = text.find("section '.gnu.version_r'")
    found, node = {}, None
    for line in text[:end if end > 0 else None].splitlines():
        if match := NODE.search(line):
            node = match[1]
            found[node] = set()
        elif match := PARENT.search(line):
            found[node].add(match[1])
    return found


def compare(what, ours, installed):
    for item in sorted(installed - ours):
        print(f"{what} missing in ours: {item}")
    for item in sorted(ours - installed):
        print(f"{what} only in ours: {item}")
    return ours != installed


def main(ours, installed, header):
    theirs = exports(installed)
    assert len(theirs) > 100, "cannot read the installed library"
    with open(header, encoding="utf-8") as text:
        own = {(f"{name}@@{OWN_NODE}", "FUNC")
               for name in re.findall(r"\b(nopin_\w+)\(\w", text.read())}
    assert len(own) > 5, "cannot read the header"
    bad = compare("symbol", exports(ours), theirs | own)
    bad |= compare("version node", set(map(repr, nodes(ours).items())),
                   set(map(repr, nodes(installed).items()))
                   | {repr((OWN_NODE, set()))})
    dynamic = readelf("-d", ours)
    for wanted in ("Library soname: [libibverbs.so.1]", "NODELETE"):
        if wanted not in dynamic:
            print(f"not in the dynamic section: {wanted}")
            bad = True
    if "libibverbs" in dynamic.replace("soname: [libibverbs.so.1]", ""):
        print("ours needs a libibverbs itself")
        bad = True
    return bad


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
