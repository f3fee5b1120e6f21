#!/bin/sh
# e2b_process.sh - processes as E2B clients start, follow and end them.
. "$(dirname "$0")/daemon.lib"

py() { python3 "$here/process.py" "$@"; }
sandbox() {
	api POST /v2/sandboxes '{"templateID":"base","timeout":120}'
	is "$code" 201 "$body"
	box=$(get .sandboxID) token=$(get .envdAccessToken)
	export box token
}
shared() { # one sandbox for all tests that leave nothing in it
	[ -s ../sandbox ] || { sandbox && echo "$box $token" >../sandbox; }
	read -r box token <../sandbox
	export box token
}
in_shared() { shared && py "$@" || fail "$1"; }

output_precedes_the_end_event_which_has_the_exit_status() { in_shared output_and_exit; }
output_of_any_bytes_arrives_unchanged() { in_shared many_bytes; }
a_process_has_the_home_and_variables_of_its_user() { in_shared surroundings; }
cwd_is_absolute_or_below_home_and_must_exist() { in_shared folders; }
stdin_is_open_unless_the_request_disables_it() { in_shared standard_input; }
writing_stdin_waits_for_a_process_that_does_not_read() { in_shared input_that_is_not_read; }
streamed_stdin_is_accepted_and_an_invalid_stream_rejected() { in_shared input_stream; }
a_running_process_is_listed_with_pid_and_command() { in_shared listing; }
a_signal_is_sent_only_to_the_process_itself() { in_shared signals; }
a_child_that_holds_the_output_open_delays_the_end_event() { in_shared streams_to_their_end; }
a_timeout_of_start_ends_the_process_and_of_connect_only_the_stream() { in_shared timeouts; }
all_followers_get_the_output_and_a_late_one_gets_the_end() { in_shared followers; }
a_follower_that_connects_during_the_exit_gets_the_end() { in_shared late_followers; }
a_client_disconnect_kills_no_process() { in_shared a_client_disconnect_kills_no_process; }
a_client_that_does_not_read_slows_the_process_down() { in_shared slow_reader; }
a_silent_stream_gets_keepalives() { in_shared keepalives; }
a_terminal_has_a_size_is_resized_and_ends() { in_shared terminal; }
a_hundred_simultaneous_processes_all_run() { in_shared hundred; }
invalid_requests_get_connect_error_codes() { in_shared nonsense; }

every_process_request_needs_the_sandbox_token() {
	shared
	api POST /process.Process/List '{}' -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 49983'
	is "$code $(get .code)" "401 401"
	api POST /process.Process/List '{}' -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 49983' \
		-H "X-Access-Token: ${token}0"
	is "$code $(get .code)" "401 401"
	api POST /process.Process/Start '{}' -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 49983' \
		-H "X-Access-Token: $token"
	is "$code" 415
}

envd() { # METHOD PATH [CURL OPTION...]
	m=$1 p=$2
	shift 2
	api "$m" "$p" '' -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 49983' -H "X-Access-Token: $token" "$@"
}

health_metrics_and_envs_are_answered() {
	shared
	envd GET /health
	is "$code" 204
	envd GET /metrics
	is "$code" 200 "$body"
	is "$(get '[.ts > 1e9, .cpu_count >= 1, .cpu_used_pct >= 0, .mem_used > 0, .mem_total >= .mem_used,
		.mem_total_mib > 0, .mem_used_mib >= 0, .mem_cache >= 0, .disk_total > 0, .disk_used >= 0] | all')" true "$body"
	envd GET /envs
	is "$code $(get type)" "200 object"
	envd POST /init
	is "$code $(get .code)" "404 404"
	envd GET /nowhere
	is "$code $(get .code)" "404 404"
	token=wrong
	for path in /metrics /envs; do
		envd GET $path
		is "$code $(get .code)" "401 401" $path
	done
}

cors_allows_any_origin_with_a_token() {
	shared
	envd OPTIONS /process.Process/Start -H 'Origin: https://page.example' \
		-H 'Access-Control-Request-Method: POST' -H 'Access-Control-Request-Headers: x-access-token, content-type'
	is "$code" 204 "$body"
	grep -qi '^access-control-allow-origin: \*' head || fail "$(cat head)"
	grep -qi '^access-control-allow-headers: x-access-token, content-type' head || fail "$(cat head)"
	envd GET /envs -H 'Origin: https://page.example'
	is "$code" 200
	grep -qi '^access-control-allow-origin: \*' head || fail "$(cat head)"
	token=wrong
	envd GET /envs -H 'Origin: https://page.example'
	is "$code" 401
}

the_end_of_a_sandbox_aborts_its_streams() {
	sandbox
	py box_ends >said &
	reader=$!
	printed() { grep -q here said; }
	soon printed
	api DELETE "/sandboxes/$box"
	is "$code" 204 "$body"
	wait $reader
	is "$(tail -1 said)" cut
	api GET /health '{}' -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 49983'
	is "$code" 502
}

processes_are_found_after_a_server_restart() {
	sandbox
	pid=$(py outlives)
	old=$(server_pid)
	kill -9 "$old"
	another() { new=$(server_pid) && [ "$new" ] && [ "$new" != "$old" ] && api GET /healthz && [ "$code" = 200 ]; }
	soon another
	is "$(py outlives "$pid")" followed
}

run_daemon_tests
