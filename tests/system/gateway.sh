#!/bin/sh
# gateway.sh - the API through a gateway whose boxes are on two nodes.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
chmod a+x "$work" "$TMPDIR"
. "$here/engines.lib"
. "$here/cluster.lib"
postgres_start
start_cluster
soon nodes_are "$both_up"

# ask METHOD PATH [CURL-OPTION...]: the answer is in $status and the file body.
ask() {
	method=$1
	at=$2
	shift 2
	status=$(curl -sS --max-time 30 -o body -D head -w '%{http_code}' -X "$method" -H "X-API-Key: $key" "$@" "$url$at")
}
json() { ask "$1" "$2" -H 'Content-Type: application/json' -d "$3"; }
of_body() { jq -r "$1" body; }
# create JSON: $box is its id, $node the first three letters of it.
create() {
	json POST /v1/boxes "$1"
	is "$status" 201 "$(cat body)"
	box=$(of_body .id)
	node=$(printf %.3s "$box")
}
of_one=aac # 2
of_two=abi # 40

boxes_are_created_on_nodes_and_used_through_the_gateway() {
	create '{}'
	is "${#box}" 15
	case $node in $of_one | $of_two) ;; *) fail "$box" ;; esac
	json POST "/v1/boxes/$box/execs" '{"command": "echo hello; exit 3"}'
	is "$status $(of_body '"\(.stdout)\(.exit_code)"' | tr '\n' ' ')" "200 hello 3 " "$(cat body)"
	# A body that is streamed in both directions.
	head -c 3000000 /dev/urandom >bytes
	ask PUT "/v1/boxes/$box/files?path=data" -T bytes
	is "$status" 201 "$(cat body)"
	ask GET "/v1/boxes/$box/files?path=data"
	cmp -s bytes body || fail "the file differs: $(wc -c <body) bytes"
	ask DELETE "/v1/boxes/$box"
	is "$status" 204 "$(cat body)"
	ask GET "/v1/boxes/$box"
	is "$(of_body .state)" deleted "$(cat body)"
}

both_nodes_get_boxes_and_lists_are_merged() {
	all=
	for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
		create "{\"metadata\": {\"list\": \"yes\"}}"
		all="$all $box"
	done
	has "$all" " $of_one"
	has "$all" " $of_two"
	after=
	: >listed
	for page in 1 2 3 4 5 6 7 8 9; do
		ask GET "/v1/boxes?limit=5$after"
		is "$status $(of_body 'has("incomplete")')" "200 false" "$(cat body)"
		of_body '.items[].id' >>listed
		next=$(of_body '.next // ""')
		[ "$next" ] || break
		is "$(of_body '.items | length')" 5
		after="&after=$next"
	done
	is "$(sort listed | uniq -d)" ''
	for one in $all; do has "$(cat listed)" "$one"; done
	ask GET "/v1/boxes?limit=100"
	is "$(of_body '[.items[].created] | . == (sort | reverse)')" true "$(cat body)"
	for one in $all; do ask DELETE "/v1/boxes/$one"; done
	ask GET "/v1/boxes?after=nonsense"
	is "$status" 400
	ask GET "/v1/boxes?limit=0"
	is "$status" 400
}

a_box_is_found_by_its_name_and_a_name_exists_once() {
	create '{"name": "demo"}'
	first=$box
	ask GET /v1/boxes/demo
	is "$status $(of_body .id)" "200 $first"
	json POST /v1/boxes/demo/execs '{"command": "echo named"}'
	is "$(of_body .stdout | head -n 1)" named "$(cat body)"
	json POST /v1/boxes '{"name": "demo"}'
	is "$status" 409 "$(cat body)"
	is "$(sql "select node || ' ' || box from atoll.names where name = 'demo'")" "$(node_of "$first") $first"
	ask DELETE /v1/boxes/demo
	is "$status" 204
	ask GET /v1/boxes/demo
	is "$status" 404
	# The name can be used again, on any node.
	create '{"name": "demo"}'
	changed() { [ "$(sql "select node || ' ' || box from atoll.names where name = 'demo'")" = "$(node_of "$box") $box" ]; }
	soon changed
	ask DELETE "/v1/boxes/$box"
	# A request that a node rejects leaves no claim.
	json POST /v1/boxes '{"name": "bad-one", "limits": {"mem": -5}}'
	is "$status" 400 "$(cat body)"
	released() { [ "$(sql "select count(*) from atoll.names where name = 'bad-one'")" = 0 ]; }
	soon released
	# Two requests at the same time: one box.
	for i in 1 2 3 4; do
		curl -sS -o /dev/null -w '%{http_code}\n' -H "X-API-Key: $key" -H 'Content-Type: application/json' -d '{"name": "twice"}' "$url/v1/boxes" >>answers &
	done
	wait
	is "$(sort answers | xargs)" '201 409 409 409'
	ask DELETE /v1/boxes/twice
}
sql() { psql -qAt -h "$work/pg" -U atoll postgres -c "$1"; }
node_of() { case $1 in $of_one*) echo 2 ;; *) echo 40 ;; esac; }

a_session_and_an_idempotency_key_reach_the_same_box() {
	create '{"session": "s1"}'
	first=$box
	json POST /v1/boxes '{"session": "s1"}'
	is "$(of_body .id)" "$first"
	ask DELETE "/v1/boxes/$first"
	ask POST /v1/boxes -H 'Content-Type: application/json' -H 'Idempotency-Key: once-1' -d '{}'
	first=$(of_body .id)
	ask POST /v1/boxes -H 'Content-Type: application/json' -H 'Idempotency-Key: once-1' -d '{}'
	is "$(of_body .id)" "$first"
	ask DELETE "/v1/boxes/$first"
}

programs_and_batches_run_on_nodes() {
	json POST /v1/run '{"language": "bash", "code": "echo $((6 * 7))"}'
	is "$status $(of_body .stdout | head -n 1)" "200 42" "$(cat body)"
	is "$(of_body .id | wc -c)" 16
	ask GET "/v1/runs/$(of_body .id)"
	is "$status" 200 "$(cat body)"
	printf '{"language":"bash","code":"echo %s"}\n' 1 2 3 >items
	ask POST /v1/batch -H 'Content-Type: application/x-ndjson' --data-binary @items
	is "$status" 200 "$(cat body)"
	has "$(cat body)" '"stdout":"3\n"'
	ask GET /v1/languages
	is "$status" 200
}

ports_of_boxes_are_reached_by_host_and_by_header() {
	json POST /sandboxes '{"templateID": "base", "timeout": 60}'
	is "$status" 201 "$(cat body)"
	box=$(of_body .sandboxID)
	token=$(of_body '.envdAccessToken // ""')
	port=${url##*:}
	is "$(curl -s -o body -w '%{http_code}' --resolve "49983-$box.localhost:$port:127.0.0.1" "http://49983-$box.localhost:$port/health")" 204 "$(cat body)"
	is "$(curl -s -o body -w '%{http_code}' -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 49983' "$url/health")" 204
	is "$(curl -s -o body -w '%{http_code}' -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 49983' -H "X-Access-Token: $token" -F 'file=@/etc/hostname' "$url/files?path=name&username=user")" 200 "$(cat body)"
	# Without a key no node is asked for a name.
	is "$(curl -s -o body -w '%{http_code}' --resolve "3000-any-name.localhost:$port:127.0.0.1" "http://3000-any-name.localhost:$port/")" 502 "$(cat body)"
	ask GET /sandboxes
	has "$(cat body)" "$box"
	ask GET /v2/sandboxes
	has "$(cat body)" "$box"
	ask DELETE "/sandboxes/$box"
	is "$status" 204 "$(cat body)"
	ask GET "/sandboxes/$box"
	is "$status" 404 "$(cat body)"
}

# box_at LETTERS: $box is a new box of that node.
box_at() {
	while :; do
		create '{}'
		[ "$node" != "$1" ] || return 0
		ask DELETE "/v1/boxes/$box"
	done
}
# start COMMAND: in the background in $box; $exec is its id.
start() {
	json POST "/v1/boxes/$box/execs" "{\"command\": \"$1\", \"background\": true, \"open_stdin\": true}"
	is "$status" 201 "$(cat body)"
	exec=$(of_body .id)
}

a_socket_has_channels_of_boxes_on_both_nodes() {
	box_at $of_one
	first=$box
	start 'echo one; cat'
	first_exec=$exec
	box_at $of_two
	start 'echo two; cat'
	is "$(PYTHONPATH=$here python3 "$here/wsclient.py" "ws${url#http}/v1/socket" "$key" "
w = Ws(URL, KEY)
w.send({'op': 'open', 'ch': 1, 'kind': 'exec', 'box': '$first', 'exec': '$first_exec'})
w.send({'op': 'open', 'ch': 2, 'kind': 'exec', 'box': '$box', 'exec': '$exec'})
f = w.until('opened', 2)
w.stdin(2, b'x' * 100000)
w.send({'op': 'eof', 'ch': 2})
f += w.until('closed', 2)
w.send({'op': 'eof', 'ch': 1})
f += w.until('closed', 1)
w.send({'op': 'open', 'ch': 3, 'kind': 'exec', 'box': 'none', 'exec': 'x'})
g = w.until('error', 3)
w.send({'op': 'open', 'ch': 4, 'kind': 'stats'})
w.until('error', 4)
w.send({'op': 'ping'})
w.until('pong')
print(joined(f, 1), len(joined(f, 2)), joined(f, 2)[:4])
")" "b'one\\n' 100004 b'two\\n'"
	ask DELETE "/v1/boxes/$box"
	ask DELETE "/v1/boxes/$first"
}

a_client_cannot_name_an_identity() {
	create '{}'
	is "$(curl -s -o body -w '%{http_code}' -H 'Atoll-Identity: default owner uid:0 - 0 - -' "$url/v1/boxes/$box")" 401
	is "$(curl -s -o body -w '%{http_code}' -H 'Atoll-Identity: default owner uid:0 - 0 - -' "$(address_of one)/v1/boxes")" 401
	viewer=$("$ATOLL" key new look --role viewer --state "$work/gate/state" --quiet)
	is "$(curl -s -o body -w '%{http_code}' -X DELETE -H "X-API-Key: $viewer" -H 'Atoll-Identity: default owner uid:0 - 0 - -' "$url/v1/boxes/$box")" 403 "$(cat body)"
	# Another team does not see the box.
	curl -sS -X PUT -H "X-API-Key: $key" -H 'Content-Type: application/json' -d '{}' "$url/v1/teams/blue" >body
	blue=$("$ATOLL" key new blue --team blue --state "$work/gate/state" --quiet)
	is "$(curl -s -o body -w '%{http_code}' -H "X-API-Key: $blue" "$url/v1/boxes/$box")" 404 "$(cat body)"
	ask DELETE "/v1/boxes/$box"
	# No file of a node has a key of a client.
	grep -rqa "$key" "$work/one/state" "$work/two/state" && fail "a key is stored on a node"
	return 0
}

# A box whose program writes the head of the request that it gets to the file head.
heads_of_requests_have_nothing_that_a_client_says_about_the_cluster() {
	create '{}'
	json POST "/v1/boxes/$box/execs" '{"background": true, "command": ["python3", "-c", "import socket\ns=socket.create_server((\"127.0.0.1\",3000))\nopen(\"ready\",\"w\")\nc=s.accept()[0]\nopen(\"head\",\"wb\").write(c.recv(9999))\nc.send(b\"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok\")"]}'
	is "$status" 201 "$(cat body)"
	listens() { ask GET "/v1/boxes/$box/files?path=ready" && [ "$status" = 200 ]; }
	soon listens
	json PUT "/v1/boxes/$box/ports/3000" '{"public": true}'
	port=${url##*:}
	is "$(curl -s -o body -w '%{http_code}' --max-time 20 -H 'Atoll-Identity: default owner uid:0 - 0 - -' -H 'Atoll-Forwarded: 40' -H 'ATOLL-Anything: x' \
		--resolve "3000-$box.localhost:$port:127.0.0.1" "http://3000-$box.localhost:$port/")" 200 "$(cat body)"
	ask GET "/v1/boxes/$box/files?path=head"
	is "$status" 200
	lacks "$(tr A-Z a-z <body)" atoll-
	ask DELETE "/v1/boxes/$box"
	# Nor do they change what a request with a key does.
	ask GET /v1/boxes -H 'Atoll-Forwarded: 1, 2, 40'
	is "$status" 200
}

paths_between_machines_are_not_for_clients() {
	for path in /cluster/rows /cluster/copies /cluster/snapshots/x /cluster/restart /cluster/leave /cluster/left /cluster/join /tunnel //cluster/rows /v1/../cluster/rows \
		"/v1/boxes/aac$(printf 'a%.0s' 1 2 3 4 5 6 7 8 9 10 11 12)/../../../cluster/rows" /cluster%2frows /%63luster/rows; do
		for at in "$url" "$(address_of one)"; do
			for method in GET PUT POST; do
				is "$(curl -s -o body -w '%{http_code}' --path-as-is --max-time 20 -X $method -H "X-API-Key: $key" -H 'Atoll-Identity: default owner uid:0 - 0 - -' \
					-H 'Content-Type: application/json' -d '{"rows": []}' "$at$path" | grep -v -e 400 -e 401 -e 404 -e 405 -e 429)" '' "$method $at$path"
			done
		done
	done
}

ids_of_nodes_that_do_not_exist_are_not_found() {
	twelve=bbbbbbbbbbbb
	for id in zzz$twelve 777$twelve aaa$twelve aad$twelve; do # 32767 at most; number 0; 3
		ask GET "/v1/boxes/$id"
		is "$status $(of_body .error.code)" "404 not_found" "$id: $(cat body)"
		ask DELETE "/v1/boxes/$id"
		is "$status" 404 "$id: $(cat body)"
		ask GET "/sandboxes/$id"
		is "$status" 404 "$id: $(cat body)"
		ask GET "/v1/runs/$id"
		is "$status" 404 "$id: $(cat body)"
	done
	for id in AAC$twelve "aac${twelve}b" "aac$twelve%00" 'aac%2e%2e' 1; do
		ask GET "/v1/boxes/$id"
		case $status in 400 | 404) ;; *) fail "$id: $status $(cat body)" ;; esac
	done
	# An id of a node that exists, of a box that does not.
	ask GET "/v1/boxes/aac$twelve"
	is "$status" 404 "$(cat body)"
	# A removed node.
	sql "insert into atoll.nodes (number, name, fingerprint, state, removed) values (77, 'left', '-', 'removed', now())"
	ask GET "/v1/boxes/acn$twelve"
	is "$status" 404 "$(cat body)"
}

a_name_of_fifteen_letters_is_a_name() {
	json POST /v1/boxes '{"name": "integrationtest"}'
	is "$status" 201 "$(cat body)"
	box=$(of_body .id)
	ask GET /v1/boxes/integrationtest
	is "$status $(of_body .id)" "200 $box" "$(cat body)"
	ask DELETE /v1/boxes/integrationtest
	is "$status" 204 "$(cat body)"
	# One that begins with the number of a node would be an id.
	json POST /v1/boxes '{"name": "aacintegrations"}'
	is "$status $(of_body .error.code)" "400 invalid" "$(cat body)"
	has "$(cat body)" 'number of a node'
}

a_preview_is_found_by_the_name_of_its_box() {
	create '{"name": "shown"}'
	json POST "/v1/boxes/$box/execs" '{"background": true, "command": "echo seen >index.html; python3 -m http.server 3000"}'
	json PUT "/v1/boxes/$box/ports/3000" '{"public": true}'
	is "$status" 200 "$(cat body)"
	port=${url##*:}
	shown() { curl -s -L -o body --max-time 20 --resolve "3000-$box.localhost:$port:127.0.0.1" --resolve "3000-shown.localhost:$port:127.0.0.1" "http://3000-shown.localhost:$port/index.html" && [ "$(cat body)" = seen ]; }
	soon shown
	ask DELETE "/v1/boxes/$box"
}

a_path_of_no_daemon_is_not_found() {
	ask GET /v1/nothing
	is "$status" 404 "$(cat body)"
	ask GET /v1/who
	is "$status $(of_body .team)" "200 default"
	is "$(curl -s -o body -w '%{http_code}' "$url/v1/boxes")" 401
}

boxes_of_a_node_that_left_are_unreachable_and_return_with_it() {
	box_at $of_two
	kill -STOP "$(server_of two)"
	# With a database it is lost some 0.1 s after it is unreachable.
	away() { nodes_are '2 one up, 40 two unreachable' || nodes_are '2 one up, 40 two lost'; }
	soon away
	ask GET "/v1/boxes/$box"
	is "$status $(of_body .error.code)" "503 unreachable" "$(cat body)"
	has "$(cat head)" 'Retry-After: ' # 5 if the node is lost by now
	ask GET /v1/boxes
	is "$(of_body ".items[] | select(.id == \"$box\") | .state + \" \" + .node" | sed 's/^lost/unreachable/')" 'unreachable two' "$(cat body)"
	lost=$box
	create '{}'
	is "$node" "$of_one"
	ask DELETE "/v1/boxes/$box"
	kill -CONT "$(server_of two)"
	back() { ask GET "/v1/boxes/$lost" && [ "$status" = 200 ]; }
	soon back
	ask DELETE "/v1/boxes/$lost"
	is "$status" 204 "$(cat body)"
}

machines_stop_without_a_fault() {
	for name in gate one; do
		kill "$(pid_of $name)"
		soon left "$(pid_of $name)"
		lacks "$(cat "$work/$name/log")" 'ended by a signal'
	done
}

run_tests
