#!/bin/sh
# restart_elsewhere.sh - boxes with on_loss restart: their snapshots are copied to other nodes, and when their node is lost they
# start there, with id and name. A gateway, three nodes and a private PostgreSQL.
. "$(dirname "$0")/lib.sh"
. "$here/engines.lib"
. "$here/cluster.lib"
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
slow_tests=a_move_continues_after_the_end_of_the_gateway_and_of_the_node
chmod a+x "$work" "$TMPDIR"
leave() {
	for at in "$work"/*/stopped; do [ ! -e "$at" ] || kill -CONT $(cat "$at") 2>/dev/null; done
	engines_stop
	leave_cluster
}
trap leave EXIT
postgres_start

sql() { psql -qAt -h "$work/pg" -U atoll postgres -c "$1"; }
as_gate() {
	env ATOLL_RUN="$work/gate/run" ATOLL_STATE="$work/gate/state" ATOLL_CLUSTER_SECRETS="$work/secrets" ATOLL_CLUSTER_DATABASE="$database" \
		ATOLL_CLUSTER_NAME=gate "$@"
}
for name in gate one two three; do mkdir -p "$work/$name"; done
as_gate "$ATOLL" cluster init >"$work/init.log" 2>&1 || { echo "Bail out! $(cat "$work/init.log")"; exit 1; }
machine gate ATOLL_CLUSTER_ROLE=gateway ATOLL_CLUSTER_LISTEN=127.0.0.1:0 ATOLL_CLUSTER_SECRETS="$work/secrets" ATOLL_CLUSTER_DATABASE="$database"
soon serves gate
url=$(address_of gate)
tunnel=$(sed -n 's/^atoll: nodes connect to \(.*\)$/\1/p' "$work/gate/log")
key=$("$ATOLL" key new tests --state "$work/gate/state" --quiet)
token=$(as_gate "$ATOLL" node token --uses 3 --quiet)
for name in one two three; do
	env ATOLL_STATE="$work/$name/state" "$ATOLL" node join "https://$tunnel" "$token" --name "$name" >"$work/$name/number" 2>"$work/$name/join.log" ||
		{ echo "Bail out! $(cat "$work/$name/join.log")"; exit 1; }
done
for name in one two three; do soon starts "$name" ATOLL_CLUSTER_ROLE=node ATOLL_CLUSTER_GATEWAYS="$tunnel"; done
are_up=$(for name in one two three; do printf '%s %s up, ' "$(cat "$work/$name/number")" "$name"; done)
are_up=${are_up%, }

# ask METHOD PATH [CURL-OPTION...]: the answer is in $status and the file body.
ask() {
	method=$1
	at=$2
	shift 2
	status=$(curl -sS --max-time "${patience:-30}" -o body -D head -w '%{http_code}' -X "$method" -H "X-API-Key: $key" "$@" "$url$at")
}
json() { ask "$1" "$2" -H 'Content-Type: application/json' -d "$3"; }
of_body() { jq -r "$1" body; }
created() {
	json POST /v1/boxes "$1"
	[ "$status" = 201 ]
}
runs() { # runs COMMAND: in $box, its output is in $out
	json POST "/v1/boxes/$box/execs" "$(jq -n --arg c "$1" '{command: $c}')"
	out=$(of_body '.stdout // ""')
	[ "$status" = 200 ]
}
node_of() { /usr/bin/python3 -c 'import sys; a = "abcdefghijklmnopqrstuvwxyz234567"; b = sys.argv[1]; print((a.index(b[0]) << 10) + (a.index(b[1]) << 5) + a.index(b[2]))' "$1"; }
name_of() { for name in one two three; do [ "$(cat "$work/$name/number")" != "$1" ] || echo "$name"; done; }
others() { for name in one two three; do [ "$name" = "$1" ] || echo "$name"; done; }
# all_have SNAPSHOT NODE...: a copy.
all_have() {
	snapshot=$1
	shift
	for name in "$@"; do
		[ "$(sqlite3 "$work/$name/state/server/atoll.db" "select count(*) from copies where id = '$snapshot'")" = 1 ] || return 1
	done
}
# freeze NAME, thaw NAME: all processes of its daemon, as if the machine did not answer.
freeze() {
	{ pid_of "$1"; pgrep -P "$(pid_of "$1")"; } >"$work/$1/stopped"
	kill -STOP $(cat "$work/$1/stopped")
}
thaw() {
	kill -CONT $(cat "$work/$1/stopped")
	rm "$work/$1/stopped"
}
now_ms() { date +%s%3N; }

soon nodes_are "$are_up"

a_box_restarts_on_another_node_with_its_files_its_id_and_its_name() {
	soon created '{"name": "keeper", "session": "s1", "on_loss": "restart", "env": {"KIND": "copied"}, "metadata": {"a": "b"}}'
	box=$(of_body .id)
	is "$(of_body .on_loss)" restart
	first=$(name_of "$(node_of "$box")")
	runs 'echo before >kept; echo $$ >/tmp/pid'
	json POST /v1/snapshots "{\"box\": \"$box\"}"
	is "$status" 201 "$(cat body)"
	snapshot=$(of_body .id)
	soon all_have "$snapshot" $(others "$first")
	runs 'echo after >lost; exec sleep 9'$$' &'
	began=$(now_ms)
	freeze "$first"
	patience=1 # a request that the frozen node has received is not answered
	answers() { runs 'cat kept lost 2>&1; echo "$KIND"'; }
	soon answers
	patience=30
	took=$(($(now_ms) - began))
	echo "# answers again after $took ms"
	has "$out" before
	has "$out" 'No such file'
	has "$out" copied
	[ "$took" -lt 10000 ] || fail "it took $took ms"
	second=$(name_of "$(sql "select node from atoll.moved where id = '$box'")")
	[ "$second" ] && [ "$second" != "$first" ] || fail "it is on $second"
	ask GET /v1/boxes/keeper
	is "$status $(of_body '"\(.id) \(.name) \(.session) \(.metadata.a)"')" "200 $box keeper s1 b" "$(cat body)"
	listed() {
		ask GET /v1/boxes
		[ "$(jq -r ".items[] | select(.id == \"$box\") | .node" body)" = "$second" ]
	}
	soon listed
	is "$(sqlite3 "$work/$second/state/server/atoll.db" "select count(*) from events where type = 'box.restarted' and box = '$box'")" 1
	# The name is its own, also after the restart.
	json POST /v1/boxes '{"name": "keeper"}'
	is "$status" 409 "$(cat body)"
	printf '%s\n' "box=$box" "first=$first" "second=$second" >"$work/state"
}

the_node_that_returns_ends_its_copy_and_the_box_moves_again() {
	. "$work/state"
	was_frozen=$first
	thaw "$first"
	soon nodes_are "$are_up"
	ended() { [ "$(sqlite3 "$work/$was_frozen/state/server/atoll.db" "select state || cause from boxes where id = '$box'")" = gonesuperseded ]; }
	soon ended
	gone() { ! pgrep -fx "sleep 9$$" >/dev/null; }
	soon gone
	runs 'cat kept' || fail "$(cat body)"
	# Snapshots of it at its new node are copied, too.
	runs 'echo second >>kept'
	json POST /v1/snapshots "{\"box\": \"$box\"}"
	is "$status" 201 "$(cat body)"
	snapshot=$(of_body .id)
	is "$(name_of "$(node_of "$snapshot")")" "$second"
	soon all_have "$snapshot" $(others "$second")
	freeze "$second"
	# A deletion that arrives at the old node: it does not answer that the box is deleted, which runs elsewhere.
	curl -sS --max-time 60 -o late -w '%{http_code}' -X DELETE -H "X-API-Key: $key" "$url/v1/boxes/$box" >late.status &
	late=$!
	patience=1
	answers() { runs 'cat kept'; }
	soon answers
	patience=30
	has "$out" second
	thaw "$second"
	wait $late
	is "$(cat late.status)" 503 "$(cat late)"
	soon nodes_are "$are_up"
	runs 'cat kept' || fail "$(cat body)"
	has "$out" second
}

copies_of_a_deleted_box_are_deleted() {
	. "$work/state"
	ask DELETE "/v1/boxes/$box"
	is "$status" 204 "$(cat body)"
	ask GET "/v1/boxes/$box"
	is "$(of_body .state)" deleted "$(cat body)"
	none_left() {
		for name in one two three; do
			[ "$(sqlite3 "$work/$name/state/server/atoll.db" "select count(*) from copies")" = 0 ] || return 1
			[ -z "$(ls "$work/$name/state/server/copies")" ] || return 1
		done
	}
	soon none_left
	json POST /v1/boxes '{"name": "keeper"}'
	is "$status" 201 "$(cat body)"
}

what_cannot_restart_elsewhere_is_refused() {
	json POST /v1/boxes '{"on_loss": "restart", "packages": {"python": ["requests"]}}'
	is "$status" 400 "$(cat body)"
	has "$(cat body)" 'packages'
	json POST /v1/volumes '{"name": "data"}'
	json POST /v1/boxes '{"on_loss": "restart", "volumes": [{"name": "data", "path": "/data"}]}'
	is "$status" 400 "$(cat body)"
	has "$(cat body)" volumes
	json POST /v1/boxes '{"on_loss": "sometimes"}'
	is "$status" 400 "$(cat body)"
	# Requests of gateways only.
	ask GET /cluster/copies
	is "$status" 404 "$(cat body)"
}

# drain NAME [OPTION...]: as an operator types it, through the gateway; what it prints is in the file drained.
drain() { ATOLL_HOST=$url ATOLL_KEY=$key timeout 90 "$ATOLL" node drain "$@" >drained 2>&1; }
undrain_all() { for name in one two three; do ATOLL_HOST=$url ATOLL_KEY=$key "$ATOLL" node undrain "$name" --quiet; done; }
are_draining() { [ "$(nodes '[.items[] | .figures.draining] | map(tostring) | join(" ")')" = "$1" ]; }
where_is() { name_of "$(sql "select node from atoll.moved where id = '$1'")"; }

a_node_that_drains_moves_its_boxes_and_lists_those_that_stay() {
	soon created '{"name": "mover", "session": "s2", "on_loss": "restart", "metadata": {"a": "b"}, "retention_ms": 60000}'
	box=$(of_body .id)
	first=$(name_of "$(node_of "$box")")
	stays=
	for i in $(seq 40); do
		json POST /v1/boxes '{}'
		[ "$(node_of "$(of_body .id)")" != "$(node_of "$box")" ] || { stays=$(of_body .id) && break; }
		ask DELETE "/v1/boxes/$(of_body .id)"
	done
	[ "$stays" ] || fail "no second box on $first"
	runs 'echo one >kept; sleep 8'$$' >/dev/null &'
	drain "$first" --move || fail "$(cat drained)"
	has "$(cat drained)" "1 box of node $first moves to other nodes"
	has "$(cat drained)" "$stays stays: its on_loss is not restart"
	has "$(cat drained)" "node $first takes no new boxes"
	lacks "$(cat drained)" "$box"
	second=$(where_is "$box")
	[ "$second" ] && [ "$second" != "$first" ] || fail "it is on '$second'"
	runs 'cat kept' || fail "$(cat body)"
	is "$out" one
	ask GET /v1/boxes/mover
	is "$status $(of_body '"\(.id) \(.name) \(.session) \(.metadata) \(.retention_ms)"')" "200 $box mover s2 {\"a\":\"b\"} 60000" "$(cat body)"
	json POST /v1/boxes '{"name": "mover"}'
	is "$status" 409 "$(cat body)"
	# Nothing of it is left on the node that drains, and the other box is used as before.
	ended() { [ "$(sqlite3 "$work/$first/state/server/atoll.db" "select state || cause, (select count(*) from snapshots where box = boxes.id) from boxes where id = '$box'")" = 'gonesuperseded|0' ]; }
	soon ended
	is "$(pgrep -fx "sleep 8$$")" ''
	json POST "/v1/boxes/$stays/execs" '{"command": "echo here"}'
	is "$status $(of_body .stdout)" '200 here' "$(cat body)"
	ask DELETE "/v1/boxes/$stays"
	# Back to the first node, which has not had another epoch since.
	undrain_all
	for name in one two three; do [ "$name" = "$first" ] || [ "$name" = "$second" ] || drain "$name"; done
	runs 'echo two >>kept'
	drain "$second" --move --json || fail "$(cat drained)"
	is "$(jq -c '[.name, .moves.moving, .moves.staying]' drained)" "[\"$second\",0,0]" "$(cat drained)"
	curl -sS -H "X-API-Key: $key" "$url/openapi.json" >openapi.json
	printf 'POST /v1/nodes/{node}/drain 200 %s\n' "$(tr -d '\n' <drained)" >answers
	/usr/bin/python3 "$here/openapi.py" openapi.json answers >wrong || fail "$(cat wrong)"
	is "$(where_is "$box")" "$first"
	runs 'cat kept' || fail "$(cat body)"
	is "$(echo $out)" 'one two'
	# No other node takes boxes: it stays, and is used as before.
	drain "$first" --move || fail "$(cat drained)"
	has "$(cat drained)" "$box mover stays: no other node takes boxes"
	runs 'cat kept' || fail "$(cat body)"
	is "$(echo $out)" 'one two'
	undrain_all
	soon are_draining 'false false false'
	deleted() { ask DELETE "/v1/boxes/$box" && [ "$status" = 204 ]; } # 503 while a slow node has no lease
	soon deleted
}

a_move_continues_after_the_end_of_the_gateway_and_of_the_node() {
	soon created '{"name": "big", "on_loss": "restart"}'
	box=$(of_body .id)
	first=$(name_of "$(node_of "$box")")
	runs 'head -c 60000000 /dev/urandom >big; sha256sum <big >sum' || fail "$(cat body)"
	json POST "/v1/nodes/$first/drain" '{"move": true}'
	is "$status $(of_body .moves.moving)" '200 1' "$(cat body)"
	packs() { [ "$(sqlite3 "$work/$first/state/server/atoll.db" "select instr(metadata, 'atoll.leaving') > 0 from boxes where id = '$box'")" = 1 ]; }
	soon packs
	kill -9 "$(server_of "$first")" "$(server_of gate)"
	answers() { runs 'sha256sum <big | cmp - sum && echo same'; }
	soon answers
	is "$out" same
	# It was not packed when the servers ended: it has moved since, or it moves now.
	moved() { [ "$(where_is "$box")" ] && answers; }
	soon moved
	[ "$(where_is "$box")" != "$first" ] || fail 'it is where it was'
	undrain_all
	ask DELETE "/v1/boxes/$box"
}

run_tests
