#!/bin/sh
# api_rooms.sh - rooms over /v1/socket: relay, roles, hostile frames, and what ends a room.
. "$(dirname "$0")/daemon.lib"

# rooms SCRIPT: Python with the functions below; the box is $box.
rooms() {
	PYTHONPATH=$here python3 "$here/wsclient.py" "ws${url#http}/v1/socket" "$key" "
import struct, time
class Client:
    def __init__(self, path='/home/user/a.py', epoch=None, key=KEY, box='$box', client=None):
        self.w = Ws(URL, key)
        self.w.send({'op': 'open', 'ch': 1, 'kind': 'room', 'box': box, 'path': path, **({'epoch': epoch} if epoch else {}), **({'client': client} if client else {})})
        self.hello = self.w.next()[1]
    def send(self, data, kind=0):
        self.w.frame(2, struct.pack('>IB', 1, kind) + data)
    def next(self):
        f = self.w.next()
        return (f[1]['op'], f[1].get('seq', f[1].get('peer', (f[1].get('error') or {}).get('code')))) if f[0] == 'text' else (f[2], f[3], f[4]) if f[0] == 'bytes' else f
    def until(self, what):
        seen = []
        while what not in [s[0] for s in seen]:
            seen.append(self.next())
        return seen
$1"
}

updates_and_presence_are_relayed() {
	new_box
	is "$(rooms "
a, b = Client(), Client()
print(a.hello['begin'], b.hello['begin'], a.hello['peer'], b.hello['peer'], b.hello['epoch'] == '')
a.send(b'text')
print(a.until('writer'))
print(b.until('synced'))
b.send(b'more')
print(b.next(), a.next())
b.send(b'cursor', 1)
print(a.next())
c = Client()
print(c.until('synced'), c.hello['epoch'] == a.hello['epoch'])
b.w.s.close()
print(a.next())
")" "True False 1 2 True
[('ack', 1), ('writer', None)]
[('epoch', None), (0, 1, b'text'), ('synced', 1)]
('ack', 2) (0, 2, b'more')
(1, 2, b'cursor')
[(1, 2, b'cursor'), (0, 1, b'text'), (0, 2, b'more'), ('synced', 2)] True
('left', 2)"
}

a_client_that_joins_again_replaces_its_lost_connection() {
	new_box
	is "$(rooms "
lost, b = Client(client='aaaaaaaaaaaa'), Client(client='bbbbbbbbbbbb')
lost.send(b'text')
lost.until('writer'), b.until('synced')
again = Client(client='aaaaaaaaaaaa')     # the first connection is open still
print(again.hello['peer'], again.hello['begin'])
print(b.until('writer'))
print(lost.next())
again.w.send({'op': 'open', 'ch': 2, 'kind': 'room', 'box': '$box', 'path': '/home/user/b.py', 'client': 'aaaaaaaaaaaa'})
print(again.until('opened')[-1][0])
")" "3 False
[('left', 1), ('writer', None)]
('closed', None)
opened"
}

an_update_larger_than_a_message_is_sent_in_parts() {
	new_box
	is "$(rooms "
a, b = Client(), Client()
for i in range(20):
    a.send(b'x' * 65536, 0x80)
a.send(b'end')
print(a.next())
f = b.until('synced')[1]
print(f[:2], len(f[2]), f[2][-4:])
")" "('ack', 1)
(0, 1) 1310723 b'xend'"
}

hostile_frames_are_rejected_and_the_room_continues() {
	new_box
	is "$(rooms "
a = Client()
for i in range(160):                      # 10 MB in one update
    a.send(b'x' * 65536, 0x80)
a.send(b'end')
print(a.next())
a.send(b'', 9), a.send(b'', 2), a.send(b'1234567', 2), a.send(b'12345678', 2), a.send(b'x' * 4097, 1)
print([a.next()[1] for i in range(5)])
a.w.send({'op': 'fly', 'ch': 1}), a.w.send({'op': 'save', 'ch': 1})
print([a.next()[1] for i in range(2)])
a.w.frame(2, b'abc'), a.w.frame(2, struct.pack('>IB', 7, 0) + b'no such channel')
print([a.next()[1] for i in range(2)])
a.send(b'still good')
print(a.until('writer'))
")" "('error', 'limit')
['invalid', 'invalid', 'invalid', 'conflict', 'limit']
['invalid', 'conflict']
['not_found', 'not_found']
[('ack', 1), ('writer', None)]"
	is "$(rooms "
for more in [{'path': '../etc'}, {'path': 'a.py'}, {'path': '/' + 'x' * 5000}, {'epoch': 'nonsense'}, {'client': 'x'}, {'box': 'nothere'}]:
    print(Client(**more).hello['error']['code'], end=' ')
w = Client().w
w.frame(2, b'x' * (300 * 1024))
print(w.next())
")" "invalid invalid invalid invalid invalid not_found ('close', 1009)"
}

a_viewer_listens_and_cannot_write() {
	new_box
	is "$(rooms "
v = Client(key='$viewer')
a = Client()
print(v.hello['begin'], a.hello['begin'])
v.send(b'text')
print(v.next())
a.send(b'text')
print(v.until('synced'))
v.w.send({'op': 'save', 'ch': 1})
print(v.next())
v.send(b'eve', 1)
a.until('writer')
print(a.next())
a.w.s.close()
print(v.until('epoch')[-1], v.hello['epoch'] == '')
")" "False True
('error', 'denied')
[('epoch', None), (0, 1, b'text'), ('synced', 1)]
('error', 'denied')
(1, 1, b'eve')
('epoch', None) True"
}

a_snapshot_replaces_200_updates() {
	new_box
	is "$(rooms "
a = Client()
for i in range(200):
    a.send(b'u%d' % i)
seen = a.until('compact')
a.send(struct.pack('>Q', 200) + b'all of it', 2)
a.send(b'after')
print(a.until('ack'))
print(Client().until('synced'))
")" "[('ack', 201)]
[(2, 200, b'all of it'), (0, 201, b'after'), ('synced', 201)]"
}

the_end_of_a_box_closes_its_rooms() {
	new_box
	is "$(rooms "
import urllib.request
a, b = Client(), Client(path='')
a.send(b'text')
a.until('writer')
urllib.request.urlopen(urllib.request.Request('$url/v1/boxes/$box', method='DELETE', headers={'X-API-Key': '$key'}))
print(a.until('error')[-1], b.until('error')[-1])
print(Client().hello['error']['code'])
")" "('error', 'not_found') ('error', 'not_found')
not_found"
}

a_killed_server_forgets_rooms_and_a_client_continues_its_epoch() {
	new_box
	is "$(rooms "
import os, signal, subprocess
a, b = Client(), Client()
a.send(b'text')
b.until('synced')
os.kill(int(subprocess.check_output(['pgrep', '-x', '-P', '$supervisor', 'atoll-server']).split()[0]), signal.SIGKILL)
for i in range(400):
    try:
        b2 = Client(epoch=a.hello['epoch'])
        break
    except (OSError, IndexError):
        time.sleep(0.05)
a2 = Client(epoch=a.hello['epoch'])
print(b2.hello['begin'], b2.hello['epoch'] == a.hello['epoch'], a2.hello['begin'])
b2.send(b'text again')
print(a2.until('synced')[1:])
fresh = Client(path='/home/user/other')
print(fresh.hello['begin'], fresh.hello['epoch'] != a.hello['epoch'])
")" "True True False
[(0, 1, b'text again'), ('synced', 1)]
True True"
}

run_daemon_tests
