#!/bin/sh
# checkpoint_archive.sh - checkpoints as OCI images: equal bytes, equal hashes, other tools, hostile archives; files of checkpoints.
. "$(dirname "$0")/daemon.lib"
. "$libs/checkpoints.lib"

fill() { # BOX: every kind of entry
	says "$1" 'mkdir -p d/deep gone; printf one >a; ln a b; ln -s ../a d/link; mkfifo d/pipe; head -c 300000 /dev/urandom >big; chmod 4711 a
		printf x >"d/$(printf "new\nline")"; touch -d @1700000000.123456789 d/deep; setfattr -n user.note -v hello a 2>/dev/null; : >.hidden; printf y >gone/file
		truncate -s 3000000 sparse; printf end >>sparse'
	api POST "/v1/boxes/$1/checkpoints" '{"name":"first"}'
	is "$code" 201 "$body"
	says "$1" 'rm -r gone; printf two >>a; printf three >c'
	api POST "/v1/boxes/$1/checkpoints" '{"name":"second"}'
	is "$code" 201 "$body"
	k=$(get .id)
}

# What an archive keeps of a folder.
list="export LC_ALL=C; find . -printf '%P %y %m %T@ %s %l\\n' | sed 's/^\([^ ]* d [^ ]* [^ ]*\) [0-9]*/\1/' | sort; find . -type f -exec sha256sum {} + | sort"
listing() { # FOLDER
	(cd "$1" && eval "$list")
}

an_exported_image_is_read_by_other_tools_and_an_import_has_the_same_hash() {
	box
	fill "$b"
	"$ATOLL" checkpoint export "$k" image.tar --quiet
	"$ATOLL" checkpoint export "$k" layer.tar --layer --quiet
	"$ATOLL" checkpoint export "$k" again.tar --layer --quiet
	is "$(sha256sum <layer.tar)" "$(sha256sum <again.tar)"
	is "$(tar xOf image.tar index.json | jq -r '.manifests[0].annotations[]')" "$k"
	mkdir unpacked
	tar xf layer.tar -C unpacked
	is "$(cat unpacked/home/user/a unpacked/home/user/c)" onetwothree
	is "$(stat -c '%h %a' unpacked/home/user/b)" "2 711"
	[ ! -e unpacked/home/user/gone ]
	is "$(listing unpacked/home/user)" "$(says "$b" "$list")"
	if command -v skopeo >/dev/null; then
		skopeo copy -q oci-archive:image.tar dir:copied
		is "$(jq -r '.layers[0].digest' copied/manifest.json)" "sha256:$(sha256sum <layer.tar | cut -d ' ' -f 1)"
	fi
	if command -v umoci >/dev/null; then
		mkdir layout
		tar xf image.tar -C layout
		umoci unpack --image "layout:$k" bundle >/dev/null 2>&1
		is "$(listing bundle/rootfs)" "$(listing unpacked)"
	fi
	# In another box.
	api POST /v1/boxes '{}'
	is "$code" 201 "$body"
	o=$(get .id)
	i=$("$ATOLL" checkpoint import "$o" image.tar good)
	"$ATOLL" checkpoint export "$i" imported.tar --layer --quiet
	is "$(sha256sum <imported.tar)" "$(sha256sum <layer.tar)"
	api GET "/v1/checkpoints/$i"
	is "$(get '.reason + " " + .name + " " + (.parent|tostring)')" "import good null" "$body"
	api GET "/v1/boxes/$o/checkpoints"
	is "$(get '.items | length')" 1 "$body"
	is "$(says "$o" 'ls a 2>/dev/null; :')" "" # the box stays as it is
	api POST "/v1/boxes/$o/rollback" '{"to":"good"}'
	is "$code" 200 "$body"
	is "$(says "$o" 'cat a c; stat -c %h b; sha256sum <big')" "$(says "$b" 'cat a c; stat -c %h b; sha256sum <big')"
	for n in $b $o; do api DELETE "/v1/boxes/$n"; done
}

a_delta_has_only_what_has_changed() {
	box
	fill "$b"
	"$ATOLL" checkpoint export "$k" delta.tar --layer --delta --quiet
	is "$(tar tf delta.tar | grep -c big)" 0
	is "$(tar tf delta.tar | grep -c 'user/c$')" 1
	is "$(tar tf delta.tar | grep -c 'user/.wh.gone$')" 1
	is "$("$ATOLL" cat "$b@first:a")$("$ATOLL" cat "$b@$k:a")" oneonetwo
	"$ATOLL" cp "$b@first:gone/file" here
	is "$(cat here)" y
	"$ATOLL" cat "$b@none:a" 2>said && false
	grep -q 'has no checkpoint none' said
	api DELETE "/v1/boxes/$b"
}

refused() { # STATUS TEXT: of the import of standard input
	code=$(curl -sS -o body -w '%{http_code}' -H "X-API-Key: $key" -H 'Content-Type: application/x-tar' --data-binary @- "$url/v1/boxes/$b/checkpoints/import")
	body=$(cat body)
	case $code in 4?? | 5??) ;; *) is "$code" "an error" "$body" ;; esac
	case $body in *"$1"*) ;; *) is "$body" "*$1*" ;; esac
}
hostile_archives_are_refused_and_leave_nothing() {
	box
	printf 'no archive' | refused ''
	head -c 100000 /dev/urandom | refused ''
	mkdir x && echo f >x/f
	tar cf whole.tar -C x .
	head -c 700 whole.tar | refused ''
	tar cf - -C x --transform 's,^,../../,' -P f | refused '..'
	/usr/bin/python3 -c '
import io, sys, tarfile
t = tarfile.open(fileobj=sys.stdout.buffer, mode="w|")
i = tarfile.TarInfo("dev"); i.type = tarfile.CHRTYPE; i.devmajor = i.devminor = 1; t.addfile(i); t.close()' | refused 'device'
	/usr/bin/python3 -c '
import sys, tarfile
t = tarfile.open(fileobj=sys.stdout.buffer, mode="w|")
i = tarfile.TarInfo("h"); i.type = tarfile.LNKTYPE; i.linkname = "../../../etc/shadow"; t.addfile(i); t.close()' | refused ''
	api POST "/v1/boxes/$b/checkpoints/import?name=a%20b%2F" ''
	is "$code" 400 "$body"
	api POST "/v1/boxes/none/checkpoints/import" ''
	is "$code" 404 "$body"
	api GET "/v1/checkpoints/aaaaaaaaaaaa/export"
	is "$code" 404 "$body"
	api GET "/v1/boxes/$b/checkpoints"
	is "$(get '.items | length')" 0 "$body"
	nothing_new() { [ -z "$(find / -xdev -path '*/layers/new.*' -maxdepth 8 -newer whole.tar 2>/dev/null)" ]; }
	nothing_new
	api DELETE "/v1/boxes/$b"
}

run_daemon_tests
