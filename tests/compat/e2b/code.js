// code.js - code in six languages, contexts, results and charts.
'use strict';
const assert = require('node:assert/strict');
const { rejects, soon } = require('./harness.js');

// The older package finds the interpreter by name only, so that it needs a domain.
const reachable = ({ plain, sdk }) => !plain || Boolean(sdk.E2B);

const table = [
	[
		'python keeps its state and returns results, output and errors',
		async ({ make }) => {
			const box = await make();
			const outs = [];

			assert.equal((await box.runCode('1 + 1')).text, '2');
			await box.runCode('x = 41');
			const done = await box.runCode('import sys\nprint("hello")\nprint("bad", file=sys.stderr)\nx + 1', {
				onStdout: (m) => outs.push(m.line),
			});
			assert.equal(done.text, '42');
			assert.deepEqual(done.logs, { stdout: ['hello\n'], stderr: ['bad\n'] });
			assert.deepEqual(outs, ['hello\n']);
			const wrong = await box.runCode('1 / 0');
			assert.equal(wrong.error.name, 'ZeroDivisionError');
			assert.match(wrong.error.value, /division/);
			assert.match(wrong.error.traceback, /ZeroDivisionError/);
			assert.equal((await box.runCode('import os; os.getcwd()')).text, '/home/user');
			assert.match((await box.runCode('!echo from the shell')).logs.stdout.join(''), /from the shell/);
			assert.equal((await box.runCode('"ünïcode 😀"')).text, 'ünïcode 😀');
		},
	],
	[
		'code has the environment of its sandbox, and extra variables for one execution',
		async ({ make }) => {
			const box = await make({ envs: { FROM: 'box' } });
			const get = (name, envs) => box.runCode(`import os; os.environ.get('${name}', 'none')`, { envs }).then((r) => r.text);

			assert.equal(await get('FROM'), 'box');
			assert.equal(await get('FROM', { FROM: 'call' }), 'call');
			assert.equal(await get('FROM'), 'box');
			assert.equal(await get('MINE', { MINE: '1' }), '1');
			assert.equal(await get('MINE'), 'none');
		},
	],
	[
		'files are shared between code and the file API',
		async ({ make }) => {
			const box = await make();

			await box.files.write('data.csv', 'a,b\n1,2\n');
			assert.equal((await box.runCode('open("data.csv").read()')).text, 'a,b\\n1,2\\n');
			await box.runCode('open("out.txt", "w").write("from code")');
			assert.equal(await box.files.read('out.txt'), 'from code');
		},
	],
	[
		'javascript and typescript keep state and support top-level await',
		async ({ make }) => {
			const box = await make();

			assert.equal((await box.runCode('const a = 20; a + 1', { language: 'js' })).text, '21');
			const js = await box.runCode('console.log("said"); await Promise.resolve(a * 2)', { language: 'javascript' });
			assert.deepEqual([js.text, js.logs.stdout.join('')], ['40', 'said\n']);
			assert.equal((await box.runCode('throw new TypeError("no")', { language: 'js' })).error.name, 'TypeError');
			const ts = await box.runCode('const n: number = 6; console.log(n * 7); n', { language: 'ts' });
			assert.equal(ts.error, undefined, ts.error && ts.error.traceback);
			assert.deepEqual([ts.logs.stdout.join(''), ts.text], ['42\n', '6']);
		},
	],
	[
		'bash, r and java run',
		async ({ make }) => {
			const box = await make();
			const bash = await box.runCode('v=5; echo "bash $((v + 1))"; pwd', { language: 'bash' });
			const r = await box.runCode('x <- c(1, 2, 3); print(sum(x))', { language: 'r' });
			const java = await box.runCode('int x = 6; System.out.println(x * 7);', { language: 'java' });

			assert.equal(bash.logs.stdout.join(''), 'bash 6\n/home/user\n');
			assert.match(r.logs.stdout.join('') + (r.text || ''), /6/);
			assert.equal(r.error, undefined);
			assert.equal(java.error, undefined, java.error && java.error.value);
			assert.equal(java.logs.stdout.join(''), '42\n');
		},
	],
	[
		'contexts are separate, listed, restarted and removed',
		async ({ make }) => {
			const box = await make();
			const one = await box.createCodeContext({ cwd: '/tmp' });
			const two = await box.createCodeContext({ language: 'javascript' });

			assert.equal(one.cwd, '/tmp');
			assert.equal(two.language, 'javascript');
			await box.runCode('x = 1', { context: one });
			assert.equal((await box.runCode('import os; (x, os.getcwd())', { context: one })).text, "(1, '/tmp')");
			assert.equal((await box.runCode('x')).error.name, 'NameError');
			assert.equal((await box.runCode('let y = 2; y', { context: two })).text, '2');
			const ids = (await box.listCodeContexts()).map((c) => c.id);
			assert.ok(ids.includes(one.id) && ids.includes(two.id));
			await box.restartCodeContext(one);
			assert.equal((await box.runCode('x', { context: one })).error.name, 'NameError');
			await box.removeCodeContext(one);
			assert.ok(!(await box.listCodeContexts()).some((c) => c.id === one.id));
			await assert.rejects(box.runCode('1', { context: one }));
		},
		({ ci }) => Boolean(ci.Sandbox.prototype.listCodeContexts),
	],
	[
		'a cell whose client has disconnected is interrupted',
		async ({ make }) => {
			const box = await make();

			await rejects(box.runCode('import time; time.sleep(60)', { timeoutMs: 500 }), 'TimeoutError');
			assert.equal((await box.runCode('6 * 7', { timeoutMs: 15000 })).text, '42');
		},
	],
	[
		'results have their MIME types',
		async ({ make }) => {
			const box = await make();
			const rich = await box.runCode(
				'from IPython.display import display, HTML, Markdown, JSON\n' +
					'display(HTML("<b>x</b>")); display(Markdown("# m"))\n{"a": [1, 2]}'
			);

			assert.equal(rich.error, undefined, rich.error && rich.error.traceback);
			assert.equal(rich.results.find((r) => r.html).html, '<b>x</b>');
			assert.equal(rich.results.find((r) => r.markdown).markdown, '# m');
			assert.equal(rich.text, "{'a': [1, 2]}");
			const main = rich.results.find((r) => r.isMainResult);
			assert.deepEqual(main.json, { a: [1, 2] });
			const frame = await box.runCode('import pandas as pd\npd.DataFrame({"a": [1, 2], "b": ["x", "y"]})');
			assert.equal(frame.error, undefined, frame.error && frame.error.traceback);
			assert.deepEqual(frame.results[0].data, { a: [1, 2], b: ['x', 'y'] });
			assert.match(frame.results[0].html, /<table/);
		},
	],
	[
		'charts have an image and data',
		async ({ make }) => {
			const box = await make();
			const draw = async (code) => {
				const r = await box.runCode(`import matplotlib.pyplot as plt\n${code}\nplt.show()`, { timeoutMs: 25000 });
				assert.equal(r.error, undefined, r.error && r.error.traceback);
				const shown = r.results.find((x) => x.chart);
				assert.ok(shown, 'a result has a chart');
				assert.equal(Buffer.from(shown.png, 'base64').subarray(1, 4).toString(), 'PNG');
				return shown.chart;
			};
			const line = await draw('plt.plot([1, 2, 3], [4, 5, 6], label="L"); plt.title("T"); plt.xlabel("x (s)"); plt.ylabel("y")');
			assert.deepEqual(
				[line.type, line.title, line.x_label, line.x_unit, line.y_label, line.y_unit],
				['line', 'T', 'x (s)', 's', 'y', null]
			);
			assert.deepEqual(line.elements[0].points, [[1, 4], [2, 5], [3, 6]]);
			const bar = await draw('plt.bar(["a", "b"], [3, 4])');
			assert.deepEqual([bar.type, bar.elements.map((e) => [e.label, e.value])], ['bar', [['a', 3], ['b', 4]]]);
			const pie = await draw('plt.pie([1, 3], labels=["p", "q"])');
			assert.deepEqual([pie.type, pie.elements.map((e) => e.label)], ['pie', ['p', 'q']]);
			assert.equal((await draw('plt.scatter([1, 2], [3, 4])')).type, 'scatter');
			assert.equal((await draw('plt.boxplot([[1, 2, 3, 9]], patch_artist=True)')).type, 'box_and_whisker');
			assert.equal((await draw('f, ax = plt.subplots(1, 2); ax[0].plot([1, 2]); ax[1].bar(["a"], [1])')).type, 'superchart');
		},
	],
	[
		'a client that requests no token sends the given tokens',
		async ({ make }) => {
			const box = await make({ secure: false });
			const status = (path, body) =>
				fetch(`http${process.env.E2B_API_URL ? '' : 's'}://${box.getHost(49999)}${path}`, {
					method: body ? 'POST' : 'GET', body, headers: { 'content-type': 'application/json' },
				}).then((r) => r.status);

			assert.equal(await status('/execute', '{"code":"1"}'), 401);
			assert.equal(await status('/contexts'), 401);
			await box.files.write('f', 'written');
			assert.equal((await box.commands.run('cat f')).stdout, 'written');
			const context = await box.createCodeContext({ language: 'python' });
			await box.runCode('x = 41', { context });
			assert.equal((await box.runCode('x + 1', { context })).text, '42');
			if (box.listCodeContexts) assert.ok((await box.listCodeContexts()).length > 0);
		},
	],
	[
		'killing a sandbox ends the cell that runs in it',
		async ({ make }) => {
			const box = await make();
			const cell = box.runCode('print("on", flush=True)\nimport time; time.sleep(60)', { onStdout: () => (box.started = true) });
			const over = cell.then((r) => r, (e) => e);

			await soon(() => box.started, 'it runs');
			await box.kill();
			await over; // the timeout of a test is shorter than the cell
		},
	],
];

module.exports = table.map(([name, fn, applies]) => [name, fn, (c) => reachable(c) && (!applies || applies(c))]);
