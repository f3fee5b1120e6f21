#!/bin/sh
# zygote.sh - interpreters that are forked into boxes: many at once, children that fail, output at once when it
# is printed, separate zygotes per team.
. "$(dirname "$0")/daemon.lib"
[ -x /usr/bin/python3 ] || { echo "1..0 # SKIP no python3"; exit 0; }

keeper_pid() { "$ATOLL" doctor --json | grep -o 'pid [0-9]*' | head -1 | cut -d ' ' -f 2; }
zygotes() { # the process ids of all Python zygotes of the keeper
	for p in $(pgrep -P "$(keeper_pid)"); do
		tr '\0' ' ' <"/proc/$p/cmdline" 2>/dev/null | grep -q '^/usr/bin/python3 python ' && echo "$p"
	done
	:
}
zombies() { ps --ppid "$(keeper_pid)" -o stat= | grep -c Z; }
no_zombies() { [ "$(zombies)" = 0 ]; }
log() { cat "$work/run/keeper.log"; }

# Waits until a box with a warm interpreter can be created.
warm_python() {
	api POST /v1/boxes '{"warm":"python"}'
	api DELETE "/v1/boxes/$(get .id)"
	[ "$(zygotes)" ]
}

create_boxes() { # N
	i=0
	while [ $i -lt "$1" ]; do
		i=$((i + 1))
		printf 'next\nurl = "%s/v1/boxes"\nheader = "X-API-Key: %s"\ndata = "{\\"warm\\":\\"python\\",\\"limits\\":{\\"mem\\":134217728}}"\noutput = "made%s"\nwrite-out = "%%{http_code}\\n"\n' "$url" "$key" $i
	done | sed 1d >curl.rc
	curl -s --parallel --parallel-immediate --parallel-max "$1" -K curl.rc >codes
	is "$(sort -u codes)" 201 "$(cat made1)"
}

hundred_boxes_at_once_keep_the_zygote_and_leave_no_zombie() {
	soon warm_python
	before=$(zygotes)
	create_boxes 100
	lacks "$(log)" "made without"
	lacks "$(log)" "descriptor"
	is "$(zygotes)" "$before" "$(log)"
	"$ATOLL" kill --local --all >/dev/null
	soon no_zombies
}

# The hash seed of a forked interpreter of the team of $key. Sets hash.
forked_hash() {
	api POST /v1/run '{"language":"python","code":"print(hash(\"atoll\") if \"memfd:zygote\" in open(\"/proc/self/maps\").read() else \"plain\")"}'
	hash=$(get .stdout)
	[ "$code" = 200 ] && [ "$hash" != plain ]
}

teams_do_not_share_a_zygote() {
	api PUT /v1/teams/other "{}"
	other=$("$ATOLL" key new other --team other --state "$state" --quiet)
	soon forked_hash
	first=$hash
	key=$other
	soon forked_hash
	[ "$hash" != "$first" ] || fail "one hash seed for two teams: $hash"
	other=$hash key=$viewer
	is "$(zygotes | wc -l)" 2
}

waits='import time\nprint(\"progress\")\nwhile True: time.sleep(1)'

# begin NAME BODY: in the background, with a time limit in which every interpreter of a slow machine can print.
begin() {
	mkdir "$1"
	(cd "$1" && api POST /v1/run "$(printf %s "$2" | jq -c '.timeout_ms = 6000')") &
}

output_printed_before_a_kill_is_returned() {
	# Forked and executed: the interpreter reads this variable at its start only.
	begin forked "{\"language\":\"python\",\"code\":\"$waits\"}"
	begin executed "{\"language\":\"python\",\"env\":{\"PYTHONUTF8\":\"1\"},\"code\":\"$waits\"}"
	names='forked executed'
	while IFS='|' read -r language program code; do
		[ -x "$program" ] || continue
		begin "$language" "$(jq -n --arg l "$language" --arg c "$code" '{language: $l, code: $c}')"
		names="$names $language"
	done <<-'END'
		ruby|/usr/bin/ruby|puts "progress"; sleep
		perl|/usr/bin/perl|print "progress\n"; sleep;
		lua|/usr/bin/lua|io.write("progress\n"); os.execute("sleep 100")
		php|/usr/bin/php|<?php echo "progress\n"; sleep(100);
		node|/usr/bin/node|console.log("progress"); setInterval(() => {}, 1000)
	END
	wait
	for name in $names; do
		is "$(jq -r '.cause + " " + .stdout' <"$name/body")" "wall progress" "$name: $(cat "$name/body")"
	done
}

output_arrives_while_the_program_runs() {
	for env in '{}' '{"PYTHONUTF8":"1"}'; do
		new_box '{"warm":"python"}'
		: >stream # the shell of the next line opens it later, and the first round has filled it
		curl -sS -N -H "X-API-Key: $key" -H 'Accept: text/event-stream' "$url/v1/boxes/$box/execs" \
			-d "{\"language\":\"python\",\"env\":$env,\"code\":\"$waits\"}" >stream &
		soon grep -q progress stream
		! grep -q '"exit"' stream || fail "the program has ended: $(cat stream)"
		api DELETE "/v1/boxes/$box"
		wait
	done
}

# A build with test hooks makes the next child fail when it finds a file of a certain name.
fault_used() {
	api POST /v1/boxes '{"warm":"python"}'
	is "$code" 201 "$body"
	api DELETE "/v1/boxes/$(get .id)"
	[ ! -e "$work/run/$1" ]
}

# The hash seed of the interpreter of a pipeline of the team of $key. Sets hash.
pipeline_hash() {
	api POST "/v1/pipelines?wait=1" '{"task":"run it","files":{"main.py":"print(hash(\"atoll\") if \"memfd:zygote\" in open(\"/proc/self/maps\").read() else \"plain\")\n"}}'
	hash=$(get .output)
	[ "$code" = 200 ] && [ "$hash" != plain ]
}

pipelines_of_two_teams_do_not_share_a_zygote() {
	api PUT /v1/teams/third "{}"
	third=$("$ATOLL" key new third --team third --state "$state" --quiet)
	soon pipeline_hash
	first=$hash key=$third
	soon pipeline_hash
	[ "$hash" != "$first" ] || fail "one hash seed for two teams: $hash"
	forked_hash
	is "$hash" "$(pipeline_hash && echo "$hash")" "a run and a pipeline of one team share one"
}

# The last test, because it replaces daemon and keeper by those of the build with test hooks.
failed_children_do_not_end_the_zygote() {
	[ -x "$ATOLL_TEST_BIN" ] || skip "no build with test hooks: $ATOLL_TEST_BIN"
	stop_daemon
	kill "$keeper_pid"
	ATOLL=$ATOLL_TEST_BIN
	start_daemon
	soon warm_python
	before=$(zygotes)
	for _ in 1 2; do
		for fault in zygote-fails zygote-dies; do
			: >"$work/run/$fault"
			soon fault_used $fault
		done
	done
	has "$(log)" "injected fault"
	has "$(log)" "child exited during its set-up"
	is "$(zygotes)" "$before" "$(log)"
	soon no_zombies
}

run_daemon_tests
