// e2b.js - node e2b.js PACKAGES SERVER STUB ROUNDS: see bench/e2b.
'use strict';
const path = require('node:path');
const { createRequire } = require('node:module');

const [folder, server, stub, rounds] = process.argv.slice(2);
const load = createRequire(path.resolve(folder, 'package.json'));
const { Sandbox } = load('e2b');
const { Sandbox: Interpreter } = load('@e2b/code-interpreter');
const WIDTH = 50, TURNS = 4, REST_MS = 300;

const ms = () => Number(process.hrtime.bigint()) / 1e6;
const at = (url) => ({ apiUrl: url, sandboxUrl: url, timeoutMs: 60000 });

// One sandbox from creation to end: the duration of each step. Commands use template `base`; a sandbox for code has a
// warm interpreter.
async function life(url, code) {
	const t = [ms()];
	const box = await (code ? Interpreter : Sandbox).create(at(url));

	t.push(ms());
	if (code) await box.runCode('1+1');
	else await box.commands.run('true');
	t.push(ms());
	await box.kill();
	t.push(ms());
	return { create: t[1] - t[0], run: t[2] - t[1], kill: t[3] - t[2], all: t[3] - t[0] };
}

async function lives(url, n, width, code) {
	const got = [];
	let left = n;
	const one = async () => {
		while (left-- > 0) got.push(await life(url, code));
	};

	await Promise.all(Array.from({ length: width }, one));
	return got;
}

const pick = (list, step, q) => {
	const sorted = list.map((x) => x[step]).sort((a, b) => a - b);

	return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))];
};
const cell = (x) => x.toFixed(1).padStart(9);

function table(title, ours, theirs) {
	console.log(`\n${title}, ms${' '.repeat(Math.max(1, 34 - title.length))}p50      p99     stub p50 stub p99    ratio p50      p99`);
	for (const step of ['create', 'run', 'kill', 'all']) {
		const v = [pick(ours, step, 0.5), pick(ours, step, 0.99), pick(theirs, step, 0.5), pick(theirs, step, 0.99)];
		console.log(`  ${step.padEnd(27)}${v.map(cell).join('')}${[v[0] / v[2], v[1] / v[3]].map((r) => r.toFixed(2).padStart(9)).join('')}`);
	}
}

async function main() {
	const n = Number(rounds);

	for (const code of [false, true]) // warm up both servers and this client
		for (const url of [stub, server]) await lives(url, 30, 10, code);
	for (const [title, count, width, code] of [
		["create, commands.run('true'), kill: alone", n, 1, false],
		[`the same, ${WIDTH} at once`, Math.max(n, 2 * TURNS * WIDTH), WIDTH, false],
		["create, runCode('1+1'), kill: alone", Math.ceil(n / 4), 1, true],
	]) {
		const all = { stub: [], server: [] };

		// In turns, so that other load affects both, and the clean-up of one does not
		// affect the other.
		for (let i = 0; i < TURNS; i++)
			for (const [who, url] of [['stub', stub], ['server', server]]) {
				all[who].push(...(await lives(url, Math.ceil(count / TURNS), width, code)));
				await new Promise((done) => setTimeout(done, REST_MS));
			}
		table(title, all.server, all.stub);
	}
	process.exit(0);
}
main();
