#!/bin/sh
# ui.sh - the web UI in a browser: signing in, Home, Runs.
. "$(dirname "$0")/ui.lib"
run_journeys home.mjs
