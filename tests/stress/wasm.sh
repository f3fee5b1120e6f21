#!/bin/sh
# wasm.sh - `atoll tier prepare wasm` with all modules, and every test of them: none may be skipped (make wasm, as root; a quarter of an
# hour the first time). The modules stay in /usr/local/lib/atoll/wasm, where daemons of this host find them.
set -eu
cd "$(dirname "$0")/../.."
. scripts/lib.sh
need_root
install_needs build wasm
ninja -C build atoll atolld >/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build/atolld tier prepare wasm --state "$work"
for module in python ruby php javascript sqlite; do
	[ -x "/usr/local/lib/atoll/wasm/$module" ] || die "$module was not prepared"
done
tests/run -b build -r "$work/results" tests/system/wasm.sh
! grep "^skip" "$work/results"
