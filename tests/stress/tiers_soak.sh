#!/bin/sh
# tiers_soak.sh - boxes of every isolation tier in use while their processes are killed (make soak-tiers, as root):
# prepares the tier microvm with a small /usr, and starts tiers_soak.py in namespaces of its own. Tiers whose engine is
# not installed are left out, and are named.
#
#	SECONDS=1800 tests/stress/tiers_soak.sh [BUILD]       a build with test hooks: build-test
#	SOAK_PROGRAM=tests/stress/tiers_kill.py tests/stress/tiers_soak.sh [BUILD]       each process at each of four moments (make kill-tiers)
set -eu
cd "$(dirname "$0")/../.."
. scripts/lib.sh
. tests/microvm.lib
need_root
build=${1:-$PWD/build-test}
if [ $# = 0 ]; then
	configure "$build" gcc -Dtest_hooks=true
	as_owner ninja -C "$build" atoll atolld
fi
work=$(mktemp -d)
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT
tiers="container plain"
if command -v runsc >/dev/null; then tiers="$tiers gvisor"; else echo "# without gvisor: apt install runsc"; fi
if command -v mkfs.erofs >/dev/null && ls /usr/bin/qemu-system-* >/dev/null 2>&1; then
	tiers="$tiers microvm"
	unpack_kernel "$work/state"
	small_usr "$work/usr"
	ATOLL_TEST_USR=$work/usr "$build/atolld" tier prepare microvm --state "$work/state"
else
	echo "# without microvm: apt install erofs-utils and the QEMU of this machine"
fi
export SECONDS="${SECONDS:-1800}" SOAK_TIERS="${SOAK_TIERS:-$tiers}" ATOLL="$build/atoll" ATOLL_TEST_TIERS="$work/state/tiers"
export ATOLL_ISOLATION_PROVE=false
export ATOLL_ISOLATION_EMULATION=true # else a snapshot of an emulated guest is not restored: 409
unshare -m -p -f --kill-child sh -eu -c 'mount --make-rprivate / && mount -t tmpfs -o mode=755 none /run &&
	mount -t tmpfs none /dev/shm && mount -t proc proc /proc
	. tests/microvm.lib
	keep_packages "$1"
	shift
	exec "$@"' \
	sh "$work/packages" /usr/bin/python3 "${SOAK_PROGRAM:-tests/stress/tiers_soak.py}"
