#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# lint.sh WHAT BUILD [deep|new]: one static check of the whole tree, or (new) of what
# the commits of the last day changed. Exits with 77 where the tool is not installed.
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

# touched: of the file names on standard input those that the commits of the day before
# the newest one touched, or that differ from it
touched() {
	day=$(($(git log -1 --format=%ct) - 86400))
	{ git log --since="$day" --name-only --format=
		git diff --name-only HEAD; } | sort -u >"$1"
	sed "s|^$PWD/||" | { grep -Fx -f "$1" || true; } | sed "s|^|$PWD/|"
}

case $what in
clang-format)
	# Versions differ: one is the judge, of layout as of what is tidy.
	need clang-format-14
	files '*.[ch]' | xargs -n 100 -P 2 clang-format-14 --dry-run --Werror || {
		echo "try: make format"
		exit 1
	}
	;;
summaries)
	# The comment of a function begins with a verb: what the function does.
	tests/static/summaries.py src
	;;
cppcheck)
	need cppcheck
	# Configurations other than ours (-D) are nobody's. "high = x, from = x"
	# is how two cursors start. That it looks at some branches only is a choice.
	cppcheck -q -j 2 --std=c11 --platform=unix64 --inline-suppr \
		--enable=warning,performance,portability \
		--error-exitcode=1 --suppress=duplicateAssignExpression \
		--suppress=normalCheckLevelMaxBranches \
		--cppcheck-build-dir="$build/meson-private" \
		-D__x86_64__ -D__linux__ -Isrc src tools
	;;
clang-tidy)
	need clang-tidy-14
	# Only what this build compiles has known flags. --quiet still prints
	# how many warnings of system headers it left out, on stderr. One file
	# a process: with several, clang-tidy 14 loses track of va_start(). Nine
	# tenths of the time are the paths that the analyzer follows: how many
	# is limited, but for the long run ("deep").
	log=$build/meson-logs/clang-tidy.txt
	nodes=30000
	[ "${3-}" != deep ] || nodes=225000
	only=cat
	[ "${3-}" != new ] || only="touched $build/meson-logs/touched.txt"
	grep -o '"file": "[^"]*\.c"' "$build/compile_commands.json" |
		cut -d'"' -f4 | grep -E '/(src|tools)/' | sort -u |
		sed "s|^\.\./|$PWD/|" | $only |
		(cd "$build" && xargs -r -n 1 -P 2 clang-tidy-14 -p . --quiet \
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
		grep -vE '^src/os/(pages\.h|pin\.c):|^src/nic/pins\.[ch]:'; then
		echo "memory is locked here"
		exit 1
	fi
	;;
decisions)
	# What a comment cites of doc/decisions.md is there.
	files '*.[ch]' '*.def' '*.pml' '*.py' | xargs grep -hoE \
		'design (D[0-9]+|§[0-9]+)(, D[0-9]+)*|\<I[1-9]\>' |
		grep -oE '(D|§|I)[0-9]+' | sort -u | while read -r cited; do
		grep -qE "^(## |- \*\*)$cited[.* ]" doc/decisions.md || {
			echo "$cited is not in doc/decisions.md"
			exit 1
		}
	done
	;;
inventory)
	# All that nopin.h has is listed, and nothing that it has not.
	declared=$(grep -oE '\<nopin_[a-z_]+\(' src/ext/nopin.h | tr -d '(' | sort -u)
	listed=$(grep -oE '`nopin_[a-z_]+\(\)`' doc/beyond-verbs.md | tr -d '`()' | sort -u)
	[ "$declared" = "$listed" ] || {
		echo "doc/beyond-verbs.md and src/ext/nopin.h differ:"
		printf '%s\n' "$declared" "$listed" | sort | uniq -u
		exit 1
	}
	;;
glossary)
	# Each word is used in the files that own it.
	grep '^| ' doc/glossary.md | sed 1d | while IFS='|' read -r _ words _ owners _; do
		for owner in $(echo "$owners" | tr -d ,); do
			echo "$words" | tr ',' '\n' | while read -r word; do
				grep -qi -- "$word" "$owner" || {
					echo "doc/glossary.md: no '$word' in $owner"
					exit 1
				}
			done || exit 1
		done
	done
	;;
clocks)
	# No test is decided by how long something takes: who reads a clock says
	# what for.
	reads='clock_gettime|os_now\(|clock_ns\(|host_now\(|monotonic\(|time\(NULL'
	reads="$reads|gettimeofday|perf_counter"
	listed=$(sed 's/#.*//' tests/clocks.txt | awk 'NF { print $1 }')
	bad=$(grep -rlE "$reads" tests --include=*.c --include=*.h --include=*.py |
		while read -r file; do
			for pattern in $listed; do
				# shellcheck disable=SC2254
				case $file in $pattern) continue 2 ;; esac
			done
			echo "$file"
		done)
	[ -z "$bad" ] || {
		echo "$bad" | sed 's/$/: reads a clock; tests\/clocks.txt does not say why/'
		exit 1
	}
	;;
scripts)
	# Shell and Python parse, and are executable where they say #!.
	pythons=
	for file in $(files '*' | xargs grep -lIm1 '^#!/'); do
		read -r first <"$file" || continue
		case $first in
		'#!/bin/sh'*) sh -n "$file" ;;
		'#!/bin/bash'* | '#!/usr/bin/env bash'*) bash -n "$file" ;;
		'#!/usr/bin/python3'*) pythons="$pythons $file" ;;
		*) continue ;;
		esac
		[ -x "$file" ] || { echo "$file: not executable"; exit 1; }
	done
	python3 -c 'import ast, sys
for name in sys.argv[1:]:
    ast.parse(open(name).read(), name)' $pythons
	;;
*)
	echo "lint.sh: no check '$what'" >&2
	exit 2
	;;
esac
