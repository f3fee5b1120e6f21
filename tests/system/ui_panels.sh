#!/bin/sh
# ui_panels.sh - the web UI in a browser: variables, problems, ports of a box.
. "$(dirname "$0")/ui.lib"
run_journeys panels.mjs
