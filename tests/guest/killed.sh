#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# killed.sh NOPIN PROGRAM: PROGRAM kills its peers at random, in namespaces of
# its own: whatever is in /tmp, /dev/shm or among the unix sockets afterwards
# was left behind.
set -eu

if [ "$1" != inside ]; then
	unshare -rnm true 2>/dev/null || {
		echo "SKIP: no user namespaces"
		exit 77
	}
	exec unshare -rnm "$0" inside "$@"
fi
nopin=$2
program=$3
mount -t tmpfs none /dev/shm
ip link set lo up
# A build tree may be below /tmp: what is there already is known.
before=$(ls -A /tmp)
# Who survives waits seconds for what the dead one owes: ten at once.
pids=
for i in $(seq 10); do
	NOPIN_ADDR=lo "$nopin" run -- "$program" 5 &
	pids="$pids $!"
done
for pid in $pids; do
	wait "$pid"
done
left=$(grep -c nopin /proc/net/unix || true)
[ "$left" = 0 ] || { grep nopin /proc/net/unix; exit 1; }
# the board of all NICs of the user stays (nopin(7))
left=$(ls -A /dev/shm | grep -vx "nopin-$(id -u)" || true)
[ -z "$left" ] || { echo "in /dev/shm: $left"; exit 1; }
for file in $(ls -A /tmp); do
	case $file in
	*nopin*) ;;
	*) continue ;;
	esac
	echo "$before" | grep -Fqx -- "$file" || {
		echo "in /tmp: $file"
		exit 1
	}
done
