#!/bin/sh
# api_volumes.sh - volumes: created, mounted, shared, full, removed.
. "$(dirname "$0")/daemon.lib"

volume() {
	api POST /v1/volumes "{\"name\":\"$1\",\"bytes\":${2:-33554432}}"
	is "$code" 201 "$body"
}
mounted() { # NAME [,"read_only":true]
	api POST /v1/boxes "{\"volumes\":[{\"name\":\"$1\",\"path\":\"/data\"${2-}}]}"
}
says() { # BOX COMMAND
	api POST "/v1/boxes/$1/execs" "$(jq -nc --arg c "$2" '{command:$c}')"
	get .stdout
}

files_of_a_volume_exist_after_the_box_that_wrote_them() {
	volume keep
	mounted keep
	is "$code" 201 "$body"
	first=$(get .id)
	is "$(says "$first" 'echo hello >/data/f; id -u; find /data/f -printf "%U\n"')" "1000
1000"
	api DELETE "/v1/boxes/$first"
	mounted keep
	second=$(get .id)
	is "$(says "$second" 'cat /data/f')" hello
	api DELETE "/v1/boxes/$second"
	api DELETE /v1/volumes/keep
	is "$code" 204
}

a_volume_has_one_writer_or_several_readers() {
	volume shared
	mounted shared
	writer=$(get .id)
	mounted shared
	is "$code" 409 "$body"
	mounted shared ',"read_only":true'
	is "$code" 409 "$body"
	says "$writer" 'echo x >/data/f' >/dev/null
	api GET /v1/volumes/shared
	is "$(get .writer)" "$writer"
	api DELETE /v1/volumes/shared
	is "$code" 409
	api DELETE "/v1/boxes/$writer"
	mounted shared ',"read_only":true'
	one=$(get .id)
	mounted shared ',"read_only":true'
	is "$code" 201 "$body"
	two=$(get .id)
	api GET /v1/volumes/shared
	is "$(get .readers)" 2
	is "$(says "$two" 'cat /data/f; echo y >/data/f && echo wrote')" x
	for b in $one $two; do api DELETE "/v1/boxes/$b"; done
	api DELETE /v1/volumes/shared
	is "$code" 204
}

the_quota_of_a_volume_is_enforced() {
	volume small 16777216
	mounted small
	box=$(get .id)
	is "$(says "$box" 'head -c 64M /dev/zero >/data/big 2>/dev/null || echo full')" full
	api DELETE "/v1/boxes/$box"
	api DELETE /v1/volumes/small
}

a_volume_stays_attached_after_the_server_is_killed() {
	volume sticky
	mounted sticky
	box=$(get .id)
	kill -9 "$(server_pid)"
	api GET /v1/volumes/sticky
	is "$(get .writer)" "$box"
	is "$(says "$box" 'echo z >/data/z; cat /data/z')" z
	api DELETE "/v1/boxes/$box"
	is "$code" 204
	api GET /v1/volumes/sticky
	is "$(get .writer)" null
	api DELETE /v1/volumes/sticky
}

volumes_of_another_team_are_not_found() {
	volume mine
	owner=$key
	api PUT /v1/teams/strangers '{}'
	key=$("$ATOLL" key new stranger --team strangers --state "$gateway_state" --quiet)
	api GET /v1/volumes/mine
	is "$code" 404
	mounted mine
	is "$code" 404
	api DELETE /v1/volumes/mine
	is "$code" 404
	key=$owner
	api DELETE /v1/volumes/mine
	is "$code" 204
}

invalid_volume_requests_are_rejected() {
	volume here
	api POST /v1/volumes '{"name":"here"}'
	is "$code" 409
	api POST /v1/volumes '{"name":"../x"}'
	is "$code" 400
	api POST /v1/volumes '{"name":"tiny","bytes":1}'
	is "$code" 400
	for path in '' etc /etc /../x /data/.. /usr/lib /proc; do
		api POST /v1/boxes "{\"volumes\":[{\"name\":\"here\",\"path\":\"$path\"}]}"
		is "$code" 400 "$path: $body"
	done
	api POST /v1/boxes '{"volumes":[{"name":"none","path":"/data"}]}'
	is "$code" 404
	api POST /v1/boxes '{"volumes":"here"}'
	is "$code" 400
	api POST /v1/boxes '{"volumes":[{"name":"here","path":"/data","mode":"rw"}]}'
	is "$code" 400
	api GET /v1/volumes/none
	is "$code" 404
	key=$viewer
	api POST /v1/volumes '{"name":"v"}'
	is "$code" 403
}

run_daemon_tests
