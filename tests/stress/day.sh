#!/bin/sh
# day.sh [RUNS] - RUNS (2000) runs of 20 teams while the server and the keeper are killed every few seconds; then the
# reports of usage must equal the records, and the boxes and batches, to the last unit. See day.py.
libs=$(cd "$(dirname "$0")/../system" && pwd)
runs=${1:-2000} && set --
. "$libs/daemon.lib"
export ATOLL_RATES_CPU_SECOND=0.000014 ATOLL_RATES_MEMORY_GIB_SECOND=0.0000045 ATOLL_RATES_CURRENCY=EUR
export ATOLL_HISTORY_SIZE=none ATOLL_QUOTA_BOXES=1000
need_daemon
DAY_SUPERVISOR=$(cat "$work/supervisor")
export DAY_SUPERVISOR
/usr/bin/python3 "$libs/../stress/day.py" "$runs"
