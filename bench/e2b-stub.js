// e2b-stub.js - answers the requests of the E2B package without doing anything. Prints its port.
'use strict';
const http = require('node:http');

const envelope = (flags, value) => {
	const body = Buffer.from(JSON.stringify(value));
	const head = Buffer.alloc(5);

	head[0] = flags;
	head.writeUInt32BE(body.length, 1);
	return Buffer.concat([head, body]);
};
// As long as the answers of Atoll, so that the client reads the same amount.
const sandbox = JSON.stringify({
	sandboxID: 'aaaaaaaaaaaa', templateID: 'base', alias: 'base', clientID: 'atoll', envdVersion: '0.6.13',
	trafficAccessToken: null, envdAccessToken: '0'.repeat(40), domain: 'localhost:7777',
});
const ID = { 'X-Request-Id': 'aaaaaaaaaaaa' };
const STREAM = Buffer.concat([
	envelope(0, { event: { start: { pid: 1 } } }),
	envelope(0, { event: { end: { exited: true, status: 'exit status 0' } } }),
	envelope(2, {}),
]);
const CELL = [
	{ type: 'number_of_executions', execution_count: 1 },
	{ type: 'result', text: '2', extra: {}, is_main_result: true },
	{ type: 'end_of_execution' },
].map((l) => `${JSON.stringify(l)}\n`).join('');

const answers = {
	'POST /v2/sandboxes': [201, 'application/json', sandbox],
	'POST /process.Process/Start': [200, 'application/connect+json', STREAM],
	'POST /execute': [200, 'application/x-ndjson', CELL],
};

http.createServer((req, res) => {
	req.on('end', () => {
		const [status, type, body] = answers[`${req.method} ${req.url.split('?')[0]}`] || [204];

		res.writeHead(status, type ? { ...ID, 'Content-Type': type } : ID);
		res.end(body);
	}).resume();
}).listen(0, '127.0.0.1', function up() {
	console.log(this.address().port);
});
