#!/bin/sh
# jupyter.sh - contexts whose interpreter is a Jupyter kernel: ipykernel and IRkernel as Debian has them, and
# hostile kernels.
. "$(dirname "$0")/daemon.lib"
slow_tests="an_r_kernel_keeps_state_and_returns_output_and_results
	output_of_a_cell_over_the_limit_is_truncated_and_the_cell_ends
	kernels_are_listed_and_usable_with_repl"

# context NAME [BOX]: in $box; sets ctx and at, the path of it.
context() {
	api POST "/v1/boxes/$box/contexts" "{\"language\":\"jupyter:$1\"}"
	is "$code" 201 "$body"
	ctx=$(get .id) at=/v1/boxes/$box/contexts/$ctx
}
# One context for each kernel, shared by the next tests: starting a kernel takes a second.
living() {
	have "$1"
	if [ -s "$work/living.$1" ]; then
		read -r box at <"$work/living.$1"
		api GET "$at"
		[ "$(get .state)" = idle ] && return
	fi
	new_box
	context "$1"
	echo "$box $at" >"$work/living.$1"
}
cell() { api POST "$at/cells" "$(jq -nc --arg code "$1" "{code: \$code${2:+, $2}}")"; }
begin() { # CODE: in the background; returns when it runs
	: >events
	curl -sS -N --max-time 120 -H "X-API-Key: $key" -H 'Accept: application/x-ndjson' \
		--data-binary "$(jq -nc --arg code "$1" '{code: $code}')" "$url$at/cells" >events &
	streaming=$!
	soon grep -q '"start"' events
}
have() {
	[ -e "/usr/share/jupyter/kernels/$1/kernel.json" ] || skip "no Jupyter kernel $1 on this host"
	ls /usr/lib/*/libzmq.so.5 >/dev/null 2>&1 || skip "no libzmq on this host"
}
# spec NAME: writes stdin as the kernel.json of NAME in $box.
spec() {
	cat >kernel.json
	api PUT "/v1/boxes/$box/files?path=/home/user/.local/share/jupyter/kernels/$1/kernel.json" "$(cat kernel.json)"
	case $code in 20?) ;; *) fail "$code $body" ;; esac
}
# refused NAME WORDS: creating a context fails with a message that has WORDS.
refused() {
	api POST "/v1/boxes/$box/contexts" "{\"language\":\"jupyter:$1\"}"
	is "$code" 409 "$body"
	has "$body" "$2"
	api GET "/v1/boxes/$box/contexts"
	for dead in $(get '.items[] | select(.state == "dead") | .id'); do
		api DELETE "/v1/boxes/$box/contexts/$dead"
	done
}
# in_box COMMAND: prints its output.
in_box() {
	api POST "/v1/boxes/$box/execs" "$(jq -nc --arg c "$1" '{command: $c}')"
	get .stdout
}

# ---- cells ----

a_python_kernel_keeps_state_and_returns_output_and_results() {
	living python3
	is "$(get '.language + " " + .state')" "jupyter:python3 idle" "$body"
	cell 'x = 41'
	is "$(get '.status + " " + (.results | length | tostring)')" "ok 0" "$body"
	cell 'import sys, os; print("out ä"); print("err", file=sys.stderr); os.system("echo sub"); x + 1'
	has "$(get .stdout)" "out ä"
	is "$(get '.stderr + (.results[0] | (.main | tostring) + .data["text/plain"])')" "err
true42" "$body"
	cell 'import time; t = time.monotonic()
while time.monotonic() < t + 0.2: pass
os.system("echo once") and None'
	is "$(get .stdout | grep -c once)" 1 "$body"
	cell 'import json; display({"application/json": {"n": 1, "big": 2**70}, "text/html": "<b>", "text/plain": "p"}, raw=True)'
	is "$(get '.results[0].data | (.["application/json"].n == 1 | tostring) + .["text/html"]')" 'true<b>' "$body"
	cell ''
	is "$(get .status)" ok
}

a_python_plot_is_returned_as_png() {
	living python3
	/usr/bin/python3 -c 'import matplotlib, matplotlib_inline' 2>/dev/null || skip "no matplotlib on this host"
	cell 'import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()'
	is "$(get '.results[0].data["image/png"]' | base64 -d | head -c 4 | tail -c 3)" PNG "$body"
}

an_r_kernel_keeps_state_and_returns_output_and_results() {
	living ir
	cell 'x <- 41'
	is "$(get .status)" ok "$body"
	cell 'cat("out ä\n"); message("err"); system("echo sub"); x + 1'
	has "$(get .stdout)" "out ä"
	has "$(get .stdout)" sub
	has "$(get .stderr)" err
	is "$(get '.results[0].data["text/plain"]')" "[1] 42" "$body"
	cell 'plot(1:3)'
	is "$(get '.results[0].data["image/png"]' | base64 -d | head -c 4 | tail -c 3)" PNG "$body"
	cell 'f <- function() stop("bad")
f()'
	is "$(get .status)" error "$body"
	has "$(get .error.text)" 'stop("bad")'
}

a_kernel_error_has_a_traceback_without_colours() {
	living python3
	cell 'def f(): return 1 / 0
f()'
	is "$(get '.status + " " + .error.name + " " + .error.value')" "error ZeroDivisionError division by zero" "$body"
	has "$(get .error.text)" "return 1 / 0"
	case $(get .error.text) in *"$(printf '\033')"*) fail "colours" ;; esac
	cell 'x ='
	is "$(get .error.name)" SyntaxError "$body"
}

a_cell_reads_a_line_of_input() {
	for kernel in python3 ir; do
		living $kernel
		case $kernel in python3) begin 'n = input("name? "); print("hello", n)' ;; ir) begin 'n <- readline("name? "); cat("hello", n)' ;; esac
		soon grep -q '"input"' events
		is "$(jq -r 'select(.type == "input") | .prompt' events)" "name? "
		api POST "$at/input" '{"text":"world"}'
		is "$code" 204 "$body"
		wait $streaming
		is "$(jq -r 'select(.type == "stdout") | .data' events | tr -d '\n')" "hello world" "$(cat events)"
	done
	living python3
	begin 'input()'
	soon grep -q '"input"' events
	api POST "$at/input" '{"end":true}'
	wait $streaming
	is "$(jq -r 'select(.type == "error") | .name' events)" EOFError
}

env_of_a_single_cell_is_rejected_for_kernels() {
	living python3
	cell '1' 'env: {A: "b"}'
	is "$(get '.status + " " + .error.name')" "error Unsupported" "$body"
}

# ---- ending them ----

an_endless_cell_is_interrupted_and_the_kernel_keeps_running() {
	for kernel in python3 ir; do
		living $kernel
		cell 'y = 5'
		case $kernel in python3) endless='while True: pass' ;; ir) endless='while (TRUE) {}' ;; esac
		begin "$endless" # the interrupt may arrive before the cell starts
		api POST "$at/interrupt"
		is "$code" 204 "$body"
		wait $streaming
		is "$(jq -r 'select(.type == "end") | .status' events)" interrupted "$kernel: $(cat events)"
		cell "$endless" 'timeout_ms: 200'
		is "$(get '.status + " " + .cause')" "interrupted timeout" "$kernel: $body"
		cell 'y'
		has "$(get '.results[0].data["text/plain"]')" 5 "$kernel: $body"
	done
}

a_kernel_spec_sets_variables_and_message_interrupts() {
	living python3
	# The kernel prints the message that it got; a signal would have killed it.
	spec byword <<-'SPEC'
		{"argv": ["/usr/bin/python3", "-c", "import signal, sys; signal.signal(signal.SIGINT, lambda *a: sys.exit(3)); from ipykernel.kernelapp import IPKernelApp as A\nimport ipykernel.ipkernel as k\nclass K(k.IPythonKernel):\n    async def interrupt_request(self, s, i, p):\n        import os; open('/tmp/asked', 'w'); os.kill(os.getpid(), 2)\n        self.session.send(s, 'interrupt_reply', {'status': 'ok'}, p, ident=i)\nA.launch_instance(kernel_class=K)", "-f", "{connection_file}"],
		 "display_name": "by word", "language": "python", "interrupt_mode": "message", "env": {"WHERE": "${HOME}/x"}}
	SPEC
	api POST "/v1/boxes/$box/contexts" '{"language":"jupyter:byword","env":{"A":"b"},"cwd":"/tmp"}'
	at=/v1/boxes/$box/contexts/$(get .id)
	cell 'import os; os.environ["WHERE"] + os.environ["A"] + os.getcwd()'
	is "$(get '.results[0].data["text/plain"]')" "'/home/user/xb/tmp'" "$body"
	begin 'while True: pass'
	api POST "$at/interrupt"
	wait $streaming
	is "$(jq -r 'select(.type == "end") | .status' events)" interrupted "$(cat events)"
	is "$(in_box 'test -e /tmp/asked && echo /tmp/asked')" /tmp/asked
	api DELETE "$at"
}

a_restart_starts_a_new_kernel() {
	living python3
	cell 'import os, subprocess; x = 1; subprocess.Popen(["sleep", "987"]).pid and None'
	api POST "$at/restart"
	is "$(get .state)" idle "$body"
	cell 'x'
	is "$(get .error.name)" NameError "$body"
	none() { [ -z "$(in_box 'pgrep -f "sleep 98[7]"')" ]; }
	soon none # its child processes have ended, too
	folders() { [ "$(in_box 'echo /tmp/.jupyter-* | wc -w')" = 1 ]; }
	soon folders
	is "$(in_box 'find /tmp/.jupyter-* -maxdepth 0 -printf "%m\n"; find /tmp/.jupyter-*/connection.json -printf "%m\n"' | grep -o '...$' | tr '\n' ' ')" "700 600 "
}

a_kernel_that_dies_ends_its_cell_with_the_cause() {
	living python3
	begin 'import os; print("last output", flush=True); os._exit(7)'
	wait $streaming
	is "$(jq -r 'select(.type == "end") | .status + " " + .cause' events)" "died exit" "$(cat events)"
	has "$(jq -r 'select(.type == "end") | .message' events)" "status 7"
	cell '1'
	is "$code" 409 "$body"
	api POST "$at/restart"
	is "$(get .state)" idle "$body"
	cell 'import os; os.kill(os.getpid(), 11)'
	is "$(get '.status + " " + .cause')" "died signal" "$body"
	api POST "$at/restart"
	cell '6 * 7'
	is "$(get '.results[0].data["text/plain"]')" 42 "$body"
}

a_cell_of_a_kernel_continues_after_the_server_is_killed() {
	living python3
	cell 'kept = 5'
	python3 "$here/contexts.py" resume "$box" "${at##*/}" 'import os, time
i = 0
while not os.path.exists("/tmp/stop"):
    print(i, "ä" * 20, flush=True)
    i += 1
    time.sleep(0.002)
display(kept)
i' "$supervisor" >resumed || fail "$(cat resumed)"
	is "$(jq -r '.status + " " + (.kills | tostring)' resumed)" "ok 3" "$(head -c 300 resumed)"
	cell 'kept'
	is "$(get '.results[0].data["text/plain"]')" 5 "$body"
}

# ---- bad input ----

an_unknown_kernel_is_rejected_with_the_list_of_kernels() {
	living python3
	refused nothere "there is no Jupyter kernel 'nothere' here; there is: "
	for bad in '' . .. -x a/b "a'b" "$(printf %025d 0)"; do
		api POST "/v1/boxes/$box/contexts" "{\"language\":\"jupyter:$bad\"}"
		is "$code" 400 "$bad: $body"
	done
}

a_hostile_kernel_spec_is_rejected_with_a_message() {
	living python3
	echo '{"argv": "python3 {connection_file}"}' | spec text
	refused text "argv is not a list"
	echo '{"argv": ["python3", 3, "{connection_file}"]}' | spec number
	refused number "word 1 of argv"
	echo '{"argv": ["sleep", "100"]}' | spec mute
	refused mute "no {connection_file}"
	echo '{"argv": ["x", "{connection_file}"], "interrupt_mode": "prayer"}' | spec mode
	refused mode "interrupt_mode"
	echo '{"argv": ["x", "{connection_file}"], "env": {"A": 1}}' | spec env
	refused env "env:"
	printf '{"argv": [' | spec broken
	refused broken "kernel.json: line 1"
	{ printf '{"argv": ["x", "{connection_file}"], "display_name": "'; head -c 70000 /dev/zero | tr '\0' x; printf '"}'; } | spec huge
	refused huge "more than 65536 bytes"
	in_box 'cd .local/share/jupyter/kernels && mkdir link fifo loop && ln -s /dev/zero link/kernel.json && mkfifo fifo/kernel.json && ln -s kernel.json loop/kernel.json' >/dev/null
	refused link "not a regular file"
	refused fifo "not a regular file"
	refused loop "there is no Jupyter kernel 'loop'"
	echo '{"argv": ["/no/such/program", "{connection_file}"]}' | spec lost
	refused lost "/no/such/program"
	echo '{"argv": ["sh", "-c", "echo why >&2; exit 0", "{connection_file}"]}' | spec leaves
	refused leaves "ended before it could be spoken to"
	in_box 'rm -r .local/share/jupyter' >/dev/null
}

forged_kernel_messages_are_ignored_or_affect_only_their_context() {
	living python3
	# Messages with a wrong signature, no signature, an invalid format or of another cell are ignored.
	cell 'k = get_ipython().kernel; s = k.session
t = s.clone(); t.key = b"0" * 64
p = k.get_parent()
t.send(k.iopub_socket, "stream", {"name": "stdout", "text": "FORGED"}, parent=p)
t.send(k.iopub_socket, "status", {"execution_state": "idle"}, parent=p)
for frames in [[b"x"], [b"<IDS|MSG>"], [b""], [b"<IDS|MSG>", b"a" * 64, b"{}", b"{}", b"{}", b"{}"], [b"y"] * 200]:
    k.iopub_socket.send_multipart(frames)
import json
def signed(*parts): k.iopub_socket.send_multipart([b"<IDS|MSG>", s.sign(list(parts)), *parts])
signed(b"[]", b"{}", b"{}", b"{}"); signed(b"{", b"{}", b"{}", b"{}"); signed(b"{}", b"[" * 100000, b"{}", b"{}")
s.send(k.iopub_socket, "stream", {"name": "stdout", "text": "FORGED"}, parent={"msg_id": "foreign"})
s.send(k.iopub_socket, "execute_result", {"data": {"text/plain": "FORGED"}}, parent={"msg_id": "foreign"})
s.send(k.iopub_socket, "error", {"ename": 1, "evalue": [], "traceback": "x"}, parent={"msg_id": "foreign"})
"true"'
	is "$(get '.status + (.results | length | tostring) + .results[0].data["text/plain"]')" "ok1'true'" "$body"
	case $body in *FORGED*) fail "$body" ;; esac
	has "$(get .stderr)" "passed over"
	# With the right key a cell can send any kernel message, and only breaks its own end.
	cell 's.send(k.iopub_socket, "status", {"execution_state": "idle"}, parent=k.get_parent())
s.send(k.iopub_socket, "error", {"ename": 1, "evalue": [], "traceback": "x"}, parent=k.get_parent())
for i in range(3): s.send(k.iopub_socket, "execute_result", {"data": {"text/plain": [1], "a/b": 2, "text/html": "h", "application/json": [[]] * 300000}}, parent=k.get_parent())
None'
	# The results come over another socket than the reply: after the forged end some or all of them are late.
	is "$(get '.results | length <= 3 and all(.data | keys == ["text/html"])')" true "$(echo "$body" | head -c 500)"
	cell '6 * 7'
	is "$(get '.results[0].data["text/plain"]')" 42 "$(echo "$body" | head -c 500)"
}

output_of_a_cell_over_the_limit_is_truncated_and_the_cell_ends() {
	living python3
	cell 'print("x" * (20 << 20)); 5'
	is "$(get '.status + " " + (.truncated | tostring) + " " + (.stdout | length | tostring)')" "ok true 4194304" "$(echo "$body" | head -c 300)"
	cell 'for i in range(3000): display(i)'
	is "$(get '.results | length')" 3000 "$(echo "$body" | head -c 300)"
}

# ---- other APIs ----

kernels_are_listed_and_usable_with_repl() {
	have python3
	has "$("$ATOLL" lang)" jupyter:python3
	is "$("$ATOLL" lang --json | jq -r '.kernels[] | select(.name == "jupyter:python3") | .language')" python
	api GET /v1/languages
	is "$(get '.kernels[] | select(.name == "jupyter:python3") | .language')" python
	is "$(echo '6 * 7' | "$ATOLL" repl jupyter:python3)" 42
}

e2b_clients_name_a_kernel_as_a_language() {
	have python3
	api POST /v2/sandboxes '{"templateID":"base"}'
	box=$(get .sandboxID) token=$(get .envdAccessToken)
	execute() {
		curl -sS --max-time 120 -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 49999' -H "X-Access-Token: $token" --data-binary "$1" "$url/execute" >lines
	}
	execute '{"language":"jupyter:python3","code":"x = 6; x * 7"}'
	is "$(jq -r 'select(.type == "result") | (.is_main_result | tostring) + .text' lines)" true42 "$(cat lines)"
	execute '{"context_id":"jupyter:python3","code":"x / 0"}' # the id of the default context is this name
	is "$(jq -r 'select(.type == "error") | .name' lines)" ZeroDivisionError "$(cat lines)"
	api DELETE "/v1/boxes/$box"
}

a_kernel_out_of_memory_is_reported() {
	have python3
	new_box '{"limits":{"mem":150000000}}'
	context python3
	cell 'x = bytearray(1 << 30)
for i in range(0, len(x), 4096): x[i] = 1'
	is "$(get '.status + " " + .cause')" "died memory" "$body"
	api DELETE "/v1/boxes/$box"
}

run_daemon_tests
