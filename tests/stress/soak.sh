#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# soak.sh PROGRAM NAME: the same for SOAK_SECONDS, or a number of times that
# takes about as long; 10^7 in ten minutes.
set -eu

seconds=${SOAK_SECONDS:-60}
case $2 in
threads | verbs) exec "$1" "$seconds" "$(date +%s)" ;;
cancel) exec "$1" $((seconds * 100)) ;;
handover) exec "$1" $((seconds * 16667)) ;;
esac
