#!/bin/sh
# pipeline_kill.sh - kill -9 before, inside and after every stage: the pipeline continues after its last document, has
# the same result, and no stage with a document is run again. Needs a build with test hooks.
. "$(dirname "$0")/daemon.lib"
slow_tests="a_new_daemon_continues_pipelines_of_the_old_one"

[ -x "$ATOLL_TEST_BIN" ] || { echo "1..0 # SKIP no build with test hooks: $ATOLL_TEST_BIN"; exit 0; }
ATOLL=$ATOLL_TEST_BIN
seat() { cut -d ' ' -f "$1" "$ATOLL_RUN/serve.pid"; } # 1: supervisor, 2: version, 3: server
another_front() { [ "$(seat 3)" != "$1" ] && [ "$(seat 3)" != 0 ] && kill -0 "$(seat 3)"; }
kill_front() {
	before=$(seat 3)
	kill -9 "$before"
	soon another_front "$before"
}
is_stopped() { grep -q "stopped for a test.*$1.*$2" "$work/serve.log"; }
finished() { api GET "/v1/pipelines/$1?documents=false" && [ "$(get .state)" = finished ]; }
in_time() { soon_limit=360 && soon finished "$1"; }
# A wrong program, its examples: planner, coder, executor, debugger, repair and orchestrator all have work.
wish='"files":{"main.py":"def add(a, b):\n    return a - b\n"},
	"examples":[{"call":"add(2, 3)","expected":"5"},{"call":"add(0, 1)","expected":"1"},{"call":"add(5, 5)","expected":"10"}]'
kinds="task plan artifact result diagnosis repair artifact result report"

begin() {
	api POST /v1/pipelines "{\"task\":\"fix it\",$wish,\"answers\":{\"test-stop\":\"$1\"}}"
	is "$code" 202 "$body"
	id=$(get .id)
}
wait_stopped() { soon_limit=360 && soon is_stopped "$1" "$2"; }
# It has the same result as a pipeline without kills, and every stage has one document and one end.
check_end() {
	in_time "$id"
	api GET "/v1/pipelines/$id"
	is "$(get '"\([.documents[].kind] | join(" ")): \(.outcome) \(.attempts), \(.documents[-1].document.artifact.files["main.py"])"')" \
		"$kinds: verified 2, def add(a, b):
    return a + b" "$1"
	api GET "/v1/pipelines/$id/events?limit=1000"
	is "$(get '.items | "\([.[] | select(.type == "stage_finished") | .stage] | join(" ")), \([.[].seq] == [range(1; length + 1)]), \([.[] | select(.type == "run_finished")] | length)"')" \
		"planner coder executor debugger repair orchestrator executor orchestrator, true, 1" "$1"
}

without_a_kill_the_pipeline_has_the_expected_documents() {
	api POST '/v1/pipelines?wait=1' "{\"task\":\"fix it\",$wish}"
	id=$(get .run_id)
	check_end undisturbed
}

# In ./check the kills hit two stages per point, together all six; ./check --all hits each stage at each point.
stages_at() {
	case ${ATOLL_QUICK:-0}:$1 in
	1:before) echo planner debugger ;;
	1:inside) echo executor repair ;;
	1:after) echo coder orchestrator ;;
	*) echo planner coder executor debugger repair orchestrator ;;
	esac
}
# begin_at before|inside|after: each pipeline stops at another stage, and one kill hits all of them. With more at once
# the search for a repair would run out of time on a busy machine, and verify less.
begin_at() {
	: >all
	for stage in $(stages_at "$1"); do
		begin "$stage:$1"
		echo "$id $stage:$1" >>all
	done
	while read -r id place; do wait_stopped "$id" "$place"; done <all
}

pipelines_continue_after_kills_between_and_inside_all_stages() {
	for point in before inside after; do
		begin_at $point
		kill_front
		while read -r id place; do check_end "$place"; done <all
	done
}

an_execution_cut_by_a_kill_is_repeated() {
	api POST /v1/pipelines '{"task":"run it","files":{"main.py":"import time\nprint(1, flush=True)\ntime.sleep(1)\nprint(2)\n"}}'
	id=$(get .id)
	says() { api GET "/v1/pipelines/$id/events" && grep -q '"text":"1' body; }
	soon says
	kill_front
	in_time "$id"
	finished "$id"
	is "$(get .outcome)" plausible
	api GET "/v1/pipelines/$id"
	is "$(get '[.documents[].kind] | join(" ")')" "task plan artifact result report"
	is "$(get '.documents[-1].document.output')" "1
2"
}

a_reload_hands_pipelines_to_the_new_server() {
	api POST /v1/pipelines '{"task":"run it","files":{"main.py":"import time\ntime.sleep(0.5)\nprint(2)\n"}}'
	id=$(get .id)
	before=$(seat 3)
	kill -HUP "$(seat 1)"
	soon another_front "$before"
	in_time "$id"
	finished "$id"
	api GET "/v1/pipelines/$id"
	is "$(get '[.documents[].kind] | join(" ")')" "task plan artifact result report"
}

a_pending_question_survives_the_death_of_the_server() {
	api POST '/v1/pipelines?wait=1' '{"task":"run it","files":{"main.py":"print(input().upper())\n"}}'
	is "$(get .outcome)" needs_input "$body"
	id=$(get .run_id)
	kill_front
	answered() { api POST "/v1/pipelines/$id/answer" '{"text":"shout\n"}' && [ "$code" = 200 ]; }
	soon answered
	in_time "$id"
	finished "$id"
	is "$(get .outcome)" plausible
}

# The last test: its daemon is on another port.
a_new_daemon_continues_pipelines_of_the_old_one() {
	for point in before inside after; do
		begin_at $point
		kill -9 "$(seat 1)" "$(seat 3)"
		wait "$supervisor" 2>/dev/null || :
		start_daemon
		while read -r id place; do check_end "$place"; done <all
	done
	stop_daemon # it is a child of this shell, which waits for its exit
	[ -z "$keeper_pid" ] || kill "$keeper_pid"
}

run_daemon_tests
