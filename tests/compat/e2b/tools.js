// tools.js - programs that use the E2B packages: its command line, and frameworks with sandbox tools.
'use strict';
const assert = require('node:assert/strict');
const path = require('node:path');
const { spawn } = require('node:child_process');
const { copyFile, mkdtemp, rm, writeFile } = require('node:fs/promises');
const { tmpdir } = require('node:os');

const plain_text = (s) => s.replace(/\u001b\[[0-9;?]*[a-zA-Z]/g, '');

// Runs a program to its exit, with the given input.
function command(name, words, input) {
	return new Promise((yes) => {
		const child = spawn(name, words, { env: { ...process.env, CI: '1', NO_COLOR: '1', NO_UPDATE_NOTIFIER: '1', HOME: process.env.TMPDIR } });
		let out = '';
		let err = '';

		child.stdout.on('data', (d) => (out += d));
		child.stderr.on('data', (d) => (err += d));
		child.on('close', (status) => yes({ status, out: plain_text(out), err: plain_text(err) }));
		child.stdin.end(input);
	});
}

const cli = (folder, words, input) =>
	command(process.execPath, [path.join(folder, 'node_modules/@e2b/cli/dist/index.js'), ...words], input);

module.exports = [
	[
		'the command line lists, shows, runs, pauses, resumes and kills',
		async ({ folder, make }) => {
			const box = await make({ metadata: { by: 'cli' }, timeoutMs: 60000 });
			const id = box.sandboxId;
			const [listed, said, fed, info] = await Promise.all([
				cli(folder, ['sandbox', 'list', '-f', 'json', '-m', 'by=cli']),
				cli(folder, ['sandbox', 'exec', '-e', 'A=b', '-c', '/tmp', id, 'echo "$A $(pwd)"; exit 3']),
				cli(folder, ['sandbox', 'exec', id, 'tr a-z A-Z'], 'piped'),
				cli(folder, ['sandbox', 'info', id]),
			]);

			assert.ok(JSON.parse(listed.out).some((s) => s.sandboxId === id), listed.out + listed.err);
			assert.deepEqual([said.status, said.out], [3, 'b /tmp\n'], said.err);
			assert.equal(fed.out, 'PIPED', fed.err);
			assert.match(info.out, new RegExp(id), info.err);
			assert.equal((await cli(folder, ['sandbox', 'pause', id])).status, 0);
			assert.equal((await box.getInfo()).state, 'paused');
			assert.equal((await cli(folder, ['sandbox', 'resume', id])).status, 0);
			assert.equal(await box.isRunning(), true);
			const killed = await cli(folder, ['sandbox', 'kill', id]);
			assert.equal(killed.status, 0, killed.err);
			assert.equal(await box.isRunning(), false);
		},
	],
	[
		'the command line shows logs, metrics and templates',
		async ({ folder, make }) => {
			const box = await make({ timeoutMs: 60000 });
			const [logs, metrics, templates] = await Promise.all([
				cli(folder, ['sandbox', 'logs', box.sandboxId]),
				cli(folder, ['sandbox', 'metrics', box.sandboxId]),
				cli(folder, ['template', 'list', '-f', 'json']),
			]);

			assert.equal(logs.status, 0, logs.err);
			assert.equal(metrics.status, 0, metrics.err);
			assert.equal(templates.status, 0, templates.err);
			assert.match(templates.out, /base/);
		},
	],
	[
		'the command line builds a Dockerfile, lists the template, uses it and deletes it',
		async ({ folder, Sandbox }) => {
			const context = await mkdtemp(path.join(tmpdir(), 'cli-template-'));
			const name = `cli-${process.pid}`;

			await writeFile(path.join(context, 'e2b.Dockerfile'), 'FROM e2bdev/base\nCOPY page.txt /srv/\nRUN tr a-z A-Z </srv/page.txt >/srv/upper.txt\nENV A=from-docker\n');
			await writeFile(path.join(context, 'page.txt'), 'page\n');
			const made = await cli(folder, ['template', 'create', name, '--path', context, '--cpu-count', '1', '--memory-mb', '512']);

			assert.equal(made.status, 0, made.out + made.err);
			const listed = await cli(folder, ['template', 'list', '-f', 'json']);
			const row = JSON.parse(listed.out).find((t) => t.aliases.includes(name));

			assert.deepEqual([row.cpuCount, row.memoryMB, row.buildStatus], [1, 512, 'ready'], listed.out);
			const box = await Sandbox.create(name, { timeoutMs: 60000 });

			try {
				assert.equal((await box.commands.run('cat /srv/upper.txt; echo $A')).stdout, 'PAGE\nfrom-docker\n');
			} finally {
				await box.kill();
			}
			const gone = await cli(folder, ['template', 'delete', '-y', row.templateID || row.templateId]);

			assert.equal(gone.status, 0, gone.out + gone.err);
			assert.equal(JSON.parse((await cli(folder, ['template', 'list', '-f', 'json'])).out).some((t) => t.aliases.includes(name)), false);
			await rm(context, { recursive: true });
		},
	],
	[
		'the command line creates a sandbox and disconnects',
		async ({ folder, Sandbox }) => {
			const made = await cli(folder, ['sandbox', 'create', '--detach', '--timeout', '60', 'base']);
			const [id] = made.out.match(/\b[a-z0-9]{12}(?:[a-z0-9]{3})?\b/) || [];

			assert.equal(made.status, 0, made.err);
			assert.ok(id, made.out);
			assert.equal(await Sandbox.kill(id), true);
		},
	],
	[
		'the example prints the expected output',
		async ({ folder }) => {
			const here = path.join(folder, 'example.mjs'); // next to its packages
			await copyFile(path.join(__dirname, '../../../examples/with_e2b.mjs'), here);
			const said = await command(process.execPath, [here]);

			assert.deepEqual([said.status, said.out], [0, "42\n{'a': 4, 'b': 6}\n1\n2\n3\n"], said.err);
		},
	],
	[
		'a model that calls tools runs code with the AI SDK',
		async ({ from, Sandbox }) => {
			const { generateText, tool, stepCountIs } = await from.import('ai');
			const { MockLanguageModelV4 } = await from.import('ai/test');
			const { z } = await from.import('zod');
			const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
			const answers = [
				{
					content: [{ type: 'tool-call', toolCallId: '1', toolName: 'python', input: '{"code":"print(6 * 7)\\n2 ** 10"}' }],
					finishReason: { unified: 'tool-calls' },
				},
				{ content: [{ type: 'text', text: 'done' }], finishReason: { unified: 'stop' } },
			];
			const python = tool({
				description: 'runs Python',
				inputSchema: z.object({ code: z.string() }),
				execute: async ({ code }) => {
					const box = await Sandbox.create({ timeoutMs: 60000 });
					const { text, logs } = await box.runCode(code);
					await box.kill();
					return { text, stdout: logs.stdout.join('') };
				},
			});
			const model = new MockLanguageModelV4({ doGenerate: async () => ({ ...answers.shift(), usage, warnings: [] }) });
			const said = await generateText({ model, tools: { python }, stopWhen: stepCountIs(3), prompt: 'how much?' });

			assert.deepEqual(said.steps[0].toolResults[0].output, { text: '1024', stdout: '42\n' });
			assert.equal(said.text, 'done');
		},
	],
	[
		'a LangChain tool keeps its sandbox between calls',
		async ({ from, make }) => {
			const { tool } = await from.import('@langchain/core/tools');
			const { z } = await from.import('zod');
			const box = await make({ timeoutMs: 60000 });
			const python = tool(async ({ code }) => (await box.runCode(code)).text ?? '', {
				name: 'python',
				description: 'runs Python',
				schema: z.object({ code: z.string() }),
			});

			await python.invoke({ code: 'x = 20' });
			assert.equal(await python.invoke({ code: 'x + 1' }), '21');
			const call = { name: 'python', args: { code: 'x * 2' }, id: 'c1', type: 'tool_call' };
			assert.equal((await python.invoke(call)).content, '40');
		},
	],
	[
		'ComputeSDK uses sandboxes through its E2B provider',
		async ({ from }) => {
			const { e2b } = await from.import('@computesdk/e2b');
			const box = await e2b({ apiKey: process.env.E2B_API_KEY }).sandbox.create();

			try {
				const done = await box.runCommand('echo computed');
				assert.deepEqual([done.exitCode, done.stdout], [0, 'computed\n']);
				await box.filesystem.writeFile('/tmp/n', 'note');
				assert.equal(await box.filesystem.readFile('/tmp/n'), 'note');
			} finally {
				await box.destroy();
			}
		},
	],
];
