#!/bin/sh
# cli_resume.sh - the server is killed with -9 during input and output: no byte is lost or repeated.
. "$(dirname "$0")/daemon.lib"

kill_front() {
	victim=$(server_pid)
	[ "$victim" ] || fail "no server runs"
	kill -9 "$victim"
	soon another_server "$victim"
}
another_server() { now=$(server_pid) && [ "$now" ] && [ "$now" != "$1" ]; }

made() {
	box=$("$ATOLL" new -q --lifetime 1h)
	[ "$box" ] || fail "no box"
}
lines_in() { [ "$(wc -l <"$1")" -ge "$2" ]; }

output_is_complete_when_the_server_is_killed() {
	made
	"$ATOLL" exec "$box" -- sh -c '
		i=0
		while [ $i -lt 2000 ]; do
			echo "line $i"; echo "err $i" >&2
			i=$((i + 1))
			[ $((i % 100)) != 0 ] || sleep 0.05
		done
		exit 5' >out 2>err &
	pid=$!
	for n in 100 500 900 1300 1700; do
		soon lines_in out "$n"
		kill_front
	done
	status=0
	wait "$pid" || status=$?
	is "$status" 5
	seq 0 1999 | sed 's/^/line /' | cmp - out
	seq 0 1999 | sed 's/^/err /' | cmp - err
	"$ATOLL" rm -q "$box"
}

input_is_complete_when_the_server_is_killed() {
	made
	seq 300000 >whole
	mkfifo way
	"$ATOLL" exec "$box" -- cat <way >out 2>err &
	pid=$!
	{
		for from in 0 60000 120000 180000 240000; do
			tail -n +$((from + 1)) whole | head -60000
			soon lines_in out $((from + 1)) >&2
			kill_front >&2
		done
	} >way
	wait "$pid"
	cmp whole out
	is "$(cat err)" ""
	"$ATOLL" rm -q "$box"
}

the_end_of_input_arrives_when_the_server_is_killed() {
	made
	# The program reads only after a signal, so the end of input waits in the daemon.
	x=
	head -c 200000 /dev/urandom >whole
	"$ATOLL" exec --tag reader "$box" -- sh -c 'until [ -e go ]; do sleep 0.02; done; sha256sum' <whole >out 2>err &
	pid=$!
	soon sh -c "'$ATOLL' api GET /v1/boxes/$box/execs/reader"
	kill_front
	echo | "$ATOLL" put "$box" go
	wait "$pid"
	is "$(cut -d ' ' -f 1 out)" "$(sha256sum <whole | cut -d ' ' -f 1)"
	"$ATOLL" rm -q "$box"
}

logs_events_and_wait_continue_when_the_server_is_killed() {
	made
	x=$("$ATOLL" exec -d "$box" -- sh -c 'echo one; until [ -e go ]; do sleep 0.02; done; echo two; exit 3')
	"$ATOLL" logs -f "$box" "$x" >log 2>log.err &
	logs=$!
	"$ATOLL" events -f --json --after 1 >events 2>events.err &
	events=$!
	"$ATOLL" wait "$box" "$x" 2>wait.err &
	waiter=$!
	soon grep -q one log
	soon grep -q "$box" events
	kill_front
	echo | "$ATOLL" put "$box" go
	wait "$logs"
	is "$(cat log)" "one
two"
	status=0
	wait "$waiter" || status=$?
	is "$status" 3 "$(cat wait.err)"
	soon grep -q "\"run\":\"$x\"" events
	kill "$events"
	is "$(jq -r .seq <events | sort -n | uniq -d)" "" "none comes twice"
	"$ATOLL" rm -q "$box"
}

serves_now() { now=$(cut -d ' ' -f 3 "$ATOLL_RUN/serve.pid") && [ "$now" != "$1" ] && [ "$now" != 0 ]; }

input_of_an_attached_client_arrives_while_an_older_server_drains() {
	made
	api POST "/v1/boxes/$box/execs" '{"command":"cat","background":true,"open_stdin":true}'
	x=$(get .id)
	curl -sS -o held -H "X-API-Key: $key" "$url/v1/run" -d '{"command":"sleep 4763 & wait"}' &
	held=$!
	soon processes '^sleep 4763'
	before=$(cut -d ' ' -f 3 "$ATOLL_RUN/serve.pid")
	kill -HUP "$supervisor"
	soon serves_now "$before"
	kill -0 "$before" || fail "the older server does not drain"
	echo hello | timeout 50 "$ATOLL" attach -i "$box" "$x" >out 2>err || fail "status $?: $(cat out err)"
	is "$(cat out)" hello
	kill "$(processes '^sleep 4763')"
	wait $held
	"$ATOLL" rm -q "$box"
}

exec_returns_137_when_its_box_is_deleted() {
	made
	status=0
	"$ATOLL" exec "$box" -- sh -c 'echo ready; sleep 60' >out 2>err &
	pid=$!
	soon grep -q ready out
	"$ATOLL" rm -q "$box"
	wait "$pid" || status=$?
	is "$status" 137 "$(cat err)"
	has "$(cat err)" "cause=operator"
}

run_daemon_tests
