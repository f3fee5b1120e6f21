#!/bin/sh
# start_stop.sh - how a daemon is started, replaced and stopped: `atoll stop`, `atoll upgrade`, the functions of ./up,
# and the run folder of a user without a session.
. "$(dirname "$0")/daemon.lib"
top=$(cd "$here/../.." && pwd)
chmod 755 "$work"

daemon_pid() { cut -d ' ' -f 1 "$1/serve.pid"; }
box_answers() { "$ATOLL" -H "unix:$ATOLL_RUN/atoll.sock" exec "$1" -- true; }
# A zombie counts as exited.
exited() { ! grep -q '^State:.[^ZX]' "/proc/$1/status" 2>/dev/null; }

# own_daemon NAME: sets ATOLL_RUN and ATOLL_STATE of a daemon that this test starts by `serve` of scripts/lib.sh.
own_daemon() {
	export ATOLL_RUN="$work/$1" ATOLL_STATE="$work/$1.state" ATOLL_LISTEN=127.0.0.1:0
	mkdir -p "$ATOLL_RUN" "$ATOLL_STATE"
}
serve_from() { (cd "$top" && . scripts/lib.sh && me=up && serve "$1" "$ATOLL_RUN"); }

stop_leaves_boxes_running_and_the_next_daemon_takes_them_over() {
	own_daemon a
	serve_from "$ATOLL"
	pid=$(daemon_pid "$ATOLL_RUN")
	atoll new keepme
	is "$status" 0 "$err"
	atoll stop
	is "$status" 0 "$err"
	has "$out" "stopped the daemon (pid $pid)"
	has "$out" "1 boxes keep running"
	exited "$pid" || fail "the daemon still runs"
	serve_from "$ATOLL"
	soon box_answers keepme
	atoll stop --all --json
	is "$(jq -c 'del(.daemon, .keeper)' out)" '{"boxes_ended":1}'
	is "$("$ATOLL" ps --local -q)" ""
}

stop_all_ends_boxes_daemon_and_keeper() {
	own_daemon b
	serve_from "$ATOLL"
	pid=$(daemon_pid "$ATOLL_RUN")
	atoll new one
	keeper_of_b=$("$ATOLL" doctor --json | grep -o 'pid [0-9]*' | head -1 | cut -d ' ' -f 2)
	atoll stop --all
	is "$status" 0 "$err"
	has "$out" "ended 1 boxes and the keeper"
	exited "$pid" || fail "the daemon still runs"
	soon exited "$keeper_of_b"
	atoll stop
	is "$status" 0
	has "$out" "no daemon serves"
}

serving_from_a_second_checkout_replaces_the_daemon_of_the_first() {
	own_daemon c
	mkdir first second
	cp "$(dirname "$ATOLL")"/atoll* first/ 2>/dev/null || :
	cp "$(dirname "$ATOLL")"/atoll* second/ 2>/dev/null || :
	serve_from "$PWD/first/atoll"
	pid=$(daemon_pid "$ATOLL_RUN")
	serve_from "$PWD/second/atoll" 2>err
	has "$(cat err)" "replacing the daemon of $PWD/first/atolld"
	exited "$pid" || fail "the first daemon still runs"
	is "$(readlink "/proc/$(daemon_pid "$ATOLL_RUN")/exe")" "$PWD/second/atolld"
	serve_from "$PWD/second/atoll" # the same file again: an upgrade, same pid
	atoll stop --all -q
}

an_upgrade_whose_binary_cannot_be_executed_is_refused_at_once() {
	own_daemon d
	mkdir here
	cp "$(dirname "$ATOLL")"/atoll* here/ 2>/dev/null || :
	serve_from "$PWD/here/atoll"
	mv here moved
	begin=$(date +%s)
	atoll upgrade
	is "$status" 1
	has "$err" "cannot execute the file it was started from: No such file or directory"
	[ $(($(date +%s) - begin)) -lt 29 ] || fail "it waited for a server that cannot start"
	serve_from "$PWD/moved/atoll" 2>err
	is "$(readlink "/proc/$(daemon_pid "$ATOLL_RUN")/exe")" "$PWD/moved/atolld"
	atoll stop --all -q
}

a_port_in_use_is_reported_with_the_command_to_type() {
	own_daemon e
	ATOLL_LISTEN=${url#http://}
	serve_from "$ATOLL" 2>err && fail "it started"
	has "$(cat err)" "is in use by"
	has "$(cat err)" "ATOLL_LISTEN="
	[ ! -e "$ATOLL_RUN/serve.pid" ] || fail "the pid file of a daemon that never served is left"
}

# Uid 4711 may not be able to reach the build folder, for example below /root: it executes a copy. TMPDIR and $work let
# every uid pass (daemon.lib).
users_atoll=$work/bin/atoll
mkdir "$work/bin"
cp "$(dirname "$ATOLL")"/atoll* "$work/bin/" 2>/dev/null || :
export users_atoll
as_user() { setpriv --reuid 4711 --regid 4711 --clear-groups env -i PATH="$PATH" HOME=/nonexistent "$@"; }

a_user_without_a_session_has_a_run_folder() {
	rm -rf /tmp/atoll-4711
	is "$(as_user "$users_atoll" config get serve.run)" /tmp/atoll-4711
	is "$(stat -c '%a %u' /tmp/atoll-4711)" '700 4711'
	is "$(as_user XDG_RUNTIME_DIR=/some/where "$users_atoll" config get serve.run)" /some/where/atoll
	rm -rf /tmp/atoll-4711
}

a_run_folder_of_another_user_is_refused() {
	rm -rf /tmp/atoll-4711
	mkdir -m 700 /tmp/atoll-4711
	status=0
	as_user "$users_atoll" config get serve.run >out 2>err || status=$?
	rm -rf /tmp/atoll-4711
	[ "$status" != 0 ] || fail "accepted: $(cat out)"
	has "$(cat err)" "is not a folder of uid 4711 (owner 0)"
}

a_user_with_a_key_reaches_the_daemon_of_the_machine() {
	rm -rf /tmp/atoll-4711
	status=0
	as_user ATOLL_KEY="$key" "$users_atoll" ls >out 2>err || status=$?
	rm -rf /tmp/atoll-4711
	# Port 7070 is not used here: another daemon may listen on it.
	lacks "$(cat err)" "/tmp/atoll-4711"
	lacks "$(cat err)" "unix:/run/user"
}

# Keys must not be sent to another local user that listens on the port of the daemon.
a_key_is_not_sent_to_another_users_port() {
	cat >listen.py <<'EOF'
import os, socket, sys
os.setresuid(int(sys.argv[1]), int(sys.argv[1]), int(sys.argv[1]))
s = socket.create_server((sys.argv[2], 7070))
print("listens", flush=True)
c, _ = s.accept()
print(c.recv(4096).decode(), flush=True)
c.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 26\r\n\r\n{\"items\":[],\"next\":null}\r\n")
EOF
	# guess UID ADDRESS: `atoll ls` of a user with a key, where that uid listens; in a network of its own.
	guess() {
		rm -rf /tmp/atoll-4711
		: >received
		unshare -n sh -c 'ip link set lo up
			python3 listen.py "$1" "$2" >received &
			n=600
			while ! grep -q listens received && [ $((n = n - 1)) -gt 0 ]; do sleep 0.1; done
			setpriv --reuid 4711 --regid 4711 --clear-groups env -i HOME=/nonexistent ATOLL_KEY="$key" "$users_atoll" ls >out 2>err
			kill $! 2>/dev/null
			wait' sh "$1" "$2" || :
		rm -rf /tmp/atoll-4711
		grep -q listens received || fail "$(cat received err)"
	}
	for address in 127.0.0.1 0.0.0.0; do
		guess 4712 $address
		lacks "$(cat received)" "$key" "$address"
		has "$(cat err)" "port 7070 of this machine is served by uid 4712, not by root"
		guess 0 $address
		has "$(cat received)" "$key" "$address"
	done
}

run_daemon_tests
