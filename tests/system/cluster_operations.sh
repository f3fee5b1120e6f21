#!/bin/sh
# cluster_operations.sh - what an operator does with nodes, through a gateway: drain.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
chmod a+x "$work" "$TMPDIR"
. "$here/cluster.lib"
start_cluster
soon nodes_are "$both_up"
export ATOLL_HOST="$url" ATOLL_KEY="$key"

# ask METHOD PATH [CURL-OPTION...]: the answer is in $status and the file body.
ask() {
	method=$1
	at=$2
	shift 2
	status=$(curl -sS --max-time 30 -o body -w '%{http_code}' -X "$method" -H "X-API-Key: $key" -H 'Content-Type: application/json' "$@" "$url$at")
}
of_body() { jq -r "$1" body; }
# create: $box is its id, $node the first three letters of it.
create() {
	ask POST /v1/boxes -d '{}'
	is "$status" 201 "$(cat body)"
	box=$(of_body .id)
	node=$(printf %.3s "$box")
}
of_two=abi # 40
draining() { [ "$(nodes "[.items[] | .figures.draining] | map(tostring) | join(\" \")")" = "$1" ]; }

a_drained_node_takes_no_new_boxes_also_after_a_restart() {
	other=$("$ATOLL" key new tests --state "$work/one/state" --quiet)
	while create && [ "$node" = "$of_two" ]; do ask DELETE "/v1/boxes/$box"; done
	kept=$box # on node one
	atoll node drain one
	is "$status" 0 "$err"
	has "$err" 'takes no new boxes; it has 1 box'
	soon draining 'true false'
	for i in 1 2 3 4 5 6; do
		create
		is "$node" "$of_two"
		ask DELETE "/v1/boxes/$box"
	done
	# The node itself refuses; what it has is used as before.
	for what in '/v1/boxes {}' '/v1/run {"command":"true"}' '/v1/batch {"command":"true"}' '/sandboxes {"templateID":"base"}'; do
		at=${what%% *}
		type=application/json
		[ "$at" != /v1/batch ] || type=application/x-ndjson
		is "$at $(curl -s -o body -w '%{http_code}' -H "X-API-Key: $other" -H "Content-Type: $type" -d "${what#* }" "$(address_of one)$at")" "$at 503" "$(cat body)"
		has "$(cat body)" 'atoll node undrain'
	done
	ask POST "/v1/boxes/$kept/execs" -d '{"command": "echo still here"}'
	is "$(of_body .stdout)" 'still here'
	kill -9 "$(server_of one)"
	soon draining 'true false'
	is "$(nodes '.items[0].figures.boxes')" 1
	create
	is "$node" "$of_two"
	ask DELETE "/v1/boxes/$box"
	# --wait returns when the last box has ended.
	"$ATOLL" node drain 2 --wait --json >waited 2>&1 &
	waiter=$!
	sleep 0.2
	kill -0 $waiter || fail "it did not wait: $(cat waited)"
	ask DELETE "/v1/boxes/$kept"
	wait $waiter || fail "$(cat waited)"
	is "$(jq .figures.boxes waited)" 0
	atoll node undrain one
	is "$status" 0 "$err"
	soon draining 'false false'
	create
	ask DELETE "/v1/boxes/$box"
}

a_new_box_waits_for_the_only_node_that_takes_boxes() {
	ask POST /v1/nodes/one/drain
	soon draining 'true false'
	kill -STOP "$(pid_of two)" # starts no new server
	kill -9 "$(server_of two)"
	gone() { [ "$(nodes '.items[1].state')" = unreachable ]; }
	soon gone
	(sleep 0.3 && kill -CONT "$(pid_of two)") &
	create
	wait
	is "$node" "$of_two"
	ask DELETE "/v1/boxes/$box"
	soon nodes_are "$both_up"
	ask POST /v1/nodes/one/undrain
	soon draining 'false false'
}

a_node_can_be_drained_without_a_gateway() {
	own=$("$ATOLL" key new own --state "$work/two/state" --quiet)
	ATOLL_HOST=$(address_of two) ATOLL_KEY=$own atoll node drain self --wait --json
	is "$status" 0 "$err"
	is "$(echo "$out" | jq -c '[.number, .name, .figures.draining, .figures.boxes]')" '[40,"two",true,0]'
	soon draining 'false true'
	ATOLL_HOST=$(address_of two) ATOLL_KEY=$own atoll node undrain 40
	is "$status" 0 "$err"
	soon draining 'false false'
}

only_operators_drain_and_only_nodes_that_exist() {
	editor=$("$ATOLL" key new edit --role editor --state "$work/gate/state" --quiet)
	is "$(curl -s -o body -w '%{http_code}' -X POST -H "X-API-Key: $editor" "$url/v1/nodes/one/drain")" 403 "$(cat body)"
	ask POST /v1/nodes/nine/drain
	is "$status $(of_body .error.code)" '404 not_found'
	ask POST /v1/nodes/one/dance
	is "$status" 404
	ask GET /v1/nodes/one
	is "$status $(of_body .number) $(of_body .figures.draining)" '200 2 false'
	ask GET /v1/nodes/41
	is "$status" 404
	atoll node drain
	is "$status" 2
	curl -sS -H "X-API-Key: $key" "$url/openapi.json" >openapi.json
	ask POST /v1/nodes/one/undrain
	printf 'POST /v1/nodes/{node}/undrain 200 %s\n' "$(tr -d '\n' <body)" >answers
	/usr/bin/python3 "$here/openapi.py" openapi.json answers >wrong || fail "$(cat wrong)"
}

scale_reports_nodes_and_figures_per_node() {
	ask GET /v1/scale
	is "$status $(of_body '"\(.ready) \(.wanted >= 1) \(.reason | length > 0)"')" '200 2 true true' "$(cat body)"
	curl -sS -H "X-API-Key: $key" "$url/openapi.json" >openapi.json
	printf 'GET /v1/scale 200 %s\n' "$(tr -d '\n' <body)" >answers
	/usr/bin/python3 "$here/openapi.py" openapi.json answers >wrong || fail "$(cat wrong)"
	curl -sS -H "X-API-Key: $key" "$url/metrics" >metrics
	is "$(sed -n 's/^atoll_nodes_ready //p' metrics)" 2
	for name in node_load_ratio node_boxes node_memory_free_bytes; do
		is "$(grep -c "^atoll_$name{node=\"\(one\|two\)\"} " metrics)" 2 "$name"
	done
	has "$(cat metrics)" 'atoll_nodes_wanted '
	is "$(curl -s -o body -w '%{http_code}' -H "X-API-Key: $("$ATOLL" key new scale --state "$work/one/state" --quiet)" "$(address_of one)/v1/scale")" 404
}

ls_names_the_node_of_a_box() {
	create
	case $node in "$of_two") name=two ;; *) name=one ;; esac
	atoll ls
	is "$(echo "$out" | awk -v box="$box" '$1 == box { print $2 }')" "$name" "$out"
	ask DELETE "/v1/boxes/$box"
}

# rows_of MACHINE SETTING...: name, status and value of the rows of a cluster.
rows_of() {
	name=$1
	shift
	env ATOLL_RUN="$work/$name/run" ATOLL_STATE="$work/$name/state" "$@" "$ATOLL" doctor --json >doctor || :
	jq -r '.[] | select(.name | IN("certificate", "gateways", "database")) | "\(.name) \(.status) \(.value)"' doctor
}

doctor_checks_what_the_role_needs() {
	is "$(rows_of one ATOLL_CLUSTER_ROLE=node ATOLL_CLUSTER_GATEWAYS="$tunnel")" 'certificate ok node 2, valid for 29 days
gateways ok 1 of 1 reached'
	has "$(rows_of two ATOLL_CLUSTER_ROLE=node ATOLL_CLUSTER_GATEWAYS="127.0.0.1:1,$tunnel")" 'gateways warn 1 of 2 reached; 127.0.0.1:1: '
	has "$(rows_of two ATOLL_CLUSTER_ROLE=node ATOLL_CLUSTER_GATEWAYS=127.0.0.1:1)" 'gateways fail 0 of 1 reached'
	mkdir -p "$work/secrets"
	has "$(rows_of two ATOLL_CLUSTER_ROLE=both ATOLL_CLUSTER_GATEWAYS="$tunnel" ATOLL_CLUSTER_SECRETS="$work/secrets" ATOLL_CLUSTER_DATABASE='host=/nowhere user=atoll')" 'database fail '
	is "$(rows_of two ATOLL_CLUSTER_ROLE=alone)" ''
}

run_tests
