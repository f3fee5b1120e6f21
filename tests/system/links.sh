#!/bin/sh
# links.sh - a box reaches another box of its team under a name.
. "$(dirname "$0")/daemon.lib"

# says COMMAND: executes it in the box; sets code and out.
says() {
	api POST "/v1/boxes/$box/execs" "$(jq -nc --arg c "$1" '{command:$c}')"
	out=$(get .stdout)
}
# Names are known once connections are captured.
! has_guest || { echo "1..0 # SKIP links need captured connections, which this tier does not support"; exit 0; }
way_open() { api GET "/v1/boxes/$box/network" && [ "$(get '[.open, .transparent] | tojson')" = '[true,true]' ]; }
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
	soon network_is '.recent[-1] | "\(.host) \(.port) \(.rule) \(.verdict)"' "db 8000 link db ok"
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

# Clients connect to db:PORT themselves, without the proxy.
a_postgres_server_is_started_linked_and_started_again_with_its_data() {
	ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || skip "no PostgreSQL server on this host"
	export ATOLL_HOST="$url" ATOLL_KEY="$key"
	box=$("$ATOLL" new shop --quiet)
	atoll db postgres shop-db --link shop
	is "$status $out" "0 shop-db" "$err"
	says 'echo "$DATABASE_URL" | sed "s/:[0-9a-f]*@/:PASSWORD@/"'
	is "$out" "postgres://postgres:PASSWORD@db:5432/postgres" "$body"
	soon way_open
	says 'psql -At "$DATABASE_URL" -c "create table t (n int)" -c "insert into t values (42)"'
	is "$(get .status)" 0 "$body"
	atoll rm shop-db
	is "$status" 0 "$err"
	atoll db postgres shop-db --link shop
	is "$status $out" "0 shop-db" "$err"
	says 'psql -At "$DATABASE_URL" -c "select n from t"'
	is "$out" 42 "$body"
	says 'psql -At "$(echo "$DATABASE_URL" | sed "s/:[0-9a-f]*@/:wrong@/")" -c "select 1" 2>&1'
	has "$out" "password authentication failed"
	# A box that is made later has the URL from a secret.
	box=$("$ATOLL" new --link db=shop-db --secret shop-db.url=DATABASE_URL --quiet)
	says 'psql -At "$DATABASE_URL" -c "select n from t"'
	is "$out" 42 "$body"
	atoll rm shop-db
}

a_redis_server_is_started_and_linked() {
	command -v redis-server >/dev/null || skip "no redis-server on this host"
	export ATOLL_HOST="$url" ATOLL_KEY="$key"
	box=$("$ATOLL" new cart --quiet)
	atoll db redis cart-cache --link cart --as cache
	is "$status $out" "0 cart-cache" "$err"
	soon way_open
	says 'redis-cli -u "$REDIS_URL" set k v; redis-cli -u "$REDIS_URL" get k; redis-cli -h cache get k'
	is "$out" "OK
v
NOAUTH Authentication required." "$body"
	atoll rm cart-cache
}

a_mysql_server_is_started_and_linked() {
	[ -x /usr/sbin/mariadbd ] || skip "no MariaDB server on this host"
	export ATOLL_HOST="$url" ATOLL_KEY="$key"
	box=$("$ATOLL" new forum --quiet)
	atoll db mysql forum-db --link forum
	is "$status $out" "0 forum-db" "$err"
	soon way_open
	says 'p=${DATABASE_URL#mysql://root:}; m="mariadb --no-defaults -N -h db -u root"; $m "-p${p%%@*}" app -e "select 6 * 7"; $m 2>&1'
	case $out in 42*'Access denied'*) ;; *) fail "$body" ;; esac
	atoll rm forum-db
}

a_missing_server_is_named_with_its_package() {
	export ATOLL_HOST="$url" ATOLL_KEY="$key"
	if ! command -v redis-server >/dev/null; then missing=redis package=redis-server
	elif [ ! -x /usr/sbin/mariadbd ]; then missing=mysql package=mariadb-server
	else skip "redis-server and mariadbd are on this host"; fi
	atoll db $missing
	is "$status" 1
	has "$err" "apt-get install $package"
	api GET /v1/volumes/$missing
	is "$code" 404 "$body"
	api GET /v1/boxes/$missing
	is "$code" 404 "$body"
}

an_unknown_kind_of_server_is_rejected() {
	export ATOLL_HOST="$url" ATOLL_KEY="$key"
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
