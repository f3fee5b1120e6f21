#!/bin/sh
# node_credentials.sh - a node has none of the secrets of its cluster: tests/cluster/credentials.py, with daemons in network namespaces.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { echo "1..0 # SKIP postgresql is not installed"; exit 0; }
command -v iptables >/dev/null || { echo "1..0 # SKIP iptables is not installed"; exit 0; }
unset ATOLL_RUN

no_password_no_client_key_and_no_ca_key_is_at_a_node() {
	unshare --net /usr/bin/python3 -B "$here/../cluster/credentials.py" "$(dirname "$(readlink -f "$ATOLL")")" >searched 2>&1 ||
		fail "$(grep -v '^#.*MB of memory' searched | tail -n 8)"
	grep '^#.*MB of memory' searched
}

run_tests
