#!/bin/sh
# Server, keeper and supervisor are killed under 300 streaming boxes. See tests/stress/serve_test.py.
exec /usr/bin/python3 "$(dirname "$0")/../stress/serve_test.py"
