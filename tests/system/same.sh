#!/bin/sh
# same.sh - a warm interpreter ends like a new one: destructors, threads, exits, signals.
. "$(dirname "$0")/daemon.lib"

# The first request does not wait for a warm interpreter; the keeper loads them from then on.
is_warm() {
	echo '{"language":"python","code":"import os; print(os.getppid())"}' |
		"$ATOLL" batch --json - | jq 'select(.type == "result").cpu_ms < 15' | grep -q true
}

a_program_behaves_the_same_in_a_warm_and_a_new_interpreter() {
	soon is_warm
	"$here/same.py" items >items
	"$ATOLL" batch --json items >results || [ $? = 1 ]
	"$here/same.py" compare results >differences
	[ ! -s differences ] || fail "$(cat differences)"
}

run_daemon_tests
