#!/bin/sh
# process_mutants.sh - every step of the tier process is left out once, and `atoll prove process` is seen to fail where a probe covers
# it. The words are those of prove_mutants.sh. `make prove-mutants`.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../system/no_namespaces.lib"
. "$here/../system/lib.sh"
if [ ! -x "${ATOLL_TEST_BIN-}" ]; then
	echo "1..0 # SKIP no build with test hooks: meson setup build-test -Dtest_hooks=true"
	exit 0
fi
ATOLL=$ATOLL_TEST_BIN ATOLL_STATE=$work/state ATOLL_KEEPER_PROCESS=true ATOLL_ISOLATION_PROCESS=true
export ATOLL_STATE ATOLL_KEEPER_PROCESS ATOLL_ISOLATION_PROCESS

table() {
	sed 's/#.*//; s/[ 	]*|[ 	]*/|/; s/[ 	]*$//; /^$/d' <<-'END'
		process session           | holds  # the keeper has no terminal
		process folder            | closed
		process capability bounds | failed processes: capabilities
		process identity          | closed # init expects the uid
		process capabilities      | failed processes: capabilities
		process supervisor        | failed end of the box: files
		process children          | holds  # init uses the list when it ends all programs but not itself
		process landlock          | failed host files: by its path
		process system calls      | failed processes: filter; host sockets: UDP at 127.0.0.1; host sockets: a socket in a folder
		no new privileges         | closed
		resource limits           | holds
		descriptors               | closed
		signals                   | failed kernel: inherited signals
	END
}

need_keeper
table >"$work/table"
count=0 bad=0
while IFS='|' read -r row want; do
	count=$((count + 1)) status=0
	"$ATOLL" prove process --json --without "$row" >"$work/out" 2>"$work/err" </dev/null || status=$?
	failed=$(jq -r '.[0].probes[] | select(.verdict == "failed") | .probe + ": " + .way' "$work/out" 2>/dev/null)
	case $status in 0) got=holds ;; 1) got=failed ;; *) got=closed ;; esac
	case $want in
	failed*)
		echo "${want#failed }" | sed 's/; /\n/g' | sort >"$work/wanted"
		[ -z "$(echo "$failed" | sort | comm -13 - "$work/wanted")" ] && got=$want
		;;
	esac
	[ "$got" = "$want" ] && echo "ok $count - without $row: $want" && continue
	bad=1
	echo "not ok $count - without $row: $want"
	echo "# it was: $(echo $got $failed | head -c 400) $(head -c 200 "$work/err")"
done <"$work/table"
kill "$keeper"
find /tmp -maxdepth 1 -uid +65536 -newer "$work/table" -exec rm -r {} + # without a supervisor, folders stay
count=$((count + 1))
"$ATOLL" policy steps --json | jq -r '.steps[].name | select(startswith("process "))' | sort >"$work/rows"
missing=$(cut -d '|' -f 1 "$work/table" | sort | comm -23 "$work/rows" -)
[ -z "$missing" ] && echo "ok $count - every row of the tier has been left out" || {
	echo "not ok $count - every row of the tier has been left out: $missing"
	bad=1
}
echo "1..$count"
exit $bad
