#!/bin/sh
# desktop.sh: builds the template desktop from the Debian packages that apt of this machine reaches, and uses it: by the tools over MCP, in
# a browser (noVNC), and with E2B's desktop SDK as published. As root.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
TMPDIR=$(mktemp -d) ATOLL=${ATOLL:-$top/build/atoll} libs=$top/tests/system
export TMPDIR ATOLL libs
chmod 711 "$TMPDIR"
status=0
(
	. "$libs/ui.lib"
	. "$libs/registry.lib"
	. "$top/tests/compat/node.lib"
	cache=${E2B_COMPAT_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/atoll/e2b}/desktop
	lock=$top/tests/compat/e2b/desktop/package-lock.json
	use_node 20
	mkdir -p "$cache"
	cmp -s "$lock" "$cache/installed" || {
		cp "$top/tests/compat/e2b/desktop/"*.json "$cache/"
		npm ci --prefix "$cache" --no-audit --no-fund --ignore-scripts --prefer-offline && cp "$lock" "$cache/installed"
	}
	. "$libs/mirrors.lib"
	mirror_apt
	export E2B_DESKTOP="$cache"
	run_journeys desktop.mjs || status=$?
	end_mirrors
	exit $status
) || status=$?
rm -rf "$TMPDIR"
exit $status
