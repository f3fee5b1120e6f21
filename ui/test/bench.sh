#!/bin/sh
# bench.sh: how quick the web UI is, with a daemon of its own on loopback, and what Lighthouse finds on Home. As root.
# Lighthouse is installed by npm into build/lighthouse, without a browser and without scripts of packages; no npm, no Lighthouse.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
TMPDIR=$(mktemp -d) ATOLL=${ATOLL:-$top/build/atoll} libs=$top/tests/system
export TMPDIR ATOLL libs
chmod 711 "$TMPDIR"
status=0
(. "$libs/ui.lib" && run_journeys bench.mjs) || status=$?
LIGHTHOUSE=$top/build/lighthouse
export LIGHTHOUSE
if [ -d "$LIGHTHOUSE/node_modules/lighthouse" ] || {
	mkdir -p "$LIGHTHOUSE" && echo '{"private":true}' >"$LIGHTHOUSE/package.json" && (cd "$LIGHTHOUSE" &&
		PUPPETEER_SKIP_DOWNLOAD=1 npm install --ignore-scripts --no-audit --no-fund --silent lighthouse@11.7.1)
}; then
	(. "$libs/ui.lib" && run_journeys lighthouse.mjs) || status=$?
else
	echo "no Lighthouse: npm could not install it"
fi
rm -rf "$TMPDIR"
exit $status
