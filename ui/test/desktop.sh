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
	# A mirror on the loopback for each of apt's hosts: boxes may not reach every address that the machine reaches.
	mirrors='' internal=''
	mkfifo "$work/mirror.in"
	exec 7<>"$work/mirror.in"
	for archive in $(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep '/debian' | sed 's,/$,,' | sort -u); do
		node "$top/ui/test/npm_mirror.mjs" "${archive%/*}" <"$work/mirror.in" >"$work/mirror.port" &
		mirror=$!
		soon grep -q port= "$work/mirror.port"
		port=$(sed -n 's/port=//p' "$work/mirror.port")
		mirrors=$mirrors${mirrors:+,}http://registry.test:$port/${archive##*/} internal=$internal${internal:+,}registry.test:$port
		echo "$mirror" >>"$work/mirrors"
	done
	export ATOLL_APT_MIRRORS="$mirrors" ATOLL_EGRESS_INTERNAL="$internal" ATOLL_PACKAGES_TIMEOUT=15m ATOLL_TEMPLATES_BUILD_DISK=2G
	export E2B_DESKTOP="$cache"
	run_journeys desktop.mjs || status=$?
	while read -r mirror; do kill "$mirror" 2>/dev/null || :; done <"$work/mirrors"
	exit $status
) || status=$?
rm -rf "$TMPDIR"
exit $status
