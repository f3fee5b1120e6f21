#!/bin/sh
# checkpoints.sh - checkpoints of files: taken, listed, rolled back, forked, deleted; bad requests; restarts.
. "$(dirname "$0")/daemon.lib"
. "$libs/checkpoints.lib"

a_rollback_restores_files_and_keeps_the_box() {
	box '{"name":"undo","metadata":{"k":"v"}}'
	says "$b" 'echo one >a; mkdir d; echo f >d/f; ln -s a l' >/dev/null
	take "$b" '{"name":"first","note":"before"}'
	first=$id
	is "$(get '.files.changed > 0 and .frozen_us > 0 and .parent == null and .memory == null')" true "$body"
	says "$b" 'echo two >a; rm -r d; echo n >new; mkdir l2' >/dev/null
	take "$b"
	is "$(get .parent)" "$first"
	take "$b" # nothing has changed
	is "$(get '.same_as != null and .files.changed == 0')" true "$body"
	says "$b" 'echo three >a' >/dev/null
	api POST "/v1/boxes/$b/rollback" '{"to":"first"}'
	is "$code" 200 "$body"
	is "$(get '[.id,.name,.metadata.k,.state,.generation] | join(" ")')" "$b undo v running 2"
	safety=$(get .safety)
	is "$(says "$b" 'cat a d/f l; ls')" "one
f
one
a
d
l"
	says "$b" 'echo four >>a' >/dev/null
	take "$b" # of the second generation
	is "$(get '[.parent,.generation] | join(" ")')" "$first 2"
	api POST "/v1/boxes/$b/rollback" "{\"to\":\"$safety\",\"save\":false}"
	is "$code" 200 "$body"
	is "$(get .safety)" null
	is "$(says "$b" 'cat a; ls')" "three
a
l
l2
new"
	api DELETE "/v1/boxes/$b"
	api GET "/v1/boxes/$b/checkpoints" # they outlive the box
	is "$(get '[.items[] | select(.expires == null)] | map(.name) | join(" ")')" first "$body"
}

programs_end_with_cause_rollback() {
	box
	take "$b"
	api POST "/v1/boxes/$b/execs" '{"command":["sleep","100"],"background":true}'
	run=$(get .id)
	api POST "/v1/boxes/$b/rollback"
	is "$code" 200 "$body"
	is "$(get .running)" 0
	run_ended() { api GET "/v1/runs/$run" && [ "$(get .cause)" = rollback ]; }
	soon run_ended
	api GET "/v1/events?box=$b"
	api GET "/v1/boxes/$b/events"
	is "$(get '[.items[].type] | map(select(. == "checkpoint.created" or . == "box.rolled_back")) | length')" 3 "$body"
	api DELETE "/v1/boxes/$b"
}

forks_and_new_boxes_have_the_files() {
	box '{"env":{"E":"e"},"limits":{"pids":77}}'
	says "$b" 'echo x >f; chmod 640 f' >/dev/null
	take "$b"
	from=$id
	says "$b" 'echo y >f' >/dev/null
	api POST "/v1/boxes/$b/fork" '{"count":2,"names":["f1"],"metadata":{"n":"1"}}'
	is "$code" 201 "$body"
	is "$(get '[.items[].box | .limits.pids, .env.E, .metadata.n] | join(" ")')" "77 e 1 77 e 1"
	two=$(get '.items[1].box.id')
	is "$(says f1 'cat f; echo z >f')" y
	is "$(says "$two" 'cat f; stat -c %a f')" "y
640"
	api POST "/v1/boxes/f1/fork" '{}' # of a fork
	three=$(get '.items[0].box.id')
	is "$(says "$three" 'cat f')" z
	api POST "/v1/boxes/$b/fork" "{\"from\":\"$from\"}"
	four=$(get '.items[0].box.id')
	is "$(says "$four" 'cat f')" x
	api POST /v1/boxes "{\"checkpoint\":\"$from\"}"
	is "$code" 201 "$body"
	five=$(get .id)
	is "$(says "$five" 'cat f; echo $E')" "x
e"
	api GET "/v1/checkpoints/$from/files?path=f"
	is "$code $body" "200 x"
	api GET "/v1/checkpoints/$from/files?path=none"
	is "$code" 404
	for each in f1 "$two" "$three" "$four" "$five" "$b"; do api DELETE "/v1/boxes/$each"; done
}

bad_requests_are_rejected() {
	box
	take "$b" '{"name":"n"}'
	gone=$id
	api POST "/v1/boxes/$b/checkpoints" '{"name":"n"}'
	rejected 409 "named 'n' already"
	for count in 0 -1 101; do
		api POST "/v1/boxes/$b/fork" "{\"count\":$count}"
		rejected 400 count
	done
	api POST "/v1/boxes/$b/fork" '{"names":["a","b"]}'
	rejected 400 names
	api POST "/v1/boxes/$b/fork" '{"count":2,"names":["same","same"]}'
	rejected 409 same
	api POST "/v1/boxes/$b/rollback" '{"memory":true}'
	rejected 404 'has no process image'
	api POST /v1/boxes '{"memory":true}'
	rejected 400 checkpoint
	for action in checkpoints rollback fork; do
		own=$key key=$viewer
		api POST "/v1/boxes/$b/$action" '{}'
		key=$own
		is "$code" 403 "$body"
	done
	api DELETE "/v1/checkpoints/$gone"
	is "$code" 204
	for each in "$gone" aaaaaaaaaaaa n ../etc; do
		api POST "/v1/boxes/$b/rollback" "{\"to\":\"$each\"}"
		rejected 404 "no such checkpoint"
		api POST "/v1/boxes/$b/fork" "{\"from\":\"$each\"}"
		rejected 404 "no such checkpoint"
		api POST /v1/boxes "{\"checkpoint\":\"$each\"}"
		is "$code" 404 "$body"
	done
	api POST "/v1/boxes/$b/rollback" # its only checkpoint is deleted
	is "$code" 404 "$body"
	take "$b"
	api PUT /v1/teams/other '{}'
	own=$key key=$("$ATOLL" key new foreign --team other --state "$gateway_state" --quiet)
	api GET "/v1/checkpoints/$id"
	key=$own
	is "$code" 404
	api POST /v1/boxes "{\"checkpoint\":\"$id\",\"template\":\"base\"}"
	rejected 400 template
	api POST "/v1/boxes/$b/pause" '{}'
	for action in checkpoints rollback fork; do
		api POST "/v1/boxes/$b/$action" '{}'
		rejected 409 paused
	done
	api POST "/v1/boxes/$b/resume"
	api POST "/v1/boxes/$b/pause" '{"memory":false}' # stopped: its files are there
	api POST "/v1/boxes/$b/rollback" "{\"to\":\"$id\"}"
	is "$code $(get .state)" "200 running" "$body"
	api DELETE "/v1/boxes/$b"
}

a_fork_of_a_box_with_a_volume_or_with_a_name_that_exists_is_rejected() {
	api POST /v1/volumes '{"name":"data"}'
	is "$code" 201 "$body"
	box '{"name":"taken","volumes":[{"name":"data","path":"/data"}]}'
	api POST "/v1/boxes/$b/fork" '{}'
	rejected 409 'only one box can write to it'
	api POST "/v1/boxes/$b/fork" '{"volumes":"write"}'
	rejected 400 volumes
	api POST "/v1/boxes/$b/fork" '{"volumes":"drop","names":["taken"]}'
	rejected 409 taken
	take "$b"
	api POST "/v1/boxes/$b/rollback" '{}'
	rejected 409 volume
	fork "$b" '{"volumes":"drop","names":["free"]}'
	is "$(says "$copy" 'ls -d /data 2>&1 | wc -l; ls -A /data 2>/dev/null')" 1
	api DELETE "/v1/boxes/$copy"
	api DELETE "/v1/boxes/$b"
	api DELETE /v1/volumes/data
}

# DEEP=50: as many generations of forks. 20 need a merge of the chain.
a_fork_of_a_fork_has_all_files_and_changes_none_of_its_ancestors() {
	box
	first=$b
	for deep in $(seq "${DEEP:-20}"); do
		says "$b" "echo $deep >>all; echo $deep >$deep" >/dev/null
		fork "$b"
		[ "$b" = "$first" ] || api DELETE "/v1/boxes/$b"
		b=$copy
	done
	is "$(says "$b" "cat \$(seq ${DEEP:-20}) | cmp - all && wc -l <all")" "${DEEP:-20}"
	is "$(says "$first" 'cat all; ls')" "1
1
all"
	api DELETE "/v1/boxes/$b"
	api DELETE "/v1/boxes/$first"
}

a_deleted_checkpoint_leaves_the_tree_and_its_files_when_nothing_needs_them() {
	box
	says "$b" 'echo 1 >f' >/dev/null
	take "$b"
	one=$id
	says "$b" 'echo 2 >f' >/dev/null
	take "$b"
	two=$id
	says "$b" 'echo 3 >f' >/dev/null
	take "$b"
	three=$id
	api DELETE "/v1/checkpoints/$two"
	api GET "/v1/boxes/$b/checkpoints?tree=true"
	is "$(get '.items[0].id + " " + .items[0].children[0].id')" "$one $three"
	[ -e "$state/checkpoints/layers/$two.erofs" ] || is missing "a layer that $three needs"
	api POST "/v1/boxes/$b/rollback" "{\"to\":\"$three\",\"save\":false}"
	is "$(says "$b" 'cat f')" 3
	api PATCH "/v1/checkpoints/$one" '{"name":"kept","note":"x","pin":true}'
	is "$(get '[.name,.note,.pinned] | join(" ")')" "kept x true"
	api DELETE "/v1/boxes/$b"
	api DELETE "/v1/checkpoints/$three"
	both_dropped() { ! ls "$state/checkpoints/layers/$two.erofs" "$state/checkpoints/layers/$three.erofs" 2>/dev/null | grep -q .; }
	soon both_dropped
	[ -e "$state/checkpoints/layers/$one.erofs" ] || is missing "the layer of $one"
}

a_rollback_survives_kill_9_of_the_server() {
	box
	says "$b" 'echo 1 >f' >/dev/null
	take "$b"
	says "$b" 'echo 2 >f' >/dev/null
	api POST "/v1/boxes/$b/rollback" "{\"to\":\"$id\"}"
	safety=$(get .safety)
	kill -9 "$(server_pid)"
	again() { api GET "/v1/boxes/$b" && [ "$code" = 200 ]; }
	soon again
	is "$(says "$b" 'cat f')" 1
	take "$b"
	api POST "/v1/boxes/$b/rollback" "{\"to\":\"$safety\"}"
	is "$code $(get .generation)" "200 3" "$body"
	is "$(says "$b" 'cat f')" 2
	api DELETE "/v1/boxes/$b"
	is "$code" 204
}

files_without_a_row_are_removed_after_an_hour() {
	box
	says "$b" 'echo 1 >f' >/dev/null
	take "$b"
	layers=$state/checkpoints/layers
	for each in aaaaaaaaaaaa bbbbbbbbbbbb; do echo x >"$layers/$each.erofs"; echo x >"$state/checkpoints/index/$each"; done
	touch -d '2 hours ago' "$layers/aaaaaaaaaaaa.erofs" "$state/checkpoints/index/aaaaaaaaaaaa" "$layers/$id.erofs" "$state/checkpoints/index/$id"
	kill -9 "$(server_pid)"
	old_removed() { [ ! -e "$layers/aaaaaaaaaaaa.erofs" ] && [ ! -e "$state/checkpoints/index/aaaaaaaaaaaa" ]; }
	soon old_removed
	[ -e "$layers/bbbbbbbbbbbb.erofs" ] || is removed "a file of the last hour"
	[ -e "$layers/$id.erofs" ] || is removed "a file with a row"
	rm "$layers/bbbbbbbbbbbb.erofs" "$state/checkpoints/index/bbbbbbbbbbbb"
	again() { api GET "/v1/boxes/$b" && [ "$code" = 200 ]; }
	soon again
	api POST "/v1/boxes/$b/rollback" "{\"to\":\"$id\"}"
	is "$(says "$b" 'cat f')" 1
	api DELETE "/v1/boxes/$b"
}

requests_at_once_with_the_end_of_the_box_are_all_answered() {
	send() { # METHOD PATH FILE: the status of the answer
		curl -sS --max-time 60 -o /dev/null -w '%{http_code}\n' -X "$1" -H "X-API-Key: $key" -H 'Content-Type: application/json' -d '{}' "$url/v1/boxes/$b$2" >"$3" || :
	}
	for round in 1 2 3 4 5; do
		box
		says "$b" 'seq 30000 | split -l 10 -a 4' >/dev/null # so that a capture takes a while
		pids=
		for each in "POST /checkpoints 1" "POST /checkpoints 3" "POST /rollback 2" "POST /rollback 4" "POST /fork 5" "DELETE / 6"; do
			set -- $each
			path=$2
			[ "$path" != / ] || path=
			send "$1" "$path" "status.$3" &
			pids="$pids $!"
		done
		wait $pids
		for each in 1 2 3 4 5; do
			case $(cat status.$each) in 200 | 201 | 404 | 409) ;; *) is "$(cat status.*)" "answers 200, 201, 404 or 409" ;; esac
		done
		is "$(cat status.6)" 204 "$(cat status.*)"
		api GET "/v1/boxes/$b"
		is "$(get .state)" deleted "$body"
	done
	api GET /v1/boxes
	for each in $(get '.items[].id'); do api DELETE "/v1/boxes/$each"; done # forks that were faster
	boxless() { [ "$(curl -sS -H "X-API-Key: $key" "$url/metrics" | sed -n 's/^atoll_boxes //p')" = 0 ]; }
	soon boxless
}

commands_take_list_roll_back_and_fork() {
	"$ATOLL" new cli >/dev/null
	"$ATOLL" exec cli -- sh -c 'echo 1 >f'
	id=$("$ATOLL" checkpoint cli good --note text --pin)
	"$ATOLL" exec cli -- sh -c 'echo 2 >f'
	"$ATOLL" checkpoint cli >second
	"$ATOLL" checkpoints cli | awk '{print $1, $2}' >listed
	is "$(cat listed)" "$id good
$(cat second) -"
	"$ATOLL" rollback cli good >undo
	is "$("$ATOLL" exec cli -- cat f)" 1
	is "$(cut -d ' ' -f 1-4 undo)" "undo: atoll rollback cli"
	sh -c "$(sed "s|undo: atoll|$ATOLL|" undo)" >/dev/null
	is "$("$ATOLL" exec cli -- cat f)" 2
	"$ATOLL" fork cli left right --from good >ids
	is "$("$ATOLL" exec left -- cat f)$("$ATOLL" exec right -- cat f)" 11
	"$ATOLL" checkpoint rm "$(cat second)"
	is "$("$ATOLL" checkpoints cli --json | jq '[.. | .id? // empty] | index("'"$(cat second)"'")')" null
	"$ATOLL" rollback cli none 2>err && is rolled back
	grep -q 'no such checkpoint' err || is "$(cat err)" "no such checkpoint"
	"$ATOLL" rm cli left right
}

tools_take_list_roll_back_and_fork() {
	tool() { # NAME ARGUMENTS
		api POST "/v1/boxes/$b/tools/$1" "$2"
		is "$code" 200 "$body"
	}
	box
	says "$b" 'echo 1 >f' >/dev/null
	tool checkpoint '{"name":"t"}'
	says "$b" 'echo 2 >f' >/dev/null
	tool list_checkpoints '{}'
	is "$(get '.data.items[0].name')" t "$body"
	tool rollback '{"to":"t"}'
	is "$(says "$b" 'cat f')" 1
	tool fork_box '{"count":2}'
	is "$(get '.data.boxes | length')" 2 "$body"
	for each in $(get '.data.boxes[]') "$b"; do api DELETE "/v1/boxes/$each"; done
}

run_daemon_tests
