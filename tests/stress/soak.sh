#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# soak.sh PROGRAM NAME: the same for SOAK_SECONDS, or a number of times: handover
# 10^7 times in ten minutes, 360,000 times in one, which is all by itself.
set -eu

seconds=${SOAK_SECONDS:-60}
case $2 in
threads | verbs) exec "$1" "$seconds" "$(date +%s)" ;;
cancel) exec "$1" $((seconds * 100)) ;;
handover) exec "$1" $((seconds * (seconds < 600 ? 6000 : 16667))) ;;
esac
