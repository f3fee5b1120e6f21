#!/bin/sh
# wasm.sh - programs as WebAssembly: what the daemon does for those in browsers (/play/), and `atoll tier prepare`.
# Browsers are tested by ui_play.sh.
. "$(dirname "$0")/daemon.lib"

browser() { curl -sS -D head -o body -w '%{http_code}' -H 'Accept: text/html,*/*;q=0.8' "$@"; }
header() { tr -d '\r' <head | sed -n "s/^$1: //Ip" | head -1; }
need_ui() {
	browser "$url/" >/dev/null
	grep -q 'id="app"' body || skip "this build has no web UI"
}
# The part of the policy that begins with $1.
policy() { header Content-Security-Policy | tr ';' '\n' | sed -n "s/^ *$1 //p"; }

the_page_names_the_command_that_installs_the_interpreters() {
	need_ui
	is "$(browser "$url/play")" 308
	is "$(header Location)" /play/
	is "$(browser "$url/play/")" 200
	has "$(cat body)" 'in your browser'
	is "$(browser "$url/play/info")" 200
	is "$(jq -r .installed body)" false
	is "$(jq -r .command body)" 'atoll tier prepare play'
	files=$(jq -r .files body)
	is "$(browser "$url${files}pyodide.mjs")" 404
	has "$(cat body)" 'atoll tier prepare play'
}

programs_have_an_opaque_origin_and_reach_only_the_interpreters() {
	need_ui
	host=${url#http://}
	browser "$url/play/" >/dev/null
	is "$(policy default-src)" "'none'"
	is "$(policy script-src)" "$host/play/"
	is "$(policy connect-src)" "$host/play/"
	is "$(policy frame-ancestors)" "'none'"
	is "$(browser "$url/play/frame.html")" 200
	is "$(policy sandbox)" allow-scripts # no allow-same-origin
	is "$(policy default-src)" "'none'"
	is "$(policy script-src)" "$host/play/ 'wasm-unsafe-eval'"
	is "$(policy worker-src)" 'blob:'
	is "$(policy connect-src)" "$host/play/lib/" # and so not /v1
	is "$(policy frame-ancestors)" "'self'"
	is "$(header X-Frame-Options)" SAMEORIGIN
	# a Host header becomes part of the policy only if it is a name of this daemon
	is "$(browser -H "Host: localhost;script-src *" "$url/play/")" 421
}

files_of_interpreters_are_addressed_by_hash_and_sent_compressed() {
	need_ui
	browser "$url/play/info" >/dev/null
	files=$(jq -r .files body)
	set=$(basename "$files") folder=$state/server/play/$(basename "$files")
	[ "${#set}" = 32 ] || fail "the set is named $set"
	mkdir -p "$folder"
	head -c 3000000 /dev/urandom >"$folder/pyodide.asm.wasm" # sent in many pieces
	seq 100000 >"$folder/pyodide.mjs"
	gzip -k "$folder/pyodide.mjs"
	echo secret >"$folder/other"
	ln -s /etc/passwd "$folder/pyodide-lock.json"
	chmod -R a+rX "$state/server/play"
	browser "$url/play/info" >/dev/null
	is "$(jq -r .installed body)" true
	is "$(browser "$url${files}pyodide.asm.wasm")" 200
	is "$(header Content-Type)" application/wasm
	is "$(header Access-Control-Allow-Origin)" '*'
	is "$(header Cache-Control)" 'public, max-age=31536000, immutable'
	cmp body "$folder/pyodide.asm.wasm" || fail "the file was changed"
	is "$(browser "$url${files}pyodide.mjs")" 200
	is "$(header Content-Encoding)" ''
	cmp body "$folder/pyodide.mjs" || fail "the file was changed"
	is "$(browser -H 'Accept-Encoding: gzip' "$url${files}pyodide.mjs")" 200
	is "$(header Content-Encoding)" gzip
	gzip -dc <body | cmp - "$folder/pyodide.mjs" || fail "the compressed file differs"
	is "$(curl -s -I -o head -w '%{http_code} %{size_download}' "$url${files}pyodide.mjs")" '200 0'
	is "$(browser "$url${files}other")" 404 # not in the table
	is "$(browser "$url${files}pyodide-lock.json")" 404 # a link out of the folder
	is "$(browser --path-as-is "$url${files}../../atoll.db")" 404
	is "$(browser "$url/play/lib/00000000000000000000000000000000/pyodide.mjs")" 404
	rm -r "$state/server/play"
}

prepare_rejects_files_that_differ_from_the_known_ones() {
	mkdir -p modules/pyodide
	echo 'alert(1)' >modules/pyodide/pyodide.mjs
	prepare() { "$ATOLL" tier prepare "$@" --state "$state" 2>err && code=0 || code=$?; }
	prepare play --from "$PWD/modules"
	is "$code" 1
	has "$(cat err)" 'pyodide/pyodide.mjs is not the file that Atoll knows'
	prepare play --from "$PWD/nothing"
	is "$code" 1
	has "$(cat err)" 'nothing/pyodide/pyodide.mjs'
	[ -z "$(ls "$state/server/play")" ] || fail "a failed preparation left $(ls "$state/server/play")"
	prepare nonsense
	is "$code" 2
	has "$(cat err)" 'atoll tier prepare play'
}

run_daemon_tests
