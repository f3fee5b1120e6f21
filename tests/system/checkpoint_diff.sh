#!/bin/sh
# checkpoint_diff.sh - what differs between checkpoints, and boxes that take over the files of their forks.
. "$(dirname "$0")/daemon.lib"
. "$libs/checkpoints.lib"

list() { # the last answer, without folders
	get '.items[] | select((.to.type // .from.type) != "folder") | .change + " " + (if .was then .was + " " else "" end) + .path'
}

a_diff_lists_what_has_changed() {
	box
	says "$b" 'echo same >same; echo 1 >changed; echo 2 >deleted; echo moved >old; echo 3 >mode; echo 4 >type; mkdir d; echo 5 >d/gone' >/dev/null
	take "$b"
	one=$id
	says "$b" 'echo 11 >changed; rm deleted; mv old new; chmod 600 mode; rm type; ln -s x type; rm -r d; echo 6 >added; printf x >"$(printf "a\nb\377")"' >/dev/null
	take "$b"
	two=$id
	api GET "/v1/checkpoints/$one/diff?to=$two"
	is "$code" 200 "$body"
	is "$(list | sort)" "$(printf '%b\n' 'added /home/user/a' 'added /home/user/added' 'b\357\277\275' 'changed /home/user/changed' 'deleted /home/user/d/gone' 'deleted /home/user/deleted' 'mode /home/user/mode' 'renamed /home/user/old /home/user/new' 'type /home/user/type' | sort)" "$body"
	is "$(get '.items[] | select(.path == "/home/user/mode") | .from.mode + " " + .to.mode')" "0644 0600"
	is "$(get '.items[] | select(.path == "/home/user/changed") | .to.sha256')" "$(echo 11 | sha256sum | cut -d ' ' -f 1)"
	api GET "/v1/checkpoints/$two/diff?to=$one"
	is "$(get '[.items[] | select(.path == "/home/user/deleted" or .path == "/home/user/added") | .change] | join(" ")')" "deleted added"
	api GET "/v1/checkpoints/$one/diff?to=$two&path=d"
	is "$(get '[.items[].path] | join(" ")')" "/home/user/d /home/user/d/gone" "$body"
	api GET "/v1/checkpoints/$one/diff?to=$two&limit=1"
	is "$(get '(.items | length | tostring) + " " + (.left_out > 1 | tostring)')" "1 true"
	api GET "/v1/checkpoints/$two/diff?to=$two"
	is "$(get '.items | length')" 0
	says "$b" 'echo now >same' >/dev/null
	api GET "/v1/checkpoints/$two/diff" # the present files
	is "$(list)" 'changed /home/user/same' "$body"
	api DELETE "/v1/boxes/$b"
	api GET "/v1/checkpoints/$two/diff"
	rejected 409 ended
}

a_diff_with_content_has_the_texts_of_changed_files() {
	box
	says "$b" 'printf "1\n2\n3\n" >text; printf "a\0b" >binary; seq 1 20000 >large; echo gone >deleted; echo x >mode; echo s >secret; mkdir -m 700 d' >/dev/null
	take "$b"
	one=$id
	says "$b" 'printf "1\ntwo\n3\n" >text; printf "a\0c" >binary; seq 2 20000 >large; rm deleted; chmod 600 mode; echo new >added; ln -s text link' >/dev/null
	api POST "/v1/boxes/$b/execs" '{"command":"echo 127.0.0.1 me >>/etc/hosts; echo t >/home/user/secret; chmod 600 /home/user/secret; chown root /home/user/secret","user":"root"}'
	is "$(get .exit_code)" 0 "$body"
	take "$b"
	api GET "/v1/checkpoints/$one/diff?to=$id&content=1"
	is "$code" 200 "$body"
	text_of() { get ".items[] | select(.path == \"$1\") | .text_omitted // .text // \"none\""; }
	is "$(text_of /home/user/text)" "@@ -1,3 +1,3 @@
 1
-2
+two
 3"
	is "$(text_of /home/user/binary) $(text_of /home/user/large) $(text_of /home/user/mode) $(text_of /home/user/link)" "binary size none none" "$body"
	is "$(text_of /home/user/added)" "@@ -0,0 +1 @@
+new"
	is "$(text_of /home/user/deleted)" "@@ -1 +0,0 @@
-gone"
	is "$(text_of /home/user/secret)" unreadable "$body" # to the user of the box
	text_of /etc/hosts | grep -qx '+127.0.0.1 me' || fail "$body" # a file of the template
	ATOLL_KEY=$key "$ATOLL" -H "$url" diff "$b" "$one" "$id" --text >patch
	grep -qx -e '--- a/home/user/text' patch && grep -qx -e '+two' patch && grep -qx -e '--- /dev/null' patch || fail "$(cat patch)"
	boxes_ended() { api GET /v1/boxes && [ "$(get '.items | length')" = 1 ]; }
	soon boxes_ended
	api GET "/v1/checkpoints/$id/diff?to=$id&content=1"
	is "$code $(get '.items | length')" "200 0" "$body"
	api DELETE "/v1/boxes/$b"
}

a_diff_reaches_over_rollbacks_and_forks() {
	box
	says "$b" 'echo 1 >a; echo 1 >b' >/dev/null
	take "$b"
	base=$id
	fork "$b" "{\"from\":\"$base\"}"
	says "$b" 'echo 2 >a; mkdir new; echo x >new/x' >/dev/null
	take "$b"
	ours=$id
	says "$copy" 'echo 3 >b' >/dev/null
	api POST "/v1/boxes/$copy/execs" '{"command":"rm /etc/pip.conf; echo h >>/etc/hosts","user":"root"}'
	is "$(get .exit_code)" 0 "$body"
	take "$copy"
	theirs=$id
	api GET "/v1/checkpoints/$ours/diff?to=$theirs"
	is "$(list | sort)" "$(printf '%b\n' 'changed /home/user/a' 'changed /home/user/b' 'deleted /etc/pip.conf' 'changed /etc/hosts' 'deleted /home/user/new/x' | sort)" "$body"
	api POST "/v1/boxes/$b/rollback" "{\"to\":\"$base\"}"
	says "$b" 'rm a' >/dev/null
	take "$b"
	api GET "/v1/checkpoints/$ours/diff?to=$id"
	is "$(list)" 'deleted /home/user/a
deleted /home/user/new/x' "$body"
	api DELETE "/v1/boxes/$copy"
	api DELETE "/v1/boxes/$b"
}

a_box_takes_over_the_files_of_its_fork() {
	box '{"name":"source"}'
	says "$b" 'echo 1 >a; echo 1 >b' >/dev/null
	fork "$b"
	first=$copy
	fork "$first" # of a fork
	says "$copy" 'echo 2 >a; rm b' >/dev/null
	says "$b" 'echo 3 >a' >/dev/null
	api POST "/v1/boxes/$b/promote" "{\"from\":\"$copy\"}"
	is "$code" 200 "$body"
	is "$(get '[.id,.name,.state,.generation] | join(" ")')" "$b source running 2"
	safety=$(get .safety)
	is "$(says "$b" 'cat a; ls')" "2
a"
	is "$(says "$copy" 'cat a')" 2 # the fork stays
	api GET "/v1/boxes/$b/events"
	is "$(get '[.items[].type] | index("box.promoted") != null')" true "$body"
	api POST "/v1/boxes/$b/rollback" "{\"to\":\"$safety\",\"save\":false}"
	is "$(says "$b" 'cat a b')" "3
1"
	api POST "/v1/boxes/$b/promote" "{\"from\":\"$b\"}"
	rejected 409 own
	api POST "/v1/boxes/$b/promote" '{"from":"none"}'
	rejected 404 from
	api POST "/v1/boxes/$b/promote" '{}'
	rejected 400 from
	api POST "/v1/boxes/$first/promote" "{\"from\":\"$b\"}" # the other way
	rejected 409 'no fork'
	api POST "/v1/boxes/$copy/pause"
	api POST "/v1/boxes/$b/promote" "{\"from\":\"$copy\"}"
	rejected 409 paused
	api POST "/v1/boxes/$b/pause"
	api POST "/v1/boxes/$b/promote" "{\"from\":\"$first\"}"
	rejected 409 paused
	own=$key key=$viewer
	api POST "/v1/boxes/$b/promote" "{\"from\":\"$first\"}"
	key=$own
	is "$code" 403 "$body"
	box
	api POST "/v1/boxes/$b/promote" "{\"from\":\"$first\"}"
	rejected 409 'no fork'
	for each in source "$first" "$copy" "$b"; do api DELETE "/v1/boxes/$each"; done
}

bad_requests_for_a_diff_are_rejected() {
	box
	take "$b"
	for each in none aaaaaaaaaaaa ../x; do
		api GET "/v1/checkpoints/$id/diff?to=$each"
		rejected 404 'no such checkpoint'
	done
	api GET "/v1/checkpoints/none/diff"
	is "$code" 404
	for each in 0 -1 10001 x; do
		api GET "/v1/checkpoints/$id/diff?limit=$each"
		rejected 400 limit
	done
	api GET "/v1/checkpoints/$id/diff?path=$(head -c 5000 /dev/zero | tr '\0' x)"
	rejected 400 path
	own=$key key=$viewer
	api GET "/v1/checkpoints/$id/diff?to=$id"
	is "$code" 200 "$body"
	api GET "/v1/checkpoints/$id/diff"
	rejected 403 viewer
	key=$own
	printf forged >"$state/checkpoints/index/$id" # only root can
	api GET "/v1/checkpoints/$id/diff?to=$id"
	is "$code" 400 "$body"
	api DELETE "/v1/boxes/$b"
}

commands_and_tools_compare_and_promote() {
	"$ATOLL" new cli >/dev/null
	"$ATOLL" exec cli -- sh -c 'echo 1 >f; echo x >g'
	one=$("$ATOLL" checkpoint cli good)
	"$ATOLL" exec cli -- sh -c 'echo 2 >f; mv g h'
	"$ATOLL" checkpoint cli >two
	is "$("$ATOLL" diff cli good)" "M /home/user/f
R /home/user/g -> /home/user/h"
	is "$("$ATOLL" diff cli "$(cat two)" "$one" -q)" "/home/user/f
/home/user/g"
	"$ATOLL" diff cli good none 2>err && is compared "an error"
	grep -q 'no such checkpoint' err || is "$(cat err)" "no such checkpoint"
	api POST /v1/boxes/cli/tools/diff_checkpoints '{"from":"good"}'
	is "$code" 200 "$body"
	is "$(get '[.data.items[].path] | join(" ")')" "/home/user/f /home/user/h" "$body"
	"$ATOLL" fork cli left >/dev/null
	"$ATOLL" exec left -- sh -c 'echo 3 >f'
	"$ATOLL" promote cli left >undo
	is "$("$ATOLL" exec cli -- cat f)" 3
	sh -c "$(sed "s|undo: atoll|$ATOLL|" undo)" >/dev/null
	is "$("$ATOLL" exec cli -- cat f)" 2
	"$ATOLL" promote left cli 2>err && is promoted "an error"
	grep -q 'no fork' err || is "$(cat err)" "no fork"
	"$ATOLL" rm cli left
}

run_daemon_tests
