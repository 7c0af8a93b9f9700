#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""programs.py [OPTION...] BUILD SET...: unmodified verbs programs on nopin.

Sets: devices, pingpong, one of the perftest programs, quick (a few of each),
brief (one of each kind of operation), moving (SEND, WRITE and READ), lossy (more of them, to be run where
packets are lost), many (64 QPs), refusals (what perftest-table.txt lists), ucx
(its transports over datagrams, which sends again what sockets lose, and over
connections that share receives) and all.

  --netns        servers in namespace A, clients in B of topology.sh, which
                 this program runs under
  --user         as an ordinary user (where we are root) who may lock no memory
  --verify       with all data verified, as tests/verify does it
  --calm         no NIC may count a packet that was lost or sent again
  --ordered      no NIC may count a packet for which it had no place
  --stock        as where net.core.rmem_max is what Linux ships with
  --evict MS     with all data verified, in memory that is evicted every MS ms
  --counted NAME,...
                 some NIC must have counted one of these, in some case
  --pairs N      N pairs at once
  --patience N   wait N times as long
  --only TEXT    of the set, only cases with this in their name
  --list         print the names of the cases and run nothing

Prints a line for each case; of one that fails all that its programs said.
"""
import argparse
import concurrent.futures
import itertools
import os
import re
import shutil
import subprocess
import sys
import time

import pair

PERFTEST = ["ib_write_bw", "ib_write_lat", "ib_read_bw", "ib_read_lat",
            "ib_send_bw", "ib_send_lat", "ib_atomic_bw", "ib_atomic_lat"]
# Option -> what is added so that the run is short but not trivial, and what
# perftest prints when it does what the option says.
OPTIONS = {
    "-n 1000": ("", " 1000 "),
    "-a": ("-n 40", " 8388608 "),
    "-q 16": ("-n 200", "Number of qps   : 16"),
    "-b": ("-n 400", "Bidirectional"),
    "-e": ("-n 1000", "Mtu"),
    "-I 64": ("-n 1000 -s 64", "Max inline data : 64[B]"),
    "--odp": ("-n 1000", "Mtu"),
    "-m 256": ("-n 500", "Mtu             : 256[B]"),
    "-m 4096": ("-n 1000", "Mtu             : 4096[B]"),
    "--use-srq": ("-n 1000", "Using SRQ      : ON"),
    "-D 3": ("-f 1", "Mtu"),
    # No more than what a socket holds: what it does not, nobody sends again.
    "-c UD": ("-n 40 -s 1024", "Connection type : UD"),
}
DATAGRAMS = "-c UD"
MANY = ["ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_atomic_bw"]
# Atomics have one size; perftest refuses to be told it.
NO_SIZE = ["ib_atomic_bw", "ib_atomic_lat"]
PINGPONG = ["", "-o", "-O", "-o -P", "-e", "-s 1000000", "-n 1", "-c",
            "-m 4096 -s 100000", "-r 1 -s 1"]
SRQ_PINGPONG = ["-n 1", "-c", "-c -e -q 3 -s 65536", "-c -o -q 64 -r 200"]
# Of these, each but -c checks nothing; -r: no more than a socket holds.
UD_PINGPONG = ["", "-e", "-c", "-c -r 16", "-s 1 -n 100"]
QUICK = ["ibv_devices", "ibv_devinfo -v", "ibv_rc_pingpong",
         "ibv_rc_pingpong -o", "ibv_rc_pingpong -e", "ibv_rc_pingpong -c",
         "ibv_rc_pingpong -s 1000000", "ib_write_bw -n 1000",
         "ib_write_lat -n 1000", "ib_read_bw --odp", "ib_send_bw -e",
         "ib_send_lat -I 64", "ib_atomic_lat -n 1000", "ib_write_bw -m 4096",
         "ibv_srq_pingpong -c", "ibv_ud_pingpong -c", "ib_send_bw -c UD",
         "ib_send_lat -c UD"]
BRIEF = ["ibv_rc_pingpong -e", "ib_write_bw -n 1000", "ib_read_bw --odp",
         "ib_send_bw -e", "ib_send_lat -I 64", "ib_atomic_lat -n 1000",
         "ibv_ud_pingpong -c"]
# Test of ucx_perftest -> its options.
UCX = {"tag_lat": "-n 1000", "tag_bw": "-n 50 -s 1048576",
       "ucp_put_bw": "-n 50 -s 1048576"}
# Connections are made by datagrams.
UCX_TLS = {"ud": "ud_verbs,self", "rc": "rc_verbs,ud:aux,self"}
# It asks for more than what fits the veth, and takes no less.
LOOPBACK = ["ibv_rc_pingpong -m 4096 -s 100000"]
LOSSY = ["ibv_rc_pingpong", "ibv_rc_pingpong -e", "ib_write_bw -n 1000",
         "ib_write_bw -q 16", "ib_write_lat -n 1000", "ib_read_bw -n 1000",
         "ib_read_bw -b", "ib_read_lat -n 1000", "ib_send_bw -q 16",
         "ib_send_lat -n 1000", "ib_atomic_bw -n 1000",
         "ib_atomic_lat -n 1000"]
MOVING = ["ib_write_bw -n 1000", "ib_read_bw -n 1000", "ib_send_bw -n 1000"]
# As many spinning programs take turns many times for each of its messages.
LARGE = ["ibv_rc_pingpong -s 1000000"]
# More than any of them takes, also where others have the CPUs: then it hangs.
SECONDS = 240


class Case:
    """One thing to run: a program with its arguments, and its answer.

    sets      which sets it is in
    pair      whether it has a server and a client
    refused   words with which the program must refuse, or None
    expected  words that it must print
    ucx       what UCX's transports are to be, or None; by IPv6, is_v6
    counted   what its NICs counted, after run()
    """

    def __init__(self, name, sets, args, is_pair, refused=None, expected=(),
                 ucx=None, is_v6=False):
        self.name = name
        self.program = name.split()[0]
        self.sets = sets
        self.args = args.split()
        self.pair = is_pair
        self.refused = refused
        self.expected = expected
        self.ucx = ucx
        self.is_v6 = is_v6
        self.counted = set()

    def ucx_environment(self, place):
        """Nothing but what transport it is, and which address of several."""
        if not self.ucx:
            return {}
        env = {"UCX_TLS": self.ucx}
        if self.is_v6 and place.is_loopback:
            env["NOPIN_ADDR"] = "::1"
        elif self.is_v6:
            env["UCX_IB_GID_INDEX"] = "2"  # behind $ADDR_A, twice
        elif place.is_loopback:
            env["NOPIN_ADDR"] = "127.0.0.1"
        return env

    def run(self, place):
        """Returns (problem or None, what the programs said)."""
        env = self.ucx_environment(place)
        # it looks itself, and the verifier knows connections only
        verify = (place.verify and "-c" not in self.args
                  and not is_datagrams(self))
        expected = self.expected
        if "4096" in self.args and place.is_loopback:
            # The interface offered first may have an IP MTU of 1500.
            env = {"NOPIN_ADDR": "lo"}
        elif "4096" in self.args:
            # perftest lowers it to what the port says it can.
            expected = [e.replace(" 4096[B]", " 1024[B]") for e in expected]
        if not self.pair:
            problem, one = pair.run_one(
                place, [self.program, *self.args], env, SECONDS)
            said = one.output()
            story = one.story("program")
        else:
            problem, server, client, story = pair.run_pair(
                place, self.program, self.args, env, SECONDS, verify)
            for one in filter(None, (server, client)):
                self.counted |= {name for name, n in one.counters().items()
                                 if n}
            said = (client or server).output()
            if self.refused:
                return self.judge_refusal(server, client), story
        missing = [text for text in expected if text not in said]
        if not problem and missing:
            problem = f"did not print {missing[0]!r}"
        return problem, story

    def judge_refusal(self, server, client):
        if client:
            return "perftest took an option that perftest-table.txt refuses"
        if self.refused not in server.output():
            return f"ended, but did not say {self.refused!r}"
        return None


def numbers(version):
    return [int(number) for number in version.split(".")]


def said_by(program, option):
    """What it prints when it is asked; "" where it is not installed."""
    if not shutil.which(program):
        return ""
    # not with a library of ours that needs a sanitizer before it
    env = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    return subprocess.run([program, option], check=False, env=env,
                          capture_output=True, text=True).stdout


def perftest_version():
    """Of the perftest that is installed, as "6.06"; "0" where there is none."""
    said = re.search(r"Version: ([0-9.]+)", said_by("ib_write_bw", "--version"))
    return said[1] if said else "0"


def read_refusals():
    """(program, option) -> its words, of all that this perftest refuses."""
    version = numbers(perftest_version())
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "perftest-table.txt")
    refusals = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("#"):
                continue
            program, option, words, *before = map(str.strip, line.split("|"))
            if program not in PERFTEST or option not in OPTIONS:
                sys.exit(f"{path}: no such case: {line}")
            if not before or version < numbers(before[0]):
                refusals[program, option] = words
    return refusals


# It gives no report of a clock that it finds to be uneven, as on a busy host, but for this.
ANY_CLOCK = "-F"


def perftest_cases():
    refusals = read_refusals()
    for program in PERFTEST:
        for option, (more, expected) in OPTIONS.items():
            words = refusals.get((program, option))
            name = f"{program} {option}"
            if program in NO_SIZE:
                more = more.replace("-s 64", "")
            elif option == DATAGRAMS and program == "ib_send_lat":
                more = "-n 1000"  # one at a time
            if words:
                yield Case(name, ["refusals"], f"{option} {more}", True,
                           refused=words)
            else:
                yield Case(name, [program], f"{ANY_CLOCK} {option} {more}", True,
                           expected=["#bytes", expected])


def many_cases():
    for program in MANY:
        yield Case(f"{program} -q 64", ["many"], f"{ANY_CLOCK} -q 64 -n 200", True,
                   expected=["#bytes", "Number of qps   : 64"])


def all_cases():
    yield Case("ibv_devices", ["devices"], "", False, expected=["nopin0"])
    yield Case("ibv_devinfo -v", ["devices"], "-v", False,
               expected=["nopin0", "PORT_ACTIVE", "Ethernet", "RoCE v2",
                         "ODP_SUPPORT_IMPLICIT"])
    for options in PINGPONG:
        name = f"ibv_rc_pingpong {options}".strip()
        yield Case(name, ["pingpong"], f"-g 0 {options}", True,
                   expected=["bytes in", "iters in"])
    for options in SRQ_PINGPONG:
        yield Case(f"ibv_srq_pingpong {options}", ["pingpong"], f"-g 0 {options}", True,
                   expected=["bytes in", "iters in"])
    for options in UD_PINGPONG:
        yield Case(f"ibv_ud_pingpong {options}".strip(), ["pingpong"],
                   f"-g 0 {options}", True, expected=["bytes in", "iters in"])
    yield from perftest_cases()
    yield from many_cases()
    yield from ucx_cases()


def ucx_cases():
    # Built with MPI, it takes what has no terminal for a process of an MPI job.
    alone = "-P 0 " if "MPI mode" in said_by("ucx_perftest", "-h") else ""
    for (test, options), (name, tls) in itertools.product(UCX.items(), UCX_TLS.items()):
        for is_v6 in (False, True):
            yield Case(f"ucx_perftest {test} {name}" + " IPv6" * is_v6, ["ucx"],
                       f"{alone}-t {test} {options}", True, expected=["Final:"],
                       ucx=tls, is_v6=is_v6)


def is_datagrams(case):
    return case.program == "ibv_ud_pingpong" or case.name.endswith(DATAGRAMS)


def is_chosen(case, sets, only):
    chosen = (("all" in sets and not case.ucx)
              or any(s in sets for s in case.sets)
              or ("quick" in sets and case.name in QUICK)
              or ("brief" in sets and case.name in BRIEF)
              or ("moving" in sets and case.name in MOVING)
              or ("lossy" in sets and case.name in LOSSY))
    return chosen and (only is None or only in case.name)


def parse_arguments():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--netns", action="store_true")
    parser.add_argument("--user", action="store_true")
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--calm", action="store_true")
    parser.add_argument("--ordered", action="store_true")
    parser.add_argument("--stock", action="store_true")
    parser.add_argument("--evict", type=int, default=0)
    parser.add_argument("--counted", type=lambda names: names.split(","))
    parser.add_argument("--pairs", type=int, default=1)
    parser.add_argument("--patience", type=int, default=1)
    parser.add_argument("--only")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("build")
    parser.add_argument("sets", nargs="+", choices=[
        "devices", "pingpong", "refusals", "quick", "brief", "moving", "lossy", "many",
        "ucx", "all", *PERFTEST])
    return parser.parse_args()


def run_case(case, place, pairs):
    """Runs a case, so many at once; prints; returns whether all was well."""
    start = time.monotonic()
    if pairs > 2 and case.name in LARGE:
        case.args += ["-n", "100"]
    with concurrent.futures.ThreadPoolExecutor(pairs) as pool:
        results = list(pool.map(lambda _: case.run(place), range(pairs)))
    took = time.monotonic() - start
    bad = [(problem, story) for problem, story in results if problem]
    what = "refused, as listed" if case.refused else "ok"
    print(f"{took:6.2f} s  {case.name}: {bad[0][0] if bad else what}",
          flush=True)
    for _, story in bad:
        print(story, flush=True)
    return not bad


def main():
    args = parse_arguments()
    cases = list(all_cases())
    unknown = {*QUICK, *BRIEF, *MOVING, *LOSSY} - {case.name for case in cases}
    if unknown:
        sys.exit(f"programs.py: there is no such case: {unknown}")
    cases = [c for c in cases if is_chosen(c, args.sets, args.only)
             and not (args.netns and c.name in LOOPBACK)
             # nobody sends again what is lost, so programs wait for it for ever
             and not (args.netns and not args.calm and is_datagrams(c))]
    if args.list:
        print("\n".join(case.name for case in cases))
        return 0
    if "ucx" in args.sets and not shutil.which("ucx_perftest"):
        print("SKIP: ucx_perftest is not installed")
        return 77
    if pair.MAY_LOCK and os.geteuid() != 0:
        print("SKIP: an ordinary user may not lock so much memory")
        return 77
    with pair.Place(args.build, args.netns, args.user,
                    args.verify or args.evict, args.calm, args.stock,
                    args.evict, args.ordered) as place:
        place.patience *= args.patience
        good = sum(run_case(case, place, args.pairs) for case in cases)
    if args.counted and not any(case.counted & set(args.counted)
                                for case in cases):
        print(f"no NIC counted {' or '.join(args.counted)}")
        good = 0  # they did not test what they are there to test
    print(f"{good} passed, {len(cases) - good} failed")
    return 0 if cases and good == len(cases) else 1


if __name__ == "__main__":
    sys.exit(main())
