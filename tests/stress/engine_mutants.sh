#!/bin/sh
# engine_mutants.sh - every isolation step of an outer box is left out once, and `atoll prove gvisor` is seen to fail where a probe covers
# it. With ATOLL_VM_STATE=DIR, a state folder with the prepared tier microvm (atoll tier prepare microvm --state DIR with the same build),
# the same for microvm. The words are those of prove_mutants.sh. `make prove-mutants`.
. "$(dirname "$0")/../system/lib.sh"
if [ ! -x "${ATOLL_TEST_BIN-}" ]; then
	echo "1..0 # SKIP no build with test hooks: meson setup build-test -Dtest_hooks=true"
	exit 0
fi
[ -x /usr/bin/runsc ] || [ "${ATOLL_VM_STATE-}" ] || { echo "1..0 # SKIP no runsc (apt install runsc), and ATOLL_VM_STATE is not set"; exit 0; }
ATOLL=$ATOLL_TEST_BIN ATOLL_STATE=${ATOLL_VM_STATE:-$work/state}
export ATOLL_STATE

# tier | rows | what is seen
table() {
	sed 's/#.*//; s/[ 	]*|[ 	]*/|/g; s/[ 	]*$//; /^$/d' <<-'END'
		gvisor  | engine files               | closed
		gvisor  | engine root                | closed
		gvisor  | engine system calls        | failed system calls: sentry
		gvisor  | runsc namespace limits     | holds
		gvisor  | runsc capability bounds    | holds
		gvisor  | runsc capabilities         | holds
		gvisor  | read-only sysctls          | holds
		gvisor  | no new privileges          | closed
		gvisor  | own cgroups                | failed limits: memory bomb
		gvisor  | host name                  | holds  # the kernel of the guest has one of its own
		gvisor  | system calls               | holds
		microvm | engine system calls        | failed system calls: VMM
		microvm | engine namespace limits    | holds
		microvm | QEMU capability bounds     | holds
		microvm | QEMU capabilities          | holds
		microvm | devices                    | closed
		microvm | no new privileges          | closed
		microvm | landlock                   | holds  # the mounts and the filter
		microvm | own cgroups                | holds
	END
}

need_keeper
[ -x /usr/bin/runsc ] && tiers=gvisor || tiers=
[ -z "${ATOLL_VM_STATE-}" ] || tiers="$tiers microvm"
table | grep -E "^(${tiers# }|${tiers##* })\|" >"$work/table"
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

for tier in $tiers; do
	case $tier in gvisor) own='^(runsc|engine) ' ;; *) own='^(QEMU|engine (namespace|system)) ' ;; esac
	"$ATOLL" policy steps --json | jq -r '.steps[].name' | grep -E "$own" | sort >"$work/rows"
	[ "$tier" != gvisor ] || sed -i '/^engine namespace limits$/d' "$work/rows"
	missing=$(sed -n "s/^$tier|\([^|]*\)|.*/\1/p" "$work/table" | sort | comm -23 "$work/rows" -)
	[ -z "$missing" ] && tell ok "$tier: every row of its own has been left out" || {
		tell "not ok" "$tier: every row of its own has been left out"
		echo "# missing: $(echo $missing)"
	}
done
echo "1..$count"
exit $bad
