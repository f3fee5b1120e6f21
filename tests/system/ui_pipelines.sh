#!/bin/sh
# ui_pipelines.sh - the web UI in a browser: pipelines.
. "$(dirname "$0")/ui.lib"
run_journeys pipelines.mjs
