#!/bin/sh
# ui_viewers.sh - the web UI in a browser: files that are shown as tables, trees and pages.
. "$(dirname "$0")/ui.lib"
run_journeys viewers.mjs
