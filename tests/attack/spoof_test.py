#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""spoof_test.py BUILD VICTIM: three boxes on one wire. Two hold a connection; the third
sends, with the address and port of the other end, all that the other end may send, and
knows every number of the connection but its secret. Each packet ends in a drop that is
counted under its reason, and the connection goes on: also while it is worked on, while
one end does not run, and before the other end says who it is.
"""
import contextlib
import os
import random
import sys
import threading

import attack
import wire
from attack import (ACCESS_NAK, ACK, HELLO, HELLO_REPLY, PSN_NAK, RNR_NAK, ROCE_PORT,
                    Victim)

BUILD, VICTIM = sys.argv[1:3]
IP_A, IP_B, IP_C = "10.77.9.1", "10.77.9.2", "10.77.9.3"
EVIL = b"EVILEVIL"
REMOTE_ACCESS_ERROR = 10
ALL_SLOTS = 0xffffffff
SYNDROMES = (ACK, RNR_NAK, PSN_NAK, ACCESS_NAK)
AHEAD = (0, 1, 100, 2097151)


class Spoofed:
    """What @to gets from box c and believes to come from @by: a box, or one end."""

    def __init__(self, wire, to, by):
        self.wire, self.to, self.by = wire, to, by
        self.path = by.ip, to.ip, by.port, to.port

    def send(self, packet, sport=None, dport=None):
        self.wire.spoof(self.by.ip, sport or self.by.port, self.to.ip,
                        dport or self.to.port, packet)

    def due(self):
        return self.by.psn + self.by.sent

    def newest(self):
        """What is acknowledged to @to: its newest request."""
        return self.to.psn + self.to.sent - 1 & 0xffffff


def epochs():
    return 0, 1, random.getrandbits(32)


# --- acts: each returns what has to be counted: {name: packets} -----------------------


def plain_requests(s):
    """No secret at all, to the port of the NIC and to the one of standard peers."""
    for dport in s.to.port, ROCE_PORT:
        path = s.by.ip, s.to.ip, s.by.port, dport
        s.send(attack.send_only(*path, s.to.qpn, s.due(), EVIL), dport=dport)
        s.send(attack.write_only(*path, s.to.qpn, s.due(), s.to.address, s.to.rkey,
                                 EVIL), dport=dport)
    return {"drop_epoch": 4}


def wrong_epoch(s):
    for ahead in AHEAD:
        for epoch in epochs():
            s.send(attack.x_send(s.to.qpn, s.due() + ahead, epoch, EVIL))
    return {"drop_epoch": len(AHEAD) * len(epochs())}


def plain_answers(s):
    for syndrome in SYNDROMES:
        s.send(attack.acknowledge(*s.path, s.to.qpn, s.newest(), syndrome))
    return {"drop_epoch": len(SYNDROMES)}


def answers(s):
    for syndrome in SYNDROMES:
        for epoch in epochs():
            s.send(attack.x_ack(s.to.qpn, s.newest(), epoch, syndrome))
    return {"drop_epoch": len(SYNDROMES) * len(epochs())}


def opens(s):
    """With no secret it is a question, which an open QP does not answer."""
    for flags in range(4):
        for epoch in epochs():
            s.send(attack.question(s.to.qpn, 0xbad, flags, epoch, s.by.qpn))
    return {"drop_epoch": 4 * (len(epochs()) - 1), "drop_open": 4}


def opens_of_others(s):
    """By another user of the peer's host, and by another of its QPs."""
    s.send(attack.question(s.to.qpn, 0xbad, 3, 0, s.by.qpn), sport=s.by.port ^ 1)
    s.send(attack.question(s.to.qpn, 0xbad, 3, 0, s.by.qpn ^ 1))
    return {"drop_peer": 2}


def hello_replies(s):
    for nonce in epochs():
        s.send(attack.hello(s.to.qpn, HELLO_REPLY, nonce, 0xbad, ALL_SLOTS, ALL_SLOTS, 1))
    return {"drop_nonce": len(epochs())}


def forwards(s):
    """As if it came by the holder of port 4791."""
    packet = attack.send_only(s.by.ip, s.to.ip, s.by.port, ROCE_PORT, s.to.qpn, s.due(),
                              EVIL)
    for secret in epochs():
        s.send(attack.forward(s.to.qpn, s.by.ip, s.by.port, s.to.ip, secret, packet),
               sport=ROCE_PORT)
    return {"drop_forward": len(epochs())}


def unreachables(s):
    """Nobody is at the peer's port, says its host."""
    for _ in range(8):
        s.wire.unreachable(s.by.ip, s.by.port, s.to.ip, s.to.port)
    return {"drop_unreachable": 8}


ACTS = (plain_requests, wrong_epoch, plain_answers, answers, opens, opens_of_others,
        hello_replies, forwards, unreachables)


def hellos(s):
    """A HELLO is answered, to where it says that it comes from; there nobody asked, and
    what it says of slots and credit is worth nothing."""
    for nonce in epochs():
        s.send(attack.hello(s.to.qpn, HELLO, nonce, 0xbad, ALL_SLOTS, ALL_SLOTS, 1))
    return {"drop_nonce": len(epochs())}


# --- the connection -----------------------------------------------------------------


class End(Victim):
    """A victim in a box that knows what it has sent and received."""

    def __init__(self, nopin, victim, box):
        super().__init__(nopin, victim, box.inside)
        self.asked = box.inside
        self.ip, self.sent, self.heard = box.ip, 0, 0

    def say(self, peer):
        """A word, which arrives as it is."""
        word = f"{self.qpn}-{self.sent}"
        peer.do("receive", 1)
        self.do("send", word)
        self.sent += 1
        self.hears_end()
        peer.hears(word)

    def hears_end(self):
        assert self.wait(1) == ["send:0:0"], "the connection broke"

    def hears(self, word):
        assert self.wait(1) == [f"receive:0:{len(word)}"], "something else came"
        at = self.heard * attack.SLOT
        assert self.look(at, len(word)) == word.encode(), "a wrong byte came"
        self.heard += 1

    def hears_nothing(self):
        assert self.wait(1, 50) == [], "something completed"
        assert EVIL not in self.look(0, (self.heard + 8) * attack.SLOT), "it was placed"


def talk(a, b, words=4):
    for _ in range(words):
        a.say(b)
        b.say(a)


def dropped(act, to, s):
    """All of the act is counted by @to, and nothing twice."""
    before = to.counters()
    for name, packets in act(s).items():
        now = to.until(name, before.get(name, 0) + packets)
        assert now == before.get(name, 0) + packets, (act.__name__, name, now, before)


@contextlib.contextmanager
def all_the_time(acts, *directions):
    """Until the end of the block they go on, as quickly as they can."""
    over = threading.Event()

    def storm():
        while not over.is_set():
            for act in acts:
                for s in directions:
                    act(s)

    thread = threading.Thread(target=storm)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def connect(a, b):
    """Both ends, one after the other."""
    a.connect(b.qpn, b.psn, b.ip, a.ip)
    b.connect(a.qpn, a.psn, a.ip, b.ip)


def is_asked(box, act, s):
    """@act is answered to box, where it is dropped."""
    before = box.counters()["drop_nonce"]
    packets = act(s)["drop_nonce"]
    assert box.until("drop_nonce", before + packets) == before + packets


def quiet(a, b, to_a, to_b):
    """Each act alone."""
    for to, s in ((a, to_a), (b, to_b)):
        to.do("receive", 1)
        for act in ACTS:
            dropped(act, to, s)
        is_asked(s.by, hellos, s)
        to.hears_nothing()
    # of the receives that were posted beforehand words come to the first
    talk(a, b)


def unheard(a, b, to_a):
    """@b does not run, and nobody can say that it got what @a sent."""
    word = "unheard"
    b.do("receive", 1)
    b.stop()
    try:
        a.do("send", word)
        a.sent += 1
        for act in ACTS:
            dropped(act, a, to_a)
        a.hears_nothing()
    finally:
        b.go_on()
    a.hears_end()
    b.hears(word)
    talk(a, b)


def under_way(a, b, to_a, to_b):
    """While the connection is worked on."""
    before = a.counters()["drop_epoch"], b.counters()["drop_epoch"]
    with all_the_time(ACTS + (hellos,), to_a, to_b):
        a.until("drop_epoch", before[0] + 100)
        b.until("drop_epoch", before[1] + 100)
        talk(a, b, 100)
    talk(a, b)
    a.hears_nothing()
    b.hears_nothing()


# --- before it is open ------------------------------------------------------------------


def not_connected(a, to_a):
    """No life of the QP has begun yet: neither has its secret."""
    def early(s):
        for act in plain_requests, wrong_epoch, plain_answers, answers:
            act(s)
        return {"drop_state": 4 + len(AHEAD) * len(epochs()) +
                              len(SYNDROMES) * (1 + len(epochs()))}

    def question(s):
        s.send(attack.question(s.to.qpn, 0xbad, 1, 0, s.by.qpn))
        return {"drop_open": 1}

    dropped(early, a, to_a)
    dropped(question, a, to_a)


def one_side(a, b, to_a):
    """@a asks who is there, and @b is not connected yet. No answer but that of @b counts,
    and no NAK of what was not sent."""
    def nothing_sent(s):
        for syndrome in SYNDROMES:
            s.send(attack.acknowledge(*s.path, s.to.qpn, s.newest() + 1, syndrome))
        return {"drop_psn": len(SYNDROMES)}

    a.connect(b.qpn, b.psn, b.ip, a.ip)
    for act in (nothing_sent, wrong_epoch, answers, opens_of_others, hello_replies,
                forwards):
        dropped(act, a, to_a)
    for flags in range(4):  # its answer goes to @b
        to_a.send(attack.question(a.qpn, 0xbad, flags, 0, b.qpn))
    b.connect(a.qpn, a.psn, a.ip, b.ip)
    talk(a, b)
    a.hears_nothing()


def nak_first(boxes, a, b, to_a):
    """@b refuses what @a wants before it knows @a's secret, so it cannot say so yet; no
    NAK of others counts meanwhile, and its own arrives."""
    boxes.hold_back_opens("b")
    try:
        connect(a, b)
        a.do("write", b.rkey ^ 0x100, b.address)
        a.sent += 1
        b.until("drop_state", 1)  # it is in ERR, and was asked what became of it
        dropped(plain_answers, a, to_a)
        dropped(answers, a, to_a)
        a.hears_nothing()
        assert b.counters()["naks_tx"] == 0
    finally:
        assert boxes.let_in("b"), "nothing was held back"
    assert a.wait(1) == [f"send:{REMOTE_ACCESS_ERROR}:0"]


def nobody_there(a, b, to_a, to_b):
    """Each is told all the time that nobody is where it asks, and asked what only its peer
    may ask."""
    with all_the_time((unreachables, opens, hello_replies, hellos), to_a, to_b):
        connect(a, b)
        talk(a, b)
    talk(a, b)


def main():
    attack.own_network(mounts=True)
    nopin = os.path.join(BUILD, "tools/nopin/nopin")
    boxes = wire.Wire({"a": IP_A, "b": IP_B, "c": IP_C}, attacker="c")

    def pair(act):
        with End(nopin, VICTIM, boxes.box["a"]) as a, \
                End(nopin, VICTIM, boxes.box["b"]) as b:
            act(a, b, Spoofed(boxes, a, b), Spoofed(boxes, b, a))

    def open_pair(a, b, to_a, to_b):
        not_connected(a, to_a)
        connect(a, b)
        talk(a, b)
        quiet(a, b, to_a, to_b)
        unheard(a, b, to_a)
        under_way(a, b, to_a, to_b)

    pair(open_pair)
    pair(lambda a, b, to_a, to_b: one_side(a, b, to_a))
    pair(lambda a, b, to_a, to_b: nak_first(boxes, a, b, to_a))
    pair(nobody_there)


main()
