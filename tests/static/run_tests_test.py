#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""run_tests_test.py RUN-TESTS: does it count what passes, fails and is skipped?

Runs a copy of it over a small project whose tests do nothing but end in one
way each.
"""
import os
import shutil
import subprocess
import sys
import tempfile

PROJECT = """project('p')
sh = find_program('sh')
fine = custom_target('fine', output: 'fine', command: ['touch', '@OUTPUT@'])
broken = custom_target('broken', output: 'broken', command: 'false')
test('unbuilt', sh, args: ['-c', 'exit 0'], suite: 'unbuilt', depends: broken)
ways = {
  'good': 'exit 0',
  'bad': 'echo it broke; exit 1',
  'crash': 'kill -SEGV $$',
  'hang': 'sleep 10',
  'may-skip': 'echo "SKIP: no such thing"; exit 77',
  'may-not-skip': 'echo "SKIP: too lazy"; exit 77',
  'not-now': 'echo "SKIP: not now"; exit 77',
  'mute-skip': 'exit 77',
}
foreach name, script : ways
  test(name, sh, args: ['-c', script], suite: name,
    timeout: name == 'hang' ? 1 : 60, depends: fine)
endforeach
test('slow', sh, args: ['-c', 'exit 1'], suite: ['good', 'slow'], depends: fine)
"""
SKIPS = """# a comment
may-skip  no-tool=no-such-tool-anywhere   # why
mute-*    no-tool=no-such-tool-anywhere
not-now   no-tool=sh
"""
# arguments, last line, what is printed besides
CASES = [
    (["b:good,-slow"], "1 passed, 0 failed", ""),
    (["b:good"], "1 passed, 1 failed", "slow"),
    (["b:good,-slow,bad"], "1 passed, 1 failed", "it broke"),
    (["b:good,-slow,crash"], "1 passed, 1 failed", "crash"),
    (["b:good,-slow,hang"], "1 passed, 1 failed", "timeout"),
    (["b:good,-slow,may-skip"], "1 passed, 0 failed", "1 skipped, as"),
    (["b:may-skip"], "0 passed, 0 failed", ""),
    (["b:good,-slow,may-not-skip"], "1 passed, 1 failed", "too lazy"),
    (["b:good,-slow,not-now"], "1 passed, 1 failed", "does not expect"),
    (["b:good,-slow,mute-skip"], "1 passed, 1 failed", "without a line"),
    (["b:good,-slow", "b:may-skip,bad"], "1 passed, 1 failed", "it broke"),
    (["b:good,-slow", "b:nothing"], "1 passed, 1 failed", "no such tests"),
    # One group that fails as a whole hides no other.
    (["b:nothing", "b:good,-slow"], "1 passed, 1 failed", "no such tests"),
    (["b:unbuilt", "b:good,-slow"], "1 passed, 1 failed", "do not build"),
    (["none:good", "b:good,-slow"], "1 passed, 1 failed", "No such file"),
]


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)


def run_case(root, args, last, also):
    done = subprocess.run(
        [f"{root}/tools/run-tests", *args], cwd=root,
        capture_output=True, text=True, check=False)
    lines = done.stdout.strip().split("\n")
    good = done.returncode == 0
    failures = int(last.split()[-2])
    should = failures == 0 and not last.startswith("0 ")
    # Each failure is said once more at the end, in a line of its own.
    ends = [line for line in lines[-1 - failures:-1] if line.startswith("failed: ")]
    if (lines[-1] == last and also in done.stdout and good == should
            and len(ends) == failures):
        return 0
    print(f"{args}: expected {last!r} and {also!r}, exit status "
          f"{done.returncode}, printed:\n{done.stdout}{done.stderr}")
    return 1


def main(run_tests):
    with tempfile.TemporaryDirectory() as root:
        write(f"{root}/meson.build", PROJECT)
        write(f"{root}/tests/skips.txt", SKIPS)
        os.mkdir(f"{root}/tools")
        shutil.copy(run_tests, f"{root}/tools/run-tests")
        subprocess.run(["meson", "setup", f"{root}/b", root], check=True,
                       stdout=subprocess.DEVNULL)
        wrong = sum(run_case(root, *case) for case in CASES)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
