#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""suspend_test.py NOPIN BUILD TESTS/NET: an unmodified ib_write_bw whose regions
are moved all the time from below, by `nopin move`, its data verified; then
suspended for longer than its timeouts last. Then what is refused, and to whom."""
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

NOPIN, BUILD, NET = sys.argv[1:4]
sys.path.append(NET)
import pair  # noqa: E402 (it is beside another test)

PATIENCE_S = 60
PERIOD_S = 0.1
NOBODY = 65534
SECONDS = 6
SUSPENDED_S = 3


def nopin(*args, **how):
    return subprocess.run([NOPIN, *map(str, args)], text=True, timeout=90,
                          capture_output=True, check=False, **how)


def fields(text):
    return dict(line.split(": ") for line in text.splitlines())


class Traffic(threading.Thread):
    """ib_write_bw, as server and client, with all data verified."""

    def __init__(self, seconds):
        super().__init__()
        self.seconds, self.result = seconds, None

    def run(self):
        with pair.Place(BUILD, verify=True) as place:
            self.result = pair.run_pair(
                place, "ib_write_bw", ["-s", "16384", "-D", str(self.seconds)],
                {"NOPIN_ADDR": "lo"}, PATIENCE_S, True)

    def target(self):
        """The process that is written to, when it is, and its keys."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and self.is_alive():
            listed = nopin("stat", "--json")
            for one in json.loads(listed.stdout or "[]"):
                told = nopin("stat", one["pid"], "--json")
                if told.returncode:
                    continue
                told = json.loads(told.stdout)
                counters = told["nic"]["counters"]
                if counters["rx_bytes"] > 1 << 22:
                    return one["pid"], [r["key"] for r in told["regions"]]
            time.sleep(0.05)
        raise AssertionError(f"nothing moves: {self.result}")

    def expect_good(self):
        self.join()
        problem, _, _, story = self.result
        assert not problem, (problem, story)


def move_all_the_time():
    """Return: whether the kernel let us."""
    traffic = Traffic(SECONDS)
    traffic.start()
    pid, keys = traffic.target()
    moved, n = 0, 0
    while traffic.is_alive():
        out = nopin("move", pid, "--region", keys[n % len(keys)], "--recreate")
        n += 1
        if "unprivileged_userfaultfd" in out.stderr:
            traffic.expect_good()
            return False
        if out.returncode == 0:
            assert int(fields(out.stdout)["moved"]) > 0, out
            moved += 1
        else:
            # it ended, or its region did
            assert out.returncode == 125, out
            assert re.search("no such process|no NIC|no region|not answer|it ended",
                             out.stderr), out
        time.sleep(PERIOD_S)
    traffic.expect_good()
    assert moved >= 5, f"moved {moved} times"
    return True


def suspend_for_long():
    traffic = Traffic(SECONDS)
    traffic.start()
    pid, keys = traffic.target()
    out = nopin("suspend", pid, "--all", "--expect", SUSPENDED_S * 1000)
    assert out.returncode == 0, out
    said = fields(out.stdout)
    assert int(said["suspended"]) == len(keys), (said, keys)
    assert said["limit_ms"] == "none", said
    again = nopin("suspend", pid, "--region", keys[0])
    assert again.returncode == 125 and "suspended already" in again.stderr, again
    time.sleep(SUSPENDED_S)
    out = nopin("resume", pid)
    assert out.returncode == 0, out
    assert int(fields(out.stdout)["pause_us"]) >= SUSPENDED_S * 500000, out
    out = nopin("resume", pid, "--region", keys[0])
    assert out.returncode == 125 and "not suspended" in out.stderr, out
    check_refused(pid)
    check_stranger(pid, keys[0])
    traffic.expect_good()


def check_refused(pid):
    for bad in (["suspend"], ["suspend", "x"], ["move", pid],
                ["move", pid, "--recreate"], ["move", pid, "--region", "1"],
                ["move", pid, "--all", "--recreate"],
                ["move", pid, "--region", "1", "--recreate", "--to-node", "0"],
                ["resume", pid, "--expect", "1"],
                ["suspend", pid, "--all", "--region", "1"],
                ["suspend", pid, "--region", "zz"],
                ["suspend", pid, "--region", "0"],
                ["suspend", pid, "--region", ""],
                ["suspend", pid, "--region", "1 2"],
                ["suspend", pid, "--expect", "-1"],
                ["suspend", pid, "--expect", ""],
                ["move", pid, "--region", "all", "--recreate"],
                ["move", pid, "--region", "1", "--to-node", "x"]):
        out = nopin(*bad)
        assert out.returncode == 2 and "usage" in out.stderr, out
    for command in (["suspend"], ["resume"], ["move", "--recreate"]):
        out = nopin(command[0], pid, "--region", "0x123", *command[1:])
        assert out.returncode == 125 and "no region" in out.stderr, out
        assert out.stderr.count("\n") == 1, out
        out = nopin(command[0], os.getpid(), "--region", 1, *command[1:])
        assert out.returncode == 125 and "no NIC" in out.stderr, out


def check_ends():
    """A program that ends, or closes its NIC, when it has heard the question."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as ears:
        ears.bind(f"\0nopin/ctl/{os.getpid()}")
        ears.listen()

        def hear():
            sock, _ = ears.accept()
            sock.recv(1024)
            sock.close()

        program = threading.Thread(target=hear)
        program.start()
        out = nopin("suspend", os.getpid())
        program.join()
        assert out.returncode == 125 and "it ended" in out.stderr, out


def check_stranger(pid, key):
    if os.geteuid() != 0:
        return
    tool = shutil.copy(NOPIN, f"/tmp/test-of-suspend-{os.getpid()}")
    os.chmod(tool, 0o755)
    try:
        for command in (["suspend"], ["resume"], ["move", "--recreate"]):
            out = subprocess.run(
                [tool, command[0], str(pid), "--region", str(key),
                 *command[1:]], text=True, timeout=60, capture_output=True,
                check=False, user=NOBODY, group=NOBODY, extra_groups=[])
            assert out.returncode == 125 and out.stdout == "", out
            assert "not yours" in out.stderr, out
    finally:
        os.unlink(tool)


def to_a_file():
    traffic = Traffic(SECONDS)
    traffic.start()
    pid, keys = traffic.target()
    with tempfile.TemporaryDirectory(dir=BUILD) as there:
        path = os.path.join(there, "the memory, ganz öffentlich")
        for key in keys:
            out = nopin("move", pid, "--region", key, "--to-file", path)
            if out.returncode == 0:
                break
        assert out.returncode == 0, out
        assert os.path.getsize(path) >= int(fields(out.stdout)["moved"])
        out = nopin("move", pid, "--region", key, "--to-file", path)
        assert out.returncode == 125, out
        out = nopin("move", pid, "--region", key, "--to-node", 0)
        assert out.returncode == 0, out
        out = nopin("move", pid, "--region", key, "--to-node", 999)
        assert out.returncode == 125 and "no such node" in out.stderr, out
        traffic.expect_good()


def main():
    if not shutil.which("ib_write_bw"):
        print("SKIP: ib_write_bw is not installed")
        return 77
    suspend_for_long()
    check_ends()
    if not move_all_the_time():
        print("SKIP: no userfaultfd for system calls here")
        return 77
    to_a_file()
    return 0


sys.exit(main())
