#!/bin/sh
# library.sh - every program of the planner's library, in every installed language, with the slots of every
# example: its output, and the result of its form as a function. In languages other than Python the first example, of
# the compiled ones a ninth and of node's a third, without optimisation; `make library` runs all.
. "$(dirname "$0")/daemon.lib"
items=$(dirname "$ATOLL")/library-items
tasks=$(cd "$(dirname "$0")/../../share/tasks" && pwd)

# send FILE: runs a batch; the events are in ./events. A long timeout: eight compilers at once are slow.
send() {
	jq -c '.timeouts = {run_ms: 120000, compile_ms: 240000}' "$1" |
		curl -sSN --max-time 840 -H "X-API-Key: $key" -H 'Content-Type: application/x-ndjson' \
			--data-binary @- -o events "$url/v1/batch"
}
# Prints one line for each item that failed, with the end of its output.
bad() { jq -r 'select(.type == "result" and .verdict != "passed") | "# \(.id): \(.cause): \(.message // "") \((.stderr // "")[-200:])"' <events; }

every_library_program_prints_the_output_of_its_examples() {
	if [ "${LIBRARY:-}" = all ]; then "$items"; else "$items" --quick; fi >items || fail "there are no programs"
	# Count them: otherwise a task without examples or a language without programs would not be noticed.
	is "$(jq -r '.id | split("/")[0]' items | sort -u | wc -l)" "$(ls "$tasks" | wc -l)"
	[ "$(wc -l <items)" -ge 400 ] || fail "only $(wc -l <items) programs"
	send items
	bad | head -60
	is "$(jq -r 'select(.type == "end") | "\(.state) \(.failed) \(.errors)"' <events)" "finished 0 0"
	is "$(jq -r 'select(.type == "end") | .passed' <events)" "$(wc -l <items)"
	"$items" --judge <events || fail "an output does not match"
}

a_task_of_two_steps_runs_both_in_order() {
	for language in Python JavaScript; do
		"$items" --plan "In $language: the mean and median of 1, 2 and 6, then the area of a rectangle with length 3 and width 4"
	done >items
	send items
	is "$(jq -rs '[.[] | select(.type == "result").stdout] | unique | join("")' <events)" "mean: 3
median: 2
area: 12"
	is "$(jq -r 'select(.type == "end") | .passed' <events)" 2
}

text_slots_are_quoted_safely_in_every_language() {
	"$items" --literals >items
	send items
	bad
	is "$(jq -r 'select(.type == "end") | "\(.state) \(.passed)"' <events)" "finished $(wc -l <items)"
}

run_daemon_tests
