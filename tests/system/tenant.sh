#!/bin/sh
# The short form of tests/stress/tenant.sh: a second of some attacks, and latency is not judged.
TENANT_SECONDS=1 TENANT_RATIO=0 exec "$(dirname "$0")/../stress/tenant.sh" huge fork_bombs json connection volumes
