// Tries edits of a program against its examples, many in one box. Nobody believes what is said here.
//
// stdin: {source, name, examples, edits: [[at, cut, text], ...], shard, shards, limit_ms}; at and cut are bytes.
// stdout: {candidates}, {found: rank}, {at: rank, tried}, {over: true, tried}, a line each.
//
// Calls run in contexts of a thread that can be ended; what reads stdin or is a command is a process of its own.
'use strict';
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const { spawnSync } = require('child_process');
const fs = require('fs');
const vm = require('vm');

const COMMAND_MS = 10000, INPUT_MS = 2000;

function edited(ask, [at, cut, text]) {
	const raw = Buffer.from(ask.source);
	return Buffer.concat([raw.subarray(0, at), Buffer.from(text), raw.subarray(at + cut)]).toString();
}

// ---- calls: in the thread ----

function context(name) {
	const quiet = () => {};
	const module = { exports: {} };
	return vm.createContext({
		require, module, exports: module.exports, console: { log: quiet, error: quiet, warn: quiet, info: quiet },
		process, Buffer, setTimeout: quiet, setInterval: quiet, __filename: name, __dirname: '.',
	});
}

function shown(v) {
	try {
		return JSON.stringify(v);
	} catch {
		return undefined;
	}
}

function passesCalls(source, calls, ask) {
	const script = new vm.Script(source);
	for (const x of calls) {
		const c = context(ask.name);
		script.runInContext(c, { timeout: ask.limit_ms });
		const got = vm.runInContext('(' + x.call + ')', c, { timeout: ask.limit_ms });
		if (String(got) === x.expected.trim()) continue;
		let want;
		try {
			want = vm.runInContext('(' + x.expected + ')', c, { timeout: ask.limit_ms });
		} catch {
			return false;
		}
		if (shown(got) === undefined || shown(got) !== shown(want)) return false;
	}
	return true;
}

function thread() {
	const { ask, calls } = workerData;
	parentPort.on('message', (rank) => {
		let good = false;
		try {
			good = passesCalls(edited(ask, ask.edits[rank]), calls, ask);
		} catch {}
		parentPort.postMessage(good);
	});
}

// ---- everything: in the process ----

class Thread {
	constructor(ask, calls) {
		this.ask = ask;
		this.calls = calls;
	}

	start() {
		const worker = new Worker(__filename, { workerData: { ask: this.ask, calls: this.calls }, env: process.env,
			stdout: true, stderr: true, resourceLimits: { maxOldGenerationSizeMb: 192 } });
		const gone = () => worker === this.worker && this.end(null);
		worker.on('message', (good) => worker === this.worker && this.end(good));
		worker.on('error', gone);
		worker.on('exit', gone);
		this.worker = worker;
	}

	// One that does not answer has lost, and so has its thread.
	passes(rank) {
		if (!this.worker) this.start();
		return new Promise((resolve) => {
			const late = setTimeout(() => this.end(null), 4 * this.ask.limit_ms + 1000);
			this.end = (good) => {
				clearTimeout(late);
				if (good === null) {
					const worker = this.worker;
					this.worker = null;
					worker.terminate();
				}
				this.end = () => {};
				resolve(good === true);
			};
			this.worker.postMessage(rank);
		});
	}
}

const trimmed = (text) => text.trimEnd().split('\n').map((line) => line.trimEnd()).join('\n');

function passesOther(source, x, ask) {
	fs.writeFileSync(ask.name, source);
	const [program, args, input, timeout] = x.command ? ['/bin/bash', ['-c', x.command], '', COMMAND_MS]
		: [process.execPath, [ask.name], x.input, INPUT_MS];
	const said = spawnSync(program, args, { input, timeout, killSignal: 'SIGKILL', maxBuffer: 1 << 20 });
	return said.status === 0 && (Boolean(x.command) || trimmed(said.stdout.toString()) === trimmed(x.expected));
}

async function main() {
	const ask = JSON.parse(fs.readFileSync(0));
	const say = (what) => fs.writeSync(1, JSON.stringify(what) + '\n');
	const calls = ask.examples.filter((x) => x.call !== undefined);
	const others = ask.examples.filter((x) => x.call === undefined);
	const worker = new Thread(ask, calls);
	let tried = 0;
	say({ candidates: ask.edits.length });
	for (let rank = ask.shard; rank < ask.edits.length; rank += ask.shards) {
		if (tried++ % 16 === 0) say({ at: rank, tried: tried - 1 });
		if (calls.length && !(await worker.passes(rank))) continue;
		const source = edited(ask, ask.edits[rank]);
		if (others.every((x) => passesOther(source, x, ask))) say({ found: rank });
	}
	say({ over: true, tried });
	process.exit(0);
}

if (isMainThread) main();
else thread();
