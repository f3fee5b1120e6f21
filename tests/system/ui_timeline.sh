#!/bin/sh
# ui_timeline.sh - the web UI in a browser: the checkpoints of a box.
. "$(dirname "$0")/ui.lib"
run_journeys timeline.mjs
