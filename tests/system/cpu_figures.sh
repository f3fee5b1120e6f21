#!/bin/sh
# cpu_figures.sh - CPU time is that of the cgroup of a box in records, stats, E2B metrics, usage and quotas.
# Programs use an amount of CPU time, not of wall time, so that a busy machine changes nothing.
. "$(dirname "$0")/daemon.lib"

# burn SECONDS FILE: a daemonised process uses that CPU time, then creates FILE; the run does not wait for it.
burner='burn() { setsid -f python3 -c "
import os, sys, time
while time.process_time() < $1: pass
os.close(os.open(sys.argv[1], os.O_CREAT))" "$2" </dev/null >/dev/null 2>&1; }; done_with() { while [ ! -e "$1" ]; do sleep 0.02; done; }'

# run_json COMMAND: the body of a run of it.
run_json() { jq -nc --arg c "$1" '{command: $c, timeout_ms: 60000}'; }
# at_least A B, near A B: numbers; near: B is A within 2 %, or 20 ms.
at_least() { awk "BEGIN { exit !($1 >= $2) }" || fail "$1 is less than $2${3:+: $3}"; }
below() { awk "BEGIN { exit !($1 < $2) }" || fail "$1 is not below $2${3:+: $3}"; }
near() { awk "BEGIN { d = $1 - $2; d = d < 0 ? -d : d; exit !(d <= 0.02 * $2 || d <= 0.02) }" || fail "$1 is not $2${3:+: $3}"; }

# kernel_cpu BOX: seconds, as /sys/fs/cgroup has it.
kernel_cpu() {
	pid=$("$ATOLL" ps --local --json | jq -r --arg b "$1" 'first(.. | objects | select(.id? == $b)).pid')
	if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
		at=/sys/fs/cgroup$(sed -n 's/^0:://p' "/proc/$pid/cgroup")
		sed -n 's/^usage_usec //p' "$at/cpu.stat" | awk '{ print $1 / 1e6 }'
	else
		line=$(grep -E '^[0-9]+:([a-z_,]*,)?cpuacct(,[a-z_,]*)?:' "/proc/$pid/cgroup")
		mount=$(awk '$3 == "cgroup" && $4 ~ /(^|,)cpuacct(,|$)/ { print $2; exit }' /proc/self/mounts)
		awk '{ print $1 / 1e9 }' "$mount${line#*:*:}/cpuacct.usage"
	fi
}
used_ms() { api GET /v1/usage && get .usage.compute_ms_this_month; }

the_cpu_time_of_a_run_includes_unreaped_children() {
	api POST /v1/run "$(run_json "$burner; burn 0.4 /tmp/d; done_with /tmp/d; exit 0")"
	is "$code/$(get .exit_code)" 200/0 "$body"
	is "$(get .evidence.cpu_scope)" box
	at_least "$(get .cpu_s)" 0.4
	below "$(get .cpu_s)" 1.2
}
the_cpu_time_of_a_killed_run_includes_its_children() {
	api POST /v1/run '{"command":"for i in 1 2 3; do (while :; do :; done) & done; wait","timeout_ms":60000,"limits":{"cpu_ms":500}}'
	is "$(get .cause)" cpu "$body"
	at_least "$(get .cpu_s)" 0.5
}
the_cpu_time_of_a_reused_cgroup_starts_at_0() {
	api POST /v1/run "$(run_json "$burner; burn 0.4 /tmp/d; done_with /tmp/d")"
	at_least "$(get .cpu_s)" 0.4
	for i in 1 2 3 4 5 6 7 8; do
		api POST /v1/run '{"command":"true"}'
		below "$(get .cpu_s)" 0.3 "run $i"
	done
	api POST /v1/run '{"language":"python","code":"print(1)"}'
	below "$(get .cpu_s)" 0.4
}
all_cpu_figures_agree_with_the_kernel() {
	new_box
	before=$(used_ms)
	api POST "/v1/boxes/$box/execs" "$(run_json "$burner; burn 0.4 /tmp/1; burn 0.4 /tmp/2; done_with /tmp/1; done_with /tmp/2")"
	first=$(get .cpu_s)
	at_least "$first" 0.8 "$body"
	# CPU time of background processes of the first exec is not counted for the second.
	api POST "/v1/boxes/$box/execs" "$(run_json "$burner; burn 0.5 /tmp/3; true")"
	api POST "/v1/boxes/$box/execs" "$(run_json "$burner; done_with /tmp/3")"
	now=$(kernel_cpu "$box")
	at_least "$now" 1.3
	api GET "/v1/boxes/$box/stats"
	near "$(get '.cpu.us / 1e6')" "$now" stats
	near "$("$ATOLL" ps --local --json | jq -r --arg b "$box" '.. | objects | select(.id? == $b) | .cpu_us / 1e6')" "$now" ps
	api DELETE "/v1/boxes/$box"
	is "$code" 204
	near "$(awk "BEGIN { print ($(used_ms) - $before) / 1000 }")" "$now" usage
}
e2b_metrics_show_cpu_use_of_a_busy_box() {
	api POST /sandboxes '{"templateID":"base","timeout":60}'
	is "$code" 201 "$body"
	box=$(get .sandboxID)
	api POST "/v1/boxes/$box/execs" "$(run_json "$burner; burn 0.4 /tmp/1; done_with /tmp/1")"
	api GET "/sandboxes/$box/metrics"
	at_least "$(get '[.[].cpuUsedPct] | max')" 0.1 "$body"
}
batch_items_count_the_cpu_time_of_their_boxes() {
	before=$(used_ms)
	jq -nc --arg c "$burner; burn 0.4 /tmp/d; done_with /tmp/d" '{command: $c}' >items
	curl -sS -N --max-time 120 -H "X-API-Key: $key" --data-binary @items -o events "$url/v1/batch"
	at_least "$(jq -r 'select(.type == "result").cpu_ms' <events)" 400 "$(cat events)"
	at_least "$(($(used_ms) - before))" 400
}
the_cpu_quota_counts_background_processes() {
	api PUT /v1/teams/miners '{"compute_ms_per_month":600}'
	api POST /v1/keys '{"name":"owner","role":"editor","team":"miners"}'
	key=$(get .key)
	refused=0
	for i in 1 2 3; do
		api POST /v1/run "$(run_json "$burner; burn 0.4 /tmp/d; done_with /tmp/d; exit 0")"
		[ "$code" = 200 ] || break
	done
	is "$code" 429 "after $i runs: $body"
	is "$i" 3
	has "$body" 'too much computing this month'
}

run_daemon_tests
