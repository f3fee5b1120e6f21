#!/bin/sh
# cluster_bucket_names.sh - the name of the object store gets other addresses while all runs. For ./check --all, and by hand.
. "$(dirname "$0")/lib.sh"
[ "${ATOLL_QUICK:-0}" = 0 ] || { echo "1..0 # SKIP slow"; exit 0; }
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
chmod a+x "$work" "$TMPDIR"
. "$here/engines.lib"
. "$here/cluster.lib"
. "$here/objects.lib"
postgres_start
store_start
names_port=17353
echo "127.0.0.1 objects.test" >"$work/hosts"
python3 "$here/name_server.py" "$work/hosts" $names_port 2>"$work/names.log" &
pids="$pids $!"
cluster_settings="ATOLL_CLUSTER_OBJECTS=http://objects.test:$store_port/boxes ATOLL_EGRESS_DNS=127.0.0.1:$names_port"
start_cluster
soon nodes_are "$both_up"

the_name_of_the_store_may_change_its_address() {
	new_snapshot
	drain one
	soon seen_draining one true
	box_on_two
	is "$(grep -c 'not used' "$work/gate/log")" 0 "$(cat "$work/gate/log")"
	# Where nothing listens, and then a name without an address: the file travels through the gateway.
	for hosts in '127.0.0.9 objects.test' '127.0.0.1 other.test'; do
		echo "$hosts" >"$work/hosts"
		forget_faults
		soon seen_draining one true
		before=$(grep -c 'not used' "$work/gate/log") || :
		box_on_two
		[ "$(grep -c 'not used' "$work/gate/log")" -gt "$before" ] || fail "the store was used"
	done
	echo '127.0.0.1 objects.test' >"$work/hosts"
	forget_faults
	before=$(requests GET 200)
	soon seen_draining one true
	box_on_two
	[ "$(requests GET 200)" -gt "$before" ] || fail "the store was not used: $(tail -n 3 "$work/gate/log")"
}

run_tests
