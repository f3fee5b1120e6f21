#!/bin/sh
# readme.sh - the commands of the README work, and the documents name files that exist.
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

the_commands_of_the_readme_exist() {
	sed -n 's/^| `atoll \([a-z]*\).*/\1/p' "$top/README.md" | sort -u >commands
	[ -s commands ]
	while read -r command; do
		"$ATOLL" help "$command" >/dev/null || fail "no command $command"
	done <commands
}

# Names in backquotes, as `src/fleet/box.c` or `src/fleet/box.h`; a name with < > * { or NAME is a pattern.
every_file_that_the_documents_name_exists() {
	(cd "$top" && grep -onE '`(src|share|tests|scripts|systemd|examples|bench|man)/[^`]*`' README.md CONTRIBUTING.md docs/*.md) >named
	[ "$(wc -l <named)" -gt 100 ] || fail "the documents name only $(wc -l <named) files"
	while IFS='`' read -r where path _; do
		case $path in *[\<\>*{}]* | *NAME*) continue ;; esac
		[ -e "$top/${path%% *}" ] || fail "${where%:}: there is no ${path%% *}"
	done <named
}

# In the table of the walk, `conn.c` after `src/http/server.c` is src/http/conn.c.
every_file_of_the_request_walk_exists() {
	awk -F '|' '/^## A walk through/ { walk = 1 } walk && /^## When/ { exit }
		walk && $2 ~ /[0-9]/ {
			n = split($3, name, "`")
			for (i = 2; i <= n; i += 2) {
				if (name[i] ~ /\//)
					folder = name[i]
				sub(/[^\/]*$/, "", folder)
				sub(/.*\//, "", name[i])
				print folder name[i]
			}
		}' "$top/docs/architecture.md" >walk
	[ "$(wc -l <walk)" -gt 50 ] || fail "the walk names only $(wc -l <walk) files"
	while read -r path; do
		[ -f "$top/$path" ] || fail "there is no $path"
	done <walk
}

run_daemon_tests
