#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# run.sh FUZZER: runs it for SOAK_SECONDS from its committed corpus. What it
# finds is kept in the build directory; the input that broke it is printed.
set -eu

fuzzer=$1
name=$(basename "$fuzzer")
name=${name#fuzz_}
corpus=$(dirname "$0")/corpus/$name
found=$fuzzer.corpus
mkdir -p "$found"
[ -d "$corpus" ] || corpus=
if ! "$fuzzer" -max_total_time="${SOAK_SECONDS:-60}" -print_final_stats=1 \
	-timeout=10 -artifact_prefix="$found-broke-" \
	"$found" $corpus >"$found.log" 2>&1; then
	tail -n 60 "$found.log"
	exit 1
fi
tail -n 8 "$found.log"
