#!/bin/sh
# library.sh - every program of the planner's library, in every language that is installed, with the slots of its examples: what it says.
# seconds: 300
. "$(dirname "$0")/daemon.lib"
items=$(dirname "$ATOLL")/library-items

# send FILE: a batch; the events are in ./events.
send() {
	curl -sSN --max-time 540 -H "X-API-Key: $key" -H 'Content-Type: application/x-ndjson' \
		--data-binary "@$1" -o events "$url/v1/batch"
}
# Whatever did not pass, a line each, and its last words.
bad() { jq -r 'select(.type == "result" and .verdict != "passed") | "# \(.id): \(.cause): \(.message // "") \((.stderr // "")[-200:])"' <events; }

# Compilers make it long. LIBRARY=all: every program with every example; else compiled ones with their first.
chosen() {
	if [ "${LIBRARY:-}" = all ]; then
		cat
	else
		grep -v '^{"id":"[^/]*/\(typescript\|c++\|go\|rust\|java\|julia\|r\)/[1-9]'
	fi
}

every_program_of_the_library_says_what_its_examples_say() {
	"$items" | chosen >items
	[ "$(wc -l <items)" -ge 2 ] || fail "there are no programs"
	send items
	bad | head -60
	is "$(jq -r 'select(.type == "end") | "\(.state) \(.failed) \(.errors)"' <events)" "over 0 0"
	is "$(jq -r 'select(.type == "end") | .passed' <events)" "$(wc -l <items)"
	"$items" --judge <events || fail "an output does not match"
}

no_text_gets_out_of_its_quotes_in_any_language() {
	"$items" --literals >items
	send items
	bad
	is "$(jq -r 'select(.type == "end") | "\(.state) \(.passed)"' <events)" "over $(wc -l <items)"
}

run_daemon_tests
