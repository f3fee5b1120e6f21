#!/bin/sh
# soak.sh - the stress tests, large and again and again. Needs root.
#
#	tests/soak.sh [keeper|serve|all]       all
#
# SECONDS_EACH (3600) is what each part gets. keeper: build/stress, boxes by the thousand and keepers
# killed. serve: a daemon with SERVE_BOXES (1000) streaming boxes whose processes are killed, round
# after round against one state folder; memory and the size of the store's log are printed after each.
set -eu
cd "$(dirname "$0")/.."
part=${1:-all} each=${SECONDS_EACH:-3600} build=${BUILD:-build}

soak_keeper() {
	end=$(($(date +%s) + each)) round=0
	while [ "$(date +%s)" -lt "$end" ]; do
		round=$((round + 1))
		echo "round $round, $((end - $(date +%s))) seconds to go"
		STRESS_BOXES=${STRESS_BOXES:-5000} STRESS_KILLS=${STRESS_KILLS:-200} "$build/stress"
	done
}

soak_serve() {
	SERVE_BOXES=${SERVE_BOXES:-1000} SERVE_SECONDS=$each ATOLL=$PWD/$build/atoll \
		/usr/bin/python3 tests/stress/serve_test.py
}

case $part in
keeper) soak_keeper ;;
serve) soak_serve ;;
all) soak_keeper && soak_serve ;;
*) sed -n '4s/^#	/usage: /p' "$0" >&2 && exit 2 ;;
esac
