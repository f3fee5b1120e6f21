#!/bin/sh
# api_fragments.sh - /api/sandbox, as chat front ends call it; and replays of runs.
. "$(dirname "$0")/daemon.lib"

fragment() { api POST /api/sandbox "$1"; }
# The url of the answer, opened as a browser does: its token becomes a cookie.
opened() { curl -sS -L -c jar --max-time $((120 * time_scale)) -o /dev/null -w '%{http_code}' "$1"; }

code_is_executed_and_its_output_is_an_array_of_parts() {
	fragment '{"template":"code-interpreter-v1","code":"print(6*7)","title":"t","commentary":"c","port":null}'
	is "$code" 200 "$body"
	is "$(get '.stdout[0]')" 42
	is "$(get '.stderr | length')" 0
	is "$(get '.exitCode, .cause, .template, (.cellResults|length), .runtimeError' | tr '\n' ' ')" "0 exit code-interpreter-v1 0 null "
	api GET "/v1/boxes/$(get .sbxId)"
	is "$(get .metadata.template)" code-interpreter-v1
	is "$(get .lifetime_ms)" 600000
	is "$(get .state)" running
}

the_fragment_may_be_nested_in_a_field() {
	fragment '{"fragment":{"template":"code-interpreter-v1","code":"print(1)"},"userID":"u1","teamID":"t1","accessToken":"x"}'
	is "$code" 200 "$body"
	is "$(get '.stdout[0]')" 1
	api GET "/v1/boxes/$(get .sbxId)"
	is "$(get '.metadata.userID + .metadata.teamID')" u1t1
	fragment '{"config":{"template":"base","code":[{"file_name":"a.py","file_content":"print(2)"}]}}'
	is "$(get '.stdout[0]')" 2 "$body"
}

a_session_has_one_box_per_template() {
	fragment '{"template":"code-interpreter-v1","session":"s 1","code":"open(\"f\",\"w\").write(\"kept\")"}'
	first=$(get .sbxId)
	fragment '{"template":"code-interpreter-v1","sessionId":"s 1","code":"print(open(\"f\").read())"}'
	is "$(get .sbxId)" "$first"
	is "$(get '.stdout[0]')" kept "$body"
	fragment '{"template":"base","session":"s 1","code":"print(3)"}'
	[ "$(get .sbxId)" != "$first" ] || fail "another template got the same box"
	fragment '{"template":"code-interpreter-v1","session":"s 2","code":"print(3)"}'
	[ "$(get .sbxId)" != "$first" ] || fail "another session got the same box"
}

ten_simultaneous_requests_of_a_session_share_one_box() {
	for i in 1 2 3 4 5 6 7 8 9 10; do
		curl -sS -H "X-API-Key: $key" "$url/api/sandbox" -o "r$i" \
			-d '{"template":"base","session":"rush","code":"print(1)"}' &
	done
	wait
	is "$(jq -r .sbxId r? r10 | sort -u | wc -l)" 1 "$(cat r1 r2)"
	for i in 1 2 3 4 5; do
		curl -sS -H "X-API-Key: $key" "$url/v1/boxes" -o "b$i" -d '{"session":"rush2"}' &
	done
	wait
	is "$(jq -r .id b? | sort -u | wc -l)" 1 "$(cat b1 b2)"
}

each_request_renews_the_lifetime_of_ten_minutes() {
	fragment '{"template":"base","session":"again","code":"print(1)"}'
	b=$(get .sbxId)
	api PATCH "/v1/boxes/$b" '{"lifetime_ms":600000}'
	before=$(get .ends)
	fragment '{"template":"base","session":"again","code":"import time; time.sleep(0.01)"}'
	api GET "/v1/boxes/$b"
	[ "$(get .ends)" \> "$before" ] || fail "ends $(get .ends), before $before"
}

files_are_accepted_in_three_formats() {
	fragment '{"template":"base","files":[{"file_path":"main.py","file_content":"import lib; print(lib.x)"},{"path":"lib.py","content":"x=5"}]}'
	is "$(get '.stdout[0]')" 5 "$body"
	fragment '{"template":"base","files":{"lib.py":"x=6","go.py":"import lib; print(lib.x)"},"file_path":"go.py"}'
	is "$(get '.stdout[0]')" 6 "$body"
	fragment '{"template":"base","files":{"lib.py":"x=7"},"file_path":"sub/t.py","code":"import sys; sys.path.append(\"..\"); print(__file__)"}'
	is "$(get '.stdout[0]')" /home/user/sub/t.py "$body"
	fragment '{"template":"base","file_path":"x.sh","code":"echo $((3+4))"}'
	is "$(get '.stdout[0]')" 7 "$body"
}

the_install_command_runs_before_the_code() {
	fragment '{"template":"base","code":"print(open(\"p\").read())","has_additional_dependencies":true,"additional_dependencies":["p"],"install_dependencies_command":"echo installed >p"}'
	is "$(get '.stdout[0]')" "$(printf 'installed\n\n')" "$body"
	fragment '{"template":"base","code":"print(1)","has_additional_dependencies":false,"install_dependencies_command":"exit 1"}'
	is "$(get .exitCode)" 0
	fragment '{"template":"base","code":"print(1)","install_dependencies_command":"echo no such package >&2; exit 3"}'
	is "$code" 200
	is "$(get .exitCode)" 3
	is "$(get '.runtimeError | .name + ": " + .value')" "install: no such package"
}

an_error_has_its_name_and_traceback() {
	fragment '{"template":"code-interpreter-v1","code":"print(\"before\")\nnothing_here"}'
	is "$(get '.runtimeError.name')" NameError "$body"
	has "$(get '.runtimeError.value')" nothing_here
	has "$(get '.runtimeError.traceback')" "line 2"
	is "$(get '.stdout[0]')" before
	fragment '{"template":"base","file_path":"k.sh","code":"kill -9 $$"}'
	is "$(get '.runtimeError.name, .exitCode' | tr '\n' ' ')" "signal 137 "
	fragment '{"template":"base","code":"import time; time.sleep(30)","timeout_ms":200}'
	is "$(get '.runtimeError.name, .cause, .exitCode' | tr '\n' ' ')" "wall wall 124 "
}

interpreter_code_is_executed_as_a_cell() {
	fragment '{"template":"code-interpreter-v1","session":"cells","code":"y = 5\n1 + 1"}'
	is "$(get '.cellResults[0] | "\(.text) \(.isMainResult)"')" "2 true" "$body"
	fragment '{"template":"code-interpreter-v1","session":"cells","code":"print(y)\nclass P:\n  def _repr_png_(self): return b\"\\x89PNG\"\nP()"}'
	is "$(get '.stdout[0] + .cellResults[0].png')" "5
iVBORw==" "$body"
	fragment '{"template":"code-interpreter-v1","session":"cells","file_path":"s.py","code":"import lib\n(lib.x, y)","files":{"lib.py":"x = 7"},"install_dependencies_command":"touch installed"}'
	is "$(get '.cellResults[0].text')" "(7, 5)" "$body"
	fragment '{"template":"code-interpreter-v1","session":"cells","code":"while True: pass","timeout_ms":300}'
	is "$(get '"\(.exitCode) \(.cause) \(.runtimeError.name)"')" "124 wall timeout" "$body"
	fragment '{"template":"code-interpreter-v1","session":"cells","code":"input()"}'
	is "$(get .runtimeError.name)" EOFError "$body"
	fragment '{"template":"code-interpreter-v1","session":"cells","code":"import os; os._exit(3)"}'
	has "$(get .runtimeError.value)" "status 3"
	fragment '{"template":"code-interpreter-v1","session":"cells","code":"2 + 2"}'
	is "$(get '.cellResults[0].text')" 4 "$body"
	fragment '{"template":"code-interpreter-v1","code":"1","install_dependencies_command":"echo no such package >&2; exit 3"}'
	is "$(get '"\(.exitCode) \(.runtimeError.name) \(.runtimeError.value)"')" "3 install no such package" "$body"
}

a_url_is_returned_only_for_a_server_that_answers() {
	fragment '{"template":"gradio-developer","file_path":"app.py","code":"import sys\nprint(\"no such framework\", file=sys.stderr)\nsys.exit(9)","port":8501}'
	is "$code $(get '"\(.url) \(.exitCode) \(.runtimeError.name) \(.stderr[0])"')" "200 null 9 server_ended no such framework" "$body"
	has "$(get .runtimeError.value)" "port 8501"
	fragment '{"template":"gradio-developer","file_path":"app.py","code":"import time\nprint(\"up\", flush=True)\ntime.sleep(100)","port":8501,"timeout_ms":900}'
	is "$(get '"\(.url) \(.runtimeError.name)"')" "null server_not_ready" "$body"
	# A server that listens and does not answer is not ready.
	fragment '{"template":"gradio-developer","file_path":"app.py","code":"import os,socket,time\ns=socket.create_server((\"127.0.0.1\",int(os.environ[\"PORT\"])))\ntime.sleep(100)","port":8501,"timeout_ms":900}'
	is "$(get '"\(.url) \(.runtimeError.name)"')" "null server_not_ready" "$body"
	fragment '{"template":"gradio-developer","file_path":"app.py","code":"import os,http.server,time\ntime.sleep(1.5)\nhttp.server.HTTPServer((\"127.0.0.1\",int(os.environ[\"PORT\"])),http.server.SimpleHTTPRequestHandler).serve_forever()","port":8501}'
	is "$(opened "$(get .url)")" 200 "$body"
}

a_web_application_runs_in_the_background() {
	new='{"template":"gradio-developer","session":"web","port":7860,"file_path":"app.py","code":"import os,http.server\nhttp.server.HTTPServer((\"127.0.0.1\",int(os.environ[\"PORT\"])),http.server.SimpleHTTPRequestHandler).serve_forever()"}'
	fragment "$new"
	is "$code" 200 "$body"
	b=$(get .sbxId)
	has "$(get '.url, .port' | tr '\n' ' ')" "http://7860-$b.localhost:${url##*:}/?atoll_preview_token="
	has "$(get .note)" preview
	first=$(get .exec) link=$(get .url)
	answers() {
		api POST "/v1/boxes/$b/execs" '{"command":"python3 -c \"import urllib.request as u; print(u.urlopen('"'http://127.0.0.1:7860/'"').status)\""}'
		[ "$(get .stdout)" = 200 ]
	}
	soon answers
	is "$(opened "$link")" 200
	# The next version of the application replaces the running one.
	fragment "$new"
	is "$(get .sbxId)" "$b"
	[ "$(get .exec)" != "$first" ] || fail "the same exec"
	api GET "/v1/boxes/$b/execs/$first"
	is "$(get .state)" exited
	soon answers
	api GET "/v1/boxes/$b/execs?running=1"
	is "$(get '.items | length')" 1
}

a_server_that_reads_changed_files_keeps_running() {
	# A stand-in for Next.js, which npx finds in the project.
	next='#!/usr/bin/env node
const fs = require("fs")
require("http").createServer((q, a) => a.end(fs.readFileSync("pages/index.tsx"))).listen(Number(process.argv[4]), "127.0.0.1")'
	new=$(jq -nc --arg next "$next" '{template:"nextjs-developer", session:"hot", port:3000, file_path:"pages/index.tsx", code:"first",
		files:{"node_modules/.bin/next":$next}, install_dependencies_command:"chmod +x node_modules/.bin/next"}')
	fragment "$new"
	is "$code" 200 "$body"
	b=$(get .sbxId) first=$(get .exec) link=$(get .url)
	shows() { [ "$(curl -sS -L -c jar -b jar "$link")" = "$1" ]; }
	shows first || fail "$(curl -sS -L -c jar -b jar "$link")"
	fragment '{"template":"nextjs-developer","session":"hot","port":3000,"file_path":"pages/index.tsx","code":"second"}'
	is "$(get '"\(.sbxId) \(.exec) \(.url)"')" "$b $first $link" "$body"
	shows second || fail "$(curl -sS -L -c jar -b jar "$link")"
	# An install that fails is an error; the server keeps running.
	fragment '{"template":"nextjs-developer","session":"hot","port":3000,"file_path":"pages/index.tsx","code":"third","install_dependencies_command":"echo no such package >&2; exit 3"}'
	is "$(get '"\(.exitCode) \(.runtimeError.name)"')" "3 install" "$body"
	# Another command or port is another server.
	fragment '{"template":"nextjs-developer","session":"hot","port":3001,"file_path":"pages/index.tsx","code":"fourth"}'
	[ "$(get .exec)" != "$first" ] || fail "the same server for another port: $body"
	link=$(get .url)
	shows fourth || fail "$(curl -sS -L -c jar -b jar "$link")"
	# One that has ended is started again.
	api DELETE "/v1/boxes/$b/execs/$(get .exec)"
	fragment '{"template":"nextjs-developer","session":"hot","port":3001,"file_path":"pages/index.tsx","code":"fifth"}'
	shows fifth || fail "$body"
}

an_answer_that_is_not_http_is_no_server() {
	fragment '{"template":"gradio-developer","file_path":"app.py","code":"import os,socket\ns=socket.create_server((\"127.0.0.1\",int(os.environ[\"PORT\"])))\nwhile True:\n  c=s.accept()[0]\n  c.sendall(b\"SSH-2.0-x\\n\")\n  c.close()","port":8501,"timeout_ms":900}'
	is "$(get '"\(.url) \(.runtimeError.name)"')" "null server_not_ready" "$body"
}

an_invalid_fragment_names_the_field() {
	while IFS='|' read -r wrong field; do
		fragment "$wrong"
		is "$code" 400 "$wrong: $body"
		has "$(get .error.message)" "$field"
	done <<-'END'
		{}|template: is missing
		{"template":"base"}|code: is missing
		{"template":"base","code":7}|code: must be
		{"template":"nothing","code":"1"}|template: there is no such
		{"template":"../x","code":"1"}|template: must be a name
		{"template":"base","code":"1","port":0}|port: 0 is out of range
		{"template":"base","code":"1","port":"80"}|port: must be an integer
		{"template":"base","files":[{"file_path":"a"}]}|files[0].file_content: must be
		{"template":"base","files":[{"path":"a","content":"b"},{"path":"","content":""}]}|files[1].path: must be
		{"template":"base","files":[7]}|files[0]: must be
		{"template":"base","files":{"a":1}}|files.a: must be
		{"template":"base","files":"x"}|files: must be
		{"template":"base","code":"a\u0000b"}|not JSON
		{"template":"base","code":"1","install_dependencies_command":["x"]}|install_dependencies_command: must be
		{"template":"base","code":"1","has_additional_dependencies":"yes"}|has_additional_dependencies: must be
		{"fragment":{"template":"base","code":7}}|fragment.code: must be
		{"fragment":{"template":"base","code":"1","port":70000}}|fragment.port: 70000
		{"fragment":[]}|fragment: must be an object
		{"template":"base","code":"1","session":7}|session: must be
	END
	fragment '['
	is "$code" 400
	api GET /v1/boxes
}

the_file_tree_shows_written_files() {
	new_box
	api POST "/v1/boxes/$box/execs" '{"command":"mkdir -p a/b node_modules/x .git/y; echo hi >a/b/c.txt; echo 1 >node_modules/x/y; touch .env; ln -s /etc link; mkdir closed; touch closed/in; chmod 0 closed"}'
	api GET "/api/sandbox/$box/files"
	is "$code" 200 "$body"
	is "$(get '.path + " " + .type + " " + .name')" "/home/user directory user"
	is "$(get '.children[] | select(.name=="a").children[0].children[0] | .path + " " + .type + " " + (.size|tostring)')" "/home/user/a/b/c.txt file 3"
	is "$(get '[.children[].name] | join(" ")')" ".env a closed link"
	is "$(get '.children[] | select(.name=="link") | .type')" link
	is "$(get '.truncated')" false
	api GET "/api/sandbox/$box/files?hidden=1&depth=2"
	has "$(get '[.children[].name] | join(" ")')" "node_modules"
	is "$(get '.children[] | select(.name=="a").children[0] | has("children")')" false
	api GET "/api/sandbox/$box/files?path=a"
	is "$(get '.children[0].name')" b
	api GET "/api/sandbox/$box/files?path=/"
	has "$(get '[.children[].name] | join(" ")')" "home"
	api GET "/api/sandbox/$box/files?path=nothing"
	is "$code" 404
	api GET "/api/sandbox/$box/files?depth=0"
	is "$code" 400
}

a_large_file_tree_is_truncated_and_marked() {
	new_box
	api POST "/v1/boxes/$box/execs" '{"command":"for d in 1 2 3 4; do mkdir $d; (cd $d; seq -f f%g 2000 | xargs touch); done; mkdir -p $(seq -s / 60)"}'
	api GET "/api/sandbox/$box/files"
	is "$code" 200
	is "$(get .truncated)" true
	is "$(get '[.. | objects | select(.type)] | length')" 5001
}

a_file_is_read_and_written() {
	new_box
	api POST "/api/sandbox/$box/files/content" '{"path":"src/a.txt","content":"grün\n"}'
	is "$code" 200 "$body"
	is "$(get '.path, .size' | tr '\n' ' ')" "/home/user/src/a.txt 6 "
	api GET "/api/sandbox/$box/files/content?path=src/a.txt"
	is "$(get .content)" "grün"
	api POST "/v1/boxes/$box/execs" '{"command":"cat src/a.txt; printf \"\\377\\000x\" >bin; head -c 5000000 /dev/zero >big; : >empty"}'
	is "$(get .stdout)" "grün"
	api GET "/api/sandbox/$box/files/content?path=bin"
	is "$(get '.content + " " + .content_encoding')" "/wB4 base64"
	api GET "/api/sandbox/$box/files/content?path=empty"
	is "$(get .content)" ""
	api GET "/api/sandbox/$box/files/content?path=big"
	is "$code" 413
	api GET "/api/sandbox/$box/files/content?path=src"
	case $code in 4*) ;; *) fail "$code $body" ;; esac
	api GET "/api/sandbox/$box/files/content?path=nothing"
	is "$code" 404
	api GET "/api/sandbox/$box/files/content"
	is "$code" 400
	api POST "/api/sandbox/$box/files/content" '{"path":"x"}'
	is "$code" 400
	api POST "/api/sandbox/$box/files/content" '{"path":"","content":"x"}'
	is "$code" 400
	api POST "/api/sandbox/$box/files/content" '{"path":"x","content":7}'
	is "$code" 400
	api POST "/api/sandbox/$box/files/content" '{"path":"/etc/passwd","content":"x"}'
	is "$code" 403 "$body"
}

no_path_reaches_outside_the_box() {
	new_box
	echo "of the host" >"$work/secret"
	chmod 644 "$work/secret"
	for path in "$work/secret" "../../../../../../../../..$work/secret" /proc/1/root"$work/secret"; do
		api GET "/api/sandbox/$box/files/content?path=$path"
		case $code in 403 | 404) ;; *) fail "$path: $code $body" ;; esac
	done
	api POST "/v1/boxes/$box/execs" "{\"command\":\"ln -s $work/secret link\"}"
	api GET "/api/sandbox/$box/files/content?path=link"
	is "$code" 404
	api POST "/api/sandbox/$box/files/content" "{\"path\":\"../../../../../../..$work/mine\",\"content\":\"x\"}"
	[ ! -e "$work/mine" ] || fail "it is there"
}

boxes_of_other_teams_are_not_found() {
	for path in files "files/content?path=x"; do
		api GET "/api/sandbox/aaaaaaaaaaaa/$path"
		is "$code" 404
	done
	new_box
	owner=$key key=$viewer
	api GET "/api/sandbox/$box/files"
	is "$code" 200
	api POST "/api/sandbox/$box/files/content" '{"path":"a","content":"b"}'
	is "$code" 403
	fragment '{"template":"base","code":"1"}'
	is "$code" 403
	key=$owner
}

a_run_is_replayed_in_a_new_box() {
	api POST /v1/run '{"files":{"in.txt":"from a file"},"env":{"X":"y"},"stdin":"z","limits":{"mem":134217728},"command":"cat in.txt - ; echo $X; ls | wc -l; touch more; exit 3"}'
	is "$(get .status)" 3 "$body"
	before=$(get .stdout) run=$(get .id) old=$(get .box)
	api POST "/v1/runs/$run/replay"
	is "$code" 200 "$body"
	is "$(get .stdout)" "$before"
	is "$(get .status)" 3
	is "$(get .replay_of)" "$run"
	is "$(get .limits.mem)" 134217728
	[ "$(get .box)" != "$old" ] || fail "the same box"
	again=$(get .id)
	api GET "/v1/runs/$again"
	is "$(get .replay_of)" "$run"
	is "$(get .request)" null
	api POST "/v1/runs/$again/replay"
	is "$(get .replay_of)" "$again"
}

compiled_code_is_replayed_with_its_compiler() {
	api POST /v1/run '{"language":"c","code":"#include <stdio.h>\nint main(int c,char**v){puts(v[1]);return 0;}","args":["hello"]}'
	is "$(get .stdout)" hello "$body"
	api POST "/v1/runs/$(get .id)/replay"
	is "$(get .stdout)" hello "$body"
}

an_exec_is_replayed_with_the_variables_of_its_box() {
	new_box '{"env":{"A":"box","B":"box"},"limits":{"pids":50}}'
	api POST "/v1/boxes/$box/execs" '{"command":"echo $A $B","env":{"B":"own"},"tag":"t"}'
	is "$(get .stdout)" "box own"
	run=$(get .id)
	api DELETE "/v1/boxes/$box"
	api POST "/v1/runs/$run/replay"
	is "$(get .stdout)" "box own" "$body"
	is "$(get .limits.pids)" 50
}

a_run_that_cannot_be_replayed_is_rejected_with_the_reason() {
	api POST /v1/runs/aaaaaaaaaaaa/replay
	is "$code" 404
	python3 -c 'import json; print(json.dumps({"command":"wc -c f","files":{"f":"x"*100000}}))' >large
	api POST /v1/run @large
	is "$code" 200 "$body"
	api POST "/v1/runs/$(get .id)/replay"
	is "$code" 409
	new_box
	api POST "/v1/boxes/$box/execs" '{"command":"true","pty":{}}'
	api POST "/v1/runs/$(get .id)/replay"
	is "$code" 409
}

a_replay_can_be_a_stream() {
	api POST /v1/run '{"command":"echo one; exit 2"}'
	curl -sS -N -H "X-API-Key: $key" -H 'Accept: application/x-ndjson' -X POST "$url/v1/runs/$(get .id)/replay" >body
	is "$(head -1 body | jq -r .type)" started
	is "$(tail -1 body | jq -r '.type + " " + (.status|tostring)')" "exit 2"
}

run_daemon_tests
