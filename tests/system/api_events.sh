#!/bin/sh
# api_events.sh - /v1/events and stats: each event of a box is sent once and in order to every subscriber.
. "$(dirname "$0")/daemon.lib"

# follow FILE QUERY [CURL OPTION...]: a reader in the background; sets reader.
follow() {
	file=$1 query=$2
	shift 2
	curl -sS -N -H "X-API-Key: $key" "$@" "$url/v1/events?follow=1$query" >"$file" 2>"$file.err" &
	reader=$!
	readers="${readers:-} $reader"
	soon grep -q following "$file"
}
leave() { kill ${readers:-} 2>/dev/null || :; readers=; }
said() { grep -q "$2" "$1"; }
# seqs FILE: the numbers in a stream of NDJSON, one per line.
seqs() { jq -r 'select(.seq) | .seq' <"$1"; }

events_of_a_box_are_listed() {
	new_box
	api POST "/v1/boxes/$box/execs" '{"command":"exit 5"}'
	api DELETE "/v1/boxes/$box"
	api GET "/v1/events?box=$box"
	is "$code" 200 "$body"
	is "$(get '[.items[].type] | join(" ")')" "box.created run.ended box.ended"
	is "$(get '.items[1].data | .cause + " " + (.status | tostring)')" "exit 5"
	is "$(get '.items[2].data.cause')" operator
	is "$(get .next)" null
	api GET "/v1/events?box=$box&limit=2"
	is "$(get '[.items[].type] | join(" ")')" "box.created run.ended"
	api GET "/v1/events?box=$box&limit=2&after=$(get .next)"
	is "$(get '[.items[].type] | join(" ")')" box.ended
}

events_of_a_box_are_streamed_when_they_happen() {
	follow s ''
	new_box
	soon said s "\"box\":\"$box\",\"type\":\"box.created\""
	api DELETE "/v1/boxes/$box"
	soon said s "\"box\":\"$box\",\"type\":\"box.ended\""
	leave
}

an_event_stream_resumes_after_a_given_number() {
	follow s1 ''
	new_box
	soon said s1 box.created
	leave
	last=$(seqs s1 | tail -1)
	api DELETE "/v1/boxes/$box"
	follow s2 "&after=$last"
	soon said s2 box.ended
	leave
	is "$(jq -r 'select(.seq).type' <s2)" box.ended
}

server_sent_events_have_ids_and_resume() {
	follow s '' -H 'Accept: text/event-stream'
	new_box
	soon said s box.created
	leave
	last=$(sed -n 's/^id: //p' s | tail -1)
	is "$(sed -n 's/^data: //p' s | jq -r 'select(.seq).seq' | tail -1)" "$last"
	api DELETE "/v1/boxes/$box"
	# As an EventSource reconnects: the URL has the old number, the header a newer one.
	curl -sS -N -H "X-API-Key: $key" -H 'Accept: text/event-stream' -H "Last-Event-ID: $last" "$url/v1/events?after=1" >s2 &
	readers=$!
	soon said s2 box.ended
	leave
	is "$(sed -n 's/^data: //p' s2 | jq -r 'select(.seq).type')" box.ended
	api GET /v1/events '' -X GET -H 'Last-Event-ID: nonsense'
	is "$code" 400
}

stored_and_live_events_join_without_gap_or_repetition() {
	api GET '/v1/events?limit=1'
	from=$(get '.items[0].seq // 1')
	(
		for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
			curl -sS -o /dev/null -H "X-API-Key: $key" "$url/v1/run" -d '{"command":"true"}'
		done
	) &
	busy=$!
	# Readers that connect while events are added, each from the same number, must all see the same events.
	for i in 1 2 3 4; do follow "s$i" "&after=$((from - 1))"; done
	wait $busy
	new_box '{"name":"last-one"}'
	for i in 1 2 3 4; do soon said "s$i" "$box"; done
	leave
	# Later events may have reached some readers and not others.
	last=$(jq -r "select(.box == \"$box\").seq" <s1 | head -1)
	api GET "/v1/events?after=$((from - 1))&limit=$((last - from + 1))"
	get '.items[].seq' >all
	is "$(tail -1 all)" "$last"
	for i in 1 2 3 4; do
		seqs "s$i" | awk -v last="$last" '$1 <= last' >got
		cmp -s all got || fail "reader $i: $(diff all got | head -3)"
		is "$(sort -n got | uniq -d)" ""
	done
	# Live and stored events are equal byte for byte.
	jq -cS "select(.seq and .seq <= $last)" <s1 >live
	jq -cS '.items[]' <body >stored
	cmp -s live stored || fail "$(diff live stored | head -4)"
	api DELETE "/v1/boxes/$box"
}

a_slow_reader_of_events_misses_none() {
	python3 - "$url" "$key" <<'PY' || fail "see above"
import json, socket, sys, threading, urllib.request
url, key = sys.argv[1:]
host, port = url[7:].split(':')
def call(method, path, body=None):
    r = urllib.request.Request(url + path, method=method, data=body and json.dumps(body).encode(),
                               headers={'X-API-Key': key})
    with urllib.request.urlopen(r) as f:
        return json.load(f)
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
s.connect((host, int(port)))
last = 0
while True:
    page = call('GET', f'/v1/events?after={last}&limit=1000')['items']
    if not page: break
    last = page[-1]['seq']
s.sendall(f'GET /v1/events?follow=1&after=0 HTTP/1.1\r\nHost: {host}:{port}\r\nX-API-Key: {key}\r\n\r\n'.encode())
box = call('POST', '/v1/boxes', {'env': {}})['id']
for i in range(40): # events while this reader does not read
    call('POST', f'/v1/boxes/{box}/execs', {'command': 'true'})
want = []
after = 0
while True:
    page = call('GET', f'/v1/events?after={after}&limit=1000')['items']
    if not page: break
    want += [e['seq'] for e in page]
    after = want[-1]
s.settimeout(20)
got, text, lines = [], b'', b''
body = False
while not got or got[-1] < want[-1]:
    text += s.recv(4096)
    if not body:
        if b'\r\n\r\n' not in text: continue
        text = text.split(b'\r\n\r\n', 1)[1]
        body = True
    while b'\r\n' in text: # chunks
        size, rest = text.split(b'\r\n', 1)
        n = int(size, 16)
        if len(rest) < n + 2: break
        lines += rest[:n]
        text = rest[n + 2:]
    while b'\n' in lines:
        line, lines = lines.split(b'\n', 1)
        e = json.loads(line)
        if 'seq' in e: got.append(e['seq'])
assert got == want, (len(got), len(want), [x for x in want if x not in got][:5])
PY
}

a_team_gets_events_of_its_own_boxes_only() {
	api PUT /v1/teams/quiet '{}'
	api POST /v1/keys '{"name":"listener","team":"quiet"}'
	owner=$key key=$(get .key)
	follow s '&after=0'
	key=$owner
	new_box
	follow t "&after=0&box=$box"
	soon said t box.created
	api DELETE "/v1/boxes/$box"
	soon said t box.ended
	leave
	is "$(seqs s)" ""
	is "$(jq -r 'select(.seq).box' <t | sort -u)" "$box"
}

a_key_for_one_box_reads_the_events_of_that_box_only() {
	new_box
	api POST /v1/keys "{\"name\":\"bound\",\"box\":\"$box\"}"
	owner=$key key=$(get .key)
	api GET "/v1/boxes/$box/events"
	is "$(get '.items[0].type')" box.created
	api GET /v1/events
	is "$code" 403
	key=$owner
	api DELETE /v1/keys/bound
	api DELETE "/v1/boxes/$box"
}

following_events_does_not_count_as_activity() {
	new_box '{"idle_ms":1500}'
	curl -sS -N -H "X-API-Key: $key" "$url/v1/boxes/$box/events?follow=1" >s &
	readers=$!
	soon said s box.ended
	leave
	is "$(jq -r 'select(.type=="box.ended").data.cause' <s)" idle
}

# ---- stats ----

stats_show_the_resource_usage_of_a_box() {
	new_box '{"limits":{"mem":134217728,"pids":64}}'
	api POST "/v1/boxes/$box/execs" '{"command":"head -c 3000000 /dev/urandom >f; exec sleep 600","background":true}'
	written() {
		api GET "/v1/boxes/$box/stats"
		[ "$(get .disk.used)" -ge 3000000 ]
	}
	soon written
	is "$(get .box)" "$box"
	is "$(get .memory.limit)" 134217728
	is "$(get .pids.limit)" 64
	is "$(get .running)" 1
	is "$(get .oom_kills)" 0
	[ "$(get .memory.now)" -gt 0 ] && [ "$(get .memory.peak)" -ge "$(get .memory.now)" ] || fail "$body"
	[ "$(get .pids.now)" -ge 2 ] || fail "$body"
	is "$(get '.cpu.us == null or .cpu.us > 0')" true # not every kernel counts it per box
	[ "$(get .disk.files)" -ge 1 ] || fail "$body"
	api DELETE "/v1/boxes/$box"
	api GET "/v1/boxes/$box/stats"
	is "$code" 404
}

an_oom_kill_is_counted_in_the_stats() {
	new_box '{"limits":{"mem":33554432}}'
	api POST "/v1/boxes/$box/execs" '{"command":["python3","-c","x = bytearray(1 << 28)"]}'
	is "$(get .cause)" memory "$body"
	api GET "/v1/boxes/$box/stats"
	[ "$(get .oom_kills)" -ge 1 ] || fail "$body"
	api DELETE "/v1/boxes/$box"
}

followed_stats_are_sent_every_second() {
	new_box
	curl -sS -N -H "X-API-Key: $key" "$url/v1/boxes/$box/stats?follow=1" >s &
	readers=$!
	several() { [ "$(grep -c '"type":"stats"' s)" -ge 3 ]; }
	soon several
	# While a client follows, one sample per second is stored.
	api GET "/v1/boxes/$box/stats/history?step=1"
	[ "$(get '.items | length')" -ge 2 ] || fail "$body"
	is "$(get .step_s)" 1
	is "$(get '[.items[].at] | . == sort')" true
	api GET "/v1/boxes/$box/stats/history?step=1&since=2100-01-01T00:00:00Z"
	is "$(get '.items | length')" 0
	api DELETE "/v1/boxes/$box"
	status=0
	wait "$readers" || status=$?
	is "$status" 0
	is "$(tail -1 s | jq -r .type)" end
	readers=
}

usage_is_recorded_for_boxes_without_a_follower() {
	new_box
	remembered() {
		api GET "/v1/boxes/$box/stats/history"
		[ "$(get '.items | length')" -ge 1 ]
	}
	soon remembered
	[ "$(get '.items[0].pids')" -ge 1 ] || fail "$body"
	api GET "/v1/boxes/$box/stats/history?step=1"
	is "$(get '.items | length')" 0
	for bad in step=5 step=0 since=nonsense until=1m; do
		api GET "/v1/boxes/$box/stats/history?$bad"
		is "$code" 400 "$bad"
	done
	api DELETE "/v1/boxes/$box"
}

following_stats_does_not_count_as_activity() {
	new_box '{"idle_ms":1500}'
	curl -sS -N -H "X-API-Key: $key" "$url/v1/boxes/$box/stats?follow=1" >s &
	reader=$!
	wait "$reader"
	api GET "/v1/boxes/$box"
	is "$(get .cause)" idle
}

host_figures_are_shown_to_operators() {
	api GET /v1/stats
	is "$code" 200 "$body"
	is "$(get '.load | length')" 3
	[ "$(get .memory.total)" -gt 1000000 ] || fail "$body"
	[ "$(get .keeper.pool_depth)" -ge 0 ] || fail "$body"
}

host_figures_include_processors_disk_and_a_history() {
	api GET /v1/stats
	[ "$(get '.cpus >= 1 and .cpu_us > 0 and .disk.used > 0 and .disk.total > .disk.used')" = true ] || fail "$body"
	[ "$(get '.memory.used > 0 and .memory.used < .memory.total')" = true ] || fail "$body"
	two_samples() { api GET '/v1/stats/history?step=1&since=5m' && [ "$(get '.items | length')" -ge 2 ]; }
	soon two_samples
	is "$(get .step_s)" 1
	is "$(get '.items | map(.cpu_us) | . == sort')" true "$body"
	is "$(get '.items | map(.at) | . == sort')" true "$body"
	is "$(get '.items | all(.memory > 0 and .disk > 0 and .load >= 0)')" true "$body"
	api GET '/v1/stats/history'
	is "$(get '.step_s') $(get '.items | length > 0')" '10 true' "$body"
	api GET '/v1/stats/history?since=2099-01-01T00:00:00Z&step=1'
	is "$(get '.items | length')" 0 "$body"
	api GET '/v1/stats/history?step=3'
	is "$code" 400
}

a_page_of_events_can_start_with_the_newest() {
	new_box
	api DELETE "/v1/boxes/$box"
	api GET '/v1/events?limit=1000'
	get '[.items[].seq] | reverse | .[]' >backwards
	api GET '/v1/events?order=newest&limit=2'
	is "$(get '.items[0].type') $(get '.items[0].box')" "box.ended $box"
	get '.items[].seq' >pages
	while [ "$(get .next)" != null ]; do
		api GET "/v1/events?order=newest&limit=100&after=$(get .next)"
		is "$(get .missed)" false
		get '.items[].seq' >>pages
	done
	cmp pages backwards || fail "$(diff pages backwards)"
	api GET "/v1/events?order=newest&box=$box"
	is "$(get '[.items[].type] | join(" ")')" 'box.ended box.created'
	api GET '/v1/events?order=newest&follow=1'
	is "$code" 400
	api GET '/v1/events?order=sideways'
	is "$code" 400
}

# ---- metrics, and the page for browsers ----

metrics_include_pool_templates_and_process() {
	api POST /v1/run '{"command":"true"}'
	api GET /metrics
	promtool check metrics <body >promtool.out 2>&1 || fail "$(cat promtool.out)"
	for name in pool_hits_total pool_misses_total pool_boxes server_resident_bytes front_resident_bytes store_errors_total \
		log_lines_lost_total keeper_queue 'template_boxes_created_total{template="base"}' 'keeper_up 1'; do
		has "$body" "atoll_$name"
	done
	[ "$(sed -n 's/^atoll_server_resident_bytes //p' body)" -gt 1000000 ] || fail "no memory"
	taken=$(sed -n 's/^atoll_pool_\(hits\|misses\)_total //p' body | paste -sd + | bc)
	[ "$taken" -ge 1 ] || fail "nothing was taken: $taken"
}

metric() { sed -n "s/^atoll_$1 //p" body; } # of the last body
metrics_include_errors_language_cpu_and_memory() {
	api POST /v1/run '{"language":"python","code":"raise SystemExit(1)"}'
	api POST /v1/run '{"command":"nosuchprogram"}'
	api POST /v1/run '{"command":"true"}'
	api GET /metrics
	promtool check metrics <body >promtool.out 2>&1 || fail "$(cat promtool.out)"
	for name in 'runs_exit_total{code="0"}' 'runs_exit_total{code="1"}' 'runs_exit_total{code="127"}' run_cpu_seconds_count \
		run_memory_bytes_count 'runs_language_total{language="python",result="failed"}' \
		'runs_language_total{language="none",result="ok"}'; do
		[ "$(metric "$name")" -ge 1 ] || fail "$name: $(metric "$name")"
	done
	case $(metric cpu_seconds_total) in 0.000000 | '') fail "no CPU time: $(metric cpu_seconds_total)" ;; esac
}

host_metrics_are_not_shown_to_other_teams() {
	api PUT /v1/teams/nosy '{}'
	api POST /v1/keys '{"name":"v","role":"viewer","team":"nosy"}'
	nosy=$(get .key)
	is "$(curl -sS -o body -w '%{http_code}' -H "X-API-Key: $nosy" "$url/metrics")" 403
	has "$(get '.error.hints[0]')" /v1/usage
	is "$(curl -sS -o /dev/null -w '%{http_code}' -H "X-API-Key: $viewer" "$url/metrics")" 200
}

internal_execs_are_neither_listed_nor_counted() {
	new_box
	api POST "/v1/boxes/$box/execs" '{"command":"true"}'
	api GET /v1/usage
	before=$(get .usage.executions_today)
	is "$(curl -sS -o a.tar -w '%{http_code}' -H "X-API-Key: $key" "$url/v1/boxes/$box/files/archive?path=/home/user")" 200
	api POST /v1/snapshots "{\"box\":\"$box\",\"name\":\"packed\"}"
	case $code in 20?) ;; *) fail "$code $body" ;; esac
	api GET "/v1/boxes/$box/execs"
	is "$(get '[.items[].command | join(" ")] | join(";")')" "/bin/bash -c true" "$body"
	api GET "/v1/runs?box=$box"
	is "$(get '.items | length')" 1 "$body"
	api GET /v1/usage
	is "$(get .usage.executions_today)" "$before"
}

metrics_are_public_only_when_configured() {
	is "$(curl -sS -o /dev/null -w '%{http_code}' "$url/metrics")" 401
	ATOLL_RUN=$work/run2 ATOLL_METRICS_PUBLIC=true "$ATOLL" serve --listen 127.0.0.1:0 --state "$work/state2" 2>open.log &
	other=$!
	soon grep -q 'serving on unix:' open.log
	open=$(sed -n 's/^atoll: serving on \(http[^ ]*\)$/\1/p' open.log)
	is "$(curl -sS -o body -w '%{http_code}' "$open/metrics")" 200
	is "$(curl -sS -o /dev/null -w '%{http_code}' "$open/v1/info")" 401
	promtool check metrics <body >/dev/null 2>&1 || fail "promtool"
	kill $other
	wait $other || :
	second=$(ATOLL_RUN=$work/run2 "$ATOLL" doctor --json 2>/dev/null | grep -o 'pid [0-9]*' | head -1 | cut -d ' ' -f 2)
	[ -z "$second" ] || kill "$second"
}

the_root_page_explains_how_to_get_a_key() {
	is "$(curl -sS -o page -D head -w '%{http_code}' "$url/")" 200
	has "$(cat page)" 'atoll key new'
	has "$(cat head)" 'text/html'
	has "$(cat head)" "default-src 'none'"
	is "$(curl -sS -o /dev/null -w '%{http_code}' "$url/other")" 401
	is "$(curl -sS -o /dev/null -w '%{http_code}' -H 'Host: evil.example' "$url/")" 421
}

invalid_event_queries_are_rejected() {
	for bad in after=-1 after=x follow=maybe limit=0 limit=1001 from=3; do
		api GET "/v1/events?$bad"
		is "$code" 400 "$bad"
	done
	api GET '/v1/events?box=nowhere'
	is "$code" 404
	api GET '/v1/boxes/nowhere/events'
	is "$code" 404
}

events_of_the_draining_server_are_streamed_by_the_new_one() {
	seen_on_host
	curl -sS -o ran -H "X-API-Key: $key" "$url/v1/run" -d '{"command":"echo $HOSTNAME; sleep 4761 & wait"}' &
	ran=$!
	started() { api GET '/v1/runs?running=1' && [ "$(get '.items | length')" = 1 ]; }
	soon started
	mine=$(get '.items[0].box')
	before=$(grep -c '"msg":"draining"' "$work/serve.log") || :
	kill -HUP "$supervisor"
	next_serves() { [ "$(grep -c '"msg":"draining"' "$work/serve.log")" -gt "$before" ]; }
	soon next_serves
	# The old server has the request, the new one our event stream.
	follow s "&box=$mine&after=0"
	kill "$(processes '^sleep 4761')"
	wait $ran
	soon said s box.ended
	leave
	is "$(jq -r 'select(.seq).type' <s | tr '\n' ' ')" "box.created run.ended box.ended "
	is "$(jq -r .status <ran)" 0
}

an_event_stream_ends_cleanly_when_its_server_drains() {
	follow s ''
	new_box
	soon said s box.created
	kill -HUP "$supervisor"
	status=0
	wait "$reader" || status=$?
	is "$status" 0 "$(cat s.err)"
	readers=
	api DELETE "/v1/boxes/$box"
	follow t "&after=$(seqs s | tail -1)"
	soon said t box.ended
	leave
	is "$(jq -r 'select(.seq).type' <t)" box.ended
}

run_daemon_tests
