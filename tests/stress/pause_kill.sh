#!/bin/sh
# pause_kill.sh - kill -9 of every process at random moments of pauses to the disk and of resumes: pause_kill.py. `make chaos-pause`.
# KILLS (30): how often. SEED repeats a run.
libs=$(cd "$(dirname "$0")/../system" && pwd)
. "$libs/daemon.lib"
[ "${ATOLL_TIER:-container}" = container ] || { echo "1..0 # SKIP only boxes without an engine are captured with their programs"; exit 0; }
need_daemon
export url key state supervisor work KILLS="${KILLS:-30}"
/usr/bin/python3 "$libs/../stress/pause_kill.py"
