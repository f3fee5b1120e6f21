#!/bin/sh
# same.sh - an interpreter that waited ends like a fresh one: destructors, threads, exits, signals.
. "$(dirname "$0")/daemon.lib"

# The first to ask is not waited for: interpreters are loaded from then on.
is_warm() {
	echo '{"language":"python","code":"import os; print(os.getppid())"}' |
		"$ATOLL" batch --json - | jq 'select(.type == "result").cpu_ms < 15' | grep -q true
}

a_program_cannot_tell_whether_its_interpreter_waited() {
	soon is_warm
	"$here/same.py" items >items
	"$ATOLL" batch --json items >results || [ $? = 1 ]
	"$here/same.py" compare results >differences
	[ ! -s differences ] || fail "$(cat differences)"
}

run_daemon_tests
