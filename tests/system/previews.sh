#!/bin/sh
# previews.sh - previews of boxes of the native API: token, cookie, names, pages; the list of ports; forward.
. "$(dirname "$0")/daemon.lib"

html='Accept: text/html,application/xhtml+xml,*/*;q=0.8'
# at PATH [CURL OPTION...]: port 8000 of the box; sets code, body and head. host: another label than PORT-BOX.
at() {
	path=$1
	shift
	: >body
	code=$(curl -sS -g --max-time 120 -o body -D head -w '%{http_code}' -H "Host: ${host:-${port:-8000}-$box}.localhost:${url##*:}" \
		"$@" "$url$path" 2>curl.err) || code=cut
	body=$(tr '\0' '?' <body 2>/dev/null)
}
heads() { grep -i "^$1:" head | tr -d '\r' | cut -d ' ' -f 2-; }
seen() { jq -r --arg n "$1" '[.headers[] | select(.[0] == $n) | .[1]] | join("|")' <body; }
py() { python3 "$here/proxy.py" "$url" "$box" "$1"; }
# opened PORT [BODY]: sets token.
opened() {
	api PUT "/v1/boxes/$box/ports/$1" "${2:-{\}}"
	is "$code" 200 "$body"
	token=$(get .token)
}
listens() {
	for each in 8000 8001 8030; do
		api GET "/v1/boxes/$box/ports/$each?wait=60s"
		is "$code $(get .listening)" '200 true' "$body"
	done
}
# One box for all tests.
serve_box() {
	api POST /v1/boxes '{"name":"demo"}'
	box=$(get .id)
	curl -sS -o body -T "$here/proxied.py" -H "X-API-Key: $key" "$url/v1/boxes/$box/files?path=s.py"
	api POST "/v1/boxes/$box/execs" '{"command":["python3","s.py"],"background":true}'
	listens
}

a_private_preview_needs_its_token() {
	opened 8000
	is "${#token} $(get '"\(.open) \(.public)"')" "40 true false"
	is "$(get .link)" "http://8000-$box.localhost:${url##*:}/?atoll_preview_token=$token"
	at /echo
	is "$code $(get .error.code)" '401 preview_token_needed'
	has "$(get '.error.hints[0]')" 'atoll open BOX 8000'
	at /echo -H 'X-Atoll-Preview-Token: 0123456789012345678901234567890123456789'
	is "$code $(get .error.code)" '401 preview_token_needed'
	at /echo -H "Cookie: atoll_preview=0123456789012345678901234567890123456789"
	is "$code" 401
	at '/echo?a=1' -H "X-Atoll-Preview-Token: $token" -H 'X-Kept: yes'
	is "$code $(get .path) $(seen x-kept)" '200 /echo?a=1 yes' "$body"
	lacks "$body" "$token"
	api PUT "/v1/boxes/$box/ports/8000"
	is "$(get .token)" "$token" "opening it again changes nothing"
}

a_token_in_the_query_becomes_a_cookie_once() {
	opened 8000
	at "/echo?a=1&atoll_preview_token=$token&b=%2F"
	is "$code $(heads location)" '303 /echo?a=1&b=%2F'
	is "$(heads set-cookie)" "atoll_preview=$token; Path=/; HttpOnly; SameSite=Lax"
	is "$(heads cache-control) $(heads referrer-policy)" 'no-store no-referrer'
	at /echo -H "Cookie: a=1; atoll_preview=$token; b=2" -H "Referer: http://x/?atoll_preview_token=$token"
	is "$code $(seen cookie)$(seen referer)" '200 a=1; b=2' "$body"
	at /echo -H "Cookie: atoll_preview=old; atoll_preview=$token"
	is "$code $(seen cookie)" '200 '
	# Where nothing can be redirected, the token is removed.
	at "/echo?atoll_preview_token=$token&c=3" -d x
	is "$code $(get .path)" '200 /echo?c=3' "$body"
	# In a frame of another site a browser takes no other cookie.
	at "/?atoll_preview_token=$token" -H 'Sec-Fetch-Dest: iframe' -H 'Sec-Fetch-Site: cross-site'
	is "$(heads set-cookie)" "atoll_preview=$token; Path=/; HttpOnly; SameSite=None; Secure; Partitioned"
	at "/?atoll_preview_token=$token" -H 'X-Forwarded-Proto: https'
	is "$(heads set-cookie)" "atoll_preview=$token; Path=/; HttpOnly; SameSite=Lax; Secure"
}

a_link_with_a_token_does_not_lead_to_another_host() {
	opened 8000
	for path in //elsewhere.test/x '/\elsewhere.test/x'; do
		at "$path?atoll_preview_token=$token"
		case "$code $(heads location)" in
		"303 /./"* | 400*) ;;
		*) fail "$path: $code $(heads location)" ;;
		esac
	done
}

the_cookie_does_not_authorize_pages_of_other_origins() {
	opened 8000
	cookie="Cookie: atoll_preview=$token"
	for site in cross-site same-site; do
		at /echo -H "$cookie" -H "Sec-Fetch-Site: $site" -H 'Sec-Fetch-Mode: cors'
		is "$code $(get .error.code)" '403 preview_other_page' "$site"
		at /echo -H "$cookie" -H "Sec-Fetch-Site: $site" -H 'Sec-Fetch-Mode: navigate' -d x
		is "$code" 403
		at /echo -H "$cookie" -H "Sec-Fetch-Site: $site" -H 'Sec-Fetch-Mode: navigate'
		is "$code" 200
	done
	at /echo -H "$cookie" -H 'Sec-Fetch-Site: same-origin' -d x
	is "$code" 200
	at /echo -H "$cookie" -H 'Origin: http://8000-other.localhost' -d x
	is "$code" 403
	at /echo -H "$cookie" -H "Origin: http://8000-$box.localhost:${url##*:}" -d x
	is "$code" 200
}

a_closed_port_forgets_its_token() {
	opened 8000
	old=$token
	api DELETE "/v1/boxes/$box/ports/8000"
	at /echo -H "X-Atoll-Preview-Token: $old"
	is "$code $(get .error.code)" '404 preview_closed'
	opened 8000
	[ "$token" != "$old" ] || fail "the same token"
	at /echo -H "X-Atoll-Preview-Token: $old"
	is "$code" 401
	# The token of one port opens no other.
	opened 8001
	at /echo -H "X-Atoll-Preview-Token: $token"
	is "$code" 401
	opened 8000 '{"public":true}'
	at /echo
	is "$code $token" '200 null'
}

viewers_see_no_token() {
	opened 8000
	key=$viewer
	api GET "/v1/boxes/$box/ports/8000"
	is "$code $(get '"\(.open) \(.token) \(.link)"')" '200 true null null'
	api GET "/v1/boxes/$box/ports"
	lacks "$body" "$token"
	api PUT "/v1/boxes/$box/ports/8000"
	is "$code" 403
}

the_name_of_a_box_leads_to_its_id() {
	opened 8000
	host=8000-demo at /echo
	is_json "$(cat body)" '{"sandboxId":"demo","message":"The sandbox was not found","code":502}'
	host=8000-none at /echo # no different from a private one
	is_json "$(cat body)" '{"sandboxId":"none","message":"The sandbox was not found","code":502}'
	host=8000-demo at "/echo?x=1&atoll_preview_token=$token"
	is "$code $(heads location)" "307 http://8000-$box.localhost:${url##*:}/echo?x=1&atoll_preview_token=$token"
	host=8000-DEMO at /echo -H "X-Atoll-Preview-Token: $token"
	is "$code $(get .path)" '200 /echo'
	opened 8000 '{"public":true}'
	host=8000-demo at //elsewhere.test/
	is "$code $(heads location)" "307 http://8000-$box.localhost:${url##*:}//elsewhere.test/"
}

browsers_get_pages_and_programs_get_json() {
	opened 8000
	at / -H "$html"
	is "$code $(heads content-type)" '401 text/html; charset=utf-8'
	has "$body" 'This preview is private'
	has "$body" 'atoll open BOX 8000'
	lacks "$body" '<script'
	lacks "$body" http:
	opened 8006
	port=8006 at / -H "X-Atoll-Preview-Token: $token" -H "$html"
	is "$code" 502
	has "$body" 'No program listens on port 8006'
	has "$body" '8000 (python3), 8001 (python3), 8030 (python3)'
	port=8006 at / -H "X-Atoll-Preview-Token: $token"
	is "$(get .error.code)" port_closed
	has "$(get .error.why)" '8000 (python3)'
	# Clients of a public port do not learn about the others.
	opened 8006 '{"public":true}'
	port=8006 at /
	lacks "$body" 8001
	host=8000-aaaaaaaaaaaa at / -H "$html"
	is "$code $(heads content-type)" '502 text/html; charset=utf-8'
	has "$body" 'The sandbox was not found'
	has "$body" 'atoll ls'
	host=0-$box at / -H "$html"
	is "$code" 502
	host=65536-$box at / -H "$html"
	is "$code" 502
	opened 8000
	api POST "/v1/boxes/$box/pause"
	at / -H "X-Atoll-Preview-Token: $token" -H "$html"
	is "$code" 409
	has "$body" 'The box is paused'
	has "$body" 'atoll resume demo'
	at / -H "X-Atoll-Preview-Token: $token"
	is "$(get .error.code)" paused
	at /
	is "$code" 401 "without the token the state is not shown"
	api GET "/v1/boxes/$box/ports"
	is "$code $(get '.items[0] | "\(.port) \(.listening)"')" '200 8000 null'
	api POST "/v1/boxes/$box/resume"
	at /left -H "X-Atoll-Preview-Token: $token"
	is "$code" 200 "$body"
}

ports_are_listed_with_their_programs() {
	api GET "/v1/boxes/$box/ports"
	is "$(jq -c '[.items[] | select(.port == 8000 or .port == 8001) | [.port, .listening, .address, .process]]' body)" \
		'[[8000,true,"127.0.0.1","python3"],[8001,true,"::1","python3"]]' "$body"
	pid=$(get '.items[] | select(.port == 8000).pid')
	api POST "/v1/boxes/$box/execs" "{\"command\":\"tr '\\\\0' ' ' </proc/$pid/cmdline\"}"
	is "$(get .stdout)" 'python3 s.py '
	api GET "/v1/boxes/$box/ports/8000"
	is "$(get '"\(.port) \(.listening) \(.process)"')" '8000 true python3'
}

a_request_waits_until_a_program_listens() {
	for wrong in x -1 11m '10 s s'; do
		api GET "/v1/boxes/$box/ports/8010?wait=$(printf %s "$wrong" | sed 's/ /%20/g')"
		is "$code" 400 "$wrong: $body"
	done
	api GET "/v1/boxes/$box/ports/8010?wait=150ms"
	is "$code $(get .error.code)" '504 port_closed'
	has "$(get .error.message)" 'no program listened on port 8010 within 150 ms'
	opened 8000 '{"public":true}'
	at '/open?port=8010&after=0.4'
	is "$code" 200
	api GET "/v1/boxes/$box/ports/8010?wait=60s"
	is "$code $(get '"\(.listening) \(.address)"')" '200 true 127.0.0.1'
}

ports_that_open_and_close_are_events() {
	curl -sSN -H "X-API-Key: $key" "$url/v1/boxes/$box/events?follow=true" >events 2>/dev/null &
	follower=$!
	follows() { grep -q following events; }
	soon follows
	api POST "/v1/boxes/$box/execs" '{"command":["python3","-m","http.server","8020","--bind","127.0.0.1"],"background":true}'
	exec=$(get .id)
	event() { jq -e --arg t "$1" 'select(.type == $t and .data.port == 8020)' events; }
	soon event port.opened
	api POST "/v1/boxes/$box/execs/$exec/signal" '{"signal":"KILL"}'
	soon event port.closed
	kill "$follower"
	wait "$follower" 2>/dev/null || :
	is "$(jq -c 'select(.type == "port.opened" and .data.port == 8020).data.address' events)" '"127.0.0.1"'
}

a_box_that_opens_many_ports_causes_few_events() {
	api GET "/v1/boxes/$box/ports"
	api POST "/v1/boxes/$box/execs" '{"command":["python3","-c","import socket,time\ns=[socket.create_server((\"127.0.0.1\",20000+i)) for i in range(300)]\nopen(\"opened\",\"w\")\ntime.sleep(1000)"],"background":true}'
	exec=$(get .id)
	all_open() { api GET "/v1/boxes/$box/files?path=opened" && [ "$code" = 200 ]; }
	soon all_open
	api GET "/v1/boxes/$box/ports"
	api POST "/v1/boxes/$box/execs/$exec/signal" '{"signal":"KILL"}'
	none() { api GET "/v1/boxes/$box/ports" && [ "$(get '[.items[] | select(.port >= 20000)] | length')" = 0 ]; }
	soon none
	few() { api GET "/v1/boxes/$box/events?limit=1000&order=newest" && [ "$(get '[.items[] | select(.type == "port.opened" and .data.port >= 20000)] | length')" = 32 ]; }
	soon few
}

forward_carries_many_connections() {
	"$ATOLL" forward demo 0:8000 >address 2>forward.err &
	forwarder=$!
	has_address() { [ -s address ]; }
	soon has_address
	to=http://$(cat address)
	is "$(curl -sS --max-time 120 "$to/chunks")" abcdefg
	head -c 3000000 /dev/urandom >sent
	is "$(curl -sS --max-time 120 --data-binary @sent "$to/echo" | jq -r .sha256)" "$(sha256sum <sent | cut -d ' ' -f 1)"
	is "$(curl -sS --max-time 120 "$to/big?n=50000000" | wc -c)" 50000000
	is "$(python3 - "${to##*:}" <<-'END'
		import socket, sys
		all = [socket.create_connection(("127.0.0.1", int(sys.argv[1])), 120) for _ in range(40)]
		for s in all:
		    s.sendall(b"GET /events?n=3 HTTP/1.1\r\nHost: x\r\n\r\n")
		n = 0
		for s in all:
		    got = b""
		    while more := s.recv(65536):
		        got += more
		    n += got.endswith(b"data: 2\n\n")
		print(n)
	END
	)" 40
	kill "$forwarder"
	wait "$forwarder" 2>/dev/null || :
	: >address
	ATOLL_KEY=$key "$ATOLL" -H "$url" forward demo 0:7 >address 2>forward.err &
	forwarder=$!
	soon has_address
	is "$(curl -sS --max-time 120 "http://$(cat address)/" 2>/dev/null)" ''
	soon grep -q "where no program listens yet" forward.err
	soon grep -q "port 7 of demo: the daemon answered 'HTTP/1.1 502" forward.err
	kill "$forwarder"
	wait "$forwarder" 2>/dev/null || :
	for wrong in 0 x:1 1:x 1:0 1:65536 70000:1; do
		! "$ATOLL" forward demo "$wrong" >/dev/null 2>err || fail "$wrong"
		has "$(cat err)" 'is not a port' "$wrong"
	done
	api GET "/v1/boxes/$box/ports/8000/connect"
	is "$code $(get .error.code)" '426 upgrade_needed'
}

# A TLS server in front of the daemon, with a certificate that has the name localhost.
forward_works_over_tls() {
	"$ATOLL" cert fwd.localhost --dir tls >/dev/null 2>err || fail "$(cat err)"
	cat >tls.py <<-'END'
		import socket, ssl, sys, threading
		context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
		context.load_cert_chain("tls/cert.pem", "tls/key.pem")
		listener = socket.create_server(("127.0.0.1", 0))
		print(listener.getsockname()[1], flush=True)
		def serve(s):
		    inner = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
		    # One thread for both directions: an SSL socket is not for two.
		    import select
		    while True:
		        if not s.pending():
		            ready, _, _ = select.select([s, inner], [], [])
		        else:
		            ready = [s]
		        for x in ready:
		            bytes = x.recv(16384)
		            if not bytes:
		                s.close(), inner.close()
		                return
		            (inner if x is s else s).sendall(bytes)
		while True:
		    c, _ = listener.accept()
		    threading.Thread(target=serve, args=(context.wrap_socket(c, server_side=True),), daemon=True).start()
	END
	python3 tls.py "${url##*:}" >tls.port 2>/dev/null &
	relay=$!
	has_port() { [ -s tls.port ]; }
	soon has_port
	SSL_CERT_FILE=tls/ca.pem ATOLL_KEY=$key "$ATOLL" -H "https://localhost:$(cat tls.port)" forward demo 0:8000 >address 2>forward.err &
	forwarder=$!
	has_address() { [ -s address ] || ! kill -0 "$forwarder" 2>/dev/null; }
	soon has_address
	is "$(curl -sS --max-time 120 "http://$(cat address)/big?n=5000000" | wc -c)" 5000000 "$(cat forward.err)"
	is "$(curl -sS --max-time 120 "http://$(cat address)/chunks")" abcdefg
	kill "$forwarder" "$relay"
	wait "$forwarder" "$relay" 2>/dev/null || :
}

a_connection_to_the_box_is_used_again() {
	opened 8030 '{"public":true}'
	port=8030
	at /a
	is "$code" 200 "$body"
	first=${body% *}
	at /b
	is "$body" "$first 2" "the same connection"
	# A request that must not be sent twice gets its own one.
	at /c -d x
	[ "${body% *}" != "$first" ] || fail "a POST on the old connection"
	# A server that closes such a connection in place of an answer: the request is sent again.
	for i in 1 2 3; do
		at /drop
		is "$code ${body#* }" '200 1' "$i"
	done
	api POST "/v1/boxes/$box/pause"
	api POST "/v1/boxes/$box/resume"
	at /d
	is "${body#* }" 1 "a pause ends connections that wait"
}

servers_that_misbehave_are_reported() {
	opened 8000 '{"public":true}'
	at /interim
	is "$code $(get .error.code)" '502 no_answer'
	has "$(get .error.why)" 'interim answers without end'
	at '/says?text=garbage%0D%0A' -H "$html"
	is "$code" 502
	has "$body" 'gave no answer'
	at '/says?text='
	is "$code $(get .error.code)" '502 no_answer'
	# A WebSocket that the server refuses is an ordinary answer.
	is "$(py "
s = ask('/says?text=HTTP/1.1%20403%20No%0D%0AContent-Length:%202%0D%0A%0D%0Ano', headers=['Upgrade: websocket', 'Connection: Upgrade',
    'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: ' + base64.b64encode(os.urandom(16)).decode()])
got = until(s, b'\r\n\r\nno')
print(got.split()[1], b'upgrade' in got.lower())
")" "b'403' False"
}

gigabytes_and_clients_that_never_read_cost_no_memory() {
	opened 8000 '{"public":true}'
	pid=$(server_pid)
	before=$(awk '/VmRSS/ {print $2}' "/proc/$pid/status")
	is "$(curl -sS --max-time 300 -H "Host: 8000-$box.localhost" "$url/big?n=2500000000" | wc -c)" 2500000000
	is "$(py "
all = [ask('/big?n=10000000000') for _ in range(20)]
for s in all: assert s.recv(1000)
print(b'200 OK' in until(ask('/chunks'), b'abc'))
")" True
	after=$(awk '/VmRSS/ {print $2}' "/proc/$pid/status")
	grep -q __asan_init "$ATOLL" || [ $((after - before)) -lt 40000 ] || fail "the server grew by $((after - before)) KiB"
}

a_preview_of_an_e2b_sandbox_with_a_traffic_token_is_opened_by_its_own() {
	api POST /v2/sandboxes '{"templateID":"base","timeout":120,"secure":true,"network":{"allowPublicTraffic":false}}'
	is "$code" 201 "$body"
	box=$(get .sandboxID) traffic=$(get .trafficAccessToken)
	curl -sS -o body -T "$here/proxied.py" -H "X-API-Key: $key" "$url/v1/boxes/$box/files?path=s.py"
	api POST "/v1/boxes/$box/execs" '{"command":["python3","s.py"],"background":true}'
	listens
	at /left
	is "$code $(get .message)" '403 This sandbox needs a traffic access token'
	at /left -H "E2b-Traffic-Access-Token: $traffic"
	is "$code" 200
	opened 8000
	at /left
	is "$code" 401
	at /echo -H "X-Atoll-Preview-Token: $token"
	is "$code" 200 "$body"
	lacks "$body" "$token"
	at /left -H "E2b-Traffic-Access-Token: $traffic"
	is "$code" 200
	api DELETE "/v1/boxes/$box"
}

the_exit_of_a_server_is_reported_with_its_output() {
	api POST /api/sandbox '{"template":"gradio-developer","file_path":"app.py","port":8501,"code":"import os,http.server,threading,sys\nclass H(http.server.BaseHTTPRequestHandler):\n  def do_GET(self):\n    if self.path == \"/\": return self.send_error(404)\n    print(\"last <words>\", flush=True)\n    os._exit(7)\nhttp.server.HTTPServer((\"127.0.0.1\",int(os.environ[\"PORT\"])),H).serve_forever()"}'
	is "$code" 200 "$body"
	link=$(get .url)
	box=$(get .sbxId) port=8501 token=${link##*=}
	at /exit -H "X-Atoll-Preview-Token: $token"
	is "$code $(get .error.code)" '502 no_answer'
	exited() { at / -H "X-Atoll-Preview-Token: $token" && [ "$(get .error.code)" = server_exited ]; }
	soon exited
	has "$(get .error.why)" 7
	has "$(get .error.output)" 'last <words>'
	at / -H "X-Atoll-Preview-Token: $token" -H "$html"
	has "$body" 'The server of port 8501 has exited'
	has "$body" 'last &#60;words&#62;'
}

need_daemon --domain localhost
cd "$work" && serve_box && cd "$OLDPWD" || exit 1
curl -sS -H "X-API-Key: $key" "$url/openapi.json" >"$work/openapi.json"
last_test=answers_match_openapi_json
run_tests
