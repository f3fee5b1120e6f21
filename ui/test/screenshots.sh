#!/bin/sh
# screenshots.sh [DIR]: every screen of the web UI, light and dark, wide and at 390 px, from a daemon of its own. As root.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
out=${1:-$top/build/screenshots}
mkdir -p "$out"
TMPDIR=$(mktemp -d) ATOLL=${ATOLL:-$top/build/atoll} UI_SHOTS=$out libs=$top/tests/system
export TMPDIR ATOLL UI_SHOTS libs
chmod 711 "$TMPDIR"
status=0
(. "$libs/ui.lib" && run_journeys screenshots.mjs) || status=$?
rm -rf "$TMPDIR"
exit $status
