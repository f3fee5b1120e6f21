#!/bin/sh
# gateway_all.sh - what belongs to no single box, through a gateway whose boxes are on two nodes: templates, schedules,
# volumes, figures and links of E2B, streams of all events.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
chmod a+x "$work" "$TMPDIR"
export ATOLL_TEMPLATES_BUILD_DISK=512M
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
	status=$(curl -sS --max-time 60 -o body -D head -w '%{http_code}' -X "$method" -H "X-API-Key: $key" "$@" "$url$at")
}
json() { ask "$1" "$2" -H 'Content-Type: application/json' -d "$3"; }
of_body() { jq -r "$1" body; }
create() {
	json POST /v1/boxes "$1"
	is "$status" 201 "$(cat body)"
	box=$(of_body .id)
	node=$(printf %.3s "$box")
}
of_one=aac # 2
of_two=abi # 40
sql() { psql -qAt -h "$work/pg" -U atoll postgres -c "$1"; }

# box_at LETTERS: $box is a new box of that node.
box_at() {
	while :; do
		create '{}'
		[ "$node" != "$1" ] || return 0
		ask DELETE "/v1/boxes/$box"
	done
}

ended() { ask GET "/v1/builds/$build" && case $(of_body .state) in ready | failed) ;; *) return 1 ;; esac }

a_template_is_built_once_and_its_boxes_are_created_where_it_is() {
	json POST /v1/templates '{"name": "made", "definition": {"stages": [{"from": "base", "steps": [{"type": "RUN", "args": ["echo built > /etc/made"]}]}]}}'
	is "$status" 202 "$(cat body)"
	build=$(of_body .id)
	soon ended
	is "$(of_body .state)" ready "$(cat body)"
	ask GET "/v1/builds/$build/log"
	is "$status" 200 "$(cat body)"
	ask GET /v1/templates/made
	is "$status $(of_body .name)" "200 made" "$(cat body)"
	for i in 1 2 3 4 5 6; do
		create '{"template": "made"}'
		json POST "/v1/boxes/$box/execs" '{"command": "cat /etc/made"}'
		is "$(of_body .stdout | head -n 1)" built "$(cat body)"
		echo "$node"
	done >places
	is "$(sort -u places | wc -l)" 1
	# A second build of the name is one of the same template.
	json POST /v1/templates '{"name": "made", "definition": {"stages": [{"from": "base"}]}}'
	is "$status" 202 "$(cat body)"
	ask DELETE "/v1/builds/$(of_body .id)"
	ask GET /v1/templates
	is "$(of_body '[.items[] | select(.name == "made")] | length')" 1 "$(cat body)"
	is "$(of_body '[.items[].name] | length == (unique | length)')" true "$(cat body)"
	ask GET /templates
	is "$(of_body '[.[] | select(.aliases | index("made"))] | length')" 1 "$(cat body)"
	ask GET /v1/builds
	has "$(cat body)" "$build"
	ask DELETE /v1/templates/made
	is "$status" 204 "$(cat body)"
	ask GET /v1/templates/made
	is "$status" 404 "$(cat body)"
	json POST /v1/boxes '{"template": "none-of-this-name"}'
	is "$status" 404 "$(cat body)"
}

a_file_for_a_template_is_uploaded_by_a_link_without_a_key() {
	json POST /v3/templates '{"name": "linked"}'
	is "$status" 202 "$(cat body)"
	template=$(of_body .templateID)
	ask GET "/templates/$template/files/0123abcd"
	is "$status" 201 "$(cat body)"
	link=$(of_body .url)
	has "$link" '&node='
	echo x >file && tar -cf archive file
	is "$(curl -sS -o body -w '%{http_code}' -T archive "$link")" 200 "$(cat body)"
	ask GET "/templates/$template/files/0123abcd"
	is "$(of_body .present)" true "$(cat body)"
	# A number that is not that of its node, or of none.
	is "$(curl -sS -o body -w '%{http_code}' -T archive "${link%&node=*}&node=7777")" 502 "$(cat body)"
	is "$(curl -sS -o body -w '%{http_code}' -T archive "${link%&node=*}")" 403 "$(cat body)"
	ask DELETE "/templates/$template"
}

schedules_have_names_and_a_node() {
	json POST /v1/schedules '{"name": "nightly", "cron": "@daily", "run": {"language": "bash", "code": "echo tick"}}'
	is "$status" 201 "$(cat body)"
	schedule=$(of_body .id)
	is "${#schedule}" 15
	json POST /v1/schedules '{"name": "nightly", "cron": "@daily", "run": {"language": "bash", "code": "echo tick"}}'
	is "$status" 409 "$(cat body)"
	ask GET /v1/schedules/nightly
	is "$status $(of_body .id)" "200 $schedule" "$(cat body)"
	ask GET /v1/schedules
	is "$(of_body '.items | length')" 1 "$(cat body)"
	json POST "/v1/schedules/$schedule/run" '{}'
	case $status in 2*) ;; *) fail "$status: $(cat body)" ;; esac
	ran() { ask GET "/v1/schedules/$schedule/ticks" && [ "$(of_body '.items[0].state // .items[0].outcome // ""')" ] ; }
	soon ran
	ask DELETE /v1/schedules/nightly
	is "$status" 204 "$(cat body)"
}

figures_of_boxes_on_both_nodes_are_one_answer() {
	ask GET /teams/default/metrics
	before=$(of_body '.[0].concurrentSandboxes')
	box_at $of_one
	first=$box
	box_at $of_two
	ask GET "/sandboxes/metrics?sandbox_ids=$first,$box"
	is "$status $(of_body '.sandboxes | type')" "200 object" "$(cat body)"
	ask GET /teams/default/metrics
	is "$status $(of_body '.[0].concurrentSandboxes')" "200 $((before + 2))" "$(cat body)"
	ask GET '/teams/default/metrics/max?metric=concurrent_sandboxes'
	is "$(of_body .value)" $((before + 2)) "$(cat body)"
	ask GET '/v2/sandboxes?order=asc'
	is "$status $(of_body '[.[].startedAt] | (length > 1) and (. == sort)')" "200 true" "$(cat body)"
	ask GET '/events/sandboxes?limit=100'
	is "$(of_body "[.[] | .sandboxId // .sandboxID] | (index(\"$first\") != null) and (index(\"$box\") != null)")" true "$(cat body)"
	is "$(of_body '[.[].timestamp] | . == (sort | reverse)')" true "$(cat body)"
	ask GET '/events/sandboxes?limit=100&offset=1'
	is "$status" 400
	for each in "$first" "$box"; do ask DELETE "/v1/boxes/$each"; done
}

figure() { ask GET /metrics && sed -n "s/^atoll_$1 //p" body; }
exits='runs_ended_total{cause="exit"}'
runs() { # BOX
	json POST "/v1/boxes/$1/execs" '{"command": "true"}'
	is "$status" 200 "$(cat body)"
}
metrics_and_stats_are_the_sums_of_all_nodes() {
	before=$(figure "$exits")
	box_at $of_one
	first=$box
	box_at $of_two
	runs "$first"
	runs "$box"
	is "$(figure "$exits")" $((before + 2))
	is "$(figure keeper_up)" 1
	lacks "$(cat head)" Atoll-Incomplete
	ask GET '/v1/stats?figures=true'
	is "$status $(of_body '[.nodes[].name] | sort | join(" ")')" "200 one two" "$(cat body)"
	is "$(of_body '.boxes == ([.nodes[].boxes] | add) and .cpus > ([.nodes[].cpus] | add)')" true "$(cat body)"
	is "$(of_body '[.figures[] | select(.name == "runs_ended_total").series[] | select(.labels.cause == "exit").value] | add')" $((before + 2))
	ask GET /v1/doctor
	is "$status $(of_body '[.items[] | .node // "gate"] | unique | join(" ")')" "200 gate one two" "$(cat body)"
	is "$(of_body '[.items[] | select(.name == "keeper" and .status == "ok" and .node).node] | sort | join(" ")')" "one two" "$(cat body)"
	for each in "$first" "$box"; do ask DELETE "/v1/boxes/$each"; done
}

counters_of_a_node_that_is_away_or_starts_again_do_not_decrease() {
	box_at $of_two
	runs "$box"
	before=$(figure "$exits")
	kill -STOP "$(server_of two)"
	is "$(figure "$exits")" "$before"
	has "$(cat head)" 'Atoll-Incomplete: two'
	kill -CONT "$(server_of two)"
	kill -9 "$(server_of two)"
	is_back() { nodes_are "$both_up" && ask GET "/v1/boxes/$box" && [ "$status" = 200 ]; }
	soon is_back
	is "$(figure "$exits")" "$before"
	runs "$box"
	is "$(figure "$exits")" $((before + 1))
	ask DELETE "/v1/boxes/$box"
}

a_volume_of_e2b_has_the_key_of_its_caller_as_token() {
	json POST /volumes '{"name": "store"}'
	is "$status $(of_body .token)" "201 $key" "$(cat body)"
	volume=$(of_body .volumeID)
	ask GET /volumes/store
	is "$(of_body .token)" "$key" "$(cat body)"
	is "$(curl -sS -o body -w '%{http_code}' -X PUT -H "Authorization: Bearer $key" --data-binary hello "$url/volumecontent/$volume/file?path=/a")" 201 "$(cat body)"
	ask GET "/volumecontent/$volume/file?path=/a"
	is "$status $(cat body)" "200 hello"
	ask GET /volumes
	is "$(of_body 'map(.name) | join(" ")')" store
	grep -rqa "$key" "$work/one/state" "$work/two/state" && fail "a key is stored on a node"
	ask DELETE "/volumes/$volume"
	is "$status" 204 "$(cat body)"
}

a_run_is_shared_by_a_link() {
	json POST /v1/run '{"language": "bash", "code": "echo shared"}'
	run=$(of_body .id)
	json POST "/v1/runs/$run/shares" '{}'
	is "$status" 201 "$(cat body)"
	token=$(of_body .token)
	is "$(curl -sS -o body -w '%{http_code}' "$url/v1/shared/runs/$token")" 200 "$(cat body)"
	is "$(of_body .run.id)" "$run" "$(cat body)"
	is "$(curl -sS -o body -w '%{http_code}' "$url/v1/shared/runs/$(echo "$token" | tr 0-9a-f a-f0-9)")" 404 "$(cat body)"
	is "$(curl -sS -o body -w '%{http_code}' "$url/v1/shared/runs/none")" 404 "$(cat body)"
}

events_of_all_boxes_are_streamed() {
	curl -sSN --max-time 60 -H "X-API-Key: $key" "$url/v1/events?follow=true" >stream &
	reader=$!
	begun() { grep -q '"following"' stream; }
	soon begun
	after=$(head -n 1 stream | jq -r .after)
	box_at $of_one
	first=$box
	box_at $of_two
	came() { grep -q "\"box\":\"$first\".*box.created" stream && grep -q "\"box\":\"$box\".*box.created" stream; }
	soon came
	kill "$reader"
	# It continues at any position, and nothing is repeated.
	position=$(grep "\"box\":\"$first\".*box.created" stream | jq -r .next)
	curl -sSN --max-time 60 -H "X-API-Key: $key" -H 'Accept: text/event-stream' -H "Last-Event-ID: $position" "$url/v1/events" >again &
	reader=$!
	came() { grep -q "\"box\":\"$box\".*box.created" again; }
	soon came
	kill "$reader"
	lacks "$(cat again)" "\"box\":\"$first\",\"type\":\"box.created\""
	has "$(cat again)" 'id: x'
	ask GET '/v1/events?follow=true&after=nonsense'
	is "$status" 400 "$(cat body)"
	# A page and a stream fit together.
	ask GET "/v1/events?limit=1"
	next=$(of_body .next)
	curl -sSN --max-time 60 -H "X-API-Key: $key" "$url/v1/events?follow=true&after=$next" >after &
	reader=$!
	came() { grep -q "\"box\":\"$box\".*box.created" after; }
	soon came
	kill "$reader"
	for each in "$first" "$box"; do ask DELETE "/v1/boxes/$each"; done
}

a_socket_has_a_channel_of_all_events() {
	is "$(PYTHONPATH=$here python3 "$here/wsclient.py" "ws${url#http}/v1/socket" "$key" "
import json, urllib.request
w = Ws(URL, KEY)
w.send({'op': 'open', 'ch': 1, 'kind': 'events'})
w.until('opened', 1)
def create():
    r = urllib.request.Request('$url/v1/boxes', b'{}', {'X-API-Key': KEY, 'Content-Type': 'application/json'})
    return json.load(urllib.request.urlopen(r))['id']
box = create()
created = lambda f: any(x[0] == 'text' and x[1].get('box') == box and x[1].get('type') == 'box.created' for x in f)
while not created(w.until('event', 1)): pass
w.send({'op': 'open', 'ch': 1, 'kind': 'events'})
w.until('error', 1)
w.send({'op': 'open', 'ch': 2, 'kind': 'events', 'after': 'nonsense'})
w.until('error', 2)
w.send({'op': 'close', 'ch': 1})
w.until('closed', 1)
print('ended')
")" ended
}

the_session_of_a_fragment_has_one_box_whatever_its_field_is_called() {
	for i in 1 2 3 4; do # two nodes: by chance all would be right once in 256 runs
		json POST /api/sandbox "{\"template\": \"base\", \"session\": \"s$i\", \"code\": \"print(1)\"}"
		is "$status" 200 "$(cat body)"
		first=$(of_body .sbxId)
		json POST /api/sandbox "{\"fragment\": {\"template\": \"base\", \"code\": \"print(1)\"}, \"sessionId\": \"s$i\"}"
		is "$status $(of_body .sbxId)" "200 $first" "$(cat body)"
		json POST /api/sandbox "{\"fragment\": {\"template\": \"base\", \"code\": \"print(1)\", \"userID\": \"s$i\"}}"
		is "$status $(of_body .sbxId)" "200 $first" "$(cat body)"
		ask DELETE "/v1/boxes/$first"
	done
}

a_box_is_created_on_a_node_with_its_labels() {
	for i in 1 2 3 4 5 6; do # node one has it
		create '{"labels": ["disk=fast"]}'
		is "$node" $of_one
		ask DELETE "/v1/boxes/$box"
	done
	ask POST /v1/boxes -H 'Content-Type: application/json' -H 'Idempotency-Key: labelled' -d '{"labels": ["disk=fast"]}'
	is "$status $(of_body .id | cut -c 1-3)" "201 $of_one" "$(cat body)"
	json POST /v1/boxes '{"labels": ["disk=fast", "gpu=yes"]}'
	is "$status" 503 "$(cat body)"
	has "$(cat body)" label
	json POST /v1/boxes '{"labels": "disk=fast"}'
	is "$status" 400 "$(cat body)"
	# The node rejects it, too: here the volume decides where the box is.
	while :; do
		json POST /v1/volumes '{"name": "elsewhere"}'
		[ "$(of_body .id | cut -c 1-3)" = $of_one ] || break
		ask DELETE /v1/volumes/elsewhere
	done
	json POST /v1/boxes '{"labels": ["disk=fast"], "volumes": [{"name": "elsewhere", "path": "/x"}]}'
	is "$status" 409 "$(cat body)"
	ask DELETE /v1/volumes/elsewhere
}

a_node_that_does_not_answer_is_named() {
	json POST /v1/templates '{"name": "stays", "definition": {"stages": [{"from": "base"}]}}'
	build=$(of_body .id)
	soon ended
	kill -STOP "$(server_of one)" "$(server_of two)"
	ask GET /v1/templates/stays
	stopped=$status
	kill -CONT "$(server_of one)" "$(server_of two)"
	is "$stopped $(of_body .error.code)" "503 unreachable" "$(cat body)"
	back() { ask GET /v1/templates/stays && [ "$status" = 200 ]; }
	soon back
	ask DELETE /v1/templates/stays
}

run_tests
