#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# lint.sh WHAT BUILD [deep]: one static check of the whole tree. Exits with 77 where
# the tool is not installed.
set -eu

what=$1
build=$2
cd "$(dirname "$0")/../.."

need() {
	command -v "$1" >/dev/null && return
	echo "SKIP: $1 is not installed"
	exit 77
}

# files PATTERN...: those of the tree, build directories left out
files() {
	for pattern; do
		find src tests tools bench demo experiments -type f \
			-name "$pattern" 2>/dev/null
	done
}

case $what in
clang-format)
	need clang-format
	files '*.[ch]' | xargs -n 100 -P 2 clang-format --dry-run --Werror || {
		echo "try: make format"
		exit 1
	}
	;;
cppcheck)
	need cppcheck
	# Configurations other than ours (-D) are nobody's. "high = x, from = x"
	# is how two cursors start.
	cppcheck -q -j 2 --std=c11 --platform=unix64 --inline-suppr \
		--enable=warning,performance,portability \
		--error-exitcode=1 --suppress=duplicateAssignExpression \
		--cppcheck-build-dir="$build/meson-private" \
		-D__x86_64__ -D__linux__ -Isrc src tools
	;;
clang-tidy)
	need clang-tidy
	# Only what this build compiles has known flags. --quiet still prints
	# how many warnings of system headers it left out, on stderr. One file
	# a process: with several, clang-tidy 14 loses track of va_start(). Nine
	# tenths of the time are the paths that the analyzer follows: how many
	# is limited, but for the long run ("deep").
	log=$build/meson-logs/clang-tidy.txt
	nodes=30000
	[ "${3-}" != deep ] || nodes=225000
	grep -o '"file": "[^"]*\.c"' "$build/compile_commands.json" |
		cut -d'"' -f4 | grep -E '/(src|tools)/' | sort -u |
		(cd "$build" && xargs -n 1 -P 2 clang-tidy -p . --quiet \
			--extra-arg=-Xclang --extra-arg=-analyzer-config \
			--extra-arg=-Xclang --extra-arg=max-nodes=$nodes) \
		2>"$log" || { cat "$log"; exit 1; }
	;;
headers)
	# A header compiles alone, whatever was included before it.
	files '*.h' | grep '^src/' | while read -r header; do
		"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -Isrc \
			-fsyntax-only -x c "$header" || exit 1
	done
	;;
pinning)
	# Nothing keeps memory in RAM but some of NOPIN_REG, which is nic/pins.c.
	how='mlock|MLOCK|MAP_LOCKED|MCL_|ZEROCOPY|io_uring|IORING|os_pin\>'
	if grep -rnE "$how" src |
		grep -vE '^src/os/(os\.h|pin\.c|sim_pin\.c):|^src/nic/pins\.[ch]:'; then
		echo "memory is locked here"
		exit 1
	fi
	;;
scripts)
	# Shell and Python parse, and are executable where they say #!.
	files '*' | while read -r file; do
		read -r first <"$file" || continue
		case $first in
		'#!/bin/sh'*) sh -n "$file" ;;
		'#!/bin/bash'* | '#!/usr/bin/env bash'*) bash -n "$file" ;;
		'#!/usr/bin/python3'*)
			python3 -c 'import ast, sys
ast.parse(open(sys.argv[1]).read(), sys.argv[1])' "$file" ;;
		*) continue ;;
		esac
		[ -x "$file" ] || { echo "$file: not executable"; exit 1; }
	done
	;;
*)
	echo "lint.sh: no check '$what'" >&2
	exit 2
	;;
esac
