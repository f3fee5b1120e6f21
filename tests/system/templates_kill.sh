#!/bin/sh
# templates_kill.sh - builds of templates while the server, the keeper or all processes of the daemon are killed.
. "$(dirname "$0")/daemon.lib"

ended() {
	api GET "/v1/builds/$build"
	[ "$code" = 200 ] || return 1
	case $(get .state) in waiting | building) return 1 ;; esac
}
log_has() { curl -sS -H "X-API-Key: $key" "$url/v1/builds/$build/log" | grep -q "$1"; }
log_count() { curl -sS -H "X-API-Key: $key" "$url/v1/builds/$build/log" | grep -c "$1"; }
boxless() { [ "$(curl -sS -H "X-API-Key: $key" "$url/metrics" | sed -n 's/^atoll_boxes //p')" = 0 ]; }
# begin NAME: a build of two steps; the second one takes a second.
begin() {
	api POST /v1/templates "{\"name\": \"$1\", \"force\": true, \"definition\": {\"stages\": [{\"from\": \"base\", \"steps\": [
		{\"type\": \"RUN\", \"args\": [\"echo first; echo one >/srv/one\"]},
		{\"type\": \"RUN\", \"args\": [\"echo second; sleep 1; echo two >/srv/two\"]}]}]}}"
	is "$code" 202 "$body"
	build=$(get .id)
}
# complete NAME: the build becomes ready, its first step was executed once, and its box has both files.
complete() {
	soon ended
	is "$(get .state)" ready "$body"
	is "$(log_count '"message":"first"')" 1
	new_box "{\"template\": \"$1\"}"
	api POST "/v1/boxes/$box/execs" '{"command": "cat /srv/one /srv/two"}'
	is "$(get .stdout)" "$(printf 'one\ntwo')" "$body"
	api DELETE "/v1/boxes/$box"
	soon boxless
}
# Not while there is no keeper: this would start one.
keeper_pid() { "$ATOLL" doctor --json 2>/dev/null | grep -o 'pid [0-9]*' | head -1 | cut -d ' ' -f 2; }
another_server() { new=$(server_pid) && [ "$new" ] && [ "$new" != "$old" ] && api GET /v1/who && [ "$code" = 200 ]; }

a_build_continues_after_its_server_was_killed() {
	begin server
	soon log_has '"second"'
	old=$(server_pid)
	kill -9 "$old"
	soon another_server
	complete server
	soon log_has 'continued after a restart'
}

a_build_continues_after_the_keeper_was_killed() {
	begin keeper
	soon log_has '"second"'
	kill -9 "$(keeper_pid)" # the server starts the next one; a command would start it with another state folder
	complete keeper
}

nothing_is_left_over_of_killed_builds() {
	begin left
	soon log_has '"second"'
	kill -9 "$(server_pid)"
	api DELETE /v1/templates/left || :
	soon deleted
	soon boxless
	soon no_files
}
deleted() { api GET /v1/templates/left; [ "$code" = 404 ] || { api DELETE /v1/templates/left; return 1; }; }
no_files() { [ "$(find "$state/layers" -maxdepth 1 -name 'new.*' | wc -l)" = 0 ] && [ ! -e "$state/builds/$build.log" ]; }

# The last one: the address of the new daemon is another one.
a_build_continues_after_all_processes_were_killed() {
	begin all
	soon log_has '"second"'
	api POST /v1/boxes '{"template": "all"}'
	is "$code" 409 "$body"
	one=$(server_pid) two=$(keeper_pid)
	kill -9 "$supervisor" "$one" "$two"
	soon daemon_left
	start_daemon
	complete all
}

run_daemon_tests
