#!/bin/sh
# serve_full.sh - a full state folder: requests that need a row are rejected and undone, others continue.
# In a private mount namespace, so that the small disk is unmounted with this script.
[ "$FULL_INSIDE" ] || [ "$(id -u)" != 0 ] || FULL_INSIDE=1 exec unshare -m "$0" "$@"
. "$(dirname "$0")/daemon.lib"

fill() { head -c 100000000 /dev/zero >"$state/server/fill" 2>/dev/null || :; }
room() { rm -f "$state/server/fill"; }
# The WAL may have allocated blocks, so the first request may still succeed.
exec_refused() {
	api POST "/v1/boxes/$box/execs" '{"command":"true"}'
	[ "$code" = 507 ]
}
exec_works() {
	api POST "/v1/boxes/$box/execs" '{"command":"echo fine"}'
	[ "$code $(get .stdout)" = "200 fine" ]
}

a_full_disk_is_507_and_rejected_requests_leave_nothing() {
	new_box
	fill
	soon exec_refused
	is "$(get .error.code)" no_space "$body"
	api POST /v1/boxes '{"name":"never"}'
	is "$code" 507 "$body"
	api GET /v1/boxes
	is "$code $(get '[.items[].id] | join(" ")')" "200 $box"
	room
	soon exec_works
	api POST /v1/boxes '{"name":"never"}'
	is "$code" 201 "$body"
	api GET '/v1/runs?running=1'
	is "$code $(get '.items | length')" "200 0" "$body"
}

running_execs_and_reads_work_with_a_full_disk() {
	new_box
	api POST "/v1/boxes/$box/execs" '{"command":"read line; echo got $line","background":true,"open_stdin":true}'
	exec=$(get .id)
	fill
	soon exec_refused
	api POST "/v1/boxes/$box/execs/$exec/stdin?close=1" 'this'
	is "$code" 200 "$body"
	api GET "/v1/boxes/$box/execs/$exec/output"
	has "$body" "got this"
	room
	soon exec_works
}

mkdir -p "$state"
trap 'umount -l "$state" 2>/dev/null; finish_daemon' EXIT
[ "$(id -u)" != 0 ] || mount -t tmpfs -o size=6m,mode=711 small "$state"
run_daemon_tests
