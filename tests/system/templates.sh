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

templates_that_come_with_the_server_are_listed_before_their_first_build() {
	api GET /v1/templates/vue-developer
	is "$(get '"\(.built) \(.shipped) \(.port) \(.cpu) \(.memory) \(.file)"')" "false true 3000 4000 4294967296 app.vue" "$body"
	api GET /v1/templates
	for name in nextjs-developer streamlit-developer gradio-developer python-data node postgres go rust java c ruby php r; do
		is "$(get ".items[] | select(.name == \"$name\") | .built")" false "$name: $body"
	done
}

run_daemon_tests
