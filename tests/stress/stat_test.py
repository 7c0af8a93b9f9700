#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""stat_test.py NOPIN BUILD TESTS/NET: `nopin stat` of an unmodified ib_write_bw
whose buffer is paged out all the time: numbers move and agree with each other,
in every form. Then strangers and garbage at the control socket."""
import ctypes
import errno
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

NOPIN, BUILD, NET = sys.argv[1:4]
sys.path.append(NET)
import pair  # noqa: E402 (it is beside another test)

PATIENCE_S = 30
NOBODY = 65534
SYS_PROCESS_MADVISE = 440
MADV_PAGEOUT = 21
SUMS = ["faults", "minor", "major", "access", "cheap", "unanswered",
        "given_up", "table_misses", "merged"]


def stat(*args, **how):
    return subprocess.run([NOPIN, "stat", *map(str, args)], text=True,
                          timeout=60, capture_output=True, check=False, **how)


def told(pid):
    out = stat(pid, "--json")
    assert out.returncode == 0, out
    return json.loads(out.stdout)


class IoVec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]


def page_out(pid, name):
    """All that process @pid maps of the file @name. False: we may not."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.pidfd_open(pid)
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
            ranges = [m[1].split("-") for m in map(
                lambda line: re.match(r"(\S+).* (\S+)$", line), maps)
                if m and m[2] == name]
        assert ranges, "the buffer is not in the file"
        for start, end in ranges:
            start, end = int(start, 16), int(end, 16)
            vec = IoVec(start, end - start)
            done = libc.syscall(SYS_PROCESS_MADVISE, fd, ctypes.byref(vec),
                                ctypes.c_ulong(1), MADV_PAGEOUT, 0)
            if done < 0 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS):
                return False
    finally:
        os.close(fd)
    return True


def check_hist(hist):
    assert sum(hist["buckets"]) == hist["count"], hist
    assert hist["max_ns"] <= hist["sum_ns"], hist


def check_sums(all_):
    nic = all_["nic"]
    for lists, nobody in (("qps", "no_qp"), ("regions", "no_region")):
        accounts = [o["account"] for o in all_[lists]] + [nic[nobody]]
        for account in accounts:
            check_hist(account["service"])
            check_hist(account["delay"])
        # copied one after the other, so the later ones may know of more
        for name in SUMS:
            assert sum(a[name] for a in accounts) >= nic["account"][name], (
                lists, name)
    account = nic["account"]
    assert account["service"]["count"] == sum(
        account[n] for n in ("minor", "major", "access"))
    assert account["faults"] == nic["counters"]["faults"]
    assert len(all_["bucket_le_ns"]) + 1 == len(account["delay"]["buckets"])


def check_metrics(text, pid):
    """OpenMetrics: families stand together, counters end with _total, buckets
    grow, and the end is marked."""
    lines = text.split("\n")
    assert lines[-2:] == ["# EOF", ""], lines[-3:]
    kinds, seen, family, below = {}, set(), None, {}
    for line in lines[:-2]:
        comment = re.fullmatch(r"# (TYPE|HELP) (\w+) (.+)", line)
        if comment and comment[1] == "TYPE":
            family = comment[2]
            assert family not in kinds, f"{family} twice"
            assert comment[3] in ("counter", "gauge", "histogram")
            kinds[family] = comment[3]
            continue
        if comment:
            assert comment[2] == family
            continue
        sample = re.fullmatch(
            r'(\w+)\{((?:\w+="[^"\\]*",?)+)\} ([-+.e0-9]+)', line)
        assert sample, f"not OpenMetrics: {line}"
        suffix = {"counter": "_total", "gauge": "",
                  "histogram": "_(bucket|count|sum)"}[kinds[family]]
        assert re.fullmatch(family + suffix, sample[1]), line
        assert (sample[1], sample[2]) not in seen, f"twice: {line}"
        seen.add((sample[1], sample[2]))
        if sample[1].endswith("_bucket"):
            labels = re.sub(r',?le="[^"]*"', "", sample[2])
            key = (family, labels)
            assert int(sample[3]) >= below.get(key, 0), line
            below[key] = int(sample[3])
    assert ("nopin_faults_total", f'pid="{pid}"') in seen
    assert any(kind == "histogram" for kind in kinds.values())
    for label in ("qp", "mr"):
        assert any(f'{label}="0x' in labels for _, labels in seen), label


def check_watch(pid):
    watch = subprocess.Popen([NOPIN, "stat", str(pid), "--watch=0.1"],
                             stdout=subprocess.PIPE, text=True)
    try:
        head, row = watch.stdout.readline(), watch.stdout.readline()
    finally:
        watch.kill()
        watch.communicate()
    assert "PER SECOND" in head and row.split()[0] == str(pid), (head, row)


def check_forms(pid):
    text = stat(pid).stdout
    assert re.search(r"^NIC +\d+", text, re.M), text
    assert re.search(r"^QP 0x[0-9a-f]{6} RT[RS] +\d+", text, re.M), text
    assert re.search(r"^region 0x[0-9a-f]{8} +\d+", text, re.M), text
    assert re.search(rf"^ *{pid} ib_write_bw ", stat().stdout, re.M)
    assert pid in [one["pid"] for one in json.loads(stat("--json").stdout)]
    check_metrics(stat(pid, "--openmetrics").stdout, pid)
    check_metrics(stat("--openmetrics").stdout, pid)
    check_watch(pid)


def ask(pid, request):
    """What the NIC says to these bytes."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        sock.settimeout(PATIENCE_S)
        sock.connect(f"\0nopin/ctl/{pid}")
        sock.send(request)
        said, fds, _, _ = socket.recv_fds(sock, 4096, 4)
        for fd in fds:
            os.close(fd)
        return said


def check_host(pids):
    """Both are there, each with three resources, within the budget."""
    host = json.loads(stat("--host", "--json").stdout)
    there = {p["pid"]: p for p in host["processes"]}
    assert host["format"] == 1 and set(pids) <= set(there), host
    assert host["port_4791"]["state"] in ("ours", "served"), host
    for what, budget in host["budget"].items():
        for pid in pids:
            one = there[pid][what]
            assert set(one) == {"minimum", "demand", "used", "share"}, one
            assert 0 < one["share"] <= budget, (what, one)
    assert there[pids[0]]["entries"]["used"] > 0
    text = stat("--host")
    assert text.returncode == 0, text
    for pid in pids:
        assert re.search(rf"^ *{pid} +ib_write_bw +100  entries ",
                         text.stdout, re.M), text.stdout
    assert stat("--host", pids[0]).returncode == 2
    assert stat("--host", "--openmetrics").returncode == 2


def check_garbage(pid):
    assert b"no command 'x'" in ask(pid, b"x")
    assert (b"there are: host move resume stat suspend trace" in
            ask(pid, b"x" * 200))
    assert ask(pid, b"stat") == b"ok"
    for bad in (b"\0", b"stat\0", b"\xff" * 64, b" ", b"stat\n"):
        assert ask(pid, bad) == b"error that is no request", bad
    assert ask(pid, b"stat a") == b"error stat takes 0 arguments"
    assert ask(pid, b"s" * 60000) == b"error the request is too long"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
        silent.settimeout(PATIENCE_S)
        silent.connect(f"\0nopin/ctl/{pid}")
        assert ask(pid, b"stat") == b"ok", "who asks nothing is in the way"
        assert silent.recv(99) == b"again"


def check_stranger(pid):
    if os.geteuid() != 0:
        return
    tool = shutil.copy(NOPIN, f"/tmp/test-of-stat-{os.getpid()}")
    os.chmod(tool, 0o755)
    as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    try:
        out = subprocess.run([tool, "stat", str(pid)], text=True, timeout=60,
                             capture_output=True, check=False, **as_nobody)
        assert out.returncode == 125 and out.stdout == "", out
        assert "not yours" in out.stderr, out
        out = subprocess.run([tool, "stat"], text=True, timeout=60,
                             capture_output=True, check=False, **as_nobody)
        assert out.returncode == 0 and str(pid) not in out.stdout, out
    finally:
        os.unlink(tool)
    said = subprocess.run(
        ["/usr/bin/python3", "-c", "import socket; s = socket.socket("
         "socket.AF_UNIX, socket.SOCK_SEQPACKET);"
         f"s.connect('\\0nopin/ctl/{pid}'); print(s.recv(99).decode())"],
        text=True, timeout=60, capture_output=True, check=False, **as_nobody)
    assert "error this process is another user's" in said.stdout, said


def check_usage():
    for bad in (["x"], ["--json", "--watch"], ["1", "2"], ["--watch=x"]):
        assert stat(*bad).returncode == 2, bad
    out = stat(os.getpid())
    assert out.returncode == 125 and "no NIC" in out.stderr, out


def run(buffer, programs):
    pair.on_loopback(NOPIN, BUILD, ["ib_write_bw", "-s", "262144", "-D", "600",
                                    f"--mmap={buffer}"], {}, programs)
    server = programs[0].pid
    pair.expect("it faults", lambda: told(server)[
        "nic"]["account"]["faults"] > 0)
    first = told(server)
    if page_out(server, buffer):
        before = first["nic"]["account"]["faults"]
        pair.expect("it faults all the time", lambda: page_out(
            server, buffer) and told(server)["nic"]["account"][
                "faults"] > before + 100)
    last = told(server)
    assert last["time_ns"] > first["time_ns"]
    assert (last["nic"]["counters"]["rx_bytes"] >
            first["nic"]["counters"]["rx_bytes"])
    check_sums(last)
    check_forms(server)
    check_host([server, programs[1].pid])
    check_garbage(server)
    check_stranger(server)
    check_usage()
    for program in programs:
        assert program.poll() is None, "a program ended"


def main():
    if not shutil.which("ib_write_bw"):
        print("SKIP: ib_write_bw is not installed")
        return 77
    programs = []
    with tempfile.TemporaryDirectory(dir=BUILD) as there:
        buffer = os.path.join(there, "buffer")
        with open(buffer, "wb") as file:
            file.truncate(1 << 24)
        try:
            run(buffer, programs)
        finally:
            for program in programs:
                program.kill()
                program.communicate()
    return 0


sys.exit(main())
