#!/bin/sh
# run.sh - E2B's own packages, as published, against a daemon: two releases, each over plain HTTP at an
# address and over TLS at a domain.
#
#	tests/run tests/compat/e2b/run.sh
#	ATOLL=build/atoll tests/compat/e2b/run.sh [now|before|tools] [plain|tls] [WORDS OF A TEST]
#
# E2B_COMPAT_ONLY=RELEASE:WAY is the same as the first two arguments, RELEASE:WAY:TABLE the tests of TABLE.js (tests/tiers).
#
# The packages come from npm, at the versions of now/, before/ and tools/, into a folder outside of the tree:
# E2B_COMPAT_CACHE, or below ~/.cache. A release has E2B_COMPAT_SECONDS (170) for all its tests. The public server is never contacted: without a daemon nothing is sent.
top=$(cd "$(dirname "$0")/../../.." && pwd)
. "$top/tests/compat/e2b/e2b.lib"
case ${1-} in */*) shift ;; esac # tests/run names an init, as for every test
if [ "${E2B_COMPAT_ONLY-}" ]; then
	IFS=: read -r release way E2B_COMPAT_TABLE <<-END
		$E2B_COMPAT_ONLY
	END
	export E2B_COMPAT_TABLE
	set -- "$release" "$way"
fi
[ "${ATOLL_QUICK:-0}" = 1 ] && before= || before=before # ./check leaves the older release to ./check --all
releases=${1:-now $before tools} ways=${2:-plain tls} words=${3-}

drive() { # RELEASE WAY
	timeout "${E2B_COMPAT_SECONDS:-170}" node "$compat/drive.js" "$cache/$1" "$2" ${words:+"$words"} >"$work/tap" 2>&1
	status=$?
	grep '^#\|^ok\|^not ok' "$work/tap" | tee -a "$work/all"
	grep -q '^# ran ' "$work/tap" && return
	echo "not ok - e2b, $1, $2: comes to its end" | tee -a "$work/all"
	tail -5 "$work/tap" | sed "s/^/# status $status: /"
}

# Sandboxes that are paused to the disk, and continue after server and keeper were killed. Of the newest release.
restart() {
	verdict=ok
	rm -f "$work/known"
	timeout 120 node "$compat/restart.js" "$cache/now" begin "$work/known" || verdict='not ok'
	keeper=$("$ATOLL" doctor --json | grep -o 'pid [0-9]*' | head -n 1 | cut -d ' ' -f 2)
	keeper_gone() { [ ! -d "/proc/$keeper" ]; }
	stop_daemon
	kill -9 "$keeper"
	soon keeper_gone
	start_daemon
	over_http
	[ "$verdict" = 'not ok' ] || timeout 120 node "$compat/restart.js" "$cache/now" end "$work/known" || verdict='not ok'
	echo "$verdict - e2b: variables, commands and servers continue after a pause, by a call and by a timeout, and a restart of server and keeper" | tee -a "$work/all"
}

need_node
need_packages $releases
need_daemon
for way in $ways; do
	case $way in plain) over_http ;; tls) over_https ;; esac
	case $way:$releases:${words:-restart}${E2B_COMPAT_TABLE-}:${ATOLL_TIER:-container}:${ATOLL_TEST_GATEWAY:-0} in plain:*now*:restart:container:0) restart ;; esac
	for release in $releases; do
		case $release$way in toolsplain) [ "$ways" != plain ] && continue ;; esac # once is enough
		[ "$words" = restart ] || drive "$release" "$way"
	done
	verdict=ok
	! grep -v '^atoll: serving\|"level":"info"' "$work/serve.log" | grep '"level":"error"\|^[^{]' | sed 's/^/# /' | grep . || verdict='not ok'
	echo "$verdict - e2b, $way: the daemon had nothing to complain of" | tee -a "$work/all"
done
echo "1..$(grep -c '^ok \|^not ok ' "$work/all")"
! grep -q '^not ok' "$work/all"
