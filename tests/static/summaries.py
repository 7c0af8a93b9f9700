#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""summaries.py [DIR...]: how the comments of functions begin, in DIR (src).

The summary of a function says what it does, with a verb of verbs.txt first: "Return the
slot to the pool." That of a bool function may say "True if ..." or ask one question
instead. Prints the others, and fails if there are any.
"""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SUMMARY = re.compile(r"/\*\*\s*(?:\n ?\* )?((?:\w+\(\)(?:, )?(?:\n \* )?)+)\s*-\s*(.*?)\*/"
                     r"\s*([^;{]*)", re.S)


def verbs():
    """The first words that are allowed."""
    with open(os.path.join(HERE, "verbs.txt"), encoding="utf-8") as f:
        return {w for line in f if not line.startswith("#")
                for w in line.split()}


def sentence(comment):
    """The first sentence of a comment, on one line."""
    text = re.split(r"\n \* ?\n|\n \* @", comment)[0]
    text = " ".join(re.sub(r"\n \*", "\n", text).split())
    return re.split(r"(?<=[.?!:;]) ", text)[0]


def fits(first, declaration, allowed):
    """May the comment of what is declared begin so?"""
    word = first.split()[0].rstrip(",:;.") if first else ""
    is_bool = re.search(r"\bbool\s+\w+\s*\(", declaration)
    if is_bool and (first.startswith("True if ") or first.endswith("?")):
        return True
    return word[:1].isupper() and word.lower() in allowed


def main(dirs):
    os.chdir(ROOT)
    allowed = verbs()
    bad = 0
    listed = subprocess.run(
        ["find", *(dirs or ["src"]), "-name", "*.[ch]"],
        check=True, capture_output=True, text=True).stdout.split()
    for path in sorted(listed):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for found in SUMMARY.finditer(text):
            first = sentence(found.group(2))
            if fits(first, found.group(3), allowed):
                continue
            bad += 1
            line = text.count("\n", 0, found.start()) + 1
            print(f"{path}:{line}: {found.group(1).strip()}: {first}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
