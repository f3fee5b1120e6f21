#!/bin/sh
# day.sh [RUNS] - RUNS (2000) runs of 20 teams while the server and the keeper are killed every few seconds; then the
# reports of usage must equal the records, and the boxes and batches, to the last unit; the figures count each record,
# each record has one receipt in a complete chain, and each event of a run has arrived at a webhook. See day.py.
libs=$(cd "$(dirname "$0")/../system" && pwd)
runs=${1:-2000} && set --
. "$libs/daemon.lib"
export ATOLL_RATES_CPU_SECOND=0.000014 ATOLL_RATES_MEMORY_GIB_SECOND=0.0000045 ATOLL_RATES_CURRENCY=EUR
export ATOLL_HISTORY_SIZE=none ATOLL_QUOTA_BOXES=1000
export ATOLL_OUTBOUND_ALLOW=127.0.0.1/32
/usr/bin/python3 "$libs/../stress/day_receiver.py" "$work/arrived" >"$work/receiver" &
receiver=$!
finish_day() {
	kill $receiver 2>/dev/null
	finish_daemon
}
trap finish_day EXIT
soon test -s "$work/receiver"
DAY_RECEIVER=$(cat "$work/receiver") DAY_ARRIVED=$work/arrived DAY_WORK=$work
export DAY_RECEIVER DAY_ARRIVED DAY_WORK
need_daemon
DAY_SUPERVISOR=$(cat "$work/supervisor")
export DAY_SUPERVISOR
/usr/bin/python3 "$libs/../stress/day.py" "$runs"
