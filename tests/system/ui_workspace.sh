#!/bin/sh
# ui_workspace.sh - the web UI in a browser: the workspace of a box.
. "$(dirname "$0")/ui.lib"
run_journeys workspace.mjs
