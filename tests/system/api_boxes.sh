#!/bin/sh
# api_boxes.sh - /v1/boxes and /v1/run: what a first-time user does, and what goes wrong.
. "$(dirname "$0")/daemon.lib"

health_needs_no_key() {
	is "$(curl -sS "$url/healthz")" '{"status":"ok"}'
}

every_other_route_needs_a_key() {
	for path in /v1/info /v1/boxes /metrics /openapi.json /v1/nothing /v1/keys /v1/audit /v1/events; do
		is "$(curl -sS -o /dev/null -w '%{http_code}' "$url$path")" 401 "$path"
	done
}

an_invalid_key_is_rejected_with_a_message() {
	is "$(curl -sS -o body -w '%{http_code}' -H 'X-API-Key: e2b_0000000000000000000000000000000000000000' "$url/v1/info")" 401
	is "$(get .error.code)" unauthorized
	has "$(get .error.why)" "not known"
	is "$(get .error.message)" "missing or invalid API key"
	has "$(get '.error.hints | join(" ")')" "send 'X-API-Key: KEY' or 'Authorization: Bearer KEY'"
	is "$(curl -sS -o body -w '%{http_code}' -H 'Authorization: Bearer nonsense' "$url/v1/info")" 401
}

# For readers without a checkout: the daemon has its own documents, and an error names the page of its route.
errors_link_to_a_page_that_the_daemon_serves() {
	explained() { # METHOD PATH BODY PAGE
		api "$1" "$2" "$3"
		case $code in 4*) ;; *) fail "$1 $2: $code" ;; esac
		is "$(get .error.doc)" "/docs/$4" "$1 $2 $body"
		is "$(curl -sS -o page -w '%{http_code} %{content_type}' "$url$(get .error.doc)")" '200 text/plain; charset=utf-8'
		cmp page "$here/../../docs/$4" || fail "another page"
	}
	new_box
	explained GET /v1/nothing '' daemon.md
	explained POST /v1/boxes '{"limits":1}' daemon.md
	explained POST /v1/packages '{"manager":"unknown"}' packages.md
	explained POST "/v1/boxes/$box/cells" '{"language":1}' languages.md
	explained POST /v1/pipelines '{"task":1}' pipeline.md
	explained POST /v1/batch '{"items":1}' batch.md
	explained POST "/v1/boxes/$box/tools/nothing" '{}' agents.md
	is "$(curl -sS -o body -w '%{http_code}' "$url/docs/nothing.md")" 404
	has "$(get '.error.hints[0]')" /docs/sandbox.md
	is "$(curl -sS --path-as-is -o /dev/null -w '%{http_code}' "$url/docs/..%2fREADME.md")" 404
	api DELETE "/v1/boxes/$box"
}

both_key_headers_are_accepted() {
	is "$(curl -sS -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $key" "$url/v1/info")" 200
	is "$(curl -sS -o /dev/null -w '%{http_code}' -H "X-API-Key: $key" "$url/v1/info")" 200
}

a_client_of_the_unix_socket_is_identified_by_its_uid() {
	is "$(curl -sS --unix-socket "$sock" http://localhost/v1/info | jq -r .who)" "uid:0"
}

# tests/tiers: without this, all other tests of a tier could pass in containers.
boxes_have_the_isolation_tier_of_this_run() {
	api POST /v1/boxes '{}'
	is "$(get .isolation.tier)" "${ATOLL_TIER:-container}"
	case ${ATOLL_TIER:-container} in plain | gvisor | microvm) has "$(get '.isolation.inner_features | tojson')" no-new-privileges ;; esac
	box=$(get .id)
	api DELETE "/v1/boxes/$box"
	api POST /v1/run '{"command":["true"]}'
	is "$(get .tier)" "${ATOLL_TIER:-container}"
}

v1_run_runs_a_program_in_one_request() {
	api POST /v1/run '{"language":"python","code":"print(6*7)"}'
	is "$code" 200 "$body"
	is "$(get .stdout)" 42
	is "$(get .cause)" exit
	is "$(get .status)" 0
}

v1_run_leaves_no_box() {
	api POST /v1/run '{"command":["true"]}'
	gone=$(get .box)
	i=0
	while api GET /v1/boxes && [ "$(get '.items | length')" != 0 ] && [ $i -lt 100 ]; do i=$((i + 1)); done
	is "$(get '.items | length')" 0
	api GET "/v1/boxes/$gone"
	is "$(get .state)" deleted
}

files_are_written_before_the_program_starts() {
	api POST /v1/run '{"files":{"a/b.txt":"hello","c.bin":{"base64":"AAEC"}},"command":"cat a/b.txt; wc -c <c.bin"}'
	is "$(get .stdout)" "hello3"
}

a_program_is_compiled_before_it_runs() {
	api POST /v1/run '{"language":"c","code":"#include <stdio.h>\nint main(int c,char**v){printf(\"%s\\n\",v[1]);return 3;}","args":["hi"]}'
	is "$(get .stdout)" hi "$body"
	is "$(get .status)" 3
	api POST /v1/run '{"language":"c","code":"int main( {"}'
	is "$(get .step)" compile
	has "$(get .stderr)" error
}

a_stream_has_all_events_in_order() {
	curl -sS -N -H "X-API-Key: $key" -H 'Accept: application/x-ndjson' "$url/v1/run" \
		-d '{"command":"echo one; echo two >&2; exit 4"}' >body
	is "$(head -1 body | jq -r .type)" started
	is "$(jq -r 'select(.type=="stdout").data' <body)" one
	is "$(jq -r 'select(.type=="stderr").data' <body)" two
	is "$(tail -1 body | jq -r '.type + " " + (.status|tostring)')" "exit 4"
}

server_sent_events_equal_ndjson_events() {
	curl -sS -N -H "X-API-Key: $key" -H 'Accept: text/event-stream' "$url/v1/run" -d '{"command":"echo x"}' >body
	is "$(sed -n 's/^data: //p' body | jq -r 'select(.type=="stdout").data')" x
}

a_box_is_created_shown_listed_and_deleted() {
	new_box '{"name":"demo","metadata":{"a":"1"},"env":{"X":"y"}}'
	api GET /v1/boxes/demo
	is "$(get .id)" "$box"
	is "$(get .metadata.a)" 1
	api GET '/v1/boxes?metadata=a%3D1'
	is "$(get '.items[0].id')" "$box"
	api GET '/v1/boxes?metadata=a%3D2'
	is "$(get '.items | length')" 0
	api POST /v1/boxes/demo/execs '{"command":"echo $X"}'
	is "$(get .stdout)" y
	api DELETE /v1/boxes/demo
	is "$code" 204
	api GET "/v1/boxes/$box"
	is "$(get .state)" deleted
	is "$(get .cause)" operator
	api GET /v1/boxes/demo
	is "$code" 404
}

the_name_of_a_box_is_unique() {
	new_box '{"name":"twin"}'
	api POST /v1/boxes '{"name":"twin"}'
	is "$code" 409
	has "$(get .error.message)" twin
	api DELETE "/v1/boxes/$box"
}

a_session_returns_the_same_box() {
	new_box '{"session":"user-1/chat 2"}'
	first=$box
	api POST /v1/boxes '{"session":"user-1/chat 2"}'
	is "$code" 200
	is "$(get .id)" "$first"
	api DELETE "/v1/boxes/$first"
}

a_repeated_idempotency_key_creates_one_box() {
	api POST /v1/boxes '{}' -H 'Idempotency-Key: k1'
	is "$code" 201
	first=$(get .id)
	api POST /v1/boxes '{}' -H 'Idempotency-Key: k1'
	is "$code" 201
	is "$(get .id)" "$first"
	api POST /v1/boxes '{"name":"other"}' -H 'Idempotency-Key: k1'
	is "$code" 409
	api DELETE "/v1/boxes/$first"
}

an_etag_returns_304_and_rejects_a_stale_change() {
	new_box
	api GET "/v1/boxes/$box"
	tag=$(sed -n 's/^etag: *//Ip' head | tr -d '\r')
	api GET "/v1/boxes/$box" -H "If-None-Match: $tag"
	code=$(curl -sS -o body -w '%{http_code}' -H "X-API-Key: $key" -H "If-None-Match: $tag" "$url/v1/boxes/$box")
	is "$code" 304
	api PATCH "/v1/boxes/$box" '{"metadata":{"v":"2"}}' -H "If-Match: $tag"
	is "$code" 200 "$body"
	api PATCH "/v1/boxes/$box" '{"metadata":{"v":"3"}}' -H "If-Match: $tag"
	is "$code" 412
	api GET "/v1/boxes/$box"
	is "$(get .metadata.v)" 2
	api DELETE "/v1/boxes/$box"
}

boxes_are_listed_in_pages() {
	for i in 1 2 3 4 5; do new_box "{\"name\":\"p$i\"}"; done
	api GET '/v1/boxes?limit=2&name=p'
	is "$(get '[.items[].name] | join(",")')" "p5,p4"
	api GET "/v1/boxes?limit=2&name=p&after=$(get .next)"
	is "$(get '[.items[].name] | join(",")')" "p3,p2"
	api GET "/v1/boxes?limit=2&name=p&after=$(get .next)"
	is "$(get '[.items[].name] | join(",")')" "p1"
	is "$(get .next)" null
	for i in 1 2 3 4 5; do api DELETE "/v1/boxes/p$i"; is "$code" 204; done
}

an_expired_lifetime_ends_the_box_with_cause_lifetime() {
	new_box '{"lifetime_ms":600000}'
	curl -sS -o ran -H "X-API-Key: $key" -d '{"command":"exec sleep 4762"}' "$url/v1/boxes/$box/execs" &
	ran=$!
	soon program_runs '^sleep 4762'
	api PATCH "/v1/boxes/$box" '{"lifetime_ms":300}'
	wait $ran
	is "$(jq -r .cause ran)" lifetime "$(cat ran)"
	api GET "/v1/boxes/$box"
	is "$(get .cause)" lifetime
}

# The default lifetime counts from the last use; this file's last test starts a daemon where that is short.
lifetime_from_is_use_or_creation() {
	new_box
	is "$(get '.lifetime_from + " " + (.lifetime_ms | tostring)')" "use 600000"
	first=$(get .ends)
	api POST "/v1/boxes/$box/execs" '{"command":"true"}'
	api GET "/v1/boxes/$box"
	expr "$(get .ends)" '>' "$first" >/dev/null || fail "$first $body"
	new_box '{"lifetime_ms":60000}'
	is "$(get .lifetime_from)" creation
	first=$(get .ends)
	api POST "/v1/boxes/$box/execs" '{"command":"true"}'
	api GET "/v1/boxes/$box"
	is "$(get .ends)" "$first"
	new_box '{"lifetime_ms":60000,"lifetime_from":"use"}'
	is "$(get .lifetime_from)" use
	for bad in '"never"' 7 '""' '["use"]'; do
		api POST /v1/boxes "{\"lifetime_from\":$bad}"
		is "$code" 400 "$bad: $body"
	done
}

a_deleted_box_has_its_end_time_and_cause() {
	new_box '{"name":"short-lived","lifetime_ms":1000}'
	soon ended
	for which in "$box" short-lived; do
		api POST "/v1/boxes/$which/execs" '{"command":"true"}'
		is "$code $(get .error.code) $(get .error.cause)" "404 box_ended lifetime" "$body"
		has "$(get .error.message)" "ended at $(get .error.ended_at): its lifetime of 1 s was over"
		api GET "/v1/boxes/$which/files?path=x"
		is "$(get .error.code)" box_ended "$body"
	done
	api POST "/v1/boxes/$box/tools/run_command" '{"command":"true"}'
	has "$body" "its lifetime of 1 s was over"
	new_box
	api DELETE "/v1/boxes/$box"
	api POST "/v1/boxes/$box/execs" '{"command":"true"}'
	has "$(get .error.message)" "it was deleted"
	api GET "/sandboxes/$box"
	is "$code" 404
	has "$(get .message)" "it was deleted"
	api POST /v1/boxes/nosuch/execs '{"command":"true"}'
	is "$code $(get .error.code)" "404 not_found"
	api PUT /v1/teams/others '{}'
	theirs=$(curl -sS -H "X-API-Key: $key" -d '{"name":"k","team":"others","role":"owner"}' -H 'Content-Type: application/json' "$url/v1/keys" | jq -r .key)
	is "$(curl -sS -H "X-API-Key: $theirs" -d '{"command":"true"}' -H 'Content-Type: application/json' "$url/v1/boxes/$box/execs" | jq -r .error.code)" not_found
}
ended() { api GET "/v1/boxes/$box"; [ "$(get .state)" = deleted ]; }

a_lifetime_over_the_maximum_is_rejected() {
	api POST /v1/boxes '{"lifetime_ms":999999999999}'
	is "$code" 400
	has "$(get .error.message)" lifetime_ms
}

an_idle_timeout_ends_only_a_box_without_activity() {
	new_box '{"idle_ms":400}'
	idle=$box
	new_box '{"idle_ms":1500}'
	api POST "/v1/boxes/$box/execs" '{"command":"sleep 2.5"}'
	is "$(get .cause)" exit
	api GET "/v1/boxes/$idle"
	is "$(get '.state + " " + .cause')" "deleted idle"
}

run_ended() { api GET "/v1/runs/$run" && [ "$(get .state)" = exited ]; }
a_stopped_box_that_kept_its_files_starts_again() {
	new_box '{"lifetime_ms":600000,"on_timeout":"keep"}'
	api POST "/v1/boxes/$box/execs" '{"command":"echo kept >f"}'
	api POST "/v1/boxes/$box/execs" '{"command":"sleep 100","background":true}'
	run=$(get .id)
	api PATCH "/v1/boxes/$box" '{"lifetime_ms":300}'
	soon run_ended
	is "$(get .cause)" lifetime
	api GET "/v1/boxes/$box"
	is "$(get .state)" stopped
	api PATCH "/v1/boxes/$box" '{"lifetime_ms":60000}'
	api POST "/v1/boxes/$box/execs" '{"command":"cat f"}'
	is "$(get .stdout)" kept "$body"
	api GET "/v1/boxes/$box"
	is "$(get .state)" running
	api DELETE "/v1/boxes/$box"
}

old_state_words_are_accepted_with_a_warning_and_answered_with_the_new_ones() {
	new_box
	id=$box
	api DELETE "/v1/boxes/$box"
	for word in gone deleted; do
		curl -sS -D head -o page -H "X-API-Key: $key" "$url/v1/boxes?state=$word"
		is "$(jq -r --arg id "$id" '.items[] | select(.id == $id) | .state' <page)" deleted "$word"
		warned=$(sed -n 's/\r$//; s/^[Ww]arning: //p' head)
		case $word in
		gone) has "$warned" '299 - "state=gone is deprecated'; has "$warned" 'use state=deleted"' ;;
		*) is "$warned" "" ;;
		esac
	done
	api GET '/v1/boxes?state=kept'
	is "$code" 200
	api GET '/v1/boxes?state=lost'
	is "$code" 400
	has "$(get .error.message)" "running, stopped, paused, deleted, all"
	api GET /openapi.json
	is "$(get '[.paths["/v1/boxes"].get.parameters[] | select(.name == "state") | .schema.enum[]] | join(" ")')" \
		"running stopped paused deleted all"
	out=$(ATOLL_HOST=unix:$sock "$ATOLL" ls --state gone 2>said)
	has "$out" "$id"
	has "$(cat said)" "atoll: warning: state=gone is deprecated"
}

a_viewer_may_read_but_not_change() {
	new_box
	owner=$key key=$viewer
	api GET /v1/boxes
	is "$code" 200
	api GET "/v1/boxes/$box"
	is "$code" 200
	api POST /v1/boxes '{}'
	is "$code" 403
	api POST /v1/run '{"command":"true"}'
	is "$code" 403
	api POST "/v1/boxes/$box/execs" '{"command":"true"}'
	is "$code" 403
	api PATCH "/v1/boxes/$box" '{"name":"x"}'
	is "$code" 403
	api DELETE "/v1/boxes/$box"
	is "$code" 403
	key=$owner
	api DELETE "/v1/boxes/$box"
	is "$code" 204
}

a_key_for_one_box_is_rejected_for_other_boxes() {
	new_box
	mine=$box
	new_box
	owner=$key
	key=$("$ATOLL" key new bound --box "$mine" --state "$gateway_state" --quiet)
	api GET "/v1/boxes/$mine"
	is "$code" 200
	api GET "/v1/boxes/$box"
	is "$code" 404
	api GET /v1/boxes
	is "$code" 403
	key=$owner
	for b in $mine $box; do api DELETE "/v1/boxes/$b"; done
}

boxes_of_another_team_are_not_found() {
	new_box '{"name":"secret"}'
	api PUT /v1/teams/other '{}'
	is "$code" 201 "$body"
	api POST /v1/keys '{"name":"theirs","role":"owner","team":"other"}'
	owner=$key
	key=$(get .key)
	for path in "/v1/boxes/$box" /v1/boxes/secret /v1/boxes/never; do
		api GET "$path"
		is "$code" 404 "$path"
	done
	api GET /v1/boxes
	is "$(get '.items | length')" 0
	api DELETE "/v1/boxes/$box"
	is "$code" 404
	key=$owner
	api DELETE "/v1/boxes/$box"
	is "$code" 204
}

a_removed_key_is_refused_within_a_second() {
	owner=$key
	key=$("$ATOLL" key new brief --state "$gateway_state" --quiet)
	api GET /v1/info
	is "$code" 200
	"$ATOLL" key rm brief --state "$gateway_state"
	i=0
	while api GET /v1/info && [ "$code" = 200 ] && [ $i -lt 400 ]; do i=$((i + 1)); done
	is "$code" 401
	key=$owner
}

an_invalid_body_names_the_json_path() {
	api POST /v1/boxes '{"nmae":"x"}'
	is "$code" 400
	has "$(get .error.message)" nmae
	api POST /v1/boxes '{"limits":{"mem":"much"}}'
	has "$(get .error.message)" limits.mem
	api POST /v1/boxes '{"limits":{"mem":-1}}'
	is "$code" 400
	for much in 99999999999999999999999 9223372036854775807 1e99 -9223372036854775808 0.5; do
		api POST /v1/boxes "{\"limits\":{\"mem\":$much}}"
		is "$code" 400 "$much: $body"
		api POST /v1/boxes "{\"lifetime_ms\":$much}"
		is "$code" 400 "$much: $body"
	done
	api POST /v1/boxes '{"name":"../etc"}'
	is "$code" 400
	api POST /v1/boxes '{"a":1,"a":2}'
	has "$(get .error.message)" JSON
	api POST /v1/boxes '[]'
	is "$code" 400
	api POST /v1/boxes '{"name":"x"'
	is "$code" 400
	api POST /v1/boxes "{\"name\":\"$(printf 'a%.0s' $(seq 100))\"}"
	is "$code" 400
	api POST /v1/boxes '{"name":"a\u0000b"}'
	is "$code" 400
	api POST /v1/boxes "$(printf '{"name":"\377"}')"
	is "$code" 400
	api POST /v1/boxes "$(python3 -c 'print("{\"a\":" * 5000 + "1" + "}" * 5000)')"
	is "$code" 413
	api POST /v1/boxes '{"template":"nothing"}'
	is "$code" 404
	api POST /v1/run '{}'
	is "$code" 400
	api GET '/v1/boxes?limit=0'
	is "$code" 400
	api GET '/v1/boxes?limti=3'
	is "$code" 400
}

metadata_keys_that_start_with_atoll_are_reserved() {
	api POST /v1/boxes '{"metadata":{"atoll.ephemeral":"1"}}'
	is "$code" 400 "$body"
	has "$(get .error.message)" reserved
	new_box '{"metadata":{"atoll":"mine","a":"b"}}'
	api PATCH "/v1/boxes/$box" '{"metadata":{"atoll.agent":"1"}}'
	is "$code" 400
	api GET "/v1/boxes/$box"
	is_json "$(get .metadata)" '{"atoll":"mine","a":"b"}'
	api PATCH "/v1/boxes/$box" '{"metadata":{"c":"d"}}'
	is "$(get '.metadata | tojson')" '{"c":"d"}'
}

a_null_field_equals_a_missing_field() {
	new_box '{"name":null,"limits":{"mem":null,"pids":77}}'
	is "$(get .limits.pids)" 77
	default=$(get .limits.mem)
	new_box '{}'
	is "$(get .limits.mem)" "$default"
}

a_foreign_host_or_origin_header_is_rejected() {
	is "$(curl -sS -o /dev/null -w '%{http_code}' -H "X-API-Key: $key" -H 'Host: evil.example' "$url/v1/info")" 421
	is "$(curl -sS -o /dev/null -w '%{http_code}' -H "X-API-Key: $key" -H 'Origin: http://evil.example' "$url/v1/info")" 403
	is "$(curl -sS -o /dev/null -w '%{http_code}' -H "X-API-Key: $key" -H "Origin: $url" "$url/v1/info")" 200
}

every_route_is_in_openapi_json() {
	api GET /openapi.json
	is "$(get .openapi)" 3.1.0
	is "$(get '.paths["/v1/boxes"].post.requestBody.content["application/json"].schema.type')" object
}

promtool_accepts_the_metrics() {
	api GET /metrics
	promtool check metrics <body >promtool.out 2>&1 || fail "$(cat promtool.out)"
	has "$body" 'atoll_runs_ended_total{cause="exit"}'
}

# The last test, because it stops the daemon of the other tests.
a_box_in_use_is_not_ended_by_the_default_lifetime() {
	lifetime=2
	[ "${ATOLL_TIER-}" != microvm ] || lifetime=20 # the other box boots meanwhile
	stop_daemon
	ATOLL_DEFAULT_LIFETIME=${lifetime}s start_daemon
	new_box
	used=$box
	new_box
	began=$(date +%s)
	while [ $(($(date +%s) - began)) -lt $((lifetime * 5 / 2)) ]; do
		api POST "/v1/boxes/$used/execs" '{"command":"sleep 0.2"}'
		is "$code" 200 "$body"
	done
	ended # the unused box
	is "$(get .cause)" lifetime "$body"
	box=$used
	soon ended
	is "$(get .cause)" lifetime "$body"
}

run_daemon_tests
