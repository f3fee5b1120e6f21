#!/bin/sh
# ui_figures.sh - the web UI in a browser: figures of the server over time.
. "$(dirname "$0")/ui.lib"
run_journeys figures.mjs
