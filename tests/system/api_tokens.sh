#!/bin/sh
# api_tokens.sh - tokens of an external issuer, and secrets that must not be logged or stored.
. "$(dirname "$0")/daemon.lib"

jwks=$work/jwks.json issuer=https://id.example/realms/x

b64() { openssl base64 -A | tr '+/' '-_' | tr -d '='; }
# make_set KID: a fresh key in $work/signer.pem, and the set that holds its public half.
make_set() {
	openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out "$work/signer.pem" 2>/dev/null
	n=$(openssl rsa -in "$work/signer.pem" -noout -modulus | cut -d = -f 2 | python3 -c 'import sys; sys.stdout.buffer.write(bytes.fromhex(sys.stdin.read()))' | b64)
	echo "{\"keys\":[{\"kty\":\"RSA\",\"kid\":\"$1\",\"n\":\"$n\",\"e\":\"AQAB\"}]}" >"$jwks"
}
# token SECONDS [CLAIMS]: prints a token that is valid for that long.
token() {
	claims="\"iss\":\"$issuer\",\"aud\":\"atoll\",\"sub\":\"ann\",\"exp\":$(($(date +%s) + $1))"
	head=$(printf '{"alg":"RS256","kid":"%s"}' "${kid:-one}" | b64)
	payload=$(printf '{%s%s}' "$claims" "${2-,\"group\":\"red\"}" | b64)
	sig=$(printf '%s' "$head.$payload" | openssl dgst -sha256 -sign "$work/signer.pem" | b64)
	echo "$head.$payload.$sig"
}
# ask TOKEN PATH: sets code; the answer is in ./body.
ask() { code=$(curl -sS -o body -w '%{http_code}' -H "Authorization: Bearer $1" "$url$2"); }
refused() {
	ask "$1" /v1/info
	is "$code" 401
	has "$(get .error.why)" "$2"
}

a_token_is_accepted_for_its_team() {
	api PUT /v1/teams/red '{}'
	ask "$(token 300)" /v1/info
	is "$code" 200 "$(cat body)"
	is "$(get '.who + " " + .team + " " + .role')" "oidc:ann red viewer"
	ask "$(token 300 ',"group":"red","role":"owner"')" /v1/keys
	is "$code" 200
	ask "$(token 300)" /v1/keys
	is "$code" 403
}

audit_rows_of_a_token_name_its_subject() {
	api PUT /v1/teams/red '{}'
	code=$(curl -sS -o body -w '%{http_code}' -H "Authorization: Bearer $(token 300 ',"group":"red","role":"editor"')" "$url/v1/boxes" -d '{}')
	is "$code" 201
	made=$(get .id)
	api GET "/v1/audit?subject=$made"
	is "$(get '.items[0] | .who + " " + .team + " " + .action')" "oidc:ann red box.create"
	curl -sS -X DELETE -H "Authorization: Bearer $(token 300 ',"group":"red","role":"editor"')" "$url/v1/boxes/$made"
}

an_invalid_token_is_rejected_with_the_reason() {
	api PUT /v1/teams/red '{}'
	refused "$(token -61)" "expired"
	refused "$(token 300 ',"group":"unknown"')" "not known here"
	refused "$(token 300 '')" "claim group names no team"
	refused "$(token 300 ',"group":"red","role":"king"')" "role"
	refused "$(kid=two token 300)" "kid 'two'"
	refused "$(token 300)x" "base64url"
	refused "a.b.c" "base64url"
	refused "e30.e30.e30" "alg"
	refused "$(token 300).x" "three parts"
	refused "$(token 300 ",\"group\":\"red\",\"x\":\"$(printf 'x%.0s' $(seq 8192))\"")" "more than"
	good=$(token 300)
	refused "$(printf '{"alg":"none"}' | b64).$(echo "$good" | cut -d . -f 2)." "alg is 'none'"
	refused "${good%.*}.$(printf x | b64)" "signature"
	# Only in the Authorization header: the other header is for keys.
	is "$(curl -sS -o body -w '%{http_code}' -H "X-API-Key: $good" "$url/v1/info")" 401
}

a_stream_ends_when_its_token_expires() {
	api PUT /v1/teams/red '{}'
	# In the last seconds of the allowed clock difference.
	curl -sS -N -H "Authorization: Bearer $(token -57)" "$url/v1/events?follow=1" >s 2>s.err &
	reader=$!
	soon grep -q following s
	status=0
	wait $reader || status=$?
	[ $status != 0 ] || fail "it looked whole"
}

a_reload_reads_new_signing_keys_and_rejects_an_invalid_key_set() {
	api PUT /v1/teams/red '{}'
	old=$(token 300)
	make_set two
	new=$(kid=two token 300)
	kill -HUP "$(serving_pid)"
	taken() { ask "$new" /v1/info && [ "$code" = 200 ]; }
	soon taken
	gone() { ask "$old" /v1/info && [ "$code" = 401 ]; }
	soon gone
	serving() { cut -d ' ' -f 3 "$(serving_run)/serve.pid"; } # the server before it may still be ending
	server_before=$(serving)
	echo '{"keys":[' >"$jwks"
	kill -HUP "$(serving_pid)"
	soon grep -q 'reload refused' "$(serving_log)"
	ask "$new" /v1/info
	is "$code" 200
	is "$(serving)" "$server_before"
}

the_daemon_does_not_start_with_an_invalid_key_set() {
	echo '{}' >broken.json
	status=0
	ATOLL_RUN=$work/run3 ATOLL_OIDC_JWKS=$PWD/broken.json timeout 120 "$ATOLL" serve --listen 127.0.0.1:0 --state "$work/state3" >out 2>err || status=$?
	[ $status != 0 ] && [ $status != 124 ] || fail "status $status"
	has "$(cat err)" "auth.oidc_jwks"
	has "$(cat err)" "not a set of keys"
}

# ---- secrets ----

keys_and_tokens_are_not_written_to_the_log() {
	api POST /v1/keys '{"name":"secret-one"}'
	secret=$(get .key) good=$(token 300)
	for header in "X-API-Key: $secret" "Authorization: Bearer $secret" "authorization: bearer   $secret"; do
		curl -sS -o /dev/null -H "$header" "$url/v1/info"
	done
	is "$(curl -sS -o body -w '%{http_code}' -H "X-API-Key: $key" "$url/v1/boxes?api_key=$secret")" 400
	is "$(curl -sS -o body -w '%{http_code}' "$url/v1/boxes?api_key=$secret")" 401
	curl -sS -o /dev/null -H "X-API-Key: $key" "$url/v1/boxes/$secret"
	curl -sS -o /dev/null -H "X-API-Key: $key" "$url/$secret/x"
	curl -sS -o /dev/null -H "X-API-Key: $key" "$url/v1/boxes" -d "{\"name\":\"$secret\",\"$secret\":1}"
	curl -sS -o /dev/null -H "X-API-Key: $key" "$url/v1/boxes" -d "{$secret"
	curl -sS -o /dev/null -H "X-API-Key: $key" "$url/v1/run" -d "{\"command\":[\"true\",\"$secret\"],\"env\":{\"K\":\"$secret\"}}"
	curl -sS -o /dev/null -H "Authorization: Bearer $good" "$url/v1/info"
	curl -sS -o /dev/null -H "Authorization: Bearer ${good}x" "$url/v1/info"
	curl -sS -o /dev/null -X DELETE -H "X-API-Key: $key" "$url/v1/keys/secret-one"
	# The log has lines about all of these requests.
	logged() { [ "$(grep -c '"msg":"request"' "$(serving_log)")" -ge 12 ]; }
	soon logged
	! grep -F "$secret" "$(serving_log)" || fail "the key is in the log"
	! grep -F "${secret#e2b_}" "$(serving_log)" || fail "half of the key is in the log"
	! grep -F "$key" "$(serving_log)" || fail "the other key is in the log"
	! grep -F "$good" "$(serving_log)" || fail "the token is in the log"
	! grep -F "$(echo "$good" | cut -d . -f 3)" "$(serving_log)" || fail "its signature is in the log"
}

keys_are_not_written_to_the_database() {
	api POST /v1/keys '{"name":"stored"}'
	secret=$(get .key)
	api DELETE /v1/keys/stored
	! grep -aF "$secret" "$state"/server/atoll.db* || fail "the key is on the disk"
}

make_set one
export ATOLL_OIDC_ISSUER="$issuer" ATOLL_OIDC_JWKS="$jwks" ATOLL_OIDC_AUDIENCE=atoll ATOLL_OIDC_TEAM_CLAIM=group
run_daemon_tests --log-level debug
