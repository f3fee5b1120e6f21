#!/bin/sh
# checkpoint_kill.sh - kill -9 of every process at random moments of checkpoints, rollbacks, merges and diffs: tests/stress/checkpoint_kill.py.
# KILLS (20): how often; make chaos-checkpoints does it 1,000 times. SEED repeats a run.
. "$(dirname "$0")/daemon.lib"
[ "${ATOLL_TIER:-container}" = container ] || { echo "1..0 # SKIP only boxes without an engine have checkpoints"; exit 0; }
need_daemon
export url key state supervisor KILLS="${KILLS:-20}"
/usr/bin/python3 "$libs/../stress/checkpoint_kill.py"
