#!/bin/sh
# cli_files.sh - which files of this machine are copied into a box, and what the program sees of them.
. "$(dirname "$0")/lib.sh"
need_keeper

run_executes_a_file_with_its_arguments() {
	echo 'import sys; print(sys.argv[1:])' >hello.py
	run hello.py a 'b c' ''
	is "$status" 0 "$err"
	is "$out" "['a', 'b c', '']"
	nothing_left
}

flags_after_the_file_are_passed_to_the_program() {
	echo 'import sys; print(sys.argv[1:])' >hello.py
	run hello.py --mem 1 -h
	is "$out" "['--mem', '1', '-h']"
}

every_installed_language_runs() {
	echo 'print(6 * 7)' >a.py
	echo 'echo $((6 * 7))' >a.sh
	printf '#include <stdio.h>\nint main(void) { printf("%%d\\n", 6 * 7); }\n' >a.c
	printf '#include <cstdio>\nint main() { printf("%%d\\n", 6 * 7); }\n' >a.cpp
	echo 'console.log(6 * 7)' >a.js
	echo 'print 6 * 7, "\n"' >a.pl
	echo 'puts 6 * 7' >a.rb
	for f in py:python3 sh:bash c:cc cpp:g++ js:node pl:perl rb:ruby; do
		[ -x "/usr/bin/${f#*:}" ] || continue
		run "a.${f%:*}"
		is "$out" 42 "$f: $err"
	done
	nothing_left
}

the_shebang_selects_the_interpreter() {
	printf '#!/usr/bin/env python3\nprint("snake")\n' >tool
	run tool
	is "$out" snake
}

a_native_executable_is_run_directly() {
	cp /usr/bin/printf prog
	run prog '%s-%s' a b
	is "$out" a-b
}

code_from_stdin_runs() {
	is "$(echo 'print(6 * 7)' | "$ATOLL" run -t python -)" 42
	is "$(echo 'print(6 * 7)' | "$ATOLL" run -t python)" 42
	is "$(printf '#!/bin/sh\necho $1\n' | "$ATOLL" run - seven)" seven
}

a_compiler_that_fails_ends_the_run_with_its_status() {
	echo 'int main(void) { return nosuch; }' >bad.c
	run --report r.json bad.c
	is "$status" 1
	has "$err" "nosuch"
	is "$(json r.json 'd["command"][3]')" gcc
	nothing_left
}

files_named_as_arguments_are_copied_in() {
	mkdir sub
	echo one >data.csv
	echo two >sub/data.csv
	cat >cat.py <<-'X'
		import sys
		for f in sys.argv[1:]:
		    print(f, open(f).read().strip())
	X
	run cat.py data.csv sub/data.csv data.csv
	is "$out" "data.csv one
sub/data.csv two
data.csv one"
}

a_file_from_another_folder_keeps_its_base_name() {
	mkdir here there
	echo far >there/data.csv
	echo 'import sys; print(sys.argv[1], open(sys.argv[1]).read().strip())' >here/a.py
	cd here
	run a.py ../there/data.csv
	is "$out" "data.csv far"
	run a.py "$PWD/../there/data.csv"
	is "$out" "data.csv far"
}

a_file_below_usr_is_not_copied() {
	echo 'import sys; print(sys.argv[1])' >a.py
	run a.py /usr/bin/env
	is "$out" /usr/bin/env
}

a_folder_is_copied_with_modes_and_links() {
	mkdir -p p/src/deep p/empty
	echo hello >p/src/deep/file
	printf '#!/bin/sh\necho runs\n' >p/go
	chmod 755 p/go
	ln -s src/deep/file p/link
	ln -s /etc/shadow p/outside
	run -w p -- sh -c 'cat link; ./go; test -d empty && readlink outside; cat outside; pwd'
	has "$out" "hello
runs
/etc/shadow"
	has "$out" /home/user
	lacks "$out" root:
	nothing_left
}

a_file_of_the_copied_folder_runs_at_its_path() {
	mkdir -p p/src
	echo 'import sys, os; print(os.path.dirname(__file__), open(sys.argv[1]).read().strip())' >p/src/a.py
	echo data >p/d
	run -w p p/src/a.py p/d
	is "$out" "/home/user/src data"
}

a_thousand_files_are_copied() {
	mkdir p
	for i in $(seq 1000); do echo $i >p/f$i; done
	run -w p -- sh -c 'ls | wc -l; cat f*' 
	is "$(head -1 out)" 1000
	is "$(tail -n +2 out | sort -n | md5sum)" "$(seq 1000 | md5sum)"
}

names_of_any_bytes_are_copied() {
	mkdir p
	: >"p/$(printf 'new\nline')"
	: >"p/$(printf 'not-utf8-\377')"
	: >"p/-rf"
	: >"p/ "
	run -w p -- sh -c 'ls -a | wc -l'
	is "$out" 7
}

pipes_and_sockets_are_left_out_and_named() {
	mkdir p
	mkfifo p/pipe
	echo x >p/file
	run -w p -- ls
	is "$out" file
	has "$err" "left out"
	has "$err" pipe
}

a_tree_that_is_too_deep_is_rejected_with_a_message() {
	mkdir p
	(cd p && for i in $(seq 300); do mkdir d && cd d; done)
	run -w p -- true
	is "$status" 2
	has "$err" "deeper than 256 levels"
	nothing_left
}

a_folder_over_the_disk_limit_names_the_limit() {
	mkdir p
	head -c 20000000 /dev/urandom >p/big
	run --disk 8M -w p -- true
	is "$status" 125
	has "$err" "--disk"
	nothing_left
}

the_environment_has_nothing_of_the_host() {
	ATOLL_SECRET=x SECRET=y run -e FOO=bar -e FOO=baz -- env
	has "$out" FOO=baz
	has "$out" HOME=/home/user
	lacks "$out" SECRET
	lacks "$out" FOO=bar
}

# ---- and back ----

files_that_a_program_created_are_copied_to_the_out_folder() {
	mkdir -p src/sub
	echo old >src/kept && echo old >src/sub/changed && echo old >src/removed
	run -w src --out got -- sh -c 'echo new >sub/changed; rm removed; mkdir a; echo 1 >a/made; printf "\\0\\377" >bytes
		chmod 755 bytes; echo no >/tmp/elsewhere; exit 3'
	is "$status" 3 "$err"
	is "$(cd got && find . -type f | sort | tr '\n' ' ')" "./a/made ./bytes ./sub/changed "
	is "$(cat got/sub/changed)" new
	is "$(od -An -tx1 got/bytes | tr -d ' ')" 00ff
	[ -x got/bytes ] || fail "it lost its mode"
	is "$(cat src/sub/changed)" old "the original is not touched"
	has "$err" "atoll: 3 files, 8 B, in got"
	# Again into the same folder, with a record; and by a compiled program, without the files of the compiler.
	printf '#include <stdio.h>\nint main(void){fputs("c", fopen("by_c","w"));return 0;}\n' >w.c
	run --out got --report r.json w.c
	is "$status" 0 "$err"
	is "$(cat got/by_c)" c
	has "$(json r.json '[c["path"] for c in d["files_changed"]]')" by_c
	is "$(ls got | tr '\n' ' ')" "a by_c bytes sub "
	run -q --out none -- true
	is "$status$err" 0
	is "$(ls none)" ""
}

nothing_is_written_outside_the_out_folder() {
	mkdir got outside
	ln -s ../outside got/link
	echo precious >outside/file
	ln -s ../outside/file got/file
	run --out got -- sh -c 'echo x >file; mkdir link; echo x >link/escaped; ln -s /etc/passwd secret; mkfifo pipe; mkdir -p deep/er'
	is "$status" 125 "$err"
	has "$err" "--out: create link/escaped"
	mkdir -p "got/$(printf 'n\033]0;t\007')"
	run --out got -- sh -c 'echo x >"$(printf "n\033]0;t\007")"'
	has "$err" "--out: create n?]0;t?"
	rmdir got/n*
	is "$(cat outside/file)" precious
	is "$(ls outside)" file
	rm got/link
	run --out got -- sh -c 'echo x >file; ln -s /etc/passwd secret; mkfifo pipe'
	is "$status" 0 "$err"
	is "$(cat got/file)" x
	[ ! -L got/file ] || fail "it is still a link"
	is "$(cat outside/file)" precious
	has "$err" "atoll: 2 left out, no regular files"
	is "$(ls got)" file
}

an_out_folder_that_cannot_be_written_is_an_error_before_the_run() {
	echo file >taken
	run --out taken -- sh -c 'echo ran >&2'
	is "$status" 125
	has "$err" "--out: open the folder taken: Not a directory"
	lacks "$err" ran
	run --out no/where -- true
	has "$err" "--out: create the folder no/where: No such file or directory"
	run --watch --out x -w . -- true
	is "$status" 2
}

service_accounts_of_the_host_are_not_in_a_box() {
	run -- cat /etc/passwd /etc/group
	is "$(echo "$out" | awk -F: '$3 > 100 && $3 != 1000 && $3 != 65534')" ""
	has "$out" "www-data:x:33:33:"
	run -- sh -c 'id -un; getent group staff; getent passwd _apt'
	has "$out" user
	has "$out" "staff:x:50:"
	has "$out" "_apt:x:42:"
}

run_tests
