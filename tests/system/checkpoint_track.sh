#!/bin/sh
# checkpoint_track.sh - change tracking of boxes: which checkpoints have examined only what was touched, and that they are whole.
. "$(dirname "$0")/daemon.lib"
. "$(dirname "$0")/checkpoints.lib"

tracked() { get .tracked; }
copied() { # BOX: a box of the last checkpoint has the same files
	list='find . -type f -exec sha256sum {} + | sort; find . | sort'
	want=$(says "$1" "$list")
	api POST /v1/boxes "{\"checkpoint\":\"$id\"}"
	is "$code" 201 "$body"
	other=$(get .id)
	is "$(says "$other" "$list")" "$want"
	api DELETE "/v1/boxes/$other"
}

only_what_was_touched_is_examined() {
	box '{"checkpoints":{"track":true}}'
	is "$(get .checkpoints.track)" true "$body"
	says "$b" 'mkdir -p a/b c; for i in $(seq 300); do echo $i >a/$i; done; echo x >a/b/x; ln a/b/x c/link' >/dev/null
	take "$b"
	is "$(tracked)" null "$body"
	says "$b" 'echo new >a/7; rm a/8; mv a/b d; echo y >>c/link; mkdir e; chmod 600 a/9; ln -s a f' >/dev/null
	take "$b"
	is "$(tracked)" true "$body"
	is "$(get '.files.deleted')" 2 "$body" # a/8 and a/b
	copied "$b"
	take "$b" # nothing has changed
	is "$(get '[.tracked, .same_as != null] | join(" ")')" "true true" "$body"
	says "$b" 'echo z >z' >/dev/null
	take "$b"
	is "$(tracked)" true "$body"
	copied "$b"
	api DELETE "/v1/boxes/$b"
}

# Through a descriptor that is older than the checkpoint, and a mapping that no longer exists at the next one.
what_no_event_reports_is_found() {
	box '{"checkpoints":{"track":true}}'
	api POST "/v1/boxes/$b/execs" "$(jq -nc --arg c 'import mmap, os, time
f = open("mapped", "w+b"); f.write(bytes(8192)); f.flush()
g = open("spliced", "w+b"); g.write(bytes(8192)); g.flush()
open("ready", "w").close()
while not os.path.exists("go"): time.sleep(0.01)
m = mmap.mmap(f.fileno(), 8192); m[0:5] = b"hello"; m.close()
r, w = os.pipe(); os.write(w, b"spliced"); os.splice(r, g.fileno(), 7, offset_dst=0)
open("done", "w").close()
time.sleep(1000)' '{command:["python3","-c",$c],background:true}')"
	is "$code" 201 "$body"
	until_it() { says "$b" "test -e $1 && echo yes" | grep -q yes; }
	soon until_it ready
	take "$b"
	take "$b"
	says "$b" 'touch go' >/dev/null
	soon until_it done
	take "$b"
	is "$(tracked)" true "$body"
	copied "$b"
	is "$(says "$b" 'head -c 5 mapped; head -c 7 spliced')" hellospliced
	api DELETE "/v1/boxes/$b"
}

too_many_files_are_walked() {
	box '{"checkpoints":{"track":true}}'
	take "$b"
	take "$b"
	is "$(tracked)" true "$body"
	says "$b" 'for d in 0 1 2 3 4 5 6 7 8 9; do mkdir $d; cd $d; yes | head -n 2000 | split -l 1 -a 3; cd ..; done' >/dev/null
	take "$b"
	is "$(tracked)" null "$body"
	is "$(get '.files.changed >= 20000')" true "$body"
	says "$b" 'echo x >0/xaaa' >/dev/null
	take "$b"
	is "$(tracked)" true "$body"
	is "$(get .files.changed)" 1 "$body"
	api DELETE "/v1/boxes/$b"
}

it_begins_and_ends_in_a_running_box() {
	box
	take "$b"
	is "$(tracked)" null "$body"
	api PATCH "/v1/boxes/$b" '{"checkpoints":{"track":true}}'
	is "$(get .checkpoints.track)" true "$body"
	says "$b" 'echo 1 >one' >/dev/null
	take "$b"
	is "$(tracked)" null "$body"
	says "$b" 'echo 2 >two' >/dev/null
	take "$b"
	is "$(tracked)" true "$body"
	api PATCH "/v1/boxes/$b" '{"checkpoints":{"track":false}}'
	says "$b" 'echo 3 >three' >/dev/null
	take "$b"
	is "$(tracked)" null "$body"
	copied "$b"
	api DELETE "/v1/boxes/$b"
}

run_daemon_tests
