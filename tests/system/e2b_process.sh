#!/bin/sh
# e2b_process.sh - programs as E2B's clients start, follow and end them.
. "$(dirname "$0")/daemon.lib"

py() { python3 "$here/process.py" "$@"; }
sandbox() {
	api POST /v2/sandboxes '{"templateID":"base","timeout":120}'
	is "$code" 201 "$body"
	box=$(get .sandboxID) token=$(get .envdAccessToken)
	export box token
}
shared() { # one sandbox for those who leave nothing behind
	[ -s ../sandbox ] || { sandbox && echo "$box $token" >../sandbox; }
	read -r box token <../sandbox
	export box token
}
in_shared() { shared && py "$@" || fail "$1"; }

output_comes_before_the_end_and_the_end_says_how() { in_shared output_and_exit; }
every_byte_comes_through() { in_shared many_bytes; }
a_program_has_its_user_home_and_variables_and_no_one_elses() { in_shared surroundings; }
a_folder_is_absolute_or_begins_at_home_and_must_be_there() { in_shared folders; }
input_is_open_unless_it_is_refused() { in_shared standard_input; }
input_that_nobody_reads_holds_its_writers() { in_shared input_that_is_not_read; }
a_stream_of_input_is_taken_and_a_broken_one_refused() { in_shared input_stream; }
a_running_program_is_listed_with_its_number_and_words() { in_shared listing; }
a_signal_is_for_that_program_alone_and_ends_it_at_once() { in_shared signals; }
a_child_that_holds_the_output_delays_the_end() { in_shared streams_to_their_end; }
a_timeout_ends_the_program_or_only_who_follows() { in_shared timeouts; }
all_who_follow_hear_it_and_who_comes_late_hears_the_end() { in_shared followers; }
who_comes_while_it_ends_hears_the_end() { in_shared late_followers; }
who_leaves_kills_nobody() { in_shared who_leaves_kills_nobody; }
who_does_not_read_slows_the_program_down() { in_shared slow_reader; }
a_silent_stream_says_that_it_lives() { in_shared keepalives; }
a_terminal_has_a_size_and_another_and_ends() { in_shared terminal; }
a_hundred_at_once_all_run() { in_shared hundred; }
nonsense_is_refused_in_the_protocols_own_words() { in_shared nonsense; }

without_its_token_nobody_does_anything() {
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

the_small_questions_have_answers() {
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

a_page_of_any_origin_may_ask_with_a_token() {
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

a_box_that_ends_cuts_its_streams() {
	sandbox
	py box_ends >said &
	reader=$!
	heard() { grep -q here said; }
	soon heard
	api DELETE "/sandboxes/$box"
	is "$code" 204 "$body"
	wait $reader
	is "$(tail -1 said)" cut
	api GET /health '{}' -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 49983'
	is "$code" 502
}

what_was_started_is_found_again_by_another_front() {
	sandbox
	pid=$(py outlives)
	old=$(front)
	kill -9 "$old"
	another() { new=$(front) && [ "$new" ] && [ "$new" != "$old" ] && api GET /healthz && [ "$code" = 200 ]; }
	soon another
	is "$(py outlives "$pid")" followed
}

run_daemon_tests
