#!/bin/sh
# templates.sh - templates: the registry, builds from definitions, boxes from them.
. "$(dirname "$0")/daemon.lib"
slow_tests="limits_of_a_step_are_named"

ended() {
	api GET "/v1/builds/$build"
	case $(get .state) in waiting | building) return 1 ;; esac
}
# begin NAME STEPS [FROM] [MORE FIELDS OF THE DEFINITION]: starts a build; sets build.
begin() {
	jq -n --arg n "$1" --argjson s "$2" --arg f "${3:-base}" --argjson m "${4:-{\}}" \
		'{name: $n, definition: ({stages: [{from: $f, steps: $s}]} + $m)}' >request
	api POST /v1/templates "$(cat request)"
	is "$code" 202 "$body"
	build=$(get .id)
}
# make NAME STEPS [FROM] [MORE]: and waits until it is ready.
make() {
	begin "$@"
	soon ended
	is "$(get .state)" ready "$body"
}
# fails NAME STEPS [FROM] [MORE]: the build ends with an error.
fails() {
	begin "$@"
	soon ended
	is "$(get .state)" error "$body"
}
log() { curl -sS -H "X-API-Key: $key" "$url/v1/builds/$build/log?follow=1"; }
# run COMMAND: in $box; sets out.
run() {
	api POST "/v1/boxes/$box/execs" "$(jq -n --arg c "$1" '{command: $c}')"
	is "$code" 200 "$body"
	is "$(get .status)" 0 "$body"
	out=$(get .stdout)
}
# upload FOLDER: sets hash.
upload() {
	tar -C "$1" -czf up.tgz .
	hash=$(sha256sum up.tgz | cut -c 1-64)
	code=$(curl -sS -o body -w '%{http_code}' -X PUT -H "X-API-Key: $key" --data-binary @up.tgz "$url/v1/templates/uploads/$hash")
	is "$code" 204 "$(cat body)"
}

the_registry_has_base() {
	api GET /v1/templates
	is "$code" 200 "$body"
	is "$(get '.items[] | select(.name == "base") | .builtin')" true "$body"
	api GET /v1/templates/base
	is "$(get .built)" true "$body"
	api GET /v1/templates/nosuch
	is "$code" 404 "$body"
	has "$body" "there is no template 'nosuch'; there are"
	api GET /v1/templates/x%21
	is "$code" 400 "$body"
}

# Before other tests: the keeper fills a pool for every root that was requested.
boxes_of_a_template_wait_in_a_pool() {
	soon waiting 0
	make pooled '[{"type": "RUN", "args": ["echo pooled >/srv/x"]}]' base '{"pool": 3}'
	api GET /v1/templates/pooled
	is "$(get .pool)" 3 "$body"
	all=$((3 + 3 * $(get '[.runtimes[] | select(.warm)] | length'))) # with and without an interpreter
	soon waiting "$all"
	new_box '{"template": "pooled"}'
	run 'cat /srv/x'
	is "$out" pooled
	api DELETE "/v1/boxes/$box"
	soon waiting "$all"
	api PATCH /v1/templates/pooled '{"pool": 0}'
	is "$(get .pool)" 0 "$body"
	soon waiting 0
	api DELETE /v1/templates/pooled
	is "$code" 204 "$body"
}
# waiting N: so many boxes of roots wait in the keeper's pool, besides those of base.
waiting() {
	set -- "$1" "$("$ATOLL" doctor --json 2>/dev/null | sed -n 's/.* \([0-9]*\) warm ones (keeper.pool = \([0-9]*\) .*/\1 \2/p')"
	[ "$2" ] && [ $((${2% *} - ${2#* })) = "$1" ]
}

a_box_has_the_files_and_settings_of_its_template() {
	make web '[
		{"type": "ENV", "args": ["GREETING", "hello world"]},
		{"type": "ENV", "args": ["WHO", "${GREETING}!"]},
		{"type": "RUN", "args": ["echo \"$GREETING\" >/srv/greeting; mkdir /opt/d; chown 1000:1000 /opt/d; ln -s d /opt/l; rm /etc/motd 2>/dev/null; id -u >/srv/id"]},
		{"type": "WORKDIR", "args": ["/srv/app"]},
		{"type": "RUN", "args": ["pwd >/srv/pwd; touch made"]}]' base '{"port": 8080, "cpu": 500, "memory": 268435456}'
	first=$build
	api POST /v1/boxes '{"template": "web", "env": {"MORE": "x"}}'
	is "$code" 201 "$body"
	box=$(get .id)
	is "$(get .template)" web "$body"
	is "$(get .build)" "$first" "$body"
	is "$(get .port)" 8080 "$body"
	is "$(get .limits.mem)" 268435456 "$body"
	is "$(get .limits.cpu_milli)" 500 "$body"
	is "$(get .env.WHO)" "hello world!" "$body"
	is "$(get .env.MORE)" x "$body"
	run 'cat /srv/greeting /srv/id /srv/pwd; pwd; id -u; stat -c %u /opt/d; readlink /opt/l; ls made; echo $WHO $HOME; ls -d /usr/bin/env'
	is "$out" "$(printf 'hello world\n0\n/srv/app\n/srv/app\n1000\n1000\nd\nmade\nhello world! /home/user\n/usr/bin/env')"
	run 'touch /home/user/mine && echo changed >/tmp/x && cat /tmp/x'
	is "$out" changed
	api DELETE "/v1/boxes/$box"
	# limits of the request have precedence
	new_box '{"template": "web", "limits": {"mem": 134217728}}'
	is "$(get .limits.mem)" 134217728 "$body"
	api DELETE "/v1/boxes/$box"
	soon spawned web 2
	api POST /v1/run '{"template": "web", "language": "bash", "code": "cat /srv/greeting"}'
	is "$(get .stdout)" "hello world" "$body"
}

spawned() { api GET "/v1/templates/$1" && [ "$(get .spawns)" = "$2" ]; }

steps_that_have_not_changed_are_cached() {
	steps='[{"type": "RUN", "args": ["date +%N >/srv/a"]}, {"type": "RUN", "args": ["date +%N >/srv/b"]}]'
	make cached "$steps"
	is "$(log | grep -c CACHED)" 0
	new_box '{"template": "cached"}'
	run 'cat /srv/a /srv/b'
	before=$out
	api DELETE "/v1/boxes/$box"
	make cached "$steps"
	is "$(log | grep -c CACHED)" 2 "$(log)"
	make cached "$(echo "$steps" | jq -c '.[1].args[0] += " "')"
	is "$(log | grep -c CACHED)" 1 "$(log)"
	new_box '{"template": "cached"}'
	run 'cat /srv/a /srv/b'
	is "$(echo "$out" | head -1)" "$(echo "$before" | head -1)"
	[ "$out" != "$before" ] || fail "a changed step was not executed"
	api DELETE "/v1/boxes/$box"
	api POST /v1/templates "$(jq -c '. + {force: true}' <request)"
	build=$(get .id)
	soon ended
	is "$(log | grep -c CACHED)" 0 "$(log)"
}

files_are_copied_as_docker_does() {
	mkdir -p ctx/src/sub ctx/other
	echo one >ctx/src/one.txt
	echo two >ctx/src/sub/two.txt
	ln -s one.txt ctx/src/link
	echo x >ctx/a.js
	echo y >ctx/b.js
	echo z >ctx/c.md
	chmod 750 ctx/a.js
	tar -C ctx/src -cf ctx/other/arch.tar .
	upload ctx
	make copied "$(jq -n --arg h "$hash" '[
		{type: "COPY", files: $h, args: ["src", "/srv/tree"]},
		{type: "COPY", files: $h, args: ["*.js", "c.md", "/srv/many/"], owner: "1000:1000", mode: "0600"},
		{type: "WORKDIR", args: ["/srv/work"]},
		{type: "COPY", files: $h, args: ["./a.js", "renamed"]},
		{type: "COPY", files: $h, args: ["c.md", "/srv"]},
		{type: "ADD", files: $h, args: ["other/arch.tar", "/srv/unpacked"]},
		{type: "COPY", content: "text\n", args: ["EOF", "/srv/here/doc"]}]')"
	new_box '{"template": "copied"}'
	run 'cd /srv; cat tree/one.txt tree/sub/two.txt; readlink tree/link; stat -c "%a %u" many/a.js; stat -c "%a %u %s" work/renamed; cat c.md unpacked/sub/two.txt here/doc; ls many'
	is "$out" "$(printf 'one\ntwo\none.txt\n600 1000\n750 0 2\nz\ntwo\ntext\na.js\nb.js\nc.md')"
	api DELETE "/v1/boxes/$box"
	fails copied "$(jq -n --arg h "$hash" '[{type: "COPY", files: $h, args: ["../secret", "/srv/"], line: 4}]')"
	has "$(get .reason.message)" "'../secret' is outside the build context"
	is "$(get .reason.line)" 4 "$body"
	fails copied "$(jq -n --arg h "$hash" '[{type: "COPY", files: $h, args: ["nosuch", "/srv/"]}]')"
	has "$(get .reason.message)" "there is no 'nosuch' in the build context"
	fails copied "$(jq -n --arg h "$hash" '[{type: "COPY", files: $h, args: ["*.nosuch", "/srv/"]}]')"
	has "$(get .reason.message)" "nothing in the build context matches '*.nosuch'"
	fails copied "$(jq -n --arg h "$hash" '[{type: "ADD", files: $h, args: ["http://127.0.0.1/x", "/srv/"]}]')"
	has "$(get .reason.message)" "ADD of a URL is not supported"
	fails copied '[{"type": "COPY", "files": "0123", "args": ["x", "/srv/"]}]'
	has "$(get .reason.message)" "there is no upload 0123"
}

a_stage_is_copied_from_and_built_upon() {
	api POST /v1/templates '{"name": "stages:v1", "definition": {"stages": [
		{"name": "unused", "from": "base", "steps": [{"type": "RUN", "args": ["exit 1"]}]},
		{"name": "build", "from": "base", "steps": [{"type": "RUN", "args": ["mkdir /srv/out; echo made >/srv/out/x; echo left >/srv/y"]}]},
		{"from": "base", "steps": [{"type": "COPY", "from": "build", "args": ["/srv/out", "/opt/out"]}]}]}}'
	is "$code" 202 "$body"
	build=$(get .id)
	soon ended
	is "$(get .state)" ready "$body"
	make derived '[{"type": "RUN", "args": ["cat /opt/out/x >/opt/copy"]}]' template:stages:v1
	new_box '{"template": "derived"}'
	run 'cat /opt/copy; ls /srv/y 2>&1 | tail -c 10'
	is "$out" "$(printf 'made\ndirectory')"
	api DELETE "/v1/boxes/$box"
	api POST /v1/boxes '{"template": "stages"}'
	is "$code" 404 "$body"
	has "$body" "has no tag 'default'"
	new_box '{"template": "stages:v1"}'
	api DELETE "/v1/boxes/$box"
}

a_failure_names_step_line_and_output() {
	fails broken '[{"type": "RUN", "args": ["true"], "line": 2}, {"type": "RUN", "args": ["echo some output; echo more >&2; exit 3"], "line": 7}]'
	is "$(get .reason.step)" 2/2 "$body"
	is "$(get .reason.line)" 7 "$body"
	is "$(get .reason.message)" "exited with status 3" "$body"
	has "$(get .reason.command)" "RUN echo some output"
	has "$(get .reason.output)" "some output"
	has "$(log)" "step 2/2, line 7: RUN echo some output"
	# two steps that write nothing have the same layer
	make empty '[{"type": "RUN", "args": ["true"]}, {"type": "RUN", "args": ["true # again"]}, {"type": "WORKDIR", "args": ["/srv"]}]'
	api POST /v1/boxes '{"template": "broken"}'
	is "$code" 409 "$body"
	has "$body" "its newest build is in state error"
	fails broken '[{"type": "USER", "args": ["missing-user"]}, {"type": "RUN", "args": ["true"]}]'
	has "$(get .reason.message)" "there is no user 'missing-user'"
	for bad in '{}' '{"stages": []}' '{"stages": [{"from": "base", "steps": [{"type": "NOPE", "args": []}]}]}' \
		'{"stages": [{"from": "base", "steps": [{"type": "RUN", "args": ["a", "b"]}]}]}' \
		'{"stages": [{"from": "base"}], "nosuch": 1}' '{"stages": [{"from": "base"}], "target": 3}'; do
		api POST /v1/templates "{\"name\": \"bad\", \"definition\": $bad}"
		is "$code" 400 "$bad $body"
	done
	for bad in base 'a b' '' '-x' 'a:b:c'; do
		api POST /v1/templates "{\"name\": \"$bad\", \"definition\": {\"stages\": [{\"from\": \"base\"}]}}"
		is "$code" 400 "$bad $body"
	done
	fails broken '[]' template:nosuch
	has "$(get .reason.message)" "there is no template 'nosuch'"
}

limits_of_a_step_are_named() {
	fails limits '[{"type": "RUN", "args": ["sleep 1000"]}]'
	has "$(get .reason.message)" "took longer than 4 s (templates.step_timeout)"
	fails limits '[{"type": "RUN", "args": ["head -c 200000000 /dev/zero >/srv/big"]}]'
	has "$(get .reason.message)" "the disk of the build box is full: 64 MiB (templates.build_disk)"
}

secrets_of_a_step_are_in_no_layer() {
	api POST /v1/templates '{"name": "secret", "secrets": {"token": "s3cr3t-of-the-build"}, "definition": {"stages": [{"from": "base", "steps": [
		{"type": "RUN", "args": ["sha256sum </run/secrets/token | cut -c 1-64 >/srv/sum"], "secrets": ["token"]},
		{"type": "RUN", "args": ["ls /run/secrets >/srv/list 2>&1; true"]}]}]}}'
	is "$code" 202 "$body"
	build=$(get .id)
	soon ended
	is "$(get .state)" ready "$body"
	new_box '{"template": "secret"}'
	run 'cat /srv/sum; ls /run/secrets 2>/dev/null | wc -l; grep -c token /srv/list || :'
	is "$out" "$(printf '%s\n0\n0' "$(printf s3cr3t-of-the-build | sha256sum | cut -c 1-64)")"
	api DELETE "/v1/boxes/$box"
	grep -rqa s3cr3t-of-the-build "$state" && fail "the secret is stored: $(grep -rla s3cr3t-of-the-build "$state")"
	fails secret '[{"type": "RUN", "args": ["true"], "secrets": ["other"]}]'
	has "$(get .reason.message)" "there is no secret 'other'"
}

a_build_is_cancelled_at_once() {
	begin slow '[{"type": "RUN", "args": ["echo begun; sleep 1000"]}]'
	soon log_has begun
	api DELETE "/v1/builds/$build"
	is "$code" 204 "$body"
	api GET "/v1/builds/$build"
	is "$(get .state)" cancelled "$body"
	api DELETE "/v1/builds/$build"
	is "$code" 409 "$body"
	soon boxless
	begin slow '[{"type": "RUN", "args": ["echo begun; sleep 1001"]}]'
	soon log_has begun
	api DELETE /v1/templates/slow
	is "$code" 204 "$body"
	api GET "/v1/builds/$build"
	is "$code" 404 "$body"
	soon boxless
}
log_has() { curl -sS -H "X-API-Key: $key" "$url/v1/builds/$build/log" | grep -q "\"$1\""; }
boxless() { [ "$(curl -sS -H "X-API-Key: $key" "$url/metrics" | sed -n 's/^atoll_boxes //p')" = 0 ]; }

a_template_may_be_deleted_while_boxes_use_it() {
	make used '[{"type": "RUN", "args": ["echo kept >/srv/kept"]}]'
	new_box '{"template": "used"}'
	api DELETE /v1/templates/used
	is "$code" 204 "$body"
	run 'cat /srv/kept'
	is "$out" kept
	api POST /v1/boxes '{"template": "used"}'
	is "$code" 404 "$body"
	api DELETE /v1/templates/web
	soon roots_used 1 # of this box
	api DELETE "/v1/boxes/$box"
	soon roots_used 0
	is "$(find "$state/roots" -type f | wc -l)" 0
	ls "$state/layers" | grep merged && fail "a merged root is left"
	:
}
# roots_used N: so many roots are left after all other templates were deleted.
roots_used() {
	for t in $(curl -sS -H "X-API-Key: $key" "$url/v1/templates" | jq -r '.items[] | select(.builtin == false and .built) | .id'); do
		curl -sS -o /dev/null -X DELETE -H "X-API-Key: $key" "$url/v1/templates/$t"
	done
	[ "$(find "$state/roots" -type f | wc -l)" = "$1" ]
}

teams_see_their_own_and_public_templates() {
	api PUT /v1/teams/other '{}'
	theirs=$("$ATOLL" key new theirs --team other --role owner --state "$state" --quiet)
	make private-one '[]'
	mine=$key
	key=$theirs
	api GET /v1/templates/private-one
	is "$code" 404 "$body"
	api POST /v1/boxes '{"template": "private-one"}'
	is "$code" 404 "$body"
	api GET "/v1/builds/$build"
	is "$code" 404 "$body"
	key=$mine
	api PATCH /v1/templates/private-one '{"public": true, "description": "for all", "aliases": ["other-name"]}'
	is "$code" 200 "$body"
	key=$theirs
	new_box '{"template": "private-one"}'
	api DELETE "/v1/boxes/$box"
	new_box '{"template": "other-name"}'
	api DELETE "/v1/boxes/$box"
	api DELETE /v1/templates/private-one
	is "$code" 403 "$body"
	key=$mine
	key=$viewer
	api DELETE /v1/templates/private-one
	is "$code" 403 "$body"
	key=$mine
}

a_box_becomes_a_template() {
	make origin '[{"type": "RUN", "args": ["echo one >/srv/one"]}]'
	new_box '{"template": "origin"}'
	run 'echo two >/home/user/two; mkdir -p .config; chmod 700 .config'
	api POST /v1/templates "{\"name\": \"grown\", \"from_box\": \"$box\"}"
	is "$code" 202 "$body"
	build=$(get .id)
	soon ended
	is "$(get .state)" ready "$body"
	api DELETE "/v1/boxes/$box"
	new_box '{"template": "grown"}'
	run 'cat /srv/one two; stat -c "%a %u" .config two'
	is "$out" "$(printf 'one\ntwo\n700 1000\n644 1000')"
	api DELETE "/v1/boxes/$box"
	api POST /v1/templates '{"name": "grown", "from_box": "nosuch"}'
	is "$code" 404 "$body"
}

two_builds_of_one_template_run_at_the_same_time() {
	begin both '[{"type": "ENV", "args": ["V", "1"]}, {"type": "RUN", "args": ["sleep 0.7; echo 1 >/srv/v"]}]'
	one=$build
	begin both '[{"type": "ENV", "args": ["V", "2"]}, {"type": "RUN", "args": ["echo 2 >/srv/v"]}]'
	two=$build
	soon ended
	is "$(get .state)" ready "$body"
	build=$one
	soon ended
	is "$(get .state)" ready "$body"
	api GET /v1/templates/both
	is "$(get .tags.default)" "$two" "the tag names the build that was created last: $body"
}

programs_run_as_the_user_of_the_template() {
	command -v useradd >/dev/null || skip "no useradd"
	make users '[{"type": "RUN", "args": ["useradd -u 1234 -m app && echo hi >/srv/x"]}, {"type": "USER", "args": ["app"]}, {"type": "RUN", "args": ["id -un >~/who"]}]'
	new_box '{"template": "users"}'
	run 'id -u; id -un; pwd; cat who; echo $HOME; stat -c %U who'
	is "$out" "$(printf '1234\napp\n/home/app\napp\n/home/app\napp')"
	api DELETE "/v1/boxes/$box"
	api POST /v1/run '{"template": "users", "language": "python", "code": "import os; print(open(\"/srv/x\").read().strip(), os.getuid())"}'
	is "$(get .stdout)" "hi 1234" "$body"
}

tags_name_builds() {
	make tagged '[{"type": "ENV", "args": ["V", "1"]}]'
	one=$build
	make tagged '[{"type": "ENV", "args": ["V", "2"]}]'
	api PUT /v1/templates/tagged/tags/old "{\"build\": \"$one\"}"
	is "$code" 200 "$body"
	is "$(get .tags.old)" "$one" "$body"
	is "$(get .tags.default)" "$build" "$body"
	new_box '{"template": "tagged:old"}'
	is "$(get .env.V)" 1 "$body"
	api DELETE "/v1/boxes/$box"
	api DELETE /v1/templates/tagged/tags/old
	is "$code" 204 "$body"
	api POST /v1/boxes '{"template": "tagged:old"}'
	is "$code" 404 "$body"
	api POST /v1/templates/tagged/check
	is "$(get .intact)" true "$body"
}

the_start_command_is_tried_and_runs_in_every_box() {
	make server '[]' base '{"start": "echo started; exec python3 -m http.server 8765", "port": 8765}'
	has "$(log)" "starting 'echo started"
	new_box '{"template": "server"}'
	soon listens
	api GET "/v1/boxes/$box/execs"
	is "$(get '.items[0].tag')" start "$body"
	api DELETE "/v1/boxes/$box"
	fails server '[]' base '{"start": "echo leaving; exit 4", "port": 8765}'
	has "$(get .reason.message)" "exited with status 4 before it was ready"
	fails server '[]' base '{"start": "sleep 1000", "ready": "false"}'
	has "$(get .reason.message)" "not ready after 5 s (templates.ready_timeout): the ready command did not succeed: false"
	make server '[]' base '{"start": "sleep 1; touch /tmp/done; sleep 1000", "ready": "test -e /tmp/done"}'
}
listens() { api GET "/v1/boxes/$box/ports/8765" && [ "$(get .listening)" = true ]; }

ATOLL_TEMPLATES_STEP_TIMEOUT=4s ATOLL_TEMPLATES_BUILD_DISK=64M ATOLL_TEMPLATES_READY_TIMEOUT=5s
export ATOLL_TEMPLATES_STEP_TIMEOUT ATOLL_TEMPLATES_BUILD_DISK ATOLL_TEMPLATES_READY_TIMEOUT
run_daemon_tests
