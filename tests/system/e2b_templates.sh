#!/bin/sh
# e2b_templates.sh - E2B's API of templates: builds, uploads, status, logs, tags, and what it rejects.
. "$(dirname "$0")/daemon.lib"
export ATOLL_TEMPLATES_UPLOAD=1M

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

run_daemon_tests
