#!/bin/sh
# tools.sh - the tools of docs/agents.md over /v1: their effects, errors and redaction.
. "$(dirname "$0")/daemon.lib"

# tool NAME ARGS [CURL OPTION...]: sets code, body.
tool() {
	name=$1 args=$2
	shift 2
	api POST "/v1/boxes/$box/tools/$name" "$args" "$@"
}
text() { get .text; }

every_format_lists_the_same_tools() {
	api GET /v1/tools
	is "$code" 200 "$body"
	has "$(get '[.tools[].name] | join(" ")')" "read_file"
	is "$(get '.tools[] | select(.name == "RunTerminalCommand") | .alias_of')" run_command
	all=$(get '[.tools[] | select(.alias_of == null) | .name] | join(" ")')
	for form in openai:.function.name openai-responses:.name anthropic:.name; do
		api GET "/v1/tools?format=${form%%:*}"
		is "$(get "[.tools[] | ${form#*:}] | join(\" \")")" "$all" "$form"
	done
	api GET "/v1/tools?format=mcp"
	has "$(get '[.tools[].name] | join(" ")')" "$(echo "$all" | cut -d ' ' -f 1-5)"
	api GET "/v1/tools?format=latin"
	is "$code" 400
}
the_strict_schema_of_openai_requires_every_field() {
	api GET "/v1/tools?format=openai"
	is "$(get '[.tools[].function.parameters | (.properties | keys) == (.required | sort)] | all')" true
	is "$(get '[.tools[].function.parameters.additionalProperties] | any')" false
	is "$(get '.tools[0].function.parameters.properties.start_line.type | join(" ")')" "integer null"
	lacks "$body" '"maximum"'
}
tools_of_a_desktop_state_what_the_box_lacks() {
	new_box
	tool screenshot '{}'
	is "$code $(get '"\(.is_error) \(.data.error.code)"')" "200 true no_desktop" "$body"
	has "$(text)" "use a box of the template desktop"
	tool click '{"x":1}'
	is "$(get .is_error)" true
	is "$(text)" "y: is missing; give x and y, or neither"
	tool open_url '{"url":"--headless"}'
	has "$(text)" "url: '--headless' begins with none of http://"
	api POST "/v1/boxes/$box/tools/anthropic" '{"type":"tool_use","id":"t1","name":"computer","input":{"action":"left_click","coordinate":[1,2]}}'
	is "$(get '"\(.tool_use_id) \(.is_error)"')" "t1 true" "$body"
	has "$(get .content)" "use a box of the template desktop"
	api POST "/v1/boxes/$box/tools/anthropic" '{"type":"tool_use","id":"t2","name":"computer","input":{"action":"fly"}}'
	has "$(get .content)" "action: 'fly' is none of screenshot"
	key=$viewer
	tool screenshot '{}'
	is "$(get .data.error.code)" no_desktop "a viewer may look: $body"
	tool click '{}'
	is "$(get .data.error.code)" denied "$body"
}
a_file_tool_is_accepted_by_any_of_its_names() {
	new_box
	tool write_file '{"path":"a/b.txt","content":"one\ntwo\nthree\n"}'
	is "$code" 200 "$body"
	is "$(get .is_error)" false
	tool ReadFile '{"path":"a/b.txt"}'
	is "$(text)" "one
two
three"
	tool read_file '{"path":"/home/user/a/b.txt","start_line":2,"end_line":2}'
	is "$(get .data.content)" two
	is "$(get .data.lines)" 3
	tool read_file '{"path":"a/b.txt","start_line":null}'
	is "$(get .is_error)" false
}
an_invalid_tool_request_names_the_json_path() {
	new_box
	tool read_file '{"path":"x","colour":"red"}'
	is "$code" 400
	has "$(get .error.message)" "colour: is not a field"
	tool read_file '{}'
	has "$(get .error.message)" "path: is missing"
	tool read_file '{"path":7}'
	has "$(get .error.message)" "path: must be a string"
	tool read_file '[1]'
	is "$code" 400
	tool read_file '{"path":'
	is "$code" 400
	tool nothing '{}'
	is "$code" 404
	tool create_box '{}'
	is "$code" 404
	box=missing
	tool read_file '{"path":"x"}'
	is "$code" 404
}
failures_inside_the_box_are_tool_results() {
	new_box
	tool read_file '{"path":"nothing.txt"}'
	is "$code" 200
	is "$(get .is_error)" true
	is "$(get .data.error.code)" not_found
	tool read_file '{"path":"/home"}'
	is "$(get .is_error)" true
	tool write_file '{"path":"/usr/x","content":"x"}'
	is "$(get .is_error)" true
	tool run_command '{"command":"echo out; echo err >&2; exit 3"}'
	is "$code" 200
	is "$(get .is_error)" true
	is "$(get .data.exit_code)" 3
	is "$(get .data.stdout)" out
	is "$(get .data.stderr)" err
	has "$(text)" "[exit 3"
}
a_folder_is_listed_and_searched() {
	new_box
	tool write_file '{"path":"src/main.c","content":"int main(void)\n{\n\treturn 0;\n}\n"}'
	tool list_files '{}'
	is "$(text)" "/home/user/src/"
	tool list_files '{"depth":2}'
	has "$(text)" "/home/user/src/main.c"
	tool search_files '{"content":"RETURN","ignore_case":true}'
	has "$(text)" "/home/user/src/main.c:3:"
	tool search_files '{"name":"*.c"}'
	is "$(text)" "/home/user/src/main.c"
	tool search_files '{}'
	is "$(get .is_error)" true
}
an_edit_needs_exactly_one_occurrence_of_its_text() {
	new_box
	tool write_file '{"path":"f","content":"a b a\n"}'
	tool edit_file '{"path":"f","old_str":"b","new_str":"c"}'
	is "$(get .is_error)" false "$body"
	tool edit_file '{"path":"f","old_str":"a","new_str":"x"}'
	is "$(get .is_error)" true
	has "$(text)" "2 times"
	tool edit_file '{"path":"f","old_str":"a","new_str":"x","replace_all":true}'
	is "$(get .data.replaced)" 2
	tool edit_file '{"path":"f","old_str":"gone","new_str":"x"}'
	is "$(get .data.error.code)" no_match
	tool read_file '{"path":"f"}'
	is "$(text)" "x c x"
}
long_tool_output_loses_its_middle() {
	new_box
	tool run_command '{"command":"seq 1 100000"}'
	is "$(get .data.truncated)" true
	is "$(get '.data.stdout | startswith("1\n2\n")')" true
	is "$(get '.data.stdout | endswith("99999\n100000\n")')" true
	has "$(text)" "bytes left out; read_output exec=$(get .data.exec)"
	[ "$(wc -c <body)" -lt 120000 ] || fail "$(wc -c <body) bytes"
	api GET "/v1/boxes/$box/execs/$(get .data.exec)"
	is "$code" 200
}
secrets_of_the_box_are_redacted_in_tool_output() {
	new_box '{"env":{"API_TOKEN":"hunter2hunter2","PLAIN":"visible1"}}'
	tool run_command '{"command":"printf hunter2; sleep 0.1; printf \"hunter2 $PLAIN $API_TOKEN\"; echo $API_TOKEN >f"}'
	is "$(get .data.stdout)" "[API_TOKEN] visible1 [API_TOKEN]"
	lacks "$body" hunter2
	tool read_file '{"path":"f"}'
	lacks "$body" hunter2
	tool search_files '{"content":"hunter2"}'
	lacks "$body" hunter2
}
output_is_streamed_when_requested() {
	new_box
	tool run_command '{"command":"echo a; echo b >&2"}' -H 'Accept: application/x-ndjson'
	is "$code" 200
	is "$(jq -rs '[.[].type] | sort | join(" ")' <body)" "result stderr stdout"
	is "$(jq -rs '.[-1].data.exit_code' <body)" 0
}
a_program_is_run_and_its_time_is_limited() {
	new_box
	tool run_code '{"code":"print(6*7)"}'
	is "$(get .data.stdout)" 42 "$body"
	tool run_command '{"command":"sleep 20","timeout_ms":200}'
	is "$(get .data.timed_out)" true
	is "$(get .is_error)" true
	tool run_command '{"command":"sleep 20","background":true}'
	is "$(get .data.running)" true
}
a_viewer_may_use_reading_tools_only() {
	new_box
	tool write_file '{"path":"f","content":"x"}'
	key=$viewer
	tool read_file '{"path":"f"}'
	is "$(text)" x
	tool write_file '{"path":"f","content":"y"}'
	is "$(get .data.error.code)" denied
	key=wrong
	tool read_file '{"path":"f"}'
	is "$code" 401
}

# patch TEXT: with apply_patch.
patch() { tool apply_patch "$(jq -cn --arg p "$1" '{patch:$p}')"; }
a_patch_is_applied_completely_or_not_at_all() {
	new_box
	tool write_file '{"path":"a.py","content":"def f():\n    return 1\n\ndef g():\n    return 1\n"}'
	tool write_file '{"path":"old.txt","content":"x\n"}'
	patch '*** Begin Patch
*** Update File: a.py
@@ def g():
-    return 1
+    return 2
*** Add File: sub/new.txt
+hello
*** Delete File: old.txt
*** End Patch'
	is "$(get .is_error)" false "$body"
	tool read_file '{"path":"a.py"}'
	is "$(text)" "def f():
    return 1

def g():
    return 2"
	tool read_file '{"path":"sub/new.txt"}'
	is "$(text)" hello
	tool read_file '{"path":"old.txt"}'
	is "$(get .is_error)" true
	patch '*** Begin Patch
*** Update File: sub/new.txt
-hello
+changed
*** Update File: a.py
-    return 7
+    return 8
*** End Patch'
	is "$(get .data.error.code)" no_match "$body"
	has "$(text)" "return 7"
	tool read_file '{"path":"sub/new.txt"}'
	is "$(text)" hello "nothing was changed"
	patch '*** Begin Patch
*** Update File: sub/new.txt
*** Move to: moved.txt
-hello
+moved
*** End Patch'
	tool list_files '{"depth":2}'
	has "$(text)" moved.txt
	lacks "$(text)" new.txt
	patch 'nonsense'
	has "$(text)" "line 1 of the patch"
	patch '*** Begin Patch
*** Add File: a.py
+x
*** End Patch'
	is "$(get .data.error.code)" exists
}
truncated_output_can_be_read_later() {
	new_box
	tool run_command '{"command":"seq 1 100000"}'
	exec=$(get .data.exec)
	tool read_output "{\"exec\":\"$exec\",\"offset\":100000,\"limit\":1000}"
	is "$(get .is_error)" false "$body"
	is "$(get '.data.output | length')" 1000
	is "$(get .data.next)" 101000
	is "$(get .data.tip)" 588895
	tool read_output "{\"exec\":\"$exec\",\"stream\":\"stderr\"}"
	is "$(get .data.output)" ""
	tool read_output '{"exec":"nothing"}'
	is "$(get .data.error.code)" not_found
	tool run_command '{"command":"echo begun; exec sleep 100","background":true}'
	exec=$(get .data.exec)
	begun() { tool read_output "{\"exec\":\"$exec\"}" && [ "$(get .data.output)" = begun ]; }
	soon begun
}
a_port_is_open_when_a_process_listens() {
	new_box
	tool open_port '{"port":8123}'
	is "$(get .data.error.code)" not_open "$body"
	tool run_command '{"command":"exec python3 -m http.server 8123","background":true}'
	listens() { tool open_port '{"port":8123}' && [ "$(get .is_error)" = false ]; }
	soon listens
	has "$(get .data.url)" "http://8123-$box."
}
package_names_that_look_like_options_are_rejected() {
	new_box
	tool install_packages '{"packages":["--index-url=http://x"]}'
	is "$(get .data.error.code)" invalid "$body"
	has "$(text)" "packages[0]"
	tool install_packages '{"packages":[]}'
	is "$(get .data.error.code)" invalid
	tool install_packages '{"packages":["x"],"manager":"emerge"}'
	is "$(get .data.error.code)" invalid
	for row in pip=packages.pip_index npm=packages.npm_registry gem=packages.gem_source; do
		tool install_packages "{\"packages\":[\"left-pad\"],\"manager\":\"${row%=*}\"}" # at once, by name
		is "$(get '"\(.is_error) \(.data.error.code)"')" "true not_configured" "$body"
		has "$(text)" "${row#*=}"
	done
}
# openai JQ-EXPRESSION, anthropic JQ-EXPRESSION: a tool call in the format of that provider.
openai() { api POST "/v1/boxes/$box/tools/openai" "$(jq -cn "$1")"; }
anthropic() { api POST "/v1/boxes/$box/tools/anthropic" "$(jq -cn "$1")"; }
openai_tool_calls_are_answered_in_openai_format() {
	new_box
	openai '{id:"call_1",type:"function",function:{name:"write_file",arguments:"{\"path\":\"f\",\"content\":\"one\\n\"}"}}'
	is "$code" 200 "$body"
	is "$(get '.role + " " + .tool_call_id')" "tool call_1"
	openai '{type:"function_call",call_id:"c2",id:"fc_1",name:"read_file",arguments:"{\"path\":\"f\",\"start_line\":null,\"end_line\":null}"}'
	is "$(get '.type + " " + .call_id + " " + .output')" "function_call_output c2 one"
	openai '{type:"function_call",call_id:"c3",name:"read_file",arguments:"{cut"}'
	has "$(get .output)" "not JSON"
	openai '{type:"function_call",call_id:"c3",name:"nothing",arguments:"{}"}'
	has "$(get .output)" "no such tool"
	openai '{type:"shell_call",call_id:"c4",action:{commands:["echo a; echo b >&2; exit 2","sleep 9"],timeout_ms:300,max_output_length:1000}}'
	is "$(get '.type + " " + .call_id')" "shell_call_output c4"
	is "$(get '.output[0] | .stdout + .stderr')" "a
b"
	is "$(get '.output[0].outcome | .type + " " + (.exit_code | tostring)')" "exit 2"
	is "$(get '.output[1].outcome.type')" timeout
	is "$(get .max_output_length)" 1000
	openai '{type:"apply_patch_call",call_id:"c5",operation:{type:"update_file",path:"f",diff:"@@\n-one\n+two\n"}}'
	is "$(get '.type + " " + .status')" "apply_patch_call_output completed" "$body"
	openai '{type:"apply_patch_call",call_id:"c6",operation:{type:"create_file",path:"n",diff:"+new\n"}}'
	is "$(get .status)" completed "$body"
	openai '{type:"apply_patch_call",call_id:"c7",operation:{type:"delete_file",path:"n"}}'
	is "$(get .status)" completed "$body"
	openai '{type:"apply_patch_call",call_id:"c8",operation:{type:"delete_file",path:"n"}}'
	is "$(get .status)" failed
	tool read_file '{"path":"f"}'
	is "$(text)" two
	openai '{type:"dance"}'
	is "$code" 400
}
anthropic_tool_calls_are_answered_in_anthropic_format() {
	new_box
	use() { anthropic "{type:\"tool_use\",id:\"t1\",name:\"$1\",input:$2}"; }
	use bash '{command:"cd /tmp && export A=5 && f() { echo f$A; } && echo $PWD"}'
	is "$(get '.type + " " + .tool_use_id')" "tool_result t1" "$body"
	has "$(get .content)" /tmp
	use bash '{command:"f; pwd; exit 3"}'
	has "$(get .content)" "f5
/tmp"
	has "$(get .content)" "[exit 3"
	is "$(get .is_error)" true
	use bash '{command:"f"}'
	has "$(get .content)" f5
	use bash '{restart:true}'
	use bash '{command:"pwd; f"}'
	has "$(get .content)" /home/user
	has "$(get .content)" "[exit 127"
	use str_replace_based_edit_tool '{command:"create",path:"/home/user/p.py",file_text:"a\nb\nc\n"}'
	is "$(get .is_error)" null "$body"
	use str_replace_based_edit_tool '{command:"str_replace",path:"p.py",old_str:"b",new_str:"B"}'
	is "$(get .is_error)" null "$body"
	use str_replace_based_edit_tool '{command:"insert",path:"p.py",insert_line:1,insert_text:"between"}'
	is "$(get .is_error)" null "$body"
	use str_replace_based_edit_tool '{command:"view",path:"p.py",view_range:[2,-1]}'
	is "$(get .content)" "     2	between
     3	B
     4	c"
	use str_replace_based_edit_tool '{command:"view",path:"/home/user"}'
	has "$(get .content)" /home/user/p.py
	use str_replace_editor '{command:"view",path:"nothing"}'
	is "$(get .is_error)" true
	use str_replace_based_edit_tool '{command:"undo_edit",path:"p.py"}'
	is "$(get .is_error)" true
	use run_command '{command:"echo hi"}'
	has "$(get .content)" hi
	anthropic '{type:"text"}'
	is "$code" 400
}

oversized_tool_requests_are_rejected_and_a_disconnect_cancels() {
	new_box
	python3 - "$url" "$key" "$box" <<-'PY'
		import http.client, json, socket, sys
		host, key, box = sys.argv[1][7:], sys.argv[2], sys.argv[3]
		c = http.client.HTTPConnection(host, timeout=120)
		def tool(name, body):
		    c.request("POST", f"/v1/boxes/{box}/tools/{name}", body, {"X-API-Key": key})
		    r = c.getresponse()
		    return r.status, r.read()
		status, body = tool("run_command", json.dumps({"command": ":" + " " * (1 << 20)}))
		assert status == 400 and b"too many" in body, (status, body[:200])
		status, body = tool("run_command", json.dumps({"command": "echo " + "x" * 100000 + " | wc -c"}))
		assert json.loads(body)["data"]["stdout"] == "100001\n", body[:300]
		assert tool("apply_patch", json.dumps({"patch": "*** Begin Patch\n" + "x" * (1 << 21)}))[0] == 200
		assert tool("read_file", b'{"path": "\xff"}')[0] == 400
		assert tool("read_file", b'{"path": "a\\u0000b"}')[0] == 400
		assert tool("read_file", b"[" * 100000)[0] == 413
		for i in range(20): # disconnects during its stream
		    s = socket.create_connection((host.split(":")[0], int(host.split(":")[1])), 10)
		    text = json.dumps({"command": "yes | head -c 3000000"})
		    s.sendall(f"POST /v1/boxes/{box}/tools/run_command HTTP/1.1\r\nHost: {host}\r\nX-API-Key: {key}\r\n"
		              f"Accept: application/x-ndjson\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())
		    s.recv(10)
		    s.close()
		for i in range(200):
		    status, body = tool("list_files", b"{}")
		    assert status == 200, (status, body)
	PY
}

run_daemon_tests
