#!/bin/sh
# ui_templates.sh - templates in a browser: the list, a build with its log, a box of a template.
. "$(dirname "$0")/ui.lib"
run_journeys templates.mjs
