#!/bin/sh
# links.sh - a box reaches another box of its team under a name.
. "$(dirname "$0")/daemon.lib"

# says COMMAND: executes it in the box; sets code and out.
says() {
	api POST "/v1/boxes/$box/execs" "$(jq -nc --arg c "$1" '{command:$c}')"
	out=$(get .stdout)
}
way_open() { api GET "/v1/boxes/$box/network" && [ "$(get .open)" = true ]; }
# A box with a server on its loopback; sets target.
server_box() {
	new_box
	target=$box
	says 'echo linked >f; (python3 -m http.server --bind 127.0.0.1 8000 >/dev/null 2>&1 &)'
}
# linked_box TARGET: a box that reaches it as db.
linked_box() {
	new_box "$(jq -nc --arg t "$1" '{network:{links:{db:$t}}}')"
	soon way_open
}

a_linked_box_is_reached_under_its_name_and_the_connection_is_recorded() {
	server_box
	linked_box "$target"
	is "$(get '.links.db')" "$target" "$body"
	says 'curl -sS --retry 20 --retry-all-errors --retry-delay 1 http://db:8000/f'
	is "$out" linked "$body"
	says 'curl -sS -p -x http://127.0.0.1:3128 http://db:8000/f'
	is "$out" linked "$body"
	api GET "/v1/boxes/$box/network"
	is "$(get '.recent[-1] | "\(.host) \(.port) \(.rule) \(.verdict)"')" "db 8000 link db ok" "$body"
	# Not under another name, and not the other way round.
	says "curl -s -o /dev/null -w '%{http_code}' http://$target:8000/f"
	case $out in 400 | 403) ;; *) fail "$out" ;; esac # 400: the id starts with a digit, as an address does
	box=$target
	says 'curl -sS http://db:8000/f'
	[ "$(get .status)" != 0 ] || fail "$body"
}

a_closed_port_and_an_ended_box_are_named_in_the_refusal() {
	server_box
	linked_box "$target"
	says 'curl -sS http://db:9/'
	case $out in *db:9*"$target"*) ;; *) fail "$body" ;; esac
	api DELETE "/v1/boxes/$target"
	says 'curl -sS http://db:8000/f'
	case $out in *"box $target no longer exists"*) ;; *) fail "$body" ;; esac
}

links_of_a_living_box_are_changed_at_once() {
	server_box
	new_box
	says 'curl -sS http://db:8000/f'
	[ "$(get .status)" != 0 ] || fail "$body"
	export ATOLL_HOST="$url" ATOLL_KEY="$key"
	atoll link "$box" "db=$target" "other=$target"
	is "$status" 0 "$err"
	atoll link "$box"
	is "$out" "db=$target
other=$target" "$err"
	soon way_open
	says 'curl -sS --retry 20 --retry-all-errors --retry-delay 1 http://db:8000/f'
	is "$out" linked "$body"
	atoll link "$box" -u db
	is "$status" 0 "$err"
	says "curl -s -o /dev/null -w '%{http_code}' http://db:8000/f"
	is "$out" 403
	atoll link "$box" db
	is "$status" 2 "$err"
	atoll link "$box" db=missing
	is "$status" 3 "$err"
	name=$("$ATOLL" new --link "db=$target" --quiet)
	atoll link "$name"
	is "$out" "db=$target" "$err"
}

# The database is used from the other box through the proxy of that box.
a_postgres_server_is_started_linked_and_started_again_with_its_data() {
	ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || skip "no PostgreSQL server on this host"
	export ATOLL_HOST="$url" ATOLL_KEY="$key"
	shop=$("$ATOLL" new shop --quiet)
	atoll db postgres shop-db --link shop
	is "$status $out" "0 shop-db" "$err"
	box=$shop
	says 'echo "$DATABASE_URL" | sed "s/:[0-9a-f]*@/:PASSWORD@/"'
	is "$out" "postgres://postgres:PASSWORD@db:5432/postgres" "$body"
	api GET "/v1/secrets/shop-db.url"
	is "$code" 200 "$body"
	soon way_open
	# psql connects to a socket, behind which python tunnels to db:5432.
	cat >tunnel.py <<-'PY'
		import os, re, socket, subprocess, threading
		def pump(a, b):
		    while (x := a.recv(65536)): b.sendall(x)
		    b.shutdown(1)
		def serve(l):
		    while True:
		        c, _ = l.accept()
		        s = socket.create_connection(("127.0.0.1", 3128))
		        s.sendall(b"CONNECT db:5432 HTTP/1.1\r\nHost: db:5432\r\n\r\n")
		        head = b""
		        while not head.endswith(b"\r\n\r\n"): head += s.recv(1)
		        for p in (c, s), (s, c): threading.Thread(target=pump, args=p, daemon=True).start()
		l = socket.create_server(("127.0.0.1", 0))
		threading.Thread(target=serve, args=(l,), daemon=True).start()
		url = os.environ["DATABASE_URL"].replace("db:5432", "127.0.0.1:%d" % l.getsockname()[1])
		print(subprocess.run(["psql", "-At", url, "-c", os.environ["SQL"]], capture_output=True, text=True))
	PY
	sql() { api POST "/v1/boxes/$box/execs" "$(jq -nc --rawfile t tunnel.py --arg q "$1" '{language:"python", code:$t, env:{SQL:$q}}')"; }
	sql 'create table t (n int); insert into t values (42)'
	has "$(get .stdout)" "returncode=0" "$body"
	api GET /v1/boxes?state=all
	db=$(get '.items[] | select(.name == "shop-db") | .id')
	api DELETE "/v1/boxes/$db"
	atoll db postgres shop-db --link shop
	is "$status $out" "0 shop-db" "$err"
	sql 'select n from t'
	has "$(get .stdout)" "42" "$body"
}

a_missing_server_is_named_with_its_package() {
	command -v redis-server >/dev/null && skip "redis-server is on this host"
	export ATOLL_HOST="$url" ATOLL_KEY="$key"
	atoll db redis
	is "$status" 1
	has "$err" "apt-get install redis-server"
	api GET /v1/volumes/redis
	is "$code" 404 "$body"
	api GET /v1/boxes/redis
	is "$code" 404 "$body"
	atoll db oracle
	is "$status" 2 "$err"
}

links_survive_a_killed_server() {
	server_box
	linked_box "$target"
	says 'curl -sS --retry 20 --retry-all-errors --retry-delay 1 http://db:8000/f'
	is "$out" linked "$body"
	kill -9 "$(server_pid)"
	soon way_open
	says 'curl -sS --retry 20 --retry-all-errors --retry-delay 1 http://db:8000/f'
	is "$out" linked "$body"
}

invalid_links_are_rejected() {
	new_box
	for name in '' A a.b 127 localhost -a a- "$(printf '%064d' 0)x" 'a b'; do
		api POST /v1/boxes "$(jq -nc --arg n "$name" --arg b "$box" '{network:{links:{($n):$b}}}')"
		is "$code" 400 "$name: $body"
	done
	api POST /v1/boxes '{"network":{"links":{"db":"missing"}}}'
	is "$code" 404 "$body"
	api POST /v1/boxes '{"network":{"links":{"db":1}}}'
	is "$code" 400 "$body"
	api POST /v1/boxes "$(jq -nc --arg b "$box" '{network:{links:([range(17)] | map({key:"n\(.)x", value:$b}) | from_entries)}}')"
	is "$code" 400 "$body"
}

a_box_of_another_team_cannot_be_linked() {
	server_box
	api PUT /v1/teams/strangers '{}'
	key=$("$ATOLL" key new stranger --team strangers --role editor --state "$state" --quiet)
	api POST /v1/boxes "$(jq -nc --arg t "$target" '{network:{links:{db:$t}}}')"
	is "$code" 404 "$body"
}

links_are_off_by_default() {
	supervisor=$(cat "$work/supervisor")
	stop_daemon
	unset ATOLL_EGRESS_LINKS
	start_daemon
	new_box
	api POST /v1/boxes "$(jq -nc --arg t "$box" '{network:{links:{db:$t}}}')"
	is "$code" 403
	has "$(get .error.message)" egress.links
}

export ATOLL_EGRESS_LINKS=true
run_daemon_tests
