#!/bin/sh
# notify.sh - webhooks and alerts of a real daemon, with a receiver on the loopback. Times, order, repetition and
# hostile receivers are tested in webhook_test.c, alert_test.c and outbound_test.c.
. "$(dirname "$0")/daemon.lib"

secret=whsec_of_the_test
received=$work/received
mkdir -p "$received"
: >"$received/requests"
/usr/bin/python3 "$libs/receiver.py" "$received" $secret &
receiver=$!
finish_receiver() {
	kill $receiver 2>/dev/null
	finish_daemon
}
trap finish_receiver EXIT
soon test -s "$received/ports"
read -r port mail_port <"$received/ports"
target=http://127.0.0.1:$port

# requests PATH JQ-FILTER: of the requests to this path, as one array.
requests() { jq -rs "map(select(.path == \"$1\")) | $2" <"$received/requests"; }
# requests_are PATH JQ-FILTER TEXT
requests_are() { [ "$(requests "$1" "$2")" = "$3" ]; }
outbound_pid() { pgrep -P "$(cat "$work/supervisor")" -x atoll-outbound; }

events_arrive_signed_and_in_order() {
	id=$(ATOLL_KEY=$key "$ATOLL" -H "$url" webhook new first "$target/first" --event 'box.*' --event run.ended --secret $secret) || fail "webhook new: $id"
	new_box
	api POST "/v1/boxes/$box/execs" '{"command":"true"}'
	api DELETE "/v1/boxes/$box"
	soon requests_are /first '[.[] | .body.type] | join(" ")' 'box.created run.ended box.ended'
	is "$(requests /first 'all(.signed)')" true
	is "$(requests /first "all(.body.box == \"$box\" and .body.team == \"default\")")" true
	is "$(requests /first '.[0].headers["atoll-delivery"]')" "$id.$(requests /first '.[0].body.seq')"
	arrived() { api GET "/v1/webhooks/first" && [ "$(get .delivered)" = 3 ]; }
	soon arrived
	is "$(get '"\(.id) \(.waiting) \(.failed) \(.lost) \(.error)"')" "$id 0 0 0 "
	api GET "/v1/audit?action=webhook.create&limit=1"
	is "$(get '.items[0].subject')" "$id"
	lacks "$body" $secret
	ATOLL_KEY=$key "$ATOLL" -H "$url" webhook rm first || fail "webhook rm"
	api GET "/v1/webhooks/$id"
	is "$code" 404
}

the_test_shows_the_answer_of_the_receiver() {
	api POST /v1/webhooks "{\"name\":\"tried\",\"url\":\"$target/tried\",\"secret\":\"$secret\"}"
	is "$code" 201 "$body"
	is "$(get .secret)" null
	api POST /v1/webhooks/tried/test
	is "$(get '"\(.delivered) \(.status) \(.error)"')" "true 200 " "$body"
	is "$(requests /tried '.[0] | "\(.signed) \(.body.type)"')" "true webhook.test"
	has "$(ATOLL_KEY=$key "$ATOLL" -H "$url" webhook test tried)" 'delivered, status 200'
	# A redirect is an answer, and not followed.
	api PATCH /v1/webhooks/tried "{\"url\":\"$target/redirect\"}"
	is "$code" 200 "$body"
	api POST /v1/webhooks/tried/test
	is "$(get '"\(.delivered) \(.status)"')" "false 302" "$body"
	is "$(requests /elsewhere length)" 0
	# Addresses that the operator has not allowed.
	for inside in "http://127.0.0.2:$port/" "http://10.0.0.1/" "http://[::1]:$port/" http://169.254.169.254/latest/; do
		api PATCH /v1/webhooks/tried "{\"url\":\"$inside\"}"
		api POST /v1/webhooks/tried/test
		is "$(get .delivered)" false "$inside: $body"
		has "$(get .error)" 'not public'
	done
	api DELETE /v1/webhooks/tried
	is "$code" 204
}

the_process_for_requests_has_no_privilege() {
	pid=$(outbound_pid)
	is "$(awk '/^Uid:/ { print $2, $3, $4, $5 }' "/proc/$pid/status")" '64173 64173 64173 64173'
	is "$(awk '/^Seccomp:/ { print $2 }' "/proc/$pid/status")" 2
	is "$(awk '/^CapEff:/ { print $2 }' "/proc/$pid/status")" 0000000000000000
}

bad_webhooks_are_refused() {
	api POST /v1/webhooks "{\"name\":\"one\",\"url\":\"$target/one\"}"
	is "$code" 201 "$body"
	has "$(get .secret)" whsec_
	api POST /v1/webhooks "{\"name\":\"one\",\"url\":\"$target/one\"}"
	is "$code" 409 "$body"
	for url_bad in 'ftp://example.org/' 'http://user@example.org/' 'http://example.org/a\nHost: b' 'http:///'; do
		api POST /v1/webhooks "{\"name\":\"two\",\"url\":\"$url_bad\"}"
		is "$code" 400 "$url_bad: $body"
	done
	api POST /v1/webhooks "{\"name\":\"two\",\"url\":\"$target/\",\"events\":[\"box created\"]}"
	is "$code" 400 "$body"
	api POST /v1/webhooks "{\"name\":\"two\",\"url\":\"$target/\",\"secret\":\"short\"}"
	is "$code" 400 "$body"
	api POST /v1/webhooks/one/replay '{"seq":1}'
	is "$code" 404 "$body"
	api GET /v1/webhooks/one/failed
	is "$(get '.items | length')" 0
	owner=$key key=$viewer
	api GET /v1/webhooks
	is "$(get '.items[0] | has("url")')" false
	api POST /v1/webhooks "{\"name\":\"two\",\"url\":\"$target/\"}"
	is "$code" 403 "$body"
	key=$owner
	api DELETE /v1/webhooks/one
}

events_survive_kills_and_a_receiver_that_is_down() {
	: >"$received/down"
	api POST /v1/webhooks "{\"name\":\"down\",\"url\":\"$target/down\",\"events\":[\"box.*\"],\"secret\":\"$secret\"}"
	is "$code" 201 "$body"
	new_box
	tried() { api GET /v1/webhooks/down && [ "$(get .error)" = 'the receiver answered 503' ]; }
	soon tried
	kill -9 "$(outbound_pid)"
	supervisor=$(cat "$work/supervisor") server=$(server_pid)
	kill -9 "$server"
	replaced() { new=$(server_pid) && [ "$new" ] && [ "$new" != "$server" ]; }
	soon replaced
	api DELETE "/v1/boxes/$box"
	is "$code" 204 "$body"
	rm "$received/down"
	soon requests_are /down '[.[] | .body.type] | unique_by(.) | join(" ")' 'box.created box.ended'
	is "$(requests /down '[.[] | .body.seq] | . == sort')" true
	api DELETE /v1/webhooks/down
}

webhooks_of_e2b_have_its_shape_and_its_signature() {
	api POST /events/webhooks "{\"name\":\"My Sandbox Webhook\",\"url\":\"$target/e2b\",\"enabled\":true,\"events\":[\"sandbox.lifecycle.created\",\"sandbox.lifecycle.killed\"],\"signatureSecret\":\"$secret\"}"
	is "$code" 201 "$body"
	hook=$(get .id)
	is "$(get '[.teamId, .name, .enabled, (.createdAt | type), (.events | length)] | join(" ")')" "default My Sandbox Webhook true string 2"
	api GET /events/webhooks
	is "$(get '.[0].id')" "$hook"
	api POST /sandboxes '{"templateID":"base","metadata":{"who":"me"}}'
	is "$code" 201 "$body"
	sandbox=$(get .sandboxID)
	api DELETE "/sandboxes/$sandbox"
	soon requests_are /e2b '[.[] | .body.type] | join(" ")' 'sandbox.lifecycle.created sandbox.lifecycle.killed'
	is "$(requests /e2b 'all(.e2b and .signed)')" true
	is "$(requests /e2b ".[1].body | [.version, .sandboxId, .sandboxTeamId, .sandboxTemplateId, .eventData.sandbox_metadata.who, (.eventData.execution.execution_time | type)] | join(\" \")")" \
		"v2 $sandbox default base me number"
	is "$(requests /e2b '.[0].headers | [.["e2b-webhook-id"], .["e2b-signature-version"]] | join(" ")')" "$hook v1"
	api PATCH "/events/webhooks/$hook" '{"enabled":false}'
	is "$(get .enabled)" false "$body"
	api GET "/events/webhooks/$hook"
	is "$(get .url)" "$target/e2b"
	api POST /events/webhooks "{\"name\":\"x\",\"url\":\"$target/\",\"events\":[\"box.created\"],\"signatureSecret\":\"$secret\"}"
	is "$code" 400 "$body"
	api DELETE "/events/webhooks/$hook"
	is "$code" 200 "$body"
	api GET "/events/webhooks/$hook"
	is "$code" 404 "$body"
}

export ATOLL_OUTBOUND_ALLOW=127.0.0.1
run_daemon_tests
