#!/bin/sh
# no_overlay.sh - a host without overlays and without mounts with shifted ids (Linux before 6.3): a snapshot can be restored, and
# /etc is read-only, in containers and in boxes of gVisor.
[ -x "${ATOLL_TEST_BIN-}" ] || { echo "1..0 # SKIP no build with test hooks: meson setup build-test -Dtest_hooks=true"; exit 0; }
export ATOLL="$ATOLL_TEST_BIN" ATOLL_TEST_FEATURES_OFF="overlay idmap"
. "$(dirname "$0")/daemon.lib"

# as_root COMMAND: in $box; sets out.
as_root() {
	api POST "/v1/boxes/$box/execs" "$(jq -n --arg c "$1" '{command: $c, user: "root"}')"
	is "$code" 200 "$body"
	out=$(get .stdout)
}
restore_one() {
	new_box
	as_root 'echo changed >/etc/hostname; cat /etc/hostname; stat -f /etc >/dev/null && head -c 6 /etc/passwd'
	is "$out" "$(printf 'atoll\nroot:x')" "$body"
	as_root 'echo text >/home/user/f; echo t >/tmp/t; mkdir /var/d'
	is "$(get .status)" 0 "$body"
	api POST /v1/snapshots "{\"box\":\"$box\"}"
	is "$code" 201 "$body"
	snapshot=$(get .id)
	api DELETE "/v1/boxes/$box"
	new_box "{\"snapshot\":\"$snapshot\"}"
	as_root 'cat /home/user/f /tmp/t; test -d /var/d && cat /etc/hostname'
	is "$out" "$(printf 'text\nt\natoll')" "$body"
	api DELETE "/v1/boxes/$box"
	api DELETE "/v1/snapshots/$snapshot"
}

a_snapshot_of_a_container_is_restored() { restore_one; }
a_snapshot_of_a_gvisor_box_is_restored() {
	[ -x /usr/bin/runsc ] || skip "no runsc (apt install runsc)"
	stop_daemon
	export ATOLL_TIER=gvisor
	start_daemon
	restore_one
	api POST /v1/run '{"command": "uname -r"}'
	is "$(get .stdout)" 4.4.0 "$body"
}

run_daemon_tests
