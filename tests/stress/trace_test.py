#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""trace_test.py NOPIN BUILD TESTS/NET: `nopin trace` of a program that waits
for its client, then of one that another user may not ask, and of what is no
such program."""
import os
import re
import shutil
import subprocess
import sys
import time

NOPIN, BUILD, NET = sys.argv[1:4]
sys.path.append(NET)
import pair  # noqa: E402 (it is beside another test)

PATIENCE_S = 20
NOBODY = 65534


def trace(pid, **how):
    return subprocess.run([NOPIN, "trace", str(pid)], text=True, timeout=60,
                          capture_output=True, check=False, **how)


def wait_for_qp(server):
    """Its first trace with all that it posts before it waits for its client."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        out = trace(server.pid)
        if out.returncode == 0 and "500 queued" in out.stdout:
            return out.stdout
        assert server.poll() is None, "the server ended"
        time.sleep(0.1)
    raise AssertionError(f"no trace: {out}")


def check_text(text):
    assert re.search(r"^qp 0x[0-9a-f]{6} INIT, to qp", text, re.M), text
    assert re.search(r"receives: 500 queued", text), text
    assert re.search(r"^  -[0-9.]+ us STATE, psn 0x000000, old state 0x0, "
                     r"new state 1$", text, re.M), text


def check_others(server):
    out = trace(os.getpid())
    assert out.returncode != 0 and "no NIC" in out.stderr, out
    assert trace("x").returncode == 2
    if os.geteuid() == 0:
        tool = shutil.copy(NOPIN, "/tmp/test-of-trace-%d" % os.getpid())
        os.chmod(tool, 0o755)
        try:
            out = subprocess.run([tool, "trace", str(server.pid)], text=True,
                                 timeout=60, capture_output=True, check=False,
                                 user=NOBODY, group=NOBODY, extra_groups=[])
        finally:
            os.unlink(tool)
        assert out.returncode != 0 and out.stdout == "", out
    # A client that never reads keeps nobody from asking.
    stuck = [subprocess.Popen([NOPIN, "trace", str(server.pid)],
                              stdout=subprocess.PIPE) for _ in range(3)]
    check_text(trace(server.pid).stdout)
    for client in stuck:
        client.communicate(timeout=60)
        assert client.returncode == 0


def main():
    if not shutil.which("ibv_rc_pingpong"):
        print("SKIP: ibv_rc_pingpong is not installed")
        return 77
    server = subprocess.Popen(
        [NOPIN, "run", "--", "ibv_rc_pingpong", "-g", "0", "-p", "18601"],
        stdout=subprocess.DEVNULL,
        env={**os.environ, **pair.sanitizer_environment(BUILD)[0],
             "NOPIN_ADDR": "lo"})
    try:
        check_text(wait_for_qp(server))
        check_others(server)
    finally:
        server.kill()
        server.wait()
    return 0


sys.exit(main())
