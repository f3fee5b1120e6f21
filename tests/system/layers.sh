#!/bin/sh
# Layers, made of one box and mounted in others, over the wire. See tests/system/layerbox.c.
exec "$(dirname "$ATOLL")/layerbox"
