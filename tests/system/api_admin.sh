#!/bin/sh
# api_admin.sh - keys, teams, quotas, usage, the audit log: authorisation, and what is recorded.
. "$(dirname "$0")/daemon.lib"

# as KEY COMMAND...: with another key.
as() { (key=$1; shift; "$@"; echo "$code" >code) || exit 1; code=$(cat code); }
# make_team NAME [QUOTAS]: sets theirs, the key of an owner of it.
make_team() {
	api PUT "/v1/teams/$1" "${2:-{\}}"
	[ "$code" = 200 ] || is "$code" 201 "$body"
	api POST /v1/keys "{\"name\":\"owner\",\"role\":\"owner\",\"team\":\"$1\"}"
	is "$code" 201 "$body"
	theirs=$(get .key)
}
# over WHAT: the last answer was 429 and names the quota and when to retry.
over() {
	is "$code" 429 "$body"
	is "$(get .error.code)" quota
	has "$(get .error.message)" "$1"
	has "$(get .error.why)" "may have"
	retry=$(sed -n 's/^retry-after: *//Ip' head | tr -d '\r')
	[ "$retry" -ge 1 ] && [ "$retry" -le "${2:-86400}" ] || fail "Retry-After: '$retry'"
}
# rows ACTION SUBJECT: how many the audit log has.
rows() {
	api GET "/v1/audit?action=$1&subject=$2"
	is "$code" 200 "$body"
	get '.items | length'
}

# ---- keys ----

a_new_key_is_shown_once_and_is_accepted() {
	api POST /v1/keys '{"name":"laptop","role":"editor"}'
	is "$code" 201 "$body"
	new=$(get .key) id=$(get .id)
	is "$(get .role)" editor
	is "$(get .team)" default
	has "$new" "$(get .shown)"
	has "$(tr -d '\r' <head)" "Location: /v1/keys/$id"
	as "$new" api GET /v1/info
	is "$code" 200
	for path in /v1/keys /v1/keys/laptop "/v1/keys/$id"; do
		api GET "$path"
		is "$code" 200
		has "$body" "$id"
		lacks "$body" "$new"
	done
	api DELETE /v1/keys/laptop
	is "$code" 204 "$body"
	as "$new" api GET /v1/info
	is "$code" 401
	api GET /v1/keys/laptop
	is "$code" 404
}

a_key_without_a_role_is_a_viewer() {
	api POST /v1/keys '{"name":"least"}'
	is "$(get .role)" viewer
	as "$(get .key)" api POST /v1/boxes '{}'
	is "$code" 403
	api DELETE /v1/keys/least
}

a_key_expires_by_itself() {
	api POST /v1/keys '{"name":"brief","expires_ms":300}'
	brief=$(get .key)
	[ "$(get .expires)" != null ] || fail "$body"
	expired() { as "$brief" api GET /v1/info; [ "$code" = 401 ]; }
	soon expired
	has "$(get .error.why)" expired
	api DELETE /v1/keys/brief
}

a_key_is_bound_to_a_box_by_its_name() {
	new_box '{"name":"bound-to"}'
	api POST /v1/keys '{"name":"bound","role":"owner","box":"bound-to"}'
	is "$(get .box)" "$box" "$body"
	bound=$(get .key)
	as "$bound" api GET "/v1/boxes/$box"
	is "$code" 200
	as "$bound" api GET /v1/keys
	is "$code" 403
	api POST /v1/keys '{"name":"lost","box":"nowhere"}'
	is "$code" 404
	api DELETE /v1/keys/bound
	api DELETE "/v1/boxes/$box"
}

the_name_of_a_key_is_unique() {
	api POST /v1/keys '{"name":"once"}'
	is "$code" 201
	api POST /v1/keys '{"name":"once"}'
	is "$code" 409
	api DELETE /v1/keys/once
}

only_owners_may_list_keys_and_audit_rows() {
	for other in "$viewer" "$editor"; do
		for path in /v1/keys /v1/keys/tests /v1/audit; do
			as "$other" api GET "$path"
			is "$code" 403 "$path"
		done
		as "$other" api POST /v1/keys '{"name":"mine","role":"owner"}'
		is "$code" 403
		as "$other" api PUT /v1/teams/mine '{}'
		is "$code" 403
		as "$other" api DELETE /v1/keys/tests
		is "$code" 403
	done
}

an_invalid_key_request_names_the_field() {
	for bad in '{}' '{"name":""}' '{"name":7}' '{"name":"a b"}' '{"name":"x","role":"king"}' \
		'{"name":"x","expires_ms":0}' '{"name":"x","expires_ms":-5}' '{"name":"x","expires_ms":1e300}' \
		'{"name":"x","expires_ms":99999999999999999}' '{"name":"x","tema":"y"}' '{"name":"x","box":["y"]}'; do
		api POST /v1/keys "$bad"
		is "$code" 400 "$bad: $body"
	done
	api POST /v1/keys '{"name":"x","team":"missing"}'
	is "$code" 404 "$body"
	for path in /v1/keys/%00 /v1/keys/..%2f /v1/keys/%ff /v1/keys/never; do
		api DELETE "$path"
		case $code in 400 | 404) ;; *) fail "$path: $code $body" ;; esac
	done
	api GET '/v1/keys?limit=0'
	is "$code" 400
	api GET '/v1/keys?after=nonsense'
	is "$code" 400
}

keys_are_listed_in_pages() {
	make_team pager
	for i in 1 2 3; do as "$theirs" api POST /v1/keys "{\"name\":\"k$i\"}"; done
	as "$theirs" api GET '/v1/keys?limit=2'
	is "$(get '[.items[].name] | join(",")')" "k3,k2"
	as "$theirs" api GET "/v1/keys?limit=2&after=$(get .next)"
	is "$(get '[.items[].name] | join(",")')" "k1,owner"
	is "$(get .next)" null
}

revoking_a_key_closes_its_streams() {
	api POST /v1/keys '{"name":"streamer"}'
	curl -sS -N -H "X-API-Key: $(get .key)" "$url/v1/events?follow=1" >stream 2>stream.err &
	reader=$!
	soon grep -q following stream
	api DELETE /v1/keys/streamer
	status=0
	wait $reader || status=$?
	[ $status != 0 ] || fail "a stream that was cut looked whole"
}

# ---- teams ----

teams_do_not_see_each_other() {
	make_team red
	red=$theirs
	make_team blue
	as "$red" api GET /v1/teams
	is "$(get '[.items[].name] | join(",")')" red
	for path in /v1/teams/blue /v1/teams/default /v1/teams/never '/v1/usage?team=blue'; do
		as "$red" api GET "$path"
		is "$code" 404 "$path"
	done
	as "$red" api GET '/v1/keys?team=blue'
	is "$code" 403
	as "$red" api POST /v1/keys '{"name":"spy","team":"blue"}'
	is "$code" 403
	api GET '/v1/keys?team=blue'
	id=$(get '.items[0].id')
	as "$red" api GET "/v1/keys/$id"
	is "$code" 404
	as "$red" api DELETE "/v1/keys/$id"
	is "$code" 404
	as "$red" api PUT /v1/teams/blue '{"boxes":1}'
	is "$code" 404
	as "$red" api PUT /v1/teams/red '{"boxes":1000}'
	is "$code" 403
	as "$red" api DELETE /v1/teams/blue
	is "$code" 404
	as "$red" api GET /v1/audit
	is "$(get '[.items[].team] | unique | join(",")')" red
	as "$red" api GET '/v1/audit?team=default'
	is "$(get '[.items[].team] | unique | join(",")')" red
	as "$red" api GET /v1/stats
	is "$code" 403
}

an_operator_creates_and_deletes_a_team() {
	api PUT /v1/teams/brief '{"boxes":3,"requests_per_second":50}'
	is "$code" 201 "$body"
	is "$(get .quotas.boxes)" 3
	is "$(get .quotas.executions_per_day)" null
	api PUT /v1/teams/brief '{"executions_per_day":7}'
	is "$code" 200
	is "$(get '[.quotas.boxes, .quotas.executions_per_day, .quotas.requests_per_second] | join(",")')" "3,7,50"
	api PUT /v1/teams/brief '{"boxes":-1}'
	is "$(get .quotas.boxes)" null
	is "$(get .own.boxes)" -1
	api GET /v1/teams
	has "$(get '[.items[].name] | join(",")')" brief
	api POST /v1/keys '{"name":"k","team":"brief"}'
	is "$(get .team)" brief
	api DELETE /v1/teams/brief
	is "$code" 409 "$body"
	api DELETE '/v1/keys/k?team=brief'
	is "$code" 204 "$body"
	api DELETE /v1/teams/brief
	is "$code" 204
	api GET /v1/teams/brief
	is "$code" 404
	api DELETE /v1/teams/default
	is "$code" 400
}

invalid_team_settings_are_rejected() {
	for bad in '{"boxes":-2}' '{"boxes":"3"}' '{"boxes":1.5}' '{"requests_per_second":99999999999}' '{"nmae":1}' '[]'; do
		api PUT /v1/teams/bad "$bad"
		is "$code" 400 "$bad: $body"
	done
	api PUT /v1/teams/a%20b '{}'
	is "$code" 400
	api PUT "/v1/teams/$(printf 'x%.0s' $(seq 65))" '{}'
	is "$code" 400
	api GET /v1/teams/bad
	is "$code" 404
}

# ---- quotas ----

the_box_quota_counts_boxes_that_are_being_created() {
	make_team few '{"boxes":2}'
	for i in 1 2 3 4 5 6; do
		curl -sS -o "made.$i" -w '%{http_code}\n' -H "X-API-Key: $theirs" "$url/v1/boxes" -d '{"cold":true}' >"code.$i" &
	done
	wait
	is "$(cat code.* | sort | uniq -c | tr -s ' ' | sed 's/^ //' | tr '\n' ' ')" "2 201 4 429 "
	as "$theirs" api POST /v1/run '{"command":"true"}'
	over "boxes at once"
	as "$theirs" api GET /v1/boxes
	for b in $(get '.items[].id'); do as "$theirs" api DELETE "/v1/boxes/$b"; done
	as "$theirs" api POST /v1/run '{"command":"true"}'
	is "$code" 200 "$body"
}

the_quota_of_executions_per_day_is_enforced() {
	make_team doers '{"executions_per_day":2}'
	for i in 1 2; do
		as "$theirs" api POST /v1/run '{"command":"true"}'
		is "$code" 200 "$body"
	done
	as "$theirs" api POST /v1/run '{"command":"true"}'
	over "executions today"
	api PUT /v1/teams/doers '{"executions_per_day":3}'
	as "$theirs" api POST /v1/run '{"command":"true"}'
	is "$code" 200 "$body"
}

the_quota_of_output_per_day_counts_unread_output() {
	make_team loud '{"output_bytes_per_day":1000}'
	as "$theirs" api POST /v1/boxes '{}'
	loud=$(get .id)
	as "$theirs" api POST "/v1/boxes/$loud/execs" '{"command":"head -c 2000 /dev/zero","background":true}'
	is "$code" 201 "$body"
	as "$theirs" api GET "/v1/boxes/$loud/execs/$(get .id)/wait"
	as "$theirs" api POST "/v1/boxes/$loud/execs" '{"command":"true"}'
	over "output today"
	as "$theirs" api GET /v1/usage
	is "$(get '.days[0].output_bytes')" 2000
	as "$theirs" api DELETE "/v1/boxes/$loud"
}

the_quota_of_cpu_time_per_month_is_enforced() {
	make_team thinkers '{"compute_ms_per_month":50}'
	as "$theirs" api POST /v1/run '{"command":["python3","-c","import time\nwhile time.process_time() < 0.6: pass"]}'
	is "$code" 200 "$body"
	as "$theirs" api POST /v1/run '{"command":"true"}'
	over "computing this month" 2678400
	as "$theirs" api GET /v1/usage
	[ "$(get .usage.compute_ms_this_month)" -ge 150 ] || fail "$body"
}

the_quota_of_requests_per_second_is_enforced() {
	make_team rushed '{"requests_per_second":5}'
	# By one process, so that a slow machine cannot spread them over time.
	curl -s --fail-early --fail-with-body -o body -D head -w '%{http_code}\n' -H "X-API-Key: $theirs" "$url/v1/info#[1-200]" >codes || :
	code=$(tail -1 codes) body=$(cat body)
	over "requests per second" 1
	[ "$(grep -cx 200 codes)" -ge 9 ] || fail "only $(grep -cx 200 codes) before the end of the burst"
	again() { as "$theirs" api GET /v1/info; [ "$code" = 200 ]; }
	soon again
}

a_team_without_a_quota_inherits_the_configured_one() {
	api GET /v1/usage
	is "$(get .quotas.boxes)" 64
	is "$(get .own.boxes)" null
	api PUT /v1/teams/inherits '{}'
	is "$(get .quotas.boxes)" 64
	api PUT /v1/teams/inherits '{"boxes":-1}'
	is "$(get .quotas.boxes)" null
	api PUT /v1/teams/inherits '{"boxes":0}'
	is "$(get .quotas.boxes)" 64
}

# ---- /openapi.json ----

openapi_json_describes_every_path_and_its_answer() {
	api GET /openapi.json
	is "$code" 200
	for path in /v1/run /v1/tools '/v1/boxes/{box}/tools/{tool}' '/v1/boxes/{box}/tools/read_file' /mcp '/swerex/{box}/execute'; do
		is "$(jq --arg p "$path" '.paths[$p] != null' body)" true "$path"
	done
	# These two are answered with another protocol.
	is "$(get '[.paths | to_entries[] | select(.value.get and .key != "/v1/socket" and .key != "/v1/boxes/{box}/ports/{port}/connect" and .value.get.responses["2XX"].content == null) | .key] | @csv')" ""
	# Every reference has a target.
	get '[.. | objects | .["$ref"]? // empty] | unique[]' | sed 's/.*\///' >named
	get '.components.schemas | keys[]' | sort >there
	is "$(sort named | comm -23 - there)" ""
	is "$(get '.paths["/v1/boxes"].post.requestBody.content["application/json"].schema.properties.on_timeout.enum | @csv')" '"kill","keep","pause"'
	api POST /v1/boxes '{"on_timeout":"explode"}'
	is "$code" 400
	has "$(get .error.message)" "'explode' is not one of kill, keep, pause"
}

# ---- the audit log ----

every_changing_route_has_an_audit_action() {
	api GET /openapi.json
	# Tool calls are audited by the execs and files that they use.
	is "$(get '[.paths[] | to_entries[] | select(.key != "get" and .value.tags != ["tools"] and .value["x-atoll-audit"] == null)] | length')" 0
	is "$(get '[.paths[] | to_entries[] | select(.key == "get" and .value["x-atoll-audit"] != null)] | length')" 0
}

every_attempt_to_change_something_is_audited() {
	api GET /openapi.json
	# A session is requested without a key, and requests without a valid key have no audit row.
	get '.paths | to_entries[] | .key as $p | .value | to_entries[] | select(.key != "get" and .value.tags != ["tools"] and $p != "/v1/ui/sessions") | [.key, $p, .value["x-atoll-audit"]] | @tsv' >routes
	[ "$(wc -l <routes)" -ge 12 ] || fail "$(cat routes)"
	n=0
	while IFS='	' read -r command route action; do
		n=$((n + 1))
		api GET "/v1/audit?action=$action&limit=1"
		before=$(get '.items[0].seq // 0')
		# The object does not exist and the body is invalid: the attempt is audited in every case.
		api "$(echo "$command" | tr a-z A-Z)" "$(echo "$route" | sed "s/{[a-z]*}/none-$n/g")" '{"command":7,"name":7,"boxes":"x"}'
		[ "$code" -ge 400 ] || fail "$command $route: $code"
		api GET "/v1/audit?action=$action&limit=1"
		[ "$(get '.items[0].seq')" -gt "$before" ] || fail "no row for $command $route"
		[ "$(get '.items[0].result')" != ok ] || fail "$command $route: $body"
		is "$(get '.items[0].detail.request | length')" 12
	done <routes
}

the_audit_rows_of_a_box_are_in_order() {
	new_box '{"name":"watched"}'
	api PATCH /v1/boxes/watched '{"metadata":{"a":"b"}}'
	api POST /v1/boxes/watched/execs '{"command":"cat; exit 3","open_stdin":true,"background":true}'
	is "$code" 201 "$body"
	exec=$(get .id)
	api POST "/v1/boxes/watched/execs/$exec/stdin" 'hello'
	api POST "/v1/boxes/watched/execs/$exec/stdin" 'again'
	is "$code" 200 "$body"
	api POST "/v1/boxes/watched/execs/$exec/signal" '{"signal":"CONT"}'
	is "$code" 204 "$body"
	api DELETE "/v1/boxes/watched/execs/$exec"
	is "$code" 200
	api DELETE /v1/boxes/watched
	api GET "/v1/audit?subject=$box"
	is "$(get '[.items[] | .action + " " + .result] | join(", ")')" "box.delete ok, box.change ok, box.create ok"
	api GET "/v1/audit?subject=$exec"
	is "$(get '[.items[] | .action + " " + .result] | join(", ")')" "exec.kill ok, exec.signal ok, exec.stdin ok, exec.start ok"
	is "$(get '.items[3].detail.box')" "$box"
	has "$(get '.items[3].detail.command')" "cat; exit 3"
	me=$(get '.items[0].who')
	api GET /v1/info
	is "$(get .who)" "$me"
}

a_long_command_is_truncated_in_the_audit_log() {
	api POST /v1/run "{\"command\":\"true $(printf 'ä%.0s' $(seq 500))\"}"
	is "$code" 200 "$body"
	api GET '/v1/audit?action=exec.start&limit=1'
	[ "$(get '.items[0].detail.command | length')" -le 200 ] || fail "$body"
	has "$(get '.items[0].detail.command')" ää
}

rejected_requests_are_audited() {
	as "$viewer" api DELETE /v1/boxes/precious
	is "$code" 403
	api GET '/v1/audit?subject=precious'
	is "$(get '.items[0] | .action + " " + .result')" "box.delete denied"
	api DELETE /v1/boxes/precious
	is "$(rows box.delete precious)" 2
	is "$(get '.items[0].result')" not_found
	api DELETE "/v1/boxes/%F0%9F%8F%9D%FF"
	api GET '/v1/audit?action=box.delete&limit=1'
	get '.items[0].subject' | LC_ALL=C grep -q '^[ -~]*$' || fail "$body"
}

changes_of_keys_and_teams_are_audited_without_secrets() {
	api POST /v1/keys '{"name":"logged"}'
	id=$(get .id) text=$(get .key)
	api DELETE /v1/keys/logged
	is "$(rows key.create "$id") $(rows key.delete "$id")" "1 1"
	is "$(get '.items[0].detail.name')" logged
	api GET '/v1/audit?action=key.&limit=1000'
	lacks "$body" "$text"
	api PUT /v1/teams/logged '{"boxes":1}'
	api DELETE /v1/teams/logged
	is "$(rows team.put logged) $(rows team.delete logged)" "1 1"
}

audit_rows_are_filtered_and_paged_by_the_api() {
	for i in 1 2 3; do api PUT /v1/teams/paged '{}'; done
	api GET '/v1/audit?subject=paged&limit=2'
	is "$(get '.items | length')" 2
	api GET "/v1/audit?subject=paged&limit=2&after=$(get .next)"
	is "$(get '.items | length') $(get .next)" "1 null"
	api GET '/v1/audit?subject=paged&since=10m'
	is "$(get '.items | length')" 3
	api GET '/v1/audit?subject=paged&until=2020-01-01T00:00:00Z'
	is "$(get '.items | length')" 0
	api GET '/v1/audit?subject=paged&since=2100-01-01T00:00:00%2B01:00'
	is "$(get '.items | length')" 0
	api GET '/v1/audit?subject=paged&who=missing'
	is "$(get '.items | length')" 0
	for bad in since=yesterday since=2026-13-01T00:00:00Z since=99999999999999 until= after=0 after=x limit=1001 wo=x; do
		api GET "/v1/audit?$bad"
		is "$code" 400 "$bad"
	done
}

ATOLL_QUOTA_BOXES=64
export ATOLL_QUOTA_BOXES
the_doctor_answers_operators_as_the_command_does() {
	api GET /v1/doctor
	is "$code" 200 "$body"
	atoll doctor --json
	rows=. # of a gateway: the rows of its node
	[ ! "$gateway_url" ] || rows='select(.node == "node")'
	is "$(get "[.items[] | $rows | .name + \" \" + .status] | join(\",\")")" "$(echo "$out" | jq -r '[.[] | .name + " " + .status] | join(",")')"
	has "$(get '.items[] | select(.name == "keeper") | .value')" pid
	for n in 1 2 3 4; do
		curl -s -o "d$n" -w '%{http_code}\n' -H "X-API-Key: $key" "$url/v1/doctor" >"c$n" &
	done
	wait
	is "$(cat c1 c2 c3 c4 | sort -u)" 200 # all of them get the result of one check
	cmp -s d1 d4 || fail "two results: $(cat d1 d4)"
	as "$editor" api GET /v1/doctor
	is "$code" 403
	make_team machine
	as "$theirs" api GET /v1/doctor
	is "$code" 403
}

run_daemon_tests
