#!/bin/sh
# cli_keeper.sh - the CLI starts a keeper when none runs, and continues when a keeper dies.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }

# The keeper of this test's run folder. The command starts a keeper, so call it only while one should run.
keeper_pid() {
	"$ATOLL" doctor --json | /usr/bin/python3 -c 'import json, sys
print([r["value"].split()[1].strip(",") for r in json.load(sys.stdin) if r["name"] == "keeper"][0])'
}
is_gone() { ! kill -0 "$1"; }
end_keeper() {
	pid=$(keeper_pid)
	kill "$pid"
	soon is_gone "$pid"
}

simultaneous_clients_share_one_keeper() {
	export ATOLL_RUN="$PWD/r"
	for i in 1 2 3 4; do "$ATOLL" run -- echo $i >o$i & done
	wait
	is "$(cat o1 o2 o3 o4 | sort | tr -d '\n')" 1234
	is "$(pgrep -P 1 -f "atoll keeper" | while read -r p; do ls -l /proc/$p/fd | grep -q "$PWD/r/keeper.lock" && echo $p; done | wc -l)" 1
	end_keeper
}

# A new user has no ~/.local.
the_folders_above_the_state_folder_are_made() {
	export ATOLL_RUN="$PWD/r" ATOLL_STATE="$PWD/home/.local/state/atoll"
	mkdir home
	is "$("$ATOLL" run -- echo made 2>&1)" made
	is "$(stat -c %a home/.local home/.local/state | tr '\n' ' ')" "700 700 "
	end_keeper
}

a_new_keeper_starts_while_the_old_one_exits() {
	export ATOLL_RUN="$PWD/r"
	"$ATOLL" run -- true
	pid=$(keeper_pid)
	kill "$pid"
	# Immediately: the old keeper may still be exiting.
	is "$("$ATOLL" run -- echo again)" again
	end_keeper
}

a_keeper_that_was_killed_is_replaced() {
	export ATOLL_RUN="$PWD/r"
	"$ATOLL" run -- true
	kill -KILL "$(keeper_pid)"
	is "$("$ATOLL" run -- echo replaced)" replaced
	end_keeper
}

# [FLAG...]: a box that waits for input, in $box; input comes from descriptor 3, output goes to out.
waiting_box() {
	mkfifo go
	"$ATOLL" run -v "$@" -- sh -c 'echo started; read x; echo "$x"; exit 6' <go >out 2>err &
	cli=$!
	exec 3>go
	soon grep -q started out
	box=$(sed -n 's/^atoll: box \([a-z2-7]*\) ready.*/\1/p' err)
}
knows() { # BOX: the next keeper lists it
	keeper_pid >/dev/null
	has "$("$ATOLL" ps -q)" "$1"
}
ends_well() {
	echo on >&3
	exec 3>&-
	status=0
	wait $cli || status=$?
	is "$status" 6
	is "$(tail -1 out)" on
}

a_run_continues_after_the_death_of_its_keeper_and_leaves_nothing() {
	export ATOLL_RUN="$PWD/r"
	waiting_box --report r.json
	kill -KILL "$(keeper_pid)"
	ends_well
	is "$(json r.json 'd["cause"], d["evidence"]["oom_kills"]')" "('exit', 0)"
	nothing_left
	end_keeper
}

# Older keepers wrote one record file per box into a folder.
boxes_of_an_older_keeper_are_adopted() {
	export ATOLL_RUN="$PWD/r"
	waiting_box
	kill -KILL "$(keeper_pid)"
	/usr/bin/python3 - "$box" <<-'END'
		import struct, sys
		all = open("r/records", "rb").read()
		places = [(at, *struct.unpack_from("QQ", all, at)) for at in range(2048, len(all), 2048)]
		metas = [all[at + 16 : at + 16 + n] for at, sum, n in places if sum]
		id = max(meta.find(sys.argv[1].encode()) for meta in metas)
		for meta in metas: # pooled boxes, too: without a record no keeper would end them
		    open("r/boxes/%s.box" % meta[id : id + 12].decode(), "wb").write(meta.ljust(1112, b"\0"))
	END
	[ -s "r/boxes/$box.box" ] || fail "no record of $box"
	rm r/records
	echo torn >r/boxes/aaaaaaaaaaaa.box
	: >r/boxes/bbbbbbbbbbbb.box
	knows "$box"
	is "$(ls r/boxes/*.box)" r/boxes/aaaaaaaaaaaa.box # unreadable, and not removed
	has "$(cat r/keeper.log)" "aaaaaaaaaaaa.box is not a record of this version; left alone"
	kill -KILL "$(keeper_pid)"
	knows "$box"
	ends_well
	nothing_left
	end_keeper
}

a_torn_record_is_skipped_and_the_others_are_read() {
	export ATOLL_RUN="$PWD/r"
	waiting_box
	kill -KILL "$(keeper_pid)"
	printf 'torn' | dd of=r/records bs=2048 seek=1000 conv=notrunc 2>/dev/null
	knows "$box"
	has "$(cat r/keeper.log)" "record 999 of boxes is not whole; left alone"
	ends_well
	end_keeper
}

records_of_another_version_are_not_overwritten() {
	export ATOLL_RUN="$PWD/r"
	waiting_box
	kill -KILL "$(keeper_pid)"
	cp r/records kept
	/usr/bin/python3 - <<-'END'
		import struct
		f = open("r/records", "r+b")
		_, magic, boot, version, place = struct.unpack("QQQII", f.read(32))
		rest = struct.pack("QQII", magic, boot, version + 1, place)
		sum = 0xcbf29ce484222325
		for word in struct.unpack("QQQ", rest):
		    sum = (sum ^ word) * 0x9e3779b97f4a7c15 & (1 << 64) - 1
		    sum ^= sum >> 32
		f.seek(0)
		f.write(struct.pack("Q", sum) + rest)
	END
	status=0
	"$ATOLL" run -- true 2>no || status=$?
	is "$status" 125
	has "$(cat no)" "records of boxes are of version 2"
	cat kept >r/records
	knows "$box"
	ends_well
	nothing_left
	end_keeper
}

# start_keeper RUN_FOLDER [WRAPPER...]: sets pid and said.
start_keeper() {
	export ATOLL_RUN="$1"
	shift
	rm -f ready
	mkfifo ready
	"$@" "$ATOLL" keeper --pool 0 --ready-fd 3 3>ready 2>>keeper.err &
	pid=$!
	said=$(dd bs=4096 count=1 2>/dev/null <ready)
}

# As on a busy machine: the client has its box, and its init has not run for the first time when the keeper exits.
a_box_whose_init_has_not_run_yet_survives_its_keeper() {
	start_keeper "$PWD/r"
	is "$said" R
	mkfifo hold
	"$PROBE" hold-exec "$pid" <hold >held 2>&1 &
	exec 4>hold
	soon grep -q . held
	grep -q watching held || skip "the keeper cannot be traced here: $(cat held)"
	"$ATOLL" run -v -- echo alive >out 2>err 4>&- &
	cli=$!
	soon grep -q ready err
	soon grep -q held held
	kill -KILL "$pid"
	wait "$pid" || :
	exec 4>&-
	status=0
	wait "$cli" || status=$?
	is "$status $(cat out)" "0 alive" "$(cat err)"
	end_keeper
}

boxes_leave_descriptors_for_connections() {
	start_keeper "$PWD/r" prlimit --nofile=256:256
	is "$said" R
	runs=
	for i in $(seq 40); do
		"$ATOLL" run -- sh -c 'echo in; sleep 60' >o$i 2>e$i &
		runs="$runs $!"
		answered() { grep -q . o$i e$i; }
		soon answered
		[ ! -s e$i ] || break
	done
	has "$(cat e$i)" "Too many open files"
	[ "$i" -gt 2 ] || fail "no box at all"
	"$ATOLL" ps --local >seen # a keeper without a free descriptor would close the connection
	is "$(wc -l <seen)" $((i - 1))
	is "$(cat "/proc/$pid/comm")" atoll-keeper
	"$ATOLL" kill --local --all >/dev/null
	wait $runs || :
	is "$("$ATOLL" run -- echo again)" again
	kill $pid
	wait $pid || :
}

a_keeper_that_cannot_start_prints_the_reason() {
	export ATOLL_RUN="$PWD/r"
	mkdir r
	# Another process holds the lock of the keeper and does not listen.
	flock r/keeper.lock sleep 4740 &
	holder=$!
	soon eval '! flock -n r/keeper.lock true'
	status=0
	"$ATOLL" run -- true 2>err || status=$?
	kill $holder $(pgrep -P $holder)
	is "$status" 125
	has "$(cat err)" "keeper.lock"
	has "$(cat err)" "check: atoll doctor"
}

run_tests
