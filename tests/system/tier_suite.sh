#!/bin/sh
# tier_suite.sh - tests/tiers compares what fails in a tier with the table "Differences" of docs/tiers.md: for one file of tests in gVisor, for
# another one in plain, which has no differences; and with tables that are wrong. (`make tiers` compares all files; it takes an hour.)
. "$(dirname "$0")/lib.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
[ -x "$top/build-test/atoll" ] || { echo "1..0 # SKIP no build with test hooks: $top/build-test"; exit 0; }
suite() { (unset ATOLL_TIER && BUILD=$top/build-test "$top/tests/tiers" "$@") >out 2>&1 && status=0 || status=$?; }

the_differences_of_a_tier_are_those_of_the_table() {
	[ -x /usr/bin/runsc ] || skip "no runsc (apt install runsc)"
	suite gvisor tests/system/cli_files.sh
	is "$status" 0 "$(tail -n 40 out)"
	has "$(cat out)" "gvisor: 1 differences, as listed in docs/tiers.md"
}

plain_has_no_differences() {
	suite plain tests/system/cli_status.sh
	is "$status" 0 "$(tail -n 40 out)"
	has "$(cat out)" "plain: 0 differences, as listed in docs/tiers.md"
}

# compared STATUS NAME...: these tests of three.sh are rows of the table.
compared() {
	want=$1
	shift
	{
		echo '## Differences'
		for name; do echo "| plain | three: $name | a reason |"; done
		echo '| gvisor | three: one works | another tier |'
	} >table.md
	(export TIER_DIFFERENCES="$PWD/table.md" && suite plain "$PWD/three.sh" && echo "$status" >status)
	is "$(cat status)" "$want" "$(cat out)"
}
a_failure_without_a_row_and_a_row_without_a_failure_fail_the_comparison() {
	printf '#!/bin/sh\necho "1..3\nok 1 - one works\nnot ok 2 - two works\nok 3 - three works # SKIP not here"; exit 1\n' >three.sh
	chmod +x three.sh
	compared 0 'two works'
	compared 1
	has "$(cat out)" "< three: two works"
	compared 1 'one works' 'two works'
	has "$(cat out)" "> three: one works"
	compared 1 'two works' 'a test that no longer exists'
	has "$(cat out)" "> three: a test that no longer exists"
}

run_tests
