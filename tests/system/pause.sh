#!/bin/sh
# pause.sh - paused boxes: their processes, lifetimes and ends, also when server or keeper die.
. "$(dirname "$0")/daemon.lib"

# counting: sets box: a program that counts into a file, twenty times a second.
counting() {
	new_box "${1:-{\}}"
	put_counter
}
put_counter() {
	api POST "/v1/boxes/$box/execs" '{"command":["sh","-c","echo $$ >pid; i=0; while :; do i=$((i+1)); echo $i >n.new; mv n.new n; sleep 0.05; done","sampler-'$$'"],"background":true}'
	soon counted 2
}
count() { api GET "/v1/boxes/$box/files?path=n" && [ "$code" = 200 ] && [ "$body" -ge 0 ] && n=$body; }
counted_outside() { cat "/proc/$(processes "sampler-$$" | head -1)/root/home/user/n"; } # read by the host
counted() { count && [ "$n" -ge "$1" ]; }
state_is() { api GET "/v1/boxes/$box" && [ "$(get .state)" = "$1" ]; }
read_file() { api GET "/v1/boxes/$box/files?path=$1" && echo "$body"; }

processes_of_a_paused_box_are_frozen_and_continue_after_resume() {
	counting
	pid=$(read_file pid)
	api POST "/v1/boxes/$box/pause" '{}'
	is "$code" 200 "$body"
	is "$(get .state)" paused
	counted_outside >before
	sleep 0.7 # more than ten iterations
	is "$(counted_outside)" "$(cat before)" "it counted while paused"
	api POST "/v1/boxes/$box/resume"
	is "$code" 200 "$body"
	is "$(get .state)" running
	count
	soon counted $((n + 3))
	is "$(read_file pid)" "$pid"
	api DELETE "/v1/boxes/$box"
	is "$code" 204
}

a_box_that_forks_constantly_can_be_paused() {
	new_box
	for i in 1 2 3 4 5 6; do
		api POST "/v1/boxes/$box/execs" '{"command":["sh","-c","while :; do /bin/true; /bin/true & done"],"background":true}'
	done
	for i in 1 2 3 4 5 6 7 8; do
		api POST "/v1/boxes/$box/pause"
		is "$code" 200 "$body"
		api POST "/v1/boxes/$box/resume"
		is "$code" 200 "$body"
	done
	api DELETE "/v1/boxes/$box"
}

requests_that_need_a_running_box_are_rejected_while_it_is_paused() {
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
	is "$(get .state)" deleted
}

pausing_without_memory_ends_processes_and_keeps_files() {
	counting
	api POST "/v1/boxes/$box/pause" '{"memory":false}'
	is "$code" 200 "$body"
	is "$(get .state)" stopped
	api POST "/v1/boxes/$box/resume"
	is "$(get .state)" running
	api GET "/v1/boxes/$box"
	is "$(get .running)" 0
	[ "$(read_file n)" -ge 2 ] || fail "its file is gone"
	api DELETE "/v1/boxes/$box"
}

boot_id() { read_file /proc/sys/kernel/random/boot_id; }
each_box_has_its_own_boot_id_until_its_processes_end() {
	new_box
	other=$(boot_id)
	api DELETE "/v1/boxes/$box"
	new_box
	first=$(boot_id)
	echo "$first" | grep -qE '^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$' || fail "$first"
	[ "$first" != "$other" ] || fail "two boxes have one boot id"
	[ "$first" != "$(cat /proc/sys/kernel/random/boot_id)" ] || fail "it is the host's"
	api POST "/v1/boxes/$box/pause" '{}'
	api POST "/v1/boxes/$box/resume"
	is "$(boot_id)" "$first"
	api POST "/v1/boxes/$box/pause" '{"memory":false}'
	api POST "/v1/boxes/$box/resume"
	[ "$(boot_id)" != "$first" ] || fail "it is the same without its programs"
	api DELETE "/v1/boxes/$box"
}

the_lifetime_is_suspended_while_paused_and_restarts_on_resume() {
	paused_in_time() { # a busy machine may need longer than the lifetime
		new_box '{"lifetime_ms":2500,"on_timeout":"kill"}'
		api POST "/v1/boxes/$box/pause"
		[ "$code" = 200 ]
	}
	soon paused_in_time
	sleep 2.8
	state_is paused || fail "it did not outlive its time: $body"
	api POST "/v1/boxes/$box/resume"
	is "$(get .state)" running
	soon state_is deleted
}

a_box_can_be_configured_to_pause_when_its_lifetime_ends() {
	counting '{"lifetime_ms":3000,"on_timeout":"pause"}'
	soon state_is paused
	api POST "/v1/boxes/$box/resume"
	is "$(get .state)" running
	count
	soon counted $((n + 2))
	api DELETE "/v1/boxes/$box"
}

a_paused_box_is_deleted_when_its_retention_ends() {
	new_box '{"retention_ms":500}'
	api POST "/v1/boxes/$box/pause"
	is "$(get .state)" paused
	soon state_is deleted
}

a_box_stays_paused_when_the_server_dies() {
	counting
	pid=$(read_file pid)
	api POST "/v1/boxes/$box/pause"
	kill -9 "$(server_pid)"
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

a_box_stays_paused_when_the_keeper_dies() {
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

# ---- the E2B API ----
sandbox() {
	api POST /v2/sandboxes "${1:-{\"templateID\":\"base\"\}}"
	is "$code" 201 "$body"
	box=$(get .sandboxID)
}

pausing_a_paused_sandbox_is_409() {
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

a_request_during_the_pause_resumes_the_sandbox() {
	sandbox
	for _ in 1 2 3 4 5; do
		curl -sS -o /dev/null -X POST -H "X-API-Key: $key" "$url/sandboxes/$box/pause" &
		api POST "/v2/sandboxes/$box/connect" '{}'
		case $code in 200 | 201) ;; *) fail "$code: $body" ;; esac
		wait
		api POST "/v2/sandboxes/$box/connect" '{}' # the pause may have been done after the connect
		case $code in 200 | 201) ;; *) fail "$code: $body" ;; esac
		state_is running || fail "$body"
	done
}

traffic() { curl -sS --max-time 120 -o body -w '%{http_code}' -H "E2b-Sandbox-Id: $box" -H "E2b-Sandbox-Port: ${1:-49983}" "$url/health"; }

a_sandbox_with_auto_pause_and_auto_resume_is_resumed_by_traffic() {
	sandbox '{"templateID":"base","timeout":1,"autoPause":true,"autoResume":{"enabled":true}}'
	soon state_is paused
	api PATCH "/v1/boxes/$box" '{"lifetime_ms":60000}'
	is "$(traffic)" 204 "$(cat body)"
	state_is running || fail "$body"
	for _ in 1 2 3; do # several simultaneous requests wait for the same resume
		api POST "/sandboxes/$box/pause"
		is "$code" 204 "$body"
		traffic >t.1 &
		one=$!
		traffic >t.2
		wait $one
		is "$(cat t.1 t.2)" 204204
	done
	api DELETE "/sandboxes/$box"
}

connect_resumes_a_sandbox_with_its_processes_or_only_its_files() {
	sandbox '{"templateID":"base","timeout":60}'
	old=$(boot_id)
	put_counter
	api POST "/sandboxes/$box/pause"
	is "$code" 204 "$body"
	api GET "/sandboxes/$box"
	is "$(get .state)" paused "$body"
	api GET "/v2/sandboxes?state=paused"
	is "$(get '.[0].sandboxID')" "$box"
	before=$(get '.[0].startedAt')
	api POST "/v2/sandboxes/$box/connect" '{"timeout":60}'
	is "$code" 201 "$body"
	count
	soon counted $((n + 2))
	is "$(boot_id)" "$old"
	api POST "/v2/sandboxes/$box/connect" '{"timeout":60}'
	is "$code" 200 "$body"
	api GET "/sandboxes/$box"
	is "$(get .state)" running
	[ "$(get .startedAt)" != "$before" ] || fail "its time did not begin again"
	api POST "/sandboxes/$box/pause"
	api POST "/v2/sandboxes/$box/connect" '{"timeout":60,"memory":false}'
	is "$code" 201 "$body"
	[ "$(boot_id)" != "$old" ] || fail "it is as if it had not been rebooted"
	api GET "/v1/boxes/$box"
	is "$(get .running)" 0 "$body"
	count
	old=$(boot_id)
	api POST "/sandboxes/$box/pause" '{"memory":false}'
	is "$code" 204 "$body"
	api GET "/sandboxes/$box"
	is "$(get .state)" paused
	api POST "/sandboxes/$box/resume" '{"timeout":60}'
	is "$code" 201 "$body"
	[ "$(boot_id)" != "$old" ] || fail "it is as if it had not been rebooted"
	api DELETE "/sandboxes/$box"
	is "$code" 204
}

a_sandbox_without_auto_resume_stays_paused() {
	sandbox '{"templateID":"base","timeout":1,"autoPause":true}'
	soon state_is paused
	is "$(traffic)" 502
	is "$(traffic 8000)" 502
	state_is paused || fail "$body"
	api DELETE "/sandboxes/$box"
}

a_sandbox_without_auto_pause_ends_at_its_timeout() {
	sandbox '{"templateID":"base","timeout":1}'
	soon state_is deleted
}

run_daemon_tests
