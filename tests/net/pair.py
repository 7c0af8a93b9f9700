# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""pair.py: runs a server and a client program on nopin and watches them.

Nothing sleeps and hopes: the client is started when the server listens. Of
both, VmLck is read all the time: no memory may be locked, but where NOPIN_REG
says so, and then some must be. Their data can be verified (tests/verify), and their NICs'
counters be held to what is right where the network loses nothing.
"""
import itertools
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time

TCP_LISTEN = "0A"
NOBODY = 65534
NOPIN = "tools/nopin/nopin"
VERIFIER = "tests/verify/verify.so"
STOCK = "tests/verify/stock.so"
# What does not count up where nothing is lost. A question may still be under
# way when its QP has everything it wants and is destroyed, and an OPEN come before the
# QP is ready: it is asked again. The host of a program that has ended says so to what
# comes last. gaps_rx says only
# that a thread lost its CPU with a burst in hand and another took the next one.
LOSS = re.compile(r"kernel_drops|timeouts|naks_.x|gso_off|"
                  r"drop_(?!no_slot|open|qpn|unreachable).*")
# Nor does this, but for a fault that was answered by "send that again later",
# a SEND that found no receive posted, or a thread that had no CPU for so long (200 ms)
# that the burst in its hand was taken for lost.
AGAIN = re.compile(r"retransmits|dups_rx|replays|read_restarts|drop_no_slot")
# Regions are locked; else nothing is, or only while it moves.
LOCKS = os.environ.get("NOPIN_REG") in ("pin", "pin-cache")
MAY_LOCK = os.environ.get("NOPIN_REG", "").startswith("pin")
# Where packets are overtaken and none is lost, no place may be missing for any.
ORDER = re.compile(r"kernel_drops|gso_off|paths_missing|drop_no_slot|"
                   r"beyond_credit|drop_(?!open|psn|qpn|unreachable).*")
PARDON = re.compile(r"fault_resume|fault_replay|rnr_rx|rnr_tx|token_stale")


class Place:
    """Where pairs run and as whom.

    build      directory with nopin and lib/
    in_netns   in the two namespaces of topology.sh, else on loopback
    as_user    as an ordinary user, without the right to lock memory
    verify     with all that they send and receive verified
    is_calm    where no packet is lost: no NIC may count one
    is_ordered where none is lost, but many are overtaken
    is_stock   where sockets get the receive buffer that Linux gives by default
    evict_ms   take the verifier's memory away so often, or 0
    """

    def __init__(self, build, in_netns=False, as_user=False, verify=False,
                 is_calm=False, is_stock=False, evict_ms=0, is_ordered=False):
        self.verify, self.is_calm = verify, is_calm
        self.is_ordered = is_ordered
        self.env, self.patience = sanitizer_environment(build)
        self.evict_ms = evict_ms
        self.copy = None
        self.popen = {}
        self.is_loopback = not in_netns
        self.address = os.environ["ADDR_A"] if in_netns else "127.0.0.1"
        if as_user:
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))  # inherited
        if as_user and os.geteuid() == 0:
            self.popen.update(user=NOBODY, group=NOBODY, extra_groups=[])
            # that user may not see this directory
            self.copy = tempfile.TemporaryDirectory()
            os.chmod(self.copy.name, 0o755)
            for name in (NOPIN, "lib", VERIFIER, STOCK):
                copy_tree(build, name, self.copy.name)
            build = self.copy.name
        if is_stock:
            self.env = preload(self.env, os.path.join(build, STOCK))
        self.verifier = os.path.join(build, VERIFIER)
        # what is put in front of a program
        nopin = [os.path.join(build, NOPIN), "run", "--"]
        self.server = (enter("NS_A") if in_netns else []) + nopin
        self.client = (enter("NS_B") if in_netns else []) + nopin

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.copy:
            self.copy.cleanup()


def copy_tree(source, name, target):
    """Copies a file or directory, with what links in it point to."""
    source, target = os.path.join(source, name), os.path.join(target, name)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.isdir(source):
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)


def preload(env, library):
    """An environment that also loads this."""
    before = [env["LD_PRELOAD"]] if "LD_PRELOAD" in env else []
    return {**env, "LD_PRELOAD": ":".join([*before, library])}


def enter(namespace):
    return ["ip", "netns", "exec", os.environ[namespace]]


def sanitizer_environment(build):
    """What an ordinary program needs to load a library built so."""
    path = os.path.join(build, "meson-info", "intro-buildoptions.json")
    with open(path, encoding="utf-8") as options:
        value = {o["name"]: o["value"] for o in json.load(options)}
    for kind, library in (("address", "libasan.so"), ("thread", "libtsan.so")):
        if kind in value["b_sanitize"]:
            found = subprocess.run(
                ["cc", f"-print-file-name={library}"], check=True,
                capture_output=True, text=True).stdout.strip()
            return {"LD_PRELOAD": os.path.realpath(found),
                    # the programs leak, and that is not our business
                    "ASAN_OPTIONS": "detect_leaks=0",
                    "TSAN_OPTIONS": "halt_on_error=1"}, 5
    return {}, 1


class Verifier:
    """What the verifiers in a pair of programs share, and what they found.

    takes_turns   the programs answer each other WRITE by WRITE
    """

    def __init__(self, place, takes_turns=False):
        # It is written to all the time; disks need not know.
        where = "/dev/shm" if free_bytes("/dev/shm") > 1 << 30 else None
        self.shared = tempfile.TemporaryDirectory(dir=where)
        os.chmod(self.shared.name, 0o777)
        self.env = {**preload(place.env, place.verifier),
                    "VERIFY_DIR": self.shared.name}
        self.evicts = place.evict_ms
        if self.evicts:
            self.env["VERIFY_EVICT"] = str(place.evict_ms)
        if takes_turns:
            self.env["VERIFY_TURNS"] = "1"

    def env_of(self, role):
        return {**self.env, "VERIFY_ROLE": role}

    def verdict(self):
        """Returns (problem or None, the reports)."""
        said, checked, taken = "", 0, 0
        what = "locked" if LOCKS else "evicted"
        for role in ("server", "client"):
            try:
                with open(f"{self.shared.name}/{role}.report",
                          encoding="ascii") as report:
                    text = report.read()
            except FileNotFoundError:
                return f"the verifier says nothing of the {role}", said
            said += f"  verifier, {role}:\n" + "".join(
                f"  | {line}\n" for line in text.splitlines())
            checked += sum(int(n) for n in re.findall(r"checked (\d+)", text))
            taken += sum(int(n) for n in re.findall(rf"{what} (\d+)", text))
        wrong = re.search(r"WRONG: (.*)", said)
        if wrong:
            return f"wrong data: {wrong[1]}", said
        if self.evicts and not taken:
            return f"no memory was {what}", said
        return None if checked else "the verifier checked nothing", said

    def close(self):
        self.shared.cleanup()


def free_bytes(directory):
    try:
        there = os.statvfs(directory)
    except FileNotFoundError:
        return 0
    return there.f_bavail * there.f_frsize


def free_port(candidates=itertools.count(10000 + os.getpid() % 20000)):
    """A TCP port of ours alone, below those that the kernel hands out."""
    for port in candidates:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", port))
                return port
            except OSError:
                pass


def listens(port, pid="self"):
    """Does anybody listen on this TCP port, in the namespace of this process?"""
    suffix = f":{port:04X}"
    for table in ("tcp", "tcp6"):
        try:
            with open(f"/proc/{pid}/net/{table}", encoding="utf-8") as lines:
                rows = [line.split() for line in lines]
        except OSError:
            continue
        if any(r[3] == TCP_LISTEN and r[1].endswith(suffix) for r in rows):
            return True
    return False


def expect(what, done):
    """Waits until done(), and says for what when that takes longer than usual: the
    test's own timeout ends it."""
    tell = time.monotonic() + 30
    while not done():
        if time.monotonic() > tell:
            print(f"waiting: {what}", flush=True)
            tell += 30
        time.sleep(0.05)


def on_loopback(nopin, build, argv, env, running):
    """Starts a program as server and, when that listens, as client, and appends
    both to those running. They print nothing; their errors can be read."""
    port = free_port()
    env = {**os.environ, **sanitizer_environment(build)[0],
           "NOPIN_ADDR": "lo", **env}
    for peer in ([], ["127.0.0.1"]):
        running.append(subprocess.Popen(
            [nopin, "run", "--", *argv, "-p", str(port), *peer], env=env,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
        if not peer:
            expect(f"{argv[0]} listens", lambda: listens(port))


class Program:
    """One running program and all it starts: a process group, as a shell makes
    it. Sessions of their own would be scheduled against each other."""

    def __init__(self, place, argv, env):
        self.argv = argv
        self.locked_kb = 0
        # A file, not a pipe: a program may print more than a pipe holds.
        self.out = tempfile.TemporaryFile()
        self.proc = subprocess.Popen(
            argv, env={**os.environ, **place.env, **env},
            stdin=subprocess.DEVNULL, stdout=self.out,
            stderr=subprocess.STDOUT, process_group=0, **place.popen)

    def pids(self):
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and os.getpgid(int(name)) == self.proc.pid:
                    yield int(name)
            except ProcessLookupError:
                pass

    def watch(self):
        """Reads VmLck; returns whether the program still runs."""
        for pid in self.pids():
            try:
                with open(f"/proc/{pid}/status", encoding="utf-8") as status:
                    locked = re.search(r"VmLck:\s+(\d+)", status.read())
                if locked:
                    self.locked_kb = max(self.locked_kb, int(locked[1]))
            except (FileNotFoundError, ProcessLookupError):
                pass
        return self.proc.poll() is None

    def stop(self):
        """Ends what is left of the group."""
        if self.proc.poll() is None:
            try:
                os.killpg(self.proc.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.proc.wait()

    def output(self):
        self.out.seek(0)
        return self.out.read().decode("utf-8", "replace")

    def counters(self):
        """What its NIC counted, if it was run with NOPIN_LOG=info."""
        return {name: int(value) for name, value in re.findall(
            r"nopin: info: (\w+): (\d+) ", self.output())}

    def story(self, title):
        """What to print of it when something went wrong."""
        status = self.proc.returncode
        return (f"  {title}: {' '.join(self.argv)}\n"
                f"  exit status {status}, VmLck at most {self.locked_kb} kB\n"
                + "".join(f"  | {line}\n"
                          for line in self.output().splitlines()[-160:]))


def wait_for(programs, done, seconds):
    """Watches programs until done(); False when the time is over."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        running = [program.watch() for program in programs]
        if done(running):
            return True
        time.sleep(0.005)
    return False


def problem_of(program, title):
    status = program.proc.returncode
    if status != 0:
        return f"{title} ended with status {status}"
    if program.locked_kb and not MAY_LOCK:
        return f"{title} locked {program.locked_kb} kB of memory"
    if LOCKS and not program.locked_kb:
        return f"{title} locked no memory"
    return None


def run_one(place, argv, env, seconds):
    """Runs one program to its end; returns (problem or None, program)."""
    program = Program(place, place.server + argv, env)
    try:
        ended = wait_for([program], lambda running: not running[0],
                         seconds * place.patience)
    finally:
        program.stop()
    problem = None if ended else f"did not end within {seconds} s"
    return problem or problem_of(program, argv[0]), program


def run_pair(place, program, args, env, seconds, verify):
    """Runs a program as server and as client, with its data verified or not.

    Returns (problem or None, server, client, story); client is None when the
    server ended before it listened.
    """
    if not verify:
        problem, server, client = watch_pair(
            place, [program, *args], {}, {}, env, seconds)
        return problem, server, client, tell(server, client)
    verifier = Verifier(place, takes_turns=program == "ib_write_lat")
    try:
        problem, server, client = watch_pair(
            place, [program, *args], verifier.env_of("server"),
            verifier.env_of("client"), env, seconds)
        wrong, said = verifier.verdict()
        return problem or wrong, server, client, tell(server, client) + said
    finally:
        verifier.close()


def tell(server, client):
    return server.story("server") + (client.story("client") if client else "")


def watch_pair(place, argv, server_env, client_env, env, seconds):
    """As run_pair(), with an environment for each."""
    port = free_port()
    env = {"NOPIN_LOG": os.environ.get("NOPIN_LOG", "info"), **env}
    argv = [argv[0], "-p", str(port), *argv[1:]]
    server = Program(place, [*place.server, *argv], {**env, **server_env})
    client = None
    try:
        ready = wait_for([server],
                         lambda r: not r[0] or listens(port, server.proc.pid),
                         20 * place.patience)
        if not ready or not server.watch():
            server.stop()
            return "the server does not listen", server, None
        client = Program(place, [*place.client, *argv, place.address],
                         {**env, **client_env})
        ended = wait_for([server, client], lambda r: not any(r),
                         seconds * place.patience)
    finally:
        server.stop()
        if client:
            client.stop()
    problem = None if ended else f"did not end within {seconds} s"
    counts = place.is_calm or place.is_ordered
    # A program that just ends, without closing its device, prints none.
    if counts and not problem and not client.counters():
        problem = "the client printed no counters"
    for title, one in (("client", client), ("server", server)):
        problem = problem or problem_of(one, title)
    if counts:
        problem = problem or unrest_of(client, server, place.is_ordered)
    return problem, server, client


def unrest_of(client, server, is_ordered):
    """What their NICs counted that they must not where nothing is lost."""
    counted = [(title, name, n)
               for title, one in (("client", client), ("server", server))
               for name, n in one.counters().items()]
    pardon = any(PARDON.fullmatch(name) for _, name, _ in counted)
    unrest = [f"{title} counted {name} {n}" for title, name, n in counted
              if (ORDER if is_ordered else LOSS).fullmatch(name)
              or (AGAIN.fullmatch(name) and not is_ordered
                  and not pardon)]
    return ", ".join(unrest) or None
