#!/bin/sh
# cert.sh - `atoll cert`, and ports of boxes over https.
. "$(dirname "$0")/daemon.lib"

text_of() { openssl x509 -in "$1" -noout -text; }

cert_creates_a_ca_a_certificate_and_a_key_that_match() {
	atoll cert Box.Example.Test --dir made
	is "$status" 0 "$err"
	is "$(stat -c '%a' made/ca.pem made/cert.pem made/key.pem | paste -sd ' ')" '644 644 600'
	is "$(ls -A made | paste -sd ' ')" 'ca.pem cert.pem key.pem'
	openssl verify -CAfile made/ca.pem -verify_hostname 49983-abc.box.example.test made/cert.pem >/dev/null
	openssl verify -CAfile made/ca.pem -verify_hostname box.example.test made/cert.pem >/dev/null
	! openssl verify -CAfile made/ca.pem -verify_hostname a.b.box.example.test made/cert.pem >/dev/null 2>&1
	is "$(openssl pkey -in made/key.pem -pubout)" "$(openssl x509 -in made/cert.pem -noout -pubkey)"
	has "$out" "atoll serve --tls-cert $PWD/made/cert.pem --tls-key $PWD/made/key.pem --domain box.example.test"
	has "$out" "NODE_EXTRA_CA_CERTS=$PWD/made/ca.pem"
	has "$(text_of made/cert.pem)" 'prime256v1'
	openssl x509 -in made/cert.pem -noout -checkend $((700 * 86400)) >/dev/null
}

the_printed_curl_line_has_the_configured_port() {
	made() { ATOLL_LISTEN=$1 atoll cert box.test --force; is "$status" 0 "$err"; }
	made 127.0.0.1:7199
	has "$out" 'https://box.test:7199/'
	made 'unix:/tmp/x,[::1]:8443'
	has "$out" 'https://box.test:8443/'
	made :443
	has "$out" 'https://box.test/'
	made 127.0.0.1:0
	has "$out" 'https://box.test:PORT/'
	(
		unset ATOLL_LISTEN
		atoll cert box.test --force
		has "$out" 'https://box.test:7070/'
	)
}

the_ca_may_sign_only_this_domain_and_its_key_is_not_stored() {
	atoll cert box.test --dir made
	has "$(text_of made/ca.pem)" 'DNS:box.test'
	has "$(text_of made/ca.pem)" 'X509v3 Name Constraints: critical'
	has "$(text_of made/ca.pem)" 'CA:TRUE, pathlen:0'
	is "$(cat made/* | grep -c 'PRIVATE KEY')" 2 # one key: two lines
}

existing_files_are_overwritten_only_with_force() {
	atoll cert box.test
	before=$(cat ./*.pem | sha256sum)
	atoll cert box.test
	is "$status" 1
	has "$err" 'there is a ca.pem already'
	is "$(cat ./*.pem | sha256sum)" "$before"
	rm ca.pem cert.pem
	atoll cert box.test
	is "$status" 1 # a key alone is not overwritten either
	[ ! -e ca.pem ]
	atoll --json cert box.test --force
	is "$status" 0
	is "$(jq -r '.domain, .names[1], .key' out | paste -sd ' ')" "box.test *.box.test $PWD/key.pem"
	openssl verify -CAfile ca.pem cert.pem >/dev/null
	is "$(stat -c %a key.pem)" 600
	ln -sf /nowhere/else key.pem
	atoll cert box.test --force
	[ -f key.pem ] && [ ! -L key.pem ]
}

an_invalid_domain_is_rejected() {
	for name in localhost '' . a..b -a.b a-.b '*.a.b' 'a b.c' 127.0.0.1 a.b:443 a.b. \
		aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.b "$(printf 'a.%.0s' $(seq 200))b" 'ä.b'; do
		atoll cert "$name"
		is "$status" 2 "$name"
		is "$(ls ./*.pem 2>/dev/null)" ''
	done
	atoll cert
	is "$status" 2
	atoll cert a.b c.d
	is "$status" 2
	atoll cert a.b --dir /proc/no/such
	is "$status" 1
}

# Over the unix socket, where the uid authenticates the client.
local_api() { curl -sS --max-time 120 --unix-socket "$sock" -o body "$@"; }
served() { fetch 8000 /left && [ "$(cat body)" = 0 ]; }
fetch() {
	name=$1-$box.box.test
	curl -sS --max-time 120 -o body --cacert "$work/tls/ca.pem" --resolve "$name:$tls_port:127.0.0.1" "https://$name:$tls_port$2"
}

ports_of_boxes_are_reached_by_https() {
	local_api -X POST -d '{}' http://localhost/v1/boxes
	box=$(get .id)
	local_api -T "$here/proxied.py" "http://localhost/v1/boxes/$box/files?path=s.py"
	local_api -d '{"command":["python3","s.py"],"background":true}' "http://localhost/v1/boxes/$box/execs"
	local_api -X PUT -d '{"public":true}' "http://localhost/v1/boxes/$box/ports/8000"
	is "$(get .url)" "https://8000-$box.box.test:$tls_port"
	soon served
	fetch 8000 /echo
	is "$(jq -r '[.headers[] | select(.[0] | startswith("x-forwarded-")) | .[1]] | join(" ")' body)" \
		"127.0.0.1 https $name:$tls_port"
	fetch 8000 /big?n=3000000
	is "$(wc -c <body)" 3000000
	! curl -sS -o body --resolve "$name:$tls_port:127.0.0.1" "https://$name:$tls_port/left" 2>/dev/null
	is "$(SSL_CERT_FILE=$work/tls/ca.pem python3 - "$name" "$tls_port" <<-'EOF'
		import base64, socket, ssl, sys
		name, port = sys.argv[1], int(sys.argv[2])
		s = ssl.create_default_context().wrap_socket(socket.create_connection(("127.0.0.1", port), 20), server_hostname=name)
		s.sendall((f"GET /ws HTTP/1.1\r\nHost: {name}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
		           "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + base64.b64encode(b"k" * 16).decode() + "\r\n\r\n").encode())
		got = b""
		while b"hello" not in got:
		    got += s.recv(4096)
		s.sendall(b"\x81\x82\x00\x00\x00\x00hi")
		while b"\x02hi" not in got:
		    got += s.recv(4096)
		print(got.split()[1].decode())
	EOF
	)" 101
}

the_web_ui_is_not_served_at_names_of_boxes() {
	ui() { curl -sS --max-time 120 -o body -w '%{http_code}' -H 'Accept: text/html' --cacert "$work/tls/ca.pem" "$@"; }
	ui -k "https://127.0.0.1:$tls_port/" >/dev/null
	grep -q 'id="app"' body || skip "this build has no web UI"
	is "$(ui --resolve "box.test:$tls_port:127.0.0.1" "https://box.test:$tls_port/")" 403
	has "$(cat body)" serve.preview_domain
	is "$(ui --resolve "ui.box.test:$tls_port:127.0.0.1" "https://ui.box.test:$tls_port/a/x.js")" 403
	is "$(ui -k "https://localhost:$tls_port/")" 200
	for pair in box.example.org=boxes.example.org example.co.uk=x.example.co.uk box.localhost=p.box.localhost; do
		! "$ATOLL" serve --domain "${pair%=*}" --preview-domain "${pair#*=}" --listen 127.0.0.1:0 --state "$work/other" >out 2>err ||
			fail "$pair"
		has "$(cat err)" 'browsers treat both as one site'
	done
}

node_accepts_the_certificate() {
	command -v node >/dev/null || skip "no node here"
	is "$(NODE_EXTRA_CA_CERTS=$work/tls/ca.pem node -e "
const lookup = (host, o, done) => o.all ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4);
require('https').get({ host: '8000-aaaaaaaaaaaa.box.test', port: $tls_port, path: '/', lookup }, r => { console.log(r.statusCode); process.exit(0); });
")" 502
}

mkdir "$work/tls"
"$ATOLL" cert box.test --dir "$work/tls" >"$work/cert.out" || exit 1
need_daemon --tls-cert "$work/tls/cert.pem" --tls-key "$work/tls/key.pem" --domain "*.box.test"
tls_port=${url##*:}
run_tests
