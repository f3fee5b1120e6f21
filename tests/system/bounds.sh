#!/bin/sh
# bounds.sh - the maximum limits of one box and of all boxes: every API rejects more and names the setting.
. "$(dirname "$0")/daemon.lib"

as() { (key=$1; shift; "$@"; echo "$code" >code) || exit 1; code=$(cat code); }
# refuses SETTING VALUE: the last answer rejects VALUE and names SETTING.
refuses() {
	is "$code" 400 "$body"
	has "$(get .error.message)" "$1"
	has "$(get .error.message)" "$2"
}
# parent CONTROLLER FILE_V1 FILE_V2: prints this file of the cgroup of all boxes.
parent() {
	pid=$("$ATOLL" ps --local --json | jq -r --arg b "$box" 'first(.. | objects | select(.id? == $b)).pid')
	if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
		cat "/sys/fs/cgroup$(dirname "$(sed -n 's/^0:://p' "/proc/$pid/cgroup")")/$3"
	else
		line=$(grep -E "^[0-9]+:([a-z_,]*,)?$1(,[a-z_,]*)?:" "/proc/$pid/cgroup")
		mount=$(awk -v c="$1" '$3 == "cgroup" && $4 ~ "(^|,)" c "(,|$)" { print $2; exit }' /proc/self/mounts)
		cat "$mount$(dirname "${line#*:*:}")/$2"
	fi
}

a_box_over_the_maximum_is_rejected_by_every_api() {
	for row in 'mem 1099511627776 max_mem' 'cpu_milli 1024000 max_cpu' "pids $(cat /proc/sys/kernel/pid_max) max_pids" \
		'disk 549755813888000 max_disk' 'files 100000000 max_files'; do
		set -- $row
		api POST /v1/boxes "{\"limits\":{\"$1\":$2}}"
		refuses "limits.$3" "$2"
		api POST /v1/run "{\"command\":\"true\",\"limits\":{\"$1\":$2}}"
		refuses "limits.$3" "$2"
		echo "{\"command\":\"true\",\"limits\":{\"$1\":$2}}" >item
		curl -sS -N --max-time 120 -H "X-API-Key: $key" --data-binary @item -o events "$url/v1/batch"
		is "$(jq -r 'select(.type == "result").cause' <events)" invalid "$(cat events)"
		has "$(cat events)" "limits.$3"
	done
	new_box
	for row in 'mem 1099511627776 max_mem' 'cpu_milli 1024000 max_cpu' "pids $(cat /proc/sys/kernel/pid_max) max_pids"; do
		set -- $row
		api PATCH "/v1/boxes/$box" "{\"limits\":{\"$1\":$2}}"
		refuses "limits.$3" "$2"
	done
	api PATCH "/v1/boxes/$box" '{"limits":{"mem":600000000}}'
	is "$code" 200 "$body"
}
a_key_for_one_box_may_not_change_its_limits() {
	new_box
	api POST /v1/keys "{\"name\":\"only\",\"role\":\"editor\",\"box\":\"$box\"}"
	is "$code" 201 "$body"
	bound=$(get .key)
	as "$bound" api PATCH "/v1/boxes/$box" '{"limits":{"mem":600000000}}'
	is "$code" 403 "$body"
	has "$(get .error.message)" 'bound to one box'
	as "$bound" api PATCH "/v1/boxes/$box" '{"metadata":{"a":"b"}}'
	is "$code" 200 "$body"
}
the_limits_of_all_boxes_together_are_below_those_of_the_host() {
	new_box
	most=$(cat /proc/sys/kernel/pid_max)
	pids=$(parent pids pids.max pids.max)
	[ "$pids" -le $((most / 4 * 3)) ] || fail "$pids of $most processes"
	mem=$(parent memory memory.limit_in_bytes memory.max)
	all=$(awk '/^MemTotal/ { printf "%.0f", $2 * 1024 }' /proc/meminfo)
	[ "$mem" -lt "$all" ] || fail "$mem of $all bytes"
	weight=$(parent cpu cpu.shares cpu.weight)
	[ "$weight" = 256 ] || [ "$weight" = 25 ] || fail "CPU weight $weight: the daemon would wait for programs in boxes"
}
a_team_has_a_default_box_quota() {
	api PUT /v1/teams/other '{}'
	is "$(get .quotas.boxes)" 256 "$body"
	api PUT /v1/teams/other '{"boxes":-1}'
	is "$(get .quotas.boxes)" null
}
disks_that_together_exceed_the_host_are_rejected() {
	half=$(df -B1 --output=avail "$state" | awk 'NR == 2 { printf "%.0f", $1 * 0.45 }')
	[ "$half" -lt 900000000000 ] || skip "the disk is larger than any box may have"
	for i in 1 2; do
		api POST /v1/boxes "{\"limits\":{\"disk\":$half}}"
		is "$code" 201 "disk $i: $body"
	done
	api POST /v1/boxes "{\"limits\":{\"disk\":$half}}"
	is "$code" 429 "$body"
	has "$body" 'does not fit'
}
sizes_and_times_have_the_same_units_in_api_and_command_line() {
	api POST /v1/run '{"command":"true","timeout_ms":"30s","limits":{"mem":"256M","disk":"64M","cpu_ms":"2s"}}'
	is "$code" 200 "$body"
	is "$(get '.limits | [.mem, .disk, .wall_ms, .cpu_ms] | join(",")')" "268435456,67108864,30000,2000"
	api POST /v1/boxes '{"lifetime_ms":"2m","limits":{"mem":"1T"}}'
	refuses limits.max_mem 1099511627776
	for bad in '"512X"' '""' '"-1M"' '"9999999999999T"' '[]' '1.5' '"ä"'; do
		api POST /v1/boxes "{\"limits\":{\"mem\":$bad}}"
		is "$code" 400 "$bad: $body"
		has "$(get .error.message)" limits.mem
	done
	api POST /v1/boxes '{"limits":{"pids":"512"}}'
	has "$(get .error.message)" 'must be an integer'
	printf '{"command":"true","timeout_ms":"30s","limits":{"mem":"256M"}}\n' >item
	curl -sS -N --max-time 120 -H "X-API-Key: $key" --data-binary @item -o events "$url/v1/batch"
	is "$(jq -r 'select(.type == "result").verdict' <events)" passed "$(cat events)"
}
a_command_has_a_default_wall_limit_unless_it_runs_in_the_background() {
	api POST /v1/run '{"command":"true"}'
	is "$(get .limits.wall_ms)" 300000 "$body"
	api POST /v1/run '{"language":"python","code":"1"}'
	is "$(get .limits.wall_ms)" 30000 "$body"
	new_box
	api POST "/v1/boxes/$box/execs" '{"command":"true"}'
	is "$(get .limits.wall_ms)" 300000 "$body"
	api POST "/v1/boxes/$box/execs" '{"command":"true","background":true}'
	api GET "/v1/boxes/$box/execs/$(get .id)/wait"
	is "$(get .limits.wall_ms)" null "$body"
}
variables_outside_the_env_field_are_rejected_with_a_hint() {
	new_box
	api PUT "/v1/boxes/$box/env" '{"A":"1"}'
	is "$code" 400
	has "$(get '.error.hints[0]')" '{"env": {'
}
the_number_of_boxes_of_the_host_is_bounded() {
	while [ "${n:=0}" -lt 12 ] && api POST /v1/boxes '{}' && [ "$code" = 201 ]; do n=$((n + 1)); done
	is "$code" 429 "$body"
	has "$body" limits.max_boxes
}

export ATOLL_MAX_BOXES=12
run_daemon_tests
