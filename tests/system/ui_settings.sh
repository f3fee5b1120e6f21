#!/bin/sh
# ui_settings.sh - the web UI in a browser: settings, events, the audit log.
. "$(dirname "$0")/ui.lib"
run_journeys settings.mjs
