#!/bin/sh
# directory.sh - what all gateways of a cluster share in PostgreSQL: keys and teams, and rows of nodes. Two gateways, one
# node, a private PostgreSQL.
. "$(dirname "$0")/lib.sh"
. "$here/engines.lib"
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
. "$here/cluster.lib"
chmod a+x "$work" "$TMPDIR"
leave() {
	for at in "$work"/*/supervisor; do
		[ ! -e "$at" ] || stop_machine "$(basename "$(dirname "$at")")"
	done
	[ ! -e "$work/restarted" ] || pids="$pids $(cat "$work/restarted")" # by a test, which is a subshell
	engines_stop
	finish
}
trap leave EXIT
postgres_start
export ATOLL_CLUSTER_SECRETS="$work/secrets"
sql() { psql -qAt -h "$work/pg" -U atoll postgres -c "$1"; }

# gateway NAME: starts it.
gateway() {
	mkdir -p "$work/$1"
	[ -e "$work/$1/state" ] || ATOLL_STATE="$work/$1/state" ATOLL_CLUSTER_DATABASE="$database" "$ATOLL" cluster init --name "$1" --quiet >/dev/null ||
		{ echo "Bail out! cluster init"; exit 1; }
	machine "$1" ATOLL_CLUSTER_ROLE=gateway ATOLL_CLUSTER_LISTEN=127.0.0.1:0 ATOLL_CLUSTER_DATABASE="$database"
	soon serves "$1"
}
gateway gw1
gateway gw2
url=$(address_of gw1)
other=$(address_of gw2)
key=$("$ATOLL" key new tests --state "$work/gw1/state" --quiet)

# ask METHOD PATH [CURL-OPTION...]: of the first gateway; ask_other: of the second. The answer is in $status and the file body.
ask_at() {
	at=$1 method=$2 path=$3
	shift 3
	status=$(curl -sS --max-time 30 -o body -D head -w '%{http_code}' -X "$method" -H "X-API-Key: ${as:-$key}" "$@" "$at$path")
}
ask() { ask_at "$url" "$@"; }
ask_other() { ask_at "$other" "$@"; }
of_body() { jq -r "$1" body; }
json_body='Content-Type: application/json'
works_at() { [ "$(curl -s -o /dev/null -w '%{http_code}' -H "X-API-Key: $2" "$1/v1/who")" = 200 ]; }
fails_at() { [ "$(curl -s -o /dev/null -w '%{http_code}' -H "X-API-Key: $2" "$1/v1/who")" = 401 ]; }

a_key_works_at_both_gateways_and_a_deleted_one_at_none() {
	soon works_at "$other" "$key"
	# One that the API made at the other gateway.
	ask_other POST /v1/keys -H "$json_body" -d '{"name": "made", "role": "viewer"}'
	is "$status" 201 "$(cat body)"
	made=$(of_body .key)
	soon works_at "$url" "$made"
	ask GET /v1/keys/made
	is "$(of_body .role)" viewer "$(cat body)"
	ask DELETE /v1/keys/made
	is "$status" 204 "$(cat body)"
	fails_at "$url" "$made" || fail "works at the gateway that deleted it"
	soon_limit=2 # a second, and the time of a busy machine
	soon fails_at "$other" "$made"
	unset soon_limit
	# Its row stays, so that no gateway brings it back; and no row has a key.
	is "$(sql "select count(*) from atoll.accounts where kind = 'key' and removed")" 1
	lacks "$(PGOPTIONS= pg_dump -h "$work/pg" -U atoll postgres)" "$made"
}

a_team_and_its_quotas_are_the_same_at_both_gateways() {
	soon works_at "$other" "$key"
	ask PUT /v1/teams/blue -H "$json_body" -d '{"boxes": 7}'
	is "$status" 201 "$(cat body)"
	has_team() { ask_other GET /v1/teams/blue && [ "$(of_body .quotas.boxes)" = "$1" ]; }
	soon has_team 7
	ask_other PUT /v1/teams/blue -H "$json_body" -d '{"boxes": 9}'
	is "$status" 200 "$(cat body)"
	is_changed() { ask GET /v1/teams/blue && [ "$(of_body .quotas.boxes)" = 9 ]; }
	soon is_changed
	ask DELETE /v1/teams/blue
	is "$status" 204 "$(cat body)"
	is_removed() { ask_other GET /v1/teams/blue && [ "$status" = 404 ]; }
	soon is_removed
}

rows_that_commit_out_of_order_are_not_lost() {
	soon works_at "$other" "$key"
	# A transaction that takes its number first and commits last, while others commit.
	mkfifo in
	psql -qAt -h "$work/pg" -U atoll postgres <in >psql.out 2>&1 &
	slow=$!
	exec 7>in
	rm in
	echo "begin; insert into atoll.accounts values ('team', 'late', '{\"name\": \"late\", \"created_ns\": 1, \"boxes\": 3, \"executions_per_day\": 0, \"compute_ms_per_month\": 0, \"output_bytes_per_day\": 0, \"requests_per_second\": 0, \"plan\": \"\", \"isolation\": \"\"}'); insert into atoll.changes (kind, id) values ('team', 'late');" >&7
	is_open() { [ "$(sql "select count(*) from pg_stat_activity where state = 'idle in transaction'")" = 1 ]; }
	soon is_open
	ask PUT /v1/teams/early -H "$json_body" -d '{}'
	is "$status" 201 "$(cat body)"
	is_pushed() { [ "$(sql "select count(*) from atoll.accounts where id = 'early'")" = 1 ]; }
	soon is_pushed
	echo "commit;" >&7
	exec 7>&-
	wait $slow
	has_both() { ask_other GET /v1/teams && [ "$(of_body '[.items[].name] | sort | join(" ")')" = 'default early late' ]; }
	soon has_both
}

keys_work_without_the_database_and_changes_follow() {
	soon works_at "$other" "$key"
	kill -STOP "$postgres_pid"
	pids_of_backends=$(pgrep -P "$postgres_pid")
	for pid in $pids_of_backends; do kill -STOP "$pid"; done
	works_at "$url" "$key" || fail "a known key"
	made=$("$ATOLL" key new offline --state "$work/gw1/state" --quiet)
	soon works_at "$url" "$made"
	# A key that is deleted now may work elsewhere: this is in the answer.
	is_refused() {
		"$ATOLL" key new brief --state "$work/gw1/state" --quiet
		ask DELETE /v1/keys/brief
		[ "$status $(of_body .error.code)" = '503 unavailable' ]
	}
	soon is_refused
	made=$("$ATOLL" key new later --state "$work/gw1/state" --quiet)
	for pid in $pids_of_backends; do kill -CONT "$pid"; done
	kill -CONT "$postgres_pid"
	soon works_at "$other" "$made"
}

# start_node: a node of both gateways, for the tests below.
start_node() {
	[ ! -e "$work/one" ] || return 0
	mkdir -p "$work/one"
	tunnels=$(sed -n 's/^atoll: nodes connect to \(.*\)$/\1/p' "$work/gw1/log"),$(sed -n 's/^atoll: nodes connect to \(.*\)$/\1/p' "$work/gw2/log")
	token=$(ATOLL_STATE="$work/gw1/state" ATOLL_CLUSTER_DATABASE="$database" "$ATOLL" node token --quiet)
	ATOLL_STATE="$work/one/state" ATOLL_CLUSTER_SECRETS="$work/none" "$ATOLL" node join "https://${tunnels%%,*}" "$token" --name one --quiet >/dev/null ||
		fail "the node did not join"
	soon starts one ATOLL_CLUSTER_ROLE=node ATOLL_CLUSTER_GATEWAYS="$tunnels" ATOLL_CLUSTER_SECRETS="$work/none"
	soon serves one
	is_up() { for at in "$url" "$other"; do [ "$(curl -s -H "X-API-Key: $key" "$at/v1/nodes" | jq -r '[.items[].state] | join(" ")')" = up ] || return 1; done; }
	soon is_up
}
create() {
	ask POST /v1/boxes -H "$json_body" -d "$1"
	is "$status" 201 "$(cat body)"
	box=$(of_body .id)
}
# other_lists FILTER: the list of the other gateway has $box.
other_lists() { ask_other GET "/v1/boxes?$1" && of_body '.items[].id' | grep -q "$box"; }

a_box_and_its_runs_events_and_audit_rows_are_in_the_lists_of_both_gateways() {
	soon works_at "$other" "$key"
	start_node
	create '{"name": "listed", "metadata": {"colour": "blue"}, "env": {"A": "secret value"}}'
	lacks "$(tr A-Z a-z <head)" atoll-box
	ask GET /v1/boxes # this gateway has stored the row before it answered
	is "$(of_body '.items[0] | "\(.id) \(.state) \(.node)"')" "$box running one" "$(cat body)"
	for filter in state=running name=list metadata=colour%3Dblue template=base limit=1 state=all; do soon other_lists "$filter"; done
	for filter in state=deleted name=other metadata=colour%3Dred; do
		ask_other GET "/v1/boxes?$filter"
		is "$(of_body '.items | length')" 0 "$filter"
	done
	ask POST "/v1/boxes/$box/execs" -H "$json_body" -d '{"command": "echo out; exit 3"}'
	run=$(of_body .id)
	has_run() { ask_other GET "/v1/runs?box=$box" && [ "$(of_body '.items[0] | "\(.id) \(.exit_code) \(.state)"')" = "$run 3 exited" ]; }
	soon has_run
	is "$(sql "select count(*) from atoll.runs where id = '$run' and not running and tableoid = ('atoll.runs_' || day)::regclass")" 1
	has_event() { ask_other GET "/v1/events?box=$box" && [ "$(of_body '.items[0].type')" = box.created ]; }
	soon has_event
	ask_other GET "/v1/events?order=newest&limit=1"
	is "$(of_body '.items | length')" 1
	next=$(of_body .next)
	ask_other GET "/v1/events?order=newest&limit=1&after=$next"
	is "$status $(of_body '.items | length')" '200 1' "$(cat body)"
	has_audit() { ask_other GET '/v1/audit?action=box.create' && [ "$(of_body '.items[0].subject')" = "$box" ]; }
	soon has_audit
	# A viewer sees the names of variables only, and no audit log.
	viewer=$("$ATOLL" key new look --role viewer --state "$work/gw2/state" --quiet)
	as=$viewer ask_other GET /v1/boxes
	is "$(of_body '.items[0].env.A')" null "$(cat body)"
	as=$viewer ask_other GET /v1/audit
	is "$status" 403 "$(cat body)"
	ask GET '/v1/boxes?after=nonsense'
	is "$status" 400
	# Rows of one node stay its own.
	is "$(sql "select count(*) from atoll.boxes where id = '$box' and node = 3")" 1
	ask DELETE "/v1/boxes/$box"
	is_deleted() { ask_other GET '/v1/boxes?state=deleted' && [ "$(of_body '.items[0].id')" = "$box" ]; }
	soon is_deleted
	all_kept() { [ "$(sqlite3 "$work/one/state/server/atoll.db" 'select count(*) from directory_rows')" = 0 ]; }
	soon all_kept
}

a_row_that_the_database_rejects_does_not_hold_up_the_others() {
	soon works_at "$other" "$key"
	start_node
	create '{}'
	sql "alter table atoll.events add constraint no_pause check (row ->> 'type' <> 'box.paused')"
	for action in pause resume; do
		ask POST "/v1/boxes/$box/$action" -H "$json_body" -d '{}'
		is "$status" 200 "$(cat body)"
	done
	ask POST "/v1/boxes/$box/execs" -H "$json_body" -d '{"command": "true"}'
	run=$(of_body .id)
	has_run() { ask_other GET "/v1/runs?box=$box" && [ "$(of_body '.items[0].id')" = "$run" ]; }
	soon has_run
	all_kept() { [ "$(sqlite3 "$work/one/state/server/atoll.db" 'select count(*) from directory_rows')" = 0 ]; }
	soon all_kept
	is "$(sql "select string_agg(row ->> 'type', ' ' order by seq) from atoll.events where box = '$box'")" 'box.created box.resumed run.ended'
	is "$(cat "$work/gw1/log" "$work/gw2/log" | grep -c 'the database rejects a row')" 1
	sql "alter table atoll.events drop constraint no_pause"
	ask DELETE "/v1/boxes/$box"
}

an_idempotency_key_reaches_the_node_that_it_was_used_at_first() {
	soon works_at "$other" "$key"
	start_node
	ask POST /v1/boxes -H "$json_body" -H 'Idempotency-Key: once-1' -d '{}'
	is "$status" 201 "$(cat body)"
	box=$(of_body .id)
	ask_other POST /v1/boxes -H "$json_body" -H 'Idempotency-Key: once-1' -d '{}'
	is "$(of_body .id)" "$box"
	is "$(sql "select team, node from atoll.idempotency where key = 'once-1'")" 'default|3'
	# The row decides, not the nodes that are connected now: no second box.
	sql "insert into atoll.idempotency values ('default', 'once-2', 99)"
	ask POST /v1/boxes -H "$json_body" -H 'Idempotency-Key: once-2' -d '{}'
	case $status in 404 | 503) ;; *) fail "$status $(cat body)" ;; esac
	ask DELETE "/v1/boxes/$box"
	# Without the header no row is written.
	create '{}'
	is "$(sql "select count(*) from atoll.idempotency")" 2
	ask DELETE "/v1/boxes/$box"
}

boxes_of_a_node_that_does_not_answer_are_listed() {
	soon works_at "$other" "$key"
	start_node
	create '{}'
	kill -STOP "$(server_of one)"
	is_away() { ask_other GET /v1/boxes && [ "$(of_body '.items[0].id')" = "$box" ] && case $(of_body '.items[0].state') in unreachable | lost) ;; *) return 1 ;; esac }
	soon is_away
	kill -CONT "$(server_of one)"
	is_back() { ask_other GET /v1/boxes && [ "$(of_body '.items[0].state')" = running ]; }
	soon is_back
	is_back_here() { ask GET /v1/boxes && [ "$(of_body '.items[0].state')" = running ]; }
	soon is_back_here
	ask DELETE "/v1/boxes/$box"
	is "$status" 204 "$(cat body)"
}

without_the_database_lists_come_from_the_nodes_and_rows_follow() {
	soon works_at "$other" "$key"
	start_node
	ask POST /v1/boxes -H "$json_body" -d '{}'
	is "$status" 201 "$(cat body)"
	box=$(of_body .id)
	curl -sS -N -o stream -X POST -H "X-API-Key: $key" -H "$json_body" -H 'Accept: text/event-stream' -d '{"command": "for i in 1 2 3 4 5 6 7 8; do echo tick $i; sleep 0.5; done"}' "$url/v1/boxes/$box/execs" &
	stream=$!
	kill -9 "$postgres_pid"
	wait "$postgres_pid" 2>/dev/null || :
	ask POST /v1/boxes -H "$json_body" -d '{}'
	is "$status" 201 "$(cat body)"
	second=$(of_body .id)
	ask GET /v1/boxes
	has "$(of_body '[.items[].id] | join(" ")')" "$second"
	ask POST "/v1/boxes/$second/execs" -H "$json_body" -d '{"command": "true"}'
	is "$status" 200 "$(cat body)"
	run=$(of_body .id)
	ask DELETE "/v1/boxes/$second"
	is "$status" 204
	wait $stream
	has "$(cat stream)" 'tick 8'
	rm -f "$work/pg/data/postmaster.pid"
	postgres_run
	echo "$postgres_pid" >"$work/restarted"
	has_rows() { [ "$(sql "select count(*) from atoll.boxes where id = '$second' and state = 'deleted'") $(sql "select count(*) from atoll.runs where id = '$run' and not running")" = '1 1' ]; }
	soon_limit=8 # 5 s, and the time of a busy machine
	soon has_rows
	unset soon_limit
	ask DELETE "/v1/boxes/$box"
}

run_tests
