#!/bin/sh
# templates.sh - templates: the registry, builds from definitions, boxes from them.
. "$(dirname "$0")/daemon.lib"

the_registry_has_base() {
	api GET /v1/templates
	is "$code" 200 "$body"
	is "$(get '.items[] | select(.name == "base") | .builtin')" true "$body"
	api GET /v1/templates/base
	is "$(get .built)" true "$body"
	api GET /v1/templates/nosuch
	is "$code" 404 "$body"
	has "$body" "there is no template 'nosuch'; there are base"
	api GET /v1/templates/x%21
	is "$code" 400 "$body"
}

run_daemon_tests
