#!/bin/sh
# schedules.sh - schedules: what a tick starts, its principal, and that each tick is run once when the server is killed.
. "$(dirname "$0")/daemon.lib"

keeper_pid() { "$ATOLL" doctor --json | grep -o 'pid [0-9]*' | head -1 | cut -d ' ' -f 2; }
# schedule NAME WHEN [FIELDS]: creates it; what it starts is part of the fields.
schedule() {
	api POST /v1/schedules "$(jq -nc --arg n "$1" --arg w "$2" "{name:\$n, cron:\$w} + ${3:-{run:{command:\"true\"\}\}}")"
}
tick_is() { api GET "/v1/schedules/$1/ticks" && [ "$(get "$2")" = "$3" ]; }
schedule_is() { api GET "/v1/schedules/$1" && [ "$(get "$2")" = "$3" ]; }
serving() { api GET /v1/info && [ "$code" = 200 ]; }

a_schedule_is_created_shown_changed_and_deleted() {
	schedule life '0 6 * * 1-5' '{tz:"UTC", retries:2, run:{command:"echo hello"}}'
	is "$code" 201 "$body"
	is "$(get '[.words, .tz, .state, .kind, (.next | length), .retries] | map(tostring) | join("; ")')" \
		"at 06:00 on Monday to Friday; UTC; active; run; 5; 2"
	has "$(get '.next[0].local')" 'T06:00:00+00:00'
	schedule life @daily
	is "$code" 409 "$body"
	api PATCH /v1/schedules/life '{"cron":"@monthly","overlap":"queue"}'
	is "$code $(get '.words + "; " + .overlap')" "200 at 00:00 on day 1 of the month; queue" "$body"
	is "$(get .run.command)" 'echo hello'
	api POST /v1/schedules/life/pause
	is "$(get '.state + " " + (.next | length | tostring)')" "paused 0" "$body"
	api POST /v1/schedules/life/resume
	is "$(get .state)" active "$body"
	api GET /v1/schedules
	is "$(get '[.items[] | select(.name == "life")] | length')" 1
	api GET '/v1/audit?action=schedule.'
	has "$(get '.items[].action')" schedule.pause
	key=$viewer api DELETE /v1/schedules/life
	is "$code" 403
	key=$viewer api GET /v1/schedules/life
	is "$code $(get .run)" "200 null" "$body"
	api DELETE /v1/schedules/life
	is "$code" 204
	api GET /v1/schedules/life
	is "$code" 404
}

errors_name_what_to_type() {
	schedule bad '* * 31 2 *'
	is "$code" 400
	has "$(get .error.message)" 'never occurs'
	schedule bad '@daily' '{tz:"Europe/Berln", run:{command:"true"}}'
	is "$code" 400
	has "$(get .error.message)" 'Europe/Ber'
	schedule bad '@daily' '{run:{}}'
	has "$code $(get .error.message)" '400 run: needs command, code or entry'
	schedule bad '@daily' '{run:{command:"true"}, batch:{items:[]}}'
	has "$code $(get .error.message)" '400 exactly one of run, batch and pipeline'
	schedule bad 'at 2001-01-01T00:00'
	has "$code $(get .error.message)" 'is in the past'
	key=$editor schedule bad 'every 5s'
	has "$code $(get .error.message)" 'too often'
	api GET '/v1/schedules/next?cron=0%206%20*%20*%20mon&n=3'
	is "$code $(get '.words + " " + (.next | length | tostring)')" "200 at 06:00 on Monday 3" "$body"
	api GET '/v1/schedules/next?cron=*/0%20*%20*%20*%20*'
	has "$code $(get .error.message)" '400 cron: '
}

a_tick_runs_a_command_a_program_a_batch_and_a_pipeline() {
	schedule command once '{run:{command:"echo from-a-tick; exit 0", env:{A:"1"}}}'
	is "$code" 201 "$body"
	schedule program once '{retries:1, retry_ms:1, run:{language:"bash", code:"exit 3"}}'
	schedule items once '{batch:{language:"bash", items:[{code:"true"}, {code:"exit 0"}]}}'
	is "$code" 201 "$body"
	schedule task once '{pipeline:{task:"print the sum of 1 and 2", mode:"heuristic", language:"bash"}}'
	is "$code" 201 "$body"
	schedule refused once '{run:{command:"true", template:"no-such"}}'
	schedule uncompiled once '{run:{language:"c", code:"int main(void) { return x; }"}}'
	soon tick_is command '.items[0].state' succeeded
	api GET "/v1/runs/$(get '.items[0].run')"
	is "$(get '.tag + " " + .cause')" "command exit" "$body"
	soon tick_is program '.items[0] | .state + " " + .detail + " " + (.attempt | tostring)' "failed exit status 3 2"
	soon tick_is refused '.items[0] | .state + " " + (.detail | contains("no-such") | tostring)' "failed true"
	soon tick_is uncompiled '.items[0] | .state + " " + (.detail | contains("a step before the program failed") | tostring)' "failed true"
	soon tick_is items '.items[0].state' succeeded
	api GET "/v1/batch/$(get '.items[0].run')"
	is "$(get .state)" finished "$body"
	ended() { tick_is task '.items[0].state | . == "succeeded" or . == "failed"' true; }
	soon ended
	api GET "/v1/pipelines/$(get '.items[0].run')"
	is "$code" 200 "$body"
	soon schedule_is command .state ended
	api GET '/v1/events?limit=1000'
	has "$(get '.items[].type')" schedule.succeeded
}

an_attempt_that_exceeds_the_time_limit_is_ended() {
	old=$(server_pid)
	schedule slow-command once '{timeout_ms:300, run:{command:"sleep 60", timeout_ms:60000}}'
	schedule slow-items once '{timeout_ms:300, batch:{items:[{command:"sleep 60", timeout_ms:60000}]}}'
	soon tick_is slow-command '.items[0] | .state + " " + .detail' "failed the time limit of the schedule was reached"
	soon tick_is slow-items '.items[0] | .state + " " + .detail' "failed the time limit of the schedule was reached"
	api GET "/v1/batch/$(get '.items[0].run')"
	is "$(get .state)" cancelled "$body"
	is "$(server_pid)" "$old" "the server has ended"
}

a_revoked_key_pauses_its_schedule() {
	api POST /v1/keys '{"name":"short-lived","role":"editor"}'
	revoked=$(get .id)
	key=$(get .key) schedule orphan @yearly
	is "$code" 201 "$body"
	api DELETE "/v1/keys/$revoked"
	api POST /v1/schedules/orphan/run
	is "$code" 202 "$body"
	soon schedule_is orphan .state paused
	has "$(get .reason)" "key $revoked"
	api POST /v1/schedules/orphan/resume # as the caller
	is "$(get .state)" active
	api POST /v1/schedules/orphan/run
	soon tick_is orphan '.items[0].state' succeeded
}

a_server_killed_between_claim_and_start_runs_the_tick_once() {
	stopped=$(keeper_pid)
	schedule once-only @yearly '{run:{command:"echo ran"}, overlap:"queue"}'
	kill -STOP "$stopped"
	# Pooled boxes need the keeper, too: nothing can start.
	api POST /v1/schedules/once-only/run
	is "$code" 202 "$body"
	tick_is once-only '.items[0].state' starting || fail "$body"
	kill -9 "$(server_pid)"
	kill -CONT "$stopped"
	soon tick_is once-only '.items[0] | .state + " " + (.attempt | tostring)' "succeeded 2"
	api GET '/v1/runs?limit=1000'
	is "$(get '[.items[] | select(.tag == "once-only")] | length')" 1 "$body"
}

each_second_has_one_tick_when_the_server_is_replaced_and_killed() {
	schedule seconds 'every 1s' '{run:{command:"true"}, overlap:"queue", catch_up:"all", catch_up_max:100}'
	is "$code" 201 "$body"
	soon tick_is seconds '[.items[] | select(.state == "succeeded")] | length >= 1' true
	old=$(server_pid)
	kill -HUP "$supervisor"
	replaced() { ! kill -0 "$old" 2>/dev/null; }
	soon replaced
	kill -9 "$(server_pid)"
	soon serving
	soon tick_is seconds '[.items[] | select(.state == "succeeded")] | length >= 3' true
	api POST /v1/schedules/seconds/pause
	settled() { tick_is seconds '[.items[].state] | all(. != "waiting" and . != "starting" and . != "running")' true; }
	soon settled
	cp body ticks
	jq -e '[.items[] | select(.state != "skipped") | .state] | all(. == "succeeded")' ticks >/dev/null || fail "$(cat ticks)"
	# No second is left out, and none has two ticks.
	jq -e '[.items[].at | sub("\\.[0-9]+Z$"; "Z") | fromdate] | sort | . as $t | range(1; length) | $t[.] - $t[. - 1] | . == 1' ticks |
		grep -q false && fail "$(cat ticks)"
	api GET '/v1/runs?limit=1000'
	is "$(get '[.items[] | select(.tag == "seconds") | .id] | sort | join(" ")')" \
		"$(jq -r '[.items[].run // empty] | sort | join(" ")' ticks)"
}

the_command_creates_lists_and_removes_schedules() {
	atoll() { "$ATOLL" -H "$url" "$@"; }
	export ATOLL_KEY=$key
	echo 'print("scheduled")' >job.py
	atoll schedule new job --cron '30 2 * * *' --tz UTC --env A=b job.py >out 2>err || fail "$(cat err)"
	has "$(cat out)" 'at 02:30 every day (UTC), active'
	atoll schedule new cmd --cron @weekly -- echo hello >/dev/null
	has "$(atoll schedule ls)" cmd
	atoll schedule run job
	soon tick_is job '.items[0].state' succeeded
	has "$(atoll schedule history job)" succeeded
	atoll schedule pause job
	has "$(atoll schedule show job)" paused
	atoll schedule rm job
	atoll schedule show job 2>err && fail "still there"
	atoll schedule new bad --cron '*/0 * * * *' -- true 2>err && fail "accepted"
	has "$(cat err)" 'a step must be a number'
	atoll schedule new bad -- true 2>err && fail "accepted"
	has "$(cat err)" '--cron is missing'
}

run_daemon_tests
