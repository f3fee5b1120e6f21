#!/bin/sh
# checkpoint_merge.sh - three-way merges of boxes: what both have changed, conflicts, and input that cannot be merged.
. "$(dirname "$0")/daemon.lib"
. "$libs/checkpoints.lib"

merge() { # BOX FROM [ON_CONFLICT]
	api POST "/v1/boxes/$1/merge" "$(jq -nc --arg f "$2" --arg c "${3:-fail}" '{from: $f, on_conflict: $c}')"
}
files() { # BOX: names with contents, sorted
	says "$1" 'find . -not -name ".*" -not -name big \( -type f -printf "%P=" -exec sh -c "tr \"\\n\" \" \" <\"\$1\" | cut -c 1-20" _ {} \; -o -type l -printf "%P->%l\n" -o -type d -printf "%P/\n" \) | sort'
}

changes_of_both_boxes_are_kept() {
	box
	says "$b" 'for i in 1 2 3 4 5; do echo $i >f$i; done; mkdir -p d/e gone; echo x >d/e/x; echo y >gone/y; echo h >h; ln h hard; head -c 300000 /dev/urandom >big' >/dev/null
	fork "$b"
	says "$b" 'echo ours >f1; rm f2; echo new >d/ours; mkdir both; echo o >both/o; echo same >same; chmod 700 d' >/dev/null
	says "$copy" 'echo theirs >f3; rm f4; mv f5 moved; echo new >d/e/theirs; rm -r gone; mkdir both; echo t >both/t; echo same >same; ln -s f1 link; echo hh >>hard; head -c 300000 /dev/zero >big; chmod 600 d/e/x; setfattr -n user.k -v v d/e/x 2>/dev/null; ln moved moved2' >/dev/null
	sum=$(says "$copy" 'sha256sum <big')
	merge "$b" "$copy"
	is "$code" 200 "$body"
	is "$(get '[.id, .generation, .merge.resolved, (.merge.conflicts | length)] | map(tostring) | join(" ")')" "$b 2 0 0"
	is "$(files "$b")" "both/
both/o=o 
both/t=t 
d/
d/e/
d/e/theirs=new 
d/e/x=x 
d/ours=new 
f1=ours 
f3=theirs 
h=h 
hard=h hh 
link->f1
moved2=5 
moved=5 
same=same " "$body"
	is "$(says "$b" 'sha256sum <big')" "$sum"
	is "$(says "$b" 'stat -c %a d d/e/x; stat -c %h moved; stat -c %U:%s f3')" "700
600
2
user:7"
	safety=$(get_safety "$body")
	merge "$b" "$copy" # nothing is left to do
	is "$(printf %s "$body" | jq -r '[.merge.changed, .merge.deleted, .merge.checkpoint] | map(tostring) | join(" ")')" "0 0 null" "$body"
	take "$b"
	api GET "/v1/checkpoints/$id/diff?to=$safety&path=f3"
	is "$(get '[.items[].path] | join(" ")')" "" "$body"
	api DELETE "/v1/boxes/$copy"
	api DELETE "/v1/boxes/$b"
}
get_safety() { printf %s "$1" | jq -r .merge.from; }

conflicts_change_nothing_unless_a_side_is_named() {
	box
	says "$b" 'echo 1 >a; echo 1 >b; mkdir d e; echo 1 >d/x; echo 1 >e/x; echo 1 >t' >/dev/null
	fork "$b"
	says "$b" 'echo ours >a; echo new >d/new; rm -r e; rm t; mkdir t; echo 1 >t/in' >/dev/null
	says "$copy" 'echo theirs >a; echo 2 >b; rm -r d; echo 2 >e/x; echo theirs >t' >/dev/null
	before=$(files "$b")
	merge "$b" "$copy"
	rejected 409 'same paths'
	is "$(get '[.conflicts[].path] | join(" ")')" "/home/user/a /home/user/d /home/user/e/x /home/user/t" "$body"
	is "$(files "$b")" "$before"
	api GET "/v1/boxes/$b"
	is "$(get .generation)" 1
	theirs=$copy
	fork "$b" '{"names":["ours"]}'
	ours=$copy
	merge "$ours" "$theirs" ours
	is "$code" 200 "$body"
	is "$(get .merge.resolved)" 4 "$body"
	is "$(files "$ours")" "a=ours 
b=2 
d/
d/new=new 
d/x=1 
t/
t/in=1 "
	merge "$b" "$theirs" theirs
	is "$code" 200 "$body"
	safety=$(get .safety)
	is "$(files "$b")" "a=theirs 
b=2 
e/
e/x=2 
t=theirs "
	api POST "/v1/boxes/$b/rollback" "{\"to\":\"$safety\"}"
	is "$(files "$b")" "$before"
	for x in "$b" "$ours" "$theirs"; do api DELETE "/v1/boxes/$x"; done
}

bad_merges_are_rejected() {
	box
	other=$b
	take "$other"
	unrelated=$id
	box
	says "$b" 'echo 1 >a' >/dev/null
	merge "$b" "$other"
	rejected 409 'no ancestor'
	merge "$b" "$unrelated"
	rejected 409 'no ancestor'
	merge "$b" "$b"
	rejected 409 itself
	merge "$b" none
	rejected 404 none
	api POST "/v1/boxes/$b/merge" '{}'
	rejected 400 from
	api POST "/v1/boxes/$b/merge" '{"from":7}'
	rejected 400 from
	merge "$b" "$other" maybe
	rejected 400 on_conflict
	api POST "/v1/boxes/$b/pause"
	merge "$b" "$other"
	rejected 409 paused
	api DELETE "/v1/boxes/$b"
	api DELETE "/v1/boxes/$other"
}

commands_and_tools_merge() {
	"$ATOLL" new mcli >/dev/null
	"$ATOLL" exec mcli -- sh -c 'echo 1 >f'
	"$ATOLL" fork mcli mleft >/dev/null
	"$ATOLL" exec mleft -- sh -c 'echo 2 >g; echo left >f'
	"$ATOLL" exec mcli -- sh -c 'echo ours >f'
	"$ATOLL" merge mcli mleft 2>said && fail 'a merge with a conflict'
	is "$(grep -c '/home/user/f' said)" 1 "$(cat said)"
	is "$("$ATOLL" merge mcli mleft --ours 2>said | sed 's/ [a-z2-7]*$//')" "undo: atoll rollback mcli"
	is "$(cat said)" "both: /home/user/f"
	is "$("$ATOLL" exec mcli -- cat f g)" "ours
2"
	"$ATOLL" merge mcli 2>said && fail 'without a second word'
	"$ATOLL" merge mcli mleft --ours --theirs 2>said && fail 'with both'
	"$ATOLL" exec mleft -- sh -c 'echo 3 >g'
	api POST /v1/boxes/mcli/tools/merge_box '{"from":"mleft","on_conflict":"theirs"}'
	is "$code" 200 "$body"
	is "$("$ATOLL" exec mcli -- cat f g)" "left
3" "$body"
	"$ATOLL" rm mcli mleft
}
run_daemon_tests
