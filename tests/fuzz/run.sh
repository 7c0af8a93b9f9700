#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# run.sh FUZZER: runs it for SOAK_SECONDS. What it finds is kept in the build
# directory, and is where it goes on the next time.
set -eu

fuzzer=$1
found=$fuzzer.corpus
mkdir -p "$found"
if ! "$fuzzer" -max_total_time="${SOAK_SECONDS:-60}" -print_final_stats=1 \
	-timeout=10 -artifact_prefix="$found-broke-" \
	"$found" >"$found.log" 2>&1; then
	tail -n 60 "$found.log"
	exit 1
fi
tail -n 8 "$found.log"
