#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""inject_test.py BUILD VICTIM [users]: whoever knows all numbers of a connection, and
not its secret, is nobody. An attacker on the host of both ends sends what its peer would
send: data, far ahead of what is due or not; ACKs of what nobody has; questions. With
"users", the attacker is another user; that takes root.
"""
import os
import random
import struct
import sys

import attack
from attack import OTHER, Victim, as_user

BUILD, VICTIM = sys.argv[1:3]
WITH_USERS = sys.argv[3:] == ["users"]
LO, EVIL = "127.0.0.1", b"EVILEVIL"
AHEAD = (1, 3, 100, 2000, 2097151)


def nonce_of(sock, b):
    """What the victim's NIC gives to whoever asks, for HELLO alone."""
    sock.settimeout(attack.PATIENCE_S)
    sock.sendto(attack.hello(b["qpn"]), (LO, b["port"]))
    return struct.unpack(">I", sock.recv(2048)[24:28])[0]


def guesses(sock, b):
    return 0, 1, nonce_of(sock, b), random.getrandbits(32)


# --- acts: each as the attacker; returns how many packets have to be dropped --------


def plain(b):
    with attack.udp_socket(LO) as sock:
        sport = sock.getsockname()[1]
        path = LO, LO, sport, b["port"]
        send = attack.send_only(*path, b["qpn"], b["psn"], EVIL)
        write = attack.write_only(*path, b["qpn"], b["psn"], b["address"], b["rkey"],
                                  EVIL)
        for packet in (send, write):
            sock.sendto(packet, (LO, b["port"]))
    return 2


def extended(b):
    with attack.udp_socket(LO) as sock:
        epochs = guesses(sock, b)
        for ahead in AHEAD:
            for epoch in epochs:
                psn = b["psn"] - 1 + ahead & 0xffffff
                sock.sendto(attack.x_send(b["qpn"], psn, epoch, EVIL), (LO, b["port"]))
    return len(AHEAD) * len(epochs)


def acks(a):
    """@a has sent what nobody received."""
    with attack.udp_socket(LO) as sock:
        epochs = guesses(sock, a)
        for epoch in epochs:
            sock.sendto(attack.x_ack(a["qpn"], a["psn"], epoch, attack.ACK), (LO, a["port"]))
    return len(epochs)


def questions(b):
    """From a port that is not the peer's."""
    with attack.udp_socket(LO) as sock:
        for epoch in guesses(sock, b):
            packet = attack.question(b["qpn"], 0xbad, 3, epoch, b["peer"])
            sock.sendto(packet, (LO, b["port"]))
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


def lies_about_acks(nopin, victim, by):
    with Victim(nopin, victim) as a, Victim(nopin, victim) as b:
        attack.connect_pair(a, b, LO, LO)
        b.do("receive", 1)
        b.stop()
        try:
            a.do("send", "unheard")
            dropped(a, by, acks, facts(a, a.psn + 1, b), "drop_epoch")
            assert a.wait(1, 50) == [], "completed, and nobody received it"
        finally:
            b.go_on()
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
