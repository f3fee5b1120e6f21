#!/bin/sh
# Roots of images that try to decide where something is mounted, and what they may do. See imagebox.c.
exec "$(dirname "$ATOLL")/imagebox"
