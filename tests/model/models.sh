#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# models.sh: checks handoff.pml and token.pml in a few small worlds, and that each
# deliberate defect (BREAK_*) is found. Exits with 77 without spin or a compiler.
set -eu

for tool in spin "${CC:=gcc}"; do
	command -v "$tool" >/dev/null || {
		echo "SKIP: $tool is not installed"
		exit 77
	}
done
models=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

# check OPTION...: what spin says, in $dir/out; fails if it did not finish
check() {
	rm -f pan*
	spin "$@" -a "$models/$model" >out 2>&1 || { cat out; exit 1; }
	"$CC" -O0 -w -DSAFETY -DCOLLAPSE -DMEMLIM=1024 -o pan pan.c
	./pan -m10000 >out 2>&1 || { cat out; exit 1; }
	grep -q 'errors: ' out || { cat out; exit 1; }
	if grep -q -e 'max search depth too small' -e 'reached -DMEMLIM' out; then
		cat out
		exit 1
	fi
}

holds() {
	check "$@"
	grep -q 'errors: 0' out || {
		echo "FAIL: $model $*: the claim does not hold:"
		cat out
		spin "$@" -t -p -g "$models/$model" | tail -60
		exit 1
	}
	echo "ok: $model $*: $(sed -n 's/^ *\([0-9]* states\), stored$/\1/p' out)"
}

breaks() {
	check "$@"
	grep -q 'assertion violated' out || {
		echo "FAIL: $model $*: this defect was not found"
		exit 1
	}
	echo "ok: $model $*: found"
}

model=handoff.pml
holds -DPOSTERS=2
holds -DPOSTERS=1 -DDEADLINE
holds -DPOSTERS=1 -DOTHER
holds -DPOSTERS=1 -DPOLLER
breaks -DPOSTERS=2 -DBREAK_NO_LOOK_AFTER_UNLOCK
breaks -DPOSTERS=2 -DBREAK_TAKE_AFTER_LOOK
breaks -DPOSTERS=1 -DPOSTS=2 -DBREAK_FLAG_AFTER_LOOK
breaks -DPOSTERS=1 -DPOSTS=2 -DDEADLINE -DBREAK_NO_LOOK_AT_DEADLINE
breaks -DPOSTERS=2 -DBREAK_NO_KICK_WITHOUT_STEP

model=token.pml
holds -DTHREADS=2
holds -DTHREADS=3 -DBURSTS=2
breaks -DTHREADS=3 -DBREAK_TWO_WORDS
breaks -DTHREADS=2 -DBREAK_NO_REST
breaks -DTHREADS=2 -DBREAK_MOVES_EARLY
