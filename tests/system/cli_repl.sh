#!/bin/sh
# cli_repl.sh - `atoll repl`: cells from a terminal and from a pipe.
. "$(dirname "$0")/daemon.lib"

onpty() { /usr/bin/python3 "$here/onpty.py" "$@"; }
boxes() { api GET /v1/boxes; get '.items | length'; }

piped_code_is_one_cell_and_sets_the_exit_status() {
	is "$(printf 'x = 6\nx * 7\n' | "$ATOLL" repl python)" 42
	printf 'print("out")\n1/0\n' | "$ATOLL" repl python >out 2>err && fail "an error is not 0"
	is "$(cat out)" out
	has "$(cat err)" ZeroDivisionError
	status=0
	echo 'while True: pass' | "$ATOLL" repl python --time 100ms 2>err || status=$?
	is $status 130
	has "$(cat err)" timeout
	is "$(boxes)" 0
}

repl_json_prints_the_events() {
	printf 'print(1)\ninput()\n' | "$ATOLL" repl python --json >out || :
	is "$(jq -r .type out | tr '\n' ' ')" "start stdout input error end " "$(cat out)"
	is "$(jq -r 'select(.type == "error") | .name' out)" EOFError
}

cells_typed_on_a_terminal_share_their_state() {
	new_box
	onpty 'wait=>>>' 'send=x = 6\r' 'wait=>>>' 'send=for i in range(2):\r' 'wait=...' 'send=    print("t" + str(i))\r' \
		'wait=...' 'send=\r' 'wait=t1' 'wait=>>>' 'send=[x,\r' 'wait=...' 'send=x * 7]\r' 'wait=[6, 42]' 'wait=>>>' \
		'send=\x04' -- "$ATOLL" repl python --box "$box" >out || fail "$(cat out)"
	has "$(cat out)" t0
	api GET "/v1/boxes/$box/contexts"
	is "$(get '.items | length')" 0
	api DELETE "/v1/boxes/$box"
}

control_c_interrupts_the_cell_and_not_the_repl() {
	onpty 'wait=>>>' 'send=print("be" + "gun"); import time; time.sleep(15)\r' 'wait=begun' 'send=\x03' 'wait=KeyboardInterrupt' \
		'wait=>>>' 'send=abc\x03' 'wait=>>>' 'send=6 * 7\r' 'wait=42' 'wait=>>>' 'send=\x04' -- \
		"$ATOLL" repl python >out || fail "$(cat out)"
	is "$(boxes)" 0
}

a_cell_reads_input_from_the_terminal() {
	onpty 'wait=>>>' 'send=n = input("na" + "me? ")\r' 'wait=name? ' 'send=world\r' 'wait=>>>' 'send="hello " + n\r' \
		"wait='hello world'" 'wait=>>>' 'send=\x04' -- "$ATOLL" repl python >out || fail "$(cat out)"
}

the_death_of_the_server_does_not_end_the_cell() {
	printf 'import time\nfor i in range(100):\n    print(i)\n    time.sleep(0.01)\n"done"' >cell.py
	"$ATOLL" repl python <cell.py >out 2>err &
	pid=$!
	soon grep -q 5 out
	kill -9 "$(server_pid)"
	wait $pid || fail "$(cat err)"
	is "$(cat out)" "$(seq 0 99)
'done'"
}

repl_reports_a_missing_language_box_or_invalid_text() {
	status=0
	"$ATOLL" repl 2>err || status=$?
	is $status 2
	has "$(cat err)" "missing language"
	"$ATOLL" repl klingon </dev/null 2>err && fail "no such language"
	has "$(cat err)" klingon
	"$ATOLL" repl python --box missing </dev/null 2>err && fail "no such box"
	has "$(cat err)" missing
	printf '\377' | "$ATOLL" repl python 2>err && fail "not UTF-8"
	has "$(cat err)" UTF-8
	is "$(boxes)" 0
}

run_daemon_tests
