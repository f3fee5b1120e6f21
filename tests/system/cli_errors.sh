#!/bin/sh
# cli_errors.sh - an error of the command line names what, why and what to type, and no box is created.
. "$(dirname "$0")/lib.sh"

# refused STATUS TEXT WORD...: this status, this text on stderr, nothing on stdout, no keeper started.
refused() {
	want=$1 text=$2
	shift 2
	atoll "$@"
	is "$status" "$want" "$err"
	has "$err" "$text"
	is "$out" ""
	[ ! -e "$ATOLL_RUN" ] || fail "a keeper was started"
}

atoll_without_arguments_prints_the_overview() {
	atoll
	is "$status" 0
	has "$out" "atoll run hello.py"
	[ "$(wc -l <out)" -le 24 ] || fail "more than 24 lines"
}

an_unknown_command_suggests_a_similar_one() {
	refused 2 "no command named 'rnu'" rnu
	has "$err" "close: atoll run"
}

an_unknown_flag_suggests_a_similar_one() {
	refused 2 "unknown flag '--mme'" run --mme 1G x.py
	has "$err" "close: --mem"
}

a_flag_without_its_value_names_the_expected_value() {
	refused 2 "--mem needs a value: SIZE" run --mem
}

run_without_arguments_explains_what_it_runs() {
	refused 2 "run: missing file or command" run
	has "$err" "atoll run hello.py"
	refused 2 "run: missing file or command" run --
}

a_missing_file_is_named() {
	refused 127 "no file named 'nosuch.py'" run nosuch.py
	refused 127 "no file named" run nosuch.py/x
}

a_long_name_is_truncated_in_errors() {
	name=$(printf '%0200d' 0)
	refused 127 "0000..." run "$name.py"
	lacks "$err" "$name"
}

control_characters_of_a_name_are_escaped_in_errors() {
	refused 127 "?[2J" run "$(printf '\033[2J').py"
	lacks "$err" "$(printf '\033')"
}

an_unreadable_file_is_reported() {
	echo 'print(1)' >secret.py
	chmod 0 secret.py
	chmod 755 "$work" .
	[ "$TMPDIR" = /tmp ] || chmod 755 "$TMPDIR"
	setpriv --reuid=65534 --regid=65534 --clear-groups "$ATOLL" version >/dev/null 2>&1 ||
		skip "the user nobody cannot execute $ATOLL"
	status=0
	setpriv --reuid=65534 --regid=65534 --clear-groups "$ATOLL" run secret.py 2>err || status=$?
	is "$status" 126
	has "$(cat err)" "cannot read 'secret.py' (Permission denied)"
}

running_a_folder_is_an_error() {
	mkdir d.py
	refused 126 "'d.py' is not a file (it is a folder)" run d.py
}

running_a_fifo_is_an_error_and_does_not_block() {
	mkfifo p.py
	refused 126 "'p.py' is not a file" run p.py
}

an_unknown_template_suggests_a_similar_one_and_the_list() {
	echo >x
	refused 2 "no template named 'pyhton'" run -t pyhton x
	has "$err" "close: python"
	has "$err" "list: python node typescript bash c"
}

a_file_without_extension_or_shebang_needs_a_template() {
	echo 1 >x
	refused 2 "cannot find the language of 'x'" run x
	has "$err" "atoll run -t NAME x"
}

code_from_stdin_needs_a_template() {
	status=0
	echo 1 | "$ATOLL" run - 2>err || status=$?
	is "$status" 2
	has "$(cat err)" "code from stdin needs a template"
}

a_folder_that_does_not_exist_is_named() {
	refused 2 "cannot open the folder 'nosuch'" run -w nosuch -- true
}

two_arguments_with_the_same_file_name_are_rejected() {
	mkdir a b
	echo >x.py
	echo 1 >a/d
	echo 2 >b/d
	refused 2 "would both become 'd'" run x.py "$PWD/a/d" "$PWD/b/d"
}

an_argument_of_more_than_64_mebibytes_is_refused() {
	echo >x.py
	truncate -s 65M big
	refused 2 "'big' is too large" run x.py big
}

invalid_limits_are_rejected() {
	for limit in --mem=0 --mem=-1 --mem=99999999999999999999 --mem=12Q --mem= --mem=x \
		--disk=0 --disk=1e9 --pids=0 --pids=-3 --pids=1.5 --pids=99999999999 --files=0 \
		--cpu=0 --cpu=-1 --cpu=x --time=0s --time=5 --time=-1s --time=99999999h --cpu-time=0s; do
		refused 2 "${limit%%=*}: " run "$limit" -- true
	done
}

errors_show_the_value_and_an_example() {
	refused 2 "'12Q' has a unit that is not known" run --mem 12Q -- true
	has "$err" "512M"
}

an_invalid_variable_name_is_rejected() {
	for var in 1A=x =x A 'A B=x' 'A-B=x' ''; do
		refused 2 "is not NAME=VALUE" run -e "$var" -- true
	done
}

a_network_is_refused_with_the_reason() {
	refused 2 "only a box of the daemon can have allowed hosts: network.allow" run --net on -- true
}

an_invalid_color_value_is_rejected() {
	refused 2 "--color: 'pink'" run --color pink -- true
}

errors_are_json_with_the_json_flag() {
	refused 2 "error" run --json --mem 12Q -- true
	is "$(json err 'd["error"]["code"]')" usage
	refused 2 "error" --json rnu
	is "$(json err 'd["error"]["hints"][0]["command"]')" "atoll run"
}

a_box_that_does_not_exist_is_not_found() {
	refused 3 "no box named 'nosuch'" kill nosuch
}

template_is_rejected_for_commands_and_shells() {
	refused 2 "a template runs a file" run -t python -- true
	refused 2 "a shell has no template" shell -t python
}

an_unknown_policy_section_suggests_a_similar_one() {
	refused 2 "no section 'secomp'" policy secomp
	has "$err" "close: atoll policy seccomp"
}

a_run_folder_that_cannot_be_created_is_status_125() {
	status=0
	ATOLL_RUN=/proc/nosuch "$ATOLL" run -- true 2>err || status=$?
	is "$status" 125
	has "$(cat err)" "start a keeper: "
	status=0
	ATOLL_RUN=relative "$ATOLL" run -- true 2>err || status=$?
	is "$status" 125
	has "$(cat err)" "must be absolute"
}

run_tests
