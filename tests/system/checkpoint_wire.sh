#!/bin/sh
# Checkpoints of boxes, and boxes that start from them, over the wire of the keeper. See tests/system/checkpointbox.c.
exec "$(dirname "$ATOLL")/checkpointbox"
