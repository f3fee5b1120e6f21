#!/bin/sh
# bench.sh: how quick the web UI is, with a daemon of its own on loopback. As root.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
TMPDIR=$(mktemp -d) ATOLL=${ATOLL:-$top/build/atoll} libs=$top/tests/system
export TMPDIR ATOLL libs
chmod 711 "$TMPDIR"
status=0
(. "$libs/ui.lib" && run_journeys bench.mjs) || status=$?
rm -rf "$TMPDIR"
exit $status
