#!/bin/sh
# leases.sh - nodes that are lost and return: a gateway, two nodes and a private PostgreSQL; with coordinator=etcd also a
# private etcd (leases_etcd.sh).
. "$(dirname "$0")/lib.sh"
. "$here/engines.lib"
. "$here/cluster.lib"
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
slow_tests=a_node_with_a_restored_state_folder_continues
chmod a+x "$work" "$TMPDIR"
leave() {
	for at in "$work"/*/stopped; do [ ! -e "$at" ] || kill -CONT $(cat "$at") 2>/dev/null; done
	engines_stop
	leave_cluster
}
trap leave EXIT
postgres_start
etcd=
[ "${coordinator:-}" != etcd ] || etcd_start

sql() { psql -qAt -h "$work/pg" -U atoll postgres -c "$1"; }
as_gate() {
	env ATOLL_RUN="$work/gate/run" ATOLL_STATE="$work/gate/state" ATOLL_CLUSTER_SECRETS="$work/secrets" ATOLL_CLUSTER_DATABASE="$database" \
		ATOLL_CLUSTER_NAME=gate ${etcd:+ATOLL_CLUSTER_ETCD="$etcd"} "$@"
}
start_gate() {
	machine gate ATOLL_CLUSTER_ROLE=gateway ATOLL_CLUSTER_LISTEN="$1" ATOLL_CLUSTER_SECRETS="$work/secrets" ATOLL_CLUSTER_DATABASE="$database" \
		ATOLL_CLUSTER_FORGET_AFTER=6s ${etcd:+ATOLL_CLUSTER_ETCD="$etcd"}
	soon serves gate
	url=$(address_of gate)
}
start_node() { soon starts "$1" ATOLL_CLUSTER_ROLE=node ATOLL_CLUSTER_GATEWAYS="$tunnel"; }
for name in gate one two; do mkdir -p "$work/$name"; done
as_gate "$ATOLL" cluster init >"$work/init.log" 2>&1 || { echo "Bail out! $(cat "$work/init.log")"; exit 1; }
start_gate 127.0.0.1:0
tunnel=$(sed -n 's/^atoll: nodes connect to \(.*\)$/\1/p' "$work/gate/log")
key=$("$ATOLL" key new tests --state "$work/gate/state" --quiet)
for name in one two; do
	token=$(as_gate "$ATOLL" node token --quiet)
	env ATOLL_STATE="$work/$name/state" "$ATOLL" node join "https://$tunnel" "$token" --name "$name" >"$work/$name/number" 2>"$work/$name/join.log" ||
		{ echo "Bail out! $(cat "$work/$name/join.log")"; exit 1; }
	start_node "$name"
done
one=$(cat "$work/one/number")
two=$(cat "$work/two/number")
are_up="$one one up, $two two up"

# ask METHOD PATH [CURL-OPTION...]: the answer is in $status and the file body.
ask() {
	method=$1
	at=$2
	shift 2
	status=$(curl -sS --max-time 30 -o body -D head -w '%{http_code}' -X "$method" -H "X-API-Key: $key" "$@" "$url$at")
}
json() { ask "$1" "$2" -H 'Content-Type: application/json' -d "$3"; }
of_body() { jq -r "$1" body; }
now_ms() { date +%s%3N; }
# box_on NODE [JSON]: $box is a new box of that node.
box_on() {
	while :; do
		json POST /v1/boxes "${2:-{\}}"
		is "$status" 201 "$(cat body)"
		box=$(of_body .id)
		[ "$(of_body .node)" != "$(cat "$work/$1/number")" ] || return 0
		case $box in $(prefix_of "$1")*) return 0 ;; esac
		ask DELETE "/v1/boxes/$box"
	done
}
prefix_of() { /usr/bin/python3 -c 'import sys; n = int(sys.argv[1]); a = "abcdefghijklmnopqrstuvwxyz234567"; print(a[n >> 10] + a[n >> 5 & 31] + a[n & 31])' "$(cat "$work/$1/number")"; }
# freeze NAME, thaw NAME: all processes of its daemon, as if the machine did not answer.
freeze() {
	pids_of "$1" >"$work/$1/stopped"
	kill -STOP $(cat "$work/$1/stopped")
}
thaw() {
	kill -CONT $(cat "$work/$1/stopped")
	rm "$work/$1/stopped"
}
pids_of() { pid_of "$1"; pgrep -P "$(pid_of "$1")"; }
# A daemon that does not answer is noticed after 2.5 s without heartbeats, and is lost some 0.1 s later: unreachable, or lost already.
is_away() { nodes_are "$one one unreachable, $two two up" || nodes_are "$one one lost, $two two up"; }
epoch_of() { sql "select epoch from atoll.nodes where name = '$1'"; }
metric() { curl -sS -H "X-API-Key: $key" "$url/metrics" | sed -n "s/^atoll_$1 //p"; }

soon nodes_are "$are_up"

nodes_that_have_joined_get_a_lease() {
	stored() { [ "$(sql "select string_agg(name || ' ' || state, ', ' order by name) from atoll.nodes")" = 'one up, two up' ]; }
	soon stored
	is "$(sql 'select count(*) from atoll.tunnels where up')" 2
	acknowledged() { [ "$(metric 'cluster_heartbeats_total{kind="acknowledged"}')" -gt 2 ]; }
	soon acknowledged
	is "$(metric cluster_lease) $(metric 'cluster_nodes{state="up"}')" '1 2'
	as_gate "$ATOLL" node ls --json >nodes
	is "$(jq -r '[.items[] | "\(.name) \(.state)"] | join(", ")' nodes)" 'one up, two up'
}

a_node_that_does_not_answer_is_unreachable_then_lost_and_returns() {
	box_on one
	epoch=$(epoch_of one)
	freeze one
	began=$(now_ms)
	soon is_away
	ask GET "/v1/boxes/$box"
	is "$status $(of_body '"\(.error.code) \(.error.node)"')" "503 unreachable $one" "$(cat body)"
	has "$(cat head)" 'Retry-After: '
	is_lost() { [ "$(sql "select state from atoll.nodes where name = 'one'")" = lost ]; }
	soon is_lost
	took=$(($(now_ms) - began))
	[ "$took" -lt 5000 ] || fail "lost after $took ms"
	echo "# lost after $took ms"
	is "$(epoch_of one)" $((epoch + 1))
	shows_lost() { nodes_are "$one one lost, $two two up"; }
	soon shows_lost
	ask GET "/v1/boxes/$box"
	is "$status $(of_body '"\(.error.code) \(.error.state)"')" '503 unreachable lost' "$(cat body)"
	is "$(curl -s -o body -w '%{http_code}' -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 49983' "$url/health")" 503 "$(cat body)"
	is "$(metric cluster_lost_total) $(metric 'cluster_nodes{state="lost"}')" '1 1'
	# New boxes are created on the other node.
	json POST /v1/boxes '{}'
	is "$status" 201 "$(cat body)"
	thaw one
	soon nodes_are "$are_up"
	is "$(epoch_of one)" $((epoch + 1))
	json POST "/v1/boxes/$box/execs" '{"command": "echo again"}'
	is "$status $(of_body .stdout | head -n 1)" '200 again' "$(cat body)"
	# The gateway stores events, which its webhooks send.
	is "$(sqlite3 "$work/gate/state/server/atoll.db" "select type from events where type like 'node.%' and data like '%\"one\"%' order by seq desc limit 3" | xargs)" \
		'node.up node.lost node.unreachable'
}

a_node_with_a_restored_state_folder_continues() {
	soon nodes_are "$are_up"
	stop_machine one
	cp -a "$work/one/state" "$work/one/backup"
	start_node one
	soon nodes_are "$are_up"
	box_on one
	old=$box
	freeze one
	soon nodes_are "$one one lost, $two two up"
	thaw one
	soon nodes_are "$are_up"
	json POST "/v1/boxes/$old/execs" '{"command": "echo old"}'
	is "$status" 200 "$(cat body)"
	stop_machine one
	rm -rf "$work/one/state"
	mv "$work/one/backup" "$work/one/state"
	start_node one
	soon nodes_are "$are_up"
	# It has a lease, its new rows count, and what it no longer has is not used.
	box_on one '{"on_loss": "stop"}'
	json POST "/v1/boxes/$box/execs" '{"command": "echo new"}'
	is "$status $(of_body .stdout)" '200 new' "$(cat body)"
	run=$(of_body .id)
	run_is_listed() { ask GET /v1/runs && of_body '.items[].id' | grep -qx "$run"; }
	soon run_is_listed
	ask GET "/v1/boxes/$old"
	is "$status" 404 "$(cat body)"
	ask DELETE "/v1/boxes/$box"
	is "$status" 204 "$(cat body)"
}

# The fence in the init of a box: the daemon of its node does not answer, and its programs are stopped.
a_box_with_on_loss_is_stopped_when_the_lease_of_its_node_ends_and_continues() {
	leased() { box_on one '{"on_loss": "stop"}' >/dev/null 2>&1; }
	soon leased
	box_on one '{"on_loss": "stop"}'
	is "$(of_body .on_loss)" stop "$(cat body)"
	seconds=9$$ # no other test has it
	json POST "/v1/boxes/$box/execs" '{"command": "exec sleep '$seconds'", "background": true}'
	is "$status" 201 "$(cat body)"
	program_runs() { program=$(pgrep -fx "sleep $seconds"); }
	soon program_runs
	freeze one
	is_stopped() { [ "$(ps -o stat= -p "$program" | cut -c 1)" = T ]; }
	soon is_stopped
	thaw one
	continues() { [ "$(ps -o stat= -p "$program" | cut -c 1)" = S ]; }
	soon continues
	# A new server process extends the lease of boxes that it finds.
	kill -9 "$(server_of one)"
	soon nodes_are "$are_up"
	json POST "/v1/boxes/$box/execs" '{"command": "sleep 3; echo alive"}'
	is "$(of_body .stdout | head -n 1)" alive "$(cat body)"
	ask DELETE "/v1/boxes/$box"
	json POST /v1/boxes '{"on_loss": "sometimes"}'
	is "$status" 400 "$(cat body)"
}

a_box_of_an_unreachable_node_can_be_deleted() {
	box_on one
	deleted=$box
	listed() { [ "$(sql "select count(*) from atoll.boxes where id = '$deleted'")" = 1 ]; }
	soon listed
	json PUT /v1/teams/other '{}'
	other=$("$ATOLL" key new other --team other --state "$work/gate/state" --quiet)
	freeze one
	soon is_away
	mine=$key
	key=$other
	ask DELETE "/v1/boxes/$deleted"
	key=$mine
	is "$status" 503 "a key of another team: $(cat body)"
	ask DELETE "/v1/boxes/$deleted"
	is "$status $(of_body '"\(.id) \(.state)"')" "202 $deleted deleting" "$(cat body)"
	ask DELETE "/v1/boxes/$deleted"
	is "$status" 202 "$(cat body)"
	ask DELETE "/v1/boxes/$deleted/schedules/x"
	is "$status" 503 "$(cat body)"
	# Lists no longer have it: now, and when its node carries the deletion out.
	is_listed() {
		for path in /v1/boxes /v2/sandboxes; do
			ask GET "$path"
			is "$status" 200 "$(cat body)"
			! grep -q "$deleted" body || return 0
		done
		return 1
	}
	! is_listed || fail "it is listed: $(cat body)"
	thaw one
	ended() {
		! is_listed || fail "it is listed again: $(cat body)"
		[ "$(sql "select state from atoll.boxes where id = '$deleted'")" = deleted ]
	}
	soon ended
	settled() {
		! is_listed || fail "it is listed again: $(cat body)"
		[ "$(sql 'select count(*) from atoll.deletions')" = 0 ]
	}
	soon settled
}

requests_continue_without_the_database_and_nodes_keep_their_state() {
	[ -z "$etcd" ] || skip 'etcd coordinates'
	box_on two
	kill -9 "$postgres_pid"
	wait "$postgres_pid" 2>/dev/null || :
	rm -f "$work/pg/data/postmaster.pid" "$work/pg"/.s.*
	lapsed() { [ "$(metric cluster_lease)" = 0 ]; }
	soon lapsed
	json POST "/v1/boxes/$box/execs" '{"command": "echo served"}'
	is "$status $(of_body .stdout | head -n 1)" '200 served' "$(cat body)"
	json POST /v1/boxes '{}'
	is "$status" 201 "$(cat body)"
	is "$(nodes '[.items[] | "\(.number) \(.name) \(.state)"] | join(", ")')" "$are_up"
	began=$(now_ms)
	json POST /v1/boxes '{"name": "later"}'
	is "$status $(of_body .error.code)" '503 unavailable' "$(cat body)"
	has "$(cat body)" database
	[ $(($(now_ms) - began)) -lt 2000 ] || fail "it took $(($(now_ms) - began)) ms"
	postgres_run
	renewed() { [ "$(metric cluster_lease)" = 1 ]; }
	soon renewed
	soon nodes_are "$are_up"
	is "$(sql "select string_agg(state, ' ') from atoll.nodes")" 'up up'
}

with_etcd_names_and_losses_of_nodes_continue_without_the_database() {
	[ "$etcd" ] || skip 'PostgreSQL coordinates'
	soon nodes_are "$are_up"
	kill -9 "$postgres_pid"
	wait "$postgres_pid" 2>/dev/null || :
	rm -f "$work/pg/data/postmaster.pid" "$work/pg"/.s.*
	json POST /v1/boxes '{"name": "later"}'
	is "$status" 201 "$(cat body)"
	json POST /v1/boxes '{"name": "later"}'
	is "$status" 409 "$(cat body)"
	is "$(metric cluster_lease)" 1
	freeze one
	soon nodes_are "$one one lost, $two two up"
	thaw one
	soon nodes_are "$are_up"
	postgres_run
	as_gate "$ATOLL" node rm two >out 2>err || fail "$(cat err)"
	soon nodes_are "$one one up"
}

run_tests
