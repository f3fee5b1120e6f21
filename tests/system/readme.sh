#!/bin/sh
# readme.sh - what the README's first screen says to paste, pasted.
. "$(dirname "$0")/daemon.lib"
top=$(cd "$here/../.." && pwd)

the_curl_lines_of_the_readme_work() {
	sed -n '/^KEY=/,/^```/p' "$top/README.md" | sed '1d; /^```/d' >lines
	[ "$(grep -c '^curl' lines)" -ge 6 ] || fail "the README has other lines now"
	cp "$top/README.md" .
	KEY=$key API=$url/v1 sh -e lines >out 2>err || fail "$(cat err out)"
	is "$(sed -n 1p out | jq -r .stdout 2>/dev/null || head -c 300 out)" 42
	has "$(cat out)" '"name":"demo"'
	has "$(cat out)" '"type":"exit"'
	has "$(cat out)" "$(wc -l <"$top/README.md") notes.md"
	lacks "$(cat out)" '"error":{'
	api GET /v1/boxes/demo
	is "$code" 404
}

the_cells_of_the_readme_work() {
	grep '^curl.*/calc' "$top/README.md" >lines
	grep -q '"name": "calc"' "$top/README.md" || fail "the README has other lines now"
	grep '"name": "calc"' "$top/README.md" | cat - lines >all
	KEY=$key API=$url/v1 sh -e all >out 2>err || fail "$(cat err out)"
	has "$(cat out)" '"text/plain":"42"'
	lacks "$(cat out)" '"error":{'
	api GET /v1/boxes/calc
	is "$code" 404
}

the_verbs_of_the_readme_exist() {
	sed -n 's/^| `atoll \([a-z]*\).*/\1/p' "$top/README.md" | sort -u >verbs
	[ -s verbs ]
	while read -r verb; do
		"$ATOLL" help "$verb" >/dev/null || fail "no verb $verb"
	done <verbs
}

run_daemon_tests
