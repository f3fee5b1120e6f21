#!/bin/sh
# serve_restart.sh - what a new server, keeper or binary takes over from the old one, one case each.
# The load test is serve_stress.sh.
. "$(dirname "$0")/daemon.lib"

sql() { sqlite3 -cmd '.timeout 5000' "$state/server/atoll.db" "$1"; }
seat() { cut -d ' ' -f "$1" "$ATOLL_RUN/serve.pid"; } # 1: supervisor, 2: version, 3: server
keeper_pid() { "$ATOLL" doctor --json | grep -o 'pid [0-9]*' | head -1 | cut -d ' ' -f 2; }
another_server() { [ "$(seat 3)" != "$1" ] && [ "$(seat 3)" != 0 ] && kill -0 "$(seat 3)"; }
kill_front() {
	before=$(seat 3)
	kill -9 "$before"
	soon another_server "$before"
}
run_is() { api GET "/v1/runs/$run" && [ "$(get "$1")" = "$2" ]; }
asks_for() { api GET "/v1/boxes/$1" && [ "$(get "$2")" = "$3" ]; }
# Not by the path of the box: that request would be activity.
listed_gone() { api GET '/v1/boxes?state=deleted' && [ "$(get ".items | any(.id == \"$1\")")" = true ]; }
# The host pid of the init of a box: the parent of an exec in it.
init_of() {
	api POST "/v1/boxes/$1/execs" '{"command":["sleep","31.4159"],"background":true}'
	soon processes 'sleep 31.4159'
	ps -o ppid= -p "$(processes 'sleep 31.4159' | head -1)" | tr -d ' '
}

a_repeated_create_after_the_death_of_the_server_creates_one_box() {
	command -v sqlite3 >/dev/null || skip "no sqlite3"
	stopped=$(keeper_pid)
	for i in 1 2 3; do api POST /v1/boxes '{}'; api DELETE "/v1/boxes/$(get .id)"; done
	kill -STOP "$stopped"
	curl -sS -o cut -X POST -H "X-API-Key: $key" -H 'Idempotency-Key: cut' -d '{}' "$url/v1/boxes" 2>/dev/null &
	begun() { [ "$(sql "select count(*) from idempotency where key = 'cut' and status = 0")" = 1 ]; }
	soon begun
	kill -9 "$(seat 3)"
	kill -CONT "$stopped"
	wait $! || : # the request was aborted
	again() { api POST /v1/boxes '{}' -H 'Idempotency-Key: cut' && [ "$code" = 201 ]; }
	soon again
	first=$(get .id)
	again
	is "$(get .id)" "$first"
	api GET /v1/boxes
	is "$(get '[.items[].id] | join(" ")')" "$first"
	api DELETE "/v1/boxes/$first"
}

records_of_version_0_1_are_answered_with_the_new_words() {
	command -v sqlite3 >/dev/null || skip "no sqlite3"
	api POST /v1/run '{"command":"true"}'
	run=$(get .id)
	stored() { [ "$(sql "select count(*) from runs where id = '$run' and ended_ns > 0")" = 1 ]; }
	soon stored
	sql "update runs set record = replace(record, '\"state\":\"exited\"', '\"compiled_before\":true,\"state\":\"over\"')
		where id = '$run'"
	is "$(sql "select instr(record, '\"state\":\"over\"') > 0 from runs where id = '$run'")" 1
	api GET "/v1/runs/$run"
	is "$(get '.state + " \(.cached) \(.compiled_before)"')" "exited true true"
	api GET /v1/runs
	is "$(get ".items[] | select(.id == \"$run\") | .state + \" \(.cached)\"")" "exited true"
}

a_box_created_before_the_server_died_is_returned_to_the_repeated_request() {
	command -v sqlite3 >/dev/null || skip "no sqlite3"
	api POST /v1/boxes '{}' -H 'Idempotency-Key: untold'
	first=$(get .id)
	is "$(sql "select subject from idempotency where key = 'untold'")" "$first"
	sql "update idempotency set status = 0, type = '', body = x'' where key = 'untold'"
	kill_front
	api POST /v1/boxes '{}' -H 'Idempotency-Key: untold'
	is "$code $(get .id)" "201 $first"
	api DELETE "/v1/boxes/$first"
}

# All inits of this keeper, also of pooled boxes, are stopped until `kill -CONT`: as on a busy machine that does
# not schedule them.
a_box_survives_a_keeper_killed_before_init_ran() {
	killed=$(keeper_pid)
	pooled() { [ "$(pgrep -c -P "$killed" -x atoll-init)" -ge 2 ]; }
	soon pooled
	inits=$(pgrep -P "$killed" -x atoll-init)
	for i in $inits; do kill -STOP "$i"; done
	api POST /v1/boxes '{}'
	made=$code given=$(get .id)
	kill -9 "$killed"
	killed_gone() { ! kill -0 "$killed"; }
	soon killed_gone
	for i in $inits; do kill -CONT "$i" 2>/dev/null || :; done
	is "$made" 201
	api POST "/v1/boxes/$given/execs" '{"command":["echo","alive"]}'
	is "$(get .stdout)" "alive" "$body"
	api GET "/v1/boxes/$given"
	is "$(get .state)" running "$body"
	api DELETE "/v1/boxes/$given"
}

a_run_that_never_started_has_cause_host() {
	command -v sqlite3 >/dev/null || skip "no sqlite3"
	new_box
	sql "insert into runs (id, box, team, ref, kind, tag, started_ns, ended_ns, cause, status, output_bytes, command, record)
		values ('aaaaaaaaaaaa', '$box', 'default', 77, 'exec', '', 1700000000000000000, 0, '', 0, 0, '[\"true\"]', '{}')"
	kill_front
	over() { api GET /v1/runs/aaaaaaaaaaaa && [ "$(get .cause)" = host ]; }
	soon over
	is "$(get .status)" 125
	api POST "/v1/boxes/$box/execs" '{"command":"echo fine"}'
	is "$(get .stdout)" fine
	api DELETE "/v1/boxes/$box"
}

# The server is killed after the answer is sent and before the row is written.
an_exit_answered_but_not_stored_is_read_again_from_init() {
	new_box
	for i in 1 2 3; do
		before=$(seat 3)
		run=$(python3 - "$url" "$key" "$box" "$before" <<-'EOF'
			import http.client, json, os, sys
			url, key, box, server = sys.argv[1:]
			c = http.client.HTTPConnection(url[7:])
			c.request("POST", f"/v1/boxes/{box}/execs", '{"command":"echo told; exit 3"}', {"X-API-Key": key})
			answer = c.getresponse().read()
			os.kill(int(server), 9)
			print(json.loads(answer)["id"])
		EOF
		)
		soon another_server "$before"
		ended() { api GET "/v1/runs/$run" && [ "$(get .state)" = exited ]; }
		soon ended
		is "$(get '.cause + " " + (.status|tostring)')" "exit 3" "$body"
	done
	api GET "/v1/events"
	is "$(get "[.items[] | select(.type == \"run.ended\" and .data.run == \"$run\")] | length")" 1 "$body"
	api DELETE "/v1/boxes/$box"
}

a_started_deletion_is_completed_with_its_cause() {
	command -v sqlite3 >/dev/null || skip "no sqlite3"
	new_box
	sql "update boxes set cause = 'operator' where id = '$box'"
	kill_front
	soon asks_for "$box" '.state + " " + .cause' "deleted operator"
}

a_deletion_requested_before_the_server_died_has_its_cause() {
	new_box
	stopped=$(keeper_pid)
	kill -STOP "$stopped" # it reads KILL after the server and the client have exited
	curl -sS -o cut -X DELETE -H "X-API-Key: $key" "$url/v1/boxes/$box" 2>/dev/null &
	is_ending() { api GET "/v1/boxes/$box" && [ "$code" = 404 ]; }
	soon is_ending
	kill -9 "$(seat 3)"
	kill -CONT "$stopped"
	wait $! || :
	soon asks_for "$box" '.state + " " + .cause' "deleted operator"
}

a_second_delete_also_waits_for_the_end_of_the_box() {
	new_box
	stopped=$(keeper_pid)
	kill -STOP "$stopped"
	delete() { curl -sS -v -o /dev/null -w '%{http_code}' --max-time 120 -X DELETE -H "X-API-Key: $key" "$url/v1/boxes/$box"; }
	delete >first 2>/dev/null &
	one=$!
	is_ending() { api GET "/v1/boxes/$box" && [ "$code" = 404 ]; }
	soon is_ending
	delete >second 2>sent &
	two=$!
	soon grep -q '^> DELETE' sent
	api GET /v1/boxes # answered after the second delete was read
	early=$(cat second)
	kill -CONT "$stopped"
	wait $one $two
	is "$early" "" "answered while the box may live"
	is "$(cat first second)" 204204
}

a_lifetime_that_ends_without_a_server_has_cause_lifetime() {
	new_box '{"lifetime_ms":600000}'
	api POST "/v1/boxes/$box/execs" '{"command":"sleep 100","background":true}'
	run=$(get .id)
	kill -STOP "$supervisor"
	api PATCH "/v1/boxes/$box" '{"lifetime_ms":1000}'
	kill -9 "$(seat 3)"
	sleep 1.1 # the lifetime ends meanwhile
	kill -CONT "$supervisor"
	soon asks_for "$box" '.state + " " + .cause' "deleted lifetime"
	soon run_is .cause lifetime
}

idle_time_is_counted_across_server_restarts() {
	command -v sqlite3 >/dev/null || skip "no sqlite3"
	new_box '{"idle_ms":40000}'
	soon marked_idle
	since=$(idle_since)
	for _ in 1 2; do kill_front; done
	is "$(idle_since)" "$since"
	# As if 39 seconds had passed. Counted from the last restart, the idle time would end after 40 more.
	kill -STOP "$supervisor"
	kill -9 "$(seat 3)"
	sql "update boxes set idle_since_ns = idle_since_ns - 39000000000 where id = '$box'"
	kill -CONT "$supervisor"
	uptime_s
	began=$uptime
	soon listed_gone "$box"
	uptime_s
	[ $((uptime - began)) -lt 38 ] || fail "idle after $((uptime - began)) more seconds"
	soon asks_for "$box" .cause idle
}
idle_since() { sql "select idle_since_ns from boxes where id = '$box'"; }
marked_idle() { [ "$(idle_since)" -gt 0 ]; }

unread_output_counts_as_activity() {
	new_box '{"idle_ms":2000}'
	api POST "/v1/boxes/$box/execs" '{"command":"for i in 1 2 3 4 5 6; do echo $i; sleep 0.4; done","background":true}'
	run=$(get .id)
	soon listed_gone "$box"
	soon run_is '.cause + " " + (.stdout_bytes | tostring)' "exit 12"
}

a_box_with_a_stopped_init_does_not_delay_the_server_start() {
	new_box
	frozen=$box
	init=$(init_of "$frozen")
	is "$(cat "/proc/$init/comm")" atoll-init
	new_box
	kill -STOP "$init"
	kill_front
	api POST "/v1/boxes/$box/execs" '{"command":"echo served"}'
	is "$(get .stdout)" served
	kill -CONT "$init"
	api POST "/v1/boxes/$frozen/execs" '{"command":"echo thawed"}'
	is "$(get .stdout)" thawed
	for b in $frozen $box; do api DELETE "/v1/boxes/$b"; is "$code" 204; done
}

the_box_of_an_aborted_run_ends() {
	curl -sS -o cut -H "X-API-Key: $key" -d '{"command":"sleep 0.5"}' "$url/v1/run" 2>/dev/null &
	there() { api GET /v1/boxes && [ "$(get '.items | length')" = 1 ]; }
	soon there
	gone=$(get '.items[0].id')
	kill_front
	soon asks_for "$gone" .state deleted
	is "$(get .cause)" exit
}

a_second_daemon_with_the_same_run_folder_is_rejected() {
	atoll serve --listen 127.0.0.1:0 --state "$work/other"
	is "$status" 1
	has "$err" "serves from $ATOLL_RUN already (pid $supervisor)"
}

a_second_daemon_with_the_same_state_folder_is_rejected() {
	status=0
	ATOLL_RUN=$PWD/other timeout 120 "$ATOLL" serve --listen 127.0.0.1:0 --state "$state" >out 2>err || status=$?
	is "$status" 1 "$(cat err)"
	has "$(cat err)" "has the state folder $state"
	api GET /v1/boxes
	is "$code" 200
}

a_reload_starts_a_new_server_with_new_settings() {
	before=$(seat 3)
	printf '[limits]\nmax_lifetime = "1h"\n' >"$work/config.toml"
	kill -HUP "$supervisor"
	soon another_server "$before"
	api POST /v1/boxes '{"lifetime_ms":7200000}'
	is "$code" 400
	: >"$work/config.toml"
}

a_reload_with_an_invalid_file_changes_nothing() {
	before=$(seat 3)
	echo 'nonsense = [' >"$work/config.toml"
	kill -HUP "$supervisor"
	soon grep -q 'reload refused' "$work/serve.log"
	is "$(seat 3)" "$before"
	api GET /v1/info
	is "$code" 200
	: >"$work/config.toml"
}

an_upgrade_loses_no_output_and_rejects_no_request() {
	new_box
	api POST "/v1/boxes/$box/execs" '{"command":"for i in $(seq 1 60); do echo line $i; sleep 0.05; done","background":true}'
	run=$(get .id)
	curl -sS -N -H "X-API-Key: $key" "$url/v1/boxes/$box/execs/$run/output" >stream 2>stream.err &
	reader=$!
	(while [ -d "$work" ] && [ ! -e enough ]; do
		curl -sS -o /dev/null "$url/healthz" 2>>refused || :
	done) &
	knocker=$!
	old_keeper=$(keeper_pid) old_server=$(seat 3)
	atoll upgrade
	is "$status" 0 "$err"
	has "$out" "upgraded from"
	has "$out" "(pid $supervisor)"
	another_server "$old_server" || fail "the same server still serves"
	wait $reader || fail "the stream was cut: $(cat stream.err)"
	: >enough
	wait $knocker
	is "$(cat refused 2>/dev/null)" ""
	is "$(jq -r 'select(.type == "stdout").data' <stream | grep -c line)" 60
	is "$(tail -1 stream | jq -r '.type + " " + .cause')" "exit exit"
	api GET "/v1/boxes/$box"
	is "$(get .state)" running
	[ "$(keeper_pid)" != "$old_keeper" ] || fail "the keeper was not replaced"
	api DELETE "/v1/boxes/$box"
}

upgrade_without_a_daemon_is_an_error() {
	status=0
	ATOLL_RUN=$PWD/none "$ATOLL" upgrade >out 2>err || status=$?
	is "$status" 3
	has "$(cat err)" "no daemon serves"
}

a_state_folder_of_version_0_1_is_taken_over() {
	"$ATOLL" key new first --state "$work/older" --quiet >/dev/null
	mv "$work/older/server" "$work/older/front"
	has "$("$ATOLL" key ls --state "$work/older")" first
	[ ! -e "$work/older/server" ] || fail "a second folder"
}

# The last test, because it starts another daemon.
a_lifetime_ends_without_a_daemon_and_after_a_keeper_restart() {
	n=0
	for then in kill keep pause; do
		n=$((n + 1))
		new_box "{\"lifetime_ms\":600000,\"on_timeout\":\"$then\"}"
		eval "$then=$box"
		api POST "/v1/boxes/$box/execs" "{\"command\":[\"sleep\",\"271.$$$n\"],\"background\":true}"
		soon processes "sleep 271.$$$n"
	done
	sleep 1.2 # in the first second of a box its server does not send the deadline to the keeper
	for box in $kill $keep $pause; do api PATCH "/v1/boxes/$box" '{"lifetime_ms":5000}'; done
	uptime_s
	began=$uptime old_keeper=$(keeper_pid)
	kill -9 "$supervisor" "$(seat 3)"
	kill -9 "$old_keeper"
	"$ATOLL" run -- true # starts the next keeper
	lives() { "$ATOLL" ps --local --json | grep -q "$1"; }
	lives "$kill" || { uptime_s && [ $((uptime - began)) -ge 4 ]; } || fail "it ended with the daemon"
	ended() { ! lives "$kill" && ! processes "sleep 271.$$1" >/dev/null; }
	soon ended
	stopped() { ! processes "sleep 271.$$2" >/dev/null; }
	soon stopped
	lives "$keep" || fail "the box was to be kept"
	frozen() { # v1: uninterruptible; v2: by its cgroup
		at=/proc/$(processes "sleep 271.$$3")
		grep -q '^State:.D' "$at/status" ||
			grep -qsx 'frozen 1' "/sys/fs/cgroup$(sed -n 's/^0:://p' "$at/cgroup")/cgroup.events"
	}
	soon frozen
	start_daemon --config "$work/config.toml"
	asks_for "$kill" '.state + " " + .cause' "deleted lifetime" || fail "$body"
	soon asks_for "$keep" .state stopped
	soon asks_for "$pause" .state paused
	for b in $keep $pause; do api DELETE "/v1/boxes/$b"; done
}

umask 022
: >"$work/config.toml"
run_daemon_tests --config "$work/config.toml"
