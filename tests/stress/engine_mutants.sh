#!/bin/sh
# engine_mutants.sh - every isolation step of gVisor's outer box is left out once, and `atoll prove gvisor` is seen to fail where a probe
# covers it. The words are those of prove_mutants.sh. `make prove-mutants`.
. "$(dirname "$0")/../system/lib.sh"
if [ ! -x "${ATOLL_TEST_BIN-}" ]; then
	echo "1..0 # SKIP no build with test hooks: meson setup build-test -Dtest_hooks=true"
	exit 0
fi
[ -x /usr/bin/runsc ] || { echo "1..0 # SKIP no runsc (apt install runsc)"; exit 0; }
ATOLL=$ATOLL_TEST_BIN ATOLL_STATE=$work/state
export ATOLL_STATE

# tier | rows | what is seen
table() {
	sed 's/#.*//; s/[ 	]*|[ 	]*/|/g; s/[ 	]*$//; /^$/d' <<-'END'
		gvisor  | engine files               | closed
		gvisor  | engine root                | closed
		gvisor  | engine system calls        | failed system calls: gofer  # the sentry has a list of its own
		gvisor  | runsc namespace limits     | holds
		gvisor  | runsc capability bounds    | holds
		gvisor  | runsc capabilities         | holds
		gvisor  | read-only sysctls          | holds
		gvisor  | no new privileges          | holds  # runsc sets it, too
		gvisor  | own cgroups                | failed limits: memory bomb
		gvisor  | host name                  | holds  # the kernel of the guest has one of its own
		gvisor  | system calls               | holds
	END
}

need_keeper
table >"$work/table"
count=0 bad=0
tell() { # ok|"not ok" NAME
	count=$((count + 1))
	echo "$1 $count - $2"
	[ "$1" = ok ] || bad=1
}

while IFS='|' read -r tier row want; do
	status=0
	"$ATOLL" prove "$tier" --json --without "$row" >"$work/out" 2>"$work/err" </dev/null || status=$?
	failed=$(jq -r '.[0].probes[] | select(.verdict == "failed") | .probe + ": " + .way' "$work/out" 2>/dev/null)
	case $status in 0) got=holds ;; 1) got=failed ;; *) got=closed ;; esac
	case $want in
	failed*)
		echo "${want#failed }" | sed 's/; /\n/g' | sort >"$work/wanted"
		[ -n "$(echo "$failed" | sort | comm -13 - "$work/wanted")" ] || got=$want
		;;
	esac
	[ "$got" = "$want" ] && tell ok "$tier without $row: $want" || {
		tell "not ok" "$tier without $row: $want"
		echo "# it was: $(echo $got $failed | head -c 400) $(head -c 200 "$work/err")"
	}
done <"$work/table"

"$ATOLL" policy steps --json | jq -r '.steps[].name' | grep -E '^(runsc|engine) ' | grep -vx 'engine namespace limits' | sort >"$work/rows"
missing=$(cut -d '|' -f 2 "$work/table" | sort | comm -23 "$work/rows" -)
[ -z "$missing" ] && tell ok "every row of gVisor has been left out" || {
	tell "not ok" "every row of gVisor has been left out"
	echo "# missing: $(echo $missing)"
}
echo "1..$count"
exit $bad
