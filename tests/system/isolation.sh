#!/bin/sh
# isolation.sh - the isolation tier of a box: requests, minima, rejections, records.
# Which tiers a machine offers differs, so tests of minima accept a stronger box or a rejection, never a container.
. "$(dirname "$0")/daemon.lib"

# rejected: the last answer is 409 with one line for each tier, each with what helps.
rejected() {
	is "$code" 409 "$body"
	is "$(get .error.code)" isolation_unavailable
	for tier in process container wasm gvisor microvm; do
		is "$(get "[.error.hints[] | select(startswith(\"$tier: \"))] | length")" 1 "$tier: $body"
	done
}
# never_weaker RANK: the last request was rejected, or its box or record has at least this rank.
never_weaker() {
	[ "$code" != 409 ] || { is "$(get .error.code)" isolation_unavailable "$body"; return; }
	[ "$(get .isolation.rank)" -ge "$1" ] || fail "rank $(get .isolation.rank), at least $1 was required: $body"
	[ "$(get '.command // empty')" ] || api DELETE "/v1/boxes/$(get .id)"
}

without_settings_a_box_is_a_container() {
	new_box
	is "$(get '.tier + " " + .isolation.tier')" "container container"
	is "$(get '.isolation | "\(.requested) \(.rank) \(.engine) \(.emulated) \(.inner_features)"')" "auto 2 null false []"
	is "$(get '.isolation.chosen_by | "\(.source) \(.trust) \(.label) \(.team) \(.key) \(.template) \(.request)"')" \
		"label generated container null null null null"
	is "$(get '.isolation.features == .layers')" true
	api GET "/v1/boxes/$box"
	is "$(get .isolation.chosen_by.source)" label
	api POST /v1/run '{"command": "true"}'
	is "$(get '"\(.tier) \(.isolation.tier) \(.isolation.rank)"')" "container container 2"
	api GET "/v1/runs/$(get .id)"
	is "$(get .isolation.requested)" auto
	api DELETE "/v1/boxes/$box"
	api GET "/v1/boxes/$box"
	is "$(get '.state + .isolation.tier')" deletedcontainer
}

a_tier_is_requested_by_name_or_as_a_minimum() {
	new_box '{"isolation": "container", "trust": "trusted"}'
	is "$(get '.isolation | .requested + " " + .chosen_by.request + " " + .chosen_by.trust')" "container container trusted"
	api DELETE "/v1/boxes/$box"
	api POST /v1/run '{"command": "true", "isolation": {"at_least": "container"}}'
	is "$(get .isolation.requested.at_least)" container
	api POST /v1/run '{"command": "true", "isolation": "container+"}'
	is "$(get .isolation.requested.at_least)" container
}

# invalid FIELDS TEXT: the request with these members is rejected with 400.
invalid() {
	api POST /v1/boxes "{$1}"
	is "$code" 400 "$body"
	has "$(get .error.message)" "$2"
}
bad_requests_are_rejected() {
	invalid '"isolation": "gvsior"' "did you mean gvisor?"
	invalid '"isolation": 3' "must be"
	invalid '"isolation": {"at_least": ""}' "at_least"
	invalid '"isolation": {}' "at_least"
	invalid '"isolation": {"at_least": "gvisor", "or": 1}' "at_least"
	invalid '"isolation": {"at_least": "x"}' "no isolation tier 'x'"
	invalid '"trust": "hostil"' "did you mean hostile?"
	invalid '"trust": 4' "trust: must be"
	invalid '"metadata": {"atoll.isolation": "gvisor"}' "reserved"
}

a_rejection_has_a_line_for_each_tier() {
	api POST /v1/boxes '{"isolation": "wasm"}' # only runs of modules have it
	rejected
	has "$body" "container: the request names wasm"
	api POST /v1/run '{"command": "true", "isolation": "process"}'
	rejected
	has "$body" "process: disabled (set isolation.process = true)"
	api POST /v1/batch '{"isolation": "process", "items": [{"command": "true"}]}'
	rejected
	api POST "/v1/batch?isolation=process" '{"command": "true"}' -H 'Content-Type: application/x-ndjson'
	rejected
	api POST /v1/pipelines '{"task": "print 1", "isolation": {"at_least": "process"}, "trust": "x"}'
	is "$code" 400 "$body"
	api POST /v1/pipelines '{"task": "print 1", "isolation": "process"}'
	rejected
	api POST /api/sandbox '{"template": "code-interpreter-v1", "code": "1", "isolation": "process"}'
	rejected
}

no_box_is_weaker_than_its_label_requires() {
	api POST /v1/boxes '{"trust": "hostile"}'
	never_weaker 4
	api POST /v1/run '{"command": "true", "trust": "untrusted"}'
	never_weaker 3
	api POST /v1/boxes '{"trust": "hostile", "isolation": "container"}'
	rejected
}

no_box_is_weaker_than_its_key_or_team_requires() {
	strict=$("$ATOLL" key new strict --isolation microvm --state "$state" --quiet)
	all=$key key=$strict
	api POST /v1/boxes '{}'
	never_weaker 4
	api POST /v1/boxes '{"isolation": "container", "trust": "trusted"}'
	rejected
	has "$body" "the key requires 4"
	api POST /v1/keys '{"name": "copy"}' # inherits the minimum
	is "$(get .isolation)" microvm
	api POST /v1/keys '{"name": "weaker", "isolation": "container"}'
	is "$code" 400 "$body"
	# Nor by the other ways to a key: that of E2B, and a session of the web page.
	api POST /api-keys '{"name": "other"}'
	key=$(get .key)
	api POST /v1/boxes '{"isolation": "container"}'
	has "$body" "the key requires 4"
	key=$strict
	api POST /v1/ui/links '{}'
	if [ "$code" != 404 ]; then # built without the page
		api POST /v1/ui/sessions "{\"token\": \"$(get .token)\"}"
		is "$(get .isolation)" microvm "$body"
	fi
	key=$all
	api PUT /v1/teams/strict '{"isolation": "gvisor"}'
	is "$(get .isolation)" gvisor
	api PUT /v1/teams/other '{"isolation": "process"}'
	is "$code" 400
	out=$("$ATOLL" key new low --team strict --isolation container --state "$state" 2>&1) && fail "a key below its team: $out"
	has "$out" "weaker than gvisor, which the team requires"
	key=$("$ATOLL" key new member --team strict --state "$state" --quiet)
	api POST /v1/run '{"command": "true"}'
	never_weaker 3
	api POST /v1/boxes '{"isolation": "container"}'
	rejected
	has "$body" "the team requires 3"
	key=$all
}

a_session_is_not_answered_with_a_weaker_box() {
	new_box '{"session": "s"}'
	api POST /v1/boxes '{"session": "s", "isolation": "gvisor"}'
	is "$code" 409 "$body"
	has "$(get .error.message)" "its isolation tier is container"
	api POST /v1/boxes '{"session": "s"}'
	is "$code $(get .id)" "200 $box"
	api DELETE "/v1/boxes/$box"
}

metadata_of_e2b_can_only_raise_the_tier() {
	api POST /sandboxes '{"templateID": "base", "secure": true, "metadata": {"atoll.trust": "trusted"}}'
	is "$code" 400 "$body"
	has "$body" "can only raise"
	api POST /sandboxes '{"templateID": "base", "secure": true, "metadata": {"atoll.isolation": "microvm"}}'
	[ "$code" = 409 ] || { api GET "/v1/boxes/$(get .sandboxID)" && never_weaker 4; }
	api POST /sandboxes '{"templateID": "base", "secure": true, "metadata": {"atoll.isolation": "container", "atoll.trust": "generated"}}'
	is "$code" 201 "$body"
	is "$(get 'has("isolation") or has("tier")')" false # the schema is E2B's
	box=$(get .sandboxID)
	api GET "/v1/boxes/$box"
	is "$(get .isolation.requested.at_least)" container
	api DELETE "/v1/boxes/$box"
}

the_tiers_of_the_host_are_listed() {
	api GET /v1/tiers
	is "$(get '[.items[].tier] | join(" ")' | sed 's/ plain//')" "process container wasm gvisor microvm"
	is "$(get '.items[] | select(.tier == "container") | "\(.offered) \(.rank) \(.state)"')" "true 2 offered"
	is "$(get '[.items[] | select(.offered | not) | .reason | length > 5] | all')" true
	api POST /v1/tiers/refresh ''
	is "$code" 200 "$body"
}

commands_request_and_list_tiers() {
	out=$("$ATOLL" run --isolation container -- echo in) || fail "$out"
	is "$out" in
	out=$("$ATOLL" run --trust hostile --isolation container -- true 2>&1) && fail "$out"
	has "$out" "container: rank 2 is too low"
	has "$out" "microvm: "
	out=$("$ATOLL" new --isolation gvsior 2>&1) && fail "$out"
	has "$out" "did you mean gvisor?"
	has "$("$ATOLL" tier list)" container
	is "$("$ATOLL" tier list --json | jq -r '.items[] | select(.tier == "container") | .offered')" true
	is "$("$ATOLL" doctor --json | jq -r '.[] | select(.name == "tier container") | .status')" ok
}

run_daemon_tests
