#!/bin/sh
# ui_monitor.sh - the web UI in a browser: the monitor of the machine and of boxes.
. "$(dirname "$0")/ui.lib"
run_journeys monitor.mjs
