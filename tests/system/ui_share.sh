#!/bin/sh
# ui_share.sh - the web UI in two browsers: share links, and files that several people edit.
. "$(dirname "$0")/ui.lib"
run_journeys share.mjs
