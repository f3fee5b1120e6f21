#!/bin/sh
# cluster_chaos.sh - 60 of the random faults of `make chaos-cluster`: six clusters beside each other, half of them with etcd, whose
# processes mostly wait. With --all also the rules of leases that are left out one at a time: each mistake must be found.
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
. "$(dirname "$0")/lib.sh"
. "$here/engines.lib"
slow_tests="without_rule_2_an_item_is_on_two_machines without_rule_4_an_item_is_on_two_machines
without_rule_5_an_item_is_on_two_machines without_rule_8_an_item_is_on_two_machines"
build=$(dirname "$ATOLL")
[ -x "$build/chaos_machine" ] || { echo "1..0 # SKIP $build/chaos_machine is not built"; exit 0; }
[ "$(postgres_bin)" ] || { echo "1..0 # SKIP postgresql is not installed"; exit 0; }
command -v etcd >/dev/null || { echo "1..0 # SKIP etcd-server is not installed"; exit 0; }
command -v iptables >/dev/null || { echo "1..0 # SKIP iptables is not installed"; exit 0; }
chmod a+x "$work" "$TMPDIR"

# chaos NAME ENGINE FAULTS [RULES]: in the background.
chaos() {
	name=$1
	shift
	{
		/usr/bin/python3 -B "$here/../cluster/chaos.py" "$build" "$@"
		echo $? >"$work/$name.status"
	} >"$work/$name.log" 2>&1 &
	pids="$pids $!"
}
chaos_ended() { [ -s "$work/$1.status" ]; }
# The status of one of them, and what it has printed if that is not the expected one.
chaos_status() { # NAME EXPECTED
	chaos_wait chaos_ended "$1"
	[ "$(cat "$work/$1.status")" = "$2" ] || fail "$(cut -c 1-400 "$work/$1.log" | head -n 8 | tr '\n' ' ')"
}
chaos_wait() {
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ "$tries" -lt 3000 ] || fail "not within 10 minutes: $*"
		sleep 0.2
	done
}

for engine in postgres etcd; do
	for number in 1 2 3; do
		chaos "$engine$number" "$engine" 10
	done
done

with_postgresql_no_item_is_on_two_machines_after_thirty_faults() {
	for number in 1 2 3; do chaos_status "postgres$number" 0; done
}

with_etcd_no_item_is_on_two_machines_after_thirty_faults() {
	for number in 1 2 3; do chaos_status "etcd$number" 0; done
}

# It ends with the first item on two machines.
without_rule() {
	chaos "rule$1" postgres 120 $((1 << $1))
	chaos_status "rule$1" 1
}
without_rule_2_an_item_is_on_two_machines() { without_rule 2; }
without_rule_4_an_item_is_on_two_machines() { without_rule 4; }
without_rule_5_an_item_is_on_two_machines() { without_rule 5; }
without_rule_8_an_item_is_on_two_machines() { without_rule 8; }

run_tests
