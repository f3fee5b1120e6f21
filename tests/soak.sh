#!/bin/sh
# soak.sh - the stress test, large and again and again: tests/soak.sh [MINUTES] (60). Needs root.
set -eu
cd "$(dirname "$0")/.."
minutes=${1:-60}
end=$(($(date +%s) + minutes * 60)) round=0
while [ "$(date +%s)" -lt "$end" ]; do
	round=$((round + 1))
	echo "round $round, $(((end - $(date +%s)) / 60)) minutes to go"
	STRESS_BOXES=${STRESS_BOXES:-5000} STRESS_KILLS=${STRESS_KILLS:-200} build/stress
done
