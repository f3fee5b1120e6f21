#!/bin/sh
# ui_preview.sh - a Vite dev server in a box, previewed in a browser: hot reload, and storage of two boxes.
. "$(dirname "$0")/ui.lib"
run_journeys preview.mjs
