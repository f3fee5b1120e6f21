#!/bin/sh
# cluster.sh - roles of machines in a cluster: a gateway without keeper and without privileges, its certificate authority,
# join tokens, machines that join. PostgreSQL is a private one.
. "$(dirname "$0")/lib.sh"
. "$here/engines.lib"
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
# A test is a subshell; one that fails leaves its gateway to this.
leave() {
	gateway=$(cat "$work/gateway" 2>/dev/null)
	[ -z "$gateway" ] || { kill "$gateway" 2>/dev/null && soon gateway_left; }
	[ ! -e "$work/worker" ] || kill $(cat "$work/worker") 2>/dev/null # the daemon of a node, and its keeper
	engines_stop
	finish
}
gateway_left() { ! kill -0 "$gateway"; }
trap leave EXIT
postgres_start
export ATOLL_LISTEN=127.0.0.1:0 ATOLL_CLUSTER_LISTEN=127.0.0.1:0 ATOLL_CLUSTER_DATABASE="$database"
export ATOLL_CLUSTER_SECRETS="$work/secrets" ATOLL_STATE="$work/state"

# A user of the machine without any right.
user='setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all'
sql() { psql -qAt -h "$work/pg" -U atoll postgres -c "$1"; }

# start_gateway COMMAND...: in the folder of the test; sets url.
start_gateway() {
	"$@" "$ATOLL" serve >serve.out 2>serve.log &
	gateway=$!
	echo $gateway >"$work/gateway"
	soon gateway_serves
	url=$(sed -n 's/^atoll: serving on \(http[^ ]*\)$/\1/p' serve.log)
	[ "$url" ] || fail "the gateway did not start: $(tail -n 3 serve.log)"
}
gateway_serves() { grep -q 'serving on unix:' serve.log || ! kill -0 "$gateway"; }
stop_gateway() {
	kill "$gateway"
	wait "$gateway" || :
	rm "$work/gateway"
}

errors_of_a_machine_that_is_not_a_gateway_name_the_command() {
	atoll node token
	is "$status" 3
	has "$err" 'atoll cluster init'
	atoll cluster status
	is "$status" 3
	has "$err" 'atoll cluster init'
	ATOLL_CLUSTER_DATABASE= atoll cluster status
	is "$status" 1
	ATOLL_CLUSTER_DATABASE="host=$PWD user=atoll" atoll cluster init
	is "$status" 1
	has "$err" 'database: connect'
	[ ! -e "$work/secrets" ] || fail "a CA without a database"
}

init_makes_a_gateway_and_can_be_repeated() {
	atoll cluster init --name gw1
	is "$status $out" "0 1" "$err"
	has "$err" 'cluster.role = "gateway"'
	cp "$work/secrets/ca.key" before
	atoll cluster init --name gw1 --json
	is "$(json out 'd["number"]')" 1
	cmp before "$work/secrets/ca.key"
	is "$(stat -c %a "$work/secrets" "$work/secrets/ca.key" "$work/state/cluster" "$work/state/cluster/own.key" | xargs)" '700 600 700 600'
	is "$(openssl x509 -in "$work/state/cluster/own.crt" -noout -subject)" 'subject=CN = gateway=1'
	openssl verify -CAfile "$work/secrets/ca.crt" "$work/state/cluster/own.crt" >verified
	is "$(ls "$work/state/cluster" | xargs)" 'ca.crt number own.crt own.key'
	atoll cluster check
	is "$status" 0 "$out"
	atoll cluster status --json
	is "$(json out '[(m["role"], m["number"], m["name"]) for m in d["machines"]]')" "[('gateway', 1, 'gw1')]"
}

another_machine_needs_the_secrets_of_the_cluster() {
	export ATOLL_STATE="$PWD/state"
	ATOLL_CLUSTER_SECRETS="$PWD/none" atoll cluster init --name gw2
	is "$status" 1
	has "$err" 'copy that folder from another gateway'
	[ ! -e none ] || fail "a second CA was made"
	atoll cluster init --name gw1 # another key
	is "$status" 1
	has "$err" 'the name gw1 belongs to another machine'
	atoll cluster init --name gw2
	is "$status $out" "0 2" "$err"
	# A CA of another cluster.
	mkdir -m 700 other
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=other -days 9 -keyout other/ca.key -out other/ca.crt 2>openssl.log
	ATOLL_CLUSTER_SECRETS="$PWD/other" atoll cluster init --name gw3
	is "$status" 1
	has "$err" 'the database belongs to the cluster with the CA'
	chmod 755 other
	ATOLL_CLUSTER_SECRETS="$PWD/other" atoll cluster check
	is "$status" 1
	has "$out" 'chmod 700'
}

the_database_has_only_the_hash_of_a_token() {
	atoll node token --uses 2 --ttl 30m --json
	is "$status" 0 "$err"
	token=$(json out 'd["token"]')
	secret=$(echo "$token" | cut -d _ -f 2)
	hash=$(/usr/bin/python3 -c 'import hashlib, sys; print(hashlib.sha256(bytes.fromhex(sys.argv[1])).hexdigest())' "$secret")
	is "$(sql "select uses, role, expires > now() + interval '29 min', expires < now() + interval '31 min' from atoll.joins where hash = '\\x$hash'")" '2|node|t|t'
	is "$(echo "$token" | cut -d _ -f 3)" "$(openssl x509 -in "$work/secrets/ca.crt" -outform der | sha256sum | cut -d ' ' -f 1)"
	PGOPTIONS= pg_dump -h "$work/pg" -U atoll postgres >dump
	lacks "$(cat dump)" "$secret"
	lacks "$(cat dump)" "$(sed -n 2p "$work/secrets/ca.key")"
	for wrong in '--uses 0' '--uses 10001' '--ttl 0s' '--ttl 90d'; do
		atoll node token $wrong
		[ "$status" != 0 ] || fail "$wrong was accepted"
	done
}

join_checks_address_and_token_before_it_connects() {
	export ATOLL_STATE="$PWD/state"
	atoll node join http://127.0.0.1:1 "atj_$(printf %032d 0)_$(printf %064d 0)"
	is "$status" 1
	has "$err" 'write it like https://gateway.example.org:7071'
	atoll node join https://127.0.0.1:1 atj_secret
	is "$status" 1
	has "$err" 'atoll node token'
	lacks "$err" atj_secret
	atoll node join https://127.0.0.1:1
	is "$status" 2
}

# join NAME [TOKEN]: a machine with this name and a state folder of its own.
join() { ATOLL_STATE="$PWD/$1" ATOLL_CLUSTER_SECRETS="$PWD/no" ATOLL_CLUSTER_DATABASE='host=/no' atoll node join "https://$port" "${2:-$token}" --name "$1"; }
new_token() { token=$("$ATOLL" node token --quiet "$@"); }

# One gateway for all of it: it has no keeper and no privileges.
a_gateway_without_privileges_serves_and_lets_machines_join() {
	$user test -x "$ATOLL" || skip "other users cannot execute $ATOLL"
	export ATOLL_STATE="$PWD/gateway/state" ATOLL_CLUSTER_SECRETS="$PWD/gateway/secrets"
	mkdir gateway
	cp -r "$work/state" "$work/secrets" gateway
	chown -R 65534:65534 gateway
	chmod 711 .
	export ATOLL_RUN="$PWD/gateway/run" HOME="$PWD/gateway" ATOLL_CLUSTER_ROLE=gateway
	start_gateway $user
	port=$(sed -n 's/^atoll: nodes connect to \(.*\)$/\1/p' serve.log)
	key=$($user "$ATOLL" key new tests --quiet)
	is "$(curl -s -o body -w '%{http_code}' -H "X-API-Key: $key" "$url/v1/boxes")" 200
	is "$(jq -c .items body)" '[]'
	is "$(curl -s -o body -w '%{http_code}' -H "X-API-Key: $key" -d '{}' "$url/v1/boxes")" 503
	is "$(curl -s -o body -w '%{http_code}' -H "X-API-Key: $key" -d '{"language": "bash", "code": "true"}' "$url/v1/run")" 503
	is "$(pgrep -cP "$gateway" -x atoll-server) $(pgrep -cP "$gateway" -x atoll-cluster)" '1 1'
	[ ! -e gateway/run/keeper.sock ] || fail "a keeper was started"
	unset ATOLL_CLUSTER_ROLE

	new_token
	join one
	is "$status" 0 "$err"
	number=$out
	is "$(openssl x509 -in one/cluster/own.crt -noout -subject)" "subject=CN = node=$number"
	openssl verify -CAfile "$work/secrets/ca.crt" one/cluster/own.crt >verified
	is "$(stat -c %a one/cluster one/cluster/own.key | xargs)" '700 600'
	has "$err" "cluster.gateways = [\"$port\"]"
	join one # the same key: the same number, although the token was used
	is "$status $out" "0 $number" "$err"
	join two
	is "$status" 4
	has "$err" 'the join token was used already'
	[ ! -e two/cluster/own.crt ] || fail "a certificate was stored"
	new_token
	mkdir -p third/cluster # another key, the name of another machine
	ATOLL_STATE="$PWD/third" atoll node join "https://$port" "$token" --name one
	is "$status" 1
	has "$err" 'the name one belongs to another machine'
	join two # the refused machine has not used the token
	is "$status" 0 "$err"
	new_token
	sql "update atoll.joins set expires = now() - interval '10 s' where uses = 1" >/dev/null
	join three
	is "$status" 4
	has "$err" 'the join token expired 1'
	join three "atj_$(printf %032d 7)_$(echo "$token" | cut -d _ -f 3)"
	is "$status" 4
	has "$err" 'this cluster has not issued this join token'
	# Of another cluster: the machine does not send it.
	join three "atj_$(echo "$token" | cut -d _ -f 2)_$(printf %064d 7)"
	is "$status" 4
	has "$err" 'the gateway is not one of the cluster of this token'
	[ ! -e three/cluster/own.crt ] || fail "a certificate was stored"
	is "$(grep -c 'a machine could not join' serve.log)" 4
	lacks "$(cat serve.log)" "$(echo "$token" | cut -d _ -f 2)"

	atoll node ls --json
	is "$(json out '[(m["name"], m["state"]) for m in d["items"]]')" "[('one', 'lost'), ('two', 'lost')]"
	atoll node rm two
	is "$status" 0 "$err"
	atoll node ls --json
	is "$(json out '[m["name"] for m in d["items"]]')" "['one']"
	atoll node rm two
	is "$status" 3

	# This port has nothing of the API, and what is not a request to join is refused.
	cat "$work/secrets/ca.crt" >ca.crt
	is "$(curl -sk -o body -w '%{http_code}' "https://$port/v1/boxes")" 404
	is "$(curl -sk -o body -w '%{http_code}' -d '{}' "https://$port/cluster/join")" 400
	is "$(curl -sk -o body -w '%{http_code}' -d '{"token": "atj_", "request": "", "name": "x"}' "https://$port/cluster/join")" 400
	is "$(head -c 20000 /dev/zero | tr '\0' a | curl -sk -o body -w '%{http_code}' --data-binary @- "https://$port/cluster/join")" 413
	is "$(curl -sk -o body -w '%{http_code}' "https://$port/tunnel")" 403
	curl -sk --tls-max 1.2 "https://$port/" && fail "TLS 1.2 was accepted"

	# The process is replaced when it ends, and machines can join again.
	old=$(pgrep -P "$gateway" -x atoll-cluster)
	kill -9 "$old"
	new_token
	soon can_join four
	stop_gateway
}
# From nothing to a box through a gateway, with a node that then is removed.
a_joined_node_runs_boxes_until_it_is_removed() {
	export ATOLL_STATE="$PWD/state" ATOLL_RUN="$PWD/run" ATOLL_CLUSTER_NAME=gw9
	chmod a+x .
	atoll cluster init --name gw9
	is "$status" 0 "$err"
	export ATOLL_CLUSTER_ROLE=gateway
	start_gateway
	port=$(sed -n 's/^atoll: nodes connect to \(.*\)$/\1/p' serve.log)
	key=$("$ATOLL" key new worker-tests --quiet)
	unset ATOLL_CLUSTER_ROLE
	new_token
	join worker
	is "$status" 0 "$err"
	number=$out
	# Its certificate has 5 of its 30 days left: it is renewed over the tunnel.
	"$(dirname "$ATOLL")/cluster_keys" age "$work/secrets" "$PWD/worker/cluster" "node=$number" 25 || fail "no certificate"
	openssl x509 -in worker/cluster/own.crt -noout -checkend $((6 * 86400)) >/dev/null && fail "it is not old"
	ATOLL_STATE="$PWD/worker" ATOLL_RUN="$PWD/worker-run" ATOLL_CLUSTER_NAME=worker ATOLL_CLUSTER_ROLE=node ATOLL_CLUSTER_GATEWAYS="$port" \
		ATOLL_CLUSTER_DATABASE= "$ATOLL" serve >worker.out 2>worker.log &
	worker=$!
	echo "$worker" >"$work/worker"
	state_of() { curl -sS -H "X-API-Key: $key" "$url/v1/nodes" | jq -r '[.items[] | select(.name == "worker") | .state] | join(" ")'; }
	is_up() { [ "$(state_of)" = up ]; }
	soon is_up
	soon test -s worker/server/cluster.crt
	openssl x509 -in worker/server/cluster.crt -noout -checkend $((29 * 86400)) >/dev/null || fail "it was not renewed"
	openssl verify -CAfile "$work/secrets/ca.crt" worker/server/cluster.crt >verified
	is "$(openssl x509 -in worker/server/cluster.crt -noout -subject -pubkey)" "$(openssl x509 -in worker/cluster/own.crt -noout -subject -pubkey)"
	# The next server uses it: with the stored one alone the certificate would be requested again.
	server=$(pgrep -P "$worker" -x atoll-server)
	kill -9 "$server"
	connected_again() { [ "$(grep -c 'connected to a gateway' worker.log)" -ge 2 ]; }
	soon connected_again
	soon is_up
	is "$(grep -c 'certificate of a node was renewed' serve.log)" 1
	keeper_pid=$(ATOLL_RUN="$PWD/worker-run" ATOLL_STATE="$PWD/worker" "$ATOLL" doctor --json 2>/dev/null | grep -o 'pid [0-9]*' | head -n 1 | cut -d ' ' -f 2)
	[ "$keeper_pid" ] || fail "the keeper of the node was not found"
	echo "$keeper_pid" >>"$work/worker"
	is "$(curl -s -o body -w '%{http_code}' -H "X-API-Key: $key" -d '{"command": "echo from a node"}' "$url/v1/run")" 200 "$(cat body)"
	is "$(jq -r .stdout body)" 'from a node'
	atoll node rm worker
	is "$status" 0 "$err"
	is_gone() { [ "$(state_of)" = '' ]; }
	soon is_gone
	# It connects again and again, with a certificate that is still valid.
	has "$(cat serve.log)" 'node was removed from the cluster'
	before=$(grep -c "tunnel refused.*node $number is not a member" serve.log || :)
	is_refused() { [ "$(grep -c "tunnel refused.*node $number is not a member" serve.log)" -gt "$((before + 1))" ]; }
	soon is_refused
	is "$(state_of)" ''
	kill "$worker"
	wait "$worker" || :
	kill "$keeper_pid"
	stop_gateway
}

can_join() { join "$1" && [ "$status" = 0 ]; }

run_tests
