#!/bin/sh
# api_contexts.sh - cells in interpreters that keep their state, with the real drivers.
. "$(dirname "$0")/daemon.lib"
slow_tests="a_cell_that_is_being_sent_when_the_old_server_ends_is_not_dropped
	cells_of_two_servers_get_their_own_results
	a_gigabyte_of_cell_output_uses_little_server_memory"

py() { python3 "$here/contexts.py" "$@"; }
# context [LANGUAGE]: in $box; sets ctx and at, the path of it.
context() {
	api POST "/v1/boxes/$box/contexts" "{\"language\":\"${1:-python}\"}"
	is "$code" 201 "$body"
	ctx=$(get .id) at=/v1/boxes/$box/contexts/$ctx
}
# cell CODE [MORE FIELDS]: executes a cell; the answer is in body.
cell() { api POST "$at/cells" "$(jq -nc --arg code "$1" "{code: \$code${2:+, $2}}")"; }
# stream CODE [FIELDS]: its events, one a line, into the file events.
stream() {
	curl -sS -N --max-time 120 -H "X-API-Key: $key" -H 'Accept: application/x-ndjson' \
		--data-binary "$(jq -nc --arg code "$1" "{code: \$code${2:+, $2}}")" "$url$at/cells" >events
}
# begin CODE: executes a cell in the background; returns when it runs.
begin() {
	: >events
	stream "$@" &
	streaming=$!
	soon grep -q '"start"' events
}
resident() { awk '/VmRSS/ { print $2 }' "/proc/$(server_pid)/status"; }
busy() { api GET "$at"; [ "$(get .state)" = busy ]; }
idle() { api GET "$at"; [ "$(get .state)" = idle ]; }
dead() { api GET "$at"; [ "$(get .state)" = dead ]; }
have() { [ -x "/usr/bin/$1" ] || skip "no $1 on this host"; }

# ---- cells ----

a_cell_sees_the_state_of_the_previous_cell() {
	new_box
	context
	is "$(get '.state + " " + .language')" "idle python"
	cell 'x = 41'
	is "$(get '.status + " " + (.results | length | tostring)')" "ok 0" "$body"
	cell 'print("printed"); x + 1'
	is "$(get '.stdout + .results[0].data["text/plain"]')" "printed
42" "$body"
	is "$(get '.cell')" 2
	cell 'import os, sys; print("e", file=sys.stderr); os.environ["A"]' 'env: {A: "b c"}'
	is "$(get '.stderr + .results[0].data["text/plain"]')" "e
'b c'" "$body"
	cell '' # empty code is a cell, too
	is "$(get .status)" ok
}

other_languages_keep_their_state_too() {
	new_box
	for row in "node|node|let x = 41|x + 1|42" "bash|bash|x=41|echo \$((x + 1))|42" \
		"ruby|ruby|x = 41|x + 1|42" "php|php|\$x = 41;|echo \$x + 1;|42" "r|Rscript|x <- 41|x + 1|42"; do
		IFS='|' read -r language program first second want <<-ROW
			$row
		ROW
		[ -x "/usr/bin/$program" ] || continue
		api POST "/v1/boxes/$box/contexts" "{\"language\":\"$language\"}"
		[ "$code" = 409 ] && continue # this build has no driver for it
		is "$code" 201 "$language: $body"
		at=/v1/boxes/$box/contexts/$(get .id)
		cell "$first"
		is "$(get .status)" ok "$language: $body"
		cell "$second"
		has "$(get '.stdout + (.results | map(.data["text/plain"]) | join(""))')" "$want"
	done
}

a_warm_interpreter_runs_interrupts_and_restarts_like_a_new_one() {
	for language in python node; do
		[ "$language" = python ] || have "$language"
		new_box "{\"warm\":\"$language\"}"
		context $language
		cell '6 * 7'
		is "$(get '.results[0].data["text/plain"]')" 42 "$language: $body"
		case $language in python) endless='while True: pass' ;; node) endless='for (;;) ;' ;; esac
		cell "$endless" 'timeout_ms: 100'
		is "$(get '.status + " " + .cause')" "interrupted timeout" "$language: $body"
		cell '6 * 8'
		is "$(get '.results[0].data["text/plain"]')" 48 "$language: $body"
	done
}

the_default_context_of_a_language_is_created_by_its_first_cell() {
	new_box
	api POST "/v1/boxes/$box/cells" '{"language":"python","code":"y = 5"}'
	is "$(get .status)" ok "$body"
	api POST "/v1/boxes/$box/cells" '{"language":"python","code":"y"}'
	is "$(get '.results[0].data["text/plain"]')" 5 "$body"
	api GET "/v1/boxes/$box/contexts"
	is "$(get '.items | map(.language + " " + (.default | tostring)) | join(",")')" "python true"
}

a_language_without_state_is_compiled_and_run() {
	have cc
	new_box
	api POST "/v1/boxes/$box/cells" '{"language":"c","code":"#include <stdio.h>\nint main(void) { puts(\"from c\"); return 0; }"}'
	is "$(get '.status + " " + .stdout')" "ok from c" "$body"
	api POST "/v1/boxes/$box/cells" '{"language":"c","code":"int main(void) { nonsense }"}'
	is "$(get .status)" error "$body"
	has "$(get .stderr)" nonsense
	curl -sS -N -H "X-API-Key: $key" -H 'Accept: application/x-ndjson' \
		--data-binary '{"language":"c","code":"int main(void) { return 3; }"}' "$url/v1/boxes/$box/cells" >events
	is "$(jq -r .type events | tr '\n' ' ')" "start error end " "$(cat events)"
	is "$(jq -r 'select(.type == "end") | .code' events)" 3
	api POST "/v1/boxes/$box/contexts" '{"language":"c"}'
	is "$code" 400
}

events_are_in_order_with_their_offsets() {
	new_box
	context
	stream 'print("one")
display(2)
1/0'
	is "$(jq -r .type events | uniq | tr '\n' ' ')" "start stdout result error end " "$(cat events)"
	is "$(jq -r 'select(.type == "error") | .name' events)" ZeroDivisionError
	is "$(jq -r 'select(.type == "end") | .status' events)" error
	# From every offset exactly the later events are returned.
	n=0
	for place in $(jq -r .at events); do
		n=$((n + 1))
		curl -sS -H "X-API-Key: $key" "$url$at/cells/1/events?after=$place" >rest
		left=$(tail -n +$((n + 1)) events | jq -r .type | tr '\n' ' ')
		is "$(jq -r .type rest | tr '\n' ' ')" "${left:-end }"
	done
	api GET "$at/cells/1/events?after=nonsense"
	is "$code" 400
	api GET "$at/cells/9/events"
	is "$code" 404
	curl -sS -N -H "X-API-Key: $key" -H 'Accept: text/event-stream' --data-binary '{"code":"6*7"}' "$url$at/cells" >sse
	has "$(cat sse)" 'id: 0.0.0'
	has "$(cat sse)" '"text/plain":"42"'
}

numbers_in_a_result_keep_their_digits() {
	new_box
	context
	cell 'class J:
    def _repr_mimebundle_(self, **kw): return {"application/json": {"x": 0.1234567890123456}}
J()'
	is "$(get '.results[0].data["application/json"].x - 0.1234567890123456 | fabs < 1e-17')" true "$body"
	stream 'J()'
	is "$(jq -r 'select(.type == "result") | .data["application/json"].x - 0.1234567890123456 | fabs < 1e-17' events)" true
}

output_that_is_not_utf8_is_base64() {
	new_box
	context
	stream 'import os; os.write(1, b"\xff\xfe\x00") and None'
	is "$(jq -r 'select(.base64) | .base64' events)" //4A "$(cat events)"
	cell 'import os; os.write(1, "ä".encode()[:1]); os.write(1, "ä".encode()[1:]) and None'
	is "$(get .stdout)" ä
	cell 'b"\xff\x00".decode("latin-1")'
	is "$(get .status)" ok "$body"
}

a_cell_reads_a_line_of_input() {
	new_box
	context
	begin 'name = input("name? "); print("hello", name)'
	soon grep -q '"input"' events
	is "$(jq -r 'select(.type == "input") | .prompt' events)" "name? "
	api POST "$at/input" '{"text":"world"}'
	is "$code" 204 "$body"
	wait $streaming
	is "$(jq -r 'select(.type == "stdout") | .data' events)" "hello world"
	api POST "$at/input" '{"text":"more"}'
	is "$code" 409
	for bad in '{}' '{"text":1}' '{"text":"x","end":true}' '{"x":1}'; do
		api POST "$at/input" "$bad"
		is "$code" 400 "$bad"
	done
}

# A client that waits for one JSON document cannot send input.
input_without_a_connected_client_returns_end_of_file() {
	new_box
	context
	cell 'input("name? ")'
	is "$(get '.status + " " + .error.name')" "error EOFError" "$code $body"
	cell 'x = input()
x' 'input: false'
	is "$(get .error.name)" EOFError "$body"
	stream 'input()' 'input: false'
	is "$(jq -r 'select(.type == "error") | .name' events)" EOFError "$(cat events)"
	cell '1 + 1'
	is "$(get '.results[0].data["text/plain"]')" 2 "$body"
	cell '1' 'input: "yes"'
	is "$code" 400 "$body"
	curl -sS --max-time 120 -H "X-API-Key: $key" --data-binary '{"code":"input()","input":true}' "$url$at/cells" >answer &
	answered() { api POST "$at/input" '{"text":"world"}'; [ "$code" = 204 ]; }
	soon answered
	wait $!
	is "$(jq -r '.results[0].data["text/plain"]' answer)" "'world'" "$(cat answer)"
}

cells_of_a_context_run_one_after_another() {
	new_box
	context
	begin 'import time
while not done: time.sleep(0.01)' 2>/dev/null || :
	wait $streaming # an undefined name: the cell ends with an error and the context keeps running
	begin 'import time; out = []; input()'
	for i in 1 2 3; do
		curl -sS -H "X-API-Key: $key" --data-binary "{\"code\":\"out.append($i)\"}" "$url$at/cells" >"queued$i" &
		eval "waiting() { api GET $at; [ \"\$(get .waiting)\" = $i ]; }"
		soon waiting
	done
	api POST "$at/input" '{"text":""}'
	wait
	cell 'out'
	is "$(get '.results[0].data["text/plain"]')" "[1, 2, 3]" "$body"
}

# ---- ending them ----

interrupt_stops_an_endless_cell() {
	new_box
	context
	begin 'z = 1
print("running")
while True: pass'
	soon grep -q running events
	api POST "$at/interrupt"
	is "$code" 204 "$body"
	wait $streaming
	is "$(jq -r 'select(.type == "end") | .status' events)" interrupted "$(cat events)"
	cell 'z'
	is "$(get '.results[0].data["text/plain"]')" 1
	api POST "$at/interrupt"
	is "$code" 409
}

a_timeout_interrupts_the_cell_and_then_kills_the_driver() {
	new_box
	context
	cell 'while True: pass' 'timeout_ms: 100'
	is "$(get '.status + " " + .cause')" "interrupted timeout" "$body"
	cell 'import signal' # a part of its time limit on a slow machine
	is "$(get .status)" ok
	cell 'signal.signal(signal.SIGINT, signal.SIG_IGN)
while True: pass' 'timeout_ms: 100'
	is "$(get '.status + " " + .cause')" "killed timeout" "$body"
	api GET "$at"
	is "$(get .state)" dead
}

a_cell_that_runs_out_of_memory_reports_it() {
	new_box '{"limits":{"mem":100000000}}'
	context
	cell 'x = bytearray(1 << 30)
for i in range(0, len(x), 4096): x[i] = 1'
	is "$(get '.status + " " + .cause')" "died memory" "$body"
	has "$(get .hint)" mem
	cell '1'
	is "$code" 409 "$body"
	api POST "$at/restart"
	is "$(get .state)" idle "$body"
	cell '1'
	is "$(get .status)" ok
}

a_driver_that_exits_ends_its_cell_with_the_cause() {
	new_box
	context
	begin 'import os; os.write(1, b"last output\n"); os._exit(7)'
	wait $streaming
	is "$(jq -r 'select(.type == "end") | .status + " " + .cause' events)" "died exit" "$(cat events)"
	has "$(jq -r 'select(.type == "end") | .message' events)" "status 7"
	is "$(jq -r 'select(.type == "stdout") | .data' events)" "last output"
	api GET "$at"
	is "$(get '.state + " " + .end.cause')" "dead exit"
}

invalid_driver_messages_end_only_their_context() {
	new_box
	context
	other=$at
	context
	# The descriptor of the driver, found as hostile code would find it.
	cell 'import os, socket
for fd in os.listdir("/proc/self/fd"):
    try: s = socket.socket(fileno=os.dup(int(fd))); s.sendall(b"not a line of ours\n")
    except OSError: pass
import time; time.sleep(5)'
	is "$(get '.status + " " + .cause')" "died protocol" "$body"
	has "$(get .message)" 'not a line of ours'
	at=$other
	cell '1'
	is "$(get .status)" ok "$body"
}

a_restart_keeps_the_context_id_and_clears_its_state() {
	new_box
	context
	cell 'x = 1'
	begin 'import time; time.sleep(100)'
	api POST "$at/restart"
	is "$(get '.state + " " + .id')" "idle $ctx" "$body"
	wait $streaming
	is "$(jq -r 'select(.type == "end") | .status + " " + .cause' events)" "killed restart" "$(cat events)"
	cell 'x'
	is "$(get '.status + " " + .error.name')" "error NameError" "$body"
	is "$(get .cell)" 3
}

deleting_a_context_kills_its_driver() {
	new_box
	context
	begin 'import time; time.sleep(100)'
	api DELETE "$at"
	is "$code" 204
	wait $streaming
	is "$(jq -r 'select(.type == "end") | .status + " " + .cause' events)" "killed removed" "$(cat events)"
	api GET "$at"
	is "$code" 404
	api GET "/v1/boxes/$box/contexts"
	is "$(get '.items | length')" 0
	ended() { api GET "/v1/boxes/$box/execs?running=1"; [ "$(get '.items | length')" = 0 ]; }
	soon ended
}

two_contexts_run_at_the_same_time() {
	new_box
	context
	one=$ctx
	context
	is "$(py side "$box" "$one" "$ctx")" "ok ok"
}

the_end_of_the_box_ends_the_cell() {
	new_box
	context
	begin 'import time; time.sleep(100)'
	api DELETE "/v1/boxes/$box"
	wait $streaming
	is "$(jq -r 'select(.type == "end") | .status' events)" died "$(cat events)"
}

a_client_that_leaves_does_not_stop_its_cell() {
	new_box
	context
	begin 'import time; x = 0
while not x:
    time.sleep(0.01)
    import os; x = os.path.exists("/tmp/go")'
	pkill -P $streaming curl
	wait $streaming 2>/dev/null || :
	api GET "$at"
	is "$(get .state)" busy
	api PUT "/v1/boxes/$box/files?path=/tmp/go" ''
	cell 'x'
	is "$(get '.results[0].data["text/plain"]')" True "$body"
}

# ---- limits ----

a_gigabyte_of_cell_output_uses_little_server_memory() {
	new_box
	context
	before=$(resident)
	cell 'import os
for i in range(1024): os.write(1, b"x" * (1 << 20)) and None' 'max_output: 1000'
	is "$(get '.status + " " + (.truncated | tostring) + " " + (.stdout | length | tostring)')" "ok true 1000" "$(head -c 300 body)"
	after=$(resident)
	[ $((after - before)) -lt 20000 ] || fail "grew by $((after - before)) KiB"
}

a_result_over_the_limit_does_not_end_the_context() {
	new_box
	context
	cell '"x" * (40 << 20)'
	is "$(get .status)" ok "$(head -c 300 body)"
	cell '1'
	is "$(get .status)" ok "$(head -c 300 body)"
}

invalid_context_and_cell_requests_are_rejected() {
	new_box
	for bad in '{}' '{"language":1}' '{"language":""}' '{"language":"python","x":1}' '{"language":"python","env":{"A=":"b"}}' \
		'{"language":"klingon"}' '[]' '{"language":"python","env":[]}'; do
		api POST "/v1/boxes/$box/contexts" "$bad"
		is "$code" 400 "$bad: $body"
	done
	context
	for bad in '{}' '{"code":1}' '{"code":"1","timeout_ms":0}' '{"code":"1","max_output":-1}' '{"code":"1","y":2}'; do
		api POST "$at/cells" "$bad"
		is "$code" 400 "$bad: $body"
	done
	api POST "/v1/boxes/$box/contexts/aaaaaaaaaaaa/cells" '{"code":"1"}'
	is "$code" 404
	api POST "/v1/boxes/$box/contexts" '{"language":"python","cwd":"/nowhere"}'
	is "$code" 409 "$body"
	for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
		api POST "/v1/boxes/$box/contexts" '{"language":"bash"}'
		[ "$code" = 429 ] && break
	done
	is "$code" 429
}

a_viewer_may_read_contexts_but_not_run_cells() {
	new_box
	context
	owner=$key key=$viewer
	api GET "$at"
	is "$code" 200
	cell 1
	is "$code" 403
	api POST "$at/interrupt"
	is "$code" 403
	api DELETE "$at"
	is "$code" 403
	key=$owner
	api PUT /v1/teams/strangers '{}'
	api POST /v1/keys '{"name":"stranger","team":"strangers","role":"owner"}'
	key=$(get .key)
	api GET "$at"
	is "$code" 404
	cell 1
	is "$code" 404
	key=$owner
	api GET "/v1/audit?action=cell.run"
	is "$code" 200
}

# ---- the server is killed ----

a_cell_continues_after_the_server_is_killed_and_no_output_is_lost_or_repeated() {
	new_box
	context
	cell 'kept = 5'
	py resume "$box" "$ctx" 'import os, time
i = 0
while not os.path.exists("/tmp/stop"):
    for i in range(i, i + 10): print(i, "ä" * 20)
    i += 1
    time.sleep(0.002)
display(kept)
i' "$supervisor" >out || fail "$(cat out)"
	is "$(jq -r '.status + " " + (.kills | tostring)' out)" "ok 3" "$(head -c 300 out)"
	is "$(jq -r '.results[0]' out)" 5
	n=$(jq -r '.results[1]' out)
	is "$(jq -j .text out | md5sum)" "$(python3 -c "for i in range($n): print(i, 'ä' * 20)" | md5sum)"
	cell 'kept'
	is "$(get '.results[0].data["text/plain"]')" 5 "$body"
	is "$(get .cell)" 3
}

a_finished_cell_can_be_read_after_a_server_restart() {
	new_box
	context
	cell 'print("before"); 7'
	kill -9 "$(server_pid)"
	again() { api GET "$at" && [ "$code" = 200 ]; }
	soon again
	curl -sS --max-time 120 -H "X-API-Key: $key" "$url$at/cells/1/events" >events
	is "$(jq -r .type events | tr '\n' ' ')" "start stdout result end " "$(cat events)"
	cell 'print("after")'
	is "$(get '.stdout + (.cell | tostring)')" "after
2" "$body"
}

input_is_delivered_once_across_a_server_restart() {
	new_box
	context
	begin 'a = input(); b = input(); a + b'
	soon grep -q '"input"' events
	api POST "$at/input" '{"text":"one"}'
	is "$code" 204
	asked() { [ "$(grep -c '"input"' events)" = 2 ]; }
	soon asked
	kill -9 "$(server_pid)"
	wait $streaming 2>/dev/null || :
	answered() { api POST "$at/input" '{"text":"two"}'; [ "$code" = 204 ]; }
	soon answered
	api POST "$at/input" '{"text":"three"}'
	is "$code" 409 "$body"
	soon idle
	cell 'a + b'
	is "$(get '.results[0].data["text/plain"]')" "'onetwo'" "$body"
}

a_cell_timeout_is_enforced_across_a_server_restart() {
	new_box
	context
	begin 'while True: pass' 'timeout_ms: 700'
	kill -9 "$(server_pid)"
	wait $streaming 2>/dev/null || :
	in_time
}
in_time() {
	soon idle
	curl -sS --max-time 120 -H "X-API-Key: $key" "$url$at/cells/1/events" >events
	is "$(jq -r 'select(.type == "end") | .status + " " + .cause' events)" "interrupted timeout" "$(cat events)"
}

a_timed_out_cell_keeps_cause_timeout_across_server_restarts() {
	new_box
	context
	begin 'import time
try:
    time.sleep(60)
except KeyboardInterrupt:
    print("told", flush=True)
    time.sleep(0.5)
    raise' 'timeout_ms: 100'
	soon grep -q told events
	kill -9 "$(server_pid)"
	wait $streaming 2>/dev/null || :
	in_time
	kill -9 "$(server_pid)"
	in_time
}

# in_box COMMAND...: runs it to its end.
in_box() {
	api POST "/v1/boxes/$box/execs" "$(jq -nc --arg command "$*" '{command: $command}')"
	is "$code $(get .status)" "200 0" "$body"
}
# new_server: kills the server and waits for the next one.
new_server() {
	dying=$(server_pid)
	kill -9 "$dying"
	another() { now=$(server_pid) && [ "$now" ] && [ "$now" != "$dying" ] && api GET "$at" && [ "$code" = 200 ]; }
	soon another
}

a_partly_sent_cell_is_rejected_after_a_server_restart_and_the_state_is_kept() {
	new_box
	context
	cell 'import os; kept = 5; os.getpid()'
	driver=$(get '.results[0].data["text/plain"]')
	in_box kill -STOP "$driver"
	head -c 3000000 /dev/zero | tr '\0' x | jq -Rc '{code: ("kept = \"" + . + "\"")}' >large
	curl -sS -o cut --max-time 120 -H "X-API-Key: $key" --data-binary @large "$url$at/cells" 2>/dev/null &
	soon busy
	new_server
	wait $! || :
	in_box kill -CONT "$driver"
	soon idle
	api GET "$at/cells/2/events"
	is "$(get 'select(.type == "end") | .status + " " + .cause')" "dropped lost" "$body"
	# The server after that one knows it, too.
	new_server
	api GET "$at/cells/2/events"
	is "$(get 'select(.type == "end") | .status + " " + .cause')" "dropped lost" "$body"
	cell 'kept'
	is "$(get '.status + .results[0].data["text/plain"]')" ok5 "$body"
}

an_unsent_cell_is_rejected_after_a_server_restart_and_the_state_is_kept() {
	seen_on_host
	new_box
	context
	cell 'kept = 5'
	new_server
	soon idle
	api POST "/v1/boxes/$box/execs" '{"command":["sleep","27.1828"],"background":true}'
	soon processes 'sleep 27.1828'
	init=$(ps -o ppid= -p "$(processes 'sleep 27.1828' | head -1)" | tr -d ' ')
	kill -STOP "$init"
	curl -sS -o cut --max-time 120 -H "X-API-Key: $key" -d '{"code":"kept = 6"}' "$url$at/cells" 2>/dev/null &
	soon busy
	kill -9 "$(server_pid)"
	wait $! || :
	kill -CONT "$init"
	soon idle
	api GET "$at/cells/2/events"
	is "$(get 'select(.type == "end") | .status + " " + .cause')" "dropped lost" "$body"
	cell 'kept'
	is "$(get '.status + .results[0].data["text/plain"]')" ok5 "$body"
}

# serves: another server than $old serves.
serving() { cut -d ' ' -f 3 "$ATOLL_RUN/serve.pid"; }
serves() { now=$(serving) && [ "$now" != "$old" ] && [ "$now" != 0 ]; }

cells_of_two_servers_get_their_own_results() {
	new_box
	context
	cell '0'
	give() { # NAME CODE
		curl -sS -o "$1" --max-time 120 -H "X-API-Key: $key" -d "$(jq -nc --arg code "$2" '{code: $code}')" "$url$at/cells" &
	}
	give one 'import os, time
while not os.path.exists("/tmp/go"): time.sleep(0.01)
print("one")'
	soon busy
	for i in 1 2 3; do give "two$i" "print(\"two$i\")"; done
	waiting() { api GET "$at" && [ "$(get .waiting)" = 3 ]; }
	soon waiting
	old=$(serving)
	kill -HUP "$(cat "$work/supervisor")"
	soon serves
	for i in 1 2 3; do give "three$i" "print(\"three$i\")"; done
	waiting() { api GET "$at" && [ "$(get .waiting)" = 3 ]; }
	soon waiting
	in_box touch /tmp/go
	wait
	for i in one two1 two2 two3 three1 three2 three3; do
		is "$(jq -r '.status + .stdout' "$i")" "ok$i" "$(cat "$i")"
	done
	is "$(jq -r .cell one two? three? | sort -u | wc -l)" 7
	# A server after both of them knows that all cells have ended.
	new_server
	cell 'print("four")'
	is "$(get .stdout)" four "$body"
}

# The old server has a request that does not end, so it still runs when the new one begins to send a cell.
a_cell_that_is_being_sent_when_the_old_server_ends_is_not_dropped() {
	new_box
	other=$box
	new_box
	context
	cell 'import os; os.getpid()'
	driver=$(get '.results[0].data["text/plain"]')
	curl -sS -o held --max-time 120 -H "X-API-Key: $key" -d '{"command":"sleep 314.15"}' "$url/v1/boxes/$other/execs" 2>/dev/null &
	held=$!
	soon processes 'sleep 314.15'
	old=$(serving)
	kill -HUP "$(cat "$work/supervisor")"
	soon serves
	kill -0 "$old" || fail "the old server has ended"
	in_box kill -STOP "$driver"
	head -c 3000000 /dev/zero | tr '\0' x | jq -Rc '{code: ("text = \"" + . + "\"; len(text)")}' >large
	curl -sS -o sent --max-time 120 -H "X-API-Key: $key" --data-binary @large "$url$at/cells" &
	sending=$!
	soon busy
	kill $held
	wait $held || :
	left() { ! kill -0 "$old" 2>/dev/null; }
	soon left
	busy || fail "the cell has ended: $(cat sent)"
	in_box kill -CONT "$driver"
	wait $sending
	is "$(jq -r '.status + .results[0].data["text/plain"]' sent)" ok3000000 "$(cat sent)"
	cell 'len(text) + 1'
	is "$(get '.results[0].data["text/plain"]')" 3000001 "$body"
}

a_reload_does_not_affect_a_running_cell() {
	new_box
	context
	cell 'kept = 5'
	begin 'print("first", flush=True); input(); print("second"); kept'
	soon grep -q first events
	before=$(server_pid)
	kill -HUP "$supervisor"
	another() { [ "$(pgrep -P "$supervisor" | grep -vc "^$before$")" -gt 0 ] && api GET "$at" && [ "$code" = 200 ]; }
	soon another
	answered() { api POST "$at/input" '{"text":""}'; [ "$code" = 204 ]; }
	soon answered
	wait $streaming
	is "$(jq -j 'select(.type == "stdout") | .data' events)" "first
second" "$(cat events)"
	is "$(jq -r 'select(.type == "result") | .data["text/plain"]' events)" 5
	cell 'kept + 1'
	is "$(get '.results[0].data["text/plain"] + " " + (.count | tostring)')" "6 3" "$body"
}

# The last test, because it stops the daemon of the other tests.
a_cell_without_a_timeout_gets_the_default_timeout() {
	stop_daemon
	ATOLL_DEFAULT_CELL_TIME=300ms start_daemon
	new_box
	context
	cell 'while True: pass'
	is "$(get '.status + " " + .cause')" "interrupted timeout" "$body"
	cell 'import time; time.sleep(0.5); 7' 'timeout_ms: 20000'
	is "$(get '.results[0].data["text/plain"]')" 7 "$body"
}

run_daemon_tests
