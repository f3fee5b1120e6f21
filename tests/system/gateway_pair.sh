#!/bin/sh
# gateway_pair.sh - two gateways and two nodes, of which one is connected to the first gateway only: limits of a team over
# both, requests that go from gateway to gateway, and restarts of all four while requests arrive.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
chmod a+x "$work" "$TMPDIR"
. "$here/engines.lib"
. "$here/cluster.lib"
trap leave_cluster EXIT
postgres_start
sql() { psql -qAt -h "$work/pg" -U atoll postgres -c "$1"; }

for name in gate pair one two; do mkdir -p "$work/$name/state/cluster"; done
"$cluster_keys" "$work/gate/state/cluster" gateway=1 "$work/pair/state/cluster" gateway=3 "$work/one/state/cluster" node=2 "$work/two/state/cluster" node=40 ||
	{ echo "Bail out! no keys"; exit 1; }
start_gate 127.0.0.1:0
soon serves gate
register_machines() {
	sql "insert into atoll.gateways (number, name, fingerprint) values (1, 'gate', '-'), (3, 'pair', '-')" &&
		sql "insert into atoll.nodes (number, name, fingerprint) values (2, 'one', '-'), (40, 'two', '-')"
}
soon register_machines
kill -9 "$(server_of gate)" # the next one registers at once
machine pair ATOLL_CLUSTER_ROLE=gateway ATOLL_CLUSTER_LISTEN=127.0.0.1:0 ATOLL_CLUSTER_SECRETS="$work/secrets" ATOLL_CLUSTER_DATABASE="$database"
soon serves pair
tunnel_of() { sed -n 's/^atoll: nodes connect to \(.*\)$/\1/p' "$work/$1/log"; }
soon starts one ATOLL_CLUSTER_ROLE=node ATOLL_CLUSTER_GATEWAYS="$(tunnel_of gate),$(tunnel_of pair)"
soon starts two ATOLL_CLUSTER_ROLE=node ATOLL_CLUSTER_GATEWAYS="$(tunnel_of gate)"
url=$(address_of gate)
pair=$(address_of pair)
key=$("$ATOLL" key new tests --state "$work/gate/state" --quiet)
default_key=$key
soon serves one
soon serves two
soon nodes_are "$both_up"
pair_up() { url=$pair nodes '[.items[] | "\(.name) \(.state)"] | join(", ")' | grep -q 'one up'; }
soon pair_up

# at URL METHOD PATH [CURL-OPTION...]: the answer is in $status and the file body.
at() {
	base=$1
	method=$2
	path=$3
	shift 3
	status=$(curl -sS --max-time 30 -o body -D head -w '%{http_code}' -X "$method" -H "X-API-Key: $key" "$@" "$base$path")
}
knows_key() { at "$pair" GET /v1/who && [ "$status" = 200 ]; }
json_default() {
	team_key=$key key=$default_key
	at "$url" "$1" "$2" -H 'Content-Type: application/json' -d "$3"
	key=$team_key
}
json_at() { at "$1" "$2" "$3" -H 'Content-Type: application/json' -d "$4"; }
of_body() { jq -r "$1" body; }

# create_all URL N: N boxes of the team at once; the statuses are in the file statuses.
create_all() {
	seq "$2" | xargs -P 8 -I@ curl -sS --max-time 30 -o /dev/null -w '%{http_code}\n' -H "X-API-Key: $key" -H 'Content-Type: application/json' -d '{}' "$1/v1/boxes" >>"$3"
}
live() { sql "select count(*) from atoll.boxes where team = 'small' and state = 'running'"; }
end_all() {
	for id in $(sql "select id from atoll.boxes where team = 'small' and state = 'running'"); do at "$url" DELETE "/v1/boxes/$id"; done
	gone() { [ "$(live)" = 0 ]; }
	soon gone
}

the_boxes_of_a_team_are_limited_over_both_gateways() {
	json_default PUT /v1/teams/small '{"boxes": 7}'
	case $status in 20*) ;; *) fail "$status: $(cat body)" ;; esac
	key=$("$ATOLL" key new small --team small --state "$work/gate/state" --quiet)
	known() { at "$pair" GET /v1/who && [ "$status" = 200 ]; }
	soon known
	for round in 1 2 3; do
		: >first
		: >second
		create_all "$url" 12 first &
		create_all "$pair" 12 second
		wait $!
		made=$(cat first second | grep -c 201)
		[ "$made" -le 7 ] || fail "$made boxes: $(sort first second | uniq -c)"
		is "$(cat first second | grep -cv '201\|429')" 0 "$(sort first second | uniq -c)"
		[ "$made" -ge 4 ] || fail "only $made boxes: $(sort first second | uniq -c)"
		is "$(live)" "$made"
		# What a gateway does not use is returned, and the limit can be reached at the other one.
		full() { at "$pair" POST /v1/boxes -H 'Content-Type: application/json' -d '{}' && [ "$(live)" = 7 ]; }
		soon full
		at "$url" POST /v1/boxes -H 'Content-Type: application/json' -d '{}'
		is "$status $(of_body .error.code)" "429 quota" "$(cat body)"
		end_all
	done
}

# box_at NODE: the id of a box of the team there.
box_at() {
	for _ in 1 2 3 4 5 6 7 8; do
		json_at "$url" POST /v1/boxes '{}'
		[ "$status" = 201 ] || return 1
		[ "$(sql "select node from atoll.boxes where id = '$(of_body .id)'")" != "$1" ] || { of_body .id; return; }
	done
	return 1
}
runs_in() { json_at "$1" POST "/v1/boxes/$2/execs" "{\"command\": \"${3:-true}\"}"; }
key_of() { "$ATOLL" key new "$1-$2" --team "$1" --state "$work/gate/state" --quiet; }

executions_of_a_team_are_limited_over_both_nodes() {
	json_default PUT /v1/teams/runner '{"executions_per_day": 24}'
	key=$(key_of runner 1)
	soon knows_key
	first=$(box_at 2) second=$(box_at 40)
	[ "$first" ] && [ "$second" ] || fail "boxes on both nodes: '$first' '$second' $(cat body)"
	for n in 1 2 3 4 5; do
		for box in "$first" "$second"; do
			runs_in "$url" "$box"
			is "$status" 200 "$n $box $(cat body)"
		done
	done
	# Also what the other node has not used is found, and requests of both gateways at the same time use no more.
	for base in "$url" "$pair"; do
		seq 14 | xargs -P 4 -I@ curl -sS --max-time 30 -o /dev/null -w '%{http_code}\n' -H "X-API-Key: $key" -H 'Content-Type: application/json' \
			-d '{"command": "true"}' "$base/v1/boxes/$first/execs" >"run${base##*:}" &
		list="${list:-} $!"
	done
	wait $list
	made=$(cat run[0-9]* | grep -c 200)
	[ "$made" -le 14 ] || fail "$made of 14 executions: $(cat run[0-9]*)"
	last() {
		runs_in "$url" "$second"
		made=$((made + $([ "$status" = 200 ] && echo 1 || echo 0)))
		[ "$made" -ge 14 ]
	}
	soon last
	is "$made" 14
	runs_in "$url" "$second"
	is "$status $(of_body .error.code)" "429 quota" "$(cat body)"
	has "$(cat body)" 'team runner may have 24'
	runs_in "$pair" "$first"
	is "$status" 429 "$(cat body)"
	# A new limit, and none.
	json_default PUT /v1/teams/runner '{"executions_per_day": 26}'
	more() { runs_in "$url" "$second" && [ "$status" = 200 ]; }
	soon more
	json_default PUT /v1/teams/runner '{}'
	for n in 1 2 3; do
		soon more
	done
	at "$url" DELETE "/v1/boxes/$first"
	at "$url" DELETE "/v1/boxes/$second"
}

output_of_a_team_is_limited_over_both_nodes() {
	json_default PUT /v1/teams/writer '{"output_bytes_per_day": 1000}'
	key=$(key_of writer 1)
	soon knows_key
	first=$(box_at 2) second=$(box_at 40)
	# Each node may have a part of the limit that it has not used.
	for box in "$first" "$second"; do
		runs_in "$url" "$box" 'head -c 2000 /dev/zero | tr \\\\0 x'
	done
	for box in "$first" "$second"; do
		runs_in "$url" "$box"
		is "$status $(of_body .error.code)" "429 quota" "$(cat body)"
	done
	has "$(cat body)" 'bytes of output'
	at "$url" DELETE "/v1/boxes/$first"
	at "$url" DELETE "/v1/boxes/$second"
}

a_link_that_shares_a_box_works_at_both_gateways() {
	json_at "$pair" POST /v1/boxes '{"name": "shared"}'
	is "$status" 201 "$(cat body)"
	box=$(of_body .id)
	json_at "$pair" POST /v1/boxes/shared/shares '{"role": "viewer"}'
	is "$status $(of_body .box)" "201 $box" "$(cat body)"
	share=$(of_body .id) guest=$(of_body .key)
	opens() { [ "$(curl -s -o /dev/null -w '%{http_code}' -H "X-API-Key: $guest" "$1/v1/boxes/$box")" = "$2" ]; }
	opens "$pair" 200 || fail "the gateway that made the link"
	soon opens "$url" 200
	at "$url" GET "/v1/boxes/$box/shares"
	is "$status $(of_body '[.items[].id] | join(" ")')" "200 $share" "$(cat body)"
	at "$url" DELETE "/v1/boxes/$box/shares/$share"
	is "$status" 204 "$(cat body)"
	opens "$url" 401 || fail "the gateway that deleted the link"
	soon opens "$pair" 401
	at "$pair" DELETE "/v1/boxes/$box"
	json_at "$pair" POST "/v1/boxes/$box/shares" '{}'
	is "$status" 404 "$(cat body)"
}

without_the_database_a_gateway_uses_the_rest_of_its_share() {
	key=$("$ATOLL" key new small2 --team small --state "$work/gate/state" --quiet)
	at "$url" POST /v1/boxes -H 'Content-Type: application/json' -d '{}'
	is "$status" 201 "$(cat body)"
	kill -INT "$postgres_pid" # a crash of the database can lose its last rows (docs/cluster.md)
	down() { ! postgres_answers; }
	soon down
	made=0
	while :; do
		at "$url" POST /v1/boxes -H 'Content-Type: application/json' -d '{}'
		[ "$status" = 201 ] || break
		made=$((made + 1))
	done
	is "$status $(of_body .error.code)" "429 quota" "$(cat body)"
	has "$(cat body)" 'the database of the cluster does not answer'
	[ "$made" -ge 1 ] && [ "$made" -le 6 ] || fail "$made further boxes"
	postgres_run
	again() { [ "$(live)" = $((made + 1)) ]; } # the rows of the boxes that were created meanwhile
	soon again
	end_all
	works() { at "$pair" POST /v1/boxes -H 'Content-Type: application/json' -d '{}' && [ "$status" = 201 ]; }
	soon works
	end_all
}

run_tests
