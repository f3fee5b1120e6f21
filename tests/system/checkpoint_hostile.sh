#!/bin/sh
# checkpoint_hostile.sh - files and programs of boxes that are hard to capture: the tables of bad input in docs/checkpoints.md.
. "$(dirname "$0")/daemon.lib"
. "$(dirname "$0")/checkpoints.lib"
slow_tests='hostile_programs_continue_in_a_copy what_cannot_continue_is_refused_by_name limits_of_a_box_do_not_end_its_programs'
config=$work/config.toml
printf '[quota]\ncheckpoint_bytes = "64M"\n' >"$config"
chmod a+r "$config"

upload() { # BOX FILE NAME
	code=$(curl -sS -o body -w '%{http_code}' -T "$2" -H "X-API-Key: $key" "$url/v1/boxes/$1/files?path=$3&mode=755")
	is "$code" 201 "$(cat body)"
	says "$1" "chmod 755 $3" >/dev/null
}
tree() { says "$1" "python3 checkpoint_tree.py $2 ${3:-tree}"; }

every_kind_of_file_is_the_same_in_a_copy() {
	box
	take "$b" # without any entry
	is "$(get .files.changed)" 1 "$body" # the home folder
	upload "$b" "$libs/checkpoint_tree.py" checkpoint_tree.py
	is "$(tree "$b" make)" ""
	was=$(tree "$b" list)
	[ "${was#* }" -gt 1000 ] || is "$was" "more than 1000 entries"
	fork "$b"
	is "$(tree "$copy" list)" "$was"
	# A file becomes a folder, and a folder a file, and back.
	says "$b" 'cd tree; rm !below empty; mkdir !below; echo 1 >!below/in; mv links was-links; echo file >links' >/dev/null
	take "$b"
	middle=$(tree "$b" list)
	says "$b" 'cd tree; rm -r !below; echo 2 >!below; rm links; mkdir links; echo new >links/hard' >/dev/null
	take "$b"
	last=$(tree "$b" list)
	api POST "/v1/boxes/$b/rollback" '{"save":false}'
	is "$code" 200 "$body"
	is "$(tree "$b" list)" "$last"
	[ "$middle" != "$last" ] || is "$middle" "another than $last"
	says "$b" 'python3 -c "
import os
for _ in range(4097):
	os.mkdir(\"deep\")
	os.chdir(\"deep\")"' >/dev/null
	api POST "/v1/boxes/$b/checkpoints" '{}'
	rejected 429 "more than 4096 deep"
	for each in "$b" "$copy"; do api DELETE "/v1/boxes/$each"; done
}

files_that_change_all_the_time_harm_no_checkpoint() {
	box
	upload "$b" "$libs/checkpoint_tree.py" checkpoint_tree.py
	for each in 1 2; do
		api POST "/v1/boxes/$b/execs" "{\"command\":\"python3 checkpoint_tree.py change work$each\",\"background\":true}"
		x=$(get .id)
		soon output_has "$b" "$x" ready
	done
	for each in 1 2 3 4 5; do take "$b" "{\"name\":\"n$each\"}"; done
	for each in 5 1 3; do
		api POST "/v1/boxes/$b/rollback" "{\"to\":\"n$each\",\"save\":false}"
		is "$code" 200 "$body"
		tree "$b" list work1 >list
		[ -s list ] || is "$(cat list)" "a list"
	done
	api DELETE "/v1/boxes/$b"
}

output_has() { curl -sS -m 0.5 -H "X-API-Key: $key" "$url/v1/boxes/$1/execs/$2/output?raw=stdout" 2>/dev/null | grep -q -- "$3"; }
files() { (cd "$state/checkpoints" && find . -type f | sort); }

a_quota_that_ends_in_the_middle_of_a_layer_leaves_no_file() {
	box
	echo 1 >one
	upload "$b" one one
	take "$b"
	files >before
	says "$b" 'head -c 100000000 /dev/urandom >large' >/dev/null
	api POST "/v1/boxes/$b/checkpoints" '{}'
	rejected 507 quota.checkpoint_bytes
	files | diff before - >left || is "$(cat left)" ""
	is "$(says "$b" 'rm large; cat one')" 1
	take "$b"
	api DELETE "/v1/boxes/$b"
}

# ---- programs: tests/system/hostileprogram.c ----

start_program() { # BOX NAME
	api POST "/v1/boxes/$1/execs" "{\"command\":[\"./hostileprogram\",\"$2\"],\"background\":true}"
	is "$code" 201 "$body"
	soon there "$1" "$2.ready"
}
there() { api GET "/v1/boxes/$1/files?path=$2" && [ "$code" = 200 ]; }
all_ok() { # BOX NAME...
	api PUT "/v1/boxes/$1/files?path=go" x
	for each in $2; do
		soon there "$1" "$each.result"
		is "$each: $body" "$each: ok"
	done
}
program_box() { # [BODY]
	box "${1-"{}"}"
	upload "$b" "$(dirname "$ATOLL")/hostileprogram" hostileprogram
}

hostile_programs_continue_in_a_copy() {
	all="handler sigreturn pending pause sigsuspend pdeathsig onepage closed epolls threadsend children fds3000 vfork"
	program_box
	for each in $all; do start_program "$b" "$each"; done
	fork "$b" '{"memory":true}'
	is "$(get '[.items[] | select(.error)] | length')" 0 "$body"
	all_ok "$copy" "$all"
	all_ok "$b" "$all"
	for each in "$b" "$copy"; do api DELETE "/v1/boxes/$each"; done
}

what_cannot_continue_is_refused_by_name() {
	while read -r name text; do
		program_box '{"limits":{"pids":1000}}'
		start_program "$b" "$name"
		api POST "/v1/boxes/$b/fork" '{"memory":true}'
		is "$name: $code $(get .error.code)" "$name: 409 not_capturable" "$body"
		case $body in *"$text"*) ;; *) is "$body" "*$text*" ;; esac
		all_ok "$b" "$name"
		api DELETE "/v1/boxes/$b"
	done <<END
nofolder a working folder that was deleted (/home/user/gone
inflight descriptor 6: descriptors, messages or 1 MiB that wait in a socket (descriptors in flight)
sysv System V shared memory
threads600 more than 512 threads
fds5000 more than 4096 descriptors
mappings 16,384 mappings
nohole a program that has mapped nearly all addresses
noleader a program whose first thread has ended
traced a program under a debugger
END
}

limits_of_a_box_do_not_end_its_programs() {
	program_box '{"limits":{"mem":"256M"}}'
	start_program "$b" memory # it has 200 MiB: nothing is copied in its box
	fork "$b" '{"memory":true}'
	is "$(get '.items[0].error')" null "$body"
	all_ok "$copy" memory
	all_ok "$b" memory
	for each in "$b" "$copy"; do api DELETE "/v1/boxes/$each"; done
	program_box '{"limits":{"pids":10}}'
	api POST "/v1/boxes/$b/execs" '{"command":["./hostileprogram","pids"],"background":true,"open_stdin":true}'
	x=$(get .id)
	soon output_has "$b" "$x" ready
	api POST "/v1/boxes/$b/fork" '{"memory":true}'
	case $code in
	201) api DELETE "/v1/boxes/$(get '.items[0].box.id')" ;;
	*) rejected 409 "as many processes as its limit" ;;
	esac
	curl -sS -d x -H "X-API-Key: $key" "$url/v1/boxes/$b/execs/$x/stdin" >/dev/null
	all_ok "$b" pids
	api DELETE "/v1/boxes/$b"
	program_box '{"limits":{"pids":100}}'
	start_program "$b" bomb
	for _ in 1 2 3; do
		api POST "/v1/boxes/$b/fork" '{"memory":true}'
		case $code in
		201) api DELETE "/v1/boxes/$(get '.items[0].box.id')" ;;
		*) rejected 409 process ;;
		esac
	done
	all_ok "$b" bomb
	api DELETE "/v1/boxes/$b"
}

run_daemon_tests --config "$config"
