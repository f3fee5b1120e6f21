#!/bin/sh
# agent_hostile.sh - a box with a hostile agent: what its host accepts, how much it reads, how the session ends.
# Needs a build with test hooks: a request may then name another program than boxagent.
ATOLL=${ATOLL_TEST_BIN:-none}
[ -x "$ATOLL" ] || { echo "1..0 # SKIP no build with test hooks: meson setup build-test -Dtest_hooks=true"; exit 0; }
export ATOLL
. "$(dirname "$0")/agent.lib"

# enemy PROGRAM [SCRIPT]: a line of bash instead of boxagent; its descriptor 3 is connected to the host.
enemy() {
	agent "${2:-[]}" "$(jq -cn --arg p "$1" --arg w "${wall:-60000}" '{boxagent: ["/bin/bash", "-c", $p], max_steps: 3, budget: {max_wall_ms: ($w | tonumber)}}')"
	cp body events
	no_boxes || fail "its box is there"
}
ask='{"ask":{"turns":[]}}'
same=$(run_it 'echo x')

a_protocol_line_without_end_ends_the_session() {
	enemy 'head -c 10000000 /dev/zero | tr "\0" x >&3; sleep 200'
	outcome failed
	has "$(of .why)" "a line of more than"
}
log_output_over_16_mib_ends_the_session() {
	enemy 'yes "$(printf %020000d 1)" | head -c 40000000; sleep 200'
	outcome failed
	has "$(of .why)" "more than 16777216 bytes"
}
invalid_protocol_messages_end_the_session() {
	for words in hello '[]' '{}' '"ask"' '{"ask":1}' '{"ask":{}}' '{"ask":{"turns":[{}]}}' '{"ask":{"turns":[],"ask":{}},"ask":{}}' \
		'{"end":[]}'; do
		enemy "echo '$words' >&3; sleep 200"
		outcome failed
	done
	enemy 'head -c 3000000 /dev/zero | tr "\0" "[" >&3; echo >&3; sleep 200'
	outcome failed
	enemy 'head -c 64 /dev/urandom >&3; printf "\0\n" >&3; sleep 200'
	outcome failed
}
an_agent_with_two_questions_in_flight_is_ended() {
	enemy "echo '$ask' >&3; echo '$ask' >&3; sleep 200" "$(script '{"never":true}')"
	outcome failed
	has "$(of .why)" "no agent of ours asks"
}
an_agent_exceeding_its_question_budget_is_ended() {
	enemy "while read -r x <&3; do echo '$ask' >&3; done" "$(script "$same")"
	outcome failed
	is "$(of .usage.calls)" 6
}
a_result_comes_only_from_the_model() {
	enemy "echo '{\"end\":{\"outcome\":\"done\",\"result\":\"mine\"}}' >&3; echo '{\"done\":true,\"result\":\"mine\"}'"
	outcome failed
	is "$(of .result)" null
	enemy "read -r x <&3; echo '$ask' >&3; read -r x <&3; echo '{\"end\":{\"outcome\":\"done\",\"result\":\"mine\"}}' >&3" \
		"$(script "$(done_with theirs)")"
	outcome done
	is "$(of .result)" theirs
}
an_agent_that_reports_the_end_but_does_not_exit_is_ended() {
	enemy "read -r x <&3; echo '$ask' >&3; read -r x <&3; echo '{\"end\":{\"outcome\":\"done\"}}' >&3; sleep 200" \
		"$(script "$(done_with theirs)")"
	outcome done
	[ "$(of .ms)" -lt 60000 ] || fail "only its wall time ended it"
}
a_silent_agent_is_ended_at_the_wall_limit() {
	wall=1500
	enemy 'sleep 200'
	outcome budget
	has "$(of .why)" max_wall_ms
}
log_lines_of_any_bytes_are_sent_as_text_events() {
	enemy 'printf "\377\0\033[2J\n{\"a\":1,\"a\":2}\nplain"; printf "x\377" >&2; exit 3'
	outcome failed
	is "$(jq -r 'select(.type == "log") | .text' <events | wc -l)" 3
	has "$(jq -r 'select(.type == "stderr") | .text' <events)" x
}
an_agent_that_does_not_read_cannot_block_its_host() {
	wall=2500
	enemy "echo '$ask' >&3; sleep 200" "$(script '{"never":true}')"
	outcome budget
	enemy "for i in 1 2 3 4 5 6; do echo '$ask' >&3; sleep 0.3; done; sleep 200" "@$work/long"
	[ "$(of .outcome)" != done ] || fail "$(cat report)"
}

head -c 1900000 /dev/zero | tr '\0' x | jq -Rcs '[., ., ., ., ., .]' >"$work/long"
run_agent_tests
