#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""forward_test.py BUILD VICTIM [users]: whoever can say where a packet came from is
anybody. An attacker on the host passes a packet on to a victim, as the holder of UDP
port 4791 would, and says that its peer had sent it: without the port, with the port but
not as a process of the victim's user, and from another host. With "users", the attacker
is another user; that takes root.
"""
import contextlib
import errno
import os
import random
import select
import socket
import struct
import subprocess
import sys

import attack
import wire
from attack import NOBODY, OTHER, ROCE_NAME, ROCE_PORT, Victim, as_user

BUILD, VICTIM = sys.argv[1:3]
WITH_USERS = sys.argv[3:] == ["users"]
EVIL, PACKETS = b"EVILEVIL", 3
LO = "127.0.0.1"
HERE, THERE, THERE_NS = "10.77.0.1", "10.77.0.2", f"nopin-attack-{os.getpid()}"


def lies(b, src, sport, dst, secret):
    """What the peer at @src is said to have sent to victim @b, as its next packet."""
    inner = attack.send_only(src, dst, sport, ROCE_PORT, b["qpn"], b["psn"], EVIL)
    return attack.forward(b["qpn"], src, sport, dst, secret, inner)


def pass_on(b, src, dst, from_ip=LO, from_port=0, to_ip=LO):
    """From any socket, with secrets that are guessed."""
    with attack.udp_socket(from_ip, from_port) as sock:
        for secret in (0, 1, random.getrandbits(64)):
            sock.sendto(lies(b, src, 60000, dst, secret), (to_ip, b["port"]))
    return True


def facts(b, psn):
    return {"qpn": b.qpn, "port": b.port, "psn": psn}


def nothing_came(a, b, drops):
    """Of what was said nothing was believed; the two go on as before."""
    b.until("drop_forward", drops)
    assert b.wait(1, 50) == [], "it was delivered"
    assert EVIL not in b.look(0, 4096), "it was placed"
    a.do("send", "after")
    assert b.wait(1) == ["receive:0:5"], "the connection broke"
    assert a.wait(1)[0].startswith("send:0:"), "the connection broke"


def without_the_port(nopin, victim, by):
    """The holder is one of the victims."""
    with Victim(nopin, victim) as a, Victim(nopin, victim) as b:
        attack.connect_pair(a, b, LO, LO)
        b.do("receive", 4)
        assert by(pass_on, facts(b, a.psn + 1), LO, LO) is True
        nothing_came(a, b, PACKETS)
        refused = by(take_port)
        assert refused == errno.EADDRINUSE, refused


def take_port():
    try:
        attack.udp_socket(LO, ROCE_PORT).close()
        return 0
    except OSError as failed:
        return failed.errno


def hold(told, ear):
    """Become the holder of the port, as a nopin would: and share a secret. Then lie to
    the victim that is named. Runs as the attacker."""
    name = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    name.bind(ROCE_NAME)
    name.listen()
    name.setblocking(False)
    port = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    port.bind(("::", ROCE_PORT))
    os.write(told, b"+")
    guests = []
    while True:
        ready, _, _ = select.select([name, ear], [], [])
        if name in ready:
            guests.append(name.accept()[0])
            with contextlib.suppress(OSError):  # it may have gone already
                guests[-1].send(struct.pack("=Q", 0x1234))
            continue
        words = os.read(ear, 256).split()
        if not words:
            return len(guests)
        b = dict(zip(("qpn", "port", "psn"), map(int, words)))
        for secret in (0x1234, 0, random.getrandbits(64)):
            port.sendto(lies(b, LO, 60000, LO, secret),
                        ("::ffff:" + LO, b["port"]))
        os.write(told, b"+")


def with_the_port(nopin, victim):
    """The holder is another user's process."""
    ear, mouth = os.pipe()
    ear_b, mouth_b = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ear)
        os.close(mouth_b)
        as_user_and_end(OTHER, hold, mouth, ear_b)
    os.close(mouth)
    os.close(ear_b)
    assert os.read(ear, 1) == b"+", "the attacker does not have the port"
    with Victim(nopin, victim) as a, Victim(nopin, victim) as b:
        attack.connect_pair(a, b, LO, LO)
        b.do("receive", 4)
        os.write(mouth_b, f"{b.qpn} {b.port} {a.psn + 1}".encode())
        assert os.read(ear, 1) == b"+"
        nothing_came(a, b, PACKETS)
        told = subprocess.run([nopin, "stat", "--host"], text=True, check=True,
                              capture_output=True, timeout=60).stdout
        assert f"NOT served, process {child} of user {OTHER}" in told, told
        assert "standard peers" not in b.stderr(), "who has none need not know"
        tell_who_needs_it(nopin, victim, child)
    os.close(mouth_b)
    os.waitpid(child, 0)
    os.close(ear)


def as_user_and_end(uid, act, *args):
    try:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        act(*args)
    finally:
        os._exit(0)


def tell_who_needs_it(nopin, victim, holder):
    """A victim that has a standard peer (nobody is at the port of that QPN)."""
    with Victim(nopin, victim) as c:
        c.connect(0x400 * 7 + 3, 1, LO, LO)
        c.do("receive", 1)
        said = f"held by process {holder} of user {OTHER}"
        for _ in range(600):
            if said in c.stderr():
                return
            c.do("wait", 100, 1)
        raise AssertionError(("nothing was said", c.stderr()))


def from_another_host(nopin, victim):
    """The peer is on another host: a user of this one, and one of that one."""
    def run(*words):
        subprocess.run(words, check=True)

    run("ip", "netns", "add", THERE_NS)
    try:
        run("ip", "link", "add", "va", "type", "veth", "peer", "name", "vb",
            "netns", THERE_NS)
        run("ip", "addr", "add", HERE + "/24", "dev", "va")
        run("ip", "link", "set", "va", "up")
        inside = ["ip", "netns", "exec", THERE_NS]
        run(*inside, "ip", "addr", "add", THERE + "/24", "dev", "vb")
        run(*inside, "ip", "link", "set", "vb", "up")
        run(*inside, "ip", "link", "set", "lo", "up")
        with Victim(nopin, victim) as b, Victim(nopin, victim,
                                                before=inside) as a:
            attack.connect_pair(a, b, THERE, HERE)
            b.do("receive", 4)
            known = facts(b, a.psn + 1)
            # a user of the victim's host says that it came from there
            assert as_user(NOBODY, pass_on, known, THERE, HERE) is True
            b.until("drop_forward", PACKETS)
            # and somebody over there
            in_network(THERE_NS, pass_on, known, THERE, HERE, THERE, 0, HERE)
            nothing_came(a, b, 2 * PACKETS)
    finally:
        subprocess.run(["ip", "netns", "del", THERE_NS], check=False)


def in_network(name, act, *args):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            wire.enter(f"/run/netns/{name}")
            act(*args)
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert status == 0, "no attack was made"


def main():
    attack.own_network()
    if not WITH_USERS:
        without_the_port(os.path.join(BUILD, "tools/nopin/nopin"), VICTIM,
                         lambda act, *args: act(*args))
        return
    if os.geteuid() != 0:
        attack.skip("not root")
    place, nopin, victim = attack.for_everybody(BUILD, VICTIM)
    with place:
        without_the_port(nopin, victim,
                         lambda act, *args: as_user(NOBODY, act, *args))
        with_the_port(nopin, victim)
        from_another_host(nopin, victim)


main()
