#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# topology.sh [--loss PERMILLE] [--dup PERMILLE] [--no-gso]
#             [--relay PROGRAM [--reorder PERMILLE] [--delay US] [--paths US]]
#             COMMAND...
#
# Runs COMMAND while these two network namespaces exist, and removes them:
#
#     namespace $NS_A                              namespace $NS_B
#   +--------------------+                      +--------------------+
#   |  lo  127.0.0.1     |                      |     127.0.0.1  lo  |
#   |                    |         veth         |                    |
#   |  n0  $ADDR_A ------|----------------------|------ $ADDR_B  n0  |
#   |      fd77::1       |     IP MTU 1500      |       fd77::2      |
#   +--------------------+                      +--------------------+
#      a default route in each leads to the other
#
# --loss:    each side drops so many of 1000 UDP packets that come in (TCP, by
#            which test programs find each other, is left alone). With GSO
#            that is a whole burst; with --no-gso single packets.
# --dup:     each side sends so many of 1000 UDP packets twice
# --no-gso:  the device cannot segment: the kernel does it before nftables
#
# --relay:   in place of the veth two tun devices, and between them this program
#            (relay.c), which gets single packets and keeps --reorder of 1000
#            UDP packets for up to --delay microseconds (100) while others
#            pass; --paths: flows by other ports are up to so much slower
#
# $TOPOLOGY says in a few words what was asked for. Needs root: exits with 77
# without, and where the kernel has no namespaces or nftables.
set -eu

loss=0
dup=0
gso=on
relay=
reorder=0
delay=100
paths=0
while :; do
	case ${1-} in
	--loss) loss=$2; shift 2 ;;
	--dup) dup=$2; shift 2 ;;
	--no-gso) gso=off; shift ;;
	--relay) relay=$2; shift 2 ;;
	--reorder) reorder=$2; shift 2 ;;
	--delay) delay=$2; shift 2 ;;
	--paths) paths=$2; shift 2 ;;
	-*) echo "topology.sh: no option $1" >&2; exit 2 ;;
	*) break ;;
	esac
done

skip() {
	echo "SKIP: $1"
	exit 77
}

[ "$(id -u)" = 0 ] || skip "network namespaces need root"
for tool in ip nft ethtool; do
	command -v "$tool" >/dev/null || skip "$tool is not installed"
done

NS_A=nopin-a-$$
NS_B=nopin-b-$$
ADDR_A=10.77.0.1
ADDR_B=10.77.0.2
TOPOLOGY="loss $loss/1000, duplicates $dup/1000, GSO $gso"
[ -z "$relay" ] ||
	TOPOLOGY="$TOPOLOGY, overtaken $reorder/1000, paths $paths us"
export NS_A NS_B ADDR_A ADDR_B TOPOLOGY

# The veth pair goes with the namespaces. Processes of ours that are left in
# them would keep them, so those end first.
relay_pid=
report=
end_relay() {
	[ -z "$relay_pid" ] || kill "$relay_pid" 2>/dev/null || true
	relay_pid=
}
cleanup() {
	end_relay
	[ -z "$report" ] || rm -f "$report"
	for ns in "$NS_A" "$NS_B"; do
		ip netns pids "$ns" 2>/dev/null | xargs -r kill -9 || true
		ip netns del "$ns" 2>/dev/null || true
	done
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

# side NS ADDRESS PEER-ADDRESS ADDRESS6 PEER-ADDRESS6: what is in one box
side() {
	ip -n "$1" link set lo up
	ip -n "$1" addr add "$2/24" dev n0
	ip -n "$1" addr add "$4/64" dev n0 nodad
	ip -n "$1" link set n0 mtu 1500 up
	ip -n "$1" route add default via "$3"
	ip -n "$1" -6 route add default via "$5"
	if [ -z "$relay" ]; then
		ip netns exec "$1" ethtool -K n0 tx-udp-segmentation "$gso" \
			>/dev/null
	else # it segments nothing, and what its queue cannot take is lost
		ip -n "$1" link set n0 txqueuelen 16384
	fi
	if [ "$loss" != 0 ]; then
		ip netns exec "$1" nft -f - <<-END
		table inet loss {
			chain input {
				type filter hook input priority 0;
				iif n0 meta l4proto udp \
					numgen random mod 1000 < $loss \
					counter drop
			}
		}
		END
	fi
	if [ "$dup" != 0 ]; then
		ip netns exec "$1" nft -f - <<-END
		table ip twice {
			chain output {
				type filter hook output priority 0;
				oif n0 meta l4proto udp \
					numgen random mod 1000 < $dup \
					counter dup to $3 device "n0"
			}
		}
		END
	fi
}

ip netns add "$NS_A" 2>/dev/null || skip "cannot make a network namespace"
ip netns add "$NS_B"
if [ -n "$relay" ]; then
	report=$(mktemp)
	relay_pid=$("$relay" "$reorder" "$delay" "$paths" "$NS_A" "$NS_B" \
		"$report") || skip "no tun devices"
else
	ip -n "$NS_A" link add n0 type veth peer name n0 netns "$NS_B" ||
		skip "no veth devices"
fi
side "$NS_A" "$ADDR_A" "$ADDR_B" fd77::1 fd77::2
side "$NS_B" "$ADDR_B" "$ADDR_A" fd77::2 fd77::1

status=0
"$@" || status=$?

# A condition that never came about tests nothing. A test that makes no
# traffic says so.
counted() { # counted TABLE
	ip netns exec "$NS_A" nft list table "$1"
	ip netns exec "$NS_B" nft list table "$1"
}
if [ "$status" = 0 ] && [ "${TOPOLOGY_IDLE-}" = "" ]; then
	if [ "$loss" != 0 ] && ! counted 'inet loss' |
		grep -q 'counter packets [1-9]'; then
		echo "topology.sh: nothing was dropped"; status=1
	fi
	if [ "$dup" != 0 ] && ! counted 'ip twice' |
		grep -q 'counter packets [1-9]'; then
		echo "topology.sh: nothing was duplicated"; status=1
	fi
	if [ "$reorder" != 0 ] || [ "$paths" != 0 ]; then
		kill "$relay_pid" && relay_pid=
		while [ ! -s "$report" ]; do sleep 0.1; done
		echo "relay: $(cat "$report")"
		grep -q 'overtaken [1-9]' "$report" || {
			echo "topology.sh: nothing was overtaken"; status=1
		}
	fi
fi
exit "$status"
