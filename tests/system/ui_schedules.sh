#!/bin/sh
# ui_schedules.sh - the web UI in a browser: schedules.
. "$(dirname "$0")/ui.lib"
run_journeys schedules.mjs
