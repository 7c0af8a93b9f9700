# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""programs.py: runs pairs of programs, on loopback or between two network
namespaces, and says what this host is. For bench/run and experiments/run.
"""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

PATIENCE_S = 60  # for one program
LISTEN = "0A"


class Skipped(Exception):
    """This host cannot measure that, for a reason that is printed."""


class Failed(Exception):
    """A program that should have measured something did not."""


# --- running programs --------------------------------------------------------


def kill(process):
    """Ends a program of ours and its children, which are its group."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def spawn(command, env, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT,
          cwd=None):
    return subprocess.Popen(
        command, env={**os.environ, **env}, text=True, start_new_session=True,
        stdin=stdin, stdout=subprocess.PIPE, stderr=stderr, cwd=cwd)


def skip_reason(out):
    """What a program that exits with 77 says. Others of its processes may say more
    behind that."""
    said = [line.removeprefix("SKIP: ") for line in out.split("\n")
            if line.startswith("SKIP: ")]
    return said[0] if said else out.strip().split("\n")[-1]


def finish(process, what, patience=PATIENCE_S):
    try:
        out, err = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired as late:
        kill(process)
        raise Failed(f"{what}: not done after {patience} s") from late
    if process.returncode == 77:
        raise Skipped(skip_reason(out))
    if process.returncode:
        raise Failed(f"{what}: {telling((err or '') + out)} "
                     f"(status {process.returncode})")
    return out


def telling(out):
    """The lines of a failed program that say why; without any, the last."""
    lines = [line.strip() for line in out.splitlines() if line.strip()]
    why = [line for line in lines if re.search(
        r"error|fail|could|cannot|unable|bench:", line, re.IGNORECASE)]
    return "; ".join(why[:3] or lines[-1:]) or "no output"


def values(out):
    """The lines "NAME NUMBER" of our own programs."""
    pairs = (line.rsplit(" ", 1) for line in out.splitlines() if " " in line)
    return {name: float(value) for name, value in pairs
            if re.fullmatch(r"-?[\d.]+", value)}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listens(process, port):
    """Does anybody listen on this TCP port, in the namespace of @process?"""
    for family in ("tcp", "tcp6"):
        try:
            with open(f"/proc/{process.pid}/net/{family}",
                      encoding="ascii") as table:
                lines = [line.split() for line in table][1:]
        except OSError:
            return False
        if any(f[3] == LISTEN and int(f[1].split(":")[1], 16) == port
               for f in lines):
            return True
    return False


class Place:
    """Where a pair of programs runs: on loopback or in two namespaces.

    @server and @client are what is put before their commands, @address is the
    server's, @raw the options of bench-raw for the same path.
    """

    def __init__(self, server=(), client=(), address="127.0.0.1", raw=()):
        self.server, self.client = list(server), list(client)
        self.address, self.raw = address, list(raw)

    def pair(self, command, port_option, env, client_options=(),
             cores=(None, None), patience=PATIENCE_S, meanwhile=None):
        """Runs a server and a client. @meanwhile: called with both processes
        when they run. Return: the client's output.
        """
        port = str(free_port())
        command = command + [port_option, port]
        pin = [["taskset", "-c", str(c)] if c is not None else []
               for c in cores]
        server = spawn(self.server + pin[0] + command, env)
        try:
            until = time.monotonic() + PATIENCE_S
            while not listens(server, int(port)):
                if server.poll() is not None or time.monotonic() > until:
                    raise Failed(f"{command[0]}: the server does not listen")
                time.sleep(0.002)
            # what it complains of may come in the middle of a line of results
            client = spawn(self.client + pin[1] + command +
                           list(client_options) + [self.address], env,
                           stderr=subprocess.PIPE)
            try:
                if meanwhile:
                    meanwhile(server, client)
                return finish(client, " ".join(command), patience)
            finally:
                kill(client)
        finally:
            kill(server)


LOOPBACK = Place()


class Veth:
    """Two namespaces with a veth between them; @mtu: its IP MTU:

        nopin-bench-PID-a  10.98.0.1 --- veth, IP MTU 1500 --- 10.98.0.2  ...-b
    """

    def __init__(self, mtu=1500):
        self.mtu = mtu

    def __enter__(self):
        if os.geteuid():
            raise Skipped("network namespaces need root")
        if not shutil.which("ip"):
            raise Skipped("no ip(8)")
        self.names = [f"nopin-bench-{os.getpid()}-{end}" for end in "ab"]
        a, b = self.names
        try:
            self.setup(f"netns add {a}", f"netns add {b}",
                       f"-n {a} link add v0 mtu {self.mtu} type veth "
                       f"peer name v0 mtu {self.mtu} netns {b}")
            for i, name in enumerate(self.names):
                self.setup(f"-n {name} address add 10.98.0.{i + 1}/24 dev v0",
                           f"-n {name} link set v0 up",
                           f"-n {name} link set lo up")
        except Failed:
            self.__exit__()
            raise
        enter = [["ip", "netns", "exec", name] for name in self.names]
        return Place(enter[0], enter[1], "10.98.0.1",
                     ["-n", f"{b},{a}", "-a", "10.98.0.2,10.98.0.1"])

    @staticmethod
    def setup(*commands):
        for command in commands:
            done = subprocess.run(["ip", *command.split()], text=True,
                                  capture_output=True, check=False)
            if done.returncode:
                raise Failed(f"ip {command}: {done.stderr.strip()}")

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], check=False,
                           stderr=subprocess.DEVNULL)


# --- this host ---------------------------------------------------------------


def output_of(*command):
    """What @command says; "" if it fails, or this host has no such program."""
    if not shutil.which(command[0]):
        return ""
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          cwd=os.path.dirname(os.path.abspath(__file__)))
    return done.stdout.strip() if done.returncode == 0 else ""


def build_options(build):
    path = os.path.join(build, "meson-info", "intro-buildoptions.json")
    with open(path, encoding="utf-8") as options:
        return {o["name"]: o["value"] for o in json.load(options)}


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        found = re.search(r"^model name\s*: (.*)", info.read(), re.MULTILINE)
    return found[1] if found else os.uname().machine
