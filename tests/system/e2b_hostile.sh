#!/bin/sh
# e2b_hostile.sh - E2B requests with the token of another sandbox, too many requests, and killed clients.
. "$(dirname "$0")/daemon.lib"

py() { python3 "$here/process.py" "$@" || fail "$1"; }
# sandbox [FIELDS]: creates a sandbox; sets box, token.
sandbox() {
	api POST /v2/sandboxes "{\"templateID\":\"base\",\"timeout\":300${1:+,$1}}"
	is "$code" 201 "$body"
	box=$(get .sandboxID) token=$(get .envdAccessToken) traffic=$(get .trafficAccessToken)
	export box token
}
# envd PATH [CURL OPTION...]: with no other headers than those given.
envd() {
	p=$1
	shift
	code=$(curl -sS -g --max-time 120 -o body -D head -w '%{http_code}' "$@" "$url$p" 2>curl.err) || :
	body=$(cat body 2>/dev/null)
}
rpc() { envd "/filesystem.Filesystem/$1" -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 49983' -H "X-Access-Token: $token" -H 'Content-Type: application/json' -d "$2"; }
state() { api GET "/sandboxes/$box"; get .state; }
sign() { # PATH [EXPIRATION]: for reading
	printf '%s:read::%s%s' "$1" "$token" "${2:+:$2}" | openssl dgst -sha256 -binary | base64 -w0 |
		sed 's/=*$//; s/+/%2B/g; s,/,%2F,g; s/^/v1_/'
}

a_sandbox_that_ends_before_the_body_has_arrived_is_not_found() {
	sandbox
	python3 - "$url" "$key" "$box" "$token" <<-'EOF' || fail "see above"
		import socket, sys, urllib.parse, urllib.request
		url, key, box, token = sys.argv[1:]
		at, body = urllib.parse.urlsplit(url), b'{"path":"/home/user"}'
		s = socket.create_connection((at.hostname, at.port))
		s.settimeout(10)
		s.sendall(f"POST /filesystem.Filesystem/Stat HTTP/1.1\r\nHost: localhost\r\nE2b-Sandbox-Id: {box}\r\n"
		          f"E2b-Sandbox-Port: 49983\r\nX-Access-Token: {token}\r\nContent-Type: application/json\r\n"
		          f"Content-Length: {len(body)}\r\n\r\n".encode() + body[:5])
		def ask(method, path):
		    r = urllib.request.Request(url + path, method=method, headers={"X-API-Key": key})
		    return urllib.request.urlopen(r, timeout=120).status
		ask("DELETE", f"/sandboxes/{box}")
		while ask("GET", "/v1/boxes") and box in urllib.request.urlopen(urllib.request.Request(
		        url + "/v1/boxes", headers={"X-API-Key": key})).read().decode():
		    pass
		s.sendall(body[5:])
		got = s.recv(4000)
		assert got.startswith(b"HTTP/1.1 404"), got
	EOF
}

sandbox_headers_override_the_host_name_and_need_both_values() {
	sandbox; one=$box one_token=$token
	sandbox
	# The host name is that of the second sandbox; the headers name the first, whose token is required.
	set -- -H "Host: 49983-$box.localhost" -H "E2b-Sandbox-Id: $one" -H 'E2b-Sandbox-Port: 49983'
	envd /files?path=/etc/hostname "$@" -H "X-Access-Token: $one_token"
	is "$code" 200 "$body"
	envd /files?path=/etc/hostname "$@" -H "X-Access-Token: $token"
	is "$code" 401 "$body"
	envd /files?path=/etc/hostname -H "Host: 49983-$box.localhost" -H "X-Access-Token: $token"
	is "$code" 200 "$body"
	envd /health -H "E2b-Sandbox-Id: $box"
	is "$code" 400 "$body"
	envd /health -H 'E2b-Sandbox-Port: 49983'
	is "$code" 400 "$body"
	for port in 0 65536 x -1 '49983 ' 99999999999; do
		envd /health -H "E2b-Sandbox-Id: $box" -H "E2b-Sandbox-Port: $port"
		case $code in 400 | 204) ;; *) fail "port '$port': $code $body" ;; esac
	done
	envd /health -H "E2b-Sandbox-Id: aaaaaaaaaaaa" -H 'E2b-Sandbox-Port: 49983'
	is "$code $(jq -r .message body)" '502 The sandbox was not found'
}

a_token_is_accepted_only_for_its_sandbox() {
	sandbox '"network":{"allowPublicTraffic":false}'; one_token=$token one_traffic=$traffic
	sandbox '"network":{"allowPublicTraffic":false}'
	set -- -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 49983' -H "X-Access-Token: $one_token"
	for path in '/files?path=/etc/hostname' /metrics /envs; do
		envd "$path" "$@"
		is "$code $(jq -r .code body)" '401 401' "$path"
	done
	for what in filesystem.Filesystem/Stat filesystem.Filesystem/Remove process.Process/List; do
		envd "/$what" "$@" -H 'Content-Type: application/json' -d '{"path":"/home/user"}'
		is "$code $(jq -r .code body)" '401 401' "$what"
	done
	envd /files "$@" -F file=x
	is "$code" 401
	envd / -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 8000' -H "E2B-Traffic-Access-Token: $one_traffic"
	is "$code $(jq -r .code body)" '403 403'
	envd / -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 8000' -H "E2B-Traffic-Access-Token: $traffic"
	is "$code $(jq -r .message body)" '502 The sandbox is running but port is not open'
}

a_sandbox_id_without_token_is_rejected_by_envd_and_interpreter() {
	for way in /sandboxes /v2/sandboxes; do
		api POST $way '{"templateID":"base","timeout":300,"secure":false}'
		is "$code" 201 "$body"
		box=$(get .sandboxID) token=$(get .envdAccessToken) traffic=$(get .trafficAccessToken)
		envd '/files?path=/root/p&username=root' -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 49983' --data-binary x
		is "$code" 401 "$way $body"
		for with in -HX: -HX-Access-Token: "-HX-Access-Token: $(echo "$token" | tr 0-9a-f a-f0-9)"; do
			envd /execute -H "Host: 49999-$box.localhost" "$with" -H 'Content-Type: application/json' -d '{"code":"1"}'
			is "$code" 401 "$way $with $body"
		done
		envd /contexts -H "Host: 49999-$box.localhost"
		is "$code" 401 "$way $body"
		envd /health -H "Host: 49999-$box.localhost"
		is "$code" 200 "$way $body"
		envd /execute -H "Host: 49999-$box.localhost" -H "X-Access-Token: $token" -H 'Content-Type: application/json' -d '{"code":"1+1"}'
		is "$code" 200 "$way $body"
		envd /contexts -H "Host: 49999-$box.localhost" -H "E2B-Traffic-Access-Token: $traffic"
		is "$code" 200 "$way $body"
		# The traffic token of a public sandbox is for the interpreter only.
		envd / -H "Host: 8000-$box.localhost"
		is "$code $(jq -r .message body)" '502 The sandbox is running but port is not open'
	done
}

unknown_enum_values_are_rejected() {
	sandbox
	py enums
	api GET '/v2/sandboxes?state=dreaming'
	is "$code $(get .code)" '400 400'
	api GET '/v2/sandboxes?order=sideways'
	is "$code $(get .code)" '400 400'
}

an_empty_answer_has_no_chunked_body() {
	sandbox
	api POST "/sandboxes/$box/timeout" '{"timeout":100}'
	is "$code" 204
	! grep -qi transfer-encoding head
	envd /contexts -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 49999' -H "X-Access-Token: $token" -H 'Content-Type: application/json' -d '{}'
	is "$code" 200 "$body"
	context=$(jq -r .id body)
	envd "/contexts/$context" -X DELETE -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 49999' -H "X-Access-Token: $token"
	is "$code" 200 "$body"
	! grep -qi transfer-encoding head
	grep -qi '^content-length: ' head
}

a_watcher_reports_the_removal_of_its_folder_and_ends() {
	sandbox
	rpc MakeDir '{"path":"w"}'
	rpc CreateWatcher '{"path":"w"}'
	is "$code" 200 "$body"
	watcher=$(jq -r .watcherId body)
	rpc Remove '{"path":"w"}'
	is "$code" 200 "$body"
	rpc GetWatcherEvents "{\"watcherId\":\"$watcher\"}"
	is "$code $(jq -r '[.events[].type] | unique | join(" ")' body)" '200 EVENT_TYPE_REMOVE'
	# The watcher ended with its folder; a new folder of the same name is not watched.
	rpc MakeDir '{"path":"w"}'
	rpc GetWatcherEvents "{\"watcherId\":\"$watcher\"}"
	is "$code $(jq -r .code body)" '404 not_found'
	rpc RemoveWatcher "{\"watcherId\":\"$watcher\"}"
	is "$code $(jq -r .code body)" '404 not_found'
	rpc CreateWatcher '{"path":"w"}'
	is "$code" 200 "$body"
}

killed_readers_release_their_reader_slots() {
	sandbox
	py killed_readers
}

none_named() { api GET "/v2/sandboxes?metadata=case%3D$1" && [ "$code $body" = '200 []' ]; }
a_sandbox_ends_when_its_client_closes_before_the_answer() {
	body="{\"templateID\":\"base\",\"timeout\":300,\"metadata\":{\"case\":\"left\"}}"
	for i in 1 2 3 4 5; do
		# The request and the FIN are in one segment: the FIN arrives before the box exists.
		python3 - "$url" "$key" "$body" <<-'EOF'
			import socket, sys
			host, port = sys.argv[1][7:].split(":")
			s = socket.create_connection((host, int(port)), 5)
			s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
			s.sendall(f"POST /v2/sandboxes HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {sys.argv[2]}\r\nContent-Type: application/json\r\nContent-Length: {len(sys.argv[3])}\r\n\r\n{sys.argv[3]}".encode())
			s.shutdown(socket.SHUT_WR)
			s.settimeout(20)
			try:
			    got = s.recv(100)
			except ConnectionResetError:
			    got = b""
			assert not got, got
		EOF
	done
	soon none_named left
}

a_thousand_streams_at_once_are_all_served() {
	all=
	for i in $(seq 25); do
		sandbox
		all="$all $box:$token"
	done
	ulimit -n 4096 # of the client
	py thousand $all
}

a_signed_url_resumes_a_sandbox_with_auto_resume_and_an_expired_one_does_not() {
	sandbox '"autoPause":true,"autoResume":{"enabled":true}'
	envd '/files?path=f' -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 49983' -H "X-Access-Token: $token" -F file=here
	is "$code" 200 "$body"
	api POST "/sandboxes/$box/pause" '{}'
	is "$code" 204
	past=$(($(date +%s) - 60))
	envd "/files?path=f&signature=$(sign f $past)&signature_expiration=$past"
	case $code in 401 | 404) ;; *) fail "expired: $code $body" ;; esac
	is "$(state)" paused
	envd "/files?path=f&signature=$(sign g)"
	case $code in 401 | 404) ;; *) fail "of another: $code $body" ;; esac
	is "$(state)" paused
	envd "/files?path=f&signature=$(sign f)"
	is "$code $body" '200 here'
	is "$(state)" running
	# A sandbox without auto-resume stays paused.
	sandbox
	api POST "/sandboxes/$box/pause" '{}'
	envd "/files?path=f&signature=$(sign f)"
	case $code in 401 | 404 | 502) ;; *) fail "sleeper: $code $body" ;; esac
	is "$(state)" paused
}

# The last test, because it stops the daemon of the other tests.
old_clients_get_sandboxes_without_tokens_when_configured() {
	kill "$(cat "$work/supervisor")"; supervisor=$(cat "$work/supervisor"); soon daemon_left
	ATOLL_E2B_INSECURE=true start_daemon
	api POST /sandboxes '{"templateID":"base","timeout":300}'
	is "$code $(get 'has("envdAccessToken")')" '201 false' "$body"
	box=$(get .sandboxID)
	envd '/files?path=/etc/hostname' -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 49983'
	is "$code" 200 "$body"
	api POST /v2/sandboxes '{"templateID":"base","timeout":300}'
	is "$(get '.envdAccessToken | length')" 40
	stop_daemon
	start_daemon
	# It was created without a token and stays so: its clients have no token to send.
	envd '/files?path=/etc/hostname' -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 49983'
	is "$code" 200 "$body"
}

run_daemon_tests
