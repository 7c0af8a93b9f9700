#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# run.sh NOPIN PROGRAM [ARGUMENT...]: runs it on nopin; the program prints
# nothing on stdout, so if anything is there it was nopin.
set -eu

nopin=$1
shift
out=$(mktemp)
trap 'rm -f "$out"' EXIT
export NOPIN_ADDR=lo
# meson sets it; it makes malloc() touch what is resident only when used
unset MALLOC_PERTURB_
case $1 in
valgrind | /usr/bin/python3 | setarch) tool=$1 ;;
*) tool=sh ;;
esac
command -v "$tool" >/dev/null || {
	echo "SKIP: $tool is not installed"
	exit 77
}
"$nopin" run -- "$@" >"$out" || {
	status=$?
	cat "$out"
	exit "$status"
}
if [ -s "$out" ] && ! grep -q '^SKIP: ' "$out"; then
	echo "on stdout:"
	cat "$out"
	exit 1
fi
cat "$out"
