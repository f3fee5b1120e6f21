#!/bin/sh
# microvm.sh - boxes in virtual machines (make microvm; minutes without KVM, as root): prepares the tier in a folder of
# its own, with a small /usr and a kernel of Debian or Ubuntu, and runs vmbox against it. An argument is a build with test
# hooks; without one it is made in build-microvm.
set -eu
cd "$(dirname "$0")/../.."
. scripts/lib.sh
. tests/microvm.lib
top=$PWD
need_root
install_needs build microvm
build=${1:-$top/build-microvm}
if [ $# = 0 ]; then
	configure "$build" gcc -Dtest_hooks=true
	as_owner ninja -C "$build" atoll atolld vmbox
fi

work=$(mktemp -d)
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT

unpack_kernel "$work/state"

small_usr "$work/usr"

# Without space for the image of /usr, then for the first guest: the reason is named, and nothing remains.
mkdir -p "$work/full"
for size in 16m 64m; do
	unshare -m --propagation private sh -eu -c '
		mount -t tmpfs -o "size=$1" none "$2/full"
		mkdir -p "$2/full/tiers/kernel"
		mount --bind "$2/state/tiers/kernel" "$2/full/tiers/kernel"
		! ATOLL_TEST_USR=$2/usr "$3/atolld" tier prepare microvm --state "$2/full" 2>"$2/err"
		grep "no space is left in $2/full/tiers/microvm.new" "$2/err"
		[ "$(ls "$2/full/tiers")" = kernel ]' sh "$size" "$work" "$build" >"$work/out" || die "a full disk ($size): $(cat "$work/err")"
done

# QEMU without the capability or a device that guests need: the words of QEMU are the reason, and nothing remains.
mkdir -p "$work/lacking"
for word in x-ignore-shared virtio-serial-pci; do
	unshare -m --propagation private sh -eu -c '
		qemu=$(ls /usr/bin/qemu-system-x86_64 /usr/bin/qemu-system-aarch64 2>/dev/null | head -n 1)
		LC_ALL=C sed "s/$1/${1%?}X/g" "$qemu" >"$2/qemu"
		chmod 755 "$2/qemu"
		mount --bind "$2/qemu" "$qemu"
		mkdir -p "$2/lacking/tiers/kernel"
		mount --bind "$2/state/tiers/kernel" "$2/lacking/tiers/kernel"
		! ATOLL_TEST_USR=$2/usr "$3/atolld" tier prepare microvm --state "$2/lacking" 2>"$2/err"
		grep "$1" "$2/err"
		[ "$(ls "$2/lacking/tiers")" = kernel ]' sh "$word" "$work" "$build" >"$work/out" || die "QEMU without $word: $(cat "$work/err")"
done

# The clock of the templates is one hour behind: clones are as those of an old template.
ATOLL_TEST_RTC=$(date -u -d '1 hour ago' +%Y-%m-%dT%H:%M:%S) ATOLL_TEST_USR=$work/usr "$build/atolld" tier prepare microvm --state "$work/state"
cd "$top"
ATOLL_VM_STATE=$work/state "$build/vmbox"
