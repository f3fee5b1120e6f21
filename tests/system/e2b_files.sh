#!/bin/sh
# e2b_files.sh - files of the E2B API: filesystem.Filesystem and /files, and their errors.
. "$(dirname "$0")/daemon.lib"
export ATOLL_UPLOAD_MAX=200M

# new_sandbox [BODY]: sets box, token.
new_sandbox() {
	api POST /v2/sandboxes "${1:-{\"templateID\":\"base\"\}}"
	is "$code" 201 "$body"
	box=$(get .sandboxID) token=$(get .envdAccessToken)
}
# at PATH [CURL OPTION...]: to its envd; sets code and body (also ./body); head is in ./head.
at() {
	path=$1
	shift
	code=$(curl -sS -g --max-time 120 -o body -D head -w '%{http_code}' "$@" -H "E2b-Sandbox-Id: $box" \
		-H 'E2b-Sandbox-Port: 49983' -H "X-Access-Token: $token" "$url$path" 2>curl.err) || :
	body=$(tr '\0' '?' <body 2>/dev/null | head -c 4000)
}
# fs METHOD BODY [CURL OPTION...]
fs() {
	rpc=$1 ask=$2
	shift 2
	at "/filesystem.Filesystem/$rpc" -H 'Content-Type: application/json' --data-binary "$ask" "$@"
}
header() { sed -n "s/^$1: *//Ip" head | tr -d '\r'; }
put() { at "/files?path=$1" -H 'Content-Type: application/octet-stream' --data-binary "$2"; is "$code" 200 "$body"; }
sh_in() { # SHELL-TEXT, as the box's user; sets out
	api POST "/v1/boxes/$box/execs" "$(jq -cn --arg c "$1" '{command:$c}')"
	out=$(get .stdout)
	is "$(get .status)" 0 "$1: $body"
}
b64() { printf %s "$1" | base64 -w0; }
sign() { # PATH OP USER [EXPIRATION]: the query's value
	python3 - "$token" "$@" <<-'EOF2'
		import base64, hashlib, sys, urllib.parse
		token, rest = sys.argv[1], sys.argv[2:]
		text = ":".join(rest[:3] + [token] + rest[3:])
		sig = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
		print(urllib.parse.quote("v1_" + sig, safe=""))
	EOF2
}

# ---- entries ----

mkdir_creates_missing_parent_folders() {
	new_sandbox
	fs MakeDir '{"path":"a/b/c"}'
	is "$code" 200 "$body"
	is "$(get .entry.path)" /home/user/a/b/c
	fs Stat '{"path":"a/b"}'
	is "$(get '.entry | [.name, .type, .mode, .permissions, .owner, .group] | map(tostring) | join(" ")')" \
		'b FILE_TYPE_DIRECTORY 493 drwxr-xr-x user user'
	fs MakeDir '{"path":"a/b/c"}'
	is "$code $(get .code)" '409 already_exists'
	put a/file x
	fs MakeDir '{"path":"a/file"}'
	is "$code $(get .code)" '400 invalid_argument'
	fs MakeDir '{"path":"a/file/below"}'
	is "$code $(get .code)" '400 invalid_argument'
}

an_entry_has_the_fields_of_the_e2b_protocol() {
	new_sandbox
	put notes/a.txt data
	sh_in 'ln -s notes/a.txt link; ln -s /nowhere dangling; ln -s notes folder; chmod 1777 notes; touch -d 2026-01-02T03:04:05.123456789Z notes/a.txt'
	fs Stat '{"path":"notes/a.txt"}'
	is_json "$(jq .entry body)" '{"name":"a.txt","type":"FILE_TYPE_FILE","path":"/home/user/notes/a.txt","size":"4","mode":420,"permissions":"-rw-r--r--","owner":"user","group":"user","modifiedTime":"2026-01-02T03:04:05.123456789Z"}'
	fs Stat '{"path":"link"}'
	is "$(get '.entry | [.type, .mode, .permissions, .symlinkTarget] | map(tostring) | join(" ")')" \
		'FILE_TYPE_FILE 420 Lrwxrwxrwx /home/user/notes/a.txt'
	fs Stat '{"path":"dangling"}'
	is "$(get '.entry.type + " " + .entry.symlinkTarget')" 'FILE_TYPE_UNSPECIFIED /home/user/dangling'
	fs Stat '{"path":"notes"}'
	is "$(get .entry.permissions)" dtrwxrwxrwx
	fs Stat '{"path":"/etc/passwd"}'
	is "$(get '.entry.owner + " " + .entry.group')" 'root root'
	fs Stat '{"path":"/dev/null"}'
	is "$(get .entry.type)" FILE_TYPE_UNSPECIFIED
	fs ListDir '{"path":"folder"}'
	is "$(get '.entries[].path')" /home/user/folder/a.txt
	fs Stat '{"path":"notes/a.txt"}' -A connect-python
	is_json "$(jq .entry body)" '{"name":"a.txt","type":"FILE_TYPE_FILE","path":"/home/user/notes/a.txt"}'
	fs Stat '{"path":"none"}'
	is "$code $(get .code)" '404 not_found'
}

a_listing_is_complete_and_has_the_requested_depth() {
	new_sandbox
	sh_in 'mkdir -p t/a/deep t/b; touch t/a/deep/x t/a.txt t/b/y'
	fs ListDir '{"path":"t"}'
	is "$(get '[.entries[].path] | join(" ")')" '/home/user/t/a /home/user/t/a.txt /home/user/t/b'
	fs ListDir '{"path":"t","depth":3}'
	is "$(get '[.entries[].path[13:]] | join(" ")')" 'a a/deep a/deep/x a.txt b b/y'
	fs ListDir '{"path":"t","depth":4000000000}'
	is "$(get '.entries | length')" 6
	fs ListDir '{"path":"t/a.txt"}'
	is "$code $(get .code)" '400 invalid_argument'
	fs ListDir '{"path":"none"}'
	is "$code $(get .code)" '404 not_found'
	fs ListDir '{"path":"t/b/.."}'
	is "$code" 200
	sh_in 'mkdir many empty; cd many; seq -w 1 20000 | xargs touch'
	fs ListDir '{"path":"many"}'
	is "$(get '.entries | length')" 20000
	is "$(get '.entries[19999].name')" 20000
	fs ListDir '{"path":"empty"}'
	is "$body" '{"entries":[]}'
}

a_move_creates_parent_folders_and_returns_the_new_entry() {
	new_sandbox
	put one 1
	fs Move '{"source":"one","destination":"new/folder/two"}'
	is "$code" 200 "$body"
	is "$(get .entry.path)" /home/user/new/folder/two
	fs Stat '{"path":"new"}'
	is "$(get .entry.owner)" user
	fs Move '{"source":"one","destination":"three"}'
	is "$code $(get .code)" '404 not_found'
	fs Remove '{"path":"new"}'
	is "$code $body" '200 {}'
	fs Remove '{"path":"new"}'
	is "$code $body" '200 {}'
}

the_named_user_owns_created_files_and_root_may_create_them_anywhere() {
	new_sandbox
	put /0/file.txt x
	fs Stat '{"path":"/0/file.txt"}'
	is "$(get .entry.owner)" user
	fs Stat '{"path":"/0"}'
	is "$(get .entry.owner)" user
	fs MakeDir '{"path":"d"}' -H "Authorization: Basic $(b64 root:)"
	is "$(get '.entry.path + " " + .entry.owner')" '/root/d root'
	at '/files?path=f&username=root' -F file=@/dev/null
	is "$(get '.[0].path')" /root/f
	fs Stat '{"path":"/root/f"}'
	is "$(get .entry.owner)" root
	fs Stat '{"path":"."}' -H "Authorization: Basic $(b64 nosuch:)"
	is "$code $(get .code)" '401 unauthenticated'
	at '/files?path=f&username=nosuch'
	is "$code $(get .code)" '401 401'
}

invalid_file_requests_are_rejected() {
	new_sandbox
	for ask in '{"path":1}' '{"path":["a"]}' '{"path":"a\u0000b"}' '{"path":"~root/x"}' '[]' '{' '{"path":"x","depth":-1}' \
		'{"path":".","depth":"x"}' "{\"path\":\"$(head -c 5000 /dev/zero | tr '\0' a)\"}"; do
		fs ListDir "$ask"
		is "$code $(get .code)" '400 invalid_argument' "$ask"
	done
	fs Stat ''
	is "$(get .entry.path)" /home/user
	fs Nothing '{}'
	is "$code" 404
	token=wrong at /filesystem.Filesystem/Stat -H 'Content-Type: application/json' -d '{}'
	is "$code" 401
}

# ---- content ----

file_content_is_read_as_it_was_written() {
	new_sandbox
	head -c 3000000 /dev/urandom >sent
	at '/files?path=dir/a.bin' -F 'file=@sent;filename=other'
	is "$code" 200 "$body"
	is_json "$(cat body)" '[{"path":"/home/user/dir/a.bin","name":"a.bin","type":"file"}]'
	at '/files?path=dir/a.bin'
	cmp body sent
	is "$(header content-length)" 3000000
	has "$(header content-disposition)" inline
	at '/files?path=o' -H 'Content-Type: application/octet-stream' -H 'Transfer-Encoding: chunked' --data-binary @sent
	is "$code" 200 "$body"
	at '/files?path=o' -H 'Range: bytes=10-19'
	is "$code $(header content-range)" '206 bytes 10-19/3000000'
	tail -c +11 sent | head -c 10 | cmp - body
	gzip -k sent
	at '/files?path=g' -H 'Content-Type: application/octet-stream' -H 'Content-Encoding: gzip' --data-binary @sent.gz
	is "$code" 200 "$body"
	at '/files?path=g'
	cmp body sent
	put empty ''
	at '/files?path=empty'
	is "$code $(header content-length)" '200 0'
	at '/files?path=/proc/version' # a file without a size
	[ "$(wc -c <body)" -gt 20 ] || fail "$(cat body)"
	at '/files?path=none'
	is "$code $body" "404 {\"code\":404,\"message\":\"path '/home/user/none' does not exist\"}"
	at '/files?path=dir'
	is "$code" 400
}

one_form_may_upload_several_files() {
	new_sandbox
	at /files -F 'file=one;filename=x/1.txt' -F 'other=ignored' -F 'file=two;filename=/tmp/2.txt' -F 'file=;filename=3'
	is "$(jq -c '[.[].path]' body)" '["/home/user/x/1.txt","/tmp/2.txt","/home/user/3"]'
	at '/files?path=/tmp/2.txt'
	is "$body" two
	at /files -F 'file=a;filename=same' -F 'file=b;filename=./same'
	is "$code" 400
	has "$body" 'same path'
	at '/files?path=same'
	is "$body" a
	at /files -F 'file=no-name'
	is "$code" 400
	at '/files?path=named' -F 'file=no-name'
	is "$code" 200 "$body"
	set --
	for i in $(seq 300); do set -- "$@" -F "file=$i;filename=lots/$i"; done
	at /files "$@"
	is "$(get length)" 300 "$body"
	fs ListDir '{"path":"lots"}'
	is "$(get '.entries | length')" 300
}

an_invalid_upload_leaves_no_file() {
	new_sandbox
	at '/files?path=f' -H 'Content-Type: text/plain' -d x
	is "$code" 400
	at /files -H 'Content-Type: application/octet-stream' -d x
	is "$code" 400
	at '/files?path=f' -H 'Content-Type: multipart/form-data' -d x
	is "$code" 400
	at '/files?path=f' -H 'Content-Type: application/octet-stream' -H 'Content-Encoding: br' -d x
	is "$code" 400
	at '/files?path=f' -H 'Content-Type: application/octet-stream' -H 'Content-Encoding: gzip' -d 'no gzip'
	is "$code" 400
	head -c 100000 /dev/urandom | gzip | head -c 50000 >half.gz
	at '/files?path=f' -H 'Content-Type: application/octet-stream' -H 'Content-Encoding: gzip' --data-binary @half.gz
	is "$code" 400
	printf -- '--B\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nhalf of' >form
	at /files -H 'Content-Type: multipart/form-data; boundary=B' --data-binary @form
	is "$code" 400
	at /files -H 'Content-Type: multipart/form-data; boundary=B' -H 'Content-Length: 100000' --data-binary @form --max-time 0.3
	fs ListDir '{"path":"."}'
	is "$body" '{"entries":[]}'
	at '/files?path=.' -F file=x
	is "$code" 400
	at '/files?path=/dev/null' -F file=x
	is "$code" 400
	at '/files?path=/etc/passwd/x' -F file=x
	is "$code" 400
}

a_full_disk_is_507_and_leaves_no_file() {
	new_sandbox
	sh_in 'fallocate -l $(($(df --output=avail -B1 . | tail -1) - 1000000)) filler'
	head -c 20000000 /dev/zero | gzip -1 >bomb.gz
	at '/files?path=big' -H 'Content-Type: application/octet-stream' -H 'Content-Encoding: gzip' --data-binary @bomb.gz
	is "$code $(get .code)" '507 507' "$body"
	head -c 20000000 /dev/zero >large
	at '/files?path=big' -H 'Content-Type: application/octet-stream' --data-binary @large
	is "$code $(get .code)" '507 507' "$body"
	at '/files?path=big' -F file=@large
	is "$code $(get .code)" '507 507' "$body"
	fs ListDir '{"path":"."}'
	is "$(get '[.entries[].name] | join(" ")')" filler
	put small x
}

metadata_of_a_file_is_stored_and_replaced_with_it() {
	new_sandbox
	at '/files?path=m' -F file=x -H 'X-Metadata-Author: me' -H 'X-Metadata-K2: v 2'
	is "$(jq -cS '.[0]' body)" '{"metadata":{"author":"me","k2":"v 2"},"name":"m","path":"/home/user/m","type":"file"}'
	fs Stat '{"path":"m"}'
	is "$(jq -cS .entry.metadata body)" '{"author":"me","k2":"v 2"}'
	at '/files?path=m' -F file=y
	fs Stat '{"path":"m"}'
	is "$(get .entry.metadata)" null
	at '/files?path=m' -F file=x -H "X-Metadata-K: $(head -c 4100 /dev/zero | tr '\0' v)"
	is "$code" 400
	at '/files?path=m' -F file=x -H "X-Metadata-$(head -c 247 /dev/zero | tr '\0' k): v"
	is "$code" 400
}

compose_joins_files_inside_the_box() {
	new_sandbox
	put p/1 one
	put p/2 two
	at /files/compose -H 'Content-Type: application/json' -d '{"source_paths":["p/1","p/2"],"destination":"whole/file"}'
	is "$code" 200 "$body"
	is_json "$(cat body)" '{"path":"/home/user/whole/file","name":"file","type":"file"}'
	at '/files?path=whole/file'
	is "$body" onetwo
	fs ListDir '{"path":"p"}'
	is "$body" '{"entries":[]}'
	at /files/compose -H 'Content-Type: application/json' -d '{"source_paths":["whole/file","none"],"destination":"again"}'
	is "$code" 404
	fs Stat '{"path":"again"}'
	is "$code" 404
	at /files/compose -H 'Content-Type: application/json' -d '{"source_paths":[],"destination":"again"}'
	is "$code" 400
}

# ---- authorisation ----

# link METHOD QUERY [CURL OPTION...]: without any E2B header.
link() {
	method=$1 query=$2
	shift 2
	code=$(curl -sS -g --max-time 120 -o body -w '%{http_code}' -X "$method" "$@" "$url/files?$query")
	body=$(cat body)
}

a_signed_url_is_accepted_only_for_its_path_and_operation() {
	new_sandbox
	put hello.txt hi
	link GET "path=hello.txt&signature=$(sign hello.txt read '')"
	is "$code $body" '200 hi'
	soon=$(($(date +%s) + 60)) past=$(($(date +%s) - 60))
	link GET "path=hello.txt&username=user&signature=$(sign hello.txt read user $soon)&signature_expiration=$soon"
	is "$code" 200
	link GET "path=hello.txt&signature=$(sign hello.txt read '' $past)&signature_expiration=$past"
	is "$code $body" '401 {"code":401,"message":"signature is already expired"}'
	link POST "path=a+b.txt&signature=$(sign 'a b.txt' write '')" -F file=there
	is "$code" 200 "$body"
	at '/files?path=a%20b.txt'
	is "$body" there
	# Signed for another path, operation or time: the signature matches no box, so the box is not found.
	for query in "path=other&signature=$(sign hello.txt read '')" "path=hello.txt&signature=$(sign hello.txt write '')" \
		"path=hello.txt&signature=$(sign hello.txt read '' $soon)&signature_expiration=$((soon + 1))" \
		"path=hello.txt&signature=v1_" 'path=hello.txt&signature=' 'path=hello.txt'; do
		link GET "$query"
		case $code in 401 | 404) ;; *) fail "$query: $code $body" ;; esac
	done
	code=$(curl -sS -o body -w '%{http_code}' -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 49983' "$url/files?path=hello.txt")
	is "$code $(cat body)" '401 {"code":401,"message":"missing signature query parameter"}'
	code=$(curl -sS -o body -w '%{http_code}' -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 49983' "$url/files?path=hello.txt&signature=x")
	is "$code $(cat body)" '401 {"code":401,"message":"invalid signature"}'
	signed=$(sign hello.txt read '')
	token=wrong at "/files?path=hello.txt&signature=$signed"
	is "$code" 401
}

the_id_of_a_v1_box_alone_does_not_authorise_e2b_requests() {
	new_box
	token=
	at '/files?path=/etc/passwd'
	is "$code" 502
	fs Stat '{"path":"/"}'
	is "$code" 502
}

# ---- what changes ----

events() { fs GetWatcherEvents "{\"watcherId\":\"$watcher\"}"; is "$code" 200 "$body"; get '[.events[] | (.type[11:] + " " + .name)] | join(", ")'; }

a_watcher_returns_all_events_in_the_next_call() {
	new_sandbox
	fs MakeDir '{"path":"w"}'
	fs CreateWatcher '{"path":"w","recursive":true,"includeEntry":true}'
	is "$code" 200 "$body"
	watcher=$(get .watcherId)
	is "$(events)" ''
	put w/f.txt x
	is "$(events)" 'CREATE f.txt, CHMOD f.txt, WRITE f.txt'
	is "$(get '.events[2].entry.path + " " + .events[2].entry.size')" '/home/user/w/f.txt 1'
	fs MakeDir '{"path":"w/sub"}'
	put w/sub/g 1
	has "$(events)" 'CREATE sub, CHMOD sub, CREATE sub/g, CHMOD sub/g, WRITE sub/g'
	fs Move '{"source":"w/f.txt","destination":"w/h"}'
	is "$(events)" 'RENAME f.txt, CREATE h'
	is "$(get '.events[0].entry')" null
	fs Move '{"source":"w/h","destination":"out"}'
	is "$(events)" 'RENAME h'
	fs Remove '{"path":"w/sub"}'
	is "$(events)" 'REMOVE sub/g, REMOVE sub'
	sh_in 'echo 1 >w/p; chmod 600 w/p'
	is "$(events)" 'CREATE p, WRITE p, CHMOD p'
	sh_in 'mkdir -p w/x/y; echo 1 >w/x/y/z'
	has "$(events)" 'WRITE x/y/z'
	is "$(events)" ''
	fs RemoveWatcher "{\"watcherId\":\"$watcher\"}"
	is "$code $body" '200 {}'
	fs GetWatcherEvents "{\"watcherId\":\"$watcher\"}"
	is "$code $(get .code)" '404 not_found'
	fs CreateWatcher '{"path":"none"}'
	is "$code $(get .code)" '404 not_found'
	fs CreateWatcher '{"path":"out"}'
	is "$code $(get .code)" '400 invalid_argument'
}

the_number_of_watchers_is_bounded() {
	new_sandbox
	for i in $(seq 32); do
		fs CreateWatcher '{"path":"."}'
		is "$code" 200 "$i: $body"
	done
	fs CreateWatcher '{"path":"."}'
	is "$code $(get .code)" '429 resource_exhausted'
	other=$(get .watcherId)
	new_sandbox
	fs GetWatcherEvents "{\"watcherId\":\"$other\"}"
	is "$code" 404
}

a_watch_stream_reports_changes_until_its_timeout() {
	new_sandbox
	fs MakeDir '{"path":"w"}'
	python3 - "$url" "$box" "$token" >said <<-'EOF2'
		import http.client, json, struct, sys
		host = sys.argv[1][7:]
		heads = {"E2b-Sandbox-Id": sys.argv[2], "E2b-Sandbox-Port": "49983", "X-Access-Token": sys.argv[3]}
		def watch(path, ms=None):
		    c = http.client.HTTPConnection(host, timeout=120)
		    ask = json.dumps({"path": path}).encode()
		    more = {"connect-timeout-ms": str(ms)} if ms else {}
		    c.request("POST", "/filesystem.Filesystem/WatchDir", struct.pack(">BI", 0, len(ask)) + ask,
		              {**heads, **more, "content-type": "application/connect+json", "keepalive-ping-interval": "1"})
		    r = c.getresponse()
		    assert r.status == 200, r.status
		    return r
		def one(r):
		    flags, n = struct.unpack(">BI", r.read(5))
		    return flags, json.loads(r.read(n))
		r = watch("w", 2500)
		print(*one(r))
		c = http.client.HTTPConnection(host, timeout=120)
		c.request("POST", "/files?path=w/f", "x", {**heads, "content-type": "application/octet-stream"})
		print(c.getresponse().status)
		seen = []
		while True:
		    flags, doc = one(r)
		    if "keepalive" in doc: doc = "alive"
		    if "error" in doc: doc = doc["error"]["code"]
		    if not seen or seen[-1] != doc: seen.append(doc); print(flags, doc)
		    if flags: break
		print(one(watch("none"))[1]["error"]["code"])
	EOF2
	is "$(cat said)" "0 {'start': {}}
200
0 {'filesystem': {'name': 'f', 'type': 'EVENT_TYPE_CREATE'}}
0 {'filesystem': {'name': 'f', 'type': 'EVENT_TYPE_CHMOD'}}
0 {'filesystem': {'name': 'f', 'type': 'EVENT_TYPE_WRITE'}}
0 alive
2 deadline_exceeded
not_found"
}

run_daemon_tests
