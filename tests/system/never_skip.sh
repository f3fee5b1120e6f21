#!/bin/sh
# never_skip.sh - ./check reports a listed test file that did not run, and a test of it that was skipped.
. "$(dirname "$0")/lib.sh"
top=$here/../..

# Compares what the script prints for list and results with the expected lines on stdin.
reports() {
	NEVER_SKIP=list "$top/tests/never-skip.sh" results "$@" >got || :
	sort got >sorted
	sort | diff - sorted || fail "other lines were reported"
}
row() { printf '%s\t%s\t%s\n' "$@" >>results; }

skipped_and_missing_tests_of_the_list_are_reported() {
	printf '# a comment\n\nsystem, gcc: a/one\nsystem, gcc: a/two except this one\nunit, gcc: three_test\n' >list
	row pass "a/one: first (system, gcc)" ""
	row skip "a/one: second: with a colon (system, gcc)" "no loop device"
	row pass "a/two: first (system, gcc)" ""
	row skip "a/two: this one (system, gcc)" "no zsh"
	row skip "a/four: not listed (system, gcc)" ""
	row pass "three_test: in another suite (unit, clang sanitised)" ""
	reports <<-END
	a/one (system, gcc): skipped: second: with a colon: no loop device
	three_test (unit, gcc): did not run
	END
	reports one <<-END
	a/one (system, gcc): skipped: second: with a colon: no loop device
	END
	reports two </dev/null
}

file_that_was_skipped_as_a_whole_is_reported() {
	echo 'system, gcc: a/one' >list
	row skip "a/one: all of it (system, gcc)" "not root"
	reports <<-END
	a/one (system, gcc): did not run
	a/one (system, gcc): skipped: all of it: not root
	END
	! NEVER_SKIP=list "$top/tests/never-skip.sh" results >/dev/null || fail "status 0"
}

# A renamed file would otherwise be noticed after the whole run only.
files_of_the_list_are_files_that_check_runs() {
	sed -n 's/^[^#][^:]*: //p' "$top/tests/never-skip" | sed 's/ except .*//' | while read -r file; do
		case $file in
		*_test) path=tests/unit/$file.c ;;
		*/run) path=tests/compat/$file.sh ;;
		*) path=tests/$file.sh ;;
		esac
		[ -f "$top/$path" ] || fail "$file: there is no $path"
	done
}

run_tests
