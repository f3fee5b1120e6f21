#!/bin/sh
# egress.sh - outbound connections of a box: which hosts the proxy allows, and what is recorded.
# The "registry" is a server on the loopback (registry.py), so the operator allows it as internal.
. "$(dirname "$0")/daemon.lib"
. "$libs/registry.lib"

export ATOLL_EGRESS_ALLOW="inside.test:$http,metadata.test,mixed.test,public.test,*.below.test"
export ATOLL_EGRESS_INTERNAL="registry.test:$http,registry.test:$echo"
export ATOLL_EGRESS_IN=8M ATOLL_PIP_INDEX="http://registry.test:$http/simple"

# net_box HOST...: creates a box that may connect to these hosts.
net_box() {
	new_box "$(jq -nc '{network:{allow:$ARGS.positional}}' --args "$@")"
}
seen() { grep -c "$1" "$work/registry.log" || :; }

an_allowed_host_is_reached_and_recorded() {
	net_box "registry.test:$http"
	is "$(get '.network.allow[0]')" "registry.test:$http"
	says "curl -sS http://registry.test:$http/simple"
	is "$out" packages "$body"
	says "python3 -c 'import urllib.request as u; print(u.urlopen(\"http://registry.test:$http/a?b\").read().decode().strip())'"
	is "$out" packages
	says "curl -sS http://registry.test:$http/chunked"
	is "$out" hellohellohello
	says "curl -sS -d hello http://registry.test:$http/post"
	is "$out" hello
	is "$(seen "^POST /post host=registry.test:$http connection=close secret=None body=5")" 1
	soon network_is '[.connections, .refused, .open, .recent[0].host, .recent[0].verdict, .recent[0].rule] | @csv' \
		"4,0,true,\"registry.test\",\"ok\",\"registry.test:$http\""
	gone
}

the_connections_of_a_run_are_in_its_record() {
	net_box "registry.test:$http"
	says_reported "curl -sS http://registry.test:$http/a"
	is "$(get '[.network[0].host, .network[0].verdict] | @csv')" '"registry.test","ok"' "$body"
	gone
}

# The connection stays open: its report has not been sent.
bytes_of_an_open_connection_are_counted_every_second() {
	net_box "registry.test:$echo"
	api POST "/v1/boxes/$box/execs" "$(jq -nc --arg c "python3 -c \"
import socket, time
s = socket.create_connection(('127.0.0.1', 3128))
s.sendall(b'CONNECT registry.test:$echo HTTP/1.1\r\nHost: registry.test:$echo\r\n\r\n')
f = s.makefile('rb'); f.readline(); f.readline()
s.sendall(b'x' * 5000); f.read(5000); time.sleep(600)\"" '{command:$c, background:true}')"
	stats_count() { api GET "/v1/boxes/$box/stats" && [ "$(get '[.network.bytes_in, .network.bytes_out] | @csv')" = 5000,5000 ]; }
	soon stats_count
	soon network_is '[.bytes_in, .bytes_out, .connections] | @csv' 5000,5000,0
	gone
}

connect_opens_a_tunnel_to_an_allowed_host() {
	net_box "registry.test:$echo" "registry.test:$http"
	says "curl -sS -p -x http://127.0.0.1:3128 http://registry.test:$http/tunnelled"
	is "$out" packages
	says "python3 - <<-'X'
	import socket
	s = socket.create_connection(('127.0.0.1', 3128))
	s.sendall(b'CONNECT registry.test:$echo HTTP/1.1\r\nHost: registry.test:$echo\r\n\r\n')
	f = s.makefile('rb')
	print(f.readline().decode().strip()); f.readline()
	s.sendall(b'ping'); print(f.read(4).decode())
	s.shutdown(1); print(len(f.read()))
	X"
	is "$out" "HTTP/1.1 200 Connection established
ping
0"
	gone
}

a_box_with_network_has_the_proxy_and_package_index_variables() {
	net_box "registry.test:$http"
	says 'echo $HTTP_PROXY $https_proxy $NO_PROXY $PIP_INDEX_URL'
	is "$out" "http://127.0.0.1:3128 http://127.0.0.1:3128 localhost,127.0.0.1,::1 http://registry.test:$http/simple"
	gone
	new_box '{"network":{"registries":false}}'
	says 'echo "$HTTP_PROXY."; python3 -c "
import socket
try: socket.create_connection((\"127.0.0.1\", 3128), 2); print(\"connected\")
except OSError as e: print(e.strerror)"'
	is "$out" ".
Connection refused"
	is "$(api GET "/v1/boxes/$box" && get '.network.allow | length')" 0
	gone
}

a_host_that_is_not_allowed_is_rejected_with_a_hint() {
	net_box "registry.test:$http"
	before=$(seen .)
	says "curl -s -w '%{http_code}' http://registry.test:$echo/"
	case $out in *'To allow it: atoll net allow '"$box registry.test:$echo"*403) ;; *) fail "$out" ;; esac
	says "curl -s -o /dev/null -w '%{http_connect}' https://example.org/"
	is "$out" 403
	says "curl -s -w '%{http_code}' --noproxy '' http://127.0.0.1:$http/"
	case $out in *403) ;; *) fail "$out" ;; esac
	is "$(seen .)" "$before" "$(cat "$work/registry.log")"
	soon network_is '[.recent[].verdict] | join(",")' denied,denied,denied
	gone
}

a_request_for_a_host_that_the_operator_does_not_permit_is_403() {
	api POST /v1/boxes '{"network":{"allow":["example.org"]}}'
	is "$code" 403
	case $(get .error.message) in *'network.allow[0]'*example.org*egress.allow*) ;; *) fail "$body" ;; esac
	api POST /v1/boxes '{"network":{"allow":["registry.test:22"]}}'
	is "$code" 403
	api POST /v1/boxes '{"network":{"allow":["*.test"]}}'
	is "$code" 403
	api POST /v1/boxes '{"network":{"allow":["*.below.test","a.below.test"]}}'
	is "$code" 201 "$body"
	box=$(get .id)
	gone
	for bad in '"x"' '{"allow":"x"}' '{"allow":[1]}' '{"allow":["127.1"]}' '{"allow":["a b"]}' '{"allow":["http://x"]}' '{"others":[]}'; do
		api POST /v1/boxes "{\"network\":$bad}"
		is "$code" 400 "$bad: $body"
	done
}

an_internal_address_is_rejected_whatever_its_host_name() {
	net_box "inside.test:$http" metadata.test mixed.test
	before=$(seen '^GET')
	says "curl -s -w '%{http_code}' http://inside.test:$http/"
	case $out in *loopback*egress.allow_internal*403) ;; *) fail "$out" ;; esac
	says "curl -s -w '%{http_code}' http://metadata.test/latest/meta-data"
	case $out in *metadata*never*403) ;; *) fail "$out" ;; esac
	# The name has a public and an internal address: the public one is used.
	says "curl -s -w '%{http_code}' http://mixed.test/"
	case $out in *private*403) ;; *) fail "$out" ;; esac
	says "curl -s -o /dev/null -w '%{http_code}' http://nowhere.test/"
	is "$out" 403
	is "$(seen '^GET')" "$before"
	gone
}

host_names_without_a_rule_are_not_resolved() {
	net_box metadata.test
	says "curl -s -o /dev/null http://secret-of-the-box.test/"
	is "$(seen 'dns secret')" 0
	says "curl -s -o /dev/null -w '%{http_code}' http://metadata.test/"
	[ "$(seen 'dns metadata.test')" -gt 0 ] || fail "$(cat "$work/registry.log")"
	gone
	net_box public.test
	says "curl -s -w '%{http_code}' http://public.test/" # the name server does not know it
	case $out in *'has no address'*502) ;; *) fail "$out" ;; esac
	gone
}

# A name whose address changes between two lookups: there is only one lookup.
a_name_is_resolved_once_for_a_connection() {
	net_box "registry.test:$http"
	before=$(seen 'dns registry.test')
	says "curl -sS http://registry.test:$http/"
	is "$out" packages
	is $(($(seen 'dns registry.test') - before)) 2 # A and AAAA
	gone
}

# Escape, Exfil
without_the_proxy_no_host_is_reachable() {
	net_box "registry.test:$http"
	says "python3 - <<-'X'
	import socket
	for to in ('127.0.0.1', $http), ('127.0.0.1', $echo), ('10.0.0.1', 80), ('93.184.216.34', 80), ('::1', $http):
	    try: s = socket.create_connection(to, 20); s.sendall(b'x'); print('answered', to, s.recv(10))
	    except OSError: pass
	s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
	try: s.sendto(b'x', ('127.0.0.1', $dns)); s.settimeout(0.2); print('answered', s.recvfrom(10))
	except OSError: pass
	X"
	is "$out" ""
	gone
}

# Escape, HostLeak: the proxy's own loopback, other protocols, other families
the_proxy_reaches_no_other_service_of_the_host() {
	net_box "registry.test:$http"
	port=${url##*:}
	before=$(seen .)
	says "python3 - <<-'X'
	import socket
	for ask in ('CONNECT 127.0.0.1:$port', 'CONNECT localhost:$port', 'CONNECT [::1]:$port', 'CONNECT 0.0.0.0:$port',
	            'CONNECT 127.1:$port', 'CONNECT 2130706433:$port', 'CONNECT [::ffff:127.0.0.1]:$port',
	            'GET http://127.0.0.1:$port/', 'GET http://registry.test:$http@127.0.0.1:$port/',
	            'GET unix:///run/docker.sock', 'CONNECT unix:1', 'GET file:///etc/passwd', 'GET /etc/passwd',
	            'CONNECT registry.test:$echo', 'CONNECT registry.test.:22'):
	    s = socket.create_connection(('127.0.0.1', 3128), 5)
	    host = ask.split()[1].split('//')[-1].split('/')[0]
	    s.sendall((ask + ' HTTP/1.1\r\nHost: ' + host + '\r\n\r\n').encode())
	    line = s.makefile('rb').readline().decode().split()[1]
	    if line not in ('400', '403'): print(ask, line)
	X"
	is "$out" ""
	is "$(seen .)" "$before"
	gone
}

ambiguous_http_requests_are_rejected() {
	net_box "registry.test:$http"
	before=$(seen '^GET\|^POST')
	says "python3 - <<-'X'
	import socket
	base = 'POST http://registry.test:$http/ HTTP/1.1\r\nHost: registry.test:$http\r\n'
	for head, want in ((base + 'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', '400'),
	             (base + 'Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello', '400'),
	             (base + 'Transfer-Encoding: chunked, identity\r\n\r\n', '400'),
	             (base + 'Transfer-Encoding : chunked\r\n\r\n', '400'),
	             (base + 'Host: other\r\n\r\n', '400'),
	             (base + 'X: a\r\n b\r\n\r\n', '400'),
	             (base + 'X: a\nY: b\r\n\r\n', '400'),
	             (base.replace('Host: registry.test', 'Host: other.test') + '\r\n', '400'),
	             (base + 'X: ' + 'a' * 1048576 + '\r\n\r\n', '431'),
	             (base + 'X: a\r\n' * 200 + '\r\n', '400')):
	    s = socket.create_connection(('127.0.0.1', 3128), 5)
	    try: s.sendall(head.encode())
	    except OSError: pass
	    got = s.makefile('rb').readline().decode().split()[1:2]
	    if got != [want]: print(repr(head[-60:]), got)
	X"
	is "$out" "" "$body"
	is "$(seen '^GET\|^POST')" "$before"
	# A second pipelined request and hop-by-hop headers are not forwarded.
	says "python3 - <<-'X'
	import socket
	one = 'GET http://registry.test:$http/first HTTP/1.1\r\nHost: registry.test:$http\r\nConnection: keep-alive, X-Secret\r\nX-Secret: 1\r\n\r\n'
	s = socket.create_connection(('127.0.0.1', 3128), 5)
	s.sendall((one + one.replace('first', 'second')).encode())
	print(s.makefile('rb').read().count(b'packages'))
	X"
	is "$out" 1
	is "$(seen '^GET /first .* connection=close secret=None')" 1
	is "$(seen '/second')" 0
	gone
}

the_byte_budget_of_a_box_is_enforced() {
	net_box "registry.test:$http"
	says "curl -s http://registry.test:$http/big/4000000 | wc -c"
	is "$out" 4000000
	says "curl -s http://registry.test:$http/big/8000000 | wc -c"
	[ "$out" -lt 8000000 ] || fail "$out"
	says "curl -s -w '%{http_code}' http://registry.test:$http/"
	case $out in *egress.bytes_in*403) ;; *) fail "$out" ;; esac
	soon network_is '[.recent[].verdict] | join(",")' ok,budget,budget
	gone
}

a_box_that_ends_during_a_transfer_does_not_affect_others() {
	net_box "registry.test:$http"
	api POST "/v1/boxes/$box/execs" "{\"command\":\"curl -s --limit-rate 1000 http://registry.test:$http/big/4000001\",\"background\":true}"
	soon grep -q big/4000001 "$work/registry.log"
	gone
	is "$code" 204 "$body"
	net_box "registry.test:$http"
	says "curl -sS http://registry.test:$http/"
	is "$out" packages
	gone
}

# Otherwise a box that ended would still have its endpoint.
an_ended_box_has_no_endpoint_in_egress() {
	before=$(find "/proc/$(egress)/fd" | wc -l)
	net_box "registry.test:$http"
	soon way_open
	says "curl -sS http://registry.test:$http/"
	is "$out" packages
	gone
	soon sh -c "[ \$(find /proc/$(egress)/fd | wc -l) = $before ]"
}

a_killed_egress_process_is_replaced_and_boxes_use_the_new_one() {
	net_box "registry.test:$http"
	says "curl -sS http://registry.test:$http/"
	is "$out" packages
	old=$(egress)
	kill -9 "$old"
	soon sh -c "new=\$(pgrep -P $supervisor -x atoll-egress) && [ \"\$new\" != $old ]"
	soon way_open
	soon reaches_again
	gone
}

killing_the_server_does_not_cut_running_transfers() {
	net_box "registry.test:$http"
	says "curl -sS http://registry.test:$http/"
	is "$out" packages
	old=$(pgrep -P "$supervisor" -x atoll-server)
	holder=$(egress)
	api POST "/v1/boxes/$box/execs" "{\"command\":\"curl -s --limit-rate 2000000 http://registry.test:$http/big/3999999 >f\",\"background\":true}"
	soon grep -q big/3999999 "$work/registry.log"
	kill -9 "$old"
	soon sh -c "new=\$(pgrep -P $supervisor -x atoll-server) && [ \"\$new\" != $old ]"
	soon way_open
	is "$(egress)" "$holder"
	soon sh -c "curl -sS -H 'X-API-Key: $key' -H 'Content-Type: application/json' -d '{\"command\":\"wc -c <f\"}' $url/v1/boxes/$box/execs | grep -q 3999999"
	soon reaches_again
	gone
}

the_egress_process_is_unprivileged_and_filtered() {
	pid=$(egress)
	is "$(awk '/^Uid:/ { print $2, $3, $4 }' "/proc/$pid/status")" "64171 64171 64171"
	is "$(awk '/^(CapEff|CapPrm|CapBnd)/ && $1 != "CapBnd:" { print $2 }' "/proc/$pid/status" | sort -u)" 0000000000000000
	is "$(awk '/^NoNewPrivs|^Seccomp:/ { print $2 }' "/proc/$pid/status" | tr '\n' ' ')" "1 2 "
	# No descriptors of the daemon: no port, no database, no socket between other processes.
	is "$(find "/proc/$pid/fd" -lname '/*' -printf '%l\n' | grep -v '^/dev/null$\|serve.log$\|serve.out$\|/sanitizer.confined$')" "" # the last one: sanitised builds
}

a_reload_applies_changed_egress_settings() {
	net_box "registry.test:$http"
	old=$(egress)
	kill -HUP "$supervisor"
	soon sh -c "[ \$(grep -c '\"egress serves\"' '$work/serve.log') -ge 1 ]"
	is "$(egress)" "$old" # no egress setting changed
	soon way_open
	soon reaches_again
	gone
}

an_upgrade_starts_a_new_egress_process_and_boxes_use_it() {
	net_box "registry.test:$http"
	old=$(egress)
	kill -USR2 "$supervisor"
	soon sh -c "new=\$(pgrep -P $supervisor -x atoll-egress) && [ \"\$new\" != $old ] && ! kill -0 $old"
	soon way_open
	soon reaches_again
	gone
}

run_daemon_tests
exec 8>&-
