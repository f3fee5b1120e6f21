#!/bin/sh
# web_templates.sh: builds the web templates that come with the server from the registry that npm of this machine uses, uses them as a
# chat front end does, and looks at the pages in a browser. As root. WEB_TEMPLATES="vue-developer" builds only that one.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
TMPDIR=$(mktemp -d) ATOLL=${ATOLL:-$top/build/atoll} libs=$top/tests/system
export TMPDIR ATOLL libs
chmod 711 "$TMPDIR"
status=0
(
	. "$libs/ui.lib"
	. "$libs/registry.lib"
	. "$libs/mirrors.lib"
	mirror_npm
	run_journeys web_templates.mjs || status=$?
	end_mirrors
	exit $status
) || status=$?
rm -rf "$TMPDIR"
exit $status
