#!/bin/sh
# Checkpoints of files, and boxes that start from them, over the wire. See tests/system/checkpointbox.c.
exec "$(dirname "$ATOLL")/checkpointbox"
