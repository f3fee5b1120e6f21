#!/bin/sh
# ui_notebook.sh - the web UI in a browser: notebooks.
. "$(dirname "$0")/ui.lib"
run_journeys notebook.mjs
