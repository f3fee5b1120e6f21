#!/bin/sh
# tier_mixed.sh - what one isolation tier has and another one requests: snapshots and volumes. Waits for the proof of gvisor.
[ -x /usr/bin/runsc ] || { echo "1..0 # SKIP no runsc (apt install runsc)"; exit 0; }
export ATOLL_ISOLATION_PROVE=true
. "$(dirname "$0")/daemon.lib"

in_gvisor() { [ "$("$ATOLL" run --isolation gvisor -- uname -r)" = 4.4.0 ]; }
# rejected BODY TEXT: this box is rejected with 409, and one of its lines has the text.
rejected() {
	api POST /v1/boxes "$1"
	is "$code" 409 "$body"
	has "$body" "$2"
}

a_snapshot_of_gvisor_starts_in_gvisor_only() {
	soon in_gvisor
	new_box '{"isolation": "gvisor"}'
	api POST "/v1/boxes/$box/execs" '{"command": "printf kept >f; printf t >/tmp/t"}'
	api POST /v1/snapshots "{\"box\": \"$box\"}"
	is "$code" 201 "$body"
	snapshot=$(get .id)
	api DELETE "/v1/boxes/$box"
	rejected "{\"snapshot\": \"$snapshot\", \"isolation\": \"container\"}" "container: the snapshot was made in gvisor"
	new_box "{\"snapshot\": \"$snapshot\"}"
	is "$(get .isolation.tier)" gvisor
	api POST "/v1/boxes/$box/execs" '{"command": "cat f /tmp/t; uname -r"}'
	is "$(get .stdout)" "keptt4.4.0"
	api DELETE "/v1/boxes/$box"
	api DELETE "/v1/snapshots/$snapshot"
}

a_volume_in_use_by_a_container_is_refused_to_a_guest() {
	soon in_gvisor
	api POST /v1/volumes '{"name": "data", "bytes": 33554432}'
	is "$code" 201 "$body"
	new_box '{"volumes": [{"name": "data", "path": "/data"}]}'
	is "$(get .isolation.tier)" container
	api POST /v1/boxes '{"isolation": "gvisor", "volumes": [{"name": "data", "path": "/data"}]}'
	is "$code" 409 "$body"
	has "$body" "writes to it"
	api POST "/v1/boxes/$box/execs" '{"command": "echo x >/data/f && cat /data/f"}'
	is "$(get .stdout)" "x"
	api DELETE "/v1/boxes/$box"
	api DELETE /v1/volumes/data
}

run_daemon_tests
