#!/bin/sh
# run.sh - a published server of mocked models (@copilotkit/aimock), asked in all four dialects: text, calls and their
# results, errors, cut streams; and a pipeline whose planner and coder are models.
#
#	tests/run tests/compat/dialects/run.sh
#
# The package comes from npm, at the version of package.json, into a folder outside of the tree: DIALECTS_COMPAT_CACHE, or
# below ~/.cache.
top=$(cd "$(dirname "$0")/../../.." && pwd)
compat=$top/tests/compat/dialects
libs=$top/tests/system
. "$libs/daemon.lib"
cache=${DIALECTS_COMPAT_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/atoll/dialects}
export DIALECTS_COMPAT_CACHE="$cache"

packages() {
	mkdir -p "$cache" || return 1
	cmp -s "$compat/package.json" "$cache/installed" && return
	cp "$compat/package.json" "$compat/.npmrc" "$cache/" &&
		npm install --prefix "$cache" --no-audit --no-fund --ignore-scripts --prefer-offline >"$cache/npm.log" 2>&1 &&
		cp "$compat/package.json" "$cache/installed"
}
command -v npm >/dev/null || { echo "1..0 # SKIP no npm"; exit 0; }
node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)' || { echo "1..0 # SKIP it needs node 18, this is $(node -v)"; exit 0; }
packages || { echo "1..0 # SKIP npm cannot install it: $(grep -m 1 'npm error' "$cache/npm.log" | cut -c 1-100)"; exit 0; }

node "$compat/mock.mjs" "$work/mock.port" >"$work/mock.log" 2>&1 &
mock=$!
finish_mock() {
	kill $mock 2>/dev/null
	finish_daemon
}
trap finish_mock EXIT
soon test -s "$work/mock.port"
port=$(cat "$work/mock.port")

dialects="chat responses messages ollama"
{
	for d in $dialects; do
		case $d in chat | responses) base=/v1 ;; *) base= ;; esac
		# One provider for good requests and one for bad ones: a provider that fails too often is skipped.
		for kind in '' -bad -worse; do
			case $kind in '') retries=2 ;; -bad) retries=1 ;; *) retries=0 ;; esac
			printf '[provider.%s]\nretries = %s\ndialect = "%s"\nbase = "http://127.0.0.1:%s%s"\nkey = "test-key-4711"\n' "$d$kind" "$retries" "$d" "$port" "$base"
			printf '[model.%s]\nprovider = "%s"\nname = "mock-1"\nprice = { in = 1, out = 2 }\n' "$d$kind" "$d$kind"
		done
	done
	printf '[role]\nplanner = ["messages"]\ncoder = ["chat"]\ndebugger = ["chat", "messages"]\n'
} >"$work/models.toml"
export ATOLL_MODELS="$work/models.toml"

ask() { # MODEL TEXT [MORE]
	api POST /v1/models/ask "$(jq -nc --arg m "$1" --arg t "$2" --argjson more "${3:-{\}}" '{model:$m, messages:[{role:"user", text:$t}]} + $more')"
}
tools='{"tools":[{"name":"run_command","description":"Runs.","parameters":{"type":"object","properties":{"command":{"type":"string"},"timeout_ms":{"type":"integer"}},"required":["command","timeout_ms"],"additionalProperties":false}},
{"name":"now","parameters":{"type":"object","properties":{},"required":[],"additionalProperties":false}}]}'

text_is_the_same_in_all_dialects() {
	for d in $dialects; do
		ask "$d" hello
		is "$code" 200 "$d: $body"
		is "$(get '[.text, .stop, .tries, .usage.in > 0, .usage.out > 0, .usage.cost > 0] | @csv')" '"Hello, é🐢 there.","end",1,true,true,true' "$d: $body"
	done
}

tool_calls_and_results_are_the_same_in_all_dialects() {
	for d in $dialects; do
		ask "$d" 'list the files' "$tools"
		is "$(get '[.stop, .calls[0].name, .calls[0].arguments.command, .calls[0].arguments.timeout_ms] | @csv')" '"tools","run_command","ls",5000' "$d: $body"
		call=$(jq -c '.calls[0]' <body)
		api POST /v1/models/ask "$(jq -nc --arg m "$d" --argjson c "$call" --argjson more "$(echo "$tools" | jq -c .)" \
			'{model:$m, messages:[{role:"user",text:"list the files"},{role:"assistant",calls:[$c]},{role:"user",results:[{id:$c.id,text:"a.c"}]}]} + $more')"
		is "$(get '[.stop, .text] | @csv')" '"end","There is a.c."' "$d: $body"
		ask "$d" 'what time is it' "$tools"
		is "$(jq -c '.calls[0] | [.name, .arguments]' <body)" '["now",{}]' "$d: $body"
	done
}

a_busy_provider_is_retried_after_its_delay() {
	for d in $dialects; do
		ask "$d" "busy $d"
		is "$code" 200 "$d: $body"
		is "$(get '[.text, .tries] | @csv')" '"now it goes",2' "$d: $body"
	done
}

permanent_errors_are_not_retried() {
	for d in $dialects; do
		ask "$d" forbidden
		is "$(get '.answer | [.error.category, .tries, .error.status] | @csv')" '"auth",1,401' "$d: $body"
	done
}

invalid_answers_are_errors() {
	for d in $dialects; do
		for what in 'hang up' overloaded; do
			ask "$d-bad" "$what" '{"deadline_ms":8000}'
			[ "$code" -ge 500 ] || fail "$d, $what: $body"
			is "$(get '[.answer.error.retriable, .answer.text] | @csv')" 'true,' "$d, $what: $body"
		done
		ask "$d-worse" nonsense '{"deadline_ms":8000}'
		[ "$code" -ge 422 ] || fail "$d, nonsense: $body"
		ask "$d-worse" gone '{"deadline_ms":8000}'
		[ "$code" -ge 500 ] || fail "$d, gone: $body"
	done
}

a_pipeline_with_models_ends_with_the_expected_outcome() {
	api POST '/v1/pipelines?wait=1' '{"task":"Print the answer to everything, in words.","mode":"llm","language":"python"}'
	is "$code" 200 "$body"
	case $(get .outcome) in verified | examples_pass | plausible) ;; *) fail "$body" ;; esac
	has "$(get .output)" 'forty-two'
	is "$(get .artifact.provenance)" llm:chat
	is "$(get .usage.calls)" 3
	curl -sS "http://127.0.0.1:$port/__aimock/journal" >journal
	has "$(tr -d '\0' <journal | grep -o 'is a placeholder for missing code' | head -1)" 'is a placeholder for missing code'
}

run_daemon_tests
