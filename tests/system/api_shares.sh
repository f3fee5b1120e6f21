#!/bin/sh
# api_shares.sh - links that share one box: the roles that create them, what they reach, how they end.
. "$(dirname "$0")/daemon.lib"

# status KEY METHOD PATH [JSON]: the status of the answer.
status() {
	curl -s -o /dev/null -w '%{http_code}' -X "$2" -H "X-API-Key: $1" ${4:+-H 'Content-Type: application/json' -d "$4"} "$url$3"
}
# new_share ROLE: sets share (its id) and guest (its key).
new_share() {
	api POST "/v1/boxes/$box/shares" "{\"role\":\"$1\"}"
	is "$code" 201 "$body"
	share=$(get .id) guest=$(get .key)
}

a_share_is_created_listed_and_revoked() {
	new_box
	api POST "/v1/boxes/$box/shares" '{"role":"editor","expires_ms":3600000}'
	is "$code" 201 "$body"
	id=$(get .id) guest=$(get .key)
	is "$(get .role) $(get .box)" "editor $box"
	[ "$(get .url)" = null ] || is "$(get .url)" "$url/b/$box#k=$guest"
	ends=$(date -d "$(get .expires)" +%s)
	[ $((ends - $(date +%s))) -le 3600 ] || fail "it lasts until $(get .expires)"
	lacks "$(strings "$state/server/atoll.db"* 2>/dev/null)" "$guest"
	api GET "/v1/boxes/$box/shares"
	is "$(get '.items | length') $(get '.items[0].id') $(get '.items[0].key')" "1 $id null"
	is "$(status "$guest" GET "/v1/boxes/$box")" 200
	api DELETE "/v1/boxes/$box/shares/$id"
	is "$code" 204
	is "$(status "$guest" GET "/v1/boxes/$box")" 401
	api DELETE "/v1/boxes/$box/shares/$id"
	is "$code" 404
	api GET "/v1/boxes/$box/shares"
	is "$(get '.items | length')" 0
	for action in share.create share.delete; do
		api GET "/v1/audit?action=$action"
		is "$(get '.items[0].subject')" "$id"
		lacks "$body" "$guest"
	done
}

a_share_reaches_its_box_and_nothing_else() {
	new_box
	other=$box
	new_box
	new_share viewer
	for path in /v1/info /v1/who /v1/languages "/v1/boxes/$box" "/v1/boxes/$box/files/list?path=."; do
		is "$(status "$guest" GET "$path")" 200 "$path"
	done
	is "$(curl -s -H "X-API-Key: $guest" "$url/v1/who" | jq -r .box)" "$box"
	is "$(curl -s -H "X-API-Key: $guest" "$url/v1/info" | jq -c .usage)" '{}' "nothing of the team"
	for path in /v1/boxes /v1/runs /v1/keys /v1/events /v1/audit /v1/volumes /v1/pipelines /v1/teams; do
		is "$(status "$guest" GET "$path")" 403 "$path"
	done
	is "$(status "$guest" GET "/v1/boxes/$other")" 404
	is "$(status "$guest" PUT "/v1/boxes/$box/files?path=a")" 403
	is "$(status "$guest" POST "/v1/boxes/$box/execs" '{"command":"true"}')" 403
	new_share editor
	is "$(status "$guest" POST "/v1/boxes/$box/execs" '{"command":"true"}')" 200
	for path in "/v1/boxes/$other" "/v1/boxes/$other/shares"; do
		case $(status "$guest" GET "$path") in 403 | 404) ;; *) fail "$path was answered" ;; esac
	done
	is "$(status "$guest" POST "/v1/boxes/$box/shares" '{}')" 403 "an editor shares nothing"
	is "$(status "$editor" POST "/v1/boxes/$box/shares" '{}')" 403
}

the_socket_shows_a_share_nothing_of_other_boxes() {
	new_box
	other=$box
	new_box
	new_share editor
	is "$(PYTHONPATH=$here python3 "$here/wsclient.py" "ws${url#http}/v1/socket" "$guest" "
w = Ws(URL, KEY)
out = []
for ch, message in enumerate([{'kind': 'stats', 'box': '$other'}, {'kind': 'events'}, {'kind': 'events', 'box': '$other'}, {'kind': 'fs', 'box': '$other'}, {'kind': 'events', 'box': '$box'}]):
    w.send({'op': 'open', 'ch': ch, **message})
    m = w.next()[1]
    out.append(m['error']['code'] if m['op'] == 'error' else m['op'])
print(*out)
")" "not_found not_found not_found not_found opened"
}

a_revoked_share_loses_its_socket() {
	new_box
	new_share viewer
	is "$(PYTHONPATH=$here python3 "$here/wsclient.py" "ws${url#http}/v1/socket" "$guest" "
import urllib.request
w = Ws(URL, KEY)
w.send({'op': 'ping'})
w.next()
urllib.request.urlopen(urllib.request.Request('$url/v1/boxes/$box/shares/$share', method='DELETE', headers={'X-API-Key': '$key'}))
print(w.next())
")" "('close', 4401)"
}

wrong_requests_for_shares_are_rejected() {
	new_box
	for body in '{"role":"owner"}' '{"expires_ms":1}' '{"expires_ms":604800001}' '{"role":1}' '{"box":"x"}' '[]'; do
		is "$(status "$key" POST "/v1/boxes/$box/shares" "$body")" 400 "$body"
	done
	is "$(status "$key" POST /v1/boxes/nothere/shares '{}')" 404
	api POST /v1/keys '{"name":"of-the-team"}'
	is "$(status "$key" DELETE "/v1/boxes/$box/shares/$(get .id)")" 404 "a key that is no share"
	for _ in $(seq 32); do
		new_share viewer
	done
	api POST "/v1/boxes/$box/shares" '{}'
	is "$code" 429 "$body"
	has "$(get .error.message)" 'has 32 links'
}

run_daemon_tests
