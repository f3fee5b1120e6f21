#!/bin/sh
# serve.sh - the processes of the daemon: their users, start, replacement and exit.
. "$(dirname "$0")/daemon.lib"

field() { sed -n "s/^$1:[[:space:]]*//p" "/proc/$2/status"; }

the_server_is_unprivileged_and_filtered() {
	pid=$(server_pid)
	set -- $(field Uid "$pid")
	[ "$1" != 0 ] && [ "$1" = "$2" ] && [ "$2" = "$3" ] && [ "$3" = "$4" ] || fail "uids: $*"
	is "$(field CapEff "$pid")" 0000000000000000
	is "$(field CapPrm "$pid")" 0000000000000000
	is "$(field Groups "$pid")" ""
	is "$(field Seccomp "$pid")" 2
	is "$(field NoNewPrivs "$pid")" 1
}

every_thread_of_the_server_is_filtered() {
	for task in "/proc/$(server_pid)"/task/*; do
		is "$(sed -n 's/^Seccomp:[[:space:]]*//p' "$task/status")" 2 "$task"
	done
}

the_server_has_no_key_in_its_environment() {
	is "$(tr '\0' '\n' <"/proc/$(server_pid)/environ" | grep -c '^[A-Z_]*KEY')" 0
}

the_server_owns_the_database_folder_and_root_the_state_folder() {
	is "$(stat -c %u "$state")" 0
	[ "$(stat -c %u "$state/server")" != 0 ] || fail "the folder of the server belongs to root"
	is "$(stat -c %a "$state/server")" 700
}

a_state_folder_created_by_a_keeper_is_made_accessible_to_the_server() {
	mkdir -m 700 before
	chmod 711 .
	ATOLL_RUN=$PWD/run "$ATOLL" serve --listen 127.0.0.1:0 --state "$PWD/before" >out 2>err &
	other=$!
	trap 'kill $other' EXIT
	soon grep -q 'serving on unix:' err
	is "$(stat -c %a before)" 711
	pid=$(ATOLL_RUN=$PWD/run "$ATOLL" doctor --json | grep -o 'pid [0-9]*' | head -1 | cut -d ' ' -f 2)
	kill "$other"
	wait "$other"
	trap - EXIT
	kill "$pid"
}

a_port_in_use_is_reported() {
	other=$work/other
	status=0
	ATOLL_RUN=$other/run "$ATOLL" serve --listen "${url#http://}" --state "$other/state" >out 2>err || status=$?
	is "$status" 1
	has "$(cat err)" "${url##*:}"
}

serve_fails_when_the_server_user_cannot_reach_the_folder() {
	mkdir -m 700 locked
	status=0
	ATOLL_RUN=$PWD/locked/run timeout 120 "$ATOLL" serve --listen 127.0.0.1:0 --state "$PWD/locked/state" >out 2>err || status=$?
	is "$status" 1
	has "$(cat err)" "chmod o+x"
}

an_invalid_setting_names_its_source() {
	printf '[serve]\nlistne = "127.0.0.1:1"\n' >c.toml
	status=0
	"$ATOLL" serve --config c.toml >out 2>err || status=$?
	[ "$status" != 0 ] || fail "it started"
	has "$(cat err)" listne
	has "$(cat err)" c.toml:2
}

a_killed_server_is_replaced() {
	new_box
	api POST "/v1/boxes/$box/execs" '{"command":"i=0; while [ $i -lt 400 ]; do echo $i; i=$((i+1)); sleep 0.005; done","background":true}'
	exec=$(get .id)
	kill -9 "$(server_pid)"
	api GET "/v1/boxes/$box"
	is "$code" 200 "$body"
	api GET "/v1/boxes/$box/execs/$exec/output?raw=stdout"
	is "$(md5sum <body)" "$(seq 0 399 | md5sum)"
	api GET "/v1/boxes/$box/execs/$exec"
	is "$(get '.cause + (.status|tostring)')" exit0
}

a_killed_keeper_is_replaced() {
	new_box
	kill -9 "$("$ATOLL" doctor --json | grep -o 'pid [0-9]*' | head -1 | cut -d ' ' -f 2)"
	api POST "/v1/boxes/$box/execs" '{"command":"echo here"}'
	is "$(get .stdout)" here
	api POST /v1/run '{"command":"echo new"}'
	is "$(get .stdout)" new "$body"
}

killing_server_and_keeper_together_loses_no_box() {
	new_box
	api POST "/v1/boxes/$box/execs" '{"command":"for i in $(seq 1000); do echo $i; sleep 0.001; done","background":true}'
	exec=$(get .id)
	kill -9 "$(server_pid)" "$("$ATOLL" doctor --json | grep -o 'pid [0-9]*' | head -1 | cut -d ' ' -f 2)"
	api GET "/v1/boxes/$box/execs/$exec/output?raw=stdout"
	is "$(md5sum <body)" "$(seq 1000 | md5sum)"
}

a_reload_applies_settings_and_keeps_streams() {
	new_box
	curl -sS -N -H "X-API-Key: $key" -H 'Accept: application/x-ndjson' "$url/v1/boxes/$box/execs" \
		-d '{"command":"for i in $(seq 100); do echo $i; sleep 0.01; done"}' >stream &
	reader=$!
	soon test -s stream
	before=$(server_pid)
	kill -HUP "$supervisor"
	wait $reader
	is "$(jq -rj 'select(.type=="stdout").data' <stream | md5sum)" "$(seq 100 | md5sum)"
	is "$(tail -1 stream | jq -r .type)" exit
	soon server_changed "$before"
	api GET "/v1/boxes/$box"
	is "$code" 200
}
server_changed() { [ "$(pgrep -P "$supervisor" | wc -l)" = 1 ] && [ "$(server_pid)" != "$1" ]; }

ten_thousand_idle_connections_use_little_memory() {
	cat >many.py <<-'END'
		import resource, socket, sys, time
		port, server, many = int(sys.argv[1]), sys.argv[2], 9990  # the limit is 10000, and other clients connect, too
		try:
		    resource.setrlimit(resource.RLIMIT_NOFILE, (many + 100, max(many + 100, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
		except (ValueError, OSError):
		    sys.exit(77)
		def resident():
		    return int(open("/proc/%s/status" % server).read().split("VmRSS:")[1].split()[0]) / 1024
		ask = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
		before, held = resident(), []
		for i in range(many):  # each is served once, and then nothing
		    s = socket.create_connection(("127.0.0.1", port), timeout=120)
		    s.sendall(ask)
		    held.append(s)
		    if i % 500 == 499:
		        for t in held[-500:]:
		            assert t.recv(4096).startswith(b"HTTP/1.1 200"), i
		cost = resident() - before
		begun = time.monotonic()
		held[0].sendall(ask)
		assert held[0].recv(4096).startswith(b"HTTP/1.1 200")
		took = time.monotonic() - begun
		print("%.1f MiB more, an answer in %.1f ms" % (cost, 1000 * took))
		assert cost < 100 and took < 2, "%.1f MiB, %.1f s" % (cost, took)
	END
	status=0
	/usr/bin/python3 many.py "${url##*:}" "$(server_pid)" >said 2>&1 || status=$?
	[ "$status" != 77 ] || skip "not enough descriptors"
	is "$status" 0 "$(tail -n 3 said)"
	api GET /v1/info
	is "$code" 200
}

with_certificates_the_daemon_serves_https() {
	openssl req -x509 -newkey rsa:2048 -nodes -keyout k.pem -out c.pem -days 1 -subj /CN=localhost \
		-addext 'subjectAltName=DNS:localhost,IP:127.0.0.1' 2>/dev/null
	ATOLL_RUN=$PWD/run "$ATOLL" serve --listen 127.0.0.1:0 --state "$PWD/state" --tls-cert c.pem --tls-key ./k.pem >out 2>err &
	tls=$!
	trap 'kill $tls' EXIT
	soon grep -q 'serving on unix:' err
	where=$(sed -n 's/^atoll: serving on \(https:.*\)/\1/p' err)
	is "$(curl -sS --cacert c.pem "$where/healthz")" '{"status":"ok"}'
	secret=$("$ATOLL" key new s --state "$PWD/state" --quiet)
	is "$(curl -sS --cacert c.pem -H "X-API-Key: $secret" "$where/v1/run" -d '{"command":"echo safe"}' | jq -r .stdout)" safe
	# TLS connections do not use splice(2), and the bytes are the same.
	box=$(curl -sS --cacert c.pem -H "X-API-Key: $secret" "$where/v1/boxes" -d '{}' | jq -r .id)
	head -c 5000000 /dev/urandom >sent
	curl -sS --cacert c.pem -H "X-API-Key: $secret" -T sent "$where/v1/boxes/$box/files?path=f" >stored
	is "$(jq .size <stored)" 5000000 "box $box: $(cat stored)"
	curl -sS --cacert c.pem -H "X-API-Key: $secret" -o back "$where/v1/boxes/$box/files?path=f"
	cmp sent back
	curl -sS --cacert c.pem -H "X-API-Key: $secret" -o /dev/null -X DELETE "$where/v1/boxes/$box" # so that the box does not outlive the test
	pid=$(ATOLL_RUN=$PWD/run "$ATOLL" doctor --json | grep -o 'pid [0-9]*' | head -1 | cut -d ' ' -f 2)
	kill "$tls"
	wait "$tls"
	trap - EXIT
	kill "$pid"
}

a_missing_certificate_is_named() {
	status=0
	ATOLL_RUN=$PWD/run "$ATOLL" serve --listen 127.0.0.1:0 --state "$PWD/state" --tls-cert /nowhere/c.pem --tls-key /nowhere/k.pem >out 2>err || status=$?
	is "$status" 1
	has "$(cat err)" /nowhere/c.pem
}

stopping_the_daemon_finishes_requests_and_keeps_boxes() {
	new_box '{"name":"stays"}'
	curl -sS -H "X-API-Key: $key" "$url/v1/boxes/stays/execs" -d "{\"command\":\"sleep 99$$; echo done\"}" >answer &
	reader=$!
	soon busy_box
	soon pgrep -fx "sleep 99$$"
	kill "$supervisor"
	# Other clients are refused at once; they do not wait for this request.
	soon not_listening "${url##*:}"
	kill -0 $reader || fail "the port was open until the request had ended"
	kill "$(pgrep -fx "sleep 99$$")"
	wait $reader
	is "$(jq -r .stdout <answer)" done
	wait "$supervisor" || :
	is "$("$ATOLL" ps --local -q | grep -c "$box")" 1
	start_daemon
	api GET /v1/boxes/stays
	is "$(get .state)" running
}
busy_box() { api GET /v1/boxes/stays && [ "$(get .running)" = 1 ]; }
not_listening() { ! ss -Hltn "sport = :$1" | grep -q .; }

export ATOLL_MAX_CONNECTIONS_PER_ADDRESS=10000 # all tests use one address
run_daemon_tests
