#!/bin/sh
# e2b_templates.sh - E2B's API of templates: builds, uploads, status, logs, tags, and what it rejects.
. "$(dirname "$0")/daemon.lib"
export ATOLL_TEMPLATES_UPLOAD=1M ATOLL_TEMPLATES_BUILD_DISK=300M

# refused STATUS METHOD PATH [BODY]: the answer is that status, in E2B's form.
refused() {
	want=$1
	shift
	api "$@"
	is "$code $(get .code)" "$want $want" "$* $body"
	[ -n "$(get .message)" ] || fail "$*: no message"
}
# request NAME [FIELDS]: sets template and build.
request() {
	api POST /v3/templates "{\"name\":\"$1\"${2-}}"
	is "$code" 202 "$body"
	template=$(get .templateID) build=$(get .buildID)
}
begin() { # STEPS [FIELDS]
	api POST "/v2/templates/$template/builds/$build" "{\"fromImage\":\"e2bdev/base\",\"steps\":$1${2-}}"
	is "$code" 202 "$body"
}
status() { api GET "/templates/$template/builds/$build/status?${1-}"; }
has_ended() { status && case $(get .status) in ready | error) ;; *) return 1 ;; esac; }
build() { # NAME STEPS [FIELDS]
	request "$1"
	begin "$2" "${3-}"
	soon has_ended
}
put() { # FILE URL [CURL OPTION...]: sets code
	file=$1 to=$2
	shift 2
	code=$(curl -sS -g --max-time 60 -o body -w '%{http_code}' -T "$file" "$@" "$to" 2>curl.err) || :
	body=$(cat body)
}
pack() { # FILE...: ./files.tgz and hash
	tar -czf files.tgz "$@"
	hash=$(sha256sum <files.tgz | cut -d ' ' -f 1)
}
link() {
	api GET "/templates/$template/files/$hash"
	is "$code" 201 "$body"
	present=$(get .present) to=$(get .url)
}
header() { sed -n "s/^$1: \(.*\)\r\$/\1/ip" head; }
says() { # COMMAND: in $box, by the native API
	api POST "/v1/boxes/$box/execs" "$(jq -nc --arg c "$1" '{command:$c}')"
	out=$(get .stdout)
}

a_template_is_built_listed_used_and_deleted() {
	api POST /v3/templates '{"name":"Life","tags":["Stable","stable"],"cpuCount":1,"memoryMB":300}'
	is "$code $(get '[.aliases[0], .names[0], .tags[0], .public] | @csv')" '202 "life","default/life","stable",false' "$body"
	template=$(get .templateID) build=$(get .buildID)
	is "$(get '.tags | length')" 1
	status
	is "$(get '[.status, (.logEntries | length), (.logs | length)] | @csv')" '"waiting",0,0' "$body"
	begin '[{"type":"RUN","args":["echo made >~/made; mkdir ~/d; touch ~/d/gone ~/d/kept"],"force":true},{"type":"env","args":["A","1"]},{"type":"RUN","args":["rm ~/d/gone"]}]'
	is "$(header Content-Length)" 0
	status
	case $(get .status) in building | ready) ;; *) fail "$body" ;; esac
	soon has_ended
	is "$(get .status)" ready "$body"
	is "$(get '[.logEntries[] | keys | join(",")] | unique | join(" ")')" "level,message,step,timestamp" "$body"
	is "$(get '[.logEntries[].step] | index("1") != null')" true "$body"
	n=$(get '.logEntries | length')
	status "logsOffset=$((n - 1))&limit=5"
	is "$(get '.logEntries | length')" 1
	status "logsOffset=$n"
	is "$(get '.logEntries | length')" 0
	status "level=error"
	is "$(get '.logEntries | length')" 0 "$body"
	api GET "/templates/$template/builds/$build/logs?direction=backward&limit=1"
	first=$(get '.logs[0].message')
	api GET "/templates/$template/builds/$build/logs?limit=100"
	is "$(get '.logs[-1].message')" "$first" "$body"
	api GET "/templates/$template/builds/$build/logs?cursor=8000000000000"
	is "$(get '.logs | length')" 0
	for bad in logsOffset=-1 logsOffset=x limit=101 level=loud; do
		refused 400 GET "/templates/$template/builds/$build/status?$bad"
	done
	# `default` names no build of it.
	refused 404 POST /v2/sandboxes '{"templateID":"life"}'
	for reference in life:stable default/Life:STABLE "$template:stable" "life:$build" "$build"; do
		api POST /v2/sandboxes "{\"templateID\":\"$reference\",\"envVars\":{\"B\":\"2\"}}"
		is "$code $(get '[.templateID, .alias] | @csv')" "201 \"$template\",\"life\"" "$reference: $body"
		box=$(get .sandboxID)
		says 'cat ~/made; echo $A$B; cd ~/d && echo *'
		is "$out" "made
12
kept" "$body"
		api GET "/sandboxes/$box"
		is "$(get '[.cpuCount, .memoryMB] | @csv')" 1,300 "$body"
		api GET '/v2/sandboxes?template=life'
		is "$(get '[.[].sandboxID] | join(" ")')" "$box" "$body"
		api DELETE "/sandboxes/$box"
	done
	soon five_spawned
	is "$(get ".[] | select(.templateID == \"$template\") | [.buildID, .buildStatus, .cpuCount, .memoryMB, .spawnCount, .buildCount, .names[0]] | @csv")" \
		"\"$build\",\"ready\",1,300,5,1,\"default/life\"" "$body"
	api GET /templates/life
	is "$(get '[.builds[0].buildID, .builds[0].status, .public] | @csv')" "\"$build\",\"ready\",false" "$body"
	api PATCH /v2/templates/default%2Flife '{"public":true}'
	is "$code $(get '.names[0]')" "200 default/life" "$body"
	api GET /templates/aliases/LIFE%3Astable
	is "$code $(get '[.templateID, .public] | @csv')" "200 \"$template\",true" "$body"
	api DELETE "/templates/$template"
	is "$code" 204 "$body"
	refused 404 GET "/templates/$template"
	refused 404 DELETE "/templates/$template"
	refused 404 POST /v2/sandboxes '{"templateID":"life:stable"}'
}

files_are_uploaded_by_a_signed_link() {
	request files
	mkdir -p ctx && echo text >ctx/a.txt
	pack ctx
	link
	is "$present" false
	has "$to" "/templates/$template/files/$hash?token="
	put files.tgz "$to"
	is "$code" 200 "$body"
	link
	is "$present" true
	# Forged, for another hash, for another template, cut, without a token: nothing is stored.
	for bad in "${to%????}AAAA" "${to%%\?*}" "${to%%\?*}?token=" "${to%%\?*}?token=x" "${to%????}"; do
		put files.tgz "$bad"
		case $code in 400 | 403 | 429) ;; *) fail "$bad: $code $body" ;; esac
	done
	other=$(echo other | sha256sum | cut -d ' ' -f 1)
	soon is_403
	begin "[{\"type\":\"COPY\",\"args\":[\"ctx/*\",\"/srv/ctx\",\"root\",\"0640\"],\"filesHash\":\"$hash\"}]"
	soon has_ended
	is "$(get .status)" ready "$body"
	api POST /v2/sandboxes '{"templateID":"files"}'
	box=$(get .sandboxID)
	says 'find /srv/ctx/a.txt -printf "%m %u %p\n"; sudo -n cat /srv/ctx/a.txt || id'
	has "$out" "640 root /srv/ctx/a.txt"
	api DELETE "/sandboxes/$box"
	# Too large, by its length and without one; and cut in the middle.
	head -c 1200000 /dev/urandom >large
	hash=$(sha256sum <large | cut -d ' ' -f 1)
	link
	put large "$to"
	is "$code" 413 "$body"
	put large "$to" -H 'Transfer-Encoding: chunked'
	is "$code" 413 "$body"
	put large "$to" -H 'Content-Length: 100000' --max-time 1 --limit-rate 10000
	soon one_stored
	link
	is "$present" false
	for bad in ..%2Fx a%2Fb ABC "$(printf 'a%.0s' $(seq 65))" zz; do
		refused 400 GET "/templates/$template/files/$bad"
	done
	refused 404 GET "/templates/nothing/files/$hash"
	refused 403 GET "/templates/base/files/$hash"
}
# The count is stored a moment after the answer.
five_spawned() { api GET /v2/templates && [ "$(get ".[] | select(.templateID == \"$template\").spawnCount")" = 5 ]; }
one_stored() { [ "$(find "$work" -path '*/uploads/*' -type f | wc -l)" = 1 ]; }
# The failures above may have exceeded the rate.
is_403() { put files.tgz "$(echo "$to" | sed "s/$hash/$other/")" && [ "$code" = 403 ]; }

what_is_not_a_build_is_rejected() {
	request bad
	path=/v2/templates/$template/builds/$build
	from='"fromImage":"e2bdev/base"'
	for body_of in '{}' '[]' '1' '{"fromImage":1}' '{"fromImage":"a","fromTemplate":"b"}' "{$from,\"steps\":1}" "{$from,\"steps\":[1]}" \
		"{$from,\"steps\":[{}]}" "{$from,\"steps\":[{\"type\":1}]}" "{$from,\"steps\":[{\"type\":\"FLY\"}]}" "{$from,\"steps\":[{\"type\":\"RUN\"}]}" \
		"{$from,\"steps\":[{\"type\":\"RUN\",\"args\":1}]}" "{$from,\"steps\":[{\"type\":\"RUN\",\"args\":[1]}]}" \
		"{$from,\"steps\":[{\"type\":\"RUN\",\"args\":[\"a\",\"b\",\"c\"]}]}" "{$from,\"steps\":[{\"type\":\"RUN\",\"args\":[\"a\"],\"force\":1}]}" \
		"{$from,\"steps\":[{\"type\":\"ENV\",\"args\":[\"a\"]}]}" "{$from,\"steps\":[{\"type\":\"COPY\",\"args\":[\"a\",\"b\"]}]}" \
		"{$from,\"steps\":[{\"type\":\"COPY\",\"args\":[\"a\"],\"filesHash\":\"ab\"}]}" "{$from,\"steps\":[{\"type\":\"COPY\",\"args\":[\"a\",\"b\"],\"filesHash\":\"../a\"}]}" \
		"{$from,\"steps\":[{\"type\":\"COPY\",\"args\":[\"a\",\"b\"],\"filesHash\":1}]}" "{$from,\"steps\":[{\"type\":\"COPY\",\"args\":[\"a\",\"b\",\"\",\"99\"],\"filesHash\":\"ab\"}]}" \
		"{$from,\"force\":1}" "{$from,\"startCmd\":1}" "{$from,\"fromImageRegistry\":1}" "{$from,\"fromImageRegistry\":{\"type\":\"x\"}}" \
		"{$from,\"fromImageRegistry\":{\"type\":\"registry\"}}" "{$from,\"fromImageRegistry\":{\"type\":\"aws\"}}" '{"fromTemplate":"a b"}'; do
		refused 400 POST "$path" "$body_of"
	done
	jq -nc '{fromImage: "e2bdev/base", steps: [range(10000) | {type: "RUN", args: ["true"]}]}' >many
	refused 413 POST "$path" @many
	jq -nc '{fromImage: "e2bdev/base", steps: [range(501) | {type: "RUN", args: ["true"]}]}' >many
	refused 400 POST "$path" @many
	has "$body" "at most 500"
	for name in '""' 1 '"a b"' '"a/b/c"' '"others/a"' '"a:"' '":a"' '"a:b:c"' '"base"' "\"$(printf 'a%.0s' $(seq 300))\""; do
		refused 400 POST /v3/templates "{\"name\":$name}"
	done
	for bad in '"tags":["a b"]' '"tags":[1]' '"tags":"a"' "\"tags\":[\"$build\"]" '"cpuCount":0' '"cpuCount":"1"' '"memoryMB":1' '"memoryMB":1000000000'; do
		refused 400 POST /v3/templates "{\"name\":\"bad\",$bad}"
	done
	refused 400 POST /v3/templates '{}'
	for id in "$build" nothing; do
		refused 404 POST "/v2/templates/nothing/builds/$id" '{}'
	done
	refused 404 GET "/templates/$template/builds/nothing/status"
	refused 404 GET "/templates/$template/builds/5f0b6a52-3c0e-4c9a-9d0c-6a1f0b8e2d01/logs"
	begin '[]'
	refused 400 POST "$path" "{$from}"
	refused 403 PATCH /templates/base '{"public":false}'
	refused 403 DELETE /templates/base
	refused 400 PATCH "/templates/$template" '{"public":1}'
}

credentials_of_a_registry_are_not_stored() {
	request private
	secret=pass-word-$$
	api POST "/v2/templates/$template/builds/$build" \
		"{\"fromImage\":\"registry.nowhere.test/x:1\",\"fromImageRegistry\":{\"type\":\"registry\",\"username\":\"name\",\"password\":\"$secret\"}}"
	is "$code" 202 "$body"
	soon has_ended
	is "$(get '[.status, .reason.step] | @csv')" '"error","base"' "$body"
	lacks "$body" "$secret"
	if grep -rlaF "$secret" "$state" "$work/serve.log" >found; then fail "in $(cat found)"; fi
}

another_team_sees_and_changes_nothing_that_is_not_public() {
	build shared '[]'
	is "$(get .status)" ready "$body"
	api PUT /v1/teams/others '{}'
	api POST /v1/keys '{"name":"others","role":"owner","team":"others"}'
	mine=$key theirs=$(get .key)
	key=$theirs
	refused 404 GET "/templates/$template"
	refused 404 GET /templates/aliases/shared
	refused 404 GET "/templates/$template/builds/$build/status"
	refused 404 POST "/v2/templates/$template/builds/$build" '{"fromImage":"e2bdev/base"}'
	refused 404 GET "/templates/$template/files/ab"
	refused 404 DELETE "/templates/$template"
	refused 404 POST /v2/sandboxes "{\"templateID\":\"$template\"}"
	refused 404 POST /v2/sandboxes "{\"templateID\":\"$build\"}"
	key=$mine
	api PATCH "/templates/$template" '{"public":true}'
	is "$code" 200 "$body"
	key=$theirs
	api POST /v2/sandboxes '{"templateID":"default/shared"}'
	is "$code" 201 "$body"
	api DELETE "/sandboxes/$(get .sandboxID)"
	refused 404 POST /v2/sandboxes '{"templateID":"others/shared"}'
	refused 403 GET /templates/aliases/shared
	refused 403 GET "/templates/$template/builds/$build/status"
	refused 403 DELETE "/templates/$template"
	refused 403 PATCH "/templates/$template" '{"public":false}'
	refused 403 POST /templates/tags '{"target":"default/shared","tags":["mine"]}'
	# A template of the same name is theirs alone.
	request shared
	key=$mine
	api GET /templates
	is "$(get '[.[] | select(.names[0] == "default/shared")] | length')" 1 "$body"
	key=$viewer
	refused 403 POST /v3/templates '{"name":"x"}'
	refused 403 DELETE /templates/shared
	key=$mine
}

a_dockerfile_is_built_by_the_first_api() {
	api POST /templates '{"alias":"old","dockerfile":"FROM base\nENV A=1\nRUN echo old >/etc/old","startCmd":"sleep 1000","readyCmd":"echo checked; echo checked >&2","cpuCount":1}'
	is "$code $(get '[.aliases[0], .cpuCount] | @csv')" '202 "old",1' "$body"
	template=$(get .templateID) build=$(get .buildID)
	api POST "/templates/$template/builds/$build"
	is "$code" 202 "$body"
	soon has_ended
	is "$(get .status)" ready "$body"
	api POST /v2/sandboxes '{"templateID":"old"}'
	is "$code" 201 "$body"
	box=$(get .sandboxID)
	says 'cat /etc/old'
	is "$out" old
	api DELETE "/sandboxes/$box"
	api POST "/templates/$template" '{"dockerfile":"FROM base\nRUN exit 4"}'
	is "$code $(get .templateID)" "202 $template" "$body"
	build=$(get .buildID)
	soon has_ended
	is "$(get .status)" error
	has "$(get .reason.message)" 'exit 4'
	refused 400 POST /templates '{"alias":"old","dockerfile":"FLY"}'
	refused 400 POST /templates '{"alias":"old","dockerfile":"FROM base\nCOPY a b"}'
	refused 400 POST /templates '{"alias":"old"}'
	api POST /v2/templates '{"alias":"old2","cpuCount":1}'
	is "$code $(get '[.aliases[0], .buildStatus, .cpuCount] | @csv')" '202 "old2","waiting",1' "$body"
}

run_daemon_tests
