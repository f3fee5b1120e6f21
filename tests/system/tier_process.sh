#!/bin/sh
# tier_process.sh - the tier process, on a host without user namespaces.
. "$(dirname "$0")/no_namespaces.lib"
export ATOLL_ISOLATION_PROCESS=true ATOLL_ISOLATION_TRUSTED=process ATOLL_ISOLATION_PROVE=false
. "$(dirname "$0")/daemon.lib"

# as_process COMMAND: runs it in a box of the tier. Sets out and err of the program.
as_process() {
	api POST /v1/run "$(jq -n --arg c "$1" '{command: $c, isolation: "process", trust: "trusted"}')"
	is "$code" 200 "$body"
	out=$(get .stdout) err=$(get .stderr)
}
# The last request was rejected, and the line of the tier has this text.
rejected() {
	is "$code" 409 "$body"
	is "$(get .error.code)" isolation_unavailable
	has "$(get '.error.hints[] | select(startswith("process: "))')" "$1"
}

only_a_key_with_the_permission_uses_it_and_only_by_name() {
	permitted=$key key=$ordinary
	api POST /v1/run '{"command": "true", "isolation": "process", "trust": "trusted"}'
	key=$permitted
	rejected "the key may not use it (atoll key new --isolation process)"
	api POST /v1/run '{"command": "true", "isolation": "process"}'
	rejected "code that is generated requires 2"
	for isolation in '"auto"' '{"at_least": "process"}'; do
		api POST /v1/run "{\"command\": \"true\", \"isolation\": $isolation, \"trust\": \"trusted\"}"
		rejected "used only by name"
	done
	api POST /v1/run '{"command": "true"}'
	is "$code" 409 "$body"
	has "$body" "container: this host offers no user-namespace"
	as_process true
	is "$(get '.isolation | "\(.tier) \(.rank) \(.requested)"')" "process 0 process"
	is "$(get '.isolation.features | join(" ")')" "capabilities no-new-privileges system-calls landlock"
}

doctor_and_the_list_of_tiers_explain_it() {
	api GET /v1/tiers
	is "$(get '.items[] | select(.tier == "process") | "\(.offered) \(.platform)"')" "true own-uid"
	is "$(get '.items[] | select(.tier == "container") | .reason')" "this host offers no user-namespace (atoll doctor names the setting)"
	atoll tier list
	has "$out" "process       0"
	atoll doctor
	has "$out" "isolation.process"
	status=0
	ATOLL_RUN=$PWD/other "$ATOLL" keeper 2>err || status=$? # without the permission of the operator
	is "$status" 125
	has "$(cat err)" "or allow the weaker tier process: isolation.process = true"
}

a_program_has_a_folder_and_nothing_else_to_write() {
	echo "a secret of the host" >"$work/secret"
	chmod 644 "$work/secret"
	as_process "pwd; id -u; echo \$TMPDIR \$HOME; echo x >own && cat /home/user/own; cat $work/secret; ls /proc; echo x >/tmp/other; echo x >$work/new"
	place=$(echo "$out" | head -1)
	case $place in /tmp/?????) ;; *) fail "$place" ;; esac
	[ "$(echo "$out" | sed -n 2p)" -gt 65536 ] || fail "the uid is one of the host: $out"
	is "$(echo "$out" | tail -n +3 | tr '\n' ' ')" "$place $place x "
	for name in "$work/secret" /proc /tmp/other "$work/new"; do
		has "$err" "$name"
	done
	[ ! -e /tmp/other ] && [ ! -e "$work/new" ] || fail "a file of the host was made"
	[ ! -e "$place" ] || fail "$place is left"
	api POST /v1/run '{"language": "python", "code": "import socket, os\nprint(os.getcwd())\nsocket.socket()", "isolation": "process", "trust": "trusted"}'
	has "$(get .stderr)" "Operation not permitted"
}

files_and_sessions_work_as_in_other_tiers() {
	process_box
	curl -sS -X PUT -H "X-API-Key: $key" --data-binary 'hello' "$url/v1/boxes/$box/files?path=/home/user/a/b.txt" >/dev/null
	api POST "/v1/boxes/$box/execs" '{"command": "cat a/b.txt /home/user/a/b.txt; sleep 600 & mkdir -p deep/er; touch deep/er/x; chmod 0 deep/er"}'
	is "$(get .stdout)" hellohello "$body"
	api GET "/v1/boxes/$box/files?path=a/b.txt"
	is "$body" hello
	api DELETE "/v1/boxes/$box"
	soon all_gone
}
process_box() {
	api POST /v1/boxes '{"isolation": "process", "trust": "trusted"}'
	is "$code" 201 "$body"
	box=$(get .id)
}
all_gone() { ! pgrep -x atoll-super && ! pgrep -f "^sleep 600" && [ -z "$(find /tmp -maxdepth 1 -uid +65536 -newer "$work/openapi.json")" ]; }

programs_that_leave_their_session_end_with_the_box() {
	as_process '(setsid setsid sleep 600 &) ; (trap "" TERM HUP; exec setsid sleep 600) & sleep 0.1'
	soon all_gone
	as_process 'setsid sleep 600 & kill -9 $PPID; sleep 10'
	is "$(get .cause)" host "$body"
	soon all_gone
}

a_killed_supervisor_leaves_no_process() {
	process_box
	api POST "/v1/boxes/$box/execs" '{"command": "setsid sleep 600", "background": true}'
	soon pgrep -f "^sleep 600" >/dev/null
	kill -9 "$(pgrep -x atoll-super)"
	ended() { ! pgrep -f "^sleep 600" && ! pgrep -x atoll-init; }
	soon ended
	find /tmp -maxdepth 1 -uid +65536 -newer "$work/openapi.json" -exec rm -r {} + # its folder, which the supervisor would have removed
}

what_it_does_not_support_is_rejected_by_name() {
	api POST /v1/boxes '{"isolation": "process", "trust": "trusted", "limits": {"disk": "64M"}}'
	has "$body" "a disk limit cannot be enforced in the isolation tier process"
	api POST /v1/boxes '{"isolation": "process", "trust": "trusted", "limits": {"mem": "64M"}}'
	has "$body" "a memory limit cannot be enforced on this host"
	process_box
	api POST "/v1/boxes/$box/pause"
	has "$body" "no cgroup that could be frozen"
	api DELETE "/v1/boxes/$box"
}

a_new_keeper_adopts_its_boxes() {
	process_box
	keeper=$("$ATOLL" doctor --json | grep -o 'pid [0-9]*' | head -1 | cut -d ' ' -f 2)
	kill -9 "$keeper"
	works() { api POST "/v1/boxes/$box/execs" '{"command": "echo still here"}' && [ "$(get .stdout)" = "still here" ]; }
	soon works
	api DELETE "/v1/boxes/$box"
	soon all_gone
}

a_proof_says_what_holds_and_what_does_not() {
	atoll prove process --state "$state" --json
	is "$status" 0 "$(jq -c '.[0].probes[] | select(.verdict == "failed")' out) $err"
	is "$(jq -r '[.[0].probes[] | select(.verdict == "absent") | .way] | sort | join(",")' out)" \
		"boot id,disk bomb,fork bomb,host name,inode bomb,inotify instances,memory bomb,namespaces,sysfs"
	for probe in "host files" "host processes" "host sockets" "other box" "end of the box"; do
		is "$(jq --arg p "$probe" '[.[0].probes[] | select(.probe == $p and .verdict != "passed")] | length' out)" 0 "$probe"
	done
}

languages_are_listed() {
	api GET /v1/languages
	is "$code" 200 "$body"
	has "$(get '.items[] | select(.name == "python") | .version')" 3.
}

need_daemon
ordinary=$key key=$("$ATOLL" key new permitted --isolation process --state "$state" --quiet)
curl -sS -H "X-API-Key: $key" "$url/openapi.json" >"$work/openapi.json"
last_test=answers_match_openapi_json
run_tests
