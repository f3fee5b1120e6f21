#!/bin/sh
# tier_channel.sh - bytes that no guest stub would send, on the channel of a box: that box ends with cause host and the reason of mux, another
# box does not notice it. Boxes are of the tier plain, whose guest stub is a process of the host: channel.py writes to its end.
# (tests/unit/mux_engine_test.c sends many more packets, to mux alone.)
[ -x "${ATOLL_TEST_BIN-}" ] || { echo "1..0 # SKIP no build with test hooks: ${ATOLL_TEST_BIN-}"; exit 0; }
export ATOLL="$ATOLL_TEST_BIN" ATOLL_TIER=plain
. "$(dirname "$0")/daemon.lib"

parent_of() { sed -n 's/^PPid:\t//p' "/proc/$1/status"; }
exited() { api GET "/v1/runs/$exec" && [ "$(get .state)" = exited ]; }
deleted() { api GET "/v1/boxes/$box" && [ "$(get .state)" = deleted ]; }

# hostile WHAT REASON: a new box, whose channel gets these bytes while a program runs.
hostile() {
	new_box
	api POST "/v1/boxes/$box/execs" "{\"command\": \"exec sleep 600$$\", \"background\": true}"
	exec=$(get .id)
	sleeps() { sleeper=$(processes "^sleep 600$$"); }
	soon sleeps
	stub=$(parent_of "$(parent_of "$sleeper")")
	is "$(cat "/proc/$stub/comm")" atoll-guest
	python3 "$libs/channel.py" "$stub" "$1"
	soon exited
	is "$(get '"\(.cause) \(.status)"')" "host 125" "$1: $body"
	has "$(get .summary)" "the box ended first: mux: the $2"
	soon deleted
	is "$(get .cause)" host
	[ ! -d "/proc/$stub" ] || fail "$1: the guest stub is left"
	api POST "/v1/boxes/$neighbour/execs" '{"command": "cat f"}'
	is "$(get .stdout)" kept "$1: $body"
}

invalid_packets_end_the_box_that_sent_them_and_no_other() {
	new_box
	neighbour=$box
	api POST "/v1/boxes/$neighbour/execs" '{"command": "printf kept >f"}'
	hostile size "guest sent a packet of a wrong size"
	hostile hello "guest sent no HELLO, two, or one of another version"
	hostile random "guest sent a packet of " # a wrong size, or an unknown type
	hostile cut "" # and the guest stub is killed: the end of a packet, or that of the engine
	api DELETE "/v1/boxes/$neighbour"
}

run_daemon_tests
