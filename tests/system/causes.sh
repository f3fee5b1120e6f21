#!/bin/sh
# causes.sh - the CLI, the run record and /metrics report the same cause: one row of the table for each cause.
# (api_causes.sh tests when each cause applies.)
. "$(dirname "$0")/daemon.lib"

# counted FAMILY CAUSE: the current count in /metrics.
counted() {
	curl -sS -H "X-API-Key: $key" "$url/metrics" | sed -n "s/^atoll_$1_ended_total{cause=\"$2\"} //p"
}

# cause | status | what the CLI says | what it advises | flags of new | flags of exec | program
rows() {
	cat <<-'END'
		exit|7|||||sh -c 'exit 7'
		exit|127|cannot execute 'nonsense'|what you bring|||nonsense
		signal|143|ended by SIGTERM||||sh -c 'kill -TERM $$'
		memory|137|memory limit reached: 64 MiB|"mem": 134217728|--mem 64M||python3 -c 'x = bytearray(256 << 20)'
		processes|1|process limit reached: 40|"pids": 80|--pids 40||python3 -c 'while True: __import__("os").fork() or __import__("time").sleep(1000)'
		disk|1|disk limit reached: 8 MiB|"disk": 16777216|--disk 8M||dd if=/dev/zero of=big bs=1M count=32
		disk|1|file limit reached: 500 files|"files": 1000|--files 500||python3 -c 'for i in range(9999): open(str(i), "w")'
		wall|124|time limit reached: 200 ms|"timeout_ms": 1000||--time 200ms|sleep 100
		cpu|137|CPU time limit reached: 300 ms|"cpu_ms": 1000|--cpu-time 300ms||sh -c 'while :; do :; done'
		policy|159|ended by the system call filter|atoll policy|||sh -c 'kill -SYS $$'
		lifetime|137|the box's lifetime was over: 1.5 s|lifetime_ms|--lifetime 1500ms||sleep 100
		idle|137|nothing happened in the box for 1 s|idle_ms|--idle 1s|-d|sleep 100
		operator|137|ended from outside||||sleep 47121
		rollback|137|ended because the box went back to a checkpoint||||sleep 47123
		host|125|the box ended first|atoll doctor|||sleep 47122
	END
}

# What is done to the exec while it runs, for causes that the program alone cannot produce.
meanwhile() {
	case $1 in
	operator)
		soon processes '^sleep 47121'
		"$ATOLL" rm -q "$box"
		;;
	rollback)
		soon processes '^sleep 47123'
		"$ATOLL" checkpoint -q "$box" && "$ATOLL" rollback -q --no-save "$box" >/dev/null
		;;
	host)
		soon processes '^sleep 47122'
		kill -9 "$(ps -o ppid= -p "$(processes '^sleep 47122')" | tr -d ' ')"
		;;
	esac
}

ended_row() {
	api GET "/v1/runs?box=$box&limit=1"
	[ "$(get '.items[0].state')" = exited ]
}

# The program of the row, in a new box, started by the CLI: sets status, err, run.
run_row() {
	# shellcheck disable=SC2086 # flags are words
	box=$("$ATOLL" new -q $5)
	runs=$(counted runs "$1") boxes=$(counted boxes "$1")
	# shellcheck disable=SC2086
	eval "set -- \"$1\" exec $6 \"$box\" -- $7"
	cause=$1
	shift
	"$ATOLL" "$@" >out 2>err &
	cli=$!
	meanwhile "$cause"
	status=0
	wait "$cli" || status=$?
	soon ended_row
	run=$(get '.items[0].id')
	err=$(cat err)
}

# reported CAUSE STATUS SAYS ADVISES: checks CLI, record and metrics.
reported() {
	if [ "$1" != idle ]; then # this exec is in the background: waiting for it would be activity
		is "$status" "$2" "the CLI: $err"
		has "$err" "$3"
		has "$err" "$4"
		[ -z "$3" ] || has "$err" "[exit $2, cause=$1]"
	fi
	api GET "/v1/runs/$run"
	is "$(get '.cause + " " + (.status|tostring)')" "$1 $2" "$body"
	has "$(get .summary)" "$3"
	has "$(get .hint)" "$4"
	lacks "$(get .hint)" "atoll run"
	is "$(counted runs "$1")" $((runs + 1)) "runs that ended of $1"
	has "$("$ATOLL" runs show "$run")" "$3"
	"$ATOLL" runs show "$run" --json | jq -e --arg cause "$1" '.cause == $cause' >/dev/null || fail "atoll runs show"
	has "$("$ATOLL" runs -q --cause "$1" -n 3)" "$run"
}

# For causes that end the box: the box has the same cause.
box_told() {
	case $1 in
	cpu | lifetime | idle | operator | host) ;;
	*)
		"$ATOLL" rm -q "$box"
		return
		;;
	esac
	gone_now() { api GET "/v1/boxes/$box" && [ "$(get .state)" = deleted ]; }
	soon gone_now
	is "$(get .cause)" "$1"
	is "$(counted boxes "$1")" $((boxes + 1)) "boxes that ended of $1"
}

cli_record_and_metrics_report_the_same_cause() {
	rows >table
	seen=
	while IFS='|' read -r cause status_wanted says advises new_flags exec_flags program <&3; do
		run_row "$cause" "$status_wanted" "$says" "$advises" "$new_flags" "$exec_flags" "$program"
		reported "$cause" "$status_wanted" "$says" "$advises"
		box_told "$cause"
		seen="$seen $cause"
	done 3<table
	# Every cause of /metrics has a row, but for "superseded", which needs a lost node (leases.sh).
	seen="$seen superseded"
	for cause in $(curl -sS -H "X-API-Key: $key" "$url/metrics" |
		sed -n 's/^atoll_runs_ended_total{cause="\(.*\)"} .*/\1/p'); do
		has "$seen " " $cause "
	done
}

run_daemon_tests
