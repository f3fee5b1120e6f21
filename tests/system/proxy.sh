#!/bin/sh
# proxy.sh - ports of a box, reached from outside: HTTP, streams, WebSockets, and misbehaving servers.
. "$(dirname "$0")/daemon.lib"

py() { python3 "$here/proxy.py" "$url" "$box" "$1"; }
# at PATH [CURL OPTION...]: port 8000 of the box; sets code, body.
at() {
	path=$1
	shift
	: >body
	code=$(curl -sS -g --max-time 120 -o body -D head -w '%{http_code}' -H "Host: ${port:-8000}-$box.localhost" \
		"$@" "$url$path" 2>curl.err) || code=cut
	body=$(tr '\0' '?' <body 2>/dev/null)
}
served() { at /left && [ "$code" = 200 ]; }
# One box for all tests: its server answers many paths.
serve_box() {
	api POST /v1/boxes '{}'
	box=$(get .id)
	curl -sS -o body -T "$here/proxied.py" -H "X-API-Key: $key" "$url/v1/boxes/$box/files?path=s.py"
	api POST "/v1/boxes/$box/execs" '{"command":["python3","s.py"],"background":true}'
	for port in 8000 8001 8005 9; do
		api PUT "/v1/boxes/$box/ports/$port" '{"public":true}'
		is "$code" 200 "$body"
	done
	port=8000
	soon served
}
header() { jq -r --arg n "$1" '[.headers[] | select(.[0] == $n) | .[1]] | join("|")' <body; }

a_server_on_loopback_is_reached_by_host_name_and_by_headers() {
	at /echo?a=b%20c
	is "$code" 200 "$body"
	is "$(get .path)" '/echo?a=b%20c'
	is "$(header host)" "8000-$box.localhost"
	curl -sS -o body -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 8000' "$url/echo"
	is "$(get .path)" /echo
	is "$(header e2b-sandbox-id)" ''
	port=8001 at /echo
	is "$(get .path)" /echo
}

a_port_is_closed_until_it_is_opened() {
	api GET "/v1/boxes/$box/ports/8002"
	is "$(jq -c '[.port, .open, .public, .listening, .url, .link]' body)" \
		"[8002,false,false,false,\"http://8002-$box.localhost:${url##*:}\",\"http://8002-$box.localhost:${url##*:}\"]"
	port=8002 at /left
	is "$code $(get .error.code)" '404 preview_closed'
	api PUT "/v1/boxes/$box/ports/8002" '{"public":true}'
	is "$code $(get '"\(.open) \(.public)"')" '200 true true'
	port=8002 at /left
	is "$code $(get .error.code)" '502 port_closed'
	has "$(get .error.why)" 'listen on: 8000'
	api GET "/v1/boxes/$box/ports"
	has "$(get '[.items[].port] | tostring')" 8002
	api DELETE "/v1/boxes/$box/ports/8002"
	is "$code" 204
	port=8002 at /left
	is "$code $(get .error.code)" '404 preview_closed'
	for wrong in 0 65536 -1 x 8000x; do
		api PUT "/v1/boxes/$box/ports/$wrong"
		is "$code" 400 "$wrong"
	done
	api PUT "/v1/boxes/$box/ports/49983" '{"public":true}' # envd is not a port of programs
	port=49983 at /health
	is "$code" 502
	curl -sS -o body --unix-socket "$sock" "http://localhost/v1/boxes/$box/ports/3000"
	is "$(get .url)" "http://3000-$box.localhost:${url##*:}"
}

the_host_header_can_be_masked() {
	api POST /v2/sandboxes '{"templateID":"base","timeout":60,"network":{"maskRequestHost":"localhost:${PORT}"}}'
	is "$code" 201 "$body"
	box=$(get .sandboxID)
	curl -sS -o body -T "$here/proxied.py" -H "X-API-Key: $key" "$url/v1/boxes/$box/files?path=s.py"
	api POST "/v1/boxes/$box/execs" '{"command":["python3","s.py"],"background":true}'
	soon served
	at /echo
	is "$(header host) $(header x-forwarded-host)" "localhost:8000 8000-$box.localhost"
	api DELETE "/v1/boxes/$box"
}

keys_and_tokens_are_not_forwarded_to_the_box() {
	at /echo -H "X-API-Key: $key" -H "Authorization: Bearer $key" -H 'E2b-Traffic-Access-Token: t' \
		-H 'X-Access-Token: 0123456789012345678901234567890123456789' -H 'X-Kept: yes'
	is "$code" 200
	lacks "$body" "$key"
	lacks "$body" 'access-token'
	is "$(header x-kept)" yes
	at /echo -H 'X-API-Key: of-the-program' -H 'Authorization: Basic eDp5' -H 'X-Access-Token: short'
	is "$(header x-api-key) $(header authorization) $(header x-access-token)" 'of-the-program Basic eDp5 '
}

a_box_cannot_set_cookies_or_clear_data_of_other_boxes() {
	at /manners
	is "$code" 200
	is "$(grep -i '^set-cookie' head | tr -d '\r' | cut -d ' ' -f 2- | paste -sd '|')" \
		'a=1; Path=/; HttpOnly|b=domain=x; Secure|c=1;  Max-Age=5|d=1|e; path=/'
	is "$(grep -ci '^clear-site-data' head)" 0
	is "$(grep -ci '^x-kept' head)" 1
}

a_port_is_reached_only_by_its_exact_host_name() {
	for host in "08000-$box" "8000-$box-$box" "8000-${box}x" "8000-x$box" "8000-$box-" "008000-$box" "99999-$box" "0-$box" "8000-" \
		"8000--$box"; do
		code=$(curl -sS -o body -w '%{http_code}' -H "Host: $host.localhost" "$url/left")
		is "$code $(get .message)" '502 The sandbox was not found' "$host"
	done
	# The form of old clients, with the clientID of the answer.
	is "$(curl -sS -o body -w '%{http_code}' -H "Host: 8000-$box-atoll.localhost" "$url/left")" 200
}

hop_by_hop_headers_are_removed_and_forwarded_headers_are_set() {
	at /echo -H 'Connection: x-hop' -H 'X-Hop: 1' -H 'TE: trailers' -H 'X-Forwarded-For: 9.9.9.9'
	is "$(header x-hop)$(header te)" ''
	is "$(header connection)" ''
	is "$(header x-forwarded-for)" '9.9.9.9, 127.0.0.1'
	is "$(header x-forwarded-proto)" http
	is "$(grep -ci '^set-cookie' head)" 2
	is "$(grep -ci '^keep-alive' head)" 0
	is "$(grep -ci '^x-request-id' head)" 0
}

a_connection_serves_many_requests() {
	is "$(curl -sS --max-time 120 -o /dev/null -w '%{http_code} %{num_connects},' -H "Host: 8000-$box.localhost" \
		"$url/chunks" -o /dev/null "$url/early" -o /dev/null "$url/none?status=204" -o /dev/null "$url/echo")" \
		'200 1,200 0,204 0,200 0,'
}

answers_without_a_body_are_forwarded() {
	at '/none?status=204'
	is "$code$body" 204
	at '/none?status=304'
	is "$code$body" 304
	at '/says?text=HTTP/1.1%20200%20OK%0D%0AContent-Length:%205%0D%0A%0D%0A' -I
	is "$code $(grep -ci '^content-length: 5' head)" '200 1'
	at /chunks
	is "$body" abcdefg
	at /early
	is "$code $body" '200 at last'
}

uploads_and_downloads_are_complete_and_memory_is_bounded() {
	pid=$(server_pid)
	echo 5 >"/proc/$pid/clear_refs" 2>/dev/null || :
	before=$(awk '/VmHWM/ {print $2}' "/proc/$pid/status")
	head -c 400000000 /dev/zero | curl -sS --max-time 120 -o body -T - -H "Host: 8000-$box.localhost" "$url/echo"
	is "$(get '.n, .method' | paste -sd ' ')" '400000000 PUT'
	head -c 3000000 /dev/urandom >sent
	at /echo --data-binary @sent -H 'Expect: 100-continue'
	is "$(get .sha256)" "$(sha256sum <sent | cut -d ' ' -f 1)"
	is "$(curl -sS --max-time 120 -H "Host: 8000-$box.localhost" "$url/big?n=200000000" | wc -c)" 200000000
	after=$(awk '/VmHWM/ {print $2}' "/proc/$pid/status")
	# A sanitized build retains freed memory.
	grep -q __asan_init "$ATOLL" || [ $((after - before)) -lt 40000 ] || fail "the server grew by $((after - before)) KiB"
}

events_are_forwarded_at_once_and_a_disconnect_reaches_the_server() {
	at /left
	is "$(py "
s = ask('/events')
print(until(s, b'data: 0') is not None)
s.close()
q = ask('/quiet')
while True:
    if until(ask('/begun', headers=['Connection: close']), b'begun: 1'): break
q.close()
")" True
	before=$body
	two_left() { at /left && [ "$body" -ge $((before + 2)) ]; }
	soon two_left
}

a_websocket_is_forwarded() {
	is "$(py "
s = websocket()
head, _, got = until(s, b'hello').partition(b'\r\n\r\n')
print(head.split()[1], got)
s.sendall(frame(1, b'x' * 1000))
print(until(s, b'x' * 1000)[:4])
s.sendall(frame(8, b''))
print(rest(s))
")" "b'101' b'\\x81\\x05hello'
b'\\x81~\\x03\\xe8'
(b'\\x88\\x00', 'end')"
}

a_closed_port_is_a_502_as_json_and_as_html() {
	port=9 at /
	is "$code $(get .error.code)" '502 port_closed'
	port=9 at / -H 'Accept: text/html,*/*'
	is "$code" 502
	has "$(cat head)" 'text/html'
	has "$body" 'No program listens on port 9'
	lacks "$body" '<script'
	curl -sS -o body -A 'Mozilla/5.0' -H 'E2b-Sandbox-Id: <b>&' -H 'E2b-Sandbox-Port: 80' "$url/"
	lacks "$(cat body)" '<b>'
	port=8000
	was=$box box=aaaaaaaaaaaa
	at /
	box=$was
	is "$code $(get .message)" '502 The sandbox was not found'
}

a_server_that_is_just_starting_is_waited_for() {
	at '/open?port=8005&after=0.3'
	is "$body" soon
	port=8005 at /chunks
	is "$code $body" '200 abcdefg'
}

an_invalid_answer_of_the_server_is_a_502() {
	for text in 'SSH-2.0-x%0D%0A' '' 'HTTP/1.1%20200%20OK%0D%0AContent-Length:%201%0D%0AContent-Length:%202%0D%0A%0D%0Ax' \
		'HTTP/1.1%20200%20OK%0D%0ATransfer-Encoding:%20gzip%0D%0A%0D%0Ax' 'HTTP/1.1%20101%20X%0D%0A%0D%0A'; do
		at "/says?text=$text"
		is "$code" 502 "$text"
		is "$(get .error.code)" no_answer
	done
}

an_incomplete_answer_is_cut_for_the_client() {
	for text in 'Content-Length:%2010%0D%0A%0D%0Ahello' 'Transfer-Encoding:%20chunked%0D%0A%0D%0A5%0D%0Ahello%0D%0A'; do
		at "/says?text=HTTP/1.1%20200%20OK%0D%0A$text"
		is "$code" cut
	done
}

a_thousand_streams_are_open_at_once() {
	is "$(py "
all = [ask('/events') for _ in range(1000)]
print(sum(until(s, b'data: 0') is not None for s in all))
print(b'200 OK' in until(ask('/chunks'), b'abc'))
")" "1000
True"
}

the_end_of_a_box_cuts_its_proxied_connections() {
	serve_box
	is "$(py "
import subprocess
s, w, q = ask('/events'), websocket(), ask('/quiet')
until(s, b'data: 0'), until(w, b'hello')
subprocess.run(['curl', '-sS', '-o', 'x', '-X', 'DELETE', '-H', 'X-API-Key: $key', '$url/v1/boxes/$box'], check=True)
got, how = rest(s)
print(b'0\r\n\r\n' in got, how)
print(rest(w))
print(until(q, b'not found').split()[1:2])
")" "False end
(b'', 'end')
[b'502']"
	at /left
	is "$code $(get .message)" '502 The sandbox was not found'
}

need_daemon --domain localhost
cd "$work" && serve_box && cd "$OLDPWD" || exit 1
run_tests
