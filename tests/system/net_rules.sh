#!/bin/sh
# net_rules.sh - network rules of boxes and teams: which destinations they permit, changes of a living
# box, refusals that explain themselves, approvals, budgets, and `atoll net`.
# The destinations are servers on the loopback (registry.py), so the operator allows them as internal.
. "$(dirname "$0")/daemon.lib"
. "$libs/registry.lib"

export ATOLL_EGRESS_ALLOW="*.wide.test,open:9"
export ATOLL_EGRESS_DENY="bad.wide.test"
export ATOLL_EGRESS_INTERNAL="registry.test:*,other.test:*"
export ATOLL_EGRESS_IN=8M ATOLL_EGRESS_ASK=50s

# begins COMMAND: executes it in the box, in the background.
begins() { api POST "/v1/boxes/$box/execs" "$(jq -nc --arg c "$1" '{command:$c, background:true}')"; }
network() { api PATCH "/v1/boxes/$box" "{\"network\":$1}"; }
# getc JQ-FILTER: as get, in one line.
getc() { jq -c "$1" <body; }
file_has() { says "cat $1 2>/dev/null" && case $out in *"$2"*) ;; *) return 1 ;; esac; }
fetch() { says "curl -s -w '%{http_code}' http://$1"; }
# fetches ADDRESS TEXT: a new egress process has the rules a moment later; changed rules hold when the change is answered.
fetches() { fetch "$1" && case $out in *"$2"*) ;; *) echo "# '$2' is not in: $out" && return 1 ;; esac; }
refused_events() { api GET "/v1/boxes/$box/events?limit=100" && n=$(get '[.items[] | select(.type == "network.refused")] | length') && [ "$n" -ge 5 ]; }

rules_are_shown_as_they_are_enforced() {
	new_box "{\"network\":{\"allow\":[\"Registry.test:$http\",\"registry.test:$http\",\"GET,HEAD a.wide.test/v1/*\"],
		\"deny\":[\"10.0.0.0/8\"],\"bandwidth\":\"10M\",\"ask\":true}}"
	is_json "$(getc ".network | del(.links, .budgets)")" "{\"allow\":[\"registry.test:$http\",\"GET,HEAD a.wide.test/v1/*\"],\"allow_until\":[],\"deny\":[\"10.0.0.0/8\"],\"ask\":true,\"bandwidth\":10485760}"
	# Members that are not given stay.
	network '{"deny":[]}'
	is "$code" 200 "$body"
	is "$(getc '[.network.allow[0], .network.deny, .network.ask, .network.bandwidth]')" "[\"registry.test:$http\",[],true,10485760]"
	network '{"allow":[],"ask":false,"bandwidth":0}'
	is_json "$(getc ".network | del(.links, .budgets)")" '{"allow":[],"allow_until":[],"deny":[],"ask":false,"bandwidth":null}'
	gone
}

invalid_rules_are_rejected_with_their_reason() {
	new_box
	while IFS='|' read -r rule status text; do
		network "$(jq -nc --arg r "$rule" '{allow:[$r]}')"
		is "$code" "$status" "$rule: $body"
		has "$(get .error.message)" "$text"
	done <<-X
		127.1|400|four decimal
		2130706433|400|four decimal
		0177.0.0.1|400|four decimal
		0x7f000001.example.0x1|400|four decimal
		[::ffff:127.0.0.1]|400|IPv4 address inside
		0.0.0.0|400|never reached
		169.254.169.254|400|never reached
		registry.test.|400|final dot
		bücher.test|400|ASCII
		user@registry.test|400|user
		registry.test:0|400|1 to 65535
		registry.test:65536|400|1 to 65535
		http://registry.test|400|without http
		example.org|403|egress.allow
	X
	network '{"bandwidth":5}'
	is "$code" 400
	network "{\"deny\":$(jq -nc '[range(65) | "h\(.).test"]')}"
	is "$code" 400 "$body"
	gone
}

a_request_with_an_unusual_host_is_refused_with_its_reason() {
	new_box "{\"network\":{\"allow\":[\"registry.test:$http\",\"open:9\"]}}"
	says "python3 - <<-'X'
	import socket
	for host in '127.1:9', '2130706433:9', '0177.0.0.1:9', '0x7f.1:9', '[::ffff:127.0.0.1]:9', 'registry.test.:$http', 'b\xc3\xbccher.test:9', \\
	            'u@registry.test:$http', 'registry.test:0', 'registry.test:65536', '0.0.0.0:9', '[::]:9', '127.0.0.1:9', '169.254.169.254:9':
	    s = socket.create_connection(('127.0.0.1', 3128), 20)
	    s.sendall(('GET http://%s/ HTTP/1.1\r\nHost: %s\r\n\r\n' % (host, host)).encode('latin-1'))
	    answer = s.makefile('rb').read().decode()
	    if answer.split()[1] not in ('400', '403') or '\"message\"' not in answer: print(host, answer)
	X"
	is "$out" "" "$body"
	gone
}

a_change_of_the_rules_cuts_open_connections() {
	new_box "{\"network\":{\"allow\":[\"registry.test:$echo\"]}}"
	begins "python3 -c \"
import socket
s = socket.create_connection(('127.0.0.1', 3128))
s.sendall(b'CONNECT registry.test:$echo HTTP/1.1\r\nHost: registry.test:$echo\r\n\r\nping')
got = b''
while not got.endswith(b'ping'): got += s.recv(100)
open('begun', 'w').write('begun')
try: print(s.recv(100))
except OSError as e: open('ended', 'w').write(e.strerror)
\""
	soon file_has begun begun
	network "{\"deny\":[\"other.test\"]}" # still permitted
	says "cat ended 2>/dev/null || echo open"
	is "$out" open
	network "{\"deny\":[\"registry.test\"]}"
	is "$code" 200 "$body"
	soon file_has ended 'Connection reset'
	fetches "registry.test:$echo/" 'deny rule of this box'
	network "{\"deny\":[],\"allow\":[\"registry.test:$http\"]}"
	fetches "registry.test:$http/" "packages
200"
	gone
}

a_refusal_explains_itself() {
	new_box "{\"network\":{\"allow\":[\"registry.test:$http\"]}}"
	says_reported "curl -s http://registry.test:$echo/ | tee answer"
	is "$(get '[.network[0].verdict, .network[0].hint] | join("|")')" "denied|To allow it: atoll net allow $box registry.test:$echo"
	says 'cat answer'
	is "$(echo "$out" | jq -r '[.error.code, .error.message, .error.hints[0]] | join("|")')" \
		"denied|this box may not reach registry.test:$echo|To allow it: atoll net allow $box registry.test:$echo"
	refusal() { api GET "/v1/boxes/$box/events?limit=100" && [ "$(get '.items[] | select(.type == "network.refused").data | [.host, .verdict] | join(" ")')" = "registry.test denied" ]; }
	soon refusal
	says "curl -s http://bad.wide.test/"
	has "$out" egress.deny
	# The rate of events is bounded, not the counter.
	says "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do curl -s -o /dev/null http://registry.test:$echo/; done"
	soon network_is .refused 22
	soon refused_events
	[ "$n" -le 15 ] || fail "$n events"
	gone
}

methods_and_paths_of_plain_http_are_enforced() {
	new_box "{\"network\":{\"allow\":[\"GET registry.test:$http/simple/*\"]}}"
	fetch "registry.test:$http/simple/a"
	is "$out" "packages
200"
	fetch "registry.test:$http/other"
	has "$out" 403
	says "curl -s -o /dev/null -w '%{http_code}' -d x http://registry.test:$http/simple/a"
	is "$out" 403
	says "curl -s --path-as-is -o /dev/null -w '%{http_code}' http://registry.test:$http/simple/../other"
	is "$out" 403
	says "curl -s -p -x http://127.0.0.1:3128 -o /dev/null -w '%{http_connect}' http://registry.test:$http/simple/a"
	is "$out" 403
	gone
}

rules_of_a_team_restrict_its_boxes_at_once() {
	api PUT /v1/teams/default/network "{\"allow\":[\"registry.test:$http\"],\"deny\":[\"bad.test\"]}"
	is "$code" 200 "$body"
	is "$(getc .)" "{\"allow\":[\"registry.test:$http\"],\"deny\":[\"bad.test\"]}"
	api POST /v1/boxes "{\"network\":{\"allow\":[\"other.test:$http\"]}}"
	is "$code" 403
	has "$(get .error.message)" "team 'default'"
	new_box "{\"network\":{\"allow\":[\"registry.test:$http\"]}}"
	fetch "registry.test:$http/"
	is "$out" "packages
200"
	api PUT /v1/teams/default/network '{"allow":[]}'
	fetches "registry.test:$http/" "network rules of the team"
	has "$out" 403
	is "$(key=$editor api PUT /v1/teams/default/network '{}' && echo "$code")" 403
	api PUT /v1/teams/default/network '{}'
	is "$(getc .)" '{"allow":null,"deny":[]}'
	fetches "registry.test:$http/" packages
	gone
}

net_shows_and_changes_the_rules() {
	atoll new -q --allow "registry.test:$http"
	is "$status" 0 "$err"
	box=$out
	atoll net show "$box"
	has "$out" "allow     registry.test:$http"
	fetch "registry.test:$echo/"
	has "$out" 403
	soon network_is .refused 1
	atoll net log "$box"
	has "$out" "atoll net allow $box registry.test:$echo"
	atoll net log --json "$box"
	is "$(echo "$out" | jq -r .verdict)" denied
	atoll net allow "$box" "other.test:$http"
	is "$status" 0 "$err"
	fetches "other.test:$http/" packages
	atoll net deny "$box" "other.test:$http"
	fetches "other.test:$http/" "deny rule"
	atoll net --json show "$box"
	is "$(echo "$out" | jq -c '[.allow, .deny]')" "[[\"registry.test:$http\"],[\"other.test:$http\"]]"
	atoll net reset "$box"
	atoll net --json show "$box"
	is "$(echo "$out" | jq -c '[.allow, .deny]')" '[[],[]]'
	atoll net allow "$box" example.org
	is "$status" 4
	has "$err" egress.allow
	atoll net allow "$box"
	is "$status" 2
	gone
}

# asks COMMAND: a box with ask whose program waits for an approval; sets request.
asks() {
	new_box '{"network":{"ask":true}}'
	begins "$1"
	soon network_is '.requests | length' 1
	api GET "/v1/boxes/$box/network/requests"
	request=$(get '.items[0].id')
}

an_unknown_destination_waits_for_an_approval() {
	asks "curl -s -w '%{http_code}' http://registry.test:$http/ >a"
	is "$(get '[.items[0].host, .items[0].port] | join(" ")')" "registry.test $http"
	requested() { api GET "/v1/boxes/$box/events?order=newest&limit=100" && [ "$(get '[.items[] | select(.type == "network.request")] | length')" = 1 ]; }
	soon requested
	code=$(key=$viewer && api POST "/v1/boxes/$box/network/requests/$request" '{"decision":"once"}' && echo "$code")
	is "$code" 403
	api POST "/v1/boxes/$box/network/requests/$request" '{"decision":"once"}'
	is "$code" 200 "$body"
	soon file_has a 200
	soon network_is '.requests | length' 0
	# Once: the next connection asks again.
	begins "curl -s -w '%{http_code}' http://registry.test:$http/ >b"
	soon network_is '.requests | length' 1
	api GET "/v1/boxes/$box/network/requests"
	api POST "/v1/boxes/$box/network/requests/$(get '.items[0].id')" '{"decision":"deny"}'
	soon file_has b 'was refused'
	api POST "/v1/boxes/$box/network/requests/$request" '{"decision":"once"}'
	is "$code" 404
	# What the operator does not permit is not asked for.
	fetch example.org/
	has "$out" 'operator of this machine'
	gone
}

an_approval_for_a_time_or_without_end_is_a_rule() {
	asks "curl -s -w '%{http_code}' http://registry.test:$http/ >a"
	atoll net requests "$box"
	has "$out" "registry.test:$http"
	atoll net approve --for 1h "$box" "$request"
	is "$status" 0 "$err"
	soon file_has a 200
	network_is '.allow_until[0].rule' "registry.test:$http" || fail "$body"
	fetch "registry.test:$http/"
	has "$out" packages
	begins "curl -s -w '%{http_code}' http://other.test:$http/ >c"
	soon network_is '.requests | length' 1
	atoll net requests -q "$box"
	atoll net approve --always "$box" "$out"
	is "$status" 0 "$err"
	soon file_has c 200
	network_is '.allow | join(",")' "other.test:$http" || fail "$body"
	gone
}

# A program that knows of no proxy: its connection is captured.
a_captured_connection_waits_for_an_approval_too() {
	new_box '{"network":{"ask":true}}'
	soon way_open
	[ "$(get .transparent)" = true ] || skip "no transparent network access: $(get .transparent_why)"
	begins "curl --noproxy '*' -s -w '%{http_code}' http://registry.test:$http/ >a"
	soon network_is '.requests | length' 1
	is "$(get '.requests[0].host')" registry.test
	api POST "/v1/boxes/$box/network/requests/$(get '.requests[0].id')" '{"decision":"once"}'
	is "$code" 200 "$body"
	soon file_has a 200
	begins "curl --noproxy '*' -s -w '%{http_code}' http://other.test:$http/ >b"
	soon network_is '.requests | length' 1
	api POST "/v1/boxes/$box/network/requests/$(get '.requests[0].id')" '{"decision":"deny"}'
	soon file_has b 'was refused'
	gone
}

waiting_connections_end_with_egress_and_are_recorded() {
	asks "python3 -c \"
import socket
s = socket.create_connection(('127.0.0.1', 3128))
s.sendall(b'CONNECT registry.test:$http HTTP/1.1\r\nHost: registry.test:$http\r\n\r\n')
try: open('ended', 'w').write(repr(s.recv(100)))
except OSError as e: open('ended', 'w').write(e.strerror)
\""
	kill -9 "$(egress)"
	soon file_has ended 'Connection reset'
	soon network_is '.recent[-1].verdict' cut
	has "$(get '.recent[-1].why')" approval
	soon network_is '.requests | length' 0
	soon way_open
	gone
}

a_request_is_known_to_the_next_server() {
	asks "curl -s -w '%{http_code}' http://registry.test:$http/ >a"
	old=$(server_pid)
	kill -9 "$old"
	soon sh -c "new=\$(pgrep -P $supervisor -x atoll-server) && [ \"\$new\" != $old ]"
	soon network_is '.requests[0].id' "$request"
	api POST "/v1/boxes/$box/network/requests/$request" '{"decision":"once"}'
	is "$code" 200 "$body"
	soon file_has a 200
	gone
}

# In the middle of a transfer: no report was sent for it.
rules_and_budgets_survive_the_death_of_every_process() {
	new_box "{\"network\":{\"allow\":[\"registry.test:$http\"],\"deny\":[\"other.test\"]}}"
	begins "curl -s --limit-rate 3000000 http://registry.test:$http/big/5000001 | wc -c >n"
	soon network_is '.bytes_in > 3000000' true
	used=$(get .bytes_in)
	old=$(server_pid)
	kill -9 "$(egress)" "$old"
	kill -9 "$(pgrep -P "$supervisor" -f keeper)" 2>/dev/null || :
	soon sh -c "new=\$(pgrep -P $supervisor -x atoll-server) && [ \"\$new\" != $old ]"
	soon way_open
	is "$(get '[.allow[0], .deny[0]] | join(" ")')" "registry.test:$http other.test"
	soon network_is ".bytes_in >= $used" true
	ended() { says 'test -s n && echo ended' && [ "$out" = ended ]; }
	soon ended
	says "curl -s http://registry.test:$http/big/6000000 | wc -c"
	[ "$out" -lt 6000000 ] || fail "$out"
	fetch "registry.test:$http/"
	has "$out" egress.bytes_in
	gone
}

a_budget_for_a_destination_is_enforced() {
	new_box "{\"network\":{\"allow\":[\"registry.test:$http\",\"other.test:$http\"],
		\"budgets\":[{\"rule\":\"registry.test\",\"bytes_in\":\"1M\"},{\"rule\":\"other.test\",\"connections\":2}]}}"
	is "$(getc '.network.budgets[0]')" '{"bytes_in":1048576,"bytes_out":null,"connections":null,"rule":"registry.test"}'
	says "curl -s http://registry.test:$http/big/2000000 | wc -c"
	[ "$out" -lt 2000000 ] || fail "$out"
	fetch "registry.test:$http/"
	has "$out" 'budget for registry.test: 1048576 bytes received'
	fetch "other.test:$http/"
	has "$out" packages
	old=$(egress)
	kill -9 "$old"
	soon sh -c "new=\$(pgrep -P $supervisor -x atoll-egress) && [ \"\$new\" != $old ]"
	soon fetches "registry.test:$http/" 'budget for registry.test'
	fetch "other.test:$http/"
	has "$out" packages
	fetch "other.test:$http/"
	has "$out" '2 connections'
	network '{"budgets":[]}'
	fetches "registry.test:$http/" packages
	for bad in '{}' '[1]' '[{}]' '[{"rule":"a.test","bytes_in":0}]' '[{"rule":"a.test","others":1}]' '[{"rule":"GET a.test"}]'; do
		network "{\"budgets\":$bad}"
		is "$code" 400 "$bad: $body"
	done
	gone
}

the_bandwidth_of_a_box_is_limited() {
	new_box "{\"network\":{\"allow\":[\"registry.test:$http\"],\"bandwidth\":\"1M\"}}"
	begins "curl -s http://registry.test:$http/big/6000000 >big; echo done >end"
	soon file_has end done
	says 'stat -c %s big'
	is "$out" 6000000
	# 6 MB need 5.7 s; a box without a limit needs less than a tenth of that.
	soon network_is '.recent | length' 1
	[ "$(get '.recent[-1].ms')" -ge 3000 ] || fail "$(get '.recent[-1].ms') ms"
	gone
}

a_key_of_one_box_cannot_change_its_network() {
	new_box "{\"network\":{\"ask\":true}}"
	api POST /v1/keys "{\"name\":\"bound\",\"role\":\"editor\",\"box\":\"$box\"}"
	is "$code" 201 "$body"
	bound=$(get .key)
	code=$(key=$bound && api PATCH "/v1/boxes/$box" "{\"network\":{\"allow\":[\"registry.test:$http\"]}}" && echo "$code")
	is "$code" 403
	code=$(key=$bound && api POST "/v1/boxes/$box/network/requests/1" '{"decision":"always"}' && echo "$code")
	is "$code" 403
	gone
}

run_daemon_tests
exec 8>&-
