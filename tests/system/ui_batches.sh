#!/bin/sh
# ui_batches.sh - the web UI in a browser: batches.
. "$(dirname "$0")/ui.lib"
run_journeys batches.mjs
