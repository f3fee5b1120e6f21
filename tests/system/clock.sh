#!/bin/sh
# clock.sh - the wall clock is set by a day in both directions: lifetimes end on time and idempotency keys stay
# valid, also after a restart in between.
. "$(dirname "$0")/daemon.lib"

grep -q __asan_init "$ATOLL" && { echo "1..0 # SKIP a sanitizer wants to be loaded first"; exit 0; }
shift_file=$work/shift
python3 -c 'open("'"$shift_file"'", "wb").write(bytes(8))'
chmod 644 "$shift_file"

# ahead SECONDS: sets the clock of the daemon ahead of ours by SECONDS.
ahead() {
	python3 -c 'import struct, sys
with open(sys.argv[1], "r+b") as f: f.write(struct.pack("q", int(sys.argv[2])))' "$shift_file" "$1"
}
noticed() { grep -c 'the clock was set' "$work/serve.log" || :; }
# jump SECONDS: the same, and waits until the daemon has noticed it.
jump() {
	before=$(noticed)
	ahead "$1"
	soon has_noticed
}
has_noticed() { [ "$(noticed)" -gt "$before" ]; }
uptime_ms() { awk '{ printf "%d", $1 * 1000 }' /proc/uptime; }

# lives_for MS CAUSE SHIFT: $box, requested at $began, ends after MS and, by the clock of the daemon, less than two
# seconds later: this script may be slower. The clock was set ahead by SHIFT seconds meanwhile, or on a slow machine only
# after the end. without_server: milliseconds since the request, until which no server could end it.
without_server=0
lives_for() {
	gone_now() { api GET "/v1/boxes/$box" && [ "$(get .state)" = deleted ]; }
	soon gone_now
	lived "$@"
}
on_time() {
	most=$(($1 > without_server ? $1 : without_server))
	[ "$2" -gt $(($1 - 100)) ] && [ "$2" -lt $((most + 2500)) ]
}
lived() {
	took=$(($(uptime_ms) - began))
	[ "$took" -ge "$1" ] || fail "ended after $took ms, $1 were asked for"
	took=$(get '[.created, .ended] | map((.[:19] + "Z" | fromdate) + (.[19:-1] | tonumber)) | (.[1] - .[0]) * 1000 | floor')
	on_time "$1" "$took" || on_time "$1" $((took - $3 * 1000)) || fail "ended after $took ms, $1 were asked for: $(tail -n 20 "$work/serve.log")"
	is "$(get .cause)" "$2"
}
alive() {
	api GET "/v1/boxes/$1"
	is "$(get .state)" running "$1"
}

a_clock_step_of_one_day_forward_does_not_shorten_a_lifetime() {
	ahead 0
	new_box '{"lifetime_ms":600000,"idle_ms":200000}'
	long=$box
	began=$(uptime_ms)
	new_box '{"lifetime_ms":3000}'
	jump 86400
	api GET "/v1/boxes/$box"
	[ $(($(uptime_ms) - began)) -ge 3000 ] || is "$(get .state)" running
	lives_for 3000 lifetime 86400
	alive "$long"
	# `ends` is given in the current time of the clock.
	api GET "/v1/boxes/$long"
	left=$(($(date -d "$(get .ends)" +%s) - $(date +%s) - 86400))
	[ "$left" -gt 500 ] && [ "$left" -le 600 ] || fail "$left seconds left, told as $(get .ends)"
	jump 0
	alive "$long"
}

a_clock_step_of_one_day_back_does_not_lengthen_a_lifetime() {
	ahead 0
	began=$(uptime_ms)
	new_box '{"lifetime_ms":3000}'
	jump -86400
	lives_for 3000 lifetime -86400
	jump 0
}

an_idle_timeout_does_not_depend_on_the_wall_clock() {
	ahead 0
	began=$(uptime_ms)
	new_box '{"idle_ms":3000}'
	jump 86400
	# A request for the box would be activity.
	ended() { [ "$(sqlite3_state)" = deleted ]; }
	sqlite3_state() { "$ATOLL" ls -a --json | jq -r --arg id "$box" '.. | objects | select(.id == $id) | .state' | head -1; }
	soon ended
	api GET "/v1/boxes/$box"
	lived 3000 idle 86400
	jump 0
}

a_server_started_after_a_clock_step_accounts_for_it() {
	ahead 0
	for by in 86400 -86400; do
		new_box '{"lifetime_ms":600000}'
		long=$box
		began=$(uptime_ms)
		new_box '{"lifetime_ms":3000}'
		kill -STOP "$supervisor" # no new server before the clock is set
		old=$(server_pid)
		kill -9 "$old"
		ahead "$by"
		kill -CONT "$supervisor"
		without_server=$(($(uptime_ms) - began))
		lives_for 3000 lifetime "$by"
		alive "$long"
		[ "$(server_pid)" != "$old" ] || fail "the old server still serves"
		jump 0
		api DELETE "/v1/boxes/$long"
	done
}

a_clock_step_does_not_expire_an_idempotency_key() {
	ahead 0
	api POST /v1/boxes '{}' -H 'Idempotency-Key: once'
	is "$code" 201
	first=$(get .id)
	jump 90000
	api POST /v1/boxes '{}' -H 'Idempotency-Key: once'
	is "$(get .id)" "$first"
	has "$(cat head)" "Idempotent-Replayed"
	jump 0
}

rate_limits_and_etags_work_after_a_clock_step() {
	ahead 0
	new_box
	api PUT "/v1/boxes/$box/files?path=f" one
	api GET "/v1/boxes/$box/files?path=f"
	tag=$(sed -n 's/^[Ee][Tt]ag: *\([^\r]*\).*/\1/p' head)
	api PUT /v1/teams/slow '{"requests_per_second":5}'
	slow=$(key=$key; api POST /v1/keys '{"name":"slow","team":"slow","role":"editor"}'; get .key)
	jump -86400
	api PUT "/v1/boxes/$box/files?path=f" two -H "If-Match: $tag"
	is "$code" 200 "$body"
	mine=$key key=$slow
	for i in 1 2 3 4 5; do
		api GET /v1/who
		is "$code" 200 "$i: $body"
	done
	key=$mine
	jump 0
}

export LD_PRELOAD="$(dirname "$ATOLL")/clockshift.so" CLOCKSHIFT="$shift_file"
[ -e "$LD_PRELOAD" ] || { echo "1..0 # SKIP no $LD_PRELOAD"; exit 0; }
need_daemon
unset LD_PRELOAD CLOCKSHIFT
run_tests
