#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""programs_test.py: does programs.py notice what it is there to notice?

Puts a `nopin` of its own in a build directory, which plays every program: it
listens, connects and prints what perftest prints, but for one defect. And an
ib_write_bw that has nothing but a version.
"""
import os
import resource
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PLAYER = r'''#!/usr/bin/python3
import ctypes, mmap, os, socket, sys, time
defect = os.environ["DEFECT"]
args = sys.argv[4:]
server = not args[-1].startswith("127.")
if defect.startswith("refuses:"):
    sys.exit(defect[8:])
if defect == "locks" and server:
    page = mmap.mmap(-1, 65536)
    start = ctypes.addressof(ctypes.c_char.from_buffer(page))
    ctypes.CDLL(None).mlock(ctypes.c_void_p(start), ctypes.c_size_t(65536))
if defect == "leaves" and server:
    sys.exit(0)
where = ("127.0.0.1", int(args[args.index("-p") + 1]))
if server:
    with socket.create_server(where) as listener:
        listener.accept()[0].recv(1)
    time.sleep(0.1)
else:
    socket.create_connection(where).close()
if defect != "counts nothing":
    print("nopin: info: rx_packets: 5 packets")
if defect.startswith("sends again"):
    print("nopin: info: retransmits: 3 packets")
if defect == "sends again, as asked" and server:
    print("nopin: info: fault_resume: 1 packets")
if defect == "sends again, as it had no CPU" and server:
    print("nopin: info: token_stale: 1 times")
if defect == "is deaf" and server:
    print("nopin: info: kernel_drops: 1 packets")
    print("nopin: info: fault_resume: 1 packets")
found = {"wrong": "WRONG: a byte", "blind": ""}.get(defect, "checked 7, ")
if defect != "silent" and "VERIFY_DIR" in os.environ:
    report = f"{os.environ['VERIFY_DIR']}/{os.environ['VERIFY_ROLE']}.report"
    with open(report, "w") as out:
        out.write(found)
if defect != "mute":
    print("#bytes 1000", "Mtu             : 256[B]")
if defect == "crashes" and not server:
    os.abort()
sys.exit(3 if defect == ("server" if server else "client") else 0)
'''
# what is run, the defect, what must be said of it (None: all is well)
RUNS = ["ib_write_bw", "ib_write_bw -n 1000"]
CALM = ["--calm", "ib_write_bw", "ib_write_bw -n 1000"]
VERIFY = ["--verify", "ib_write_bw", "ib_write_bw -n 1000"]
COUNTED = ["--counted", "fault_resume,fault_rnr", *RUNS]
UD = ["refusals", "ib_atomic_bw -c UD"]
NO_UD = "UD connection only possible in SEND verb"
ODP = "ib_atomic_bw --odp"
NO_ODP = "ODP does not support ATOMICS for now"
OLD, NEW = "6.06", "6.24"
CASES = [
    (RUNS, "none", None),
    (RUNS, "server", "server ended with status 3"),
    (RUNS, "client", "client ended with status 3"),
    (RUNS, "crashes", "client ended with status -6"),
    (RUNS, "leaves", "does not listen"),
    (RUNS, "mute", "did not print"),
    (RUNS, "locks", "server locked 64 kB"),
    (RUNS, "refuses:" + NO_UD, "does not listen"),
    (RUNS, "sends again", None),
    (CALM, "none", None),
    (CALM, "sends again", "counted retransmits 3"),
    (CALM, "sends again, as asked", None),
    (CALM, "sends again, as it had no CPU", None),
    (CALM, "is deaf", "server counted kernel_drops 1"),
    (CALM, "counts nothing", "printed no counters"),
    (COUNTED, "sends again, as asked", None),
    (COUNTED, "none", "no NIC counted fault_resume or fault_rnr"),
    (VERIFY, "none", None),
    (VERIFY, "wrong", "wrong data: a byte"),
    (VERIFY, "blind", "checked nothing"),
    (VERIFY, "silent", "says nothing of the server"),
    (["ib_write_bw", "ib_write_bw -m 256"], "none", None),
    (["ib_write_bw", "ib_write_bw -m 4096"], "none", "did not print"),
    (UD, "refuses:" + NO_UD, None),
    (UD, "refuses:Cannot open device", "did not say"),
    (UD, "none", "took an option that"),
    (["refusals", ODP], "refuses:" + NO_ODP, None, OLD),
    (["refusals", ODP], "none", "took an option that", OLD),
    (["ib_atomic_bw", ODP], "none", None, NEW),
    (["ib_atomic_bw", ODP], "refuses:" + NO_ODP, "does not listen", NEW),
]


def write_program(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as program:
        program.write(text)
    os.chmod(path, 0o755)


def run_case(build, what, defect, expected, version=NEW):
    *flags, sets, only = what
    write_program(f"{build}/bin/ib_write_bw",
                  f"#!/bin/sh\necho Version: {version}\n")
    path = f"{build}/bin:{os.environ['PATH']}"
    done = subprocess.run(
        [f"{HERE}/programs.py", *flags, "--only", only, build, sets],
        check=False,
        capture_output=True, text=True,
        env={**os.environ, "DEFECT": defect, "PATH": path})
    count = "0 passed, 1 failed" if expected else "1 passed, 0 failed"
    if (done.stdout.strip().endswith(count)
            and (expected or "") in done.stdout
            and done.returncode == (1 if expected else 0)):
        return 0
    print(f"{only}, {defect}: expected {expected!r} and {count!r}, printed:\n"
          f"{done.stdout}{done.stderr}")
    return 1


def main():
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    may_lock = limit == resource.RLIM_INFINITY or limit >= 65536
    with tempfile.TemporaryDirectory() as build:
        os.mkdir(f"{build}/meson-info")
        with open(f"{build}/meson-info/intro-buildoptions.json", "w",
                  encoding="utf-8") as options:
            options.write('[{"name": "b_sanitize", "value": "none"}]')
        write_program(f"{build}/tools/nopin/nopin", PLAYER)
        wrong = sum(run_case(build, *case) for case in CASES
                    if may_lock or case[1] != "locks")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
