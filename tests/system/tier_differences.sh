#!/bin/sh
# tier_differences.sh - the table "Differences" of docs/tiers.md: how many rows a tier may have, and that each names a test
# that exists. tests/tiers compares the rows with the results.
. "$(dirname "$0")/lib.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)

# rows TIER: file and test of each row.
rows() { awk -F ' *[|] *' -v tier="$1" '/^## / { on = $0 == "## Differences" } on && $2 == tier { print $3 }' "$top/docs/tiers.md"; }
at_most() { [ "$(rows "$1" | wc -l)" -le "$2" ] || fail "$1 has $(rows "$1" | wc -l) differences, at most $2"; }

no_tier_has_more_differences_than_it_may_have() {
	[ "$(rows gvisor | wc -l)" -gt 0 ] || fail "the table was not found"
	at_most plain 0
	at_most container 0
	at_most gvisor 15
	at_most microvm 10
}

every_difference_names_a_test_that_exists() {
	{ rows gvisor; rows microvm; } >rows
	while IFS= read -r row; do
		file=${row%%: *} test=${row##*: }
		case $file in
		system/* | escape/*) grep -q "^$(echo "$test" | tr ' ' _)() {" "$top/tests/$file.sh" || fail "no test: $row" ;;
		e2b/run) grep -qF "'$test'" "$top"/tests/compat/e2b/*.js "$top"/tests/compat/e2b/suite/*.js || fail "no test: $row" ;;
		*) fail "no such file of tests: $row" ;;
		esac
	done <rows
}

run_tests
