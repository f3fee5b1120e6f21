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
	json_at "$url" PUT /v1/teams/small '{"boxes": 7}'
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
