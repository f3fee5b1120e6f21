#!/bin/sh
# ui_serve.sh - what the daemon does for the web UI: files, headers, one-time links. The page itself is tested by ui.sh.
. "$(dirname "$0")/daemon.lib"

browser() { curl -sS -D head -o body -w '%{http_code}' -H 'Accept: text/html,application/xhtml+xml,*/*;q=0.8' "$@"; }
header() { tr -d '\r' <head | sed -n "s/^$1: //Ip" | head -1; }
need_ui() {
	browser "$url/" >/dev/null
	grep -q 'id="app"' body || skip "this build has no web UI"
}
# new_link [BODY]: over the unix socket; sets token.
new_link() {
	curl -sS --unix-socket "$sock" -H 'Content-Type: application/json' -d "${1:-{\}}" http://localhost/v1/ui/links >link
	token=$(jq -r .token link)
}
# open_session TOKEN [CURL OPTION...]: without a key, as a page that was just opened.
open_session() {
	method=POST path=/v1/ui/sessions token_sent=$1
	shift
	code=$(curl -sS -o body -D head -w '%{http_code}' -H 'Content-Type: application/json' -d "{\"token\":\"$token_sent\"}" "$@" "$url$path")
	body=$(cat body)
	[ "$code" != 201 ] || note_answer "$body"
}

a_client_that_is_not_a_browser_gets_a_text_page() {
	api GET /
	is "$code" 200
	has "$body" 'every request takes a key'
	lacks "$body" 'id="app"'
}

a_browser_gets_the_ui_on_every_page_and_api_routes_are_unchanged() {
	need_ui
	for path in / /runs /runs/aaaaaaaaaaaa /b/demo /settings; do
		is "$(browser "$url$path")" 200 "$path"
		has "$(cat body)" 'id="app"'
		is "$(header Content-Type)" 'text/html;charset=utf-8'
	done
	is "$(browser "$url/v1/boxes")" 401
	is "$(browser "$url/nothing")" 401
	is "$(browser -X POST "$url/")" 401
	is "$(curl -s -o body -w '%{http_code}' "$url/runs")" 401 # it does not accept text/html
}

pages_have_a_strict_content_policy_and_are_not_cached() {
	need_ui
	browser "$url/" >/dev/null
	policy=$(header Content-Security-Policy)
	for part in "default-src 'none'" "script-src 'self';" "frame-ancestors 'none'" "base-uri 'none'" "form-action 'none'"; do
		has "$policy" "$part"
	done
	has "$policy" "frame-src 'self' http://*.localhost:* https://*.localhost:*;" # /frame.html, previews of boxes, and nothing else
	lacks "${policy#*script-src}" 'unsafe-eval'
	lacks "$(echo "$policy" | tr ';' '\n' | grep script-src)" unsafe-inline
	is "$(header X-Content-Type-Options)" nosniff
	is "$(header X-Frame-Options)" DENY
	is "$(header Referrer-Policy)" no-referrer
	is "$(header Cache-Control)" no-cache
	lacks "$(cat body)" '<script>'
	etag=$(header ETag)
	is "$(browser -H "If-None-Match: $etag" "$url/")" 304
	is "$(browser -H 'If-None-Match: "other"' "$url/")" 200
}

html_of_boxes_is_shown_in_a_page_with_an_opaque_origin() {
	need_ui
	is "$(browser "$url/frame.html")" 200
	is "$(header Content-Type)" 'text/html;charset=utf-8'
	policy=$(header Content-Security-Policy)
	has "$policy" 'sandbox allow-scripts;' # no allow-same-origin: an opaque origin, however the page is opened
	has "$policy" "default-src 'none'"
	has "$policy" "frame-ancestors 'self'"
	lacks "$policy" 'connect-src'
	is "$(header X-Frame-Options)" SAMEORIGIN
	is "$(header Cache-Control)" no-cache
	is "$(curl -s -o body -w '%{http_code}' "$url/frame.html")" 200 # it needs no key and has no data
}

files_are_compressed_and_cached_without_limit() {
	need_ui
	file=$(grep -o '/a/app-[^"]*\.js' body)
	is "$(browser -H 'Accept-Encoding: gzip, br' "$url$file")" 200
	is "$(header Content-Encoding)" gzip
	is "$(header Cache-Control)" 'public, max-age=31536000, immutable'
	is "$(header Content-Type)" 'text/javascript;charset=utf-8'
	gzip -dc <body >unpacked
	packed=$(header ETag)
	is "$(browser "$url$file")" 200 # a client that takes no gzip
	is "$(header Content-Encoding)" ''
	cmp body unpacked || fail "the two forms of $file differ"
	[ "$(header ETag)" != "$packed" ] || fail "two forms with one ETag"
	is "$(browser -H 'Accept-Encoding: gzip;q=0' "$url$file")" 200
	is "$(header Content-Encoding)" ''
	is "$(curl -s -I -o head -w '%{http_code} %{size_download}' "$url$file")" '200 0'
	is "$(browser "$url/a/app-OLD.js")" 404
	is "$(browser --path-as-is "$url/a/../../etc/passwd")" 404
	is "$(browser -H "If-None-Match: $packed" -H 'Accept-Encoding: gzip' "$url$file")" 304
}

a_login_link_is_valid_once() {
	need_ui
	new_link
	is "$(jq -r .role link)" owner
	is "$(jq -r .url link)" "$url/#k=$token"
	open_session "$token"
	is "$code" 201
	session=$(get .key) id=$(get .id)
	has "$(get .name)" ui-
	is "$(get .role)" owner
	ends=$(date -d "$(get .expires)" +%s)
	[ $((ends - $(date +%s))) -le 86400 ] || fail "the session lasts until $(get .expires)"
	is "$(curl -s -o /dev/null -w '%{http_code}' -H "X-API-Key: $session" "$url/v1/who")" 200
	open_session "$token"
	is "$code" 401
	is "$(get .error.code)" link_used
	api GET '/v1/audit?action=ui.session'
	is "$(get '.items[0].result')" ok
	lacks "$(cat "$work/serve.log")" "$token"
	lacks "$(strings "$state/server/atoll.db"* 2>/dev/null)" "$token"
	api DELETE "/v1/keys/$id"
	is "$code" 204
}

only_an_owner_creates_login_links() {
	need_ui
	is "$(curl -s -o /dev/null -w '%{http_code}' -H "X-API-Key: $editor" -H 'Content-Type: application/json' -d '{}' "$url/v1/ui/links")" 403
	is "$(curl -s -o /dev/null -w '%{http_code}' -H 'Content-Type: application/json' -d '{}' "$url/v1/ui/links")" 401
	api POST /v1/ui/links '{"role":"viewer"}'
	is "$code" 201
	is "$(get .url)" "$url/#k=$(get .token)" # at the address by which the caller came
	open_session "$(get .token)"
	is "$(get .role)" viewer
	viewing=$(get .key)
	is "$(curl -s -o /dev/null -w '%{http_code}' -H "X-API-Key: $viewing" -H 'Content-Type: application/json' -d '{}' "$url/v1/boxes")" 403
	api POST /v1/ui/links '{"role":"king"}'
	is "$code" 400
}

a_login_link_expires_and_guesses_are_rate_limited() {
	need_ui
	new_link
	sqlite3 "$state/server/atoll.db" 'UPDATE ui_links SET expires_ns = 1'
	open_session "$token"
	is "$code" 401
	open_session short
	is "$code" 401
	# By one process, so that a slow machine cannot spread them over time.
	curl -s -o /dev/null -w '%{http_code}\n' -H 'Content-Type: application/json' -d "{\"token\":\"$(printf %048d 0)\"}" \
		"$url/v1/ui/sessions#[1-40]" >codes
	is "$(sort -u codes | tr '\n' ' ')" "401 429 " "$(cat codes)"
	# A page of another site cannot send it.
	open_session "$token" -H 'Origin: http://elsewhere.test'
	is "$code" 403
}

a_login_link_survives_a_restart_and_two_browsers_cannot_share_it() {
	need_ui
	new_link
	old=$(server_pid)
	kill -9 "$old"
	answers() { [ "$(server_pid)" != "$old" ] && curl -fs "$url/healthz" >/dev/null; }
	soon answers
	for n in 1 2 3 4; do
		curl -s -o "s$n" -w '%{http_code}\n' -H 'Content-Type: application/json' -d "{\"token\":\"$token\"}" "$url/v1/ui/sessions" >"c$n" &
	done
	wait
	is "$(cat c1 c2 c3 c4 | grep -c 201)" 1
}

the_command_prints_a_link_that_works() {
	need_ui
	atoll ui
	is "$status" 0
	has "$out" "$url/#k="
	has "$err" 'five minutes'
	atoll ui -q
	is "$err" ''
	open_session "${out#*#k=}"
	is "$code" 201
	ATOLL_KEY=$key atoll ui --role editor -q -H "$url"
	has "$out" "$url/#k="
	atoll ui --role king
	is "$status" 2 "$err"
	atoll ui surplus
	is "$status" 2
}

expired_keys_of_sessions_are_removed_by_the_next_session() {
	need_ui
	new_link
	open_session "$token"
	id=$(get .id)
	sqlite3 "$state/server/atoll.db" "UPDATE keys SET expires_ns = 1 WHERE id = '$id'"
	new_link
	open_session "$token"
	is "$code" 201
	api GET "/v1/keys/$id"
	is "$code" 404
}

run_daemon_tests
