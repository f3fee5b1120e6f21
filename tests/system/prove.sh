#!/bin/sh
# prove.sh - `atoll prove`: the container tier passes and its proof is shown by the API; a box without an isolation step does not
# pass; a killed proof leaves nothing behind.
. "$(dirname "$0")/daemon.lib"

the_container_tier_is_proven_and_the_api_shows_it() {
	atoll prove container --state "$state" --json
	is "$status" 0 "$(jq -c '.[0].probes[] | select(.verdict != "passed")' out) $err"
	is "$(jq -r '.[0].passed' out)" true
	[ "$(jq '.[0].probes | length' out)" -ge 90 ] || fail "only $(jq '.[0].probes | length' out) probes"
	# Every kind of probe is there.
	is "$(jq -r '[.[0].probes[].probe] | unique | join(",")' out)" \
		"end of the box,host environment,host files,host processes,host sockets,identity,kernel,limits,other box,other system call table,output,processes,system calls"
	proof=$(jq -r '.[0].id' out)
	api GET "/v1/proofs?tier=container"
	is "$code" 200
	is "$(get '.items[0].id')" "$proof"
	is "$(get '.items[0].probes')" null
	api GET "/v1/proofs/$proof"
	is "$code" 200
	is "$(get .passed)" true
	is "$(get '.probes | length')" "$(jq '.[0].probes | length' out)"
	api GET /v1/proofs/aaaaaaaaaaaa
	is "$code" 404
	has "$body" "GET /v1/proofs"
}

a_proof_needs_a_known_tier_and_root() {
	atoll prove fortress
	is "$status" 2
	has "$err" "no tier named 'fortress'"
	HOME=/nonexistent setpriv --reuid 65534 --clear-groups -- "$ATOLL" prove container >out 2>err && fail "it was proven by an ordinary user"
	has "$(cat err)" "run it as root"
}

# The folder, the process and the boxes of a proof that was killed.
nothing_of() { ! pgrep -P "$1" && [ -z "$("$ATOLL" ps --local -q)" ] && [ -z "$(ls -d /tmp/atoll-prove-* 2>/dev/null | grep -vxF "$2")" ]; }
a_killed_proof_leaves_nothing_behind() {
	before=$(ls -d /tmp/atoll-prove-* 2>/dev/null || echo none)
	"$ATOLL" prove container >out 2>err &
	proof=$!
	has_boxes() { [ "$("$ATOLL" ps --local -q | wc -l)" -ge 2 ] || ! kill -0 "$proof"; }
	soon has_boxes
	kill -9 "$proof" 2>/dev/null || :
	wait "$proof" || :
	soon nothing_of "$proof" "$before"
}

a_proof_fails_without_an_isolation_step() {
	[ -x "${ATOLL_TEST_BIN-}" ] || skip "no build with test hooks"
	export ATOLL_RUN="$PWD/run"
	trap 'kill "$keeper"' EXIT
	soon start_keeper "$ATOLL_TEST_BIN" --pool 0
	is "$said" R
	status=0
	"$ATOLL_TEST_BIN" prove container --without "host name" --json >out 2>err || status=$?
	is "$status" 1 "$(cat err)"
	is "$(jq -r '.[0].passed' out)" false
	has "$(jq -r '.[0].probes[] | select(.verdict == "failed") | .probe + ": " + .way' out)" "identity: host name"
}

run_daemon_tests
