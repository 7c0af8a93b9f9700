#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# install.sh MESON BUILD PROGRAM: what `make install` puts somewhere else is
# whole: PROGRAM runs with it when the build tree is not looked at, pkg-config finds
# it, and `make uninstall` leaves nothing behind.
set -eu

meson=$1
build=$2
program=$3
dir=$(mktemp -d)
log=$build/meson-logs/install-log.txt
[ ! -f "$log" ] || cp -p "$log" "$dir.log"
trap 'rm -rf "$dir" "$log"; [ ! -f "$dir.log" ] || mv "$dir.log" "$log"' EXIT
"$meson" install -C "$build" --no-rebuild --quiet --destdir "$dir"
nopin=$(find "$dir" -path '*/bin/nopin')
calls=$(grep -o 'nopin_[a-z_]*(' "$(find "$dir" -name nopin.h)" | sort -u)
for page in nopin.1 nopin.7 nopin-move.1 $(echo "$calls" | sed 's/(/.3/'); do
	[ -n "$(find -L "$dir" -path "*/man/*/$page" -type f)" ] || {
		echo "$page is not installed"
		exit 1
	}
done
pc=$(find "$dir" -name nopin.pc)
pc=${pc#"$dir"}
case $pc:$(pkg-config --variable pc_path pkg-config): in
*:"${pc%/nopin.pc}":* | /opt/*) ;; # or as MESON_ARGS wants it
*)
	echo "pkg-config does not look at $pc"
	exit 1
	;;
esac
cp "$program" "$dir/program"
cd /
NOPIN_ADDR=lo NOPIN_LOG=info "$nopin" run -- "$dir/program" 2>"$dir/said" || {
	cat "$dir/said"
	exit 1
}
grep -q 'nopin: info: tx_packets: [1-9]' "$dir/said"
rm "$dir/said" "$dir/program"
(cd "$build" && "$meson" --internal uninstall >/dev/null)
left=$(find "$dir" ! -type d)
[ -z "$left" ] || {
	echo "make uninstall leaves $left"
	exit 1
}
