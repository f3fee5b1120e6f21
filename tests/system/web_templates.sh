#!/bin/sh
# web_templates.sh - web fragments in boxes of a built template: its start command, and the box that waits for the next one.
# The template is a stand-in for a framework; `make templates` builds real ones.
. "$(dirname "$0")/daemon.lib"

fragment() { api POST /api/sandbox "$(jq -nc --arg s "$1" --arg c "$2" '{template:"nextjs-developer", session:$s, code:$c, port:3000}')"; }
spares() { api GET /v1/stats && [ "$(get .spares)" = "$1" ]; }
shows() { [ "$(curl -sS -L -c jar -b jar "$link")" = "$1" ]; }
ended() { api GET "/v1/builds/$id" && case $(get .state) in waiting | building) false ;; esac; }

a_shipped_name_can_be_built_from_another_source() {
	serve='require("http").createServer((q, a) => a.end(require("fs").readFileSync("page.txt"))).listen(3000, "127.0.0.1")'
	toml=$(printf '[template]\nworkdir = "/home/user"\nrun = ["""echo '"'%s'"' >/srv/serve.js && echo starter >page.txt && chown user:user page.txt"""]\nuser = "user"\nport = 3000\nfile = "page.txt"\nstart = "node /srv/serve.js"\ntest = "test -s page.txt"\n' "$serve")
	api POST /v1/templates "$(jq -nc --arg t "$toml" '{name:"nextjs-developer", source:{files:{"atoll.toml":$t}}}')"
	is "$code" 202 "$body"
	id=$(get .id)
	soon ended
	is "$(get .state)" ready "$body"
}

a_fragment_gets_a_box_of_the_template_and_the_next_one_a_box_that_waited() {
	fragment one first
	is "$code" 200 "$body"
	b=$(get .sbxId) link=$(get .url)
	shows first || fail "$(curl -sS -L -c jar -b jar "$link") $body"
	api GET "/v1/boxes/$b"
	is "$(get '"\(.template) \(.port)"')" "nextjs-developer 3000" "$body"
	soon spares 1
	api GET /v1/boxes
	is "$(get '.items | length')" 1 "a box that waits is listed: $body"
	before=$(date -u +%Y-%m-%dT%H:%M:%S.%3NZ)
	fragment two second
	is "$code" 200 "$body"
	link=$(get .url) taken=$(get .sbxId)
	shows second || fail "$body"
	[ "$taken" != "$b" ] || fail "the box of the other session"
	api GET "/v1/boxes/$taken"
	[ "$(get .created)" \< "$before" ] || fail "it was created for this request: $body"
	is "$(get '"\(.metadata.template) \(.lifetime_ms)"')" "nextjs-developer 600000" "$body"
	fragment two third
	is "$(get .sbxId)" "$taken"
	shows third || fail "$body"
}

a_test_that_fails_fails_the_build() {
	api POST /v1/templates '{"name":"untested","source":{"files":{"atoll.toml":"[template]\ntest = \"echo it is wrong; exit 4\"\n"}}}'
	id=$(get .id)
	soon ended
	is "$(get .state)" error "$body"
	has "$(get .reason.message)" "the test 'echo it is wrong; exit 4' exited with status 4"
	has "$(get .reason.message)" "it is wrong"
}

a_box_that_waits_ends_with_its_server() {
	soon spares 1
	stop_daemon
	start_daemon
	only_two() { api GET /v1/stats && [ "$(get '"\(.boxes) \(.spares)"')" = "2 0" ]; }
	soon only_two
}

run_daemon_tests
