#!/bin/sh
# history.sh - the daemon removes old runs, boxes and audit rows, and those of a team over its history size.
# What a sweep removes, and in which steps, is tested in store_test.c.
. "$(dirname "$0")/daemon.lib"

run_once() {
	api POST /v1/run "${1:-{\"command\":\"true\"\}}"
	is "$code" 200 "$body"
	run=$(get .exec)
	[ "$run" != null ] || run=$(get .id)
}
run_removed() { api GET "/v1/runs/$run" && [ "$code" = 404 ]; }
box_removed() { api GET '/v1/boxes?state=deleted' && [ "$(get ".items | any(.id == \"$box\")")" = false ]; }
audit_removed() { api GET "/v1/audit?subject=$box&action=box.create" && [ "$(get '.items | length')" = 0 ]; }

old_runs_boxes_and_audit_rows_are_removed() {
	new_box
	run_once
	api DELETE "/v1/boxes/$box"
	soon run_removed
	soon box_removed
	soon audit_removed
	api GET '/v1/audit?action=audit.retire&limit=1'
	is "$(get '.items[0].who')" atoll
	api GET /metrics
	removed=$(sed -n 's/^atoll_history_removed_total //p' body)
	[ "${removed:-0}" -ge 3 ] || fail "atoll_history_removed_total is '$removed'"
	has "$(cat "$work/serve.log")" 'removed old rows'
}

a_running_box_and_its_execs_are_not_removed() {
	new_box
	api POST "/v1/boxes/$box/execs" '{"command":["sleep","60"],"background":true}'
	exec=$(get .exec)
	[ "$exec" != null ] || exec=$(get .id)
	run_once
	soon run_removed # a sweep has run after both started
	api GET "/v1/boxes/$box"
	is "$(get .state)" running
	api GET "/v1/runs/$exec"
	is "$code" 200 "$body"
	api DELETE "/v1/boxes/$box"
}

a_team_over_its_history_size_loses_its_oldest_runs() {
	command -v sqlite3 >/dev/null || skip "no sqlite3"
	stop_daemon
	export ATOLL_HISTORY=none ATOLL_HISTORY_SIZE=512K
	start_daemon
	printf '{"command":"true","stdin":"%s"}' "$(head -c 44000 /dev/zero | tr '\0' x)" >large
	first=
	for i in $(seq 40); do
		run_once @large
		first=${first:-$run}
	done
	last=$run run=$first
	soon run_removed
	api GET "/v1/runs/$last"
	is "$code" 200 "$body"
	few() { [ "$(sqlite3 -cmd '.timeout 5000' "$state/server/atoll.db" 'select count(*) from runs')" -le 13 ]; }
	soon few
}

an_invalid_history_setting_is_rejected() {
	ATOLL_HISTORY=yesterday "$ATOLL" config check >said 2>&1 && fail "accepted"
	has "$(cat said)" ATOLL_HISTORY
	ATOLL_HISTORY_SIZE=-1 "$ATOLL" config check >said 2>&1 && fail "accepted"
	has "$(cat said)" ATOLL_HISTORY_SIZE
}

export ATOLL_HISTORY=2s
run_daemon_tests
