#!/bin/sh
# api_files.sh - /v1/boxes/{box}/files: content, folders, archives, search, watch; and what goes wrong.
. "$(dirname "$0")/daemon.lib"
export ATOLL_UPLOAD_MAX=48M

# f METHOD REST [CURL OPTION...]: sets code, and body (also in the file ./body); head is in ./head.
f() {
	method=$1 rest=$2
	shift 2
	rc=0
	code=$(curl -sS -g --max-time 120 -o body -D head -w '%{http_code}' -X "$method" -H "X-API-Key: $key" "$@" \
		"$url/v1/boxes/$box/files$rest" 2>curl.err) || rc=$?
	body=$(tr '\0' '?' <body 2>/dev/null | head -c 4000)
	path=/v1/boxes/$box/files$rest
	case $code in 2*) ! grep -qi '^content-type: application/json' head || note_answer "$(cat body)" ;; esac
}
header() { sed -n "s/^$1: *//Ip" head | tr -d '\r'; }
sh_in() { # SHELL-TEXT: as a program of the box; sets out
	api POST "/v1/boxes/$box/execs" "$(jq -cn --arg c "$1" '{command:$c}')"
	out=$(get .stdout)
	is "$(get .status)" 0 "$1: $body"
}
put() { # PATH TEXT
	f PUT "?path=$1" --data-binary "$2"
	case $code in 200 | 201) ;; *) fail "put $1: $code $body" ;; esac
}
content() { curl -sS -g --max-time 120 -H "X-API-Key: $key" "$url/v1/boxes/$box/files?path=$1"; }
names() { f GET "/list?path=$1"; get '[.items[].name] | join(" ")'; }
# say TEXT SECONDS: raw bytes to the daemon; prints the answer until the daemon closes the connection or SECONDS have
# passed.
say() {
	python3 - "$url" "$1" "$2" <<-'EOF'
		import socket, sys
		host, port = sys.argv[1][7:].split(":")
		s = socket.create_connection((host, int(port)), 60)
		s.sendall(sys.argv[2].encode("latin1").decode("unicode_escape").encode("latin1"))
		if sys.argv[3] == "0":
		    sys.exit()
		s.settimeout(float(sys.argv[3]))
		try:
		    while b := s.recv(65536):
		        sys.stdout.buffer.write(b)
		except TimeoutError:
		    pass
	EOF
}
ended() { ! kill -0 "$1"; }
state_is() { api GET "/v1/boxes/$box"; [ "$(get .state)" = "$1" ]; }
# The box has no process but init and this one. The file worker is not visible in /proc, but has the same
# user and can be signalled.
# Boxes of an isolation tier with an engine have a warm interpreter, which is no file worker.
no_worker() {
	sh_in 'n=0; for i in $(seq 2 $$); do ! kill -0 $i 2>/dev/null || grep -q "^python" /proc/$i/comm || n=$((n + 1)); done; echo $n'
	[ "$out" = 1 ]
}
some_worker() { ! no_worker; }

# ---- content ----

a_file_is_read_as_it_was_written() {
	new_box
	head -c 3000000 /dev/urandom >sent
	f PUT '?path=deep/er/data.bin' --data-binary @sent
	is "$code" 201 "$body"
	is "$(get '.name + " " + .path + " " + .type + " " + (.size|tostring) + " " + .mode')" \
		"data.bin /home/user/deep/er/data.bin file 3000000 0644"
	f GET '?path=deep/er/data.bin'
	is "$code" 200
	cmp body sent
	is "$(header content-length)" 3000000
	is "$(header content-type)" application/octet-stream
	is "$(header x-content-type-options)" nosniff
	has "$(header content-disposition)" attachment
	f PUT '?path=/home/user/deep/er/data.bin&mode=0711' --data-binary short
	is "$code" 200
	is "$(get '.mode + " " + (.size|tostring)')" "0711 5"
	is "$(content deep/er/data.bin)" short
	sh_in 'cat deep/er/data.bin; whoami'
	has "$out" short
}

files_are_transferred_over_the_unix_socket() {
	new_box
	head -c 3000000 /dev/urandom >sent
	for how in '' 'Transfer-Encoding: chunked'; do
		is "$(curl -sS --unix-socket "$sock" -H "$how" -T sent "http://localhost/v1/boxes/$box/files?path=u" | jq .size)" 3000000
		curl -sS --unix-socket "$sock" -o back "http://localhost/v1/boxes/$box/files?path=u"
		cmp sent back
	done
}

an_upload_counts_against_the_memory_of_its_box() {
	new_box '{"limits":{"mem":67108864,"disk":134217728}}'
	head -c 40000000 /dev/zero >large
	f PUT '?path=large' -T large
	is "$code" 201 "$body"
	api GET "/v1/boxes/$box/stats"
	[ "$(get .memory.now)" = null ] || [ "$(get .memory.now)" -ge 40000000 ] || fail "$body"
}

an_empty_file_can_be_written_and_read() {
	new_box
	f PUT '?path=empty' --data-binary ''
	is "$code" 201
	f GET '?path=empty'
	is "$code $(header content-length)" "200 0"
	f GET '?path=empty' -H 'Range: bytes=0-'
	is "$code" 416
	f PUT '?path=chunked' -H 'Transfer-Encoding: chunked' --data-binary abc
	is "$code" 201
	is "$(content chunked)" abc
}

head_returns_the_headers_without_content() {
	new_box
	put a.json '{"a":1}'
	code=$(curl -sS -I -o head -w '%{http_code}' -H "X-API-Key: $key" "$url/v1/boxes/$box/files?path=a.json")
	is "$code $(header content-length) $(header content-type)" "200 7 application/json"
	code=$(curl -sS -I -o head -w '%{http_code}' -H "X-API-Key: $key" "$url/v1/boxes/$box/files?path=b.json")
	is "$code" 404
}

range_requests_return_parts_of_a_file() {
	new_box
	put digits 0123456789
	for row in '0-0 206 0' '2-4 206 234' '7- 206 789' '7-99 206 789' '-3 206 789' '-99 206 0123456789' \
		'4-2 200 0123456789' '0-1,3-4 200 0123456789' 'x-y 200 0123456789' \
		'99999999999999999999999-1 200 0123456789'; do
		set -- $row
		f GET '?path=digits' -H "Range: bytes=$1"
		is "$code $body" "$2 $3" "$1"
	done
	f GET '?path=digits' -H 'Range: bytes=2-4'
	is "$(header content-range) $(header content-length)" "bytes 2-4/10 3"
	for r in 10- 10-20 -0; do
		f GET '?path=digits' -H "Range: bytes=$r"
		is "$code" 416 "$r"
		is "$(header content-range)" 'bytes */10'
	done
	f GET '?path=digits' -H 'Range: lines=1-2'
	is "$code" 200
}

if_range_with_a_stale_etag_returns_the_whole_file() {
	new_box
	put v 0123456789
	f GET '?path=v'
	tag=$(header etag)
	f GET '?path=v' -H 'Range: bytes=1-2' -H "If-Range: $tag"
	is "$code $body" "206 12"
	f GET '?path=v' -H 'Range: bytes=1-2' -H 'If-Range: "other"'
	is "$code" 200
	f GET '?path=v' -H 'Range: bytes=1-2' -H "If-Range: $(header last-modified)"
	is "$code" 206
}

a_current_etag_or_date_returns_304() {
	new_box
	put v one
	f GET '?path=v'
	tag=$(header etag)
	has "$tag" '"'
	f GET '?path=v' -H "If-None-Match: \"x\", $tag"
	is "$code" 304
	f GET '?path=v' -H "If-Modified-Since: $(header last-modified)"
	is "$code" 304
	put v three
	f GET '?path=v' -H "If-None-Match: $tag"
	is "$code $body" "200 three"
}

a_huge_sparse_file_is_read_at_its_end() {
	new_box
	sh_in 'truncate -s 10G huge; printf end >>huge; echo'
	f GET '?path=huge' -H 'Range: bytes=-5' -o body
	is "$code $(od -An -c body | tr -d ' ')" '206 \0\0end'
	is "$(header content-range)" "bytes 10737418238-10737418242/10737418243"
	f GET '/stat?path=huge'
	is "$(get .size)" 10737418243
}

# ---- versions and atomicity ----

if_match_rejects_a_change_of_another_version() {
	new_box
	put v one
	f GET '?path=v'
	tag=$(header etag)
	f PUT '?path=v' -H "If-Match: $tag" --data-binary two
	is "$code" 200 "$body"
	has "$(header etag)" '"'
	f PUT '?path=v' -H "If-Match: $tag" --data-binary three
	is "$code" 412
	f PUT '?path=v' -H 'If-Match: nonsense' --data-binary three
	is "$code" 412
	f PUT '?path=none' -H 'If-Match: *' --data-binary three
	is "$code" 412
	f PUT '?path=v' -H 'If-None-Match: *' --data-binary three
	is "$code" 412
	f PUT '?path=v&new=1' --data-binary three
	is "$code" 409
	is "$(content v)" two
	f PUT '?path=fresh&new=1' --data-binary x
	is "$code" 201
	f PUT '?path=fresher' -H 'If-None-Match: *' --data-binary x
	is "$code" 201
}

of_simultaneous_if_match_changes_one_succeeds() {
	new_box
	put v one
	f GET '?path=v'
	tag=$(header etag)
	for i in 1 2 3 4; do
		curl -sS -o /dev/null -w '%{http_code}\n' -X PUT -H "X-API-Key: $key" -H "If-Match: $tag" \
			--data-binary "winner $i" "$url/v1/boxes/$box/files?path=v" >code$i &
		eval "pid$i=$!"
	done
	wait "$pid1" "$pid2" "$pid3" "$pid4"
	is "$(cat code? | sort | tr '\n' ' ')" "200 412 412 412 "
	won=$(grep -l 200 code?)
	is "$(content v)" "winner ${won#code}"
}

an_aborted_upload_leaves_the_old_file() {
	new_box
	put v before
	say "PUT /v1/boxes/$box/files?path=v HTTP/1.1\\r\\nHost: localhost\\r\\nX-API-Key: $key\\r\\nContent-Length: 100\\r\\n\\r\\npart" 0
	say "PUT /v1/boxes/$box/files?path=w HTTP/1.1\\r\\nHost: localhost\\r\\nX-API-Key: $key\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n4\\r\\npart\\r\\n" 0
	soon no_worker
	is "$(content v)" before
	is "$(names .)" v
}

# Neither visible in the box, nor left when the file worker is killed.
a_partial_upload_is_not_visible_in_the_box() {
	new_box
	put v before
	files_left
	say "PUT /v1/boxes/$box/files?path=v HTTP/1.1\\r\\nHost: localhost\\r\\nX-API-Key: $key\\r\\nContent-Length: 100\\r\\n\\r\\npart" 60 >answer &
	pid=$!
	soon is_uploading
	sh_in 'ls -A'
	is "$out" v
	sh_in 'for i in $(seq 2 $(($$ - 1))); do kill -9 $i 2>/dev/null; done; ls -A'
	is "$out" v
	wait "$pid"
	sh_in 'ls -A'
	is "$out" v
	is "$(content v)" before
}

an_upload_over_the_limit_is_rejected() {
	new_box
	f PUT '?path=v' -H 'Content-Length: 99999999999' -H 'Expect: 100-continue' --data-binary x
	is "$code" 507 "$body"
	truncate -s 60M large
	f PUT '?path=v' -T large
	is "$code" 413 "$body"
	f PUT '?path=v' -H 'Transfer-Encoding: chunked' -T large
	is "$code" 413 "$body"
	is "$(names .)" ""
}

a_full_disk_is_reported_with_its_size() {
	new_box '{"limits":{"disk":16777216}}'
	put small fits
	head -c 30000000 /dev/zero >large
	f PUT '?path=large' -H 'Transfer-Encoding: chunked' -T large
	is "$code $(get .error.code)" "507 no_space" "$body"
	has "$(get .error.why)" 16777216
	has "$(get '.error.hints[0]')" limits.disk
	f PUT '?path=large' -T large
	is "$code" 507 "$body"
	is "$(names .)" small
	put small 'still fits'
	is "$(content small)" 'still fits'
}

# ---- while things happen ----

a_growing_file_is_sent_with_its_length_at_the_start() {
	new_box
	api POST "/v1/boxes/$box/execs" '{"command":"while :; do date >>log; done","background":true}'
	exec=$(get .id)
	soon has_bytes log
	for i in 1 2 3 4 5; do
		f GET '?path=log'
		is "$code $rc $(header content-length)" "200 0 $(wc -c <body | tr -d ' ')"
	done
	api DELETE "/v1/boxes/$box/execs/$exec"
}
has_bytes() { f GET "?path=$1" && [ "$code" = 200 ] && [ -s body ]; }

# slowly PATH: a slow download in the background; sets pid.
slowly() {
	curl -sS --limit-rate 1M -o slow -H "X-API-Key: $key" "$url/v1/boxes/$box/files$1" 2>slow.err &
	pid=$!
	soon test -s slow
}
cut_off() {
	rc=0
	wait "$pid" || rc=$?
	case $rc in 18 | 56) ;; *) fail "curl says $rc, with $(wc -c <slow) bytes: $(cat slow.err)" ;; esac
}

a_shrinking_file_aborts_the_download() {
	new_box
	sh_in 'truncate -s 200M f'
	slowly '?path=f'
	sh_in 'truncate -s 1000 f'
	cut_off
}

the_death_of_a_box_aborts_its_download() {
	new_box
	sh_in 'truncate -s 200M f'
	slowly '?path=f'
	api DELETE "/v1/boxes/$box"
	is "$code" 204
	cut_off
}

the_death_of_a_box_aborts_its_archive_download() {
	new_box
	sh_in 'truncate -s 200M f'
	slowly '/archive?path=f'
	api DELETE "/v1/boxes/$box"
	cut_off
}

the_death_of_a_box_fails_its_upload() {
	new_box
	files_left
	say "PUT /v1/boxes/$box/files?path=v HTTP/1.1\\r\\nHost: localhost\\r\\nX-API-Key: $key\\r\\nContent-Length: 100\\r\\n\\r\\npart" 60 >answer &
	pid=$!
	soon is_uploading
	api DELETE "/v1/boxes/$box"
	wait "$pid"
	has "$(head -1 answer)" "502"
	has "$(cat answer)" box_ended
}
# The uploaded file has no name yet, but counts on the disk.
files_left() { sh_in 'stat -f -c %d .' && left=$out; }
is_uploading() { sh_in 'stat -f -c %d .' && [ "$out" -lt "$left" ]; }

files_of_a_stopped_box_can_be_read_and_written_without_starting_it() {
	new_box '{"lifetime_ms":600000,"on_timeout":"keep"}'
	put f one
	lifetime=300 # that of the archive at the end, too, which an emulated guest does not finish in this time
	[ "${ATOLL_TIER-}" != microvm ] || lifetime=8000
	api PATCH "/v1/boxes/$box" "{\"lifetime_ms\":$lifetime}"
	soon state_is stopped
	is "$(content f)" one
	put g two
	is "$(names .)" "f g"
	f GET '/stat?path=g'
	is "$code" 200
	state_is stopped || fail "it woke up"
	owner=$key key=$viewer
	f GET /archive
	is "$code $(get .error.code)" "409 stopped"
	key=$owner
	f GET /archive
	is "$code" 200
	state_is running
}

# ---- paths ----

invalid_paths_are_rejected() {
	new_box
	is "$(names .)" "" # from here on gVisor looks names up in this listing
	for row in '|400' '?path=|400' "?path=$(printf 'a%.0s' $(seq 5000))|400" '?path=a%00b|400' '?path=a%zzb|400' \
		'?path=a%4|400' '?path=a&path=b|400' '?pth=a|400' '?path=..|409' '?path=/|409' \
		"?path=$(printf 'a%.0s' $(seq 300))|400" '?path=nothing|404' '?path=no/thing|404'; do
		f GET "${row%|*}"
		is "$code" "${row##*|}" "$(echo "$row" | head -c 60): $body"
		has "$(get .error.message)" ""
	done
	for row in '|400' '?path=|400' '?path=a%00b|400' '?path=.|409' '?path=..|409' '?path=/|409' '?path=a/|409' \
		'?path=/etc/x|403' "?path=/proc/x|$(if has_guest; then echo 403; else echo 404; fi)" '?path=f&mode=9|400' '?path=f&mode=77777|400' '?path=f&mode=-1|400' \
		"?path=$(printf 'a%.0s' $(seq 300))|400"; do
		f PUT "${row%|*}" --data-binary x
		is "$code" "${row##*|}" "$(echo "$row" | head -c 60): $body"
	done
	is "$(names .)" ""
}

dot_dot_paths_stay_inside_the_box() {
	new_box
	echo "the host's own" >"$work/secret"
	chmod 644 "$work/secret"
	sh_in 'cat /etc/passwd'
	inside=$out
	for path in ../../etc/passwd ../../../../../../etc/passwd %2e%2e%2f%2e%2e%2fetc%2fpasswd /etc/passwd; do
		is "$(content "$path")" "$inside" "$path"
	done
	for path in "$work/secret" "../../../../../..$work/secret" "/proc/1/root$work/secret" "/proc/self/root$work/secret" \
		"/proc/1/cwd/../../../../..$work/secret"; do
		f GET "?path=$path"
		lacks "$body" "host's own"
		case $code in 404 | 403) ;; *) fail "$path: $code" ;; esac
	done
}

symlinks_in_the_box_do_not_reach_host_files() {
	new_box
	echo "the host's own" >"$work/secret"
	chmod 644 "$work/secret"
	sh_in "ln -s $work/secret a; ln -s ../../../../../../../..$work/secret b; ln -s /proc/1/root$work c; ln -s $work d"
	for path in a b c/secret d/secret; do
		f GET "?path=$path"
		lacks "$body" "host's own"
		case $code in 404 | 403) ;; *) fail "$path: $code" ;; esac
		f PUT "?path=$path" --data-binary overwritten
	done
	f GET '/archive?path=.'
	f DELETE '?path=d&recursive=1'
	is "$(cat "$work/secret")" "the host's own"
	f GET '/stat?path=c'
	is "$(get '.type + " " + (.target_type|tostring)')" "link null"
	has "$(get .target)" "$work"
}

fifos_sockets_devices_and_link_loops_are_rejected_without_blocking() {
	new_box
	sh_in 'mkfifo fifo; ln -s loop loop; mkdir folder; python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")"'
	for row in 'fifo 409' 'loop 409' 'folder 409' '/dev/null 409' '/dev/zero 409' 'sock 409' 'loop/x 409' 'fifo/x 409'; do
		set -- $row
		f GET "?path=$1"
		is "$code" "$2" "$1: $body"
	done
	f GET '?path=folder'
	has "$(get '.error.hints[0]')" files/list
	f GET '/list?path=fifo'
	is "$code" 409
	is "$(f GET '/stat?path=fifo'; get .type)" fifo
	f PUT '?path=folder' --data-binary x
	is "$code" 409
	f PUT '?path=folder/a/b' --data-binary x
	is "$code" 201
	f PUT '?path=folder/a/b/c' --data-binary x
	is "$code" 409
}

a_file_that_the_user_may_not_read_is_denied() {
	new_box
	sh_in 'echo x >f; chmod 0 f; mkdir d; chmod 0 d'
	f GET '?path=f'
	is "$code $(get .error.code)" "403 denied"
	f PUT '?path=d/x' --data-binary x
	is "$code" 403
	f GET '/list?path=d'
	is "$code" 403
	sh_in 'chmod 755 d'
}

file_names_of_any_bytes_are_preserved() {
	new_box
	for name in 'new%0Aline' 'quo%22te%27' '%ff%fe' 'back%5Cslash' '%E2%82%AC' ' %20x' '-rf' 'a%2Bb' '%1b%5b31m'; do
		f PUT "?path=d/$(echo "$name" | tr -d ' ')" --data-binary "$name"
		is "$code" 201 "$name"
		is "$(content "d/$(echo "$name" | tr -d ' ')")" "$name"
	done
	f GET '/list?path=d'
	is "$(get '.items | length')" 9
	is "$(get '.items[] | select(.name_base64).name_base64')" "$(printf '\377\376' | base64)"
	has "$body" 'new\nline'
	has "$body" 'quo\"te'
	f GET '/list?path=d&limit=8' # the last name is the one that is not UTF-8
	f GET "/list?path=d&limit=8&after=$(get .next)"
	is "$(get '.items | length')" 1
	f GET '?path=d/new%0Aline'
	lacks "$(header content-disposition)" ' line'
	for format in tar tar.gz zip; do
		f GET "/archive?path=d&format=$format"
		is "$code $rc" "200 0" "$format"
	done
	f DELETE '?path=d/%ff%fe'
	is "$code" 204
}

# ---- folders ----

a_thousand_files_are_listed_in_pages() {
	new_box
	python3 - "$url" "$key" "$box" <<-'EOF'
		import http.client, sys
		url, key, box = sys.argv[1:]
		c = http.client.HTTPConnection(url[7:])
		for i in range(1000):
		    c.request("PUT", f"/v1/boxes/{box}/files?path=many/{i:04}", str(i), {"X-API-Key": key})
		    r = c.getresponse()
		    assert r.status == 201, (i, r.status, r.read())
		    r.read()
	EOF
	after= seen=
	while :; do
		f GET "/list?path=many&limit=300$after"
		is "$code" 200 "$body"
		get '.items[].name' >>all
		[ "$(get .next)" != null ] || break
		after="&after=$(get .next)"
	done
	is "$(wc -l <all | tr -d ' ') $(sort -u all | wc -l | tr -d ' ')" "1000 1000"
	is "$(head -1 all) $(tail -1 all)" "0000 0999"
	f GET '/list?path=many&after=%21%21'
	is "$code" 400
	f GET '/list?path=many&limit=0'
	is "$code" 400
	f DELETE '?path=many'
	is "$code $(get .error.code)" "409 not_empty"
	f DELETE '?path=many&recursive=1'
	is "$code" 204
	f GET '/list?path=many'
	is "$code" 404
}

a_list_has_the_requested_depth() {
	new_box
	put a/b/c 1
	put a/d 22
	put e 333
	is "$(f GET /list; get '[.items[].path] | join(" ")')" "/home/user/a /home/user/e"
	f GET '/list?depth=3'
	is "$(get '[.items[].path[11:]] | join(" ")')" "a a/b a/b/c a/d e"
	is "$(get '.items[] | select(.name=="d") | .type + " " + (.size|tostring) + " " + (.uid|tostring)')" "file 2 1000"
	f GET '/list?depth=3&limit=2'
	is "$(get '[.items[].path[11:]] | join(" ")')" "a a/b"
	f GET "/list?depth=3&limit=2&after=$(get .next)"
	is "$(get '[.items[].path[11:]] | join(" ")')" "a/b/c a/d"
	f GET '/list?path=//home/./user/a/'
	is "$(get '[.items[].path] | join(" ")')" "/home/user/a/b /home/user/a/d"
	f GET '/list?path=e'
	is "$code" 409
}

folders_are_created_moved_copied_and_changed() {
	new_box
	api POST "/v1/boxes/$box/files/mkdir" '{"path":"a/b","mode":"0700"}'
	is "$code $(get '.type + .mode')" "201 folder0700"
	api POST "/v1/boxes/$box/files/mkdir" '{"path":"a/b"}'
	is "$code" 200
	put a/b/f content
	api POST "/v1/boxes/$box/files/mkdir" '{"path":"a/b/f"}'
	is "$code" 409
	api POST "/v1/boxes/$box/files/move" '{"from":"a","to":"new/place"}'
	is "$code $(get .path)" "200 /home/user/new/place"
	api POST "/v1/boxes/$box/files/copy" '{"from":"new/place","to":"twin"}'
	is "$code" 201
	is "$(content twin/b/f)$(content new/place/b/f)" contentcontent
	put other x
	api POST "/v1/boxes/$box/files/move" '{"from":"other","to":"twin/b/f"}'
	is "$code $(get .error.code)" "409 exists"
	api POST "/v1/boxes/$box/files/copy" '{"from":"other","to":"twin/b/f"}'
	is "$code" 409
	api POST "/v1/boxes/$box/files/move" '{"from":"other","to":"twin/b/f","replace":true}'
	is "$code" 200
	is "$(content twin/b/f)" x
	api POST "/v1/boxes/$box/files/chmod" '{"path":"twin/b/f","mode":493}'
	is "$code $(get .mode)" "200 0755"
	api POST "/v1/boxes/$box/files/chmod" '{"path":"twin/b/f","mode":"0600"}'
	is "$(get .mode)" 0600
	for body in '{"path":"f"}' '{"path":"f","mode":"rw"}' '{"path":"f","mode":-1}' '{"path":"f","mode":99999}' \
		'{"path":"f","mode":true}' '{"path":"","mode":"0600"}' '{"path":1,"mode":"0600"}' '{"mode":"0600"}'; do
		api POST "/v1/boxes/$box/files/chmod" "$body"
		is "$code" 400 "$body"
	done
	for body in '{"from":"x"}' '{"from":"","to":"y"}' '{"from":"a\u0000b","to":"y"}' '{"from":"x","to":"y","force":true}' '[]'; do
		api POST "/v1/boxes/$box/files/move" "$body"
		is "$code" 400 "$body"
	done
	api POST "/v1/boxes/$box/files/move" '{"from":"nothing","to":"y/z"}'
	is "$code" 404
	api POST "/v1/boxes/$box/files/move" '{"from":"twin","to":"twin/b/inside"}'
	is "$code" 400
	is "$(names .)" "new twin"
}

# ---- archives ----

a_tree_is_downloaded_and_uploaded_as_an_archive() {
	for format in tar tar.gz zip; do
		new_box
		put t/a one
		put t/sub/b two
		sh_in 'chmod 750 t/a; ln -s a t/link; mkdir t/empty'
		f GET "/archive?path=t&format=$format"
		is "$code" 200 "$body"
		mv body archive
		f PUT "/archive?path=u/v&format=$format" --data-binary @archive
		is "$code" 200 "$format: $body"
		sh_in 'cd u/v; cat a sub/b link; find a -printf "%m\n"; ls'
		is "$out" "$(printf 'onetwoone750\na\nempty\nlink\nsub')" "$format"
	done
	f GET '/archive?path=t/a'
	is "$(tar -tf body)" ./a
	f GET '/archive?path=t/empty&format=zip'
	is "$code $rc" "200 0"
	f GET '/archive?path=nothing'
	is "$code" 404
	f GET '/archive?format=rar'
	is "$code" 400
}

the_number_of_entries_of_an_archive_is_bounded() {
	new_box
	mkdir t && touch t/1 t/2 t/3
	tar -cf a.tar t
	f PUT /archive --data-binary @a.tar
	is "$code $(get .entries)" "200 4"
}

an_incomplete_archive_is_rejected() {
	new_box
	put t/a one
	sh_in 'echo x >t/b; chmod 0 t/b'
	f GET '/archive?path=t'
	# A reset connection discards unread bytes, including the response head.
	case $code in 200 | 000) ;; *) fail "$code $body" ;; esac
	[ $rc != 0 ] || fail "it looks whole"
}

an_invalid_archive_is_rejected_with_the_reason() {
	new_box
	for format in tar tar.gz zip; do
		f PUT "/archive?path=d&format=$format" --data-binary 'this is not an archive'
		is "$code $(get .error.code)" "422 archive" "$format: $body"
		[ "$(get .error.why)" ] || fail "$format: no reason"
	done
	mkdir t && head -c 3000000 /dev/urandom >t/f && tar -cf a.tar t
	head -c 1000000 a.tar >half
	f PUT /archive --data-binary @half
	is "$code" 422
	f PUT '/archive?path=/etc' --data-binary @a.tar
	is "$code" 422 "$body"
	f PUT '/archive?path=/etc/new' --data-binary @a.tar
	is "$code" 403 "$body"
}

an_archive_too_large_for_the_disk_is_rejected() {
	new_box '{"limits":{"disk":16777216}}'
	head -c 30000000 /dev/zero >large
	tar -cf a.tar large
	f PUT /archive --data-binary @a.tar
	is "$code" 507 "$body"
}

a_client_disconnect_ends_the_unpacking() {
	new_box
	say "PUT /v1/boxes/$box/files/archive HTTP/1.1\\r\\nHost: localhost\\r\\nX-API-Key: $key\\r\\nContent-Length: 100000\\r\\n\\r\\npart" 0
	soon no_running
}
no_running() { api GET "/v1/boxes/$box/execs?running=1"; [ "$(get '.items | length')" = 0 ]; }

a_client_disconnect_ends_the_packing() {
	new_box
	sh_in 'truncate -s 200M f'
	slowly /archive
	kill "$pid"
	soon no_running
}

# ---- search and watch ----

a_search_finds_by_name_and_content() {
	new_box
	put src/one.py 'import os
needle here'
	put src/two.txt 'Needle there'
	put three.py nothing
	f GET '/search?name=*.py'
	is "$(jq -r 'select(.type=="hit").path' <body | sort | tr '\n' ' ')" "/home/user/src/one.py /home/user/three.py "
	is "$(tail -1 body | jq -r '.type + " " + (.hits|tostring)')" "done 2"
	f GET '/search?content=needle'
	is "$(head -1 body | jq -r '.path + ":" + (.line|tostring) + ":" + .text')" "/home/user/src/one.py:2:needle here"
	is "$(wc -l <body | tr -d ' ')" 2
	f GET '/search?content=needle&ignore_case=1' -H 'Accept: application/json'
	is "$(get '.items | length') $(get .truncated)" "2 false"
	f GET '/search?content=needle&ignore_case=1&limit=1' -H 'Accept: application/json'
	is "$(get '.items | length') $(get .truncated)" "1 true"
	f GET '/search?name=*.txt&content=needle' -H 'Accept: application/json'
	is "$(get '.items | length')" 0
	for row in '?path=src|400' '?name=|400' '?name=x&path=nothing|404' '?name=x&path=three.py|409' \
		"?name=$(printf 'a%.0s' $(seq 300))|400"; do
		f GET "/search${row%|*}"
		is "$code" "${row##*|}" "$row"
	done
}

a_client_disconnect_ends_the_search() {
	new_box
	sh_in 'yes zzy | head -c 10M >f; for i in $(seq 400); do ln f f$i; done'
	curl -sS -N -H "X-API-Key: $key" "$url/v1/boxes/$box/files/search?content=zzz" >/dev/null 2>&1 &
	pid=$!
	soon some_worker
	kill "$pid"
	soon no_worker
}

a_watch_reports_file_changes() {
	new_box
	curl -sS -N -H "X-API-Key: $key" "$url/v1/boxes/$box/files/watch?recursive=1" >events 2>/dev/null &
	pid=$!
	soon grep -q '"watching"' events
	is "$(head -1 events | jq -r .type)" watching
	some_worker || fail "no file worker is running"
	put a/b hello
	soon grep -q '"create".*user/a/b"' events
	api POST "/v1/boxes/$box/files/move" '{"from":"a/b","to":"a/c"}'
	soon grep -q '"rename".*a/b.*a/c' events
	api POST "/v1/boxes/$box/files/chmod" '{"path":"a/c","mode":"0600"}'
	soon grep -q '"chmod".*a/c' events
	sh_in 'echo more >>a/c'
	soon grep -q '"write".*a/c' events
	f DELETE '?path=a/c'
	soon grep -q '"remove".*a/c' events
	kill "$pid"
	soon no_worker
	f GET '/watch?path=nothing'
	is "$code" 404
	put file x
	f GET '/watch?path=file'
	is "$code" 409
}

too_many_folders_to_watch_are_a_limit_error_and_the_box_keeps_running() {
	new_box
	sh_in 'mkdir many && cd many && seq 5000 | xargs mkdir'
	f GET '/watch?path=many&recursive=1'
	is "$code $(get .error.code)" '429 limit' "$body"
	has "$(get .error.message)" 'more than 4096 folders'
	api POST "/v1/boxes/$box/files/copy" '{"from":"many","to":"more"}'
	is "$code" 201 "$body"
}

a_watch_can_use_server_sent_events_and_ends_with_its_box() {
	new_box
	curl -sS -N -H "X-API-Key: $key" -H 'Accept: text/event-stream' "$url/v1/boxes/$box/files/watch" >events 2>/dev/null &
	pid=$!
	soon grep -q '^data: .*watching' events
	api DELETE "/v1/boxes/$box"
	soon ended "$pid"
	has "$(cat events)" box_ended
}

# ---- authorisation ----

a_viewer_may_read_files_but_not_change_them() {
	new_box
	put f x
	owner=$key key=$viewer
	for path in '?path=f' '/stat?path=f' /list '/search?name=f' /archive; do
		f GET "$path"
		is "$code" 200 "$path"
	done
	f PUT '?path=f' --data-binary y
	is "$code" 403
	f DELETE '?path=f'
	is "$code" 403
	f PUT /archive --data-binary y
	is "$code" 403
	for command in mkdir move copy chmod; do
		api POST "/v1/boxes/$box/files/$command" '{}'
		is "$code" 403 "$command"
	done
	api GET "/v1/boxes/$box/env"
	is "$code" 200
	api PUT "/v1/boxes/$box/env" '{"env":{}}'
	is "$code" 403
	key=$owner
	is "$(content f)" x
	box=nothing
	for path in '?path=f' /list /archive; do
		f GET "$path"
		is "$code" 404 "$path"
	done
	key=wrong
	f GET '?path=f'
	is "$code" 401
}

variables_of_a_box_are_shown_and_replaced() {
	new_box '{"env":{"A":"1","B":"2"}}'
	api GET "/v1/boxes/$box/env"
	is "$(get '.env.A + .env.B')" 12
	api PUT "/v1/boxes/$box/env" '{"env":{"C":"3"}}'
	is "$code $(get '.env | tostring')" '200 {"C":"3"}'
	sh_in 'echo $A$B$C'
	is "$out" 3
	for body in '{}' '{"env":[]}' '{"env":{"A=B":"x"}}' '{"env":{"":"x"}}' '{"env":{"A":1}}'; do
		api PUT "/v1/boxes/$box/env" "$body"
		is "$code" 400 "$body"
	done
	api GET "/v1/boxes/$box/env"
	is "$(get '.env | tostring')" '{"C":"3"}'
}

run_daemon_tests
