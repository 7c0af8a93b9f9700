#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# install.sh MESON BUILD PROGRAM: what `make install` puts somewhere else is
# whole: PROGRAM runs with it when the build tree is not looked at.
set -eu

meson=$1
build=$2
program=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$meson" install -C "$build" --no-rebuild --quiet --destdir "$dir"
nopin=$(find "$dir" -path '*/bin/nopin')
calls=$(grep -o 'nopin_[a-z_]*(' "$(find "$dir" -name nopin.h)" | sort -u)
for page in nopin.1 nopin.7 nopin-move.1 $(echo "$calls" | sed 's/(/.3/'); do
	[ -n "$(find -L "$dir" -path "*/man/*/$page" -type f)" ] || {
		echo "$page is not installed"
		exit 1
	}
done
cp "$program" "$dir/program"
cd /
NOPIN_ADDR=lo NOPIN_LOG=info "$nopin" run -- "$dir/program" 2>"$dir/said" || {
	cat "$dir/said"
	exit 1
}
grep -q 'nopin: info: tx_packets: [1-9]' "$dir/said"
