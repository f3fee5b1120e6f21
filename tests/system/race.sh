#!/bin/sh
# race.sh - attempts in copies of a box, a check in each, the winner's files for the box.
. "$(dirname "$0")/daemon.lib"
[ "${ATOLL_TIER:-container}" = container ] || { echo "1..0 # SKIP only boxes without an engine have checkpoints"; exit 0; }

says() { # BOX COMMAND
	api POST "/v1/boxes/$1/execs" "$(jq -nc --arg c "$2" '{command:$c}')"
	get .stdout
}
race() { # BODY: as jq writes it
	api POST "/v1/boxes/$box/race" "$(jq -nc "$1")"
}
tidy() { # no copy is left
	api GET /v1/boxes && [ "$(get '[.items[] | select(.state != "ended") | .id] | join(" ")')" = "$box" ]
}
# The work of the attempts waits for a file in their own copy that is never there, or not at all: no attempt is slow by chance.
STUCK='"mkfifo never; read x <never"'

the_first_that_passes_wins_and_the_box_gets_its_files() {
	new_box '{"env":{"E":"e"}}'
	says "$box" 'echo data >f' >/dev/null
	race "{attempts: [{command: \"echo wrong >>f\"}, {command: $STUCK}, {language: \"bash\", code: \"cat f in; echo \$E\$X >>f; echo out\", files: {in: \"i\"}, env: {X: \"x\"}}],
		check: {command: \"grep -q ex f\"}}"
	is "$code $(get .winner)" "200 2" "$body"
	is "$(get '.results[1:] | map(.state) | join(" ")')" "cancelled passed" "$body"
	is "$(get '.results[2].program | [.exit_code, .stdout] | join(" ")')" "0 data
iout" "$body"
	safety=$(get .promoted.safety)
	is "$(says "$box" 'cat f')" "data
ex"
	soon tidy
	api GET "/v1/boxes/$box/events"
	is "$(get '[.items[].type | select(startswith("race.") or . == "box.promoted")] | sort | join(" ")')" "box.promoted race.ended race.started" "$body"
	api POST "/v1/boxes/$box/rollback" "{\"to\":\"$safety\"}" # undone
	is "$(says "$box" 'cat f')" data
	api DELETE "/v1/boxes/$box"
}

the_best_has_the_highest_score() {
	new_box
	race '{attempts: [{command: "echo 3 >score"}, {command: "echo 10 >score"}, {command: "echo 100 >score; touch bad"}, {command: "echo 9.5 >score"}],
		check: {command: "echo seen; cat score; [ ! -e bad ]"}, keep: "best"}'
	is "$code $(get .winner)" "200 1" "$body"
	is "$(get '[.results[].score] | map(tostring) | join(" ")')" "3 10 100 9.5" "$body"
	is "$(says "$box" 'cat score')" 10
	soon tidy
	race '{attempts: [{command: "echo 11 >score"}], check: {command: ["cat", "score"]}, keep: "none"}'
	is "$(get '[.winner, .promoted] | map(tostring) | join(" ")')" "0 null" "$body"
	is "$(says "$box" 'cat score')" 10
	race '{attempts: [{command: "echo 12 >score"}, {command: "exit 7"}], check: {command: "false"}}'
	is "$(get '[.winner, .promoted, .results[1].program.exit_code] | map(tostring) | join(" ")')" "null null 7" "$body"
	is "$(get '[.results[] | .state, .check.exit_code] | map(tostring) | join(" ")')" "failed 1 failed 1" "$body"
	is "$(says "$box" 'cat score')" 10
	soon tidy
	api DELETE "/v1/boxes/$box"
}

a_check_that_hangs_ends_with_the_budget() {
	new_box
	race "{attempts: [{command: \"echo 1 >f\"}, {command: \"echo 2 >f\"}], check: {command: $STUCK}, budget: {wall_ms: 1500}}"
	is "$code" 200 "$body"
	is "$(get '[.winner, .promoted] | map(tostring) | join(" ")')" "null null" "$body"
	is "$(get '[.results[].state | select(. == "passed")] | length')" 0 "$body"
	soon tidy
	is "$(says "$box" 'cat f; echo gone')" gone
	# What is decided by then counts.
	race "{attempts: [{command: \"echo 1 >f\"}, {command: $STUCK}], check: {command: \"cat f\"}, keep: \"best\", budget: {wall_ms: 8000}}"
	is "$(get '[.winner, .out_of_time] | map(tostring) | join(" ")')" "0 true" "$body"
	is "$(says "$box" 'cat f')" 1
	race "{attempts: [{command: \"while :; do :; done\"}], check: {command: \"true\"}, budget: {cpu_ms: 200}}"
	is "$(get .winner)" null "$body"
	soon tidy
	api DELETE "/v1/boxes/$box"
}

copies_end_with_their_client_and_with_their_server() {
	new_box
	copies() { api GET /v1/boxes && [ "$(get '[.items[] | select(.state == "running")] | length')" = "$1" ]; }
	body_of=$(jq -nc "{attempts: [{command: $STUCK}, {command: $STUCK}], check: {command: \"true\"}}")
	for how in client server; do
		curl -sS -H "X-API-Key: $key" -H 'Content-Type: application/json' -d "$body_of" "$url/v1/boxes/$box/race" >/dev/null 2>&1 &
		client=$!
		soon copies 3
		if [ "$how" = client ]; then kill $client; else kill -9 "$(server_pid)"; fi
		wait $client || :
		soon tidy
	done
	api DELETE "/v1/boxes/$box"
}

command_and_tool_promote_the_winner() {
	new_box '{"name":"track"}'
	"$ATOLL" race track --check 'grep -q 2 f' 'echo 1 >f' 'echo 2 >f' >table
	grep -q '^2 *won' table || is "$(cat table)" "2 won"
	is "$(says track 'cat f')" 2
	sh -c "$(sed -n "s|undo: atoll|$ATOLL|p" table)" >/dev/null
	is "$(says track 'ls')" ""
	"$ATOLL" race track --best --check 'cat f' 'echo 1 >f' 'echo 2 >f' >/dev/null
	is "$(says track 'cat f')" 2
	"$ATOLL" race track --check false 'echo 3 >f' >table && is passed failed
	is "$(says track 'cat f')" 2
	"$ATOLL" race track --keep-none --check true 'echo 4 >f' >table
	is "$(says track 'cat f')" 2
	for bad in "" track "track true" "track --check true"; do
		# shellcheck disable=SC2086
		"$ATOLL" race $bad 2>err && is "race $bad" refused
		grep -q 'race: missing' err || is "$(cat err)" "race: missing ..."
	done
	api POST "/v1/boxes/$box/tools/race" '{"attempts":["echo 5 >f","echo 6 >f"],"check":"cat f","best":true}'
	is "$code $(get .data.winner)" "200 1" "$body"
	case $(get .text) in *"attempt 1 has won"*"rollback to $(get .data.promoted.safety)"*) ;; *) is "$body" "what has won, and the undo" ;; esac
	is "$(says track 'cat f')" 6
	api DELETE "/v1/boxes/$box"
}

bad_requests_are_rejected() {
	new_box
	many=$(jq -nc '{attempts: [range(33) | {command: "true"}], check: {command: "true"}}')
	for bad in '{}' '{"attempts":[]}' '{"attempts":[],"check":{"command":"true"}}' '{"attempts":{},"check":{"command":"true"}}' \
		'{"attempts":[{"command":"true"}]}' '{"attempts":[{"command":"true"}],"check":{}}' '{"attempts":[7],"check":{"command":"true"}}' \
		'{"attempts":[{"command":"true","code":"x","language":"bash"}],"check":{"command":"true"}}' \
		'{"attempts":[{"code":"x"}],"check":{"command":"true"}}' '{"attempts":[{"command":"true","pty":{}}],"check":{"command":"true"}}' \
		'{"attempts":[{"command":"true"}],"check":{"command":"true"},"keep":"last"}' \
		'{"attempts":[{"command":"true"}],"check":{"command":"true"},"budget":{"wall_ms":0}}' \
		'{"attempts":[{"command":"true"}],"check":{"command":"true"},"budget":{"wall_ms":3600001}}' "$many"; do
		api POST "/v1/boxes/$box/race" "$bad"
		is "$code" 400 "$bad: $body"
	done
	own=$key key=$viewer
	api POST "/v1/boxes/$box/race" '{"attempts":[{"command":"true"}],"check":{"command":"true"}}'
	key=$own
	is "$code" 403 "$body"
	api POST "/v1/boxes/none/race" '{"attempts":[{"command":"true"}],"check":{"command":"true"}}'
	is "$code" 404 "$body"
	race '{attempts: [{language: "klingon", code: "x"}, {command: "true"}], check: {command: "true"}, keep: "best"}' # one cannot run
	is "$(get '[.results[0].state, (.results[0].message | contains("klingon")), .winner] | map(tostring) | join(" ")')" "error true 1" "$body"
	api DELETE "/v1/boxes/$box"
}

run_daemon_tests
