#!/bin/sh
# e2b_control.sh - the control plane of the E2B API: sandboxes are created, listed, changed and deleted.
# The "registry" is a server on the loopback (registry.py), so the operator allows it as internal.
. "$(dirname "$0")/daemon.lib"

here=$(dirname "$0")
mkfifo "$work/registry.in"
python3 "$here/registry.py" "$work/registry.log" <"$work/registry.in" >"$work/registry.ports" &
exec 8>"$work/registry.in"
soon grep -q dns= "$work/registry.ports"
eval "$(cat "$work/registry.ports")"
# shellcheck disable=SC2154 # by the line above
export http
# shellcheck disable=SC2154
export ATOLL_EGRESS_DNS="127.0.0.1:$dns"
export ATOLL_EGRESS_ALLOW="*.below.test,api.one.test:8443,93.184.216.7,93.184.217.9"
export ATOLL_EGRESS_INTERNAL="registry.test:$http"
export ATOLL_DOMAIN=box.example

# make [BODY] [PATH]: sets box.
make() {
	api POST "${2:-/v2/sandboxes}" "${1:-{\"templateID\":\"base\"\}}"
	is "$code" 201 "$body"
	box=$(get .sandboxID)
}
end() { api DELETE "/sandboxes/$box"; is "$code" 204 "$body"; }
# refused STATUS METHOD PATH [BODY]: in E2B's shape.
refused() {
	want=$1
	shift
	api "$@"
	is "$code" "$want" "$* $body"
	is "$(get '[.code, (.message | type)] | @csv')" "$want,\"string\"" "$body"
}
header() { sed -n "s/^$1: \(.*\)\r\$/\1/ip" head; }
state() { api GET "/sandboxes/$box"; get .state; }
is_paused() { [ "$(state)" = paused ]; }
is_gone() { api GET "/sandboxes/$box"; [ "$code" = 404 ]; }
hosts() { api GET "/v1/boxes/$box/network"; get '.allow | sort | join(" ")'; }
says() {
	api POST "/v1/boxes/$box/execs" "$(jq -nc --arg c "$1" '{command:$c}')"
	out=$(get .stdout)
}

health_needs_no_key_and_other_routes_do() {
	is "$(curl -sS -o /dev/null -w '%{http_code}' "$url/health")" 204
	for path in /sandboxes /v2/sandboxes /templates /teams /api-keys /volumes /secrets /sandboxes/x/y; do
		is "$(curl -sS -o body -w '%{http_code}' "$url$path")" 401 "$path"
		is "$(get .code)" 401
	done
	refused 404 GET /sandboxes/nothing/at/all
	refused 405 PUT /sandboxes '{}'
	# Routes and versions that only the E2B API has: errors in E2B format, with a key and without.
	for path in /admin /admin/teams/x/builds/cancel /v2/admin/x /v2/nothing /v3/nothing/at/all /v2; do
		refused 404 GET "$path"
		is "$(curl -sS -o body -w '%{http_code}' "$url$path")" 401 "$path"
		is "$(get .code)" 401
	done
	api GET /nothing
	is "$code $(get .error.code)" '404 not_found'
}

a_sandbox_is_created_shown_and_deleted() {
	make '{"templateID":"base","metadata":{"owner":"ci"},"envVars":{"FOO":"bar"},"timeout":120,"mcp":null,"future":1}'
	is "$(get '[.templateID, .envdVersion, (.envdAccessToken | length), (.trafficAccessToken | length)] | @csv')" '"base","0.6.13",40,40'
	token=$(get .envdAccessToken)
	api GET "/sandboxes/$box-someclient"
	is "$code" 200
	is "$(get '[.sandboxID, .state, .metadata.owner, .envdAccessToken] | @csv')" "\"$box\",\"running\",\"ci\",\"$token\""
	is "$(get '[.cpuCount, .memoryMB, .diskSizeMB] | map(type == "number" and . > 0) | all')" true "$body"
	is "$(get '(.endAt | sub("\\.\\d+Z$";"Z") | fromdate) - (.startedAt | sub("\\.\\d+Z$";"Z") | fromdate)')" 120
	is "$(get '[.lifecycle.autoResume, .lifecycle.onTimeout] | @csv')" 'false,"kill"'
	# shellcheck disable=SC2016 # the box's own
	says 'echo $FOO $E2B_SANDBOX $E2B_SANDBOX_ID $E2B_TEMPLATE_ID'
	is "$out" "bar true $box base"
	end
	refused 404 GET "/sandboxes/$box"
	refused 404 DELETE "/sandboxes/$box"
}

a_chunked_request_body_is_accepted() {
	printf '{"templateID":"base"}' >small
	api POST /v2/sandboxes @small -H 'Transfer-Encoding: chunked'
	is "$code" 201 "$body"
	box=$(get .sandboxID)
	end
}

version_1_returns_a_token_without_a_request_for_it() {
	make '{"templateID":"base"}' /sandboxes
	is "$(get '.envdAccessToken | length')" 40
	api GET "/sandboxes/$box"
	is "$(get '(.endAt | sub("\\.\\d+Z$";"Z") | fromdate) - (.startedAt | sub("\\.\\d+Z$";"Z") | fromdate)')" 15
	end
	make '{"templateID":"base","secure":true,"timeout":30}' /sandboxes
	is "$(get '.envdAccessToken | length')" 40
	end
	make '{"templateID":"base","network":{"allowPublicTraffic":false}}' /sandboxes
	end
}

a_viewer_gets_no_sandbox_token() {
	make
	owner=$key key=$viewer
	api GET "/sandboxes/$box"
	is "$code" 200
	is "$(get 'has("envdAccessToken")')" false "$body"
	refused 403 POST /v2/sandboxes '{"templateID":"base"}'
	refused 403 DELETE "/sandboxes/$box"
	refused 403 GET /api-keys
	key=$owner
	end
}

invalid_requests_get_errors_in_e2b_format() {
	for bad in '' '[]' '{' '{}' '{"templateID":1}' '{"templateID":"base","timeout":0}' '{"templateID":"base","timeout":"x"}' \
		'{"templateID":"base","timeout":99999999}' '{"templateID":"base","timeout":1e30}' '{"templateID":"base","metadata":[]}' \
		'{"templateID":"base","metadata":{"a":1}}' '{"templateID":"base","metadata":{"atoll.install":"x"}}' \
		'{"templateID":"base","envVars":{"A=B":"x"}}' '{"templateID":"base","envVars":{"A":"a\u0000b"}}' \
		'{"templateID":"base","autoPauseMemory":false}' \
		'{"templateID":"base","autoPause":true,"autoPauseMemory":false,"autoResume":{"enabled":true}}' \
		'{"templateID":"base","autoResume":true}' '{"templateID":"base","iam":{"tokens":{"a":{}}}}' \
		'{"templateID":"base","volumeMounts":{}}' '{"templateID":"base","volumeMounts":[1]}' \
		'{"templateID":"base","volumeMounts":[{"name":"nope","path":"/x"}]}' \
		'{"templateID":"base","network":{"maskRequestHost":"a\r\nb"}}' '{"templateID":"base","network":[]}'; do
		refused 400 POST /v2/sandboxes "$bad"
	done
	refused 404 POST /v2/sandboxes '{"templateID":"nope"}'
	refused 404 POST /v2/sandboxes '{"templateID":"base:v2"}'
	refused 404 POST /v2/sandboxes '{"templateID":"x/base"}'
	for id in x aaaaaaaaaaaa '%ff' 'a%2Fb' -; do
		refused 404 GET "/sandboxes/$id"
		refused 404 POST "/sandboxes/$id/timeout" '{"timeout":1}'
	done
	api GET /v2/sandboxes
	is "$(get length)" 0 "$body"
}

every_api_has_the_same_list_of_templates() {
	api GET /templates
	all=$(get '[.[].templateID] | join(", ")')
	has "$all" code-interpreter-multilang
	refused 404 POST /v2/sandboxes '{"templateID":"nope"}'
	has "$(get .message)" "there is no template 'nope'; there are $all"
	refused 404 GET /templates/nope
	has "$(get .message)" "there is no template 'nope'; there are $all"
	api POST /api/sandbox '{"template":"nope","code":"1"}'
	is "$code" 400
	has "$body" "there are $all, streamlit-developer"
	api POST /v1/boxes '{"template":"nope"}'
	has "$code $body" "404"
	has "$body" "there are base"
	for name in $(echo "$all" | tr -d ,); do
		api POST /api/sandbox "{\"template\":\"$name\",\"code\":\"print(6*7)\"}"
		is "$code" 200 "$name $body"
		has "$(get -c '[.stdout] | flatten')" 42 "$name $body"
	done
	for box in $(api GET /v2/sandboxes; get '.[].sandboxID'); do end; done
}

aliases_of_templates_are_accepted() {
	for name in base:default code-interpreter-v1 BASE; do
		make "{\"templateID\":\"$name\"}"
		end
	done
}

sandboxes_are_listed_in_order_and_in_pages() {
	make '{"templateID":"base","metadata":{"n":"1"}}'; one=$box
	make '{"templateID":"code-interpreter-v1","metadata":{"n":"2","k k":"v&v=é"}}'; two=$box
	make '{"templateID":"base","metadata":{"n":"3"}}'; three=$box
	api GET /v2/sandboxes
	is "$(get '[.[].sandboxID] | join(" ")')" "$three $two $one"
	is "$(header X-Next-Token)" ""
	api GET '/v2/sandboxes?order=asc&limit=2'
	is "$(get '[.[].sandboxID] | join(" ")')" "$one $two"
	next=$(header X-Next-Token)
	api GET "/v2/sandboxes?order=asc&limit=2&nextToken=$next"
	is "$(get '[.[].sandboxID] | join(" ")')" "$three"
	is "$(header X-Next-Token)" ""
	refused 400 GET "/v2/sandboxes?order=desc&nextToken=$next"
	refused 400 GET "/v2/sandboxes?nextToken=$next"
	api GET '/v2/sandboxes?limit=1'
	next=$(header X-Next-Token)
	api GET "/v2/sandboxes?limit=2&nextToken=$next"
	is "$(get '[.[].sandboxID] | join(" ")')" "$two $one"
	api GET '/v2/sandboxes?metadata=k%252520k%3Dv%252526v%25253D%2525C3%2525A9%26n%3D2'
	is "$(get '[.[].sandboxID] | join(" ")')" "$two"
	api GET '/v2/sandboxes?metadata=n%3D2%26k%3Dv'
	is "$(get length)" 0
	api GET '/sandboxes?metadata=n%3D3'
	is "$(get '[.[].sandboxID] | join(" ")')" "$three"
	api GET '/v2/sandboxes?template=code-interpreter-v1'
	is "$(get '[.[].sandboxID] | join(" ")')" "$two"
	api GET '/v2/sandboxes?template=unknown'
	is "$code $(get length)" "200 0"
	api GET "/sandboxes/$two"
	api GET "/v2/sandboxes?startedAfter=$(get .startedAt)"
	is "$(get '[.[].sandboxID] | join(" ")')" "$three $two"
	for bad in limit=0 limit=101 limit=x order=up state=dead nextToken=zz nextToken=dzz startedAfter=now metadata=x; do
		refused 400 GET "/v2/sandboxes?$bad"
	done
	for box in $one $two $three; do end; done
}

sandboxes_of_other_teams_are_not_found() {
	make
	api PUT /v1/teams/others '{}'
	api POST /v1/keys '{"name":"other","role":"owner","team":"others"}'
	owner=$key key=$(get .key)
	refused 404 GET "/sandboxes/$box"
	refused 404 DELETE "/sandboxes/$box"
	refused 404 POST "/sandboxes/$box/connect" '{"timeout":5}'
	refused 404 GET "/sandboxes/$box/metrics"
	refused 404 GET "/sandboxes/$box/logs"
	refused 404 GET "/events/sandboxes/$box"
	api GET /v2/sandboxes
	is "$(get length)" 0
	api GET "/sandboxes/metrics?sandbox_ids=$box"
	is "$(get '.sandboxes | length')" 0
	key=$owner
	end
}

a_timeout_can_be_extended_and_shortened() {
	make '{"templateID":"base","timeout":100}'
	api POST "/sandboxes/$box/timeout" '{"timeout":1000}'
	is "$code" 204 "$body"
	api GET "/sandboxes/$box"
	end=$(get .endAt)
	for path in /sandboxes /v2/sandboxes; do
		api POST "$path/$box/connect" '{"timeout":5}'
		is "$code" 200 "$body"
		is "$(get .sandboxID)" "$box"
		api GET "/sandboxes/$box"
		is "$(get .endAt)" "$end"
	done
	api POST "/v2/sandboxes/$box/connect" '{"timeout":2000}'
	api GET "/sandboxes/$box"
	[ "$(get .endAt)" \> "$end" ] || fail "$(get .endAt) is not after $end"
	api POST "/sandboxes/$box/timeout" '{"timeout":50}'
	api GET "/sandboxes/$box"
	[ "$(get .endAt)" \< "$end" ] || fail "$(get .endAt) is not before $end"
	end=$(get .endAt)
	api POST "/sandboxes/$box/refreshes" '{"duration":1}'
	is "$code" 204
	api GET "/sandboxes/$box"
	is "$(get .endAt)" "$end"
	refused 400 POST "/sandboxes/$box/timeout" '{"timeout":-1}'
	refused 400 POST "/sandboxes/$box/timeout" '{}'
	refused 400 POST "/sandboxes/$box/timeout" '{"timeout":86401}'
	api POST "/sandboxes/$box/timeout" '{"timeout":0}'
	is "$code" 204
	soon is_gone
}

a_paused_sandbox_can_be_resumed() {
	make '{"templateID":"base","timeout":1000,"autoPause":true,"autoPauseMemory":false}'
	token=$(get .envdAccessToken)
	api GET "/sandboxes/$box"
	is "$(get .lifecycle.onTimeout)" pause
	refused 409 POST "/sandboxes/$box/resume" '{}'
	says 'echo kept >file'
	api POST "/sandboxes/$box/timeout" '{"timeout":0}'
	soon is_paused
	api GET '/v2/sandboxes?state=paused'
	is "$(get length)" 1
	api GET '/v2/sandboxes?state=running'
	is "$(get length)" 0
	api GET /sandboxes
	is "$(get length)" 0
	api GET '/v2/sandboxes?state=running,paused'
	is "$(get length)" 1
	refused 404 POST "/sandboxes/$box/timeout" '{"timeout":5}'
	refused 409 PUT "/sandboxes/$box/network" '{}'
	api POST "/v2/sandboxes/$box/connect"
	is "$code" 201 "$body"
	is "$(get .envdAccessToken)" "$token"
	is "$(state)" running
	says 'cat file'
	is "$out" kept
	api POST "/sandboxes/$box/timeout" '{"timeout":0}'
	soon is_paused
	api POST "/sandboxes/$box/resume" '{"timeout":77}'
	is "$code" 201 "$body"
	api POST "/sandboxes/$box/timeout" '{"timeout":0}'
	soon is_paused
	end
}

connecting_to_a_box_of_the_v1_api_makes_it_a_sandbox() {
	new_box
	is "$(curl -sS -o /dev/null -w '%{http_code}' -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 49983' "$url/health")" 502
	api GET "/sandboxes/$box"
	is "$code" 200
	api POST "/v2/sandboxes/$box/connect" '{}'
	is "$code $(get '.envdAccessToken | length')" "200 40"
	token=$(get .envdAccessToken)
	api POST "/v2/sandboxes/$box/connect" '{}'
	is "$(get .envdAccessToken)" "$token"
	is "$(curl -sS -o /dev/null -w '%{http_code}' -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 49983' "$url/health")" 204
	end
}

the_domain_of_a_sandbox_is_served_by_this_daemon() {
	make
	is "$(get .domain)" "box.example:${url##*:}"
	api GET "/sandboxes/$box" '' -H 'Host: api.localhost:1234'
	is "$(get .domain)" "localhost:1234"
	api GET "/sandboxes/$box" '' -H 'Host: api.box.example'
	is "$(get .domain)" "box.example"
	end
}

the_allowed_hosts_are_those_of_the_request_and_the_operator() {
	make
	is "$(hosts)" ""
	end
	make '{"templateID":"base","allow_internet_access":true}'
	is "$(hosts)" "*.below.test 93.184.216.7 93.184.217.9 api.one.test:8443 registry.test:$http"
	api GET "/sandboxes/$box"
	is "$(get .allowInternetAccess)" true
	end
	make '{"templateID":"base","network":{"denyOut":["0.0.0.0/0"],"allowOut":["api.one.test","x.below.test","*.test","93.184.216.0/24","8.8.8.8","not.permitted"],"allowPublicTraffic":false}}'
	is "$(hosts)" "*.below.test 93.184.216.7 api.one.test:8443 registry.test:$http x.below.test"
	api GET "/sandboxes/$box"
	is "$(get '[.network.allowOut[4], .network.allowPublicTraffic, .allowInternetAccess] | @csv')" '"8.8.8.8",false,'
	end
	make '{"templateID":"base","allow_internet_access":true,"network":{"denyOut":["93.184.216.0/24"]}}'
	is "$(hosts)" "93.184.217.9"
	end
	make '{"templateID":"base","allow_internet_access":false,"network":{"allowOut":["api.one.test"]}}'
	is "$(hosts)" "api.one.test:8443"
	end
	for bad in '{"allowOut":["1.2.3.4/33"]}' '{"allowOut":["1.2.3/8"]}' '{"allowOut":["::/129"]}' '{"denyOut":["a.test"]}' \
		'{"denyOut":["1.2.3.4/"]}' '{"allowOut":["a.test"]}' '{"allowOut":["a b"],"denyOut":["0.0.0.0/0"]}' '{"allowOut":[1]}' '{"allowOut":"x"}' \
		'{"rules":{"a.test":[{"transform":{"headers":{"a b":"c"}}}]}}' '{"egressProxy":{"address":"a:1"}}' '{"httpsPorts":[443]}'; do
		refused 400 POST /v2/sandboxes "{\"templateID\":\"base\",\"network\":$bad}"
	done
}

the_allowed_hosts_of_a_running_sandbox_can_be_changed() {
	make '{"templateID":"base","network":{"allowPublicTraffic":false}}'
	is "$(get '.trafficAccessToken | length')" 40
	says "curl -sS --max-time 5 http://registry.test:$http/simple"
	is "$out" ""
	api PUT "/sandboxes/$box/network" '{"allowOut":["registry.test"],"denyOut":["0.0.0.0/0"]}'
	is "$code" 204 "$body"
	soon way_open
	says "curl -sS http://registry.test:$http/simple"
	is "$out" packages "$body"
	api PUT "/sandboxes/$box/network" '{"allowOut":["api.one.test"],"denyOut":["0.0.0.0/0"]}'
	is "$code" 204
	soon is_denied
	api PUT "/sandboxes/$box/network" '{"allow_internet_access":true}'
	soon is_reached
	api PUT "/sandboxes/$box/network" '{}'
	is "$code" 204
	is "$(hosts)" ""
	soon is_closed
	api GET "/sandboxes/$box"
	is "$(get '[.network.allowPublicTraffic, .network.allowOut] | @csv')" "false,"
	refused 400 PUT "/sandboxes/$box/network" '{"allowOut":["a.test"]}'
	end
}
way_open() { api GET "/v1/boxes/$box/network" && [ "$(get .open)" = true ]; }
fetch() { says "curl -sS --max-time 5 -o /dev/null -w '%{http_code}' http://registry.test:$http/simple"; }
is_denied() { fetch && [ "$out" = 403 ]; }
is_reached() { fetch && [ "$out" = 200 ]; }
is_closed() { fetch && [ "$out" = 000 ]; }

templates_show_the_limits_of_their_sandboxes() {
	make
	api GET "/sandboxes/$box"
	got=$(get '[.cpuCount, .memoryMB, .diskSizeMB] | @csv')
	template=$(get .templateID)
	api GET /templates
	is "$(get ".[] | select(.templateID == \"$template\") | [.cpuCount, .memoryMB, .diskSizeMB] | @csv")" "$got" "$body"
	is "$(get ".[] | select(.templateID == \"$template\") | [.spawnCount > 0, (.lastSpawnedAt | type)] | @csv")" 'true,"string"' "$body"
	end
}
metrics_of_a_sandbox_are_read_from_the_kernel() {
	make
	api GET "/sandboxes/$box/metrics"
	is "$code" 200 "$body"
	is "$(get '.[-1] | [.memTotal, .diskTotal, .cpuCount, .timestampUnix] | map(. > 0) | all')" true "$body"
	is "$(get '.[-1] | [.cpuUsedPct, .memUsed, .memCache, .diskUsed, .timestamp] | map(type) | join(" ")')" "number number number number string"
	api GET "/sandboxes/$box/metrics?start=1&end=2"
	is "$(get length)" 0
	for bad in start=x end=-1 start=99999999999; do
		refused 400 GET "/sandboxes/$box/metrics?$bad"
	done
	has_sample() { api GET "/sandboxes/metrics?sandbox_ids=$box,aaaaaaaaaaaa,x" && [ "$(get '.sandboxes | keys | join(" ")')" = "$box" ]; }
	soon has_sample
	refused 400 GET /sandboxes/metrics
	end
}

events_of_a_sandbox_are_its_logs() {
	make
	says 'exit 3'
	says true
	api GET "/v2/sandboxes/$box/logs"
	is "$(get '[.logs[].fields.event] | join(" ")')" "box.created run.ended run.ended" "$body"
	is "$(get '[.logs[].level] | join(" ")')" "info warn info"
	api GET "/v2/sandboxes/$box/logs?direction=backward&limit=1&search=status"
	is "$(get '.logs | length')" 1
	has "$(get '.logs[0].message')" true
	api GET "/v2/sandboxes/$box/logs?level=warn"
	is "$(get '.logs | length')" 1
	api GET "/v2/sandboxes/$box/logs?cursor=8000000000000"
	is "$(get '.logs | length')" 0
	api GET "/sandboxes/$box/logs?limit=2"
	is "$(get '[(.logs | length), (.logEntries | length), (.logs[0].line | fromjson.message)] | @csv')" '2,2,"the sandbox was created"'
	for bad in level=x direction=up limit=1001 cursor=x; do
		refused 400 GET "/v2/sandboxes/$box/logs?$bad"
	done
	end
	# The end is stored shortly after the answer to DELETE.
	end_is_logged() { api GET "/sandboxes/$box/logs" && [ "$(get '.logs[-1].line | fromjson.message')" = "the sandbox ended" ]; }
	soon end_is_logged
	api GET "/events/sandboxes/$box"
	is "$(get '[.[].type] | join(" ")')" "sandbox.lifecycle.killed sandbox.lifecycle.created"
	api GET "/events/sandboxes/$box?orderAsc=true&limit=1"
	is "$(get '[.[] | .type, .sandboxId, .sandboxTeamId, .sandboxTemplateId] | join(" ")')" "sandbox.lifecycle.created $box default base"
	api GET "/events/sandboxes?limit=1&types=sandbox.lifecycle.created"
	is "$(get '.[0].sandboxId')" "$box"
	api GET "/events/sandboxes?offset=10000"
	is "$(get length)" 0
	refused 400 GET '/events/sandboxes?limit=101'
}

templates_of_the_server_are_listed_and_cannot_be_changed() {
	for path in /templates /v2/templates; do
		api GET $path
		is "$(get '[.[].templateID] | index("base") != null')" true
		is "$(get '.[0].buildStatus')" ready
	done
	api GET /templates/base
	is "$(get '[.templateID, .builds[0].status] | join(" ")')" "base ready"
	api GET /templates/aliases/code-interpreter-v1
	is "$(get .templateID)" code-interpreter-v1
	api GET /templates/base%3Adefault/tags
	is "$(get '.[0].tag')" default
	refused 404 GET /templates/aliases/nope
	refused 404 GET /templates/nope/tags
	refused 404 DELETE /templates/team%2Fmy-snap%3Adefault
	refused 403 DELETE /templates/base
	refused 400 POST /v3/templates '{"name":"base"}'
	refused 403 POST /v2/templates/base/builds/x '{}'
	refused 403 PATCH /v2/templates/base '{"public":true}'
	refused 400 POST /templates/tags '{}'
	refused 403 POST /templates/tags '{"target":"base","tags":["x"]}'
	refused 501 GET /secrets
	refused 400 POST /events/webhooks '{}'
}

teams_and_api_keys_are_those_of_atoll() {
	api GET /teams
	is "$(get '[.[].teamID] | join(" ")')" default
	api GET /teams/default/metrics
	is "$(get '.[0].concurrentSandboxes == 0')" true
	api GET '/teams/default/metrics/max?metric=concurrent_sandboxes'
	is "$(get '.value == 0')" true
	refused 403 GET /teams/others/metrics
	refused 400 GET '/teams/default/metrics/max?metric=x'
	api POST /api-keys '{"name":"made-here"}'
	is "$code" 201 "$body"
	new=$(get .key) id=$(get .id)
	is "$(curl -sS -o /dev/null -w '%{http_code}' -H "X-API-Key: $new" "$url/v2/sandboxes")" 200
	is "$(curl -sS -o /dev/null -w '%{http_code}' -H "X-API-Key: $new" "$url/api-keys")" 403
	refused 409 POST /api-keys '{"name":"made-here"}'
	refused 400 POST /api-keys '{"name":"a b"}'
	api GET /api-keys
	is "$(get '[.[] | select(.name == "made-here") | .id] | join(" ")')" "$id"
	api DELETE "/api-keys/$id"
	is "$code" 204
	is "$(curl -sS -o /dev/null -w '%{http_code}' -H "X-API-Key: $new" "$url/v2/sandboxes")" 401
	refused 404 DELETE "/api-keys/$id"
}

e2b_volumes_are_volumes_of_atoll() {
	api POST /volumes '{"name":"data"}'
	is "$code" 201 "$body"
	volume=$(get .volumeID)
	is "$(get .token)" "$key"
	refused 409 POST /volumes '{"name":"data"}'
	refused 400 POST /volumes '{"name":"a/b"}'
	refused 400 POST /volumes '{}'
	api GET /volumes
	is "$(get '[.[].volumeID] | join(" ")')" "$volume"
	make '{"templateID":"base","volumeMounts":[{"name":"data","path":"/mnt/data"}]}'
	api GET "/sandboxes/$box"
	is "$(get '.volumeMounts[0] | [.name, .path] | join(" ")')" "data /mnt/data"
	says 'echo there >/mnt/data/file; cat /mnt/data/file'
	is "$out" there "$body"
	refused 409 DELETE "/volumes/$volume"
	end
	make '{"templateID":"base","volumeMounts":[{"name":"data","path":"/mnt/other"}]}'
	says 'cat /mnt/other/file'
	is "$out" there
	end
	api GET "/volumes/$volume"
	is "$(get .name)" data
	api DELETE "/volumes/$volume"
	is "$code" 204
	refused 404 GET "/volumes/$volume"
	refused 404 DELETE "/volumes/$volume"
}

# content METHOD WHAT QUERY [CURL OPTION...]: with the token of the volume, as E2B clients do.
content() {
	method=$1 what=$2 query=$3
	shift 3
	code=$(curl -sS -g --max-time 120 -o body -w '%{http_code}' -X "$method" -H "Authorization: Bearer $key" "$@" "$url/volumecontent/$volume/$what?$query")
	body=$(tr '\0' '?' <body)
}

files_of_a_volume_are_read_and_written_without_a_sandbox() {
	api POST /volumes '{"name":"content"}'
	volume=$(get .volumeID)
	head -c 300000 /dev/urandom >big
	content PUT file 'path=/a/b.bin' --data-binary @big -H 'Transfer-Encoding: chunked'
	is "$code" 201 "$body"
	is "$(get '[.name, .type, .path, .size, .mode, .uid] | @csv')" '"b.bin","file","/a/b.bin",300000,420,1000'
	content GET file 'path=a/b.bin'
	is "$code" 200
	cmp -s big body || fail "the content differs"
	# After the answer the volume can be mounted at once.
	make '{"templateID":"base","volumeMounts":[{"name":"content","path":"/mnt/c"}]}'
	says 'wc -c </mnt/c/a/b.bin; echo hi >/mnt/c/from-inside; ln -s /nowhere /mnt/c/link'
	is "$out" 300000 "$body"
	# The sandbox that mounts the volume serves the request.
	content GET file 'path=/from-inside'
	is "$body" hi
	content POST dir 'path=/new/deep&mode=448'
	is "$code $(get '[.type, .mode] | @csv')" '201 "directory",448' "$body"
	says 'test -d /mnt/c/new/deep && echo yes'
	is "$out" yes
	api GET /v2/sandboxes
	is "$(get length)" 1
	end
	content GET dir 'path=/'
	is "$(get '[.[].path] | sort | join(" ")')" "/a /from-inside /link /new" "$body"
	is "$(get '.[] | select(.name == "link") | [.type, .target] | join(" ")')" "symlink /nowhere"
	content GET dir 'path=/&depth=3'
	is "$(get '[.[].path] | index("/new/deep") != null')" true "$body"
	content GET path 'path=/a'
	is "$code $(get .type)" "200 directory"
	content PATCH path 'path=/from-inside' -d '{"mode":256}'
	is "$code $(get .mode)" "200 256" "$body"
	content PATCH path 'path=/from-inside' -d '{"uid":1001,"gid":1002}'
	is "$code $(get '[.uid, .gid, .mode] | @csv')" '200 1001,1002,256' "$body"
	content PATCH path 'path=/from-inside' -d '{"gid":65532,"mode":2541}'
	is "$code $(get '[.uid, .gid, .mode] | @csv')" '200 1001,65532,2541' "$body"
	# Ids that the user namespace does not map, and that of init.
	for bad in '{"uid":65533}' '{"gid":65533}' '{"uid":4294967295}' '{"gid":4294967296}' '{"uid":-1}'; do
		content PATCH path 'path=/from-inside' -d "$bad"
		is "$code $(get .code)" '400 400' "$bad $body"
	done
	content GET path 'path=/from-inside'
	is "$(get '[.uid, .gid, .mode] | @csv')" '1001,65532,2541' "$body"
	content PUT file 'path=/owned/f&uid=65532&gid=7&mode=2541' -d x
	is "$code $(get '[.uid, .gid, .mode] | @csv')" '201 65532,7,2541' "$body"
	content GET path 'path=/owned'
	is "$(get .uid)" 1000 "$body"
	content POST dir 'path=/owned/d&uid=0&gid=1000'
	is "$code $(get '[.uid, .gid] | @csv')" '201 0,1000' "$body"
	content DELETE path 'path=/a'
	is "$code" 204 "$body"
	content GET path 'path=/a'
	is "$code $(get .code)" "404 404"
	content GET file 'path=/nope'
	is "$code" 404
	for bad in path= path=/../etc/passwd path=/a/.. x=y; do
		content GET path "$bad"
		is "$code" 400 "$bad $body"
	done
	for bad in uid=65533 gid=70000 uid=4294967295 uid=-1; do
		content PUT file "path=/x&$bad" -d x
		is "$code" 400 "$bad $body"
		content POST dir "path=/y&$bad"
		is "$code" 400 "$bad $body"
	done
	content GET dir 'path=/'
	is "$(get '[.[].path | select(. == "/x" or . == "/y")] | length')" 0 "$body"
	# An existing file is replaced only with force.
	content PUT file 'path=/f' -d one
	is "$code" 201 "$body"
	content PUT file 'path=/f' -d two
	is "$code $(get .code)" '409 409' "$body"
	content GET file 'path=/f'
	is "$body" one
	content PUT file 'path=/f&force=true' -d two
	is "$code" 201 "$body"
	content GET file 'path=/f'
	is "$body" two
	content POST dir 'path=/new'
	is "$code $(get .code)" '409 409' "$body"
	content POST dir 'path=/new&force=true'
	is "$code" 201 "$body"
	content DELETE path 'path=/'
	is "$code" 400
	is "$(curl -sS -o /dev/null -w '%{http_code}' "$url/volumecontent/$volume/dir?path=/")" 401
	for n in 1 2 3 4; do
		curl -sS -o /dev/null -w '%{http_code}\n' -X PUT -H "Authorization: Bearer $key" -d $n "$url/volumecontent/$volume/file?path=/p$n" >>codes &
		pids="${pids:-} $!"
	done
	for pid in $pids; do wait "$pid"; done
	is "$(sort -u codes)" 201
	content GET dir 'path=/'
	is "$(get '[.[].path | select(startswith("/p"))] | sort | join(" ")')" "/p1 /p2 /p3 /p4"
	api DELETE "/volumes/$volume"
	is "$code" 204 "$body"
}

an_exceeded_quota_has_a_retry_after_header() {
	api PUT /v1/teams/small '{"boxes":1}'
	api POST /v1/keys '{"name":"small","role":"owner","team":"small"}'
	owner=$key key=$(get .key)
	make
	refused 429 POST /v2/sandboxes '{"templateID":"base"}'
	is "$(header Retry-After)" 1
	end
	key=$owner
}

run_daemon_tests
