#!/bin/sh
# http_hostile.sh - requests that must be rejected, and clients that use more than their share.
. "$(dirname "$0")/daemon.lib"
export ATOLL_MAX_CONNECTIONS=300 # of which one address has 151

# raw TEXT: sends it unchanged (%s is replaced by the key); sets code: status of the first answer, or "none".
raw() {
	code=$(python3 "$here/http_hostile.py" raw "$url" "$(printf "$1" "$key" | base64 -w0)")
}
py() { python3 "$here/http_hostile.py" "$1" "$url" "$key" || fail "$1"; }
# plain PATH [CURL OPTION...]: without a key.
plain() {
	p=$1
	shift
	code=$(curl -sS -g --max-time 120 -o body -D head -w '%{http_code}' "$@" "$url$p" 2>curl.err) || :
	body=$(cat body 2>/dev/null)
}
lines() { grep -ci "^$1:" head; }

an_invalid_port_in_the_host_header_is_rejected() {
	port=${url##*:}
	for host in "127.0.0.1:$port" localhost "[::1]:$port" "LOCALHOST:1"; do
		raw "GET /healthz HTTP/1.1\r\nHost: $host\r\nConnection: close\r\n\r\n"
		is "$code" 200 "$host"
	done
	for host in "127.0.0.1:$port x" "127.0.0.1:$port/x" "localhost:80@evil" "localhost:$port:1" "localhost:" "localhost:-1" \
		"localhost:123456" "[::1]x" "[::1" "localhost:80 "x; do
		raw "GET /healthz HTTP/1.1\r\nHost: $host\r\nConnection: close\r\n\r\n"
		case $code in 400 | 421) ;; *) fail "$host: $code" ;; esac
	done
}

an_encoded_slash_is_no_separator_and_a_trailing_slash_is_ignored() {
	for path in /v1%2fboxes /v1%2Fboxes%2f /v2%2Fsandboxes; do
		api GET $path
		is "$code" 404 "$path $body"
	done
	api GET /v1/boxes/
	is "$code" 200 "$body"
	api GET /v1/boxes//
	is "$code" 400 "$body"
}

duplicate_headers_bare_lf_and_leading_empty_lines_are_rejected() {
	for h in 'Authorization: Bearer x' 'X-API-Key: %s' 'Origin: http://localhost' 'Content-Type: application/json'; do
		raw "GET /v1/who HTTP/1.1\r\nHost: localhost\r\n$(echo "$h" | sed "s/%s/$key/")\r\n$(echo "$h" | sed "s/%s/$key/")\r\nConnection: close\r\n\r\n"
		is "$code" 400 "$h"
	done
	raw "$(printf '%0*d' 1000 0 | sed 's/0/\\r\\n/g')GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
	is "$code" 400 'empty lines'
	raw 'POST /v1/boxes HTTP/1.1\r\nHost: localhost\r\nX-API-Key: %s\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\n{}\r\n0\r\n\n'
	is "$code" 400 'a bare LF'
}

a_body_of_a_type_that_a_web_page_can_send_is_rejected() {
	set -- -X POST -H "X-API-Key: $key" --data-binary '{"command":"true"}'
	for type in application/json 'Application/JSON; charset=utf-8' application/vnd.x+json application/x-www-form-urlencoded ''; do
		plain /v1/run "$@" -H "Content-Type:${type:+ $type}"
		is "$code" 200 "'$type' $body"
	done
	plain /v1/run "$@" # README's own lines
	is "$code" 200 "$body"
	for type in text/plain 'text/plain; charset=utf-8' 'multipart/form-data; boundary=x' application/octet-stream application/xml application/jsonp; do
		plain /v1/run "$@" -H "Content-Type: $type"
		is "$code $(get .error.code)" '415 media_type' "$type"
		has "$(get .error.why)" "$type"
	done
	for coding in gzip br x 'identity, gzip'; do
		plain /v1/run "$@" -H 'Content-Type: application/json' -H "Content-Encoding: $coding"
		is "$code $(get .error.code)" '415 media_type' "$coding"
	done
	plain /v1/run "$@" -H 'Content-Type: application/json' -H 'Content-Encoding: identity'
	is "$code" 200 "$body"
	# As a page of another site would send it, if it had the key.
	for from in 'Sec-Fetch-Site: cross-site' 'Sec-Fetch-Site: same-site' "Origin: $url"; do
		plain /v1/run "$@" -H "$from"
		is "$code" 415 "$from $body"
	done
	plain /v1/run "$@" -H "Origin: $url" -H 'Content-Type: application/json'
	is "$code" 200 "$body"
	plain /v2/sandboxes -X POST -H "X-API-Key: $key" -H 'Content-Type: text/plain' -d '{"templateID":"base"}'
	is "$code $(get .code)" '415 415' "$body"
	code=$(curl -sS -o body -w '%{http_code}' --unix-socket "$sock" -d '{"command":"true"}' http://localhost/v1/run)
	is "$code" 200
}

invalid_keys_are_rate_limited_and_valid_ones_are_not() {
	py wrong_keys
	api GET /metrics
	[ "$(sed -n 's/^atoll_auth_failures_total //p' body)" -ge 200 ] || fail "$(grep auth_ body)"
	[ "$(sed -n 's/^atoll_auth_slowed_total //p' body)" -ge 100 ] || fail "$(grep auth_ body)"
	# A client behind a proxy on this machine is counted by its own address.
	plain /v1/who -H 'X-API-Key: e2b_0123456789012345678901234567890123456789' -H 'X-Forwarded-For: 192.0.2.1'
	is "$code" 401 "$body"
	# Requests without a key are not counted as guesses.
	for _ in $(seq 50); do plain /v1/who; done
	is "$code" 401
}

every_answer_has_nosniff_and_a_cross_origin_policy() {
	api POST /v2/sandboxes '{"templateID":"base","timeout":60}'
	box=$(get .sandboxID) token=$(get .envdAccessToken)
	for path in /healthz /v1/who /openapi.json /nowhere /metrics "/v1/boxes/$box" "/v1/boxes/$box/files?path=/etc/hostname" /sandboxes; do
		api GET "$path"
		is "$(lines X-Content-Type-Options) $(lines Cross-Origin-Resource-Policy)" '1 1' "$path"
		is "$(sed -n 's/^cross-origin-resource-policy: \(.*\)\r$/\1/ip' head)" same-origin "$path"
	done
	plain /v1/who
	is "$code $(lines X-Content-Type-Options) $(lines Cross-Origin-Resource-Policy)" '401 1 1'
	# A web page may read a file of a sandbox with the token of the sandbox.
	plain "/files?path=/etc/hostname" -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 49983' -H "X-Access-Token: $token" -H 'Origin: https://page.example'
	is "$code $(lines Access-Control-Allow-Origin) $(lines X-Content-Type-Options)" '200 1 1' "$(cat head)"
	is "$(sed -n 's/^cross-origin-resource-policy: \(.*\)\r$/\1/ip' head)" cross-origin
}

a_cors_preflight_with_a_sandbox_header_is_answered() {
	set -- -X OPTIONS -H 'Origin: https://page.example' -H 'Access-Control-Request-Method: POST'
	plain /process.Process/Start "$@" -H 'Access-Control-Request-Headers: content-type,E2B-Sandbox-Id,x-access-token'
	is "$code" 204 "$body"
	is "$(sed -n 's/^access-control-allow-origin: \(.*\)\r$/\1/ip' head)" '*'
	has "$(sed -n 's/^access-control-allow-headers: \(.*\)\r$/\1/ip' head)" E2B-Sandbox-Id
	for other in content-type x-e2b-sandbox-id e2b-sandbox-idx; do
		plain /process.Process/Start "$@" -H "Access-Control-Request-Headers: $other"
		case $code in 401 | 403) ;; *) fail "$other: $code" ;; esac
	done
}

json_is_bounded_before_it_is_parsed() {
	py json
	api POST /v1/run "{\"language\":\"python\",\"code\":\"print(1)\",\"files\":{$(seq 2000 | sed 's/.*/"f&":"x"/' | paste -sd,)}}"
	is "$code $(get .stdout)" '200 1' "$(head -c 300 body)"
	# Only routes for files or code accept megabytes.
	head -c 300000 /dev/zero | tr '\0' x | sed 's/.*/{"name":"&"}/' >large
	api POST /v1/boxes @large
	is "$code" 413 "$(head -c 300 body)"
	api POST /v1/boxes "{\"metadata\":{\"a\":\"$(head -c 17000 /dev/zero | tr '\0' x)\"}}"
	is "$code $(get .error.code)" '413 limit' "$body"
	api POST /v2/sandboxes "{\"templateID\":\"base\",\"metadata\":{\"a\":\"$(head -c 17000 /dev/zero | tr '\0' x)\"}}"
	is "$code" 413 "$body"
}

large_variables_are_refused_before_a_box_is_made() {
	x=$(head -c 131070 /dev/zero | tr '\0' x)
	api GET '/v1/boxes?state=all'
	before=$(get '.items | length')
	for path in /v1/run /v1/boxes; do
		printf '{%s"env":{"A":"%s"}}' "$([ $path = /v1/boxes ] || echo '"command":"true",')" "$x" >large
		api POST $path @large
		is "$code $(get .error.code)" '413 limit' "$path: $(head -c 300 body)"
		has "$body" "env.A: 131071 bytes are too many, at most 131070"
	done
	printf '{"command":"true","env":{"A":"%s","B":"%s","C":"x"}}' "${x%x}" "${x%x}" >many
	api POST /v1/run @many
	is "$code $(get .error.code)" '413 limit' "$(head -c 300 body)"
	printf '{"command":"echo ${#A}","env":{"A":"%s"}}' "${x%x}" >fits
	api POST /v1/run @fits
	is "$code $(get .stdout)" "200 131069" "$(head -c 300 body)"
	api GET '/v1/boxes?state=all'
	is "$(get '.items | length')" $((before + 1))
	# A rejected request has changed nothing.
	new_box '{"idle_ms":500000}'
	api PATCH "/v1/boxes/$box" '{"idle_ms":600000,"env":{"=":"x"}}'
	is "$code" 400 "$body"
	api GET "/v1/boxes/$box"
	is "$(get .idle_ms)" 500000
	api DELETE "/v1/boxes/$box"
}

a_list_of_large_rows_is_split_into_pages() {
	x=$(head -c 120000 /dev/zero | tr '\0' x)
	new_box
	for i in $(seq 12); do
		api POST "/v1/boxes/$box/execs" "{\"command\":[\"true\",\"$x\"]}"
		is "$code" 200 "$(head -c 300 body)"
	done
	api GET "/v1/boxes/$box/execs"
	n=$(get '.items | length')
	[ "$n" -ge 1 ] && [ "$n" -lt 12 ] || fail "$n runs in a page"
	api GET "/v1/boxes/$box/execs?after=$(get .next)"
	while [ "$(get .next)" != null ]; do
		n=$((n + $(get '.items | length')))
		api GET "/v1/boxes/$box/execs?after=$(get .next)"
	done
	is $((n + $(get '.items | length'))) 12
	api DELETE "/v1/boxes/$box"
}

a_url_signed_by_no_box_is_rejected_without_checking_every_box() {
	api POST /v2/sandboxes '{"templateID":"base","timeout":60}'
	box=$(get .sandboxID) token=$(get .envdAccessToken)
	good=$(printf '/etc/hostname:read::%s' "$token" | openssl dgst -sha256 -binary | base64 -w0 | sed 's/=*$//; s/+/%2B/g; s,/,%2F,g; s/^/v1_/')
	plain "/files?path=/etc/hostname&signature=$good"
	is "$code" 200 "$body"
	curl -s -w '%{http_code}\n' -o 'guessed.#1' "$url/files?path=/etc/hostname&signature=v1_[$(printf '%043d' 1)-$(printf '%043d' 60)]" >codes
	is "$(grep -cvxE '401|429' codes)" 0 "$(sort codes | uniq -c)"
	[ "$(grep -cx 429 codes)" -gt 5 ] || fail "$(sort codes | uniq -c)"
	for bad in x v1_ v2_$(printf '%043d' 1) "v1_$(printf '%044d' 1)" "v1_$(printf '%042d' 1)-"; do
		plain "/files?path=/etc/hostname&signature=$bad"
		case $code in 401 | 429) ;; *) fail "$bad: $code $body" ;; esac
	done
	# A URL that was valid before is accepted, however many invalid ones were tried.
	plain "/files?path=/etc/hostname&signature=$good"
	is "$code" 200 "$body"
}

# guess PATH FORWARDED...: 45 requests with invalid keys by one process, so that a slow machine cannot spread them over
# time. %d in a header is the number of the request.
guess() {
	path=$1
	shift
	for i in $(seq 45); do
		[ "$i" = 1 ] || echo next
		printf 'silent\nurl = "%s%s"\noutput = "/dev/null"\nwrite-out = "%%{http_code}\\n"\nheader = "X-API-Key: e2b_%040d"\n' "$url" "$path" "$i"
		for forwarded in "$@"; do
			printf "header = \"X-Forwarded-For: $forwarded\"\n" "$i"
		done
	done | curl -K - >codes
	is "$(grep -cvxE '401|429' codes)" 0 "$path: $(sort codes | uniq -c)"
	[ "$(grep -cx 429 codes)" -gt 5 ] || fail "$path $*: $(sort codes | uniq -c)"
}
invalid_keys_are_rate_limited_at_every_path() {
	for path in /v1/who /mcp /sandboxes /swerex/is_alive; do
		guess "$path" '192.0.2.1, 198.51.100.7'
	done
	# Of several forwarded headers the last one, added by the proxy, counts.
	guess /v1/who '192.0.2.%d' 203.0.113.9
}

a_viewer_sees_variable_names_without_values() {
	new_box '{"env":{"SECRET":"hush-hush"},"name":"hushed"}'
	owner=$key key=$viewer
	for path in /v1/boxes '/v1/boxes?state=all' "/v1/boxes/$box" /v1/boxes/hushed "/v1/boxes/$box/env"; do
		api GET "$path"
		is "$code" 200
		lacks "$body" hush-hush "$path"
		has "$body" SECRET "$path"
	done
	key=$owner
	api GET "/v1/boxes/$box/env"
	is "$(get .env.SECRET)" hush-hush
	api DELETE "/v1/boxes/$box"
	key=$viewer
	api GET "/v1/boxes/$box"
	lacks "$body" hush-hush
	api GET '/v1/boxes?state=all'
	lacks "$body" hush-hush
	key=$owner
}

idle_connections_do_not_block_other_clients() {
	ulimit -n 4096
	py silence
}

# team_key NAME: creates the team, prints a key of it.
team_key() { api PUT "/v1/teams/$1" '{}'; api POST /v1/keys "{\"name\":\"only\",\"role\":\"viewer\",\"team\":\"$1\"}"; get .key; }

a_team_with_many_requests_is_served_after_others() {
	api GET /v1/languages # the first request needs a box
	is "$code" 200
	key=$(team_key greedy),$(team_key modest)
	py turns
}

run_daemon_tests
