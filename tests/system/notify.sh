#!/bin/sh
# notify.sh - webhooks and alerts of a real daemon, with a receiver on the loopback. Times, order, repetition and
# hostile receivers are tested in webhook_test.c, alert_test.c and outbound_test.c.
. "$(dirname "$0")/daemon.lib"

secret=whsec_of_the_test
received=$work/received
mkdir -p "$received"
: >"$received/requests"
for name in trusted unknown; do
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=$name -addext subjectAltName=IP:127.0.0.1 \
		-keyout "$received/$name.pem" -out "$received/$name.crt" 2>/dev/null
	cat "$received/$name.crt" >>"$received/$name.pem"
done
/usr/bin/python3 "$libs/receiver.py" "$received" $secret &
receiver=$!
finish_receiver() {
	kill $receiver 2>/dev/null
	finish_daemon
}
trap finish_receiver EXIT
soon test -s "$received/ports"
read -r port mail_port tls_port unknown_port <"$received/ports"
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

a_receiver_with_tls_must_have_a_certificate_of_a_trusted_authority() {
	api POST /v1/webhooks "{\"name\":\"tls\",\"url\":\"https://127.0.0.1:$tls_port/tls\",\"secret\":\"$secret\",\"events\":[\"box.created\"]}"
	is "$code" 201 "$body"
	api POST /v1/webhooks/tls/test
	is "$(get '"\(.delivered) \(.status) \(.error)"')" "true 200 " "$body"
	is "$(requests /tls '.[0] | "\(.signed) \(.body.type)"')" "true webhook.test"
	api PATCH /v1/webhooks/tls "{\"url\":\"https://127.0.0.1:$unknown_port/tls\"}"
	api POST /v1/webhooks/tls/test
	is "$(get '"\(.delivered) \(.status)"')" "false 0" "$body"
	has "$(get .error)" certificate
	api PATCH /v1/webhooks/tls "{\"url\":\"$target/plain\"}"
	api POST /v1/webhooks/tls/test
	is "$(get '"\(.delivered) \(.status)"')" "true 200" "$body"
	api DELETE /v1/webhooks/tls
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

# set_rule NAME JSON
set_rule() {
	api PUT "/v1/alerts/rules/$1" "$2"
	is "$code" 200 "$body"
}
# alert_is RULE STATE: the newest alert of the rule
alert_is() { api GET /v1/alerts && [ "$(get "[.items[] | select(.rule == \"$1\")][0].state")" = "$2" ]; }
# noticed RULE STATE: by webhook, mail and command
noticed() {
	[ "$(requests /alerts "any(.signed and .body.rule == \"$1\" and .body.state == \"$2\")")" = true ] &&
		grep -q "Subject: \[atoll\] $2: $1" "$received/mails" &&
		jq -es "any(.[]; .rule == \"$1\" and .state == \"$2\")" <"$received/commands" >/dev/null
}

a_test_reaches_all_channels() {
	api POST /v1/alerts/test
	is "$code" 202 "$body"
	is "$(get '.channels | join(" ")')" 'webhook mail command'
	soon noticed test test
	delivered() { api GET /v1/alerts/notices && [ "$(get '.items | length')" = 0 ]; }
	soon delivered
	is "$(jq -r 'join(" ")' <"$received/mails" | grep -c 'MAIL FROM:<atoll@example.org>.*RCPT TO:<ops@example.org>.*Subject: \[atoll\] test: test')" 1
	has "$(ATOLL_KEY=$key "$ATOLL" -H "$url" alerts test)" mail
}

alerts_fire_and_are_resolved_by_load() {
	boxes=
	for i in 1 2; do
		new_box
		boxes="$boxes $box"
	done
	api GET /v1/boxes
	before=$(get '.items | length')
	set_rule many "{\"figure\":\"boxes\",\"aggregate\":\"last\",\"threshold\":$before,\"cooldown_s\":0,\"summary\":\"many boxes\"}"
	set_rule failures '{"window_s":3,"for_s":0,"min_count":1,"cooldown_s":0}'
	set_rule quota '{"window_s":3,"cooldown_s":0}'
	is "$(get '.threshold == 0')" true "$body"
	api PUT /v1/teams/small '{"executions_per_day":1}'
	owner=$key key=$("$ATOLL" key new small --team small --role editor --state "$state" --quiet)
	api POST /v1/run '{"command":"true"}'
	is "$code" 200 "$body"
	api POST /v1/run '{"command":"true"}'
	is "$code" 429 "$body"
	key=$owner
	for i in 1 2 3 4; do
		api POST /v1/run '{"command":"exit 3"}'
	done
	new_box
	boxes="$boxes $box"
	# By the notices: an alert may be resolved before this test sees that it fires.
	for rule in failures quota many restarts; do
		soon noticed $rule firing
	done
	for box in $boxes; do
		api DELETE "/v1/boxes/$box"
	done
	for rule in many quota failures; do
		soon alert_is $rule resolved
		soon noticed $rule resolved
	done
	api GET /v1/alerts
	is "$(get '[.items[] | select(.rule == "many")][0] | (.fired != null and .resolved > .fired)')" true
	has "$(ATOLL_KEY=$key "$ATOLL" -H "$url" alerts)" 'many boxes'
	api DELETE /v1/alerts/rules/many
	is "$code" 204 "$body"
	api DELETE /v1/alerts/rules/failures
	has "$(ATOLL_KEY=$key "$ATOLL" -H "$url" alerts rules)" 'increase of executions_total / executions_total'
	api GET /v1/alerts/rules
	is "$(get '[.items[] | select(.enabled)] | length')" 11
	is "$(get '[.items[] | select(.name == "failures")][0].window_s')" 300
}

bad_rules_and_other_callers_are_refused() {
	for rule in '{"figure":"nothing"}' '{"figure":"boxes","aggregate":"increase"}' '{"figure":"boxes","aggregate":"last","summary":"a\nb"}' '{}'; do
		api PUT /v1/alerts/rules/new "$rule"
		is "$code" 400 "$rule: $body"
	done
	api DELETE /v1/alerts/rules/new
	is "$code" 404 "$body"
	owner=$key key=$editor
	api GET /v1/alerts
	is "$code" 403 "$body"
	key=$owner
}

: >"$received/mails"
: >"$received/commands"
chmod a+w "$received/commands"
printf '#!/bin/sh\ncat >>%s/commands\necho >>%s/commands\n' "$received" "$received" >"$work/command"
chmod a+rx "$work/command" "$received"
export ATOLL_OUTBOUND_ALLOW=127.0.0.1 ATOLL_EGRESS_CA="$received/trusted.crt" ATOLL_ALERTS_INTERVAL=250ms ATOLL_ALERTS_COMMAND="$work/command" \
	ATOLL_ALERTS_WEBHOOK="$target/alerts" ATOLL_ALERTS_WEBHOOK_SECRET=$secret \
	ATOLL_ALERTS_MAIL_SERVER=smtp://127.0.0.1:$mail_port ATOLL_ALERTS_MAIL_FROM=atoll@example.org ATOLL_ALERTS_MAIL_TO=ops@example.org
run_daemon_tests
