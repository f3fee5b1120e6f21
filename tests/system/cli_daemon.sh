#!/bin/sh
# cli_daemon.sh - the commands that call the daemon: their effect, output and exit status.
. "$(dirname "$0")/daemon.lib"

commands_of_boxes='show rename env port rm pause resume exec attach wait logs cat put diff stats'

# made [FLAG...]: a new box for this test; sets box.
made() {
	atoll new -q "$@"
	is "$status" 0 "$err"
	box=$out
}
gone() { "$ATOLL" rm -q "$box"; }
is_json() { jq -e . >/dev/null 2>&1 <out || fail "no JSON: $out"; }
jqo() { jq -r "$1" <out; }

# ---- boxes ----

new_prints_the_name_or_the_id_of_the_box() {
	atoll new named-box
	is "$status" 0
	is "$out" named-box
	is "$err" "" "no message without a terminal"
	made
	has "$("$ATOLL" ls -q)" "$box"
	gone
	"$ATOLL" rm -q named-box
}

new_passes_limits_times_variables_and_metadata() {
	atoll new --json --mem 64M --cpu 0.5 --pids 33 --disk 16M --files 100 --cpu-time 5s --lifetime 2m \
		--idle 30s --keep 2h -e A=b -e C=d=e --meta k=v --session 'some session'
	is "$status" 0 "$err"
	is "$(jqo '.limits | [.mem, .cpu_milli, .pids, .disk, .files, .cpu_ms] | join(" ")')" \
		"67108864 500 33 16777216 100 5000"
	is "$(jqo '[.lifetime_ms, .idle_ms, .retention_ms, .on_timeout, .session] | join(" ")')" \
		"120000 30000 7200000 keep some session"
	is "$(jqo '.env.A + .env.C + .metadata.k')" "bd=ev"
	box=$(jqo .id)
	atoll new -q --session 'some session'
	is "$out" "$box" "a session has one box"
	gone
}

invalid_arguments_of_new_are_a_usage_error() {
	for words in '--mem nonsense' '--on-timeout never' '--keep soon' '--meta novalue' '--meta =v' '--lifetime 0s' \
		'--lifetime 400h' 'two names' '--unknown' '--mem' '-e 1X=2' '--mem 1'; do
		# shellcheck disable=SC2086 # words
		atoll new $words
		is "$status" 2 "$words: $out $err"
		has "$err" "atoll: "
		is "$out" ""
	done
	atoll new '!!'
	is "$status" 2
}

new_rejects_a_name_that_is_in_use() {
	made twice
	atoll new twice
	is "$status" 1
	has "$err" twice
	gone
}

ls_lists_and_filters_boxes_and_prints_json() {
	made --meta color=red
	red=$box
	made blue-box --meta color=blue
	has "$("$ATOLL" ls)" "blue-box"
	is "$("$ATOLL" ls -q --meta color=red)" "$red"
	is "$("$ATOLL" ls -q --name blue)" "$box"
	is "$("$ATOLL" ls -q --state stopped)" ""
	atoll ls --json --meta color=blue
	is "$(jqo '.items[0].name')" blue-box
	is "$(jqo .next)" null
	gone
	lacks "$("$ATOLL" ls -q)" "$box"
	has "$("$ATOLL" ls -a -q)" "$box"
	atoll ls --state nonsense
	is "$status" 2 "$err"
	"$ATOLL" rm -q "$red"
}

ls_reads_all_pages() {
	for i in 1 2 3; do "$ATOLL" new -q --meta page=yes >>ids; done
	atoll api GET '/v1/boxes?limit=1&metadata=page%3Dyes'
	[ "$(jqo .next)" != null ] || fail "no second page"
	is "$("$ATOLL" ls -q --meta page=yes | sort)" "$(sort ids)"
	xargs "$ATOLL" rm -q <ids
}

show_prints_a_box() {
	made shown --meta a=b
	atoll show shown
	has "$out" "running"
	has "$out" "512 MiB"
	has "$out" "a=b"
	atoll show shown --json
	is "$(jqo .id)" "$box"
	is "$("$ATOLL" show -q shown)" "$box"
	gone
	atoll show "$box"
	has "$out" deleted
}

a_box_is_paused_and_resumed_and_a_snapshot_starts_another() {
	made still
	atoll pause still
	is "$status" 0 "$err"
	atoll ls --state paused
	has "$out" still
	atoll exec still true
	has "$err" paused
	atoll resume still
	is "$status" 0 "$err"
	atoll exec still -- sh -c 'echo kept >f'
	is "$status" 0 "$err"
	atoll snapshot new still ready
	is "$status" 0 "$err"
	atoll snapshot
	has "$out" ready:default
	atoll new again --snapshot ready
	is "$status" 0 "$err"
	atoll cat again f
	is "$out" kept
	atoll snapshot rm ready
	is "$status" 0 "$err"
	atoll snapshot new missing-box
	is "$status" 3 "$err"
	atoll snapshot sideways
	is "$status" 2
	atoll rm still again
}

rename_changes_the_name_of_a_box() {
	made before
	atoll rename before after
	is "$status" 0
	atoll show -q after
	is "$out" "$box"
	made other
	atoll rename other after
	is "$status" 1 "$err"
	atoll rename other
	is "$status" 2
	"$ATOLL" rm -q after other
}

rm_deletes_every_box_it_finds_and_names_the_others() {
	made one
	first=$box
	made two
	atoll rm one nothing two
	is "$status" 3
	is "$out" "one
two"
	has "$err" 'no box named "nothing"'
	lacks "$("$ATOLL" ls -q)" "$first"
	made
	atoll rm --json "$box"
	is "$(jqo .state)" deleted
}

prune_deletes_stopped_boxes_only_when_requested() {
	made --lifetime 100ms --keep 1h
	soon sh -c "'$ATOLL' show --json $box | grep -q '\"state\":\"stopped\"'"
	atoll prune
	is "$status" 2
	has "$err" "atoll prune --yes"
	atoll prune --yes --json
	is "$(jqo '.deleted[0]')" "$box"
	is "$("$ATOLL" ls -q --state stopped)" ""
	atoll prune --yes
	is "$status" 0
}

# ---- programs ----

exec_passes_output_and_exit_status() {
	made
	atoll exec "$box" -- sh -c 'echo out; echo err >&2; exit 7'
	is "$status" 7
	is "$out" out
	is "$err" err
	atoll exec "$box" sh -c 'kill -TERM $$'
	is "$status" 143
	has "$err" "cause=signal"
	atoll exec -q "$box" -- nonsense-program
	is "$status" 127
	is "$err" ""
	atoll exec --time 100ms "$box" -- sleep 20
	is "$status" 124
	has "$err" "cause=wall"
	gone
}

exec_passes_stdin_working_directory_and_variables() {
	made -e FROM_BOX=1
	is "$(seq 100000 | "$ATOLL" exec "$box" -- sha256sum)" "$(seq 100000 | sha256sum)"
	is "$(printf 'no end of line' | "$ATOLL" exec "$box" cat)" "no end of line"
	is "$("$ATOLL" exec --cwd /tmp -e A='b c' "$box" -- sh -c 'echo $PWD $A $FROM_BOX')" "/tmp b c 1"
	is "$("$ATOLL" exec --root "$box" -- id -u)" 0
	is "$("$ATOLL" exec "$box" -- id -u)" 1000
	gone
}

exec_passes_bytes_unchanged() {
	made
	head -c 3000000 /dev/urandom >bytes
	"$ATOLL" exec "$box" -- cat <bytes >back
	cmp bytes back
	"$ATOLL" exec "$box" -- head -c 100000 /dev/zero | cmp - "$(head -c 100000 /dev/zero >zero; echo zero)"
	gone
}

exec_ends_the_program_when_stdout_is_closed() {
	made
	is "$("$ATOLL" exec "$box" -- yes | head -2)" "y
y"
	soon sh -c "[ -z \"\$('$ATOLL' ps -q $box)\" ]"
	gone
}

exec_json_prints_the_record_with_the_output() {
	made
	atoll exec --json "$box" -- sh -c 'echo out; echo err >&2; exit 3'
	is "$status" 3
	is "$(jqo '.stdout + .stderr + (.status|tostring) + .cause')" "out
err
3exit"
	is "$(wc -l <out)" 1
	gone
}

exec_forwards_signals() {
	made
	"$ATOLL" exec "$box" -- sh -c 'trap "echo got it; exit 9" TERM; echo ready; while :; do sleep 0.05; done' >out &
	pid=$!
	soon grep -q ready out
	kill -TERM "$pid"
	status=0
	wait "$pid" || status=$?
	is "$status" 9
	has "$(cat out)" "got it"
	gone
}

a_second_interrupt_kills_the_exec() {
	made
	# A background job of a shell ignores SIGINT, and a child would inherit that.
	/usr/bin/python3 - "$ATOLL" "$box" <<-'EOF'
	import signal, subprocess, sys
	p = subprocess.Popen([sys.argv[1], "exec", sys.argv[2], "--", "sh", "-c", "trap : INT; echo ready; while :; do sleep 0.05; done"],
	                     stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
	assert p.stdout.readline() == b"ready\n"
	p.send_signal(signal.SIGINT)
	try:
	    p.wait(0.5)
	    raise SystemExit("one was enough")
	except subprocess.TimeoutExpired:
	    p.send_signal(signal.SIGINT)
	assert p.wait(10) == 137, p.returncode
	EOF
	gone
}

a_background_exec_is_listed_waited_for_and_killed() {
	made
	atoll exec -d "$box" -- sh -c 'echo one; echo two >&2; sleep 60'
	is "$status" 0
	x=$out
	atoll ps "$box" -q
	is "$out" "$x"
	atoll ps --json "$box"
	is "$(jqo '.[0].id')" "$x"
	has "$("$ATOLL" ps)" "$x"
	soon sh -c "'$ATOLL' logs $box $x 2>/dev/null | grep -q one"
	atoll logs "$box"
	is "$out" one
	is "$err" two
	atoll wait --time 50ms "$box" "$x"
	is "$status" 124
	atoll kill -s USR1 "$box" "$x"
	is "$status" 0 "$err"
	atoll wait "$box" "$x"
	is "$status" 138
	atoll exec -d --tag mine "$box" -- sleep 60
	atoll kill "$box" mine
	is "$status" 0 "$err"
	is "$("$ATOLL" ps -q "$box")" ""
	has "$("$ATOLL" ps -a "$box")" "$x"
	atoll wait "$box" "$x" --json
	is "$status" 138
	is "$(jqo .signal)" SIGUSR1
	gone
}

logs_follow_prints_output_until_the_exec_ends() {
	made
	x=$("$ATOLL" exec -d "$box" -- sh -c 'echo first; until [ -e go ]; do sleep 0.02; done; echo last')
	"$ATOLL" logs -f "$box" "$x" >followed &
	pid=$!
	soon grep -q first followed
	echo | "$ATOLL" put "$box" go
	wait "$pid"
	is "$(cat followed)" "first
last"
	atoll logs --json "$box" "$x"
	is "$(jq -r 'select(.type=="stdout").data' <out | head -1)" first
	gone
}

attach_continues_at_a_byte_offset() {
	made
	x=$("$ATOLL" exec -d "$box" -- sh -c 'echo 0123456789; until [ -e go ]; do sleep 0.02; done; echo end; exit 6')
	soon sh -c "'$ATOLL' logs $box $x | grep -q 9"
	"$ATOLL" attach "$box" "$x" --from 6 >attached &
	pid=$!
	soon grep -q 789 attached
	echo | "$ATOLL" put "$box" go
	status=0
	wait "$pid" || status=$?
	is "$status" 6
	is "$(cat attached)" "6789
end"
	for bad in x -1 1,2,3 99999999999999999999 ''; do
		atoll attach "$box" "$x" --from "$bad"
		is "$status" 2 "$bad: $err"
	done
	atoll attach "$box"
	is "$status" 125
	has "$err" "no program runs"
	gone
}

exec_opens_a_terminal_that_can_be_detached() {
	made
	status=0
	/usr/bin/python3 "$here/onpty.py" 'wait=$' 'send=tty; stty size\r' 'wait=/dev/pts/' 'wait=24 80' \
		'size=40x100' 'wait=$' 'send=x=kept-it\r' 'wait=$' 'send=\r~.' -- "$ATOLL" shell "$box" >seen || status=$?
	is "$status" 0 "$(tail -5 seen)"
	has "$(cat seen)" "detached"
	x=$("$ATOLL" ps -q "$box")
	[ "$x" ] || fail "the shell is gone"
	/usr/bin/python3 "$here/onpty.py" 'send=echo $x; stty size\r' 'wait=kept-it' 'wait=24 80' 'send=exit 5\r' -- \
		"$ATOLL" attach "$box" >seen || status=$?
	is "$status" 5 "$(tail -5 seen)"
	gone
}

stdin_sent_twice_with_the_same_offset_is_accepted_once() {
	made
	x=$("$ATOLL" api POST "/v1/boxes/$box/execs" '{"command":["cat"],"background":true,"open_stdin":true}' | jq -r .id)
	send() { printf %s "$2" | "$ATOLL" api POST "/v1/boxes/$box/execs/$x/stdin?$1" - --type application/octet-stream; }
	send offset=0 hello >out
	is "$(jqo .accepted)" 5
	send offset=0 hello >out
	send offset=3 'lo world' >out
	is_json "$("$ATOLL" api GET "/v1/boxes/$box/execs/$x" | jq .stdin)" '{"open":true,"bytes":11}'
	status=0
	send offset=20 gap >out 2>err || status=$?
	is "$status" 1
	has "$(cat err)" "missing"
	send 'offset=11&close=true' '!' >out
	soon sh -c "'$ATOLL' wait -q $box $x"
	is "$("$ATOLL" logs "$box" "$x")" 'hello world!'
	gone
}

two_clients_can_type_into_one_terminal() {
	made
	x=$("$ATOLL" api POST "/v1/boxes/$box/execs" '{"command":["bash"],"background":true,"pty":{}}' | jq -r .id)
	/usr/bin/python3 "$here/onpty.py" 'wait=$' 'send=echo fi""rst\r' 'wait=first' 'wait=second' 'send=echo th""ird\r' 'wait=third' \
		'send=exit 4\r' -- "$ATOLL" attach "$box" "$x" >one &
	pid=$!
	/usr/bin/python3 "$here/onpty.py" 'wait=first' 'send=echo se""cond\r' 'wait=third' -- "$ATOLL" attach "$box" "$x" >two || :
	status=0
	wait "$pid" || status=$?
	is "$status" 4 "$(tail -3 one)"
	gone
}

shell_in_an_existing_box_rejects_limits() {
	made
	is "$(echo 'echo hello $((6*7))' | "$ATOLL" shell "$box")" "hello 42"
	atoll shell --mem 1G "$box"
	is "$status" 2
	has "$err" "atoll new --mem"
	gone
}

runs_are_listed_and_shown() {
	made
	atoll exec "$box" -- sh -c 'exit 4'
	atoll runs -b "$box" --json
	is "$(jqo '.[0].status')" 4
	x=$(jqo '.[0].id')
	has "$("$ATOLL" runs -n 5)" "$x"
	is "$("$ATOLL" runs -q -n 1)" "$x"
	atoll runs show "$x"
	has "$out" "exit 4"
	is "$("$ATOLL" runs show "$x" --json | jq -r .box)" "$box"
	atoll runs show nothing
	is "$status" 3
	has "$err" 'no run "nothing"'
	atoll runs nonsense
	is "$status" 2
	gone
}

# ---- files ----

cp_copies_files_and_folders_in_both_directions() {
	made
	mkdir -p src/sub
	echo hello >src/a
	chmod 755 src/a
	echo b >src/sub/b
	ln -s a src/link
	atoll cp src "$box:src/"
	is "$status" 0 "$err"
	is "$("$ATOLL" exec "$box" -- sh -c 'cat src/sub/b src/link; stat -c %a src/a')" "b
hello
755"
	atoll cp src "$box:src"
	is "$("$ATOLL" cat "$box" src/src/a)" hello "a folder that is there takes it in"
	atoll cp src/a "$box:alone"
	atoll cp "$box:alone" .
	cmp src/a alone
	atoll cp "$box:src" back
	cmp src/sub/b back/sub/b
	is "$(readlink back/link)" a
	atoll cp "$box:alone" back
	cmp src/a back/alone
	tar c -C src . | "$ATOLL" cp - "$box:packed"
	is "$("$ATOLL" cp "$box:packed" - | tar t | sort | tr '\n' ' ')" "./ ./a ./link ./sub/ ./sub/b "
	atoll cp --json "$box:src" other
	is "$(jqo .skipped)" 0
	gone
}

cp_names_files_that_it_cannot_copy() {
	made
	atoll cp nothing "$box:x"
	is "$status" 3
	atoll cp "$box:nothing" x
	is "$status" 3
	[ ! -e x ] || fail "x was made"
	atoll cp nobox:x y
	is "$status" 3
	has "$err" 'no box named "nobox"'
	for words in '' 'a' 'a b' 'a:b c:d'; do
		# shellcheck disable=SC2086 # words
		atoll cp $words
		is "$status" 2 "$words"
	done
	status=0
	echo junk | "$ATOLL" cp - "$box:d" 2>err || status=$?
	is "$status" 1
	has "$(cat err)" "unpacked"
	gone
}

put_and_cat_take_the_same_arguments() {
	made
	printf one | "$ATOLL" put "$box:a.txt"
	is "$("$ATOLL" cat "$box:a.txt")" one
	printf two | "$ATOLL" put "$box" a.txt
	is "$("$ATOLL" cat "$box" a.txt)" two
	for words in "$box:" "$box" ":a" "/a:b"; do
		atoll put "$words" </dev/null
		is "$status" 2 "$words"
		has "$err" "atoll put BOX:PATH"
	done
	gone
}

cat_prints_the_bytes_that_put_wrote() {
	made
	head -c 300000 /dev/urandom >bytes
	"$ATOLL" put "$box" deep/er/file <bytes
	"$ATOLL" cat "$box" deep/er/file | cmp - bytes
	"$ATOLL" cat "$box:deep/er/file" | cmp - bytes
	echo x | "$ATOLL" put "$box" tool --mode 755
	is "$("$ATOLL" exec "$box" -- stat -c %a tool)" 755
	status=0
	echo y | "$ATOLL" put --new "$box" tool 2>err || status=$?
	is "$status" 1
	is "$("$ATOLL" cat "$box" tool)" x
	atoll cat "$box" nothing
	is "$status" 3
	atoll cat "$box" /home
	[ "$status" != 0 ] || fail "a folder was printed"
	gone
}

diff_lists_changed_files() {
	made
	is "$("$ATOLL" diff "$box")" ""
	echo x | "$ATOLL" put "$box" new.txt
	has "$("$ATOLL" diff "$box")" "/home/user/new.txt"
	is "$("$ATOLL" diff "$box" | awk '$NF == "/home/user/new.txt" { print $1 }')" A
	atoll diff --json "$box"
	is "$(jqo '.items[0] | .kind + " " + .path')" "added /home/user/new.txt"
	is "$("$ATOLL" diff -q "$box")" /home/user/new.txt
	gone
}

a_volume_exists_after_its_box_is_deleted() {
	atoll volume new cli-data --size 32M
	is "$status" 0 "$err"
	is "$out" cli-data
	has "$("$ATOLL" volume ls)" "32 MiB"
	made --volume cli-data:/data
	"$ATOLL" exec "$box" -- sh -c 'echo kept >/data/x'
	atoll volume rm --yes cli-data
	is "$status" 1 "a box has it: $err"
	gone
	made --volume cli-data:/data:ro
	is "$("$ATOLL" cat "$box" /data/x)" kept
	gone
	atoll volume rm cli-data
	is "$status" 2
	has "$err" "--yes"
	atoll volume rm --yes cli-data
	is "$status" 0 "$err"
	is "$("$ATOLL" volume ls -q)" ""
	atoll volume rm --yes cli-data
	is "$status" 3
	for bad in x x: :/y x:relative x::ro; do
		atoll new --volume "$bad"
		is "$status" 2 "$bad"
	done
	atoll volume nonsense
	is "$status" 2
}

# ---- watching ----

stats_top_and_events_print_usage_and_events() {
	made watched
	atoll stats watched
	has "$out" "memory"
	has "$out" received
	atoll stats watched --json
	is "$(jqo .box)" "$box"
	"$ATOLL" stats -f --json watched | head -2 >two
	is "$(jq -s 'length' <two)" 2
	atoll top
	has "$out" watched
	atoll top --json -n 2
	is "$(jq -s 'length' <out)" 2
	is "$(jq -s -r '.[1].items[] | select(.name=="watched").box' <out)" "$box"
	atoll events -b watched
	has "$out" "box.created"
	"$ATOLL" events -f --json --after 1 >stream &
	pid=$!
	atoll exec watched true
	soon grep -q run.ended stream
	kill "$pid"
	gone
}

api_sends_any_request() {
	has "$("$ATOLL" api)" "/v1/boxes/{box}/changes"
	atoll api GET /healthz
	is "$(jqo .status)" ok
	atoll api POST /v1/run '{"command":"echo hi"}'
	is "$(jqo .stdout)" hi
	echo '{"command":"echo in"}' | "$ATOLL" api POST /v1/run - >out
	is "$(jqo .stdout)" in
	atoll api POST /v1/run '{"command":"echo a"}' --accept application/x-ndjson
	is "$(head -1 out | jq -r .type)" started
	atoll api GET /v1/nothing
	is "$status" 3
	atoll api GET
	is "$status" 2
	atoll api get /x
	is "$status" 2
	atoll api GET relative
	is "$status" 2
	atoll api POST /v1/boxes '{"nonsense":1}'
	is "$status" 2
	has "$err" nonsense
}

# ---- what goes wrong ----

an_unknown_box_name_suggests_a_similar_one() {
	made demonstration
	for command in $commands_of_boxes; do
		case $command in
		rename | exec | cat | put) set -- "$command" demonstratoin x ;;
		attach | wait) set -- "$command" demonstratoin abcdefghijkl ;;
		*) set -- "$command" demonstratoin ;;
		esac
		atoll "$@"
		case $command in
		exec | attach | wait) is "$status" 125 "$command: $err" ;;
		*) is "$status" 3 "$command: $err" ;;
		esac
		has "$err" 'no box named "demonstratoin"'
		has "$err" "close: demonstration (running, base)"
		is "$out" ""
		atoll "$@" --json
		[ "$command" = exec ] || is "$(jq -r .error.code <err)" not_found "$command"
	done
	gone
}

commands_without_their_arguments_name_what_is_missing() {
	for command in $commands_of_boxes cp kill; do
		atoll "$command"
		is "$status" 2 "$command"
		has "$err" "missing"
	done
}

hostile_box_names_are_rejected_without_escape_sequences() {
	for name in ../../etc '..' '%2e%2e' 'a/b' 'a?b=c' '#' "$(printf 'a\033[2Jb')" 'ä' "$(printf '%0500d' 1)"; do
		atoll show "$name"
		case $status in 2 | 3) ;; *) fail "'$name': $status $err" ;; esac
		lacks "$err" "$(printf '\033')"
	done
}

without_a_daemon_every_command_names_the_address_it_tried() {
	for words in 'new' 'ls' 'show x' 'rename x y' 'rm x' 'prune' 'pause x' 'resume x' 'snapshot' 'volume' 'exec x true' 'shell x' 'attach x y' 'wait x y' 'logs x' \
		'cp x:a b' 'cat x y' 'diff x' 'stats x' 'top' 'runs' 'events' 'events -f' 'api' 'ps x'; do
		# shellcheck disable=SC2086 # words
		ATOLL_RUN=$PWD/none atoll $words
		is "$status" 125 "$words: $err"
		[ "$words" = "rm x" ] || has "$err" "start one: atoll serve"
		has "$err" "unix:$PWD/none/atoll.sock (no such file or directory)"
		has "$err" "ATOLL_HOST"
	done
	atoll -H http://127.0.0.1:1 ls --json
	is "$status" 125
	is "$(jq -r .error.code <err)" unreachable
	ATOLL_RUN=$PWD/none atoll ps
	is "$status" 0 "the keeper's list is still there: $err"
}

the_address_is_taken_from_flag_variable_or_file() {
	made
	ATOLL_KEY=$key atoll -H "$url" show -q "$box"
	is "$out" "$box" "$err"
	ATOLL_KEY=$key atoll show -q "$box" --host "$url"
	is "$out" "$box"
	ATOLL_KEY=$key ATOLL_HOST=$url atoll show -q "$box"
	is "$out" "$box"
	mkdir -p conf/atoll
	echo "$key" >keyfile
	printf 'host = "%s"\nkey_file = "%s/keyfile"\n' "$url" "$PWD" >conf/atoll/config.toml
	XDG_CONFIG_HOME=$PWD/conf atoll show -q "$box"
	is "$out" "$box" "$err"
	atoll -H nonsense ls
	is "$status" 2
	ATOLL_HOST=ftp://x atoll ls
	is "$status" 2
	gone
}

commands_fail_with_an_invalid_key() {
	atoll -H "$url" ls
	is "$status" 4
	has "$err" "ATOLL_KEY"
	ATOLL_KEY=e2b_0000000000000000000000000000000000000000 atoll -H "$url" ls
	is "$status" 4
	ATOLL_KEY=$viewer atoll -H "$url" ls
	is "$status" 0
	ATOLL_KEY=$viewer atoll -H "$url" new
	is "$status" 4
	ATOLL_KEY=$viewer atoll -H "$url" exec nobox true
	is "$status" 125
	ATOLL_KEY=short atoll -H "$url" ls
	is "$status" 2
	lacks "$err" short
}

kill_ends_boxes_of_the_daemon_and_private_boxes() {
	made victim
	atoll kill victim
	is "$status" 0
	is "$out" victim
	atoll show "$box"
	has "$out" operator
	"$ATOLL" run -v -- sleep 60 2>private &
	pid=$!
	soon grep -q ready private
	private=$(sed -n 's/^atoll: box \([a-z2-7]*\) ready.*/\1/p' private)
	has "$("$ATOLL" ps --local -q)" "$private"
	atoll kill "$private"
	is "$status" 0 "$err"
	wait "$pid" && fail "it lives"
	atoll kill nothing
	is "$status" 3
}

set_changes_timeouts_and_limits() {
	made --lifetime 2m --meta old=1
	atoll set "$box" --lifetime 1h --mem 1G --cpu 0.5 --pids 77 --keep 2h --meta new=2
	is "$status" 0 "$err"
	case $out in *"$box ends in 59 m"* | *"$box ends in 1 h"*) ;; *) fail "$out" ;; esac
	atoll show "$box" --json
	is "$(jqo '[.limits.mem, .limits.cpu_milli, .limits.pids, .retention_ms, .on_timeout] | join(" ")')" \
		"1073741824 500 77 7200000 keep"
	is "$(jqo '.metadata | keys | join(" ")')" new
	atoll set "$box" --idle 5m --json
	is "$(jqo '[.idle_ms, .limits.mem] | join(" ")')" "300000 1073741824"
	atoll set "$box"
	is "$status" 2
	has "$err" "atoll set BOX --lifetime 1h --mem 1G"
	for words in '--mem nonsense' '--lifetime 9999h' '--on-timeout never' '--disk 1G' '--meta novalue'; do
		# shellcheck disable=SC2086 # words
		atoll set "$box" $words
		is "$status" 2 "$words: $err"
	done
	gone
	atoll set "$box" --mem 1G
	is "$status" 3
}

variables_of_a_box_are_shown_set_and_removed() {
	made -e KEEP=1
	atoll env "$box" A='x y' B=
	is "$status" 0 "$err"
	is "$("$ATOLL" env "$box" | sort | tr '\n' ',')" "A=x y,B=,KEEP=1,"
	is "$("$ATOLL" exec "$box" -- sh -c 'echo "$A$B$KEEP"')" "x y1"
	atoll env "$box" -u A --unset NONE B=2 --json
	is "$(jqo '[.A, .B, .KEEP] | map(. // "") | join(",")')" ",2,1"
	for word in novalue =v 1X=2 'A B=c'; do
		atoll env "$box" "$word"
		is "$status" 2 "$word"
		has "$err" "is not NAME=VALUE"
	done
	is "$("$ATOLL" env "$box" | sort | tr '\n' ',')" "B=2,KEEP=1,"
	# Both changes are kept in either order.
	"$ATOLL" env "$box" C=1 & "$ATOLL" env "$box" D=1
	wait $!
	is "$("$ATOLL" env "$box" | grep -c '^[CD]=1')" 2
	gone
	atoll env "$box"
	is "$status" 3
}

port_prints_the_address_and_the_listening_process() {
	made
	atoll port "$box" 8123
	is "$status" 0 "$err"
	has "$out" "http://8123-$box."
	has "$err" "no program listens on port 8123"
	has "$err" "its preview is closed"
	"$ATOLL" exec -d "$box" -- python3 -m http.server 8123 >/dev/null
	atoll open "$box" 8123 --wait 20s
	is "$status" 0 "$err"
	has "$out" "http://8123-$box."
	has "$out" "/?atoll_preview_token="
	has "$err" "python3 on port 8123 of $box; its preview is private"
	atoll port "$box" 8123 --public
	has "$err" "python3 on port 8123 of $box; its preview is public"
	lacks "$out" token
	atoll port "$box" --json
	is "$(jqo '.items[0] | [.port, .process, .address, .public] | map(tostring) | join(" ")')" "8123 python3 0.0.0.0 true"
	atoll port "$box" 8123 --close --json
	is "$(jqo '[.open, .listening, .port] | map(tostring) | join(" ")')" "false true 8123"
	atoll port open "$box" 8123 --public --json
	is "$(jqo '[.open, .public] | map(tostring) | join(" ")')" "true true"
	atoll port close "$box" 8123 --json
	is "$(jqo .open)" false
	atoll open "$box" 8124 --wait 200ms
	is "$status" 1
	has "$err" "no program listened on port 8124 within 200 ms"
	for words in "$box 0" "$box 65536" "$box x" "$box --open" "$box 80 --open --close" "shut $box 80" "close $box 80 --public"; do
		# shellcheck disable=SC2086 # words
		atoll port $words
		is "$status" 2 "$words: $err"
	done
	gone
	atoll port "$box" 8123
	is "$status" 3
}

# With ATOLL_HOST set, they once used the daemon of the local run folder.
key_and_upgrade_use_the_daemon_given_by_flag() {
	other() { ATOLL_RUN=$PWD/none ATOLL_STATE=$PWD/other "$ATOLL" "$@" >out 2>err || return $?; }
	mkdir none
	other -H "unix:$sock" key ls -q
	has "$(cat out)" viewer
	(export ATOLL_HOST="unix:$sock" && other key new named -q)
	named=$(cat out)
	is "$(curl -sS -H "X-API-Key: $named" "$url/v1/who" | jq -r .role)" owner
	ATOLL_KEY=$named other -H "$url" key rm named
	is "$(curl -sS -H "X-API-Key: $named" "$url/v1/who" | jq -r .error.code)" unauthorized
	[ ! -e other ] || fail "a state folder was made"
	status=0
	ATOLL_KEY=$viewer other -H "$url" key new x || status=$?
	is "$status" 4 "$(cat err)"
	status=0
	other -H "$url" key ls --state "$PWD/other" || status=$?
	has "$(cat err)" "-H names a daemon and --state"

	before=$(cat "$work/run/serve.pid")
	status=0
	other -H "$url" upgrade || status=$?
	is "$status" 1
	has "$(cat err)" "acts on the daemon of a run folder, here $PWD/none (none runs), and cannot act on $url"
	is "$(cat "$work/run/serve.pid")" "$before"
	status=0
	(export ATOLL_HOST="$url" && atoll stop && is "$status" 1) || fail "stop"
	has "$(cat err)" "cannot act on $url"
	is "$(cat "$work/run/serve.pid")" "$before"
	(export ATOLL_HOST="unix:$sock" && other upgrade --json) || fail "$(cat err)"
	is "$(jq .pid <out)" "$(cut -d ' ' -f 1 "$work/run/serve.pid")"
	[ "$(cat "$work/run/serve.pid")" != "$before" ] || fail "it was not upgraded"
}

# It once ran on this machine in spite of -H.
run_uses_the_daemon_given_by_flag() {
	there() { ATOLL_RUN=$PWD/none ATOLL_KEY=$key "$ATOLL" -H "$url" run "$@" >out 2>err || return $?; }
	mkdir none src
	status=0
	echo in | there -e A=b --mem 64M -- sh -c 'cat; echo "$A $(id -u) $TERM"; echo e >&2; exit 5' || status=$?
	is "$status $(tr '\n' ' ' <out)$(cat err)" "5 in b 1000  e"
	echo 'import sys; print(sys.argv[1:], open("d.txt").read())' >x.py
	printf data >d.txt
	there x.py d.txt y </dev/null
	is "$(cat out)" "['d.txt', 'y'] data"
	echo 'print(6 * 7)' | there -t python -
	is "$(cat out)" 42
	echo old >src/kept && echo old >src/changed
	there -w src -o got -- sh -c 'ls; echo new >changed; mkdir a; echo 1 >a/made; chmod 755 a/made; ln -s / l' </dev/null
	is "$(tr '\n' ' ' <out)" "changed kept "
	is "$(cd got && find . -type f | sort | tr '\n' ' ')" "./a/made ./changed "
	is "$(cat got/changed)" new
	[ -x got/a/made ] || fail "it lost its mode"
	has "$(cat err)" "2 files, 6 B, in got"
	status=0
	there --json --time 200ms -- sleep 10 </dev/null || status=$?
	is "$status $(jq -r .cause <out)" "124 wall"
	if command -v gcc >/dev/null; then
		echo 'int main(void) { return 7; }' >c.c
		status=0
		there c.c </dev/null || status=$?
		is "$status" 7 "$(cat err)"
		echo 'int main(void) { return x; }' >c.c
		status=0
		there c.c </dev/null || status=$?
		is "$status" 1
		has "$(cat err)" "c.c:1"
	fi
	status=0
	there --report r -- true || status=$?
	is "$status" 2
	status=0
	there --out x.py -- true || status=$?
	is "$status" 125
	has "$(cat err)" "Not a directory"
	status=0
	ATOLL_KEY=$viewer "$ATOLL" -H "$url" run -- true 2>err || status=$?
	is "$status" 125 "$(cat err)"
	[ -z "$(ls none)" ] || fail "a keeper was started here"
	is "$("$ATOLL" ls -q | wc -l)" 0 "boxes are left"
	status=0
	ATOLL_HOST=unix:/none/sock "$ATOLL" run -- true 2>err || status=$?
	is "$status" 125
	has "$(cat err)" "cannot reach the daemon at unix:/none/sock"
}

run_out_of_a_remote_box_writes_no_more_than_its_disk_size() {
	there() { ATOLL_KEY=$key "$ATOLL" -H "$url" run "$@" >out 2>err || return $?; }
	status=0
	there -o got --disk 20M -- sh -c 'echo x >a; truncate -s 300M holes' </dev/null || status=$?
	is "$status" 125 "$(cat err)"
	has "$(cat err)" "--out: holes: files of more than 20 MiB, the size of the box's disk"
	[ "$(du -sk --apparent-size got | cut -f 1)" -le 20600 ] || fail "$(du -ak got)"
	there -o all --disk 20M -- sh -c 'head -c 20000000 /dev/zero >b; : >empty' </dev/null || fail "$(cat err)"
	is "$(stat -c %s all/b all/empty | tr '\n' ' ')" "20000000 0 "
}

every_command_has_help_and_json_errors() {
	for command in new ls show rename set env port rm prune pause resume snapshot volume exec attach wait logs cp cat put diff top stats runs events api; do
		atoll "$command" -h
		is "$status" 0 "$command"
		has "$out" "Examples"
		has "$out" "--host"
		atoll "$command" --nonsense --json
		is "$status" 2 "$command"
		atoll --json "$command" --nonsense
		is "$(jq -r .error.code <err)" usage "$command"
	done
}

run_daemon_tests
