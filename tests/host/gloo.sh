#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# gloo.sh NOPIN RANKS: builds gloo.cc with the system's Gloo and runs it on nopin.
set -eu

[ -e /usr/include/gloo/transport/ibverbs/device.h ] || {
	echo "SKIP: Gloo is not installed"
	exit 77
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/store"
g++ -O1 -o "$dir/gloo" "${0%.sh}.cc" -lgloo -libverbs -pthread
NOPIN_ADDR=lo "$1" run -- "$dir/gloo" "$2" "$dir/store"
