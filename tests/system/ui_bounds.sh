#!/bin/sh
# ui_bounds.sh - the web UI in a browser: large and hostile input, broken connections, switched-off storage, a wrong clock.
. "$(dirname "$0")/ui.lib"
run_journeys bounds.mjs
