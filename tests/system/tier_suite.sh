#!/bin/sh
# tier_suite.sh - tests/tiers compares what fails in a tier with the table "Differences" of docs/tiers.md: for one file of tests, in gVisor.
# (`make tiers` does it for all of them; it takes an hour.)
. "$(dirname "$0")/lib.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
[ -x /usr/bin/runsc ] || { echo "1..0 # SKIP no runsc (apt install runsc)"; exit 0; }
[ -x "$top/build-test/atoll" ] || { echo "1..0 # SKIP no build with test hooks: $top/build-test"; exit 0; }
suite() { (unset ATOLL_TIER && "$top/tests/tiers" gvisor tests/system/cli_files.sh) >out 2>&1 && status=0 || status=$?; }

the_differences_of_a_tier_are_those_of_the_table() {
	suite
	is "$status" 0 "$(tail -n 40 out)"
	has "$(cat out)" "gvisor: 1 differences, as listed in docs/tiers.md"
}

run_tests
