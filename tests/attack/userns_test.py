#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""userns_test.py BUILD VICTIM [users]: at the control socket a user that the victim's
user namespace has no number for looks like uid 65534. Where that is the victim's own,
whoever asks from outside is refused; and Debian's nobody goes on to be served. With
"users" the askers are other users; that takes root.
"""
import os
import subprocess
import sys

import attack
from attack import NOBODY, OTHER, Victim

BUILD, VICTIM = sys.argv[1:3]
WITH_USERS = sys.argv[3:] == ["users"]
VICTIM_UID = 1000
IN_USERNS = ["unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}"]
REQUESTS = (["suspend"], ["resume"], ["trace"], ["stat"],
            ["move", "--region", "{key}", "--recreate"])


def ask(nopin, victim, request, **how):
    words = [word.format(key=victim.rkey) for word in request]
    return subprocess.run([nopin, words[0], str(victim.pid), *words[1:]],
                          text=True, capture_output=True, timeout=60, check=False,
                          **how)


def as_only(uid):
    return {"user": uid, "group": uid, "extra_groups": []}


def refused(nopin, victim, **how):
    for request in REQUESTS:
        out = ask(nopin, victim, request, **how)
        assert out.returncode == 125 and out.stdout == "", (request, out)
        assert "another user's" in out.stderr or "not yours" in out.stderr, out


def served(nopin, victim, **how):
    for request in (["stat"], ["suspend"], ["resume"], ["trace"]):
        out = ask(nopin, victim, request, **how)
        assert out.returncode == 0 and out.stdout, (request, out)


def nothing_is_suspended(victim):
    """Its region takes what it sends itself."""
    victim.connect(victim.qpn, victim.psn, "127.0.0.1", "127.0.0.1")
    victim.do("receive", 1)
    victim.do("send", "itself")
    assert sorted(victim.wait(2)) == ["receive:0:6", "send:0:0"]


def asked_from_outside():
    nopin = os.path.join(BUILD, "tools/nopin/nopin")
    if subprocess.run(IN_USERNS + ["true"], check=False,
                      capture_output=True).returncode:
        attack.skip("no user namespace here")
    with Victim(nopin, VICTIM, before=IN_USERNS) as victim:
        refused(nopin, victim)
        nothing_is_suspended(victim)
    with Victim(nopin, VICTIM) as victim:
        served(nopin, victim)


def asked_by_others(nopin, program):
    with Victim(nopin, program, before=IN_USERNS,
                **as_only(VICTIM_UID)) as victim:
        for uid in (OTHER, NOBODY, VICTIM_UID):
            refused(nopin, victim, **as_only(uid))
        nothing_is_suspended(victim)
    with Victim(nopin, program, **as_only(NOBODY)) as victim:
        served(nopin, victim, **as_only(NOBODY))
        served(nopin, victim)
        refused(nopin, victim, **as_only(OTHER))
        nothing_is_suspended(victim)


def main():
    attack.own_network()
    if not WITH_USERS:
        asked_from_outside()
        return
    if os.geteuid() != 0:
        attack.skip("not root")
    place, nopin, victim = attack.for_everybody(BUILD, VICTIM)
    with place:
        asked_by_others(nopin, victim)


main()
