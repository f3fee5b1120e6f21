#!/bin/sh
# ui.sh - the web UI in a browser: ui/test/journeys.mjs against a daemon with real boxes.
#
#	UI_SHOTS=/tmp/shots tests/run tests/system/ui.sh      with a picture of every page that failed
#	UI_ONLY=offline ...                                   only tests with this in their name
. "$(dirname "$0")/daemon.lib"
ui=$(cd "$libs/../../ui" && pwd)

skip_all() { echo "1..0 # SKIP $*"; exit 0; }
[ "$(id -u)" = 0 ] || skip_all "not root"
[ -x /usr/bin/chromium ] || [ -n "${CHROMIUM:-}" ] || skip_all "no browser: /usr/bin/chromium is missing"
command -v node >/dev/null || skip_all "no node"
node "$ui/fetch.mjs" --dev 2>"$work/fetch.err" || skip_all "the packages of ui/ cannot be had: $(head -c 200 "$work/fetch.err" | tr '\n' ' ')"

need_daemon
curl -s -H 'Accept: text/html' "$url/" | grep -q 'id="app"' || skip_all "this build has no web UI"
export WARDEN="$warden" UI_SHOTS="${UI_SHOTS:-}"
timeout -k 5 300 node "$ui/test/journeys.mjs" ${UI_ONLY:+"$UI_ONLY"}
