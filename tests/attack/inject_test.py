#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""inject_test.py BUILD VICTIM [users]: whoever knows all numbers of a connection, and
not its secret, is nobody. An attacker on the host of both ends sends what its peer would
send: data, far ahead of what is due or not; ACKs of what nobody has; questions. With
"users", the attacker is another user; that takes root.
"""
import os
import random
import signal
import struct
import sys
import zlib

import attack
from attack import OTHER, Victim, as_user

BUILD, VICTIM = sys.argv[1:3]
WITH_USERS = sys.argv[3:] == ["users"]
LO, EVIL = "127.0.0.1", b"EVILEVIL"
WRITE_ONLY, HELLO, X_ACK, OPEN, X_SEND_ONLY = 0x0a, 0xc0, 0xc3, 0xc4, 0xe4
VERSION = 4
AHEAD = (1, 3, 100, 2000, 2097151)


def sealed(headers, payload=b""):
    return headers + payload + struct.pack("<I", zlib.crc32(headers))


def hello(qpn):
    return sealed(attack.bth(HELLO, qpn, 0) +
                  struct.pack(">B3xIIIIIII", VERSION, 7, 0, 0x11223344, 0, 0, 0, 0))


def x_ack(qpn, psn, epoch):
    return sealed(attack.bth(X_ACK, qpn, psn) +
                  struct.pack(">IIIIHH", epoch, 0x1f << 24 | 1, psn << 8,
                              1 << 20, 0, 0))


def x_send(qpn, psn, epoch):
    return sealed(attack.bth(X_SEND_ONLY, qpn, psn, ack=True) +
                  struct.pack(">IQIIII", epoch, 0, 0, len(EVIL), 0, 0), EVIL)


def question(qpn, mine, flags, epoch, own_qpn):
    return sealed(attack.bth(OPEN, qpn, 0) +
                  struct.pack(">III", epoch, mine, flags << 24 | own_qpn))


def nonce_of(sock, b):
    """What the victim's NIC gives to whoever asks, for HELLO alone."""
    sock.settimeout(attack.PATIENCE_S)
    sock.sendto(hello(b["qpn"]), (LO, b["port"]))
    return struct.unpack(">I", sock.recv(2048)[24:28])[0]


def guesses(sock, b):
    return 0, 1, nonce_of(sock, b), random.getrandbits(32)


# --- acts: each as the attacker; returns how many packets have to be dropped --------


def plain(b):
    with attack.udp_socket(LO) as sock:
        sport = sock.getsockname()[1]
        send = attack.send_only(LO, LO, sport, b["port"], b["qpn"], b["psn"], EVIL)
        write = attack.with_icrc(
            LO, LO, sport, b["port"], attack.bth(WRITE_ONLY, b["qpn"], b["psn"], True) +
            struct.pack(">QII", b["address"], b["rkey"], len(EVIL)) + EVIL)
        for packet in (send, write):
            sock.sendto(packet, (LO, b["port"]))
    return 2


def extended(b):
    with attack.udp_socket(LO) as sock:
        epochs = guesses(sock, b)
        for ahead in AHEAD:
            for epoch in epochs:
                psn = b["psn"] - 1 + ahead & 0xffffff
                sock.sendto(x_send(b["qpn"], psn, epoch), (LO, b["port"]))
    return len(AHEAD) * len(epochs)


def acks(a):
    """@a has sent what nobody received."""
    with attack.udp_socket(LO) as sock:
        epochs = guesses(sock, a)
        for epoch in epochs:
            sock.sendto(x_ack(a["qpn"], a["psn"], epoch), (LO, a["port"]))
    return len(epochs)


def questions(b):
    """From a port that is not the peer's."""
    with attack.udp_socket(LO) as sock:
        for epoch in guesses(sock, b):
            sock.sendto(question(b["qpn"], 0xbad, 3, epoch, b["peer"]),
                        (LO, b["port"]))
    return 4


# --- and what comes of it --------------------------------------------------------------


def facts(v, psn, peer):
    return {"qpn": v.qpn, "port": v.port, "psn": psn, "rkey": v.rkey,
            "address": v.address, "peer": peer.qpn}


def dropped(v, by, act, told, counter):
    before = v.counters()[counter]
    packets = by(act, told)
    assert isinstance(packets, int), packets
    v.until(counter, before + packets)


def injects(nopin, victim, by):
    with Victim(nopin, victim) as a, Victim(nopin, victim) as b:
        attack.connect_pair(a, b, LO, LO)
        b.do("receive", 8)
        told = facts(b, a.psn + 1, a)
        dropped(b, by, plain, told, "drop_epoch")
        dropped(b, by, extended, told, "drop_epoch")
        dropped(b, by, questions, told, "drop_peer")
        assert b.wait(1, 50) == [], "it was delivered"
        assert EVIL not in b.look(0, 4096), "it was placed"
        for word in ("one", "three", "five", "eight"):
            a.do("send", word)
            assert a.wait(1)[0].startswith("send:0:"), "the connection broke"
            assert b.wait(1) == [f"receive:0:{len(word)}"], "something else came"
        assert EVIL not in b.look(0, 8 * 4096), "what was planted was placed"


def stop(pid):
    """No thread of it runs any more."""
    os.kill(pid, signal.SIGSTOP)
    states = {"R"}
    while states != {"T"}:
        states = set()
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/stat", encoding="ascii") as stat:
                states.add(stat.read().rpartition(")")[2].split()[0])


def lies_about_acks(nopin, victim, by):
    with Victim(nopin, victim) as a, Victim(nopin, victim) as b:
        attack.connect_pair(a, b, LO, LO)
        b.do("receive", 1)
        stop(b.pid)
        try:
            a.do("send", "unheard")
            dropped(a, by, acks, facts(a, a.psn + 1, b), "drop_epoch")
            assert a.wait(1, 50) == [], "completed, and nobody received it"
        finally:
            os.kill(b.pid, signal.SIGCONT)
        assert a.wait(1)[0].startswith("send:0:"), "the connection broke"
        assert b.wait(1) == ["receive:0:7"]


def main():
    attack.own_network()
    if WITH_USERS and os.geteuid() != 0:
        attack.skip("other users are root's to be")
    place, nopin, victim = attack.for_everybody(BUILD, VICTIM)
    with place:
        def by(act, told):
            return as_user(OTHER, act, told) if WITH_USERS else act(told)

        injects(nopin, victim, by)
        lies_about_acks(nopin, victim, by)


main()
