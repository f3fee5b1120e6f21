#!/bin/sh
# api_socket.sh - WS /v1/socket: channels, offsets, credits, and what hostile clients send.
. "$(dirname "$0")/daemon.lib"

ws() { PYTHONPATH=$here python3 "$here/wsclient.py" "ws${url#http}/v1/socket" "$key" "$1"; }
# start JSON: a program in the background; sets exec.
start() {
	api POST "/v1/boxes/$box/execs" "$1"
	is "$code" 201 "$body"
	exec=$(get .id)
}

the_output_of_an_exec_is_read_over_a_channel() {
	new_box
	start '{"command":"echo out; echo err >&2; exit 3","background":true}'
	is "$(ws "
w = Ws(URL, KEY)
w.send({'op': 'open', 'ch': 7, 'kind': 'exec', 'box': '$box', 'exec': '$exec'})
f = w.until('closed', 7)
end = [x[1] for x in f if x[0] == 'text' and x[1]['op'] == 'exit'][0]
print(w.status, joined(f, 7), joined(f, 7, 1), end['record']['status'])
")" "101 b'out\\n' b'err\\n' 3"
}

a_channel_resumes_at_a_byte_offset() {
	new_box
	start '{"command":"seq 1 20000","background":true}'
	is "$(ws "
whole = ''.join(f'{i}\n' for i in range(1, 20001)).encode()
got = b''
while len(got) < len(whole):
    w = Ws(URL, KEY)
    w.send({'op': 'open', 'ch': 1, 'kind': 'exec', 'box': '$box', 'exec': '$exec', 'stdout': len(got)})
    for _ in range(4):
        f = w.next()
        if f[0] == 'bytes':
            assert f[3] == len(got), (f[3], len(got))
            got += f[4]
    w.s.close()
print(got == whole)
")" True
}

stdin_and_a_terminal_work_over_a_channel() {
	new_box
	start '{"command":["bash","--norc"],"background":true,"pty":{"rows":30,"cols":100}}'
	is "$(ws "
w = Ws(URL, KEY)
w.send({'op': 'open', 'ch': 1, 'kind': 'pty', 'box': '$box', 'exec': '$exec'})
w.until('opened')
w.send({'op': 'resize', 'ch': 1, 'rows': 41, 'cols': 99})
w.stdin(1, b'stty size; exit 5\n')
f = w.until('closed', 1)
print(b'41 99' in joined(f, 1), [x[1]['record']['status'] for x in f if x[0] == 'text' and x[1]['op'] == 'exit'])
")" "True [5]"
}

end_of_input_and_signals_are_sent_over_a_channel() {
	new_box
	start '{"command":"wc -c","background":true,"open_stdin":true}'
	counted=$exec
	start '{"command":"exec sleep 60","background":true}'
	is "$(ws "
w = Ws(URL, KEY)
w.send({'op': 'open', 'ch': 1, 'kind': 'exec', 'box': '$box', 'exec': '$counted'})
w.send({'op': 'open', 'ch': 2, 'kind': 'exec', 'box': '$box', 'exec': '$exec'})
w.stdin(1, b'x' * 100000)
w.send({'op': 'eof', 'ch': 1})
f = w.until('closed', 1)
w.send({'op': 'signal', 'ch': 2, 'signal': 15})
g = w.until('closed', 2)
print(joined(f, 1).strip(), [x[1]['record']['signal'] for x in g if x[0] == 'text' and x[1]['op'] == 'exit'])
")" "b'100000' ['SIGTERM']"
}

no_more_bytes_are_sent_than_the_credit_of_the_channel() {
	new_box
	start '{"command":"head -c 300000 /dev/zero","background":true}'
	is "$(ws "
w = Ws(URL, KEY)
w.send({'op': 'open', 'ch': 1, 'kind': 'exec', 'box': '$box', 'exec': '$exec', 'stdout_credit': 1000})
got = 0
while got < 1000:
    f = w.next()
    got += len(f[4]) if f[0] == 'bytes' else 0
w.send({'op': 'ping'})
extra = [f for f in w.until('pong') if f[0] == 'bytes']
w.send({'op': 'credit', 'ch': 1, 'stdout': 2**40})
f = w.until('closed', 1)
print(got, len(extra), got + len(joined(f, 1)))
")" "1000 0 300000"
}

two_channels_of_one_exec_get_the_same_output() {
	new_box
	start '{"command":"for i in $(seq 200); do echo $i; sleep 0.002; done","background":true}'
	is "$(ws "
ws = [Ws(URL, KEY) for _ in range(4)]
for w in ws: w.send({'op': 'open', 'ch': 1, 'kind': 'exec', 'box': '$box', 'exec': '$exec'})
print({joined(w.until('closed', 1), 1) == ''.join(f'{i}\n' for i in range(1, 201)).encode() for w in ws})
")" "{True}"
}

events_arrive_without_gap_or_repetition() {
	new_box
	is "$(ws "
import urllib.request
w = Ws(URL, KEY)
w.send({'op': 'open', 'ch': 1, 'kind': 'events', 'after': 0})
w.until('opened')
def post(path, doc):
    r = urllib.request.Request('$url' + path, json.dumps(doc).encode(), {'X-API-Key': KEY})
    return json.load(urllib.request.urlopen(r))
x = post('/v1/boxes/$box/execs', {'command': 'true'})['id']
seqs = []
while True:
    f = w.next()[1]
    seqs.append(f['seq'])
    if f['type'] == 'run.ended' and f['data']['run'] == x: break
print(seqs == sorted(set(seqs)))
")" True
}

a_folder_is_watched_over_a_channel() {
	new_box
	is "$(ws "
import urllib.request
w = Ws(URL, KEY)
w.send({'op': 'open', 'ch': 1, 'kind': 'fs', 'box': '$box', 'path': '', 'recursive': True})
w.until('opened')
r = urllib.request.Request('$url/v1/boxes/$box/execs', json.dumps({'command': 'mkdir d; echo x > d/f'}).encode(), {'X-API-Key': KEY})
urllib.request.urlopen(r).read()
seen = set()
while 'd/f' not in seen:
    seen.add(w.next()[1]['path'])
print('d' in seen)
")" True
}

usage_figures_are_sent_every_second_over_a_channel() {
	new_box
	is "$(ws "
w = Ws(URL, KEY)
w.send({'op': 'open', 'ch': 1, 'kind': 'stats', 'box': '$box'})
a = w.until('stats')[-1][1]; b = w.until('stats')[-1][1]
print(a['mem'] >= 0, b['pids'] >= 1)
")" "True True"
}

the_key_may_be_given_as_a_websocket_subprotocol() {
	is "$(ws "print(Ws(URL, KEY, ('atoll.v1', 'key.' + KEY), header=False).status)")" 101
	is "$(ws "print(Ws(URL, KEY, ('atoll.v1', 'key.e2b_' + '0' * 40), header=False).status)")" 401
	is "$(ws "print(Ws(URL, KEY, header=False).status)")" 401
}

a_viewer_may_read_a_channel_but_not_write_stdin() {
	new_box
	start '{"command":"cat","background":true,"open_stdin":true}'
	key=$viewer
	is "$(ws "
w = Ws(URL, KEY)
w.send({'op': 'open', 'ch': 1, 'kind': 'exec', 'box': '$box', 'exec': '$exec'})
w.until('opened')
w.stdin(1, b'x'); a = w.until('error')[-1][1]['error']['code']
w.send({'op': 'eof', 'ch': 1}); b = w.until('error')[-1][1]['error']['code']
print(a, b)
")" "denied denied"
}

invalid_messages_get_an_error_and_the_socket_stays_open() {
	new_box
	is "$(ws "
w = Ws(URL, KEY)
out = []
for t in (b'not json', b'[]', b'{}', b'{\"op\":\"open\"}', b'{\"op\":\"open\",\"ch\":-1}', b'{\"op\":\"open\",\"ch\":1,\"kind\":\"x\"}',
          b'{\"op\":\"close\",\"ch\":9}', b'{\"op\":\"open\",\"ch\":1,\"kind\":\"exec\",\"box\":\"none\"}',
          b'{\"op\":\"open\",\"ch\":1,\"kind\":\"exec\",\"box\":\"$box\",\"exec\":\"../x\"}'):
    w.frame(1, t); out.append(w.until('error')[-1][1]['error']['code'])
w.frame(2, b'ab'); out.append(w.until('error')[-1][1]['error']['code'])
w.send({'op': 'ping'}); w.until('pong')
print(' '.join(out))
")" "invalid invalid invalid invalid invalid invalid not_found not_found not_found not_found"
}

the_end_of_a_box_closes_its_channels() {
	new_box
	start '{"command":"echo hi; exec sleep 60","background":true}'
	is "$(ws "
import urllib.request
w = Ws(URL, KEY)
w.send({'op': 'open', 'ch': 1, 'kind': 'exec', 'box': '$box', 'exec': '$exec'})
w.until('reading')
urllib.request.urlopen(urllib.request.Request('$url/v1/boxes/$box', method='DELETE', headers={'X-API-Key': KEY}))
f = w.until('closed', 1)
print([x[1]['record']['cause'] for x in f if x[0] == 'text' and x[1]['op'] == 'exit'])
")" "['operator']"
}

revoking_a_key_closes_its_socket() {
	owner=$key
	key=$("$ATOLL" key new fleeting --state "$gateway_state" --quiet)
	is "$(ws "
import subprocess
w = Ws(URL, KEY)
subprocess.run(['$ATOLL', 'key', 'rm', 'fleeting', '--state', '$gateway_state'], check=True)
print(w.next())
")" "('close', 4401)"
	key=$owner
}

run_daemon_tests
