#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""check_layers_test.py CHECK-LAYERS: does it see what it is there to see?

Each case is one file in an otherwise clean tree and what must be said of it,
or None.
"""
import os
import subprocess
import sys
import tempfile

LICENCE = "SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only"
C = f"/* {LICENCE} */\n"
LAYERS = f"""# {LICENCE}
layer base:
layer wire: base
layer nic: base wire
layer sim: base
facade base: base.h text.h
facade sim: top.h
rooms sim: low high top
system base: c
system wire: c isa-l.h
system nic: c pthread.h
long src/base/a.c: table
"""


def function(name, lines):
    return f"int {name}(int a,\n\t int b)\n{{\n" + "\n" * (lines - 2) + "}\n"


CASES = [
    ("src/wire/a.c", C + '#include "base/base.h"\n', None),
    ("src/wire/a.c", C + '#include "wire/private.h"\n', None),
    ("src/wire/a.c", C + "#include <string.h>\n#include <isa-l.h>\n", None),
    ("src/wire/a.c", C + '#include "nic/nic.h"\n', "may not include nic/"),
    ("src/base/a.h", C + '#include "wire/wire.h"\n', "may not include wire/"),
    ("src/nic/a.c", C + '#include "wire/psn.h"\n', "only a façade"),
    ("src/nic/a.c", C + '#include "nic.h"\n', "start at src/"),
    ("src/nic/a.c", C + "# include <sys/socket.h>\n", "may not be included"),
    ("src/base/a.c", C + "#include <pthread.h>\n", "may not be included"),
    ("src/nic/a.c", C + "#include <infiniband/verbs.h>\n", "may not be incl"),
    ("src/new/a.c", C, "no directory that src/LAYERS knows"),
    ("src/a.c", C, "no directory that src/LAYERS knows"),
    ("src/wire/a.c", C + '#include "base/text.h"\n', None),
    ("src/wire/a.c", C + '#include "base/list.h"\n', "only a façade"),
    ("src/sim/high.c", C + '#include "sim/low.h"\n#include "sim/x.h"\n', None),
    ("src/sim/low.c", C + '#include "sim/low.h"\n#include "sim/x.h"\n', None),
    ("src/sim/low.c", C + '#include "sim/high.h"\n', "is above low"),
    ("src/sim/low.c", C + '#include "sim/top.h"\n', None),
    ("src/sim/low.h", C + '#include "sim/high.h"\n', None),
    ("src/sim/new.c", C, "is no room"),
    ("tests/sim/a.c", C + '#include "nic/nic.h"\n', "may not include nic/"),
    ("tests/new/a.c", C + '#include "nic/nic.h"\n', None),
    ("doc/sim/a.c", C + '#include "nic/nic.h"\n', None),
    ("src/base/b.c", C + function("f", 70), None),
    ("src/base/b.c", C + function("f", 71), "f() has 71 lines"),
    ("src/base/a.c", C + function("table", 71), None),
    ("tests/b.c", C + function("f", 71), "f() has 71 lines"),
    ("src/base/b.c", C + "\n" * 799, None),
    ("src/base/b.c", C + "\n" * 800, "file has 801 lines"),
    ("src/base/b.c", "int a;\n", "lacks the line"),
    ("src/base/b.c", "\n\n\n" + C, "lacks the line"),
    ("src/nic/a.c", C + "static lock_t l = PTHREAD_MUTEX_INITIALIZER;\n",
     "l is not made anew"),
    ("src/nic/a.c", C + "} all = {.lock = PTHREAD_MUTEX_INITIALIZER};\n",
     "all is not made anew"),
    ("src/nic/a.c", C + "static once_t o = PTHREAD_ONCE_INIT;\n"
     "{\n\to = (pthread_once_t)PTHREAD_ONCE_INIT;\n}\n", None),
    ("tools/b", "#!/bin/sh\n", "lacks the line"),
    ("doc/b.md", "# B\n", "lacks the line"),
    ("doc/b.md", f"# B\n\n\n\n\n<!-- {LICENCE} -->\n", None),
    ("LICENSE", "Redistribution\n", None),
    ("build-x/b.c", "int a;\n", None),
    ("check.log", f"cd /{'home'}/me\n", None),
    ("tools/b", f"# {LICENCE}\ncd /{'home'}/me\n", "names a directory"),
    ("tools/b", f"# {LICENCE}\ncd /{'work'}/me\n", "names a directory"),
]


def write(root, path, text):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)


def run_case(checker, path, text, expected):
    """Returns what is wrong with the checker's answer, or None."""
    with tempfile.TemporaryDirectory() as root:
        write(root, "src/LAYERS", LAYERS)
        write(root, path, text)
        done = subprocess.run([checker, root], capture_output=True, text=True,
                              check=False)
    said = done.stdout.strip()
    if done.stderr or done.returncode != (1 if expected else 0):
        return f"exit status {done.returncode}, said: {said}{done.stderr}"
    if expected and not (said.startswith(path) and expected in said):
        return f"said: {said}"
    if expected and "\n" in said:
        return f"said more than one thing: {said}"
    return None


def main(checker):
    wrong = 0
    for case in CASES:
        problem = run_case(checker, *case)
        if problem:
            print(f"{case[0]}: expected {case[2]!r}; {problem}")
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
