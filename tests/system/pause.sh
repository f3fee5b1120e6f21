#!/bin/sh
# pause.sh - a box that stands still: its programs, its time, its end, and whoever dies meanwhile.
. "$(dirname "$0")/daemon.lib"

# counting: sets box, exec: a program that counts into a file, ten times a second.
counting() {
	new_box "${1:-{\}}"
	api POST "/v1/boxes/$box/execs" '{"command":["sh","-c","echo $$ >pid; i=0; while :; do i=$((i+1)); echo $i >n.new; mv n.new n; sleep 0.05; done"],"background":true}'
	soon counted 2
}
count() { api GET "/v1/boxes/$box/files?path=n" && [ "$code" = 200 ] && [ "$body" -ge 0 ] && n=$body; }
counted() { count && [ "$n" -ge "$1" ]; }
state_is() { api GET "/v1/boxes/$box" && [ "$(get .state)" = "$1" ]; }
read_file() { api GET "/v1/boxes/$box/files?path=$1" && echo "$body"; }

nothing_happens_in_a_paused_box_and_it_goes_on_where_it_was() {
	counting
	pid=$(read_file pid)
	count
	before=$n
	api POST "/v1/boxes/$box/pause" '{}'
	is "$code" 200 "$body"
	is "$(get .state)" paused
	sleep 1 # twenty turns of its loop
	api POST "/v1/boxes/$box/resume"
	is "$code" 200 "$body"
	is "$(get .state)" running
	count
	[ "$n" -lt $((before + 15)) ] || fail "it counted from $before to $n while paused"
	soon counted $((n + 3))
	is "$(read_file pid)" "$pid"
	api DELETE "/v1/boxes/$box"
	is "$code" 204
}

who_needs_a_running_box_hears_that_it_is_paused() {
	new_box
	api POST "/v1/boxes/$box/pause"
	is "$code" 200 "$body"
	api POST "/v1/boxes/$box/execs" '{"command":["true"]}'
	is "$code" 409 "$body"
	is "$(get .error.code)" paused
	api GET "/v1/boxes/$box/files?path=x"
	is "$code" 409 "$body"
	api POST "/v1/boxes/$box/pause"
	is "$code" 200 "$body"
	api GET "/v1/boxes?state=paused"
	is "$(get '.items[0].id')" "$box"
	api PATCH "/v1/boxes/$box" '{"name":"sleeper"}'
	is "$code" 200 "$body"
	api POST "/v1/boxes/sleeper/resume"
	is "$code" 200 "$body"
	api POST "/v1/boxes/$box/resume"
	is "$code" 200 "$body"
	api DELETE "/v1/boxes/$box"
}

a_paused_box_can_be_deleted() {
	counting
	api POST "/v1/boxes/$box/pause"
	api DELETE "/v1/boxes/$box"
	is "$code" 204 "$body"
	api GET "/v1/boxes/$box"
	is "$(get .state)" gone
}

without_memory_programs_end_and_files_stay() {
	counting
	api POST "/v1/boxes/$box/pause" '{"memory":false}'
	is "$code" 200 "$body"
	is "$(get .state)" kept
	api POST "/v1/boxes/$box/resume"
	is "$(get .state)" running
	api GET "/v1/boxes/$box"
	is "$(get .running)" 0
	[ "$(read_file n)" -ge 2 ] || fail "its file is gone"
	api DELETE "/v1/boxes/$box"
}

its_lifetime_stands_still_and_begins_again() {
	new_box '{"lifetime_ms":1500,"on_timeout":"kill"}'
	api POST "/v1/boxes/$box/pause"
	is "$code" 200 "$body"
	sleep 2
	state_is paused || fail "it did not outlive its time: $body"
	api POST "/v1/boxes/$box/resume"
	is "$(get .state)" running
	soon state_is gone
}

a_box_can_be_paused_when_its_time_is_over() {
	counting '{"lifetime_ms":1000,"on_timeout":"pause"}'
	soon state_is paused
	api POST "/v1/boxes/$box/resume"
	is "$(get .state)" running
	count
	soon counted $((n + 2))
	api DELETE "/v1/boxes/$box"
}

a_paused_box_goes_when_its_retention_is_over() {
	new_box '{"retention_ms":500}'
	api POST "/v1/boxes/$box/pause"
	is "$(get .state)" paused
	soon state_is gone
}

a_front_that_dies_leaves_it_paused() {
	counting
	pid=$(read_file pid)
	api POST "/v1/boxes/$box/pause"
	front=$(pgrep -P "$(cat "$work/warden")" | head -1)
	fronts=$(pgrep -P "$(cat "$work/warden")" -d ' ')
	for p in $fronts; do
		case $(tr '\0' ' ' <"/proc/$p/cmdline") in *front*) front=$p ;; esac
	done
	kill -9 "$front"
	soon state_is paused
	api POST "/v1/boxes/$box/execs" '{"command":["true"]}'
	is "$code" 409 "$body"
	api POST "/v1/boxes/$box/resume"
	is "$code" 200 "$body"
	count
	soon counted $((n + 2))
	is "$(read_file pid)" "$pid"
	api GET "/v1/boxes/$box"
	is "$(get .running)" 1
	api DELETE "/v1/boxes/$box"
}

a_keeper_that_dies_leaves_it_paused() {
	counting
	api POST "/v1/boxes/$box/pause"
	keeper=$("$ATOLL" doctor --json | grep -o 'pid [0-9]*' | head -1 | cut -d ' ' -f 2)
	kill -9 "$keeper"
	api POST "/v1/boxes/$box/resume"
	is "$code" 200 "$body"
	count
	soon counted $((n + 2))
	api POST "/v1/boxes/$box/pause"
	is "$code" 200 "$body"
	keeper=$("$ATOLL" doctor --json | grep -o 'pid [0-9]*' | head -1 | cut -d ' ' -f 2)
	kill -9 "$keeper"
	api DELETE "/v1/boxes/$box"
	is "$code" 204 "$body"
}

# ---- E2B's door ----
sandbox() {
	api POST /v2/sandboxes "${1:-{\"templateID\":\"base\"\}}"
	is "$code" 201 "$body"
	box=$(get .sandboxID)
}

their_pause_says_so_once() {
	sandbox
	api POST "/sandboxes/$box/pause"
	is "$code" 204 "$body"
	state_is paused || fail "$body"
	api POST "/sandboxes/$box/pause" '{}'
	is "$code" 409 "$body"
	is "$(get .code)" 409
	is "$(curl -sS -o body -w '%{http_code}' -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 49983' "$url/health")" 502
	api DELETE "/sandboxes/$box"
	is "$code" 204 "$body"
	api POST "/sandboxes/$box/pause"
	is "$code" 404 "$body"
}

run_daemon_tests
