#!/bin/sh
# prove_tiers.sh - `atoll prove` for every tier that this host can have: each probe passes, and the system calls of each program are counted
# from outside. The tier microvm is prepared with a small /usr, emulated where KVM does not run guests; wasm needs `atoll tier prepare wasm`.
# `make prove`; it takes two minutes.
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
. scripts/lib.sh
. tests/microvm.lib
. tests/system/lib.sh
[ -x "${ATOLL_TEST_BIN-}" ] || { echo "1..0 # SKIP no build with test hooks: meson setup build-test -Dtest_hooks=true"; exit 0; }
ATOLL=$ATOLL_TEST_BIN ATOLL_STATE=$work/state
export ATOLL_STATE
chmod 755 "$work"
need_vm() {
	command -v mkfs.erofs >/dev/null && ls /usr/bin/qemu-system-* >/dev/null 2>&1 || return 1
	(unpack_kernel "$work/state" && small_usr "$work/usr") || return 1
	ATOLL_TEST_USR=$work/usr "$ATOLL" tier prepare microvm --state "$work/state" >/dev/null 2>"$work/prepare"
}
need_vm || no_vm="mkfs.erofs, QEMU or a kernel is missing $(tail -n 1 "$work/prepare" 2>/dev/null)"
need_keeper
count=0 bad=0
for tier in container gvisor microvm wasm; do
	count=$((count + 1)) status=0
	case $tier in
	gvisor) [ -x /usr/bin/runsc ] || { echo "ok $count - gvisor # SKIP no runsc (apt install runsc)"; continue; } ;;
	microvm) [ -z "${no_vm-}" ] || { echo "ok $count - microvm # SKIP $no_vm"; continue; } ;;
	wasm) [ -x /usr/local/lib/atoll/wasm/python ] || { echo "ok $count - wasm # SKIP atoll tier prepare wasm was not run"; continue; } ;;
	esac
	"$ATOLL" prove $tier --json >"$work/out" 2>"$work/err" </dev/null || status=$?
	jq -r '.[0] | "# \(.tier): \(.probes | length) probes, \([.probes[] | select(.verdict == "skipped")] | length) skipped", (.probes[] |
		select(.probe == "system calls" or .verdict == "skipped" or .verdict == "failed") | "#   \(.verdict): \(.probe): \(.way): \(.observed)")' "$work/out" ||
		head -c 400 "$work/err"
	[ "$status" = 0 ] && echo "ok $count - every probe of $tier passes" || { bad=1; echo "not ok $count - every probe of $tier passes"; }
done
echo "1..$count"
exit $bad
