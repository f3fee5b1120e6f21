// continues.js - what continues in copies of a sandbox and after its pauses: a variable, a program that counts its lines, and a server.
'use strict';
const assert = require('node:assert/strict');
const { soon } = require('./harness.js');

const program = 'while read line; do n=$((n + 1)); echo "$$ $n $line"; done';
const server = `python3 -uc "
import http.server, os
n = 0
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global n
        n += 1
        self.send_response(200); self.end_headers(); self.wfile.write(b'%d %d' % (os.getpid(), n))
    def log_message(self, *a): pass
http.server.HTTPServer(('127.0.0.1', 8000), H).serve_forever()"`;
const fetched = (box) => box.commands.run("curl -s --max-time 5 --retry 20 --retry-connrefused --retry-delay 1 http://127.0.0.1:8000/");
async function started(box) {
	assert.equal((await box.runCode('data = [1]; print(len(data))')).logs.stdout.join(''), '1\n');
	const line = await box.commands.run(program, { background: true, stdin: true, timeoutMs: 0 });
	const web = await box.commands.run(server, { background: true, timeoutMs: 0 });
	assert.match((await fetched(box)).stdout, / 1$/);
	// They continue without a client. One whose stream is cut asks for the health of the sandbox, which would resume it.
	for (const handle of [line, web]) {
		handle.wait().catch(() => {});
		await handle.disconnect();
	}
	return { line: line.pid, web: web.pid };
}
// box: the sandbox of `started`, or a copy of it. requests: how many the server has answered.
async function continued(box, pids, requests) {
	const running = (await box.commands.list()).map((p) => p.pid);
	let said = '';

	assert.ok(running.includes(pids.line) && running.includes(pids.web), `${running}`);
	assert.equal((await fetched(box)).stdout, `${pids.web} ${requests + 1}`);
	assert.equal((await box.runCode('data.append(2); print(len(data))')).logs.stdout.join(''), '2\n');
	const handle = await box.commands.connect(pids.line, { timeoutMs: 0, onStdout: (text) => { said += text; } });
	handle.wait().catch(() => {});
	await box.commands.sendStdin(pids.line, 'more\n');
	await soon(() => / 1 more\n$/.test(said), `the program has answered: ${said}`);
}

module.exports = { started, continued };
