#!/bin/sh
# Boxes by the thousand, and keepers killed at random under load. See tests/stress/stress_test.c.
exec "$(dirname "$ATOLL")/stress"
