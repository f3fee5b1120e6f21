#!/bin/sh
# cli_machine.sh - the commands around a run: ps, kill, doctor, policy, bench, version, help.
. "$(dirname "$0")/lib.sh"
need_keeper

version_prints_the_version() {
	atoll version
	has "$out" "atoll 0."
	atoll --version
	has "$out" "atoll 0."
	is "$("$ATOLL" version --json | cut -c1-12)" '{"version":"'
}

version_names_the_commit_and_the_build() {
	atoll version
	echo "$out" | grep -qE '^atoll [0-9.]+ \(commit ([0-9a-f]{12}( with changes)?|unknown)(, 20[0-9]{2}-[0-9]{2}-[0-9]{2})?, [a-z]+ [0-9.]+, [a-z0-9_]+\)$' || fail "$out"
	is "$("${ATOLL}d" version)" "$out"
	atoll version --json
	is "$(json out 'sorted(d)')" "['arch', 'changed', 'commit', 'compiler', 'date', 'version']"
	is "$(json out 'd["compiler"]')" "$("$ATOLL" version | sed 's/.*, \([a-z]* [0-9.]*\), .*/\1/')"
}

# stamp FOLDER: the header for a tree with the scripts of this one.
stamp() { "$1/scripts/build-stamp" "$PWD/h" "gcc 1" arm && sed -n 2p h; }

the_commit_of_a_build_comes_from_the_archive_or_from_git() {
	mkdir -p tree/scripts
	cp "$here/../../scripts/build-stamp" tree/scripts/
	printf '$Format:%%H %%ct$\n' >tree/scripts/commit
	unset SOURCE_DATE_EPOCH
	# Not a checkout of its own, even if a folder above is one.
	is "$(stamp tree)" '#define BUILD_STAMP { "", 0, "", "gcc 1", "arm" }'
	git="git -C tree -c user.name=a -c user.email=a@example.org"
	git init -q tree && $git add . && GIT_COMMITTER_DATE="@86400 +0000" $git commit -q -m one
	head=$($git rev-parse HEAD)
	is "$(stamp tree)" "#define BUILD_STAMP { \"$head\", 0, \"1970-01-02T00:00:00Z\", \"gcc 1\", \"arm\" }"
	is "$(SOURCE_DATE_EPOCH=0 stamp tree)" "#define BUILD_STAMP { \"$head\", 0, \"1970-01-01T00:00:00Z\", \"gcc 1\", \"arm\" }"
	echo >>tree/scripts/build-stamp
	has "$(stamp tree)" "\"$head\", 1,"
	# What `git archive` leaves; the checkout around it does not count.
	echo "0123456789012345678901234567890123456789 172800" >tree/scripts/commit
	has "$(stamp tree)" '{ "0123456789012345678901234567890123456789", 0, "1970-01-03T00:00:00Z"'
}

the_header_of_an_unchanged_build_is_left_alone() {
	mkdir -p tree/scripts
	cp "$here/../../scripts/build-stamp" tree/scripts/
	echo "0123456789012345678901234567890123456789 0" >tree/scripts/commit
	stamp tree
	touch -d @0 h
	stamp tree
	is "$(stat -c %Y h)" 0
}

# With libraries, the dynamic linker took two thirds of the time of `atoll run -- true`.
the_client_needs_no_library_but_libc() {
	for l in ssl crypto sqlite3 event seccomp wslay; do
		lacks "$(ldd "$ATOLL" 2>&1)" "lib$l"
	done
}

the_client_starts_the_daemon_executable_beside_it() {
	mkdir bin
	cp "$ATOLL" bin/atoll
	is "$(bin/atoll --version)" "$("$ATOLL" version)"
	status=0
	bin/atoll policy >out 2>err || status=$?
	is "$status" 125
	has "$(cat err)" "cannot start $PWD/bin/atolld"
	has "$(cat err)" "No such file or directory"
	cp "${ATOLL}d" bin/atolld
	ln -s "$PWD/bin/atoll" link
	has "$(./link policy)" "system calls"
	has "$(cd bin && ./atoll nosuch 2>&1)" "no command named 'nosuch'"
}

host_names_and_tls_are_handled_by_the_daemon_executable() {
	mkdir bin
	cp "$ATOLL" bin/atoll
	for host in https://127.0.0.1:1 http://localhost:1; do
		status=0
		bin/atoll -H $host ls 2>err || status=$?
		is "$status" 125
		has "$(cat err)" "cannot start"
		atoll -H $host ls
		is "$status" 125
		has "$err" "cannot reach the daemon at $host"
	done
	status=0
	bin/atoll -H http://127.0.0.1:1 ls 2>err || status=$?
	has "$(cat err)" "connection refused"
}

help_explains_every_command() {
	for v in run shell ps kill doctor policy config bench completion version help; do
		atoll help $v
		is "$status" 0
		has "$out" "atoll $v"
		short=$("$ATOLL" $v -h)
		has "$short" --json
	done
}

the_examples_of_run_use_existing_flags() {
	"$ATOLL" run -h | sed -n 's/^  atoll run \(.*\)/\1/p' | grep -o -e '--[a-z-]*' | sort -u | while read -r f; do
		[ "$f" = -- ] || "$ATOLL" run -h | grep -q -e "$f"
	done
}

ps_lists_a_box_until_it_is_deleted() {
	is "$("$ATOLL" ps)" ""
	"$ATOLL" run -q -- sleep 4730 &
	cli=$!
	soon eval '"$ATOLL" ps | grep -q base'
	box=$("$ATOLL" ps -q)
	is "$("$ATOLL" ps --json | /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["id"])')" "$box"
	"$ATOLL" kill -q "$box"
	wait $cli || :
	is "$("$ATOLL" ps -q)" ""
	nothing_left "sleep 4730"
}

kill_all_ends_all() {
	"$ATOLL" run -q -- sleep 4731 & one=$!
	"$ATOLL" run -q -- sleep 4731 & two=$!
	soon eval '[ "$("$ATOLL" ps -q | wc -l)" = 2 ]'
	atoll kill --all
	is "$status" 0
	wait $one || :
	wait $two || :
	soon no_process "sleep 4731"
}

an_unknown_box_is_status_3() {
	atoll kill aaaaaaaaaaaa
	is "$status" 3
	has "$err" "no box named 'aaaaaaaaaaaa'"
}

doctor_prints_one_line_per_check() {
	atoll doctor
	is "$status" 0 "$out"
	has "$out" "user namespaces"
	has "$out" "seccomp"
	atoll doctor --json
	is "$(json out 'len(d) > 10 and all(r["status"] in ("ok", "warn", "fail") for r in d)')" True
}

# core(5): | names a program that the kernel starts, @ a socket that it connects to.
doctor_warns_of_a_core_dump_handler_and_names_its_kind() {
	at=/proc/sys/kernel/core_pattern
	for pattern in '|/usr/bin/handler %p' '@/run/handler' '@@/run/handler'; do
		echo "$pattern" >pattern
		unshare -m sh -c "mount --bind pattern $at && exec \"\$ATOLL\" doctor --json" >out || skip "no mounts of our own here"
		is "$(json out '[r["status"] for r in d if r["name"] == "core pattern"][0]')" warn "$pattern"
		text=$(json out '[str(r) for r in d if r["name"] == "core pattern"][0]')
		has "$text" "$pattern"
		case $pattern in
		@*) has "$text" "a crash connects to a socket of the host" ;;
		*) has "$text" "a crash starts a program as root" ;;
		esac
	done
}

policy_prints_the_tables() {
	atoll policy
	has "$out" "system calls"
	has "$out" io_uring_setup
	has "$out" /proc/kcore
	atoll policy seccomp --json
	is "$(json out '[r["what"] for r in d["seccomp"] if r["name"] == "clone3"]')" "['not there']"
}

bench_measures_a_process_and_three_boxes() {
	atoll bench -n 3 --json
	is "$status" 0 "$err"
	is "$(json out 'sorted(d)')" "['cold', 'exec', 'pooled', 'process']"
}

run_tests
