#!/bin/sh
# coordinator.sh - both drivers of coordinator.h with real engines: one contract.
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
[ "${ENGINES_NAMESPACE:-}" ] || ENGINES_NAMESPACE=1 exec unshare -n "$0"
ip link set lo up
. "$(dirname "$0")/lib.sh"
. "$here/engines.lib"
contract=$(dirname "$ATOLL")/coordinator_contract
[ -x "$contract" ] || { echo "1..0 # SKIP $contract is not built"; exit 0; }
postgres_start
etcd_start

the_postgres_driver_does_what_the_contract_states() {
	"$contract" postgres "$database" >out 2>&1 || fail "$(grep -B 3 '^not ok' out | tr '\n' ' ')"
}

the_etcd_driver_does_what_the_contract_states() {
	"$contract" etcd "$etcd" >out 2>&1 || fail "$(grep -B 3 '^not ok' out | tr '\n' ' ')"
}

run_tests
