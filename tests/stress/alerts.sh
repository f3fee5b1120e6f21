#!/bin/sh
# alerts.sh - drives the alerts that ship with Atoll to fire and to resolve, by real load on a real daemon: `make alerts`. failures,
# quota and a rule of one's own are in tests/system/notify.sh. Windows and waits of the rules are shortened, except that of the
# probable miner: its box works from the first test to the last, ten minutes later. ALERTS_MINER=0 leaves it out.
libs=$(cd "$(dirname "$0")/../system" && pwd)
. "$libs/daemon.lib"
soon_limit=120

secret=whsec_of_the_test
received=$work/received
mkdir -p "$received"
: >"$received/requests"
/usr/bin/python3 "$libs/receiver.py" "$received" $secret &
receiver=$!
finish_alerts() {
	kill $receiver 2>/dev/null
	supervisor=$(cat "$work/supervisor" 2>/dev/null)
	[ -z "$supervisor" ] || kill -CONT "$supervisor"
	umount -l "$state" 2>/dev/null
	finish_daemon
}
trap finish_alerts EXIT
soon test -s "$received/ports"
read -r port _ <"$received/ports"

# set_rule NAME JSON
set_rule() {
	api PUT "/v1/alerts/rules/$1" "$2"
	is "$code" 200 "$body"
}
# noticed RULE STATE: the notice has arrived.
noticed() { [ "$(jq -s "any(.[]; .signed and .body.rule == \"$1\" and .body.state == \"$2\")" <"$received/requests")" = true ]; }
fires() { soon noticed "$1" firing; }
resolves() {
	soon noticed "$1" resolved
	api GET /v1/alerts
	is "$(get "[.items[] | select(.rule == \"$1\")][0] | (.state == \"resolved\" and .resolved >= .fired and .fired >= .pending)")" true "$body"
}
in_background() { # COMMAND...: its pid is in $last
	"$@" &
	last=$!
}
keeper_pid() { "$ATOLL" doctor --json 2>/dev/null | grep -o 'pid [0-9]*' | head -1 | cut -d ' ' -f 2; }

a_probable_miner_begins() {
	[ "${ALERTS_MINER:-1}" = 1 ] || skip "ALERTS_MINER=0"
	new_box '{"limits":{"cpu_milli":50},"lifetime_ms":3600000}'
	api POST "/v1/boxes/$box/execs" '{"command":"while :; do :; done","background":true,"timeout_ms":3600000}'
	is "${code%?}" 20 "$body"
	echo "$box" >"$work/miner"
}

a_certificate_near_its_end() {
	fires certificate
	certificate 300
	kill -HUP "$supervisor"
	resolves certificate
}

executions_that_take_long() {
	set_rule latency '{"window_s":20,"for_s":1,"cooldown_s":0}'
	pids=
	for i in 1 2 3 4 5; do
		in_background curl -sS -o /dev/null -X POST -H "X-API-Key: $key" -H 'Content-Type: application/json' --data '{"command":"sleep 12"}' "$url/v1/run"
		pids="$pids $last"
	done
	for pid in $pids; do
		wait "$pid" || fail "a run failed"
	done
	fires latency
	for i in 1 2 3 4 5 6 7 8; do
		api POST /v1/run '{"command":"true"}'
		is "$code" 200 "$body"
	done
	resolves latency
}

charges_of_a_day() {
	api POST /v1/run '{"command":"i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"}' # 24 hours of charges in one second
	is "$code" 200 "$body"
	fires cost
	set_rule cost '{"window_s":10}'
	resolves cost
}

a_node_without_a_keeper() {
	set_rule node '{"for_s":1,"cooldown_s":0}'
	set_rule restarts '{"window_s":10,"cooldown_s":0}'
	pid=$(keeper_pid)
	kill -STOP "$supervisor" # it starts no other keeper
	kill -9 "$pid"
	fires node
	kill -CONT "$supervisor"
	resolves node
}

processes_that_are_started_again() {
	fires restarts
	resolves restarts
}

an_empty_pool() {
	set_rule pool '{"for_s":0,"cooldown_s":0}'
	touch "$work/load"
	load() { while [ -e "$work/load" ]; do curl -sS -o /dev/null -X POST -H "X-API-Key: $key" -H 'Content-Type: application/json' --data '{"command":"true"}' "$url/v1/run"; done; }
	pids=
	for i in 1 2 3 4 5 6; do
		in_background load
		pids="$pids $last"
	done
	fires pool
	rm "$work/load"
	for pid in $pids; do
		wait "$pid" || :
	done
	resolves pool
}

# The state folder is a file system of 64 MiB.
a_disk_that_fills() {
	set_rule disk '{"for_s":1,"cooldown_s":0}'
	set_rule store '{"window_s":10,"cooldown_s":0}'
	free=$(stat -f -c '%a * %S' "$state")
	head -c $(($free - 5000000)) /dev/zero >"$state/large"
	fires disk
}

errors_of_the_database() {
	cat /dev/zero >"$state/rest" 2>/dev/null || : # until nothing is left
	failing() {
		api POST /v1/run '{"command":"true"}'
		noticed store firing
	}
	soon failing # while it is full
	rm "$state/rest" "$state/large"
	resolves store
	resolves disk
}

a_probable_miner_is_found() {
	[ -e "$work/miner" ] || skip "ALERTS_MINER=0"
	soon_limit=780
	fires miner
	api DELETE "/v1/boxes/$(cat "$work/miner")"
	soon_limit=120
	resolves miner
}

# certificate DAYS
certificate() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$work/key.new" -out "$work/cert.new" -days "$1" \
		-subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 2>/dev/null || fail "openssl"
	cat "$work/cert.new" >>"$work/trusted.pem"
	mv "$work/key.new" "$work/key.pem"
	mv "$work/cert.new" "$work/cert.pem"
}

certificate 5
mkdir -p "$state"
mount -t tmpfs -o size=64m,mode=755 none "$state" || { echo "1..0 # SKIP no tmpfs can be mounted"; exit 0; }
export CURL_CA_BUNDLE="$work/trusted.pem" ATOLL_OUTBOUND_ALLOW=127.0.0.1 ATOLL_ALERTS_INTERVAL=250ms ATOLL_POOL=2 \
	ATOLL_ALERTS_WEBHOOK="http://127.0.0.1:$port/alerts" ATOLL_ALERTS_WEBHOOK_SECRET=$secret ATOLL_RATES_CPU_SECOND=100000
run_daemon_tests --tls-cert "$work/cert.pem" --tls-key "$work/key.pem"
