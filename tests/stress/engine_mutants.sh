#!/bin/sh
# engine_mutants.sh - every isolation step of the outer boxes of gVisor and of QEMU is left out once, and `atoll prove` is seen to fail where
# a probe covers it. The words are those of prove_mutants.sh. `make prove-mutants`; five minutes for gVisor, more for emulated guests.
#
#	TIERS="gvisor microvm"    the tiers
#	ATOLL_VM_STATE            a state folder in which microvm was prepared; without it one is prepared, with a small /usr
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
. scripts/lib.sh
. tests/microvm.lib
. tests/system/lib.sh
. tests/stress/mutants.lib
if [ ! -x "${ATOLL_TEST_BIN-}" ]; then
	echo "1..0 # SKIP no build with test hooks: meson setup build-test -Dtest_hooks=true"
	exit 0
fi
ATOLL=$ATOLL_TEST_BIN ATOLL_STATE=${ATOLL_VM_STATE:-$work/state}
export ATOLL_STATE
chmod 755 "$work"

# tier | row | what is seen
table() {
	sed 's/#.*//; s/[ 	]*|[ 	]*/|/g; s/[ 	]*$//; /^$/d' <<-'END'
		gvisor  | own descriptors            | closed
		gvisor  | own cgroups                | failed limits: fork bomb; limits: memory bomb; outer box: cgroups
		gvisor  | cgroup view                | failed processes: namespaces
		gvisor  | working folder             | closed
		gvisor  | keyring                    | holds  # the filter has no call for keys
		gvisor  | box root                   | holds  # the builder has that id already
		gvisor  | private mounts             | holds  # the mount namespace of the keeper is private already
		gvisor  | host name                  | failed outer box: host name
		gvisor  | loopback                   | closed
		gvisor  | network unused             | holds  # about network namespaces that are used again
		gvisor  | disk                       | closed
		gvisor  | root filesystem            | closed
		gvisor  | volumes                    | holds  # these boxes have none
		gvisor  | programs                   | holds  # a box without /usr: the probe is a static program
		gvisor  | engine files               | closed
		gvisor  | engine root                | closed
		gvisor  | processes                  | closed
		gvisor  | runsc namespace limits     | failed outer box: namespace limits
		gvisor  | read-only sysctls          | failed outer box: settings of the kernel
		gvisor  | boot id                    | failed outer box: boot id
		gvisor  | masked proc                | failed outer box: lists of the kernel
		gvisor  | root switch                | closed
		gvisor  | root verified              | holds  # a check of the rows before it
		gvisor  | no terminal                | holds  # this keeper has none
		gvisor  | resource limits            | failed outer box: resource limits
		gvisor  | runsc capability bounds    | failed outer box: capability bounds
		gvisor  | runsc capabilities         | holds  # execve gives root of the box what the bounds leave, which are the same
		gvisor  | death signal               | holds  # about boxes whose keeper ends before init is executed
		gvisor  | no new privileges          | holds  # mux and runsc set it, too
		gvisor  | descriptors                | closed
		gvisor  | signals                    | failed outer box: inherited signals
		gvisor  | engine system calls        | failed system calls: gofer  # the sentry has a list of its own
		microvm | own descriptors            | closed
		microvm | own cgroups                | failed outer box: cgroups
		microvm | cgroup view                | failed processes: namespaces
		microvm | working folder             | closed
		microvm | keyring                    | holds  # the filter has no call for keys
		microvm | box root                   | holds  # the builder has that id already
		microvm | private mounts             | holds  # the mount namespace of the keeper is private already
		microvm | host name                  | failed outer box: host name
		microvm | loopback                   | holds  # QEMU has no network device
		microvm | network unused             | holds  # about network namespaces that are used again
		microvm | disk                       | closed
		microvm | root filesystem            | closed
		microvm | volumes                    | holds  # these boxes have none
		microvm | programs                   | closed
		microvm | devices                    | closed
		microvm | no sysfs                   | holds  # the root has no sysfs either
		microvm | processes                  | closed
		microvm | engine namespace limits    | failed outer box: namespace limits
		microvm | read-only proc             | failed outer box: settings of the kernel
		microvm | boot id                    | failed outer box: boot id
		microvm | masked proc                | failed outer box: lists of the kernel
		microvm | root switch                | closed
		microvm | root verified              | holds  # a check of the rows before it
		microvm | no terminal                | holds  # this keeper has none
		microvm | resource limits            | failed outer box: resource limits
		microvm | QEMU capability bounds     | failed outer box: capability bounds
		microvm | identity                   | failed outer box: identity
		microvm | QEMU capabilities          | holds  # the bounds leave none
		microvm | death signal               | holds  # about boxes whose keeper ends before init is executed
		microvm | no new privileges          | closed
		microvm | landlock                   | holds  # the mounts; a domain cannot be seen from outside
		microvm | descriptors                | closed
		microvm | signals                    | failed outer box: inherited signals
		microvm | engine system calls        | holds  # mux loads a list for QEMU and one for itself
	END
}

# The steps of the launch table that apply to a tier.
rows_of() {
	"$ATOLL" policy steps --json |
		jq -r --arg tier "$1" '.steps[] | select(.what == "" or (.what | split(" ") | index($tier))) | .name' | sort
}

need_vm() {
	[ -z "${ATOLL_VM_STATE-}" ] || return 0
	command -v mkfs.erofs >/dev/null && ls /usr/bin/qemu-system-* >/dev/null 2>&1 || return 1
	(unpack_kernel "$work/state" && small_usr "$work/usr") || return 1
	ATOLL_TEST_USR=$work/usr "$ATOLL" tier prepare microvm --state "$work/state" >/dev/null 2>"$work/prepare"
}

try() { # TIER ROW WHAT-IS-SEEN
	kill -0 "$keeper" 2>/dev/null || new_keeper
	status=0 want=$3 prove="$ATOLL prove"
	[ "$2" != "own descriptors" ] || prove=prove_alone
	$prove "$1" --json --without "$2" >"$work/out" 2>"$work/err" </dev/null || status=$?
	failed=$(jq -r '.[0].probes[] | select(.verdict == "failed") | .probe + ": " + .way' "$work/out" 2>/dev/null)
	case $status in 0) got=holds ;; 1) got=failed ;; *) got=closed ;; esac
	case $want in
	failed*)
		echo "${want#failed }" | sed 's/; /\n/g' | sort >"$work/wanted"
		[ -n "$(echo "$failed" | sort | comm -13 - "$work/wanted")" ] || got=$want
		;;
	esac
	[ "$got" = "$want" ] && tell ok "$1 without $2: $want" || {
		tell "not ok" "$1 without $2: $want"
		echo "# it was: $(echo $got $failed | head -c 400) $(head -c 200 "$work/err")"
	}
}

tiers=${TIERS:-gvisor microvm}
case " $tiers " in *' microvm '*) need_vm || no_vm="mkfs.erofs, QEMU or a kernel is missing $(tail -n 1 "$work/prepare" 2>/dev/null)" ;; esac
need_keeper
table >"$work/table"
for tier in $tiers; do
	why=
	case $tier in
	gvisor) [ -x /usr/bin/runsc ] || why="no runsc (apt install runsc)" ;;
	microvm) why=${no_vm-} ;;
	esac
	[ -z "$why" ] || { tell ok "$tier # SKIP $why"; continue; }
	while IFS='|' read -r of row want; do
		[ "$of" != "$tier" ] || try "$tier" "$row" "$want"
	done <"$work/table"
	awk -F '|' -v tier="$tier" '$1 == tier { print $2 }' "$work/table" | sort >"$work/tried"
	rows_of "$tier" >"$work/rows"
	[ -s "$work/rows" ] && cmp -s "$work/rows" "$work/tried" && tell ok "every step of $tier has been left out" || {
		tell "not ok" "every step of $tier has been left out"
		diff "$work/rows" "$work/tried" | sed 's/^/# /'
	}
done
echo "1..$count"
exit $bad
