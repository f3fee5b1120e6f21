#!/bin/sh
# microvm.sh - boxes in virtual machines (make microvm; minutes without KVM, as root): prepares the tier in a folder of
# its own, with a small /usr and a kernel of Debian or Ubuntu, and runs vmbox against it. An argument is a build with test
# hooks; without one it is made in build-microvm.
set -eu
cd "$(dirname "$0")/../.."
. scripts/lib.sh
top=$PWD
case $(uname -m) in aarch64) arch=arm64 ;; *) arch=amd64 ;; esac
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

# The kernel is unpacked, not installed: the host's boot loader does not see it.
mkdir -p "$work/state/tiers/kernel" "$work/deb"
cd "$work/deb"
package=$(apt-cache depends "linux-image-cloud-$arch" 2>/dev/null | awk '/Depends: linux-image/ { print $2; exit }')
[ "$package" ] || package=$(apt-cache depends linux-image-virtual | awk '/Depends: linux-image/ { print $2; exit }')
apt-get download -q "$package" >/dev/null 2>&1 || die "no kernel package in the lists of this host; type: apt-get update"
dpkg -x ./*.deb "$work/state/tiers/kernel"

# Programs that the tests use, with their libraries.
copy() { mkdir -p "$work/usr/$(dirname "${2#/usr/}")" && cp -L "$1" "$work/usr/${2#/usr/}"; }
mkdir -p "$work/usr/bin" "$work/usr/sbin" "$work/usr/lib" "$work/usr/lib64"
for name in sh cat chmod date dd echo head id ls mkdir mv od rm sleep tail tr true python3; do
	copy "/usr/bin/$name" "/usr/bin/$name"
	ldd "/usr/bin/$name" | grep -o '/lib[^ ]*' | while read -r lib; do copy "$lib" "/usr$lib"; done
done
version=$(/usr/bin/python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
mkdir -p "$work/usr/lib/$version"
cp -r "/usr/lib/$version/encodings" "/usr/lib/$version"/*.py "$work/usr/lib/$version/"

# The clock of the templates is one hour behind: clones are as those of an old template.
ATOLL_TEST_RTC=$(date -u -d '1 hour ago' +%Y-%m-%dT%H:%M:%S) ATOLL_TEST_USR=$work/usr "$build/atolld" tier prepare microvm --state "$work/state"
cd "$top"
ATOLL_VM_STATE=$work/state "$build/vmbox"
