#!/bin/sh
# cluster_objects.sh - boxes from snapshots of other nodes: the file travels through the gateway. A gateway, two nodes, a
# private PostgreSQL.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
chmod a+x "$work" "$TMPDIR"
. "$here/engines.lib"
. "$here/cluster.lib"
. "$here/objects.lib"
postgres_start
start_cluster
soon nodes_are "$both_up"

a_box_starts_from_a_snapshot_of_another_node() {
	at_one
	snapshot_of "$box" base-files
	printf '%s\n' "snapshot=$snapshot" "sum='$sum'" >"$work/snapshot"
	# Its own node is preferred.
	json POST /v1/boxes "{\"snapshot\": \"$snapshot\"}"
	has_files "$(of_body .id)" $of_one
	drain one
	soon seen_draining one true
	json POST /v1/boxes "{\"snapshot\": \"$snapshot\", \"name\": \"copied\"}"
	is "$status" 201 "$(cat body)"
	has_files "$(of_body .id)" $of_two
	ask GET /v1/boxes/copied
	is "$status" 200 "$(cat body)"
	# By its name, and with E2B's protocol.
	json POST /v1/boxes '{"snapshot": "base-files"}'
	is "$status" 201 "$(cat body)"
	has_files "$(of_body .id)" $of_two
	json POST /sandboxes "{\"templateID\": \"$snapshot:default\", \"timeout\": 60}"
	is "$status" 201 "$(cat body)"
	has_files "$(of_body .sandboxID)" $of_two
	is "$(ls "$work/two/state/server/copies")" "$snapshot.snap"
}

a_snapshot_of_another_team_is_not_found() {
	. "$work/snapshot"
	ask PUT /v1/teams/others -H "Content-Type: application/json" -d "{}"
	"$ATOLL" key new others --team others --state "$work/gate/state" --quiet >other 2>key.log || fail "$(cat key.log)"
	knows() {
		as=$(cat other) ask GET /v1/who
		[ "$status" = 200 ]
	}
	soon knows
	as=$(cat other) json POST /v1/boxes "{\"snapshot\": \"$snapshot\"}"
	is "$status" 404 "$(cat body)"
	as=
	[ "$(of_body '.id // ""')" = '' ] || fail "$(cat body)"
}

a_damaged_file_is_not_used() {
	. "$work/snapshot"
	printf X | dd of="$work/two/state/server/copies/$snapshot.snap" bs=1 seek=2000 conv=notrunc status=none
	# The file is sent again for the next box, so the change has no effect.
	json POST /v1/boxes "{\"snapshot\": \"$snapshot\"}"
	is "$status" 201 "$(cat body)"
	has_files "$(of_body .id)" $of_two
	# A damaged original is not used on either node.
	cp "$work/one/state/server/snapshots/$snapshot.snap" original
	printf XXXX | dd of="$work/one/state/server/snapshots/$snapshot.snap" bs=1 seek=2000 conv=notrunc status=none
	json POST /v1/boxes "{\"snapshot\": \"$snapshot\"}"
	is "$status" 500 "$(cat body)"
	cp original "$work/one/state/server/snapshots/$snapshot.snap"
}

a_deleted_snapshot_is_not_used_and_volumes_stay_on_their_node() {
	. "$work/snapshot"
	json POST /v1/boxes '{"snapshot": "base-files", "volumes": [{"volume": "none", "path": "/data"}]}'
	[ "$status" != 201 ] || fail "$(cat body)"
	ask DELETE "/v1/snapshots/$snapshot"
	is "$status" 204 "$(cat body)"
	json POST /v1/boxes "{\"snapshot\": \"$snapshot\"}"
	[ "$status" != 201 ] || fail "$(cat body)"
	is "$status" 404 "$(cat body)"
}

run_tests
