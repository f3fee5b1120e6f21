#!/bin/sh
# links.sh - a box reaches another box of its team under a name.
. "$(dirname "$0")/daemon.lib"

# says COMMAND: executes it in the box; sets code and out.
says() {
	api POST "/v1/boxes/$box/execs" "$(jq -nc --arg c "$1" '{command:$c}')"
	out=$(get .stdout)
}
way_open() { api GET "/v1/boxes/$box/network" && [ "$(get .open)" = true ]; }
# A box with a server on its loopback; sets target.
server_box() {
	new_box
	target=$box
	says 'echo linked >f; (python3 -m http.server --bind 127.0.0.1 8000 >/dev/null 2>&1 &)'
}
# linked_box TARGET: a box that reaches it as db.
linked_box() {
	new_box "$(jq -nc --arg t "$1" '{network:{links:{db:$t}}}')"
	soon way_open
}

a_linked_box_is_reached_under_its_name_and_the_connection_is_recorded() {
	server_box
	linked_box "$target"
	is "$(get '.links.db')" "$target" "$body"
	says 'curl -sS --retry 20 --retry-all-errors --retry-delay 1 http://db:8000/f'
	is "$out" linked "$body"
	says 'curl -sS -p -x http://127.0.0.1:3128 http://db:8000/f'
	is "$out" linked "$body"
	api GET "/v1/boxes/$box/network"
	is "$(get '.recent[-1] | "\(.host) \(.port) \(.rule) \(.verdict)"')" "db 8000 link db ok" "$body"
	# Not under another name, and not the other way round.
	says "curl -s -o /dev/null -w '%{http_code}' http://$target:8000/f"
	is "$out" 403
	box=$target
	says 'curl -sS http://db:8000/f'
	[ "$(get .status)" != 0 ] || fail "$body"
}

a_closed_port_and_an_ended_box_are_named_in_the_refusal() {
	server_box
	linked_box "$target"
	says 'curl -sS http://db:9/'
	case $out in *db:9*"$target"*) ;; *) fail "$body" ;; esac
	api DELETE "/v1/boxes/$target"
	says 'curl -sS http://db:8000/f'
	case $out in *"box $target no longer exists"*) ;; *) fail "$body" ;; esac
}

links_survive_a_killed_server() {
	server_box
	linked_box "$target"
	says 'curl -sS --retry 20 --retry-all-errors --retry-delay 1 http://db:8000/f'
	is "$out" linked "$body"
	kill -9 "$(server_pid)"
	soon way_open
	says 'curl -sS --retry 20 --retry-all-errors --retry-delay 1 http://db:8000/f'
	is "$out" linked "$body"
}

invalid_links_are_rejected() {
	new_box
	for name in '' A a.b 127 localhost -a a- "$(printf '%064d' 0)x" 'a b'; do
		api POST /v1/boxes "$(jq -nc --arg n "$name" --arg b "$box" '{network:{links:{($n):$b}}}')"
		is "$code" 400 "$name: $body"
	done
	api POST /v1/boxes '{"network":{"links":{"db":"missing"}}}'
	is "$code" 404 "$body"
	api POST /v1/boxes '{"network":{"links":{"db":1}}}'
	is "$code" 400 "$body"
	api POST /v1/boxes "$(jq -nc --arg b "$box" '{network:{links:([range(17)] | map({key:"n\(.)x", value:$b}) | from_entries)}}')"
	is "$code" 400 "$body"
}

a_box_of_another_team_cannot_be_linked() {
	server_box
	api PUT /v1/teams/strangers '{}'
	key=$("$ATOLL" key new stranger --team strangers --role editor --state "$state" --quiet)
	api POST /v1/boxes "$(jq -nc --arg t "$target" '{network:{links:{db:$t}}}')"
	is "$code" 404 "$body"
}

links_are_off_by_default() {
	supervisor=$(cat "$work/supervisor")
	stop_daemon
	unset ATOLL_EGRESS_LINKS
	start_daemon
	new_box
	api POST /v1/boxes "$(jq -nc --arg t "$box" '{network:{links:{db:$t}}}')"
	is "$code" 403
	has "$(get .error.message)" egress.links
}

export ATOLL_EGRESS_LINKS=true
run_daemon_tests
