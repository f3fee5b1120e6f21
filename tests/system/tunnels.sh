#!/bin/sh
# tunnels.sh - tunnels of two nodes to a gateway, on loopback: killed processes connect again.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
chmod a+x "$work" "$TMPDIR"
. "$here/cluster.lib"

# metric MACHINE-URL KEY NAME: its value.
metric() { curl -sS --max-time 20 -H "X-API-Key: $2" "$1/metrics" | sed -n "s/^$3 //p"; }
metric_is() { [ "$(metric "$1" "$2" "$3")" = "$4" ]; }
# How often node 2 has opened its tunnel.
connects() { grep -c 'node connected.*node=2 ' "$work/gate/log"; }
more_than() { [ "$(connects)" -gt "$1" ]; }

start_cluster

nodes_open_tunnels_and_send_heartbeats() {
	soon nodes_are "$both_up"
	full() { [ "$(nodes '[.items[] | .figures != null and .connections.idle == 4] | all')" = true ]; }
	soon full
	is "$(nodes '.items[0].figures | "\(.draining) \(.labels[0]) \(.boxes) \(.cpus > 0) \(.memory_free > 0) \(.arch)"')" \
		"false disk=fast 0 true true $(uname -m)"
	is "$(nodes '.items[0].version')" "$("$ATOLL" --version | grep -o '[0-9][0-9.]*' | head -n 1)"
	curl -sS -H "X-API-Key: $key" "$url/openapi.json" >openapi.json
	printf 'GET /v1/nodes 200 %s\n' "$(tr -d '\n' <"$work/nodes")" >answers
	/usr/bin/python3 "$here/openapi.py" openapi.json answers >wrong || fail "$(cat wrong)"
	soon metric_is "$url" "$key" 'atoll_cluster_nodes{state="up"}' 2
	# The second node has a gateway that does not answer, and the one that does.
	other=$("$ATOLL" key new tests --state "$work/two/state" --quiet)
	soon metric_is "$(address_of two)" "$other" 'atoll_cluster_gateways{state="up"}' 1
	is "$(metric "$(address_of two)" "$other" 'atoll_cluster_gateways{state="unreachable"}')" 1
	is "$(curl -s -o body -w '%{http_code}' -H "X-API-Key: $other" "$(address_of two)/v1/nodes")" 404
}

a_killed_server_of_a_node_connects_again() {
	soon nodes_are "$both_up"
	before=$(connects)
	kill -9 "$(server_of one)"
	soon more_than "$before"
	soon nodes_are "$both_up"
	has "$(cat "$work/gate/log")" "tunnel of a node ended"
}

a_killed_process_that_connects_is_replaced() {
	soon nodes_are "$both_up"
	kill -9 "$(pgrep -P "$(pid_of one)" -x atoll-connector)"
	new() { pgrep -P "$(pid_of one)" -x atoll-connector; }
	soon new
	before=$(connects)
	kill -9 "$(server_of one)"
	soon more_than "$before"
	soon nodes_are "$both_up"
}

a_killed_server_of_the_gateway_gets_its_tunnels_back() {
	soon nodes_are "$both_up"
	kill -9 "$(server_of gate)"
	soon nodes_are "$both_up"
	full() { [ "$(nodes '[.items[].connections.idle == 4] | all')" = true ]; }
	soon full
}

nodes_connect_to_the_next_server_while_the_old_one_drains() {
	soon nodes_are "$both_up"
	old=$(server_of gate)
	before=$(connects)
	# A request that is in progress: its body does not end.
	mkfifo body.fifo
	curl -sS -o answer -w '%{http_code}' -H "X-API-Key: $key" -H 'Content-Type: application/json' -T body.fifo -X POST "$url/v1/boxes" >code &
	client=$!
	exec 9>body.fifo
	printf '{' >&9
	kill -HUP "$(pid_of gate)"
	draining() { grep -q "draining connections=1" "$work/gate/log"; }
	soon draining
	soon more_than "$before"
	soon nodes_are "$both_up"
	kill -0 "$old" || fail "the old server has ended"
	printf '"name": 7}' >&9
	exec 9>&-
	wait $client
	is "$(cat code)" 400
}

other_connections_to_the_port_of_nodes_are_refused() {
	is "$(curl -sk -o body -w '%{http_code}' "https://$tunnel/v1/boxes")" 404
	has "$(cat body)" "this address is for nodes"
	is "$(curl -sk -o body -D head -w '%{http_code}' -H 'Upgrade: atoll-tunnel/1' -H 'Connection: Upgrade' "https://$tunnel/tunnel")" 403
	nodes_are "$both_up" || soon nodes_are "$both_up"
}

run_tests
