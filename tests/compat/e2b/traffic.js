// traffic.js - servers in a sandbox, reached from outside by host name.
'use strict';
const assert = require('node:assert/strict');
const http = require('node:http');
const https = require('node:https');
const { soon } = require('./harness.js');

const SERVER = `
import http.server, sys
class H(http.server.BaseHTTPRequestHandler):
	protocol_version = 'HTTP/1.1'
	def do_GET(self):
		body = ('%s %s' % (self.command, self.path)).encode()
		self.send_response(200); self.send_header('Content-Length', str(len(body))); self.end_headers()
		self.wfile.write(body)
	def do_POST(self):
		body = self.rfile.read(int(self.headers['Content-Length']))[::-1]
		self.send_response(201); self.send_header('Content-Length', str(len(body))); self.end_headers()
		self.wfile.write(body)
	def log_message(self, *a): pass
http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), H).serve_forever()
`;
// Answers an upgrade request, and then echoes all bytes: the proxy does not parse WebSocket frames.
const ECHO = `
import socket
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(('127.0.0.1', 9001)); s.listen()
while True:
	c, _ = s.accept()
	head = b''
	while b'\\r\\n\\r\\n' not in head: head += c.recv(4096)
	c.sendall(b'HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n\\r\\n')
	while (d := c.recv(4096)): c.sendall(d)
	c.close()
`;

// The status of a complete answer.
async function status(url, options) {
	const answer = await fetch(url, options);

	await answer.arrayBuffer();
	return answer.status;
}
const at = (box, port, plain) => `${plain ? 'http' : 'https'}://${box.getHost(port)}`;

async function serve(box, name, code, ...args) {
	await box.files.write(`/tmp/${name}.py`, code);
	const handle = await box.commands.run(`python3 /tmp/${name}.py ${args.join(' ')}`, { background: true, timeoutMs: 0 });

	handle.wait().catch(() => {}); // it ends with its sandbox
}

module.exports = [
	[
		'a server in a sandbox is reached by its host name',
		async ({ make, plain }) => {
			const box = await make();
			const url = at(box, 8123, plain);
			const closed = await fetch(url);

			assert.equal(closed.status, 502);
			assert.match((await closed.json()).message, /port is not open/);
			await serve(box, 'server', SERVER, 8123);
			await soon(async () => (await status(url)) === 200, 'it answers');
			assert.equal(await (await fetch(`${url}/a%2Fb?c=d`)).text(), 'GET /a%2Fb?c=d');
			const posted = await fetch(url, { method: 'POST', body: 'abc'.repeat(50000) });
			assert.equal(posted.status, 201);
			assert.equal(await posted.text(), 'cba'.repeat(50000));
			const many = await Promise.all(Array.from({ length: 40 }, (_, n) => fetch(`${url}/${n}`).then((r) => r.text())));
			assert.deepEqual(many, many.map((_, n) => `GET /${n}`));
			await box.kill();
			const gone = await fetch(url);
			assert.equal(gone.status, 502);
			assert.equal((await gone.json()).message, 'The sandbox was not found');
		},
	],
	[
		'an upgraded connection passes bytes in both directions',
		async ({ make, plain }) => {
			const box = await make();
			const url = new URL(at(box, 9001, plain));

			await serve(box, 'echo', ECHO);
			await soon(async () => (await box.commands.run('ss -ltn | grep -c :9001 || true')).stdout.trim() !== '0', 'it listens');
			const socket = await new Promise((yes, no) => {
				const req = (plain ? http : https).request(url, {
					headers: { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Key': 'x'.repeat(22) + '==', 'Sec-WebSocket-Version': 13 },
				});
				req.on('upgrade', (_, s) => yes(s)).on('response', (r) => no(new Error(`status ${r.statusCode}`))).on('error', no);
				req.end();
			});
			let got = '';
			socket.on('data', (d) => (got += d));
			socket.write('ping');
			await soon(() => got === 'ping', 'the echo');
			socket.write('x'.repeat(100000));
			await soon(() => got.length === 100004, 'the whole echo');
			socket.destroy();
		},
	],
	[
		'private traffic needs the sandbox\'s traffic token',
		async ({ make, plain }) => {
			const box = await make({ network: { allowPublicTraffic: false } });
			const url = at(box, 8123, plain);

			await serve(box, 'server', SERVER, 8123);
			assert.ok(box.trafficAccessToken);
			const headers = { 'e2b-traffic-access-token': box.trafficAccessToken };
			await soon(async () => (await status(url, { headers })) === 200, 'with it');
			assert.equal(await status(url), 403);
			assert.equal(await status(url, { headers: { 'e2b-traffic-access-token': 'wrong' } }), 403);
		},
	],
	[
		'a server in a sandbox continues after a pause, with the same host name',
		async ({ make, plain }) => {
			const box = await make({ timeoutMs: 60000 });
			const url = at(box, 8123, plain);

			await serve(box, 'server', SERVER, 8123);
			await soon(async () => (await status(url)) === 200, 'it answers');
			await box.pause();
			assert.equal(await status(url), 502);
			await box.connect({ timeoutMs: 60000 });
			assert.equal(await (await fetch(`${url}/again`)).text(), 'GET /again');
		},
	],
	[
		'traffic resumes a paused sandbox with autoResume',
		async ({ make, plain }) => {
			const box = await make({ timeoutMs: 60000, lifecycle: { onTimeout: 'pause', autoResume: true } });
			const url = at(box, 8123, plain);

			await serve(box, 'server', SERVER, 8123);
			await soon(async () => (await status(url)) === 200, 'it answers');
			await box.pause();
			assert.equal(await (await fetch(`${url}/wake`)).text(), 'GET /wake');
			assert.equal((await box.getInfo()).state, 'running');
		},
		({ sdk }) => Boolean(sdk.E2B),
	],
];
