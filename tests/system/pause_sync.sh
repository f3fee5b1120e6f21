#!/bin/sh
# pause_sync.sh - a pause to the disk while the disk is slow: the server answers other requests. Needs test hooks.
. "$(dirname "$0")/daemon.lib"
[ "${ATOLL_TIER:-container}" = container ] || { echo "1..0 # SKIP only boxes without an engine are captured with their programs"; exit 0; }
[ -x "${ATOLL_TEST_BIN-}" ] || { echo "1..0 # SKIP no build with test hooks: meson setup build-test -Dtest_hooks=true"; exit 0; }
export ATOLL="$ATOLL_TEST_BIN"

# The next sync of the database waits until release.
hold() { : >"$wal.hold"; }
release() { rm "$wal.held"; }
# The first sync of a pause is that of its checkpoint, the second one that of its row.
held_pause() {
	wal=$(find "$state" -name atoll.db-wal)
	new_box
	api POST "/v1/boxes/$box/execs" '{"command":"n=0; while read x; do n=$((n + 1)); echo $n; done","background":true,"open_stdin":true}'
	x=$(get .id)
	hold
	curl -sS --max-time 60 -o paused -X POST -H "X-API-Key: $key" -H 'Content-Type: application/json' -d '{"to":"disk"}' "$url/v1/boxes/$box/pause" &
	pausing=$!
	soon test -e "$wal.held"
	hold
	release
	soon test ! -e "$wal.hold"
	soon test -e "$wal.held"
}
continues() {
	api POST "/v1/boxes/$box/resume" '{}'
	is "$code $(get .state)" "200 running" "$body"
	echo | curl -sS -o sent -H "X-API-Key: $key" --data-binary @- "$url/v1/boxes/$box/execs/$x/stdin"
	soon output_has "$box" "$x" 1
	api DELETE "/v1/boxes/$box"
}

the_server_answers_while_the_row_of_a_pause_is_written() {
	held_pause
	is "$(curl -sS --max-time 5 -H "X-API-Key: $key" "$url/v1/boxes/$box" | jq -r .state)" paused
	is "$(curl -sS --max-time 5 -o /dev/null -w '%{http_code}' -X POST -H "X-API-Key: $key" -H 'Content-Type: application/json' -d '{"to":"disk"}' "$url/v1/boxes/$box/pause")" 409
	[ ! -s paused ] || fail "it was answered before the row is on the disk: $(cat paused)"
	release
	wait $pausing
	is "$(jq -r '[.state, .paused_to] | join(" ")' <paused)" "paused disk" "$(cat paused)"
	continues
}
a_box_that_ends_meanwhile_is_gone() {
	held_pause
	api DELETE "/v1/boxes/$box"
	is "$code" 204 "$body"
	wait $pausing
	is "$(jq -r .error.code <paused)" not_found "$(cat paused)"
	release
	api GET /v1/boxes
	is "$(get '.items | length')" 0 "$body"
	is "$("$ATOLL" ps --local -q | wc -l)" 0
}
a_resume_that_is_requested_meanwhile_follows() {
	held_pause
	curl -sS --max-time 60 -o resumed -X POST -H "X-API-Key: $key" -H 'Content-Type: application/json' -d '{}' "$url/v1/boxes/$box/resume" &
	resuming=$!
	sleep 0.2
	release
	wait $pausing $resuming
	is "$(jq -r .state <resumed)" running "$(cat resumed)"
	continues
}
a_box_whose_keeper_is_killed_meanwhile_is_on_the_disk() {
	held_pause
	kill -9 "$("$ATOLL" doctor --json | grep -o 'pid [0-9]*' | head -n 1 | cut -d ' ' -f 2)"
	release
	wait $pausing
	is "$(jq -r '[.state, .paused_to] | join(" ")' <paused)" "paused disk" "$(cat paused)"
	continues
}

run_daemon_tests
