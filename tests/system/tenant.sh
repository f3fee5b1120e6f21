#!/bin/sh
# The short form of tests/stress/tenant.sh: one second of some attacks, without checks of latency.
TENANT_SECONDS=1 TENANT_RATIO=0 exec "$(dirname "$0")/../stress/tenant.sh" huge fork_bombs json connection volumes
