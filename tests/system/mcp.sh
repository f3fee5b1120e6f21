#!/bin/sh
# mcp.sh - the MCP server: the stateless and the session protocol over HTTP and stdio, errors, progress, cancelling.
. "$(dirname "$0")/daemon.lib"

V=2026-07-28
META="\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"$V\",\"io.modelcontextprotocol/clientCapabilities\":{}}"

# post BODY [CURL OPTION...]: to /mcp; sets code, body.
post() {
	data=$1
	shift
	code=$(curl -sS -g --max-time 120 -o body -D head -w '%{http_code}' -H "Authorization: Bearer $key" \
		-H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
		"$@" --data-binary "$data" "$url/mcp" 2>curl.err) || :
	body=$(tr '\0' '?' <body 2>/dev/null)
}
header() { sed -n "s/^$1: *//Ip" head | tr -d '\r'; }
# modern METHOD PARAMS-WITHOUT-BRACES [NAME]
modern() {
	post "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"$1\",\"params\":{${2:+$2,}$META}}" \
		-H "MCP-Protocol-Version: $V" -H "Mcp-Method: $1" ${3:+-H "Mcp-Name: $3"}
}
# hello: opens a session of the session protocol; sets session.
hello() {
	post "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"${1:-2025-11-25}\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}"
	is "$code" 200 "$body"
	session=$(header Mcp-Session-Id)
}
# old METHOD [PARAMS]
old() {
	post "{\"jsonrpc\":\"2.0\",\"id\":\"a1\",\"method\":\"$1\"${2:+,\"params\":$2}}" -H "Mcp-Session-Id: $session" \
		-H 'MCP-Protocol-Version: 2025-11-25'
}
error() { get .error.code; }

the_stateless_protocol_needs_no_handshake() {
	modern server/discover
	is "$code" 200 "$body"
	is "$(get '.result.supportedVersions | join(" ")')" "$V"
	is "$(get .result.resultType)" complete
	is "$(get '.result | has("ttlMs") and has("cacheScope")')" true
	is "$(header Mcp-Session-Id)" ""
	modern tools/list
	is "$(get '[.result.tools[].name] | index("run_command") != null')" true
	is "$(get '.result.tools[0].inputSchema.properties.box.type')" string
	is "$(get .id)" 7
}
a_tool_uses_the_default_box_of_its_key() {
	modern tools/call '"name":"write_file","arguments":{"path":"f","content":"hello"}' write_file
	is "$(get .result.isError)" false "$body"
	modern tools/call '"name":"read_file","arguments":{"path":"f"}' read_file
	is "$(get '.result.content[0].text')" hello
	modern tools/call '"name":"list_boxes","arguments":{}' list_boxes
	is "$(get '.result.structuredContent.items | length')" 1
	key=$editor
	modern tools/call '"name":"read_file","arguments":{"path":"f"}' read_file
	is "$(get .result.isError)" true "another key has another box"
}
a_box_can_be_created_named_and_deleted_by_tools() {
	modern tools/call '"name":"create_box","arguments":{"name":"mine"}' create_box
	is "$(get .result.isError)" false "$body"
	modern tools/call '"name":"run_command","arguments":{"box":"mine","command":"echo $((6*7))"}' run_command
	is "$(get .result.structuredContent.stdout)" 42 "$body"
	modern tools/call '"name":"delete_box","arguments":{"box":"mine"}' delete_box
	is "$(get .result.isError)" false
	modern tools/call '"name":"run_command","arguments":{"box":"mine","command":"true"}' run_command
	is "$(get .result.isError)" true
	has "$body" "it was deleted"
}
a_viewer_gets_no_default_box() {
	new_box
	key=$viewer
	modern tools/call '"name":"list_files","arguments":{}' list_files
	is "$(get .result.isError)" true
	has "$body" "name a box"
	modern tools/call "\"name\":\"list_files\",\"arguments\":{\"box\":\"$box\"}" list_files
	is "$(get .result.isError)" false "$body"
	modern tools/call "\"name\":\"run_command\",\"arguments\":{\"box\":\"$box\",\"command\":\"true\"}" run_command
	is "$(get .result.isError)" true
	modern tools/call '"name":"create_box","arguments":{}' create_box
	is "$(get .result.isError)" true
}
a_key_for_one_box_uses_that_box() {
	new_box
	owner=$key
	key=$("$ATOLL" key new bound --box "$box" --state "$state" --quiet)
	modern tools/call '"name":"write_file","arguments":{"path":"f","content":"x"}' write_file
	is "$(get .result.isError)" false "$body"
	modern tools/call '"name":"list_boxes","arguments":{}' list_boxes
	is "$(get .result.isError)" true
	key=$owner
	api POST "/v1/boxes/$box/tools/read_file" '{"path":"f"}'
	is "$(get .text)" x
}
protocol_headers_must_equal_the_body() {
	B="{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{$META}}"
	post "$B"
	is "$code $(error)" "400 -32020"
	post "$B" -H "MCP-Protocol-Version: $V"
	is "$code $(error)" "400 -32020"
	post "$B" -H "MCP-Protocol-Version: $V" -H 'Mcp-Method: tools/call'
	is "$code $(error)" "400 -32020"
	post "$B" -H 'MCP-Protocol-Version: 2025-11-25' -H 'Mcp-Method: tools/list'
	is "$code $(error)" "400 -32020"
	post '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}' -H "MCP-Protocol-Version: $V" -H 'Mcp-Method: tools/list'
	is "$code $(error)" "400 -32602"
	modern tools/call '"name":"read_file","arguments":{"path":"f"}' write_file
	is "$code $(error)" "400 -32020"
	modern tools/call '"name":"read_file","arguments":{"path":"f"}' "=?base64?$(printf read_file | base64)?="
	is "$code" 200
	modern tools/call '"name":"read_file","arguments":{"path":"f"}' '=?base64?!?='
	is "$code $(error)" "400 -32020"
	post "$(echo "$B" | sed s/2026-07-28/1999-01-01/)" -H 'MCP-Protocol-Version: 1999-01-01' -H 'Mcp-Method: tools/list'
	is "$code $(error)" "400 -32022"
	is "$(get '.error.data.supported | join(" ")')" "$V"
	is "$(get .error.data.requested)" 1999-01-01
}
invalid_messages_are_rejected() {
	post '{"jsonrpc":'
	is "$code $(error)" "400 -32700"
	post '[{"jsonrpc":"2.0","id":1,"method":"ping"}]'
	is "$code $(error)" "400 -32600"
	post '{"id":1,"method":"ping"}'
	is "$code $(error)" "400 -32600"
	for id in null 1.5 true '{}' '[]'; do
		post "{\"jsonrpc\":\"2.0\",\"id\":$id,\"method\":\"ping\"}"
		is "$code $(error)" "400 -32600" "$id"
	done
	post '{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}'
	is "$code" 400
	modern no/such
	is "$code $(error)" "404 -32601"
	modern ping
	is "$code $(error)" "404 -32601"
	modern tools/call '"name":"nothing"' nothing
	is "$code $(error)" "200 -32602"
	modern tools/call '"name":"read_file","arguments":[]' read_file
	is "$code $(error)" "200 -32602"
	modern tools/call '"name":"read_file","arguments":{"pth":"f"}' read_file
	has "$(get '.result.content[0].text')" "pth: is not a field"
	is "$(get .result.isError)" true
}
a_wrong_key_host_or_origin_is_rejected() {
	right=$key key=wrong
	modern tools/list
	is "$code" 401
	has "$(header WWW-Authenticate)" Bearer
	key=$right
	post "{}" -H 'Origin: http://evil.example'
	is "$code" 403
	post "{}" -H 'Host: evil.example'
	[ "$code" = 403 ] || [ "$code" = 421 ] || fail "$code"
	code=$(curl -sS -o body -w '%{http_code}' -H "Authorization: Bearer $key" -H 'Accept: text/event-stream' "$url/mcp")
	is "$code" 405
	code=$(curl -sS -o body -w '%{http_code}' -X DELETE -H "Authorization: Bearer $key" -H "MCP-Protocol-Version: $V" "$url/mcp")
	is "$code" 405
}
the_session_protocol_has_sessions() {
	hello
	[ ${#session} = 32 ] || fail "session '$session'"
	is "$(get .result.protocolVersion)" 2025-11-25
	post '{"jsonrpc":"2.0","method":"notifications/initialized"}' -H "Mcp-Session-Id: $session"
	is "$code" 202
	old ping
	is "$(get '.result | length')" 0
	old tools/list
	is "$(get '.result.tools | length > 5')" true
	is "$(get '.result | has("resultType")')" false
	is "$(get .id)" a1
	old no/such
	is "$code $(error)" "200 -32601"
	old logging/setLevel '{"level":"loud"}'
	is "$(error)" -32602
	old logging/setLevel '{"level":"info"}'
	is "$(get '.result | length')" 0
	post '{"jsonrpc":"2.0","id":1,"method":"ping"}' -H 'MCP-Protocol-Version: 2025-11-25'
	is "$code" 400 "no session"
	post '{"jsonrpc":"2.0","id":1,"method":"ping"}' -H 'Mcp-Session-Id: 0123456789abcdef0123456789abcdef'
	is "$code" 404
	mine=$key key=$editor
	old ping
	is "$code" 404 "another key's"
	key=$mine
	code=$(curl -sS -o body -w '%{http_code}' -X DELETE -H "Authorization: Bearer $key" -H "Mcp-Session-Id: $session" "$url/mcp")
	is "$code" 200
	old ping
	is "$code" 404
}
a_known_old_version_is_confirmed_and_an_unknown_one_gets_ours() {
	hello 2025-03-26
	is "$(get .result.protocolVersion)" 2025-03-26
	hello 1999-01-01
	is "$(get .result.protocolVersion)" 2025-11-25
}
the_oldest_session_is_removed_when_there_are_too_many() {
	hello
	first=$session
	python3 - "$url" "$key" <<-'PY'
		import http.client, json, sys
		c = http.client.HTTPConnection(sys.argv[1][7:])
		for i in range(1024):
		    c.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize",
		        "params": {"protocolVersion": "2025-11-25"}}), {"Authorization": "Bearer " + sys.argv[2]})
		    r = c.getresponse(); r.read()
		    assert r.status == 200, r.status
	PY
	session=$first
	old ping
	is "$code" 404
}
# end_session: DELETE; sets code.
end_session() {
	code=$(curl -sS --max-time 120 -o body -w '%{http_code}' -X DELETE -H "Authorization: Bearer $key" -H "Mcp-Session-Id: $session" "$url/mcp")
}
another_server() { p=$(server_pid) && [ "$p" ] && [ "$p" != "$was" ]; }
kill_server() {
	was=$(server_pid)
	kill -9 "$was"
	soon another_server
}
an_mcp_session_survives_a_killed_and_a_replaced_server() {
	hello
	old logging/setLevel '{"level":"debug"}'
	old tools/call '{"name":"write_file","arguments":{"path":"kept","content":"still here"}}'
	ended=$session
	hello
	live=$session session=$ended
	end_session
	is "$code" 200
	old ping
	is "$code" 404
	hello
	third=$session
	for how in killed reloaded upgraded; do
		was=$(server_pid)
		case $how in
		killed) kill -9 "$was" ;;
		reloaded) kill -HUP "$supervisor" ;;
		upgraded) "$ATOLL" upgrade >/dev/null ;;
		esac
		soon another_server
		session=$live
		old tools/list
		is "$code $(get '.result.tools | length > 5')" "200 true" "$how: $body"
		old tools/call '{"name":"read_file","arguments":{"path":"kept"}}'
		is "$(sed -n 's/^data: //p' body | jq -r 'select(.result).result.content[0].text')$(jq -r '.result.content[0].text' body 2>/dev/null)" "still here" "$how: $body"
		mine=$key key=$editor
		old ping
		is "$code" 404 "$how: the session of another key"
		end_session
		is "$code" 404 "$how: another key ends it"
		key=$mine session=$ended
		old ping
		is "$code" 404 "$how: a session that was ended"
	done
	session=$third
	end_session
	is "$code" 200 "ended by another server than the one that began it"
	old ping
	is "$code" 404
	kill_server
	old ping
	is "$code" 404
}
a_session_keeps_its_log_level() {
	hello
	old logging/setLevel '{"level":"debug"}'
	kill_server
	old tools/call '{"name":"run_command","arguments":{"command":"true"}}'
	has "$body" notifications/message
}
an_invalid_session_id_is_rejected() {
	for session in x 0123456789ABCDEF0123456789abcdef "$(printf '\303\050')" "' OR 1=1 --" "$(head -c 4000 /dev/zero | tr '\0' a)"; do
		old ping
		is "$code" 404 "$body"
	done
}
a_call_that_was_running_in_a_killed_server_can_be_repeated() {
	seen_on_host
	hello
	old tools/call '{"name":"run_command","arguments":{"command":"true"}}'
	curl -sS --max-time 120 -o other -H "Authorization: Bearer $key" -H "Mcp-Session-Id: $session" --data-binary \
		'{"jsonrpc":"2.0","id":98,"method":"tools/call","params":{"name":"run_command","arguments":{"command":"exec sleep 7343"}}}' "$url/mcp" 2>/dev/null &
	client=$!
	soon pgrep -f '^sleep 7343'
	kill_server
	! wait $client || fail "the connection must break: $(cat other)"
	for pid in $(pgrep -f '^sleep 7343'); do kill "$pid"; done
	old tools/call '{"name":"run_command","arguments":{"command":"echo again"}}'
	has "$body" '"exit_code":0'
}
output_is_sent_as_progress_before_the_result() {
	modern tools/call '"name":"run_command","arguments":{"command":"echo one; sleep 0.3; echo two"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"progressToken":"p1"},"x":0' run_command
	is "$code" 400 "two _meta: duplicates are refused"
	post "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"run_command\",\"arguments\":{\"command\":\"echo one; sleep 0.3; echo two\"},$(echo "$META" | sed 's/}$/,"progressToken":"p1"}/')}}" \
		-H "MCP-Protocol-Version: $V" -H "Mcp-Method: tools/call" -H "Mcp-Name: run_command"
	is "$code" 200 "$body"
	has "$(header Content-Type)" text/event-stream
	sed -n 's/^data: //p' body >events
	is "$(jq -rs '[.[] | select(.method == "notifications/progress") | .params.message] | join("")' <events)" "one
two"
	is "$(jq -rs '[.[].params.progress | select(. != null)] | . == sort and length > 1' <events)" true
	is "$(jq -rs '.[-1].result.structuredContent.exit_code' <events)" 0
}
log_notifications_are_sent_when_requested() {
	hello
	old logging/setLevel '{"level":"debug"}'
	old tools/call '{"name":"run_command","arguments":{"command":"true"}}'
	has "$body" notifications/message
	old logging/setLevel '{"level":"error"}'
	old tools/call '{"name":"run_command","arguments":{"command":"true"}}'
	lacks "$body" notifications/message
}
a_disconnect_cancels_a_call_of_the_stateless_protocol() {
	seen_on_host
	modern tools/call '"name":"run_command","arguments":{"command":"true"}' run_command # the box exists now
	modern_sleep() {
		curl -sS --max-time 120 -o /dev/null -H "Authorization: Bearer $key" -H "MCP-Protocol-Version: $V" -H 'Mcp-Method: tools/call' \
			-H 'Mcp-Name: run_command' --data-binary "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"run_command\",\"arguments\":{\"command\":\"exec sleep 7341\"},$META}}" "$url/mcp" &
		client=$!
	}
	modern_sleep
	soon pgrep -f '^sleep 7341'
	kill $client
	soon no_process '^sleep 7341'
}
a_notification_cancels_a_call_of_the_session_protocol() {
	seen_on_host
	hello
	old tools/call '{"name":"run_command","arguments":{"command":"true"}}'
	curl -sS --max-time 120 -o other -H "Authorization: Bearer $key" -H "Mcp-Session-Id: $session" --data-binary \
		'{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"run_command","arguments":{"command":"exec sleep 7342"}}}' "$url/mcp" 2>/dev/null &
	soon pgrep -f '^sleep 7342'
	post '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"99"}}' -H "Mcp-Session-Id: $session"
	pgrep -f '^sleep 7342' >/dev/null || fail "another id cancelled it"
	post '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99,"reason":"no more"}}' -H "Mcp-Session-Id: $session"
	is "$code" 202
	soon no_process '^sleep 7342'
	old ping
	is "$code" 200
}
files_of_a_box_are_mcp_resources() {
	modern tools/call '"name":"write_file","arguments":{"path":"d e/ü.txt","content":"text"}' write_file
	modern tools/call '"name":"run_command","arguments":{"command":"printf \"\\\\001\\\\377\" >bin"}' run_command
	modern resources/list
	is "$code" 200 "$body"
	uri=$(get '.result.resources[] | select(.name == "ü.txt") | .uri')
	has "$uri" "/home/user/d%20e/%C3%BC.txt"
	modern resources/read "\"uri\":\"$uri\"" "$uri"
	is "$(get '.result.contents[0].text')" text "$body"
	uri=$(get '.result.contents[0].uri' | sed 's,/d%20e/.*,/bin,')
	modern resources/read "\"uri\":\"$uri\"" "$uri"
	is "$(get '.result.contents[0].blob')" Af8= "$body"
	modern resources/read "\"uri\":\"${uri}x\"" "${uri}x"
	is "$code $(error)" "200 -32602"
	is "$(get .error.data.uri)" "${uri}x"
	modern resources/read '"uri":"file:///etc/passwd"' file:///etc/passwd
	is "$(error)" -32602
	hello
	old resources/read '{"uri":"atoll://missing/x"}'
	is "$(error)" -32002
	old resources/templates/list
	is "$(get '.result.resourceTemplates[0].uriTemplate')" 'atoll://{box}/{+path}'
}
prompts_are_returned_with_their_arguments() {
	modern prompts/list
	is "$(get '.result.prompts | length')" 3
	modern prompts/get '"name":"solve","arguments":{"task":"add two numbers"}' solve
	has "$(get '.result.messages[0].content.text')" "add two numbers"
	has "$(get '.result.messages[0].content.text')" "a python program"
	modern prompts/get '"name":"solve"' solve
	is "$(error)" -32602
	modern prompts/get '"name":"dance"' dance
	is "$(error)" -32602
	modern completion/complete '"ref":{"type":"ref/prompt","name":"solve"},"argument":{"name":"language","value":"ja"}'
	is "$(get '.result.completion.values | join(" ")')" "javascript java"
}

# stdio LINE...: to `atoll mcp`; its lines are in ./lines.
stdio() {
	printf '%s\n' "$@" | ATOLL_KEY=$key timeout 120 "$ATOLL" -H "$url" mcp >lines 2>err || fail "status $?: $(cat err)"
}
stdio_supports_both_protocol_versions() {
	stdio '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' \
		'{"jsonrpc":"2.0","method":"notifications/initialized"}' \
		'{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"run_command","arguments":{"command":"echo hi"},"_meta":{"progressToken":5}}}'
	is "$(jq -r 'select(.id == 0) | .result.protocolVersion' <lines)" 2025-11-25 "$(cat lines)"
	is "$(jq -r 'select(.id == "x") | .result.structuredContent.stdout' <lines)" hi
	is "$(jq -r 'select(.method == "notifications/progress") | .params.progressToken' <lines)" 5
	stdio "{\"jsonrpc\":\"2.0\",\"id\":\"probe\",\"method\":\"server/discover\",\"params\":{$META}}" \
		"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"prompts/get\",\"params\":{\"name\":\"solve\",\"arguments\":{\"task\":\"t\"},$META}}" \
		"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"resources/read\",\"params\":{\"uri\":\"atoll://ü/ä\",$META}}"
	is "$(jq -r 'select(.id == "probe") | .result.resultType' <lines)" complete
	is "$(jq -r 'select(.id == 2) | .result.messages | length' <lines)" 1
	is "$(jq -r 'select(.id == 3) | .error.code' <lines)" -32602
}
stdio_answers_invalid_messages_and_reports_a_missing_daemon() {
	stdio 'nonsense' '[1]' '' '{"jsonrpc":"2.0","id":4,"method":"tools/list"}'
	is "$(jq -rs '[.[].error.code | tostring] | sort | join(" ")' <lines)" "-32020 -32600 -32700" "$(cat lines)"
	is "$(jq -rs '[.[] | select(.id == 4)] | length' <lines)" 1
	url=http://127.0.0.1:1
	stdio '{"jsonrpc":"2.0","id":5,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}'
	is "$(jq -r .error.code <lines)" -32603
	is "$(jq -r .id <lines)" 5
}
stdio_cancels_in_both_protocol_versions() {
	seen_on_host
	cat >cancel.py <<-'PY'
		import json, os, subprocess, sys, time
		atoll, url, old = sys.argv[1:4]
		V = "2026-07-28"
		meta = {} if old == "1" else {"_meta": {"io.modelcontextprotocol/protocolVersion": V,
		                                        "io.modelcontextprotocol/clientCapabilities": {}}}
		p = subprocess.Popen([atoll, "-H", url, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
		def say(**m):
		    p.stdin.write(json.dumps({"jsonrpc": "2.0", **m}) + "\n"); p.stdin.flush()
		def there():
		    return subprocess.run(["pgrep", "-f", "^sleep 735" + old], capture_output=True).returncode == 0
		def until(what):
		    end = time.time() + 60
		    while time.time() < end:
		        if what(): return
		        time.sleep(0.02)
		    sys.exit("never came true")
		if old == "1":
		    say(id=0, method="initialize", params={"protocolVersion": "2025-11-25", "capabilities": {}})
		    assert json.loads(p.stdout.readline())["id"] == 0
		say(id=1, method="tools/call", params={"name": "run_command", "arguments": {"command": "exec sleep 735" + old}, **meta})
		until(there)
		say(method="notifications/cancelled", params={"requestId": 1})
		until(lambda: not there())
		p.stdin.close()
		p.wait(60)
	PY
	for old in 0 1; do
		ATOLL_KEY=$key python3 cancel.py "$ATOLL" "$url" $old || fail "era $old"
	done
}
stdio_continues_when_the_daemon_has_lost_its_session() {
	cat >forget.py <<-'PY'
		import json, subprocess, sys
		atoll, url, key = sys.argv[1:4]
		p = subprocess.Popen([atoll, "-H", url, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
		def ask(**m):
		    p.stdin.write(json.dumps({"jsonrpc": "2.0", **m}) + "\n"); p.stdin.flush()
		    return json.loads(p.stdout.readline())
		hello = {"protocolVersion": "2025-11-25", "capabilities": {}}
		ask(id=0, method="initialize", params=hello)
		import http.client
		c = http.client.HTTPConnection(url[7:])
		for i in range(1024): # the daemon keeps that many sessions: ours is dropped
		    c.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
		              {"Authorization": "Bearer " + key})
		    c.getresponse().read()
		answer = ask(id=1, method="ping")
		assert answer.get("result") == {}, answer
		p.stdin.close()
		assert p.wait(60) == 0
	PY
	ATOLL_KEY=$key python3 forget.py "$ATOLL" "$url" "$key"
}
stdio_answers_a_call_that_was_running_in_a_killed_server() {
	seen_on_host
	cat >killed.py <<-'PY'
		import json, os, signal, subprocess, sys, time
		atoll, url, supervisor = sys.argv[1:4]
		def pids(*how):
		    return [int(x) for x in subprocess.run(["pgrep", *how], capture_output=True, text=True).stdout.split()]
		def server():
		    return pids("-P", supervisor, "-x", "atoll-server")
		def until(what):
		    end = time.time() + 60
		    while time.time() < end:
		        if what(): return
		        time.sleep(0.02)
		    sys.exit("never came true")
		p = subprocess.Popen([atoll, "-H", url, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
		def say(**m):
		    p.stdin.write(json.dumps({"jsonrpc": "2.0", **m}) + "\n"); p.stdin.flush()
		def answer(id):
		    while True:
		        line = p.stdout.readline()
		        if not line: sys.exit("it ended without an answer to %s" % id)
		        m = json.loads(line)
		        if m.get("id") == id: return m
		say(id=0, method="initialize", params={"protocolVersion": "2025-11-25", "capabilities": {}})
		answer(0)
		for n, token in enumerate(({}, {"_meta": {"progressToken": 1}})): # an answer at the end; a stream
		    say(id=1, method="tools/call", params={"name": "run_command", **token,
		        "arguments": {"command": "echo begun; exec sleep 7344"}})
		    until(lambda: pids("-f", "^sleep 7344"))
		    was = server()
		    for x in was: os.kill(x, signal.SIGKILL)
		    m = answer(1)
		    assert m["error"]["code"] == -32603, m
		    assert "may have run" in m["error"]["message"], m
		    for x in pids("-f", "^sleep 7344"): os.kill(x, signal.SIGKILL)
		    say(id=2, method="tools/list")
		    assert len(answer(2)["result"]["tools"]) > 5
		    until(lambda: server() and server() != was)
		p.stdin.close()
		assert p.wait(60) == 0
	PY
	ATOLL_KEY=$key timeout 120 python3 killed.py "$ATOLL" "$url" "$supervisor" || fail "status $?"
}

run_daemon_tests
