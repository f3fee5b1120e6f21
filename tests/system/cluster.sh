#!/bin/sh
# cluster.sh - roles of machines in a cluster: a gateway without keeper and without privileges.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
chmod 711 "$work"
export ATOLL_CLUSTER_SECRETS="$work/secrets" ATOLL_LISTEN=127.0.0.1:0 ATOLL_CLUSTER_LISTEN=127.0.0.1:0
# A test is a subshell; one that fails leaves its gateway to this.
leave() {
	gateway=$(cat "$work/gateway" 2>/dev/null)
	[ -z "$gateway" ] || { kill "$gateway" 2>/dev/null && soon gateway_left; }
	finish
}
gateway_left() { ! kill -0 "$gateway"; }
trap leave EXIT

# A user of the machine without any right.
user='setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all'
# start_gateway COMMAND...: in the folder of the test; sets url.
start_gateway() {
	"$@" "$ATOLL" serve --state "$PWD/state" >serve.out 2>serve.log &
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

a_gateway_serves_without_keeper_and_without_privileges() {
	$user test -x "$ATOLL" || skip "other users cannot execute $ATOLL"
	chown 65534:65534 .
	export ATOLL_RUN="$PWD/run" HOME="$PWD" ATOLL_CLUSTER_ROLE=gateway ATOLL_CLUSTER_DATABASE='host=/nowhere user=atoll'
	start_gateway $user
	key=$($user "$ATOLL" key new tests --state "$PWD/state" --quiet)
	is "$(curl -s -o body -w '%{http_code}' -H "X-API-Key: $key" "$url/v1/boxes")" 200
	is "$(jq -c .items body)" '[]'
	is "$(curl -s -o body -w '%{http_code}' -H "X-API-Key: $key" -d '{}' "$url/v1/boxes")" 503
	has "$(cat body)" "this machine is a gateway (cluster.role)"
	is "$(curl -s -o body -w '%{http_code}' -H "X-API-Key: $key" -d '{"language": "bash", "code": "true"}' "$url/v1/run")" 503
	is "$(pgrep -cP "$gateway" -x atoll-server)" 1
	[ ! -e run/keeper.sock ] || fail "a keeper was started"
	stop_gateway
}

run_tests
