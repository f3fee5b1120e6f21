#!/bin/sh
# Roots made of image layers, and boxes with them, over the wire. See tests/system/rootbox.c.
exec "$(dirname "$ATOLL")/rootbox"
