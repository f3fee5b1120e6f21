#!/bin/sh
# snapshots.sh - snapshots of the files of a box as a base for new boxes: /v1 and the E2B API.
. "$(dirname "$0")/daemon.lib"

# run COMMAND: in $box; sets out.
run() {
	api POST "/v1/boxes/$box/execs" "$(jq -n --arg c "$1" '{command: $c}')"
	is "$code" 200 "$body"
	is "$(get .status)" 0 "$body"
	out=$(get .stdout)
}
read_file() { api GET "/v1/boxes/$box/files?path=$1" && echo "$body"; }
put() { api PUT "/v1/boxes/$box/files?path=$1" "$2"; }

a_box_starts_with_the_files_of_a_snapshot() {
	new_box
	old=$box
	run 'mkdir -p d/e; echo hello >d/e/f; ln -s f d/e/l; chmod 640 d/e/f; touch -d @1000000000 d/e/f; echo t >/tmp/t; ln d/e/f d/e/hard; mkfifo d/p; printf "%01000d" 0 >"d/$(printf "x\377y")"'
	api POST /v1/snapshots "{\"box\":\"$old\"}"
	is "$code" 201 "$body"
	snap=$(get .id)
	is "$(get .box)" "$old"
	[ "$(get .bytes)" -gt 100 ] || fail "$body"
	run 'echo later >d/e/f'
	new_box "{\"snapshot\":\"$snap\"}"
	is "$(read_file d/e/f)" hello
	is "$(read_file d/e/l)" hello
	is "$(read_file /tmp/t)" t
	run 'stat -c "%a %U %Y %h" d/e/f; stat -c %F d/p; ls d | wc -l'
	is "$out" "$(printf '640 user 1000000000 2\nfifo\n3')" "$body"
	api DELETE "/v1/boxes/$old"
	api DELETE "/v1/boxes/$box"
	new_box "{\"snapshot\":\"$snap\"}" # the snapshot exists after its box was deleted
	is "$(read_file d/e/f)" hello
	api DELETE "/v1/boxes/$box"
	api DELETE "/v1/snapshots/$snap"
	is "$code" 204 "$body"
	api POST /v1/boxes "{\"snapshot\":\"$snap\"}"
	is "$code" 404 "$body"
	is "$(find "$state" -name '*.snap' -o -name '*.part' | wc -l)" 0
}

# Under memory pressure the kernel forgets inodes, and then folders of an overlay get other numbers while tar unpacks them.
a_snapshot_is_restored_while_the_kernel_forgets_inodes() {
	[ -w /proc/sys/vm/drop_caches ] || skip "not writable here"
	new_box
	run 'for i in $(seq 20); do mkdir -p d$i/e/f; ln -s /etc/passwd d$i/l; ln -s ../x d$i/e/l; seq 2000 >d$i/e/f/g; done; touch -d @1000000000 d1/e d20'
	api POST /v1/snapshots "{\"box\":\"$box\"}"
	is "$code" 201 "$body"
	snap=$(get .id)
	(while sleep 0.01; do echo 2; done >/proc/sys/vm/drop_caches) &
	forgetting=$!
	answers='' made=$box
	for _ in 1 2 3 4 5; do
		api POST /v1/boxes "{\"snapshot\":\"$snap\"}"
		answers="$answers$code "
		if [ "$code" = 201 ]; then made="$made $(get .id)"; else answers="$answers$body"; fi
	done
	kill $forgetting
	is "$answers" "201 201 201 201 201 "
	box=${made##* }
	run 'stat -c %Y d1/e d20; readlink d7/l d7/e/l'
	is "$out" "$(printf '1000000000\n1000000000\n/etc/passwd\n../x')"
	for box in $made; do api DELETE "/v1/boxes/$box"; done
	api DELETE "/v1/snapshots/$snap"
}

a_name_selects_its_newest_snapshot() {
	new_box
	put f one
	api POST /v1/snapshots "{\"box\":\"$box\",\"name\":\"Base-1:v1\"}"
	is "$code" 201 "$body"
	is "$(get .name):$(get .tag)" base-1:v1
	put f two
	api POST /v1/snapshots "{\"box\":\"$box\",\"name\":\"base-1:v1\"}"
	is "$code" 201 "$body"
	api DELETE "/v1/boxes/$box"
	new_box '{"snapshot":"base-1:v1"}'
	is "$(read_file f)" two
	api DELETE "/v1/boxes/$box"
	api GET "/v1/snapshots?name=base-1"
	is "$(get '.items | length')" 2
	api GET "/v1/snapshots?name=base-1:v2"
	is "$(get '.items | length')" 0
	for _ in 1 2; do
		api DELETE /v1/snapshots/base-1:v1
		is "$code" 204
	done
	api DELETE /v1/snapshots/base-1:v1
	is "$code" 404
}

an_invalid_snapshot_name_is_rejected() {
	new_box
	for name in 'a b' '/x' 'other/x' 'x:' 'ä' '../../x'; do
		api POST /v1/snapshots "$(jq -n --arg b "$box" --arg n "$name" '{box: $b, name: $n}')"
		has "400 404" "$code" "$name: $body"
	done
	api POST /v1/snapshots '{"box":"missing"}'
	is "$code" 404
	api POST /v1/snapshots '{}'
	is "$code" 400
	api DELETE "/v1/boxes/$box"
}

snapshots_of_another_team_are_not_found() {
	new_box
	api POST /v1/snapshots "{\"box\":\"$box\",\"name\":\"ours\"}"
	snap=$(get .id)
	api PUT /v1/teams/others '{}'
	theirs=$("$ATOLL" key new other --team others --state "$state" --quiet)
	ours=$key
	key=$theirs
	api GET /v1/snapshots
	is "$(get '.items | length')" 0
	api GET "/v1/snapshots/$snap"
	is "$code" 404
	api POST /v1/boxes "{\"snapshot\":\"$snap\"}"
	is "$code" 404
	api DELETE "/v1/snapshots/$snap"
	is "$code" 404
	key=$ours
	api DELETE "/v1/snapshots/$snap"
	is "$code" 204
	api DELETE "/v1/boxes/$box"
}

a_snapshot_over_the_disk_limit_leaves_no_box() {
	new_box
	run 'head -c 12000000 /dev/urandom >big'
	api POST /v1/snapshots "{\"box\":\"$box\"}"
	is "$code" 201 "$body"
	snap=$(get .id)
	api DELETE "/v1/boxes/$box"
	api POST /v1/boxes "{\"snapshot\":\"$snap\",\"limits\":{\"disk\":8000000}}"
	has "$body" "does not fit"
	api GET /v1/boxes
	is "$(get '[.items[] | select(.state == "running")] | length')" 0 "$body"
	api DELETE "/v1/snapshots/$snap"
}

# Its files are layers below the disk of the box, so they are not part of the limit.
a_snapshot_that_is_a_checkpoint_fits_a_box_with_a_smaller_disk() {
	[ "${ATOLL_TIER:-container}" = container ] || skip "boxes with an engine have no checkpoints"
	new_box
	run 'head -c 12000000 /dev/urandom >big; md5sum <big'
	sum=$out
	api POST /v1/snapshots "{\"box\":\"$box\",\"packed\":false}"
	is "$code" 201 "$body"
	snap=$(get .id)
	api DELETE "/v1/boxes/$box"
	new_box "{\"snapshot\":\"$snap\",\"limits\":{\"disk\":8000000}}"
	run 'md5sum <big; rm big; ls'
	is "$out" "$sum"
	api DELETE "/v1/boxes/$box"
	api DELETE "/v1/snapshots/$snap"
}

a_snapshot_that_is_a_checkpoint_has_the_packages_of_its_box() {
	[ "${ATOLL_TIER:-container}" = container ] || skip "boxes with an engine have no checkpoints"
	new_box '{"env":{"A":"1","B":"1"}}'
	api POST /v1/snapshots "{\"box\":\"$box\",\"packed\":false}"
	snap=$(get .id)
	api DELETE "/v1/boxes/$box"
	for other in '"template":"none"' '"packages":{"pip":["x"]}' '"warm":"python"'; do
		api POST /v1/boxes "{\"snapshot\":\"$snap\",$other}"
		has "400 404 422" "$code" "$other: $body"
	done
	new_box "{\"snapshot\":\"$snap\",\"template\":\"base\",\"env\":{\"B\":\"2\"}}"
	run 'echo $A $B'
	is "$out" "1 2"
	api DELETE "/v1/boxes/$box"
	api DELETE "/v1/checkpoints/$snap"
	is "$code" 409 "$body"
	has "$body" "DELETE /v1/snapshots"
	api PATCH "/v1/checkpoints/$snap" '{"pin":false}'
	new_box "{\"snapshot\":\"$snap\"}"
	api DELETE "/v1/boxes/$box"
	api DELETE "/v1/snapshots/$snap"
	is "$code" 204 "$body"
	api GET "/v1/checkpoints/$snap"
	is "$code" 404 "$body"
	dropped() { [ ! -e "$state/checkpoints/layers/$snap.erofs" ] && [ ! -e "$state/checkpoints/index/$snap" ]; }
	soon dropped
}

a_packer_that_programs_of_the_box_stop_is_a_conflict() {
	new_box
	run 'head -c 60000000 /dev/urandom >big'
	api POST "/v1/boxes/$box/execs" '{"command": "until pkill -9 -x tar; do :; done", "user": "root", "background": true}'
	is "$code" 201 "$body"
	api POST /v1/snapshots "{\"box\":\"$box\",\"packed\":true}"
	is "$code $(get .error.code)" "409 conflict" "$body"
	api DELETE "/v1/boxes/$box"
}

a_client_disconnect_leaves_no_partial_snapshot() {
	new_box
	run 'head -c 30000000 /dev/urandom >big'
	curl -sS --max-time 0.15 -o /dev/null -H "X-API-Key: $key" -H 'Content-Type: application/json' -d "{\"box\":\"$box\"}" "$url/v1/snapshots" 2>/dev/null || :
	no_parts() { [ "$(find "$state" -name '*.part' | wc -l)" = 0 ]; }
	soon no_parts
	api DELETE "/v1/boxes/$box"
}

# ---- the E2B API ----
sandbox() {
	api POST /v2/sandboxes "${1:-{\"templateID\":\"base\"\}}"
	is "$code" 201 "$body"
	box=$(get .sandboxID)
}

an_e2b_snapshot_is_a_template() {
	sandbox
	old=$box
	put f kept
	api POST "/sandboxes/$old/snapshots" '{}'
	is "$code" 201 "$body"
	snap=$(get .snapshotID)
	has "$snap" :default
	is "$(get '.names | length')" 0
	api POST "/sandboxes/$old/snapshots" '{"name":"mine"}'
	is "$(get .snapshotID)" default/mine:default
	is "$(get '.names[0]')" default/mine
	api GET "/snapshots?sandboxID=$old"
	is "$(get length)" 2 "$body"
	api GET "/snapshots?name=mine"
	is "$(get length)" 1
	api GET "/snapshots?limit=1&sandboxID=$old"
	is "$(get length)" 1
	next=$(sed -n 's/^x-next-token: \([^ ]*\)\r$/\1/ip' head)
	api GET "/snapshots?limit=1&sandboxID=$old&nextToken=$next"
	is "$(get length)" 1
	lacks "$(cat head)" -Next-Token
	api GET "/snapshots?name=missing"
	is "$(get length)" 0
	for t in "$snap" default/mine:default mine; do
		sandbox "{\"templateID\":\"$t\"}"
		is "$(read_file f)" kept "$t"
		api DELETE "/sandboxes/$box"
	done
	api DELETE "/templates/default%2Fmine:default"
	is "$code" 204 "$body"
	api DELETE "/templates/default%2Fmine:default"
	is "$code" 404 "$body"
	api DELETE "/templates/$snap"
	is "$code" 204 "$body"
	api GET "/snapshots?sandboxID=$old"
	is "$(get length)" 0
	api DELETE "/sandboxes/$old"
}

a_fork_has_the_files_but_not_the_token() {
	sandbox
	old=$box
	token=$(get .envdAccessToken)
	put f forked
	api POST "/sandboxes/$old/fork" '{"count":3,"timeout":60}'
	is "$code" 201 "$body"
	is "$(get length)" 3 "$body"
	cp body forks
	for i in 0 1 2; do
		box=$(jq -r ".[$i].sandbox.sandboxID" <forks)
		[ "$box" != "$old" ] || fail "a fork is itself"
		[ "$(jq -r ".[$i].sandbox.envdAccessToken" <forks)" != "$token" ] || fail "the same token"
		is "$(read_file f)" forked
		api DELETE "/sandboxes/$box"
		is "$code" 204
	done
	api GET /snapshots?sandboxID="$old"
	is "$(get length)" 0
	is "$(find "$state" -name '*.snap' | wc -l)" "$(api GET /v1/snapshots && get '[.items[] | select(.packed)] | length')"
	api POST "/sandboxes/$old/pause"
	api POST "/sandboxes/$old/fork" '{}'
	is "$code" 409 "$body"
	api POST "/sandboxes/$old/snapshots" '{}'
	is "$code" 409 "$body"
	api DELETE "/sandboxes/$old"
	api POST "/sandboxes/$old/fork" '{}'
	is "$code" 404 "$body"
}

run_daemon_tests
