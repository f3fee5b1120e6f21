#!/bin/sh
# cluster_bucket.sh - the object store: boxes from snapshots of other nodes, objects that nothing refers to, a store that does
# not do what it should. A gateway, two nodes, a private PostgreSQL, an S3 server that verifies signatures.
. "$(dirname "$0")/lib.sh"
slow_tests='a_store_that_fails_is_not_needed a_file_that_was_stored_wrongly_is_not_used a_store_that_cannot_be_reached_is_not_needed
a_silent_or_slow_store_is_left_alone an_object_that_is_used_meanwhile_stays an_object_is_removed_when_its_urls_have_expired'
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
chmod a+x "$work" "$TMPDIR"
. "$here/engines.lib"
. "$here/cluster.lib"
. "$here/objects.lib"
postgres_start
store_start
start_cluster
soon nodes_are "$both_up"

a_snapshot_is_stored_once_and_used_on_another_node() {
	new_snapshot base-files
	printf '%s\n' "snapshot=$snapshot" "sum='$sum'" >"$work/snapshot"
	is "$(requests PUT)" 1 "$(cat "$work/store/log")"
	drain one
	soon seen_draining one true
	box_on_two
	box_on_two base-files
	is "$(requests PUT 200)" 1 "$(cat "$work/store/log")"
	[ "$(requests GET 200)" -ge 1 ] || fail "$(cat "$work/store/log")"
	is "$(grep -c 'not used' "$work/gate/log")" 0 "$(cat "$work/gate/log")"
}

a_url_permits_one_method_of_one_object() {
	set -- $(grep '^GET ' "$work/store/urls" | head -n 1)
	url_of=$2
	is "$(curl -s -o object -w '%{http_code}' "$url_of")" 200
	is "$(curl -s -o /dev/null -w '%{http_code}' -X DELETE "$url_of")" 403
	is "$(curl -s -o /dev/null -w '%{http_code}' -X PUT -d x "$url_of")" 403
	is "$(curl -s -o /dev/null -w '%{http_code}' "$(echo "$url_of" | sed 's/-Expires=900/-Expires=90000/')")" 403
	is "$(curl -s -o /dev/null -w '%{http_code}' "$(echo "$url_of" | sed 's,/snapshots/,/layers/,')")" 403
	# No node has the keys.
	for node in one two; do
		! grep -rqs "$secret_key" "$work/$node/state" "$work/$node/log" || fail "node $node has the key"
	done
}

a_store_that_fails_is_not_needed() {
	. "$work/snapshot"
	for fault in 503 other half longer; do
		rm -f "$work/store/fault"
		forget_faults
		new_snapshot
		drain one
		soon seen_draining one true
		echo "$fault" >"$work/store/fault"
		before=$(requests GET)
		box_on_two
		[ "$(requests GET)" -gt "$before" ] || fail "the store was not used ($fault)"
	done
	grep -q 'the object store was not used.*other bytes' "$work/gate/log" || fail "$(cat "$work/gate/log")"
	grep -q 'the object store was not used.*503' "$work/gate/log" || fail "$(cat "$work/gate/log")"
	rm "$work/store/fault"
}

a_file_that_was_stored_wrongly_is_not_used() {
	forget_faults
	for fault in half other; do
		at_one
		echo "$fault" >"$work/store/fault"
		snapshot_of "$box"
		soon stored "$snapshot"
		rm "$work/store/fault"
		drain one
		soon seen_draining one true
		box_on_two
		forget_faults
	done
	# The object with other bytes was given up.
	[ "$(rows "state = 'deleting' and id = '$snapshot'")" = 1 ] || fail "$(all_rows)"
}

a_store_that_cannot_be_reached_is_not_needed() {
	. "$work/snapshot"
	forget_faults
	store_stop
	drain one
	soon seen_draining one true
	box_on_two
	# A new snapshot is not stored, and is used all the same.
	at_one
	snapshot_of "$box"
	drain one
	soon seen_draining one true
	box_on_two
	store_start "$store_port"
	forget_faults
}

a_silent_or_slow_store_is_left_alone() {
	for fault in silent slow; do
		new_snapshot
		drain one
		soon seen_draining one true
		echo "$fault" >"$work/store/fault"
		begin=$(date +%s)
		box_on_two
		# The next ones do not wait; after half a minute the store is tried again.
		asked=$(grep -c '^GET' "$work/store/urls")
		box_on_two
		[ $(($(date +%s) - begin)) -ge 30 ] || is "$(grep -c '^GET' "$work/store/urls")" "$asked"
		rm "$work/store/fault"
		forget_faults
	done
}

an_object_is_removed_only_after_its_snapshot() {
	new_snapshot kept
	kept=$snapshot
	new_snapshot
	dropped=$snapshot
	# All are looked at now, and all URLs have expired.
	sql "update atoll.objects set used = now() - interval '1 day', checked = now() - interval '1 day' where state = 'ready'"
	ask DELETE "/v1/snapshots/$dropped"
	is "$status" 204 "$(cat body)"
	soon collected "$dropped"
	is "$(find "$work/store/objects" -name "*$dropped*" | wc -l)" 0
	looked_at() { [ "$(rows "id = '$kept' and state = 'ready' and checked > now() - interval '1 hour'")" = 1 ]; }
	soon looked_at
	is "$(find "$work/store/objects" -name "*$kept*" | wc -l)" 1
	# A snapshot that was deleted on its node: the node reports it.
	sqlite3 "$work/one/state/server/atoll.db" "delete from snapshots where id = '$kept'"
	sql "update atoll.objects set used = now() - interval '1 day', checked = now() - interval '1 day' where id = '$kept'"
	soon collected "$kept"
	is "$(find "$work/store/objects" -name "*$kept*" | wc -l)" 0
}

an_object_that_is_used_meanwhile_stays() {
	new_snapshot
	sqlite3 "$work/one/state/server/atoll.db" "delete from snapshots where id = '$snapshot'"
	# The statement that gives an object up waits, as it does for the lock of a row, and meanwhile a request uses the object.
	sql "create function atoll.wait() returns trigger language plpgsql as 'begin
		if current_query() like ''%used = \$2%'' then perform pg_sleep(4); end if; return null; end'"
	sql "create trigger wait before update on atoll.objects for each statement execute function atoll.wait()"
	sql "update atoll.objects set used = now() - interval '1 day', checked = now() - interval '1 day' where id = '$snapshot'"
	given_up() { [ "$(sql "select count(*) from pg_stat_activity where state = 'active' and query like '%used = \$2%' and wait_event = 'PgSleep'")" = 1 ]; }
	soon given_up
	sql "update atoll.objects set used = clock_timestamp() where id = '$snapshot' and state = 'ready'"
	has_waited() { ! given_up; }
	soon has_waited
	sql "drop trigger wait on atoll.objects"
	stored "$snapshot" || fail "$(all_rows)"
	# Without that, it is given up.
	sql "update atoll.objects set checked = now() - interval '1 day' where id = '$snapshot'"
	is_given_up() { [ "$(rows "id = '$snapshot' and state = 'deleting'")" = 1 ]; }
	soon is_given_up
}

an_object_is_removed_when_its_urls_have_expired() {
	new_snapshot
	sql "update atoll.objects set state = 'deleting' where id = '$snapshot'"
	sleep 7
	is "$(rows "id = '$snapshot' and state = 'deleting'")" 1 "$(all_rows)"
	is "$(find "$work/store/objects" -name "*$snapshot*" | wc -l)" 1
	sql "update atoll.objects set used = now() - interval '1 day' where id = '$snapshot'"
	soon collected "$snapshot"
	is "$(find "$work/store/objects" -name "*$snapshot*" | wc -l)" 0
}

the_node_of_a_snapshot_may_be_away() {
	new_snapshot outlives
	stop_machine one
	is_away() { [ "$(nodes '[.items[] | select(.name == "one") | .state][0]')" != up ]; }
	soon is_away
	rm -f "$work"/two/state/server/copies/*
	box_on_two
	box_on_two outlives
	# Half of the object is not used, and there is no other way.
	echo half >"$work/store/fault"
	json POST /v1/boxes "{\"snapshot\": \"$snapshot\"}"
	is "$status" 503 "$(cat body)"
	is "$(find "$work/two/state/server/copies" -name '*.part' | wc -l)" 0
}

run_tests
