#!/bin/sh
# api.sh - the tests of the API through a gateway in front of three nodes, with PostgreSQL, and E2B's own packages over HTTP
# and TLS. Every test that fails must be in the file differences, and every test there must fail.
#
#	tests/cluster/api.sh [etcd] [FILE...]
#
# A line of differences: the file of the test, its name, and the reason.
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top" || exit 2
[ "$(id -u)" = 0 ] || { echo "not root" >&2; exit 2; }
etcd=0
[ "${1:-}" != etcd ] || { etcd=1; shift; }
if [ $etcd = 1 ] && [ -z "${ATOLL_API_NAMESPACE:-}" ]; then # where the ports of etcd are free
	ATOLL_API_NAMESPACE=1 exec unshare --net sh -c 'ip link set lo up && exec "$@"' api "$0" etcd "$@"
fi
[ $# -gt 0 ] || set -- tests/system/api_*.sh tests/system/e2b_*.sh tests/compat/e2b/run.sh
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
ATOLL_TEST_GATEWAY=${NODES:-3} ATOLL_TEST_ETCD=$etcd E2B_COMPAT_SECONDS=${E2B_COMPAT_SECONDS:-850} \
	tests/run -b "${BUILD:-build}" -j 1 -t "${SECONDS_OF_A_FILE:-3600}" -r "$results/all" "$@" || :
# pass|fail|skip TAB file: test TAB reason
awk -F '\t' -v OFS='\t' '
	FNR == NR { if ($0 !~ /^#/ && NF) expected[$1 ": " $2] = $3; next }
	{ sub(/^.*\//, "", $2) }
	$1 == "fail" && !($2 in expected) { print "unexpected: " $2; bad = 1 }
	$1 == "fail" && $2 in expected { print "difference: " $2 " (" expected[$2] ")" }
	$1 == "pass" && $2 in expected { print "no longer a difference: " $2; bad = 1 }
	{ n[$1]++ }
	END {
		for (k in expected) listed++
		if (listed > 5) { print "more than 5 differences are listed: " listed; bad = 1 }
		printf "%d passed, %d failed, %d skipped, %d differences listed\n", n["pass"], n["fail"], n["skip"], listed
		exit bad
	}' tests/cluster/differences "$results/all"
