#!/bin/sh
# e2b_interpreter.sh - port 49999 of a box: executions and contexts of E2B clients.
. "$(dirname "$0")/daemon.lib"

# sandbox: sets box, traffic.
sandbox() {
	api POST /v2/sandboxes '{"templateID":"code-interpreter-v1"}'
	is "$code" 201 "$body"
	box=$(get .sandboxID) traffic=$(get .trafficAccessToken)
}
# port METHOD PATH [BODY]: of the interpreter.
port() {
	code=$(curl -sS --max-time 120 -o body -D head -w '%{http_code}' -X "$1" -H "E2b-Sandbox-Id: $box" \
		-H 'E2b-Sandbox-Port: 49999' -H "E2B-Traffic-Access-Token: $traffic" ${3:+--data-binary "$3"} "$url$2")
	body=$(tr '\0' '?' <body)
}
# execute CODE [FIELDS]: its lines are in the file body.
execute() {
	jq -nc --arg code "$1" "{code: \$code${2:+, $2}}" >ask
	port POST '/execute?source=test' @ask
}
lines() { jq -c "select(.type == \"$1\")" <body; }
# begin CODE: in the background, into the file events; returns after the event with its number.
begin() {
	jq -nc --arg code "$1" "{code: \$code}" >ask.bg
	: >events
	curl -sS -N -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 49999' -H "E2B-Traffic-Access-Token: $traffic" --data-binary @ask.bg \
		"$url/execute" >events 2>events.err &
	running=$!
	soon grep -q execution_count events
}
have() { [ -x "/usr/bin/$1" ] || skip "no $1 on this host"; }

# ---- executions ----

an_execution_is_answered_as_json_lines() {
	sandbox
	port GET /health
	is "$code" 200
	execute 'import sys
print("hello")
print("wrong", file=sys.stderr)
x = 1
x'
	is "$code" 200 "$body"
	is "$(jq -r .type <body | tr '\n' ' ')" "number_of_executions stdout stderr result end_of_execution "
	is_json "$(lines number_of_executions)" '{"type":"number_of_executions","execution_count":1}'
	is "$(lines stdout | jq -r .text)" hello
	has "$(lines stdout | jq -r .timestamp)" T
	is_json "$(lines result)" '{"type":"result","is_main_result":true,"extra":{},"text":"1"}'
	execute 'x += 1; x' 'context_id: null, language: null, env_vars: null'
	is "$(lines result | jq -r .text)$(lines number_of_executions | jq .execution_count)" 22
	lacks "$(cat head)" Content-Length
}

output_lines_are_ascii_for_any_bytes() {
	sandbox
	execute 'import os
os.write(1, "\u00e9\U0001f600".encode() + b"\xff\x00.")
"\u00e9"'
	is "$(LC_ALL=C tr -d '\000-\177' <body | wc -c)" 0
	is "$(lines stdout | jq '.text | explode | tostring' -r)" "[233,128512,65533,0,46]"
	is "$(lines result | jq -r .text)" é
}

results_have_the_fields_of_their_types() {
	sandbox
	execute "'quoted'"
	is "$(lines result | jq -r .text)" quoted
	execute '{"a": [1, 2.5, None]}'
	is "$(lines result | jq -c .json)" '{"a":[1,2.5,null]}'
	execute 'class Rich:
    def _repr_html_(self): return "<b>"
    def _repr_mimebundle_(self, **_): return {"text/latex": "$x$", "application/x-own": "own"}
    def __repr__(self): return "rich"
display(Rich())
Rich()'
	is "$(lines result | jq -c '[.is_main_result, .text, .html, .latex, .extra]' | tr '\n' ' ')" \
		'[false,"rich","<b>","$x$",{"application/x-own":"own"}] [true,"rich","<b>","$x$",{"application/x-own":"own"}] '
}

a_data_frame_has_its_columns_as_data() {
	sandbox
	execute 'import pandas'
	[ "$(lines error)" ] && skip "no pandas"
	execute 'pandas.DataFrame({"a": [1, 2], "t": pandas.to_datetime(["2024-01-02", None])})'
	is "$(lines result | jq -c .data)" '{"a":[1,2],"t":["2024-01-02T00:00:00",null]}'
	has "$(lines result | jq -r .html)" "<table"
}

a_matplotlib_figure_has_a_png_and_chart_data() {
	sandbox
	execute 'import matplotlib.pyplot as plt'
	[ "$(lines error)" ] && skip "no matplotlib"
	execute '
    plt.bar(["a", "b"], [1, 2], label="some")
    plt.xlabel("Time (s)")
    plt.show()
    '
	is "$(lines error)" ""
	is "$(lines result | jq -r .png | base64 -d | head -c 4 | tail -c 3)" PNG
	has "$(lines result | jq -r .text)" Figure
	# `* 1`: jq 1.7 prints a number that it only copies as it was written, 1.0; jq 1.6 prints 1.
	is_json "$(lines result | jq -c '.chart | .elements[].value *= 1')" '{"type":"bar","title":null,"x_label":"Time (s)","x_unit":"s","y_label":null,"y_unit":null,"elements":[{"label":"a","group":"some","value":1},{"label":"b","group":"some","value":2}]}'
	is "$(lines result | jq -c '[.is_main_result, .extra]')" '[false,{}]'
}

an_error_has_a_plain_traceback() {
	sandbox
	execute 'def f():
    return 1 / 0
f()'
	is "$(lines error | jq -r '.name + ": " + .value')" "ZeroDivisionError: division by zero"
	has "$(lines error | jq -r .traceback)" "line 2, in f"
	lacks "$(lines error)" 'u001b'
	is "$(tail -1 body)" '{"type":"end_of_execution"}'
	execute '%nonsense'
	is "$(lines error | jq -r .traceback)" 'UsageError: Line magic function `%nonsense` not found.'
	execute 'input("name? ")'
	is "$(lines error | jq -r .name)" EOFError
}

env_vars_apply_to_one_execution() {
	sandbox
	execute 'import os; os.environ.get("FOO", "none")' 'env_vars: {FOO: "bar"}'
	is "$(lines result | jq -r .text)" bar
	execute 'os.environ.get("FOO", "none")'
	is "$(lines result | jq -r .text)" none
	execute 1 'env_vars: {FOO: 1}'
	is "$code" 400
}

invalid_executions_are_rejected_with_a_message() {
	sandbox
	execute 1 'language: "python", context_id: "python"'
	is "$code $body" "400 Only one of context_id or language can be provided"
	execute 1 'context_id: "missing"'
	is "$code $body" "404 Context missing not found"
	execute 1 'language: "klingon"'
	is "$code" 400
	port POST /execute '{}'
	is "$code" 400
	port POST /execute '{"code": 5}'
	is "$code" 400
	port POST /execute 'no json'
	is "$code" 400
	port GET /nothing
	is "$code" 404
	box=missingmissing
	execute 1
	is "$code" 502
}

keepalives_are_sent_and_a_disconnect_interrupts_the_execution() {
	sandbox
	begin 'import time
try:
    time.sleep(60)
except KeyboardInterrupt:
    print("told", file=open("/tmp/told", "w"))
    raise'
	soon grep -q keepalive events # within 5 s
	kill $running
	execute '1 + 1' # waits for the previous execution
	is "$(lines result | jq -r .text)" 2
	execute 'open("/tmp/told").read()'
	has "$(lines result)" told
}

connections() { api GET /metrics && sed -n 's/^atoll_http_connections //p' body; }
connected() { [ "$(connections)" = "$1" ]; }

a_queued_execution_of_a_disconnected_client_is_dropped() {
	sandbox
	begin 'import time
while not __import__("os").path.exists("/tmp/go"): time.sleep(0.02)'
	before=$(connections)
	curl -sS -N -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 49999' -H "E2B-Traffic-Access-Token: $traffic" \
		--data-binary '{"code": "open(\"/tmp/never\", \"w\")"}' "$url/execute" >/dev/null 2>&1 &
	soon connected $((before + 1))
	kill $!
	soon connected "$before" # the server has noticed the disconnect
	execute 'touch /tmp/go' 'language: "bash"' # another context does not wait
	execute '__import__("os").path.exists("/tmp/never")'
	is "$(lines result | jq -r .text)" False
	wait $running
	is "$(tail -1 events)" '{"type":"end_of_execution"}'
}

the_end_of_a_sandbox_aborts_its_executions() {
	sandbox
	begin 'import time; time.sleep(60)'
	api DELETE "/sandboxes/$box"
	is "$code" 204
	status=0
	wait $running || status=$?
	[ "$status" = 18 ] || [ "$status" = 56 ] || fail "curl ended with $status: $(cat events)"
	lacks "$(cat events)" end_of_execution
	port GET /health
	is "$code" 502
}

an_interpreter_that_exited_is_replaced() {
	sandbox
	execute 'x = 1; import os; os._exit(3)'
	is "$(lines error | jq -r .name)" ContextRestarting
	is "$(tail -1 body)" '{"type":"end_of_execution"}'
	execute '"x" in globals()'
	is "$(lines result | jq -r .text)$(lines number_of_executions | jq .execution_count)" False1
}

# ---- languages ----

each_language_has_its_own_default_context() {
	have node
	sandbox
	execute 'let x = 41' 'language: " JavaScript "'
	execute 'await Promise.resolve("v" + (x + 1))' 'language: "js"'
	is "$(lines result | jq -r .text)" v42
	execute 'cd /tmp; y=$FOO' 'language: "bash", env_vars: {FOO: "f"}'
	execute 'pwd; echo $y' 'language: "bash"'
	is "$(lines stdout | jq -rj .text)" "/tmp
f"
}

r_and_java_keep_their_state() {
	sandbox
	if [ -x /usr/bin/Rscript ]; then
		execute 'x <- 6' 'language: "r"'
		execute 'x * 7' 'language: "R"'
		is "$(lines result | jq -r .text)" "[1] 42"
	fi
	if [ -x /usr/bin/jshell ]; then
		execute 'int x = 6;' 'language: "java"'
		execute 'System.getProperty("user.dir") + x + System.getProperty("A")' 'language: "java", env_vars: {A: "1"}'
		is "$(lines result | jq -r .text)" /home/user61 "$body"
	fi
}

# A line whose parts are more than 50 ms apart is sent in parts: on a busy machine that happens to a few of 40 lines, while
# without the joining it happens to all.
few_lines_are_cut() {
	local cut

	cut=$(lines stdout | jq -r 'select(.text | endswith("\n") | not) | 1' | wc -l)
	[ "$cut" -le 10 ] || fail "$cut parts of lines: $body"
}

# R writes a line in three parts, and a client that prints each part as a line shows three lines.
a_line_written_in_parts_is_one_output_line() {
	sandbox
	execute 'import os, time
for i in range(40):
    for piece in (b"[1]", b" \"Hello, World!\"", b"\n"):
        os.write(1, piece)
        time.sleep(0.001)'
	is "$(lines stdout | jq -rj .text | wc -l)" 40
	few_lines_are_cut
	if [ -x /usr/bin/Rscript ]; then
		execute 'for (i in 1:40) print("Hello, World!")' 'language: "r"'
		is "$(lines stdout | jq -rj .text | wc -l)" 40 "$body"
		few_lines_are_cut
	fi
	# An incomplete line is sent after a moment, before another event, and at the end.
	begin 'import time
print("half a line", end="", flush=True)
time.sleep(60)'
	soon grep -q 'half a line' events
	kill "$running"
	execute 'display(1)
print("a", end="", flush=True)
display(2)
print("b", end="")'
	# Results and output arrive on two descriptors, so their order is not fixed.
	is "$(lines stdout | jq -rj .text)" ab "$body"
	is "$(jq -r 'select(.type == "result").text' <body | tr '\n' ' ')" '1 2 ' "$body"
}

a_language_without_state_runs_without_a_context() {
	have perl
	sandbox
	execute 'print "out\n"; exit 3' 'language: "perl"'
	is "$(jq -r .type <body | tr '\n' ' ')" "number_of_executions stdout error end_of_execution "
	is "$(lines stdout | jq -r .text)" out
}

# ---- contexts ----

contexts_are_created_listed_and_removed() {
	sandbox
	port GET /contexts
	is "$(get '[.[].language] | tostring')" '["python","javascript"]'
	port POST /contexts '{}'
	is "$code $(get '.language + .cwd')" "200 python/home/user"
	mine=$(get .id)
	port POST /contexts '{"language": "python", "cwd": "/root"}'
	is "$code $(get .cwd)" "200 /root" "$body"
	other=$(get .id)
	port GET /contexts
	is "$(get '.[-1].id')" "$other"
	execute 'x = 1; x' "context_id: \"$mine\""
	execute 'x' "context_id: \"$other\""
	is "$(lines error | jq -r .value)" "name 'x' is not defined"
	execute 'import os; os.getcwd()' "context_id: \"$other\""
	is "$(lines result | jq -r .text)" /root
	api GET "/v1/boxes/$box/contexts"
	has "$body" "$mine"
	port DELETE "/contexts/$mine"
	is "$code" 200
	execute 1 "context_id: \"$mine\""
	is "$code" 404
	port DELETE "/contexts/$mine"
	is "$code" 404
	port POST /contexts '{"language": "klingon"}'
	is "$code" 400
	port POST /contexts '{"cwd": "/nowhere"}'
	is "$code" 500
}

a_restart_clears_the_state_and_keeps_the_context_id() {
	sandbox
	execute 'x = 1'
	port POST /contexts/python/restart
	is "$code" 200 "$body"
	execute 'x' 'context_id: "python"'
	is "$(lines error | jq -r .name)$(lines number_of_executions | jq .execution_count)" NameError1
	port POST /contexts/javascript/restart # a context that was never used
	is "$code" 200
	port POST /contexts/missing/restart
	is "$code" 404
}

run_daemon_tests
