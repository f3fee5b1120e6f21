#!/bin/sh
# gateway_shared.sh - what a team sets or sees once for all nodes, through a gateway: usage, network rules, policies of
# pipelines, webhooks, secrets, package sets, lessons, receipts.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
chmod a+x "$work" "$TMPDIR"
secret=whsec_of_the_test
received=$work/received
mkdir -p "$received"
: >"$received/requests"
: >"$received/mails"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=trusted -addext subjectAltName=IP:127.0.0.1 \
	-keyout "$received/trusted.pem" -out "$received/trusted.crt" 2>/dev/null
cat "$received/trusted.crt" >>"$received/trusted.pem"
cp "$received/trusted.pem" "$received/unknown.pem"
/usr/bin/python3 "$here/receiver.py" "$received" $secret &
receiver=$!
. "$here/engines.lib"
. "$here/cluster.lib"
finish_receiver() {
	kill $receiver 2>/dev/null
	leave_cluster
}
postgres_start
export ATOLL_OUTBOUND_ALLOW=127.0.0.1 ATOLL_EGRESS_ALLOW=example.org,example.com
mkdir -m 700 "$work/secrets"
start_cluster
trap finish_receiver EXIT
soon nodes_are "$both_up"
soon test -s "$received/ports"
read -r port _ <"$received/ports"

ask() {
	method=$1
	at=$2
	shift 2
	status=$(curl -sS --max-time 60 -o body -D head -w '%{http_code}' -X "$method" -H "X-API-Key: $key" "$@" "$url$at")
}
json() { ask "$1" "$2" -H 'Content-Type: application/json' -d "$3"; }
of_body() { jq -r "$1" body; }
sql() { psql -qAt -h "$work/pg" -U atoll postgres -c "$1"; }
create() {
	json POST /v1/boxes "$1"
	is "$status" 201 "$(cat body)"
	box=$(of_body .id)
	node=$(printf %.3s "$box")
}
of_one=aac # 2
of_two=abi # 40
# box_at LETTERS [BODY]: $box is a new box of that node.
box_at() {
	for _ in $(seq 100); do
		create "${2:-{\}}"
		[ "$node" != "$1" ] || return 0
		ask DELETE "/v1/boxes/$box"
	done
	fail "no box at node $1"
}
# of_node NAME PATH: what the node itself has.
of_node() { curl -sS --max-time 60 --unix-socket "$work/$1/run/atoll.sock" "http://localhost$2"; }
requests() { jq -rs "map(select(.path == \"$1\")) | $2" <"$received/requests"; }
requests_are() { [ "$(requests "$1" "$2")" = "$3" ]; }

usage_is_that_of_all_nodes() {
	for each in $of_one $of_two; do
		box_at "$each"
		json POST "/v1/boxes/$box/execs" '{"command": "true", "tag": "counted"}'
		is "$status" 200 "$(cat body)"
		ask DELETE "/v1/boxes/$box"
	done
	counted() { ask GET '/v1/usage?by=tag' && [ "$(of_body '.items[] | select(.value == "counted") | .runs')" = 2 ]; }
	soon counted
	is "$(of_body '.total[0].runs >= 2 and (.truncated | not)')" true "$(cat body)"
	for by in team key template runtime day month; do
		ask GET "/v1/usage?by=$by"
		is "$status $(of_body "([.items[].runs] | add) == .total[0].runs")" "200 true" "$by: $(cat body)"
	done
	# As on one machine: each machine answers for what it has done.
	one=$(of_node one '/v1/usage?by=tag' | jq '.items[] | select(.value == "counted") | .runs')
	two=$(of_node two '/v1/usage?by=tag' | jq '.items[] | select(.value == "counted") | .runs')
	is "$one $two" '1 1'
	ask GET '/v1/usage?by=tag&format=csv'
	has "$(head -n 1 body)" tag
	has "$(cat body)" counted
	ask GET /v1/usage
	is "$(of_body '.days | length')" 7
	day=$(of_body '.days[0].executions')
	is "$(of_body '.usage.executions_today')" "$day"
	is "$day" "$(($(of_node one /v1/usage | jq '.days[0].executions') + $(of_node two /v1/usage | jq '.days[0].executions')))"
	ask GET '/v1/usage?days=31'
	is "$(of_body '.days | length')" 31
	for bad in by=none from=2026-13 'from=2026-02-01&to=2026-01-01' days=0 team=other; do
		ask GET "/v1/usage?$bad"
		case $status in 400 | 404) ;; *) fail "$bad: $status" ;; esac
	done
}

network_rules_of_a_team_hold_on_all_nodes() {
	json PUT /v1/teams/default/network '{"allow": ["example.org"]}'
	is "$status" 200 "$(cat body)"
	for each in one two; do
		is "$(of_node $each /v1/teams/default/network | jq -c .allow)" '["example.org"]'
	done
	json POST /v1/boxes '{"network": {"allow": ["example.com"]}}'
	is "$status" 403 "$(cat body)"
	has "$(cat body)" 'network rules of team'
	json POST /v1/boxes '{"network": {"allow": ["example.org"]}}'
	is "$status" 201 "$(cat body)"
	ask DELETE "/v1/boxes/$(of_body .id)"
	json PUT /v1/teams/default/network '{}'
	is "$status" 200 "$(cat body)"
	json POST /v1/boxes '{"network": {"allow": ["example.com"]}}'
	is "$status" 201 "$(cat body)"
	ask DELETE "/v1/boxes/$(of_body .id)"
}

a_node_that_was_away_gets_what_has_changed() {
	json PUT /v1/teams/default/network '{"allow": ["example.org"]}'
	kill -STOP "$(server_of two)"
	# With a database it is lost some 0.1 s after it is unreachable.
	away() { nodes_are '2 one up, 40 two unreachable' || nodes_are '2 one up, 40 two lost'; }
	soon away
	json PUT /v1/teams/default/network '{"allow": ["example.com"]}'
	json PUT /v1/pipelines/policy '{"scan": "warn"}'
	is "$status" 200 "$(cat body)"
	kill -CONT "$(server_of two)"
	soon nodes_are "$both_up"
	changed() { [ "$(of_node two /v1/teams/default/network | jq -c .allow) $(of_node two /v1/pipelines/policy | jq -r .scan)" = '["example.com"] warn' ]; }
	soon changed
	json PUT /v1/teams/default/network '{}'
	json PUT /v1/pipelines/policy '{"scan": "block"}'
	ask GET /v1/pipelines/policy
	is "$(of_body .scan) $(of_node one /v1/pipelines/policy | jq -r .scan)" 'block block'
}

each_event_is_delivered_once_and_signed() {
	json POST /v1/webhooks "{\"name\": \"all\", \"url\": \"http://127.0.0.1:$port/all\", \"events\": [\"box.created\"], \"secret\": \"$secret\"}"
	is "$status" 201 "$(cat body)"
	hook=$(of_body .id)
	box_at $of_one
	first=$box
	box_at $of_two
	both() { [ "$(requests /all "[.[].body.box] | (index(\"$first\") != null) and (index(\"$box\") != null)")" = true ]; }
	soon both
	is "$(requests /all 'all(.signed)')" true
	made=$(requests /all 'length')
	counted() { ask GET /v1/webhooks/all && [ "$(of_body .delivered)" = "$made" ]; }
	soon counted
	is "$(requests /all '[.[].headers["atoll-delivery"]] | length == (unique | length)')" true
	ask GET /v1/webhooks
	is "$(of_body '.items[0].delivered')" "$made" "$(cat body)"
	ask POST /v1/webhooks/all/test
	is "$(of_body '"\(.delivered) \(.status)"')" 'true 200' "$(cat body)"
	# A change is at both nodes before the answer.
	json PATCH "/v1/webhooks/$hook" "{\"url\": \"http://127.0.0.1:$port/moved\"}"
	is "$status" 200 "$(cat body)"
	box_at $of_two
	moved() { [ "$(requests /moved "[.[].body.box] | index(\"$box\") != null")" = true ]; }
	soon moved
	is "$(requests /all length)" $((made + 1)) # with webhook.test
	# No secret of it is in the database, or elsewhere, as it is.
	lacks "$(sql "select row from atoll.accounts where kind = 'webhook'")" $secret
	grep -rqa "$secret" "$work/one/state" "$work/two/state" "$work/gate/state" && fail "the secret is stored as it is"
	ask DELETE /v1/webhooks/all
	is "$status" 204
	is "$(of_node one /v1/webhooks | jq '.items | length') $(of_node two /v1/webhooks | jq '.items | length')" '0 0'
	# E2B's form.
	json POST /events/webhooks "{\"name\": \"e2b\", \"url\": \"http://127.0.0.1:$port/e2b\", \"enabled\": true, \"events\": [\"sandbox.lifecycle.created\"], \"signatureSecret\": \"$secret\"}"
	is "$status" 201 "$(cat body)"
	create '{}'
	came() { [ "$(requests /e2b 'length > 0')" = true ]; }
	soon came
	ask DELETE "/events/webhooks/$(jq -r '.[0].id // .id' body 2>/dev/null || echo e2b)" || :
	ask GET /events/webhooks
	for id in $(of_body '.[].id'); do ask DELETE "/events/webhooks/$id"; done
}

value=a-value-that-is-nowhere-else
a_secret_reaches_the_node_of_its_box_only() {
	json PUT /v1/secrets/TOKEN "{\"value\": \"$value\"}"
	is "$status" 201 "$(cat body)"
	lacks "$(cat body)" "$value"
	is "$(of_node one /v1/secrets | jq '.items | length') $(of_node two /v1/secrets | jq '.items | length')" '0 0'
	json POST /v1/boxes '{"secrets": [{"name": "TOKEN"}, {"name": "TOKEN", "as": "file"}], "labels": ["disk=fast"]}'
	is "$status" 201 "$(cat body)"
	box=$(of_body .id)
	is "$(of_node one /v1/secrets | jq -r '.items[].name') $(of_node two /v1/secrets | jq '.items | length')" 'TOKEN 0'
	digest=$(printf %s "$value" | sha256sum | cut -d ' ' -f 1)
	printed() {
		json POST "/v1/boxes/$box/execs" '{"command": "printf %s \"$TOKEN\" | sha256sum; sha256sum </run/secrets/TOKEN"}'
		[ "$(of_body .stdout | grep . | cut -d ' ' -f 1 | sort -u)" = "$1" ]
	}
	soon printed "$digest"
	# A program of its own box, with one request.
	json POST /v1/run '{"command": "printf %s \"$TOKEN\" | sha256sum", "secrets": [{"name": "TOKEN"}]}'
	is "$(of_body .stdout | cut -d ' ' -f 1)" "$digest" "$(cat body)"
	# A new value is at the node before the answer, also in the file of the running box.
	json PUT /v1/secrets/TOKEN '{"value": "another-value"}'
	is "$status $(of_body .version)" '200 2' "$(cat body)"
	soon printed "$(printf another-value | sha256sum | cut -d ' ' -f 1)"
	json PUT /v1/secrets/TOKEN "{\"value\": \"$value\"}"
	# Neither the database nor a file of any machine has the value as it is.
	PGDATA=$work/pg
	lacks "$(pg_dump -h "$work/pg" -U atoll postgres)" "$value"
	grep -rqa "$value" "$work/one/state" "$work/two/state" "$work/gate/state" "$work/secrets" && fail "a value is stored as it is"
	# Without the key of the gateways the row of the database is of no use: the key is not in it.
	lacks "$(pg_dump -h "$work/pg" -U atoll postgres)" "$(head -c 64 "$work/secrets/secrets.key")"
	json POST /v1/boxes '{"secrets": [{"name": "NONE"}]}'
	is "$status" 404 "$(cat body)"
	has "$(cat body)" "no secret 'NONE'"
	ask GET /v1/secrets
	is "$(of_body '.items[0].name')" TOKEN
	ask DELETE /v1/secrets/TOKEN
	is "$status" 204
	soon printed "$(printf '' | sha256sum | cut -d ' ' -f 1)"
	is "$(of_node one /v1/secrets | jq '.items | length')" 0
	ask DELETE "/v1/boxes/$box"
}

sets_of_packages_and_lessons_are_those_of_all_nodes() {
	ask GET /v1/packages
	is "$status $(of_body '.items | length')" '200 0' "$(cat body)"
	ask GET /v1/packages/none
	is "$status" 404 "$(cat body)"
	ask DELETE /v1/packages/none
	is "$status" 404 "$(cat body)"
	json POST /v1/packages '{"packages": {"pip": ["-bad"]}}'
	is "$status" 400 "$(cat body)"
	is "$(of_body .error.node | grep -c -e one -e two)" 1 "$(cat body)"
	ask DELETE /v1/pipelines/memory
	is "$status" 204 "$(cat body)"
	ask GET /v1/pipelines/metrics
	is "$status $(of_body .runs)" '200 0' "$(cat body)"
}

a_pipeline_runs_on_the_node_of_its_box() {
	for letters in $of_one $of_two; do
		box_at "$letters" "{\"name\": \"data-$letters\"}"
		json POST '/v1/pipelines?wait=1' "{\"task\": \"mean and median of 3, 1 and 2 in Python\", \"box\": \"data-$letters\"}"
		is "$status $(of_body '.run_id[0:3]') $(of_body .outcome)" "200 $letters verified" "$(cat body)"
		has "$(of_body '.evidence | join(";")')" "in a copy of box data-$letters"
		ask DELETE "/v1/boxes/$box"
	done
}

receipts_are_those_of_the_node_that_is_named() {
	json POST /v1/run '{"command": "true"}'
	run=$(of_body .id)
	got() { ask GET "/v1/runs/$run/receipt" && [ "$status" = 200 ]; }
	soon got
	ask GET /v1/receipts
	is "$status" 400 "$(cat body)"
	has "$(cat body)" 'name the node'
	ask GET "/v1/receipts/key?node=$run"
	is "$status" 200 "$(cat body)"
	ask GET /v1/receipts?node=one
	is "$status" 200 "$(cat body)"
	ask GET /v1/receipts?node=nowhere
	is "$status" 404 "$(cat body)"
}

no_path_of_the_api_is_answered_with_501() {
	ask GET /openapi.json
	of_body '.paths | to_entries[] | .key as $p | .value | keys[] | "\(ascii_upcase) \($p)"' >routes
	[ "$(wc -l <routes)" -gt 100 ] || fail "$(wc -l <routes) routes"
	while read -r method path; do
		case $path in */socket | /v1/events | /v1/keys* | /v1/teams* | */drain | */undrain) continue ;; esac
		at=$(printf %s "$path" | sed 's/{[a-z]*}/none/g')
		ask "$method" "$at" -H 'Content-Type: application/json' -d '{'
		[ "$status" != 501 ] || [ "$(of_body '.error.code // .message' 2>/dev/null)" != not_supported ] || echo "$method $path"
	done <routes >missing
	is "$(cat missing)" ''
}

run_tests
