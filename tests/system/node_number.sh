#!/bin/sh
# node_number.sh - ids that begin with the number of their machine in a cluster.
. "$(dirname "$0")/daemon.lib"

# is_own ID: 15 letters, of node 7.
is_own() { echo "$1" | grep -qxE 'aah[a-z2-7]{12}' || fail "$2 '$1' is not an id of node 7"; }
is_short() { echo "$1" | grep -qxE '[a-z2-7]{12}' || fail "'$1' is not an id of 12 letters"; }

says() { # BOX TEXT
	api POST "/v1/boxes/$1/execs" '{"command": "cat note"}'
	is "$code" 200 "$body"
	is "$(get .stdout)" "$2"
}

restart_with() { # NUMBER
	stop_daemon
	mkdir -p "$state/cluster"
	echo "$1" >"$state/cluster/number"
	start_daemon
}

ids_begin_with_the_number_and_older_ones_stay_valid() {
	new_box
	old=$box
	is_short "$old"
	api PUT "/v1/boxes/$old/files?path=note" old -H 'Content-Type: application/octet-stream'
	restart_with 7

	says "$old" old
	run=$(get .id)
	is_own "$run" run
	api GET "/v1/boxes/$old"
	is "$(get .state)" running
	api GET "/v1/runs/$run"
	is "$(get .box)" "$old"

	for i in 1 2 3 4 5 6; do # more than the pool had
		new_box
		is_own "$box" box
	done
	api PUT "/v1/boxes/$box/files?path=note" new -H 'Content-Type: application/octet-stream'
	says "$box" new
	api GET "/v1/boxes/$box/execs/$(get .id)"
	is "$code" 200 "$body"
	api POST "/v1/boxes/$box/contexts" '{"language": "bash"}'
	is_own "$(get .id)" context
	api GET "/v1/boxes/$box/contexts/$(get .id)"
	is "$code" 200 "$body"
	api POST /v1/snapshots "{\"box\": \"$box\"}"
	is_own "$(get .id)" snapshot
	api GET "/v1/snapshots/$(get .id)"
	is "$code" 200 "$body"
	api POST /v1/volumes '{"name": "data", "bytes": 33554432}'
	is_own "$(get .id)" volume
	api POST /v1/boxes '{"volumes": [{"name": "data", "path": "/data"}]}'
	is "$code" 201 "$body"
	api DELETE "/v1/boxes/$(get .id)"
	api POST /v2/sandboxes '{"templateID": "base", "timeout": 300}'
	box=$(get .sandboxID)
	is_own "$box" sandbox
	is "$(curl -s -o /dev/null -w '%{http_code}' -H "Host: 49983-$box.localhost" "$url/health")" 204
	is "$(curl -s -o /dev/null -w '%{http_code}' -H 'E2b-Sandbox-Port: 49983' -H "E2b-Sandbox-Id: $box" "$url/health")" 204

	# pages of both kinds of ids
	seen=0 after=
	while [ "$after" != null ] && [ "$seen" -lt 20 ]; do
		api GET "/v1/boxes?limit=2${after:+&after=$after}"
		is "$code" 200 "$body"
		seen=$((seen + $(get '.items | length'))) after=$(get .next)
	done
	is "$seen" 8

	# the next keeper has the number before a server connects
	keeper=$("$ATOLL" doctor --json | grep -o 'pid [0-9]*' | head -1 | cut -d ' ' -f 2)
	is "$(cat "$work/run/node")" 7
	kill -KILL "$keeper"
	new_box
	is_own "$box" box
	says "$old" old
	api DELETE "/v1/boxes/$old"
	api DELETE "/v1/boxes/$box"
	is "$code" 204 "$body"
}

a_number_that_is_none_is_refused() {
	supervisor=$(cat "$work/supervisor")
	stop_daemon
	mkdir -p "$state/cluster"
	for bad in 0 32768 x ''; do
		echo "$bad" >"$state/cluster/number"
		"$ATOLL" serve --listen 127.0.0.1:0 --state "$state" >out 2>err && fail "'$bad' was accepted"
		has "$(cat err)" "cluster/number: '$bad"
	done
	rm "$state/cluster/number"
	start_daemon
}

run_daemon_tests
