#!/bin/sh
# capture.sh - programs that know of no proxy reach allowed hosts, and no others.
# In a network namespace of its own, in which the hosts have the address 10.77.0.1 (hosts.py).
if [ -z "${of_its_own-}" ]; then
	[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
	of_its_own=yes exec unshare -n -- "$0" "$@"
fi
ip link set lo up
ip address add 10.77.0.1/32 dev lo
. "$(dirname "$0")/daemon.lib"

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=host.test \
	-addext 'subjectAltName=DNS:host.test,DNS:other.test' -keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null
cat "$work/key.pem" "$work/cert.pem" >"$work/both.pem"
mkdir "$work/files"
mkfifo "$work/hosts.in"
python3 "$(dirname "$0")/hosts.py" "$work/hosts.log" 10.77.0.1 "$work/both.pem" "$work/files" <"$work/hosts.in" >"$work/hosts.ports" &
exec 8>"$work/hosts.in"
soon grep -q dns= "$work/hosts.ports"
eval "$(cat "$work/hosts.ports")"
# shellcheck disable=SC2154 # by the line above
export http tls echo first
# shellcheck disable=SC2154
export ATOLL_EGRESS_DNS="10.77.0.1:$dns"
export ATOLL_EGRESS_LINKS=true
export ATOLL_EGRESS_ALLOW="metadata.test,*.public.test"
export ATOLL_EGRESS_INTERNAL="host.test:$http,host.test:$tls,host.test:$echo,host.test:$first,other.test:$http,10.77.0.1:$echo,10.77.0.1:$http"

# net_box HOST...: creates a box that may connect to these hosts.
net_box() {
	new_box "$(jq -nc '{network:{allow:$ARGS.positional}}' --args "$@")"
}
# says COMMAND: executes it in the box, without proxy variables; sets code and out.
says() {
	api POST "/v1/boxes/$box/execs" "$(jq -nc --arg c "unset HTTP_PROXY HTTPS_PROXY http_proxy https_proxy ALL_PROXY all_proxy; $1" '{command:$c}')"
	out=$(get .stdout) err=$(get .stderr)
}
# python CODE: the same for a program; to() returns what a connection to a host gets back.
python() {
	says "python3 - <<-'X'
	import socket, ssl, struct, time
	def to(host, port, send=b'', much=100):
	    try:
	        with socket.create_connection((host, port), 20) as s:
	            if send: s.sendall(send)
	            return s.recv(much)
	    except OSError as e:
	        return type(e).__name__
	$1
	X"
}
gone() { api DELETE "/v1/boxes/$box"; }
egress() { pgrep -P "$supervisor" -x atoll-egress; }
is_transparent() { api GET "/v1/boxes/$box/network" && [ "$(get .transparent)" = true ]; }
seen() { grep -c "$1" "$work/hosts.log" || :; }
# recent_is LIST: the connections of the box that were reported so far.
recents='[.recent[] | "\(.host):\(.port) \(.verdict)"] | join(",")'
recent_is() { network_is "$recents" "$1"; }
recent_begins() { network_is "$recents | startswith(\"$1\")" true; }
# reaches_again: a connection is served, also if the last egress process is known as gone a moment later.
reaches_again() { python "print(to('10.77.0.1', $echo, b'ping'))" && [ "$out" = "b'ping'" ]; }

an_allowed_name_is_reached_without_a_proxy() {
	net_box "host.test:$http" "host.test:$tls"
	says "curl -sS http://host.test:$http/plain"
	is "$out" welcome "$body"
	is "$(seen "^http /plain host=host.test:$http")" 1
	says "curl -sSk https://host.test:$tls/secure"
	is "$out" welcome "$body"
	is "$(seen "^https /secure host=host.test:$tls")" 1
	soon recent_is "host.test:$http ok,host.test:$tls ok"
	is "$(get '[.transparent, .transparent_why] | tojson')" '[true,null]'
	gone
}

an_allowed_address_is_reached_without_a_proxy() {
	net_box "10.77.0.1:$echo"
	python "print(to('10.77.0.1', $echo, b'ping'))"
	is "$out" "b'ping'" "$body"
	soon recent_is "10.77.0.1:$echo ok"
	gone
}

# The first program of a box: there is no moment without network.
a_program_that_connects_at_once_is_served() {
	for _ in 1 2 3 4 5; do
		api POST /v1/run "$(jq -nc --arg e "$echo" '{language:"python",network:{allow:["10.77.0.1:" + $e]},
			code:("import socket; s = socket.create_connection((\"10.77.0.1\", " + $e + "), 20); s.sendall(b\"hi\"); print(s.recv(9))")}')"
		is "$(get .stdout)" "b'hi'" "$body"
	done
}

a_server_that_sends_first_is_reached() {
	net_box "host.test:$first"
	python "
	s = socket.create_connection(('host.test', $first), 20)
	f = s.makefile('rb')
	print(f.readline()); s.sendall(b'me'); print(f.read())"
	is "$out" "b'220 ready\\r\\n'
b'you said me'" "$body"
	gone
}

the_loopback_of_a_box_is_not_captured() {
	net_box "10.77.0.1:$echo"
	python "
	import threading
	for at in ('127.0.0.1', '127.3.2.1', '::1'):
	    l = socket.create_server((at, 0), family=socket.AF_INET6 if ':' in at else socket.AF_INET)
	    threading.Thread(target=lambda: l.accept()[0].sendall(b'own'), daemon=True).start()
	    print(to(at, l.getsockname()[1]))
	u, v = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in 'ab')
	u.bind(('127.0.0.1', 53)); u.settimeout(20); v.sendto(b'hello', ('127.0.0.1', 53)); print(u.recv(9))"
	is "$out" "b'own'
b'own'
b'own'
b'hello'" "$body"
	gone
}

other_destinations_are_refused_and_reported() {
	net_box "10.77.0.1:$echo"
	before=$(seen .)
	python "
	for to_, port in (('10.77.0.1', $first), ('10.77.0.2', 22), ('93.184.216.34', 5432), ('169.254.169.254', 8080), ('2001:db8::1', 5432)):
	    print(to(to_, port, b'hello'))
	u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.connect(('93.184.216.34', 123)); u.send(b'x')
	try: print(u.recv(9))
	except OSError as e: print(type(e).__name__)"
	is "$out" "ConnectionResetError
ConnectionResetError
ConnectionResetError
ConnectionResetError
ConnectionResetError
ConnectionRefusedError" "$body"
	is "$(seen .)" "$before"
	soon recent_is "10.77.0.1:$first denied,10.77.0.2:22 denied,93.184.216.34:5432 denied,169.254.169.254:8080 denied,2001:db8::1:5432 denied"
	gone
}

a_refusal_has_the_form_of_the_protocol() {
	net_box "10.77.0.1:$echo"
	says "curl -s -w '%{http_code}' http://93.184.216.34/x"
	case $out in *'{"error": {"code": "denied"'*'93.184.216.34:80'*403) ;; *) fail "$out" ;; esac
	says "curl -sk https://93.184.216.34/ 2>&1 || curl -vk https://93.184.216.34/ 2>&1 | grep -i alert"
	case $out in *'access denied'*) ;; *) fail "$out" ;; esac
	gone
}

names_that_are_not_allowed_do_not_exist() {
	net_box "host.test:$http"
	before=$(seen '^dns')
	says "curl -s http://secret-of-the-box.test/; echo \$?; getent hosts other.test; getent ahostsv4 host.test | head -1"
	case $out in 6*"198.18."*) ;; *) fail "$out" ;; esac
	is "$(echo "$out" | wc -l)" 2 "$out"
	is "$(seen '^dns')" "$before" # nothing was sent to a name server
	soon recent_begins "secret-of-the-box.test:53 denied,other.test:53 denied"
	gone
	new_box
	says "getent hosts host.test; echo \$?"
	is "$out" 2
	gone
}

names_are_resolved_for_every_name_server_and_over_tcp() {
	net_box "host.test:$http"
	python "
	q = b'\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x04host\x04test\0\0\x01\0\x01'
	for at in ('127.0.0.53', '8.8.8.8'):
	    u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.settimeout(20); u.connect((at, 53)); u.send(q)
	    r = u.recv(600); print(r[:2] == q[:2], r[3] & 15, socket.inet_ntoa(r[-4:])[:7])
	    s = socket.create_connection((at, 53), 20); s.sendall(struct.pack('>H', len(q)) + q)
	    r = s.recv(600)[2:]; print(r[3] & 15, socket.inet_ntoa(r[-4:])[:7])"
	is "$out" "True 0 198.18.
0 198.18.
True 0 198.18.
0 198.18." "$body"
	gone
}

# Escape: a permitted connection does not lead to another name of the same server
a_tls_client_must_name_the_permitted_server() {
	net_box "host.test:$tls"
	before=$(seen '^https')
	python "
	def name(sni):
	    c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE
	    try:
	        with c.wrap_socket(socket.create_connection(('host.test', $tls), 20), server_hostname=sni): return 'connected'
	    except OSError as e: return getattr(e, 'reason', e)
	print(name('other.test')); print(name(None)); print(name('HOST.test'))"
	is "$out" "TLSV1_ALERT_ACCESS_DENIED
TLSV1_ALERT_ACCESS_DENIED
connected" "$body"
	is "$(seen '^https')" "$before"
	soon recent_begins "host.test:$tls denied,host.test:$tls denied"
	# The same in a tunnel of the proxy.
	says "curl -sSk --connect-to other.test:443:host.test:$tls -p -x http://127.0.0.1:3128 https://other.test/ 2>&1 | grep -ic 'access denied'"
	is "$out" 1 "$body"
	gone
}

an_http_request_must_name_the_permitted_server() {
	net_box "host.test:$http"
	before=$(seen '^http ')
	says "curl -s -w '%{http_code}' -H 'Host: other.test' http://host.test:$http/"
	case $out in *'different hosts'*400) ;; *) fail "$out" ;; esac
	python "
	one = b'GET /one HTTP/1.1\r\nHost: host.test:$http\r\n\r\n'
	s = socket.create_connection(('host.test', $http), 20); s.sendall(one + one.replace(b'host.test', b'other.test'))
	print(s.makefile('rb').read().count(b'welcome'))"
	is "$out" 1 "$body"
	is $(($(seen '^http ') - before)) 1
	gone
}

an_internal_address_of_an_allowed_name_is_refused() {
	net_box metadata.test
	says "curl -s -w '%{http_code}' http://metadata.test/latest"
	case $out in *'not public'*metadata*403) ;; *) fail "$out" ;; esac
	gone
}

# Escape: root of the box has no rights over its network
a_box_cannot_change_its_route_or_take_over_the_sockets() {
	net_box "10.77.0.1:$echo"
	cat >tamper.py <<-'X'
	import ctypes, os, socket, struct, sys
	libc = ctypes.CDLL(None, use_errno=True)
	def tried(what, call):
	    try: call(); print(what, "worked")
	    except OSError as e: print(what, e.strerror)
	def netlink(type, flags, body):
	    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
	    s.send(struct.pack("IHHII", 16 + len(body), type, 5 | flags, 1, 0) + body)
	    code = struct.unpack("i", s.recv(4096)[16:20])[0]
	    if code: raise OSError(-code, os.strerror(-code))
	oif = struct.pack("HHI", 8, 4, 1)
	local = struct.pack("BBBBBBBBI", 2, 0, 0, 0, 255, 4, 254, 2, 0) + oif  # local default dev lo
	def take(kind):
	    s = socket.socket(socket.AF_INET, kind)
	    if kind == socket.SOCK_STREAM: s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
	    s.bind(("127.0.0.53", 53)); s.listen() if kind == socket.SOCK_STREAM else None
	def namespace():
	    if libc.unshare(0x40000000): raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
	def bpf():
	    if libc.syscall(321, 0, 0, 0) < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
	tried("route", lambda: netlink(25, 0, local))
	tried("address", lambda: netlink(20, 0x600, struct.pack("BBBBI", 2, 32, 0, 0, 1) + struct.pack("HH4B", 8, 2, 10, 77, 0, 1)))
	tried("udp", lambda: take(socket.SOCK_DGRAM))
	tried("tcp", lambda: take(socket.SOCK_STREAM))
	tried("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 6))
	tried("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
	tried("bpf", bpf)
	tried("namespace", namespace)
	X
	api POST "/v1/boxes/$box/execs" "$(jq -nc --rawfile c tamper.py '{command:["python3","-c",$c],user:"root"}')"
	is "$(get .stdout | grep -c worked)" 0 "$body"
	is "$(get .stdout | grep -c .)" 8 "$body"
	python "print(to('10.77.0.1', $echo, b'ping'), to('10.77.0.2', 22, b'x'))"
	is "$out" "b'ping' ConnectionResetError" "$body"
	# The same from outside works: the test would notice a box that can.
	api POST "/v1/boxes/$box/execs" '{"command":["sleep","987654"],"background":true}'
	soon pgrep -f 'sleep 987654'
	out=$(nsenter -t "$(pgrep -f 'sleep 987654' | tail -1)" -n python3 tamper.py)
	is "$(echo "$out" | grep -c '^\(route\|address\|raw\|packet\|namespace\) worked')" 5 "$out"
	gone
}

# Lateral
a_captured_network_namespace_is_not_reused() {
	net_box "10.77.0.1:$echo"
	soon is_transparent
	api POST "/v1/boxes/$box/execs" '{"command":["sleep","987655"],"background":true}'
	soon pgrep -f 'sleep 987655'
	net=$(readlink "/proc/$(pgrep -f 'sleep 987655' | tail -1)/ns/net")
	keeper_pid=$("$ATOLL" doctor --json | grep -o 'pid [0-9]*' | head -1 | cut -d ' ' -f 2)
	lost() { ! ls -l "/proc/$keeper_pid/fd" | grep -qF "$net"; }
	if lost; then fail "the keeper does not have $net"; fi
	gone
	soon lost
}

rules_of_a_box_that_ends_do_not_affect_the_next_box() {
	net_box "10.77.0.1:$echo"
	gone
	new_box
	python "print(to('10.77.0.1', $echo, b'ping'))"
	is "$out" OSError "$body" # network is unreachable
	gone
}

a_linked_box_is_reached_under_its_name_without_a_proxy() {
	new_box
	target=$box
	says '(python3 -c "
import socket
l = socket.create_server((\"127.0.0.1\", 5432))
while True:
    c = l.accept()[0]; c.sendall(b\"server first\"); c.close()" >/dev/null 2>&1 &)'
	api GET "/v1/boxes/$target/ports/5432?wait=30s"
	new_box "$(jq -nc --arg t "$target" '{network:{links:{db:$t}}}')"
	python "print(to('db', 5432))"
	is "$out" "b'server first'" "$body"
	soon network_is '.recent[-1] | "\(.host) \(.port) \(.rule) \(.verdict)"' "db 5432 link db ok"
	gone
	box=$target
	gone
}

rules_about_requests_apply_to_captured_http() {
	net_box "GET host.test:$http/open/*"
	says "for words in open/a closed 'open/a -d x'; do curl -s -o /dev/null -w '%{http_code} ' http://host.test:$http/\$words; done"
	is "$out" "200 403 403 " "$body"
	python "print(to('host.test', $http, b'hello'))" # a request that cannot be read
	is "$out" ConnectionResetError "$body"
	gone
}

the_proxy_speaks_socks5_too() {
	net_box "host.test:$http" "10.77.0.1:$echo"
	says "curl -sS -x socks5h://127.0.0.1:3128 http://host.test:$http/socks"
	is "$out" welcome "$body"
	python "
	def socks(address, port, command=1):
	    s = socket.create_connection(('127.0.0.1', 3128), 20); f = s.makefile('rb')
	    s.sendall(b'\x05\x01\x00'); hello = f.read(2)
	    s.sendall(bytes((5, command, 0)) + address + struct.pack('>H', port)); code = f.read(10)[1]
	    if code == 0: s.sendall(b'ping'); return hello, f.read(4)
	    return code
	print(socks(b'\x01' + socket.inet_aton('10.77.0.1'), $echo))
	print(socks(b'\x03\x09host.test', $echo), socks(b'\x01' + socket.inet_aton('93.184.216.34'), 80))
	print(socks(b'\x01' + socket.inet_aton('10.77.0.1'), $echo, 3), socks(b'\x09' + b'1234', 1), socks(b'\x03\x03a b', 80))
	s = socket.create_connection(('127.0.0.1', 3128), 20); s.sendall(b'\x05\x01\x02'); print(s.recv(9))"
	is "$out" "(b'\x05\x00', b'ping')
2 2
7 8 1
b'\x05\xff'" "$body"
	gone
}

git_clones_over_https() {
	command -v git >/dev/null || skip "no git"
	git init -q source
	echo "the text of the repository" >source/text
	git -C source add text
	git -C source -c user.name=a -c user.email=a@host.test commit -q -m first
	git clone -q --bare source "$work/files/repository.git"
	git -C "$work/files/repository.git" update-server-info
	net_box "host.test:$tls"
	says "git -c http.sslVerify=false clone -q https://host.test:$tls/files/repository.git copy 2>&1 && cat copy/text"
	is "$out" "the text of the repository" "$body"
	gone
}

# Go opens its sockets and asks for names by itself, without libc.
a_go_program_is_served() {
	api GET /v1/languages
	[ "$(get '.items[] | select(.name == "go").here')" = true ] || skip "Go is not installed"
	net_box "host.test:$echo"
	api POST "/v1/boxes/$box/execs" "$(jq -nc --arg c "package main
import (\"fmt\"; \"net\")
func main() {
	c, err := net.Dial(\"tcp\", \"host.test:$echo\")
	if err != nil { panic(err) }
	c.Write([]byte(\"ping\"))
	b := make([]byte, 4)
	n, err := c.Read(b)
	fmt.Println(string(b[:n]), err)
	_, err = net.Dial(\"tcp\", \"other.test:$echo\")
	fmt.Println(err != nil)
}" '{language:"go", code:$c, env:{GODEBUG:"netdns=go"}, timeout_ms:120000}')"
	is "$(get .stdout)" "ping <nil>
true" "$body"
	gone
}

after_the_end_of_egress_connections_are_captured_again() {
	net_box "10.77.0.1:$echo"
	soon is_transparent
	old=$(egress)
	kill -9 "$old"
	soon sh -c "new=\$(pgrep -P $supervisor -x atoll-egress) && [ \"\$new\" != $old ]"
	soon is_transparent
	soon reaches_again
	# A new keeper knows only the process of the box.
	keeper_pid=$("$ATOLL" doctor --json | grep -o 'pid [0-9]*' | head -1 | cut -d ' ' -f 2)
	kill -9 "$keeper_pid" "$(egress)"
	soon sh -c "new=\$(pgrep -P $supervisor -x atoll-egress)"
	soon is_transparent
	soon reaches_again
	gone
}

without_root_the_proxy_remains_and_the_reason_is_shown() {
	mkdir run2 state2 bin2
	chmod a+x . && chown 12345:12345 run2 state2
	cp "$ATOLL" "$(dirname "$ATOLL")/atolld" bin2 # the user may not reach the folder of the build
	ATOLL=$PWD/bin2/atoll
	export ATOLL_RUN="$PWD/run2" HOME="$PWD/state2"
	note_answer() { :; } # boxes of this daemon have no limits of memory
	as="setpriv --reuid 12345 --regid 12345 --clear-groups --"
	$as "$ATOLL" serve --listen 127.0.0.1:0 --state "$PWD/state2" >out2 2>log2 &
	second=$!
	soon grep -q 'serving on unix:' log2
	url=$(sed -n 's/^atoll: serving on \(http[^ ]*\)$/\1/p' log2)
	key=$($as "$ATOLL" key new tests --state "$PWD/state2" --quiet)
	new_box '{"network":{"allow":["metadata.test"]}}'
	api GET "/v1/boxes/$box/network"
	is "$(get '[.open, .transparent, .transparent_why] | tojson')" '[true,false,"the keeper does not run as root"]' "$body"
	says 'getent hosts metadata.test; echo $?'
	is "$out" 2 "$body"
	keeper2=$($as "$ATOLL" doctor --json | grep -o 'pid [0-9]*' | head -1 | cut -d ' ' -f 2)
	is "$($as "$ATOLL" doctor --json | jq -r '.[] | select(.name == "outbound capture") | .status')" warn
	gone
	kill "$second"
	wait "$second" || :
	kill "$keeper2"
}

the_doctor_reports_the_capture_of_connections() {
	is "$("$ATOLL" doctor --json | jq -r '.[] | select(.name == "outbound capture") | .status')" ok
}

run_daemon_tests
exec 8>&-
