# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""attack.py: what an attacker's tests need: a program to attack (victim.c), packets
made by hand and sent from plain sockets, and places to do it from: a network of our
own, and other users.

An attack has to end in a counted drop, and what it was aimed at has to work as before.
"""
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import zlib

NOBODY, OTHER = 65534, 1001
SLOT = 256  # of victim.c
ROCE_PORT = 4791
ROCE_NAME = "\0nopin/nopin-roce-4791"
SEND_ONLY, WRITE_ONLY, ACKNOWLEDGE = 0x04, 0x0a, 0x11
HELLO, HELLO_REPLY, FORWARD, X_ACK, OPEN, X_SEND_ONLY = 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xe4
VERSION = 4
# AETH syndromes
ACK, RNR_NAK, PSN_NAK, ACCESS_NAK = 0x1f, 0x21, 0x60, 0x62
PATIENCE_S = 60


# --- where ---------------------------------------------------------------------


def own_network(mounts=False):
    """Go on in a network namespace of our own; without root, in a user namespace, too.
    @mounts: and where "ip netns" has names of its own."""
    if os.environ.get("ATTACK_NETWORK"):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        if mounts:
            subprocess.run(["mount", "-t", "tmpfs", "netns", "/run"], check=True)
        return
    how = ["unshare", "--net"] + ["--mount"] * mounts
    if os.geteuid() != 0:
        how += ["--user", "--map-root-user"]
        if subprocess.run(how + ["true"], check=False,
                          capture_output=True).returncode:
            skip("no user namespace here")
    env = dict(os.environ, ATTACK_NETWORK="1")
    os.execvpe(how[0], how + [sys.executable] + sys.argv, env)


def skip(why):
    print("SKIP:", why)
    sys.exit(77)


def for_everybody(build, victim):
    """Copies of what a victim needs that every user can read: (directory, nopin,
    victim). Whoever asks becomes other users, then."""
    with open("/proc/self/uid_map", encoding="ascii") as users:
        if sum(int(line.split()[2]) for line in users) == 1:
            skip("becoming another user needs root")
    place = tempfile.TemporaryDirectory(prefix="nopin-attack-")
    os.chmod(place.name, 0o755)
    shutil.copytree(os.path.join(build, "lib"), os.path.join(place.name, "lib"))
    os.makedirs(os.path.join(place.name, "tools/nopin"))
    nopin = shutil.copy(os.path.join(build, "tools/nopin/nopin"),
                        os.path.join(place.name, "tools/nopin"))
    return place, nopin, shutil.copy(victim, place.name)


def as_user(uid, act, *args):
    """What act(*args) returns in a child that is user @uid and nothing else."""
    ear, mouth = os.pipe()
    child = os.fork()
    if child == 0:
        said = None
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            said = act(*args)
        except OSError as failed:
            said = {"failed": str(failed)}
        finally:
            os.write(mouth, json.dumps(said).encode())
            os._exit(0)
    os.close(mouth)
    with os.fdopen(ear) as told:
        said = told.read()
    os.waitpid(child, 0)
    return json.loads(said)


# --- whom ----------------------------------------------------------------------


class Victim:
    """A running victim.c. @before: what is put in front of its command."""

    def __init__(self, nopin, victim, before=(), **how):
        self.nopin, self.asked = nopin, ()  # put in front of who asks it
        self.log = tempfile.TemporaryFile("w+")
        self.run = subprocess.Popen(
            [*before, nopin, "run", "--", victim], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self.log, text=True, bufsize=1, **how)
        words = self.run.stdout.readline().split()
        assert words[:1] == ["pid"], (words, self.stderr())
        told = dict(zip(words[::2], map(int, words[1::2])))
        self.pid, self.qpn, self.psn = told["pid"], told["qpn"], told["psn"]
        self.rkey, self.address = told["rkey"], told["address"]
        self.port = 49152 + (self.qpn >> 10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.run.kill()
        self.run.wait()
        self.run.stdin.close()
        self.run.stdout.close()
        self.log.close()

    def stderr(self):
        self.log.seek(0)
        return self.log.read()

    def do(self, *words):
        """Return: what it answers, without the first word."""
        self.run.stdin.write(" ".join(map(str, words)) + "\n")
        said = self.run.stdout.readline().split()
        assert said, ("it ended", self.stderr())
        assert said[0] != "error" or said[1] == "0", (words, said)
        return said[1:]

    def connect(self, qpn, psn, peer, self_ip):
        self.do("connect", qpn, psn, peer, self_ip)

    def look(self, at, length):
        return bytes.fromhex(self.do("look", at, length)[0])

    def wait(self, count, ms=PATIENCE_S * 1000):
        return self.do("wait", ms, count)

    def counters(self):
        told = subprocess.run([*self.asked, self.nopin, "stat", str(self.pid),
                               "--json"],
                              text=True, capture_output=True, check=True,
                              timeout=PATIENCE_S)
        return json.loads(told.stdout)["nic"]["counters"]

    def stop(self):
        """No thread of it runs any more."""
        os.kill(self.pid, signal.SIGSTOP)
        states = {"R"}
        while states != {"T"}:
            states = set()
            for task in os.listdir(f"/proc/{self.pid}/task"):
                with open(f"/proc/{self.pid}/task/{task}/stat",
                          encoding="ascii") as stat:
                    states.add(stat.read().rpartition(")")[2].split()[0])

    def go_on(self):
        os.kill(self.pid, signal.SIGCONT)

    def until(self, counter, at_least):
        """Until it counted that many."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            now = self.counters()[counter]
            if now >= at_least:
                return now
        raise AssertionError(f"{counter} is {now}, not {at_least}")


def connect_pair(a, b, ip_a, ip_b):
    """Two victims; and a word each way arrives."""
    a.connect(b.qpn, b.psn, ip_b, ip_a)
    b.connect(a.qpn, a.psn, ip_a, ip_b)
    exchange(a, b, "first")
    exchange(b, a, "other")


def exchange(a, b, word):
    b.do("receive", 1)
    a.do("send", word)
    assert a.wait(1)[0].startswith("send:0:"), "not sent"
    assert b.wait(1) == [f"receive:0:{len(word)}"], "not received"


# --- packets ---------------------------------------------------------------------


def bth(opcode, qpn, psn, ack=False):
    return struct.pack(">BBHII", opcode, 0x40, 0xffff, qpn,
                       ack << 31 | psn & 0xffffff)


def with_icrc(src, dst, sport, dport, packet):
    """A RoCEv2 packet over IPv4, identification 0."""
    length = len(packet) + 4 + 8
    pseudo = struct.pack(">BBHHHBBH4s4s", 0x45, 0xff, length + 20, 0, 0x4000,
                         0xff, 17, 0xffff, socket.inet_aton(src),
                         socket.inet_aton(dst))
    pseudo += struct.pack(">HHHH", sport, dport, length, 0xffff)
    masked = packet[:4] + b"\xff" + packet[5:]
    crc = zlib.crc32(b"\xff" * 8 + pseudo + masked)
    return packet + struct.pack("<I", crc)


def send_only(src, dst, sport, dport, qpn, psn, payload):
    assert len(payload) % 4 == 0
    return with_icrc(src, dst, sport, dport,
                     bth(SEND_ONLY, qpn, psn, ack=True) + payload)


def write_only(src, dst, sport, dport, qpn, psn, address, rkey, payload):
    assert len(payload) % 4 == 0
    headers = bth(WRITE_ONLY, qpn, psn, ack=True)
    headers += struct.pack(">QII", address, rkey, len(payload))
    return with_icrc(src, dst, sport, dport, headers + payload)


def acknowledge(src, dst, sport, dport, qpn, psn, syndrome):
    return with_icrc(src, dst, sport, dport, bth(ACKNOWLEDGE, qpn, psn) +
                     struct.pack(">I", syndrome << 24 | 1))


def sealed(headers, payload=b""):
    """An extension packet."""
    return headers + payload + struct.pack("<I", zlib.crc32(headers))


def hello(qpn, opcode=HELLO, nonce=0, mine=0x11223344, credit=0, slots=0, serial=0):
    return sealed(bth(opcode, qpn, 0) +
                  struct.pack(">B3xIIIIIII", VERSION, 7, nonce, mine, credit, slots,
                              serial, 0))


def x_ack(qpn, psn, epoch, syndrome):
    return sealed(bth(X_ACK, qpn, psn) +
                  struct.pack(">IIIIHH", epoch, syndrome << 24 | 1, psn << 8,
                              1 << 20, 0, 0))


def x_send(qpn, psn, epoch, payload):
    return sealed(bth(X_SEND_ONLY, qpn, psn, ack=True) +
                  struct.pack(">IQIIII", epoch, 0, 0, len(payload), 0, 0), payload)


def question(qpn, mine, flags, epoch, own_qpn):
    return sealed(bth(OPEN, qpn, 0) +
                  struct.pack(">III", epoch, mine, flags << 24 | own_qpn))


def forward(qpn, src, sport, dst, secret, packet):
    def mapped(ip):
        return b"\0" * 10 + b"\xff\xff" + socket.inet_aton(ip)

    headers = bth(FORWARD, qpn, 0) + mapped(src) + struct.pack(">H", sport)
    headers += mapped(dst) + struct.pack(">Q", secret)
    return sealed(headers, packet)


def udp_socket(ip, port=0):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((ip, port))
    return sock
