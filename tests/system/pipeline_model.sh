#!/bin/sh
# pipeline_model.sh - pipelines with a scripted model that plans, codes and debugs (pipeline_model.py): the same
# documents as without one, budgets, races, counters.
. "$(dirname "$0")/daemon.lib"

serve_model() {
	python3 "$here/pipeline_model.py" "$work/port" 2>"$work/model.log" &
	echo $! >"$work/model.pid"
	soon test -s "$work/port"
	cat >"$work/models.toml" <<-EOF
		[provider.rote]
		dialect = "chat"
		base = "http://localhost:$(cat "$work/port")/v1"
		key = "sk-secret-of-this-test"
		[model.small]
		provider = "rote"
		name = "rote-1"
		price = { in = 1.0, out = 10.0, cache_read = 0.1 }
		[role]
		planner = ["small"]
		coder = ["small"]
		debugger = ["small", "small"]
	EOF
	chmod 600 "$work/models.toml"
	export ATOLL_MODELS="$work/models.toml"
}
finish_model() {
	kill "$(cat "$work/model.pid")"
	finish_daemon
}
trap finish_model EXIT
pipeline() { api POST "/v1/pipelines?wait=1" "$1"; is "$code" 200 "$body"; }
documents() { api GET "/v1/pipelines/$1" && get '[.documents[].kind] | join(" ")'; }
asks_models() { api GET /v1/models && [ "$code" = 200 ]; }

a_model_handles_tasks_that_the_rules_do_not_know() {
	pipeline '{"task":"ponder the imponderable, loudly"}'
	is "$(get .outcome) $(get .attempts)" "plausible 1" "$body"
	has "$(get .artifact.provenance)" "llm:"
	is "$(get .usage.calls)" 2 "$body"
	[ "$(get '.usage.cost > 0 and .usage.in > 0 and .usage.cache_read > 0')" = true ] || fail "$body"
	is "$(documents "$(get .run_id)")" "task plan artifact result report"
}

a_model_is_not_called_for_tasks_that_the_rules_know() {
	pipeline '{"task":"mean and median of 3, 1 and 2 in Python"}'
	is "$(get .outcome) $(get .usage.calls)" "verified 0" "$body"
}

a_wrong_program_is_fixed_by_a_model() {
	pipeline '{"task":"first wrong, then better","mode":"llm"}'
	is "$(get .outcome) $(get .attempts)" "plausible 2" "$body"
	is "$(documents "$(get .run_id)")" "task plan artifact result diagnosis diagnosis artifact result report"
	is "$(get '[.documents[] | select(.kind == "diagnosis") | .document.source // "rules" | .[0:3]] | join(" ")')" "rul llm"
	api GET "/v1/pipelines/$(get .id)/events?limit=1000"
	is "$(get '[.items[] | select(.type == "model_call") | .role] | join(" ")')" "planner coder debugger" "$body"
}

attempts_end_when_no_fix_helps() {
	pipeline '{"task":"a stubborn one","mode":"llm"}'
	# Each attempt has another output, so each is another fault, and all attempts are used.
	is "$(get .outcome) $(get .attempts)" "failed 3" "$body"
	has "$(get .root_cause)" "expected stdout to contain 'right', seen 'still still wrong"
	api GET "/v1/pipelines/$(get .run_id)"
	is "$(get '[.documents[] | select(.kind == "artifact") | .document.hash] | (unique | length) == length')" true "$body"
}

a_race_of_programs_has_one_winner() {
	pipeline '{"task":"racing ahead","mode":"llm","race":4}'
	is "$(get .outcome) $(get .attempts)" "plausible 1" "$body"
	has "$(get .output)" right
	is "$(get .usage.calls)" 5
	api GET "/v1/pipelines/$(get .run_id)"
	is "$(get '[.documents[] | select(.kind == "artifact") | .document.rivals | length] | .[0]')" 3 "$body"
	is "$(get '[.documents[] | select(.kind == "result")] | length')" 1
	id=$(get .id)
	api POST "/v1/pipelines/$id/replay" '{}'
	is "$(get .same)" true "$body"
}

programs_of_a_race_run_in_copies_of_a_box() {
	new_box '{"name":"loaded","env":{"END":"ht"}}'
	api POST "/v1/boxes/$box/execs" '{"command":"echo rig >data; sleep 1000","background":true}'
	running=$(get .id)
	soon says_data
	pipeline '{"task":"racing ahead with a thimble","mode":"llm","race":4,"box":"loaded"}'
	is "$(get .outcome) $(get .attempts)" "plausible 1" "$body"
	has "$(get .output)" right
	has "$(get '.evidence | join(";")')" "it ran in a copy of box loaded"
	id=$(get .run_id)
	api GET "/v1/pipelines/$id"
	is "$(get '[.documents[] | select(.kind == "result") | .document.from.box] | join(" ")')" loaded "$body"
	checkpoint=$(get '[.documents[] | select(.kind == "result") | .document.from.checkpoint][0]')
	# The box stays as it is, and no copy is left.
	api POST "/v1/boxes/$box/execs" '{"command":"ls"}'
	is "$(get .stdout)" data
	api GET "/v1/boxes/$box/execs/$running"
	is "$(get .state)" running "$body"
	api GET /v1/boxes
	is "$(get '[.items[].id] | join(" ")')" "$box" "$body"
	# Nothing has changed: the next attempt has the same checkpoint, and so has a replay after a change.
	pipeline '{"task":"racing ahead with a thimble, again","mode":"llm","race":2,"box":"loaded"}'
	api GET "/v1/pipelines/$(get .run_id)"
	is "$(get '[.documents[] | select(.kind == "result") | .document.from.checkpoint][0]')" "$checkpoint" "$body"
	api POST "/v1/boxes/$box/execs" '{"command":"echo wro >data"}'
	api POST "/v1/pipelines/$id/replay" '{}'
	is "$(get .same)" true "$body"
	api DELETE "/v1/boxes/$box"
}
says_data() { api GET "/v1/boxes/$box/files?path=data" && [ "$code" = 200 ]; }

the_report_states_that_the_box_could_not_be_copied() {
	api POST /v1/pipelines '{"task":"any","box":"nonesuch"}'
	is "$code" 404 "$body"
	new_box
	pipeline "{\"task\":\"ask me first\",\"mode\":\"llm\",\"box\":\"$box\"}"
	is "$(get .outcome)" needs_input "$body"
	id=$(get .run_id)
	api DELETE "/v1/boxes/$box"
	api POST "/v1/pipelines/$id/answer" '{"text":"forty-two"}'
	api GET "/v1/pipelines/$id?wait=1"
	is "$(get .outcome)" plausible "$body"
	has "$(get '.evidence | join(";")')" "it ran without the files of box $box: there is no such box, or it has ended"
}

the_budget_of_model_calls_is_enforced() {
	pipeline '{"task":"first wrong, then better","mode":"llm","budget":{"max_calls":2}}'
	is "$(get .outcome) $(get .usage.calls)" "failed 2" "$body"
	has "$(get .why)" max_calls
	is "$(get .category)" budget
	pipeline '{"task":"ponder the imponderable","mode":"llm","budget":{"max_calls":1}}'
	is "$(get .outcome) $(get .category) $(get .usage.calls)" "failed budget 1" "$body"
	has "$(get .why)" max_calls
	pipeline '{"task":"ponder the imponderable","mode":"llm","budget":{"max_calls":0}}'
	is "$(get .outcome) $(get .category) $(get .usage.calls)" "failed budget 0" "$body"
	pipeline '{"task":"ponder the imponderable","mode":"heuristic"}'
	is "$(get .outcome) $(get .usage.calls)" "not_understood 0" "$body"
	has "$(get .hint)" 'mode "heuristic" keeps it from being asked'
}

checks_get_the_complete_stdout() {
	pipeline '{"task":"ponder at length","mode":"llm"}'
	is "$(get .outcome) $(get .attempts)" "plausible 1" "$body"
}

the_planner_prompt_lists_the_languages_of_this_host() {
	pipeline '{"task":"ponder the imponderable","mode":"llm"}'
	api GET /v1/languages
	is "$(cat "$work/port.languages")" "$(get '[.items[] | select(.here) | .name] | sort | join(" ")')"
}

tokens_of_an_interrupted_completion_are_counted() {
	pipeline '{"task":"hang up once","mode":"llm"}'
	is "$(get .outcome) $(get .usage.calls)" "plausible 3" "$body"
	# Two answers have 40 uncached tokens each; the planner's prompt of the first try has far more.
	[ "$(get '.usage.in > 500')" = true ] || fail "$body"
}

a_model_may_ask_the_user_a_question() {
	pipeline '{"task":"ask me first","mode":"llm"}'
	is "$(get .outcome) $(get .question.name)" "needs_input number" "$body"
	id=$(get .run_id)
	api POST "/v1/pipelines/$id/answer" '{"text":"forty-two"}'
	api GET "/v1/pipelines/$id?wait=1"
	is "$(get .outcome)" plausible "$body"
}

pipeline_metrics_include_cost_and_cached_tokens() {
	api GET /v1/pipelines/metrics
	[ "$(get '.cost_per_success > 0 and .cache_hit_ratio > 0 and .usage.calls > 0')" = true ] || fail "$body"
}

serve_model
# Rates of 1 for a million tokens: the cost in millionths is the number of tokens. What its programs used costs nothing here.
tokens_are_charged_to_the_team_and_the_pipeline() {
	api GET '/v1/pipelines?limit=1000'
	is "$(get '[.items[] | (.cost.amount | tonumber * 1000000 | round) == .usage.in + .usage.out] | all')" true "$body"
	sum=$(get '[.items[] | .usage.in + .usage.out] | add')
	[ "$sum" -gt 0 ] || fail "no tokens: $body"
	api GET '/v1/usage?by=tag'
	is "$(get '.items[] | select(.value == "(model)") | .usage.tokens_in + .usage.tokens_out')" "$sum"
	is "$(get '[.items[] | select(.value == "(pipeline)") | .runs > 0] | all')" true "$body"
}

export ATOLL_RATES_TOKENS_IN_MILLION=1 ATOLL_RATES_TOKENS_OUT_MILLION=1
run_daemon_tests
