#!/bin/sh
# engine_faults.sh - engines of a cluster that work badly: at the start of a gateway, while boxes are created, and while a node
# is lost. A gateway, two nodes and PostgreSQL, whose line to the gateway the test can slow down and cut; with coordinator=etcd
# also three members of etcd (engine_faults_etcd.sh). In namespaces of its own: it fills a disk, and changes names of hosts.
if [ "$(id -u)" = 0 ] && [ -z "${ATOLL_OWN_NAMESPACES:-}" ]; then
	ATOLL_OWN_NAMESPACES=1 exec unshare --net --mount --propagation private sh -c 'ip link set lo up && exec sh "$1"' faults "$0"
fi
. "$(dirname "$0")/lib.sh"
. "$here/engines.lib"
. "$here/cluster.lib"
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
[ "${ATOLL_QUICK:-0}" = 0 ] || { echo "1..0 # SKIP two minutes: ./check --all"; exit 0; }
chmod a+x "$work" "$TMPDIR"
leave() {
	for at in "$work"/*/stopped; do [ ! -e "$at" ] || kill -CONT $(cat "$at") 2>/dev/null; done
	kill -9 "$(head -n 1 "$work/small/data/postmaster.pid")" $(cat "$work"/etcd*.pid 2>/dev/null) 2>/dev/null
	engines_stop
	umount -l "$work/small" "$(readlink -f /etc/resolv.conf)"
	leave_cluster
}
trap leave EXIT

# host NAME ADDRESS: its only address from now on.
: >"$work/hosts"
host() {
	{ grep -v " $1\$" "$work/hosts"; echo "$2 $1"; } >"$work/hosts.new"
	mv "$work/hosts.new" "$work/hosts"
}
echo nameserver 127.0.0.1 >"$work/resolv.conf"
mount --bind "$work/resolv.conf" "$(readlink -f /etc/resolv.conf)"
/usr/bin/python3 "$here/name_server.py" "$work/hosts" 2>"$work/names.log" &
pids=$!
host db.test 127.0.0.1
host gate.test 127.0.0.1
mkdir "$work/small"
mount -t tmpfs -o size=300m,mode=755 none "$work/small"

# The data of the database is on the small disk.
postgres=$(postgres_bin)
[ "$postgres" ] || { echo "1..0 # SKIP postgresql is not installed"; exit 0; }
chmod 711 "$work"
mkdir "$work/pg" "$work/small/data"
chown postgres:postgres "$work/pg" "$work/small/data"
$as_postgres "$postgres/initdb" -D "$work/small/data" -A trust -U atoll --no-sync --no-instructions -E UTF8 --locale C.UTF-8 \
	>"$work/initdb.log" 2>&1 || { echo "Bail out! initdb: $(tail -n 3 "$work/initdb.log")"; exit 1; }
ln -s ../small/data "$work/pg/data"
postgres_run
sql() { psql -qAt -h "$work/pg" -U owner postgres -c "$1"; }
psql -qAt -h "$work/pg" -U atoll postgres -c "create role owner superuser login" -c "alter role atoll password 'right'" >/dev/null
postgres_answers() { sql 'select 1' >/dev/null 2>&1; }
printf 'local all owner trust\nlocal all atoll scram-sha-256\n' >"$work/small/data/pg_hba.conf"
sql "select pg_reload_conf()" >/dev/null
# Every backend of the gateway ends, and it connects again.
cut_backends() { sql "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'atoll'" >/dev/null; }
postgres_restart() {
	old=$(head -n 1 "$work/small/data/postmaster.pid")
	kill -9 "$old" || :
	soon left "$old"
	rm -f "$work/small/data/postmaster.pid" "$work/pg"/.s.*
	"$@"
	postgres_run
}
# line NAME PORT TARGET: its mode is in the file NAME.line.
line() {
	echo pass >"$work/$1.line"
	/usr/bin/python3 "$here/engine_line.py" "$work/$1.line" "$2" "$3" 2>"$work/$1.line.log" &
	pids="$pids $!"
	line_listens() { ss -Hltn "sport = :$line_port" | grep -q .; }
	line_port=$2
	engines_wait line_listens "$work/$1.line.log"
}
line db 5432 "$work/pg/.s.PGSQL.5432"
database="postgresql://atoll@db.test/postgres"
mkdir -p "$work/secrets"
chmod 700 "$work/secrets"
echo right >"$work/secrets/database"
chmod 600 "$work/secrets/database"
etcd=
member() { # member N: its ports are 23N9 and 23N0
	ETCD_UNSUPPORTED_ARCH=arm64 etcd --name "m$1" --data-dir "$work/etcd$1" --logger zap --log-level error \
		--listen-client-urls "http://127.0.0.1:23${1}9" --advertise-client-urls "http://127.0.0.1:23${1}9" \
		--listen-peer-urls "http://127.0.0.1:23${1}0" --initial-advertise-peer-urls "http://127.0.0.1:23${1}0" \
		--initial-cluster m1=http://127.0.0.1:2310,m2=http://127.0.0.1:2320,m3=http://127.0.0.1:2330 >"$work/etcd$1.log" 2>&1 &
	echo $! >"$work/etcd$1.pid"
	pids="$pids $!"
}
if [ "${coordinator:-}" = etcd ]; then
	command -v etcd >/dev/null || { echo "1..0 # SKIP etcd-server is not installed"; exit 0; }
	for n in 1 2 3; do
		member $n
		line etcd$n 24${n}9 127.0.0.1:23${n}9
	done
	etcd=http://127.0.0.1:2419,http://127.0.0.1:2429,http://127.0.0.1:2439
	etcd_answers() { curl -sf -m 5 "http://127.0.0.1:2319/health" >/dev/null 2>&1; }
	engines_wait etcd_answers "$work/etcd1.log"
fi

gate_settings="ATOLL_CLUSTER_SECRETS=$work/secrets ATOLL_CLUSTER_DATABASE=$database ${etcd:+ATOLL_CLUSTER_ETCD=$etcd}"
as_gate() { env ATOLL_RUN="$work/gate/run" ATOLL_STATE="$work/gate/state" ATOLL_CLUSTER_NAME=gate $gate_settings "$@"; }
# start_gate [SETTING=VALUE...]: on the ports that it had before.
start_gate() {
	machine gate ATOLL_CLUSTER_ROLE=gateway ATOLL_CLUSTER_LISTEN=0.0.0.0:7071 $gate_settings ATOLL_LISTEN=127.0.0.1:7070 "$@"
	soon serves gate
	url=$(address_of gate)
	[ "$url" ] || fail "the gateway does not start: $(tail -n 3 "$work/gate/log")"
}
start_node() { soon starts "$1" ATOLL_CLUSTER_ROLE=node ATOLL_CLUSTER_GATEWAYS=gate.test:7071; }
for name in gate one two; do mkdir -p "$work/$name"; done
as_gate "$ATOLL" cluster init >"$work/init.log" 2>&1 || { echo "Bail out! $(cat "$work/init.log")"; exit 1; }
start_gate
key=$("$ATOLL" key new tests --state "$work/gate/state" --quiet)
token=$(as_gate "$ATOLL" node token --uses 2 --quiet)
for name in one two; do
	env ATOLL_STATE="$work/$name/state" "$ATOLL" node join https://gate.test:7071 "$token" --name "$name" >"$work/$name/number" 2>"$work/$name/join.log" ||
		{ echo "Bail out! $(cat "$work/$name/join.log")"; exit 1; }
	start_node "$name"
done
one=$(cat "$work/one/number")
two=$(cat "$work/two/number")
are_up="$one one up, $two two up"

ask() { # ask METHOD PATH [CURL-OPTION...]: the answer is in $status and the file body.
	method=$1
	at=$2
	shift 2
	status=$(curl -sS --max-time 10 -o body -w '%{http_code}' -X "$method" -H "X-API-Key: $key" "$@" "$url$at")
}
json() { ask "$1" "$2" -H 'Content-Type: application/json' -d "$3"; }
of_body() { jq -r "$1" body; }
now_ms() { date +%s%3N; }
freeze() {
	{ pid_of "$1"; pgrep -P "$(pid_of "$1")"; } >"$work/$1/stopped"
	kill -STOP $(cat "$work/$1/stopped")
}
thaw() {
	kill -CONT $(cat "$work/$1/stopped")
	rm "$work/$1/stopped"
}
metric() { curl -sS --max-time 10 -H "X-API-Key: $key" "$url/metrics" | sed -n "s/^atoll_$1 //p"; }
has_lease() { [ "$(metric cluster_lease)" = 1 ]; }
no_lease() { [ "$(metric cluster_lease)" = 0 ]; }
creates() { json POST /v1/boxes "{\"name\": \"n$(now_ms)\"}" && [ "$status" = 201 ]; }

soon nodes_are "$are_up"
soon has_lease

# What holds as long as the coordinator cannot be used: boxes without names are created and used, one with a name is refused
# within a second (more on a machine under load), and lists are answered.
only_unnamed() {
	json POST /v1/boxes '{}'
	is "$status" 201 "$(cat body)"
	box=$(of_body .id)
	json POST "/v1/boxes/$box/execs" '{"command": "echo served"}'
	is "$status $(of_body .stdout)" '200 served' "$(cat body)"
	began=$(now_ms)
	json POST /v1/boxes "{\"name\": \"n$began\"}"
	is "$status $(of_body .error.code)" '503 unavailable' "$(cat body)"
	[ $(($(now_ms) - began)) -lt 5000 ] || fail "it took $(($(now_ms) - began)) ms"
	ask GET /v1/boxes
	is "$status" 200 "$(cat body)"
	has "$(cat body)" "$box"
}
# faulty REASON COMMAND...: the command makes the engine unusable, and `repair` repairs it. While it is faulty, boxes are created,
# a node stops to answer, and the gateway starts again; the node is not lost before the engine is back, and then it is.
faulty() {
	reason=$1
	shift
	soon nodes_are "$are_up"
	"$@"
	soon no_lease
	only_unnamed
	freeze one
	soon nodes_are "$one one unreachable, $two two up"
	stop_machine gate
	start_gate
	says_why() { grep -q "$reason" "$work/gate/log"; }
	soon says_why
	soon one_answers
	only_unnamed
	no_lease || fail 'the gateway has a lease'
	is "$(states)" 'up up'
	repair
	began=$(now_ms)
	soon has_lease
	echo "# a lease $(($(now_ms) - began)) ms after the repair"
	soon nodes_are "$one one lost, $two two up"
	soon creates
	thaw one
	soon nodes_are "$are_up"
	soon creates
}
one_answers() { json POST /v1/boxes '{}' && [ "$status" = 201 ]; }
states() { sql "select string_agg(state, ' ') from atoll.nodes" 2>/dev/null || echo 'up up'; }

a_database_with_another_password() {
	[ -z "$etcd" ] || skip 'etcd coordinates'
	repair() { sql "alter role atoll password 'right'"; }
	change() { sql "alter role atoll password 'other'" && cut_backends; }
	faulty 'password authentication failed' change
}

a_database_that_is_a_standby() {
	[ -z "$etcd" ] || skip 'etcd coordinates'
	repair() { postgres_restart rm "$work/small/data/standby.signal"; }
	faulty 'session is read-only' postgres_restart touch "$work/small/data/standby.signal"
}

a_database_with_a_full_disk() {
	[ -z "$etcd" ] || skip 'etcd coordinates'
	repair() {
		rm "$work/small/filler"
		postgres_restart true
	}
	fill() { # its writes fail; it may end
		dd if=/dev/zero of="$work/small/filler" bs=1M 2>/dev/null || :
		sql 'create table filler as select generate_series(1, 1000000)' >/dev/null 2>&1 || :
		sql 'checkpoint' >/dev/null 2>&1 || :
	}
	faulty 'no connection to the database of the cluster\|No space left' fill
}

a_database_that_needs_5_s_per_answer() {
	[ -z "$etcd" ] || skip 'etcd coordinates'
	repair() { echo pass >"$work/db.line"; }
	slow() { echo slow 5 >"$work/db.line"; }
	faulty 'no answer within\|no connection within' slow
}

a_database_with_a_newer_schema() {
	[ -z "$etcd" ] || skip 'etcd coordinates'
	schema=$(sql 'select oldest_reader from atoll.version')
	repair() { sql "update atoll.version set oldest_reader = $schema"; }
	newer() { sql 'update atoll.version set oldest_reader = 1000' && cut_backends; }
	faulty 'need a program that knows version 1000' newer
}

an_etcd_without_quorum() {
	[ "$etcd" ] || skip 'PostgreSQL coordinates'
	repair() {
		member 2
		member 3
	}
	two_members_end() { kill -9 "$(cat "$work/etcd2.pid")" "$(cat "$work/etcd3.pid")"; }
	faulty 'etcd http://127.0.0.1:24' two_members_end
}

an_etcd_that_needs_5_s_per_answer() {
	[ "$etcd" ] || skip 'PostgreSQL coordinates'
	repair() { for n in 1 2 3; do echo pass >"$work/etcd$n.line"; done; }
	slow() { for n in 1 2 3; do echo slow 5 >"$work/etcd$n.line"; done; }
	faulty 'etcd http://127.0.0.1:24' slow
}

compacted_revisions_of_etcd_are_not_needed() {
	[ "$etcd" ] || skip 'PostgreSQL coordinates'
	compacts() {
		revision=$(curl -s http://127.0.0.1:2319/v3/kv/range -d '{"key": "AA=="}' | jq -r .header.revision)
		curl -s http://127.0.0.1:2319/v3/kv/compaction -d "{\"revision\": \"$revision\", \"physical\": true}" >compacted
		grep -q 'header\|has been compacted' compacted || fail "$(cat compacted)"
	}
	soon nodes_are "$are_up"
	for i in 1 2 3; do
		creates || fail "$(cat body)"
		compacts
	done
	freeze one
	for i in 1 2 3 4 5 6 7 8; do
		compacts
		sleep 0.3
	done
	soon nodes_are "$one one lost, $two two up"
	compacts
	creates || fail "$(cat body)"
	thaw one
	soon nodes_are "$are_up"
	has_lease || fail 'the gateway has no lease'
}

# connected PORT ADDRESS: a process is connected to this port of this address, and to no other address.
connected() { [ "$(ss -Htn state established "dport = :$1" | awk '{ print $4 }' | sort -u)" = "$2:$1" ]; }

names_of_hosts_change_while_all_run() {
	soon nodes_are "$are_up"
	connected 5432 127.0.0.1 || fail "$(ss -Htn state established)"
	host db.test 127.0.0.2
	host gate.test 127.0.0.2
	echo cut 127.0.0.1 >"$work/db.line"
	soon connected 5432 127.0.0.2
	soon has_lease
	kill -9 "$(server_of gate)" # the tunnels end, and nodes look the name up again
	soon connected 7071 127.0.0.2
	soon nodes_are "$are_up"
	soon creates
	freeze one
	host db.test 127.0.0.1
	echo cut 127.0.0.2 >"$work/db.line"
	soon connected 5432 127.0.0.1
	soon nodes_are "$one one lost, $two two up"
	echo pass >"$work/db.line"
	thaw one
	soon nodes_are "$are_up"
}

the_clocks_of_machines_are_an_hour_apart() {
	grep -q __asan_init "$ATOLL" && skip 'a sanitizer wants to be loaded first'
	preload=$(dirname "$ATOLL")/clockshift.so
	[ -e "$preload" ] || skip "no $preload"
	for hour in gate one; do
		python3 -c 'import struct, sys; open(sys.argv[1], "wb").write(struct.pack("q", int(sys.argv[2])))' "$work/$hour.shift" $([ $hour = gate ] && echo 3600 || echo -3600)
		chmod 644 "$work/$hour.shift"
	done
	stop_machine gate
	stop_machine one
	start_gate LD_PRELOAD="$preload" CLOCKSHIFT="$work/gate.shift"
	soon starts one LD_PRELOAD="$preload" CLOCKSHIFT="$work/one.shift" ATOLL_CLUSTER_ROLE=node ATOLL_CLUSTER_GATEWAYS=gate.test:7071
	soon nodes_are "$are_up"
	soon has_lease
	creates || fail "$(cat body)"
	began=$(now_ms)
	freeze one
	soon nodes_are "$one one lost, $two two up"
	took=$(($(now_ms) - began))
	[ $took -lt 10000 ] || fail "lost after $took ms"
	thaw one
	soon nodes_are "$are_up"
	# A clock that is set while all run: nothing is lost.
	python3 -c 'import struct, sys; f = open(sys.argv[1], "r+b"); f.write(struct.pack("q", -3600))' "$work/gate.shift"
	before=$(metric cluster_lost_total)
	for i in 1 2 3 4 5 6 7 8 9 10; do
		nodes_are "$are_up" || fail "$(nodes .)"
		sleep 0.5
	done
	is "$(metric cluster_lost_total)" "$before"
	has_lease || fail 'the gateway has no lease'
	creates || fail "$(cat body)"
}

run_tests
