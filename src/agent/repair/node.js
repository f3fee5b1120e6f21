// Tries edits of a program against its examples, many in one box. Nobody believes what is said here.
//
// stdin: {source, name, examples, edits: [[at, cut, text], ...], shard, shards, limit_ms}; at and cut are bytes.
// stdout: {candidates}, {found: rank}, {at: rank, tried}, {over: true, tried}, a line each.
// With patch in it, the source is one that passes: {doubt: text} for an edit that passes as well and does something
// else with inputs that nobody gave.
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

// ---- what nobody asked ----

const PROBES = 60, PROBES_LEAST = 6, PROBE_MS = 50;

// Values of the same kind; a sign stays what it is.
function neighbours(v) {
	if (typeof v === 'boolean') return [!v];
	if (typeof v === 'number') return [v + 1, v - 1, v * 2, v + 3, v * 10 + 7].filter((w) => w && (w < 0) === (v < 0));
	if (typeof v === 'string') {
		return v ? [v.slice(1), v.slice(0, -1), [...v].reverse().join(''), v + v, v + v[0], v.toUpperCase(), v + ' ' + v] : [];
	}
	if (!Array.isArray(v) || !v.length) return [];
	const some = v.slice(0, 8).flatMap((x, i) => neighbours(x).slice(0, 2).map((w) => [...v.slice(0, i), w, ...v.slice(i + 1)]));
	return [v.slice(1), v.slice(0, -1), [...v].reverse(), [...v, ...v], [...v, v[0]], ...some];
}

// The text in the brackets that begin at `at`.
function bracketed(text, at) {
	let depth = 0, quote = '';
	for (let i = at; i < text.length; i++) {
		const c = text[i];
		if (quote) {
			if (c === '\\') i++;
			else if (c === quote) quote = '';
		} else if ('\'"`'.includes(c)) quote = c;
		else if ('([{'.includes(c)) depth++;
		else if (')]}'.includes(c) && !--depth) return text.slice(at + 1, i);
	}
	return null;
}

// {name, args} of the first call of a function of the program whose arguments are written out.
function literalCall(call, c) {
	for (const m of call.matchAll(/([A-Za-z_$][\w$]*)\s*\(/g)) {
		const args = bracketed(call, m.index + m[0].length - 1);
		try {
			if (args !== null && vm.runInContext('typeof ' + m[1], c) === 'function' && !(m[1] in globalThis)) {
				return { name: m[1], args: JSON.parse(JSON.stringify(vm.runInNewContext('[' + args + ']'))) };
			}
		} catch {}
	}
	return null;
}

function probes(source, calls, ask) {
	const c = context(ask.name), out = new Set();
	new vm.Script(source).runInContext(c, { timeout: ask.limit_ms });
	for (const x of calls) {
		const known = literalCall(x.call, c);
		for (const [i, v] of known ? known.args.entries() : []) {
			for (const w of neighbours(v)) {
				out.add(known.name + '(' + known.args.map((a, k) => JSON.stringify(k === i ? w : a)).join(', ') + ')');
			}
		}
	}
	const all = [...out], step = Math.max(1, Math.floor(all.length / PROBES));
	return all.filter((_, i) => i % step === 0).slice(0, PROBES);
}

// What a probe answers, as text; '' if it throws, null if there was no time for it.
function act(script, call, name, timeout) {
	try {
		const c = context(name);
		script.runInContext(c, { timeout });
		return shown(vm.runInContext(call, c, { timeout })) || '';
	} catch (e) {
		return e?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT' ? null : '';
	}
}

// For each probe. On a busy machine it may be others who had the time: whoever had none is asked again.
function acts(source, calls, ask) {
	const script = new vm.Script(source);
	return calls.map((call) => act(script, call, ask.name, PROBE_MS) ?? act(script, call, ask.name, ask.limit_ms) ?? '');
}

// ---- the thread ----

function thread() {
	const { ask, calls } = workerData;
	let others = null;
	parentPort.on('message', ({ rank, wants }) => {
		let said = false;
		try {
			const source = rank < 0 ? ask.source : edited(ask, ask.edits[rank]);
			if (wants === 'acts') {
				others = others || probes(ask.source, calls, ask);
				said = acts(source, others, ask);
			} else said = passesCalls(source, calls, ask);
		} catch {}
		parentPort.postMessage(said);
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
		worker.on('message', (said) => worker === this.worker && this.end(said));
		worker.on('error', gone);
		worker.on('exit', gone);
		this.worker = worker;
	}

	// One that does not answer has lost, and so has its thread: null.
	answer(message, most) {
		if (!this.worker) this.start();
		return new Promise((resolve) => {
			const late = setTimeout(() => this.end(null), most);
			this.end = (said) => {
				clearTimeout(late);
				if (said === null) {
					const worker = this.worker;
					this.worker = null;
					worker.terminate();
				}
				this.end = () => {};
				resolve(said);
			};
			this.worker.postMessage(message);
		});
	}

	async passes(rank) {
		return (await this.answer({ rank, wants: 'passes' }, 4 * this.ask.limit_ms + 1000)) === true;
	}

	async acts(rank) {
		return (await this.answer({ rank, wants: 'acts' }, 2 * PROBES * PROBE_MS)) || [];
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
	let tried = 0, mine = null;
	say({ candidates: ask.edits.length });
	if (ask.patch) {
		mine = await worker.acts(-1);
		if (mine.filter(Boolean).length < PROBES_LEAST) say({ doubt: 'there are no other inputs to compare with' });
	}
	for (let rank = ask.shard; rank < ask.edits.length; rank += ask.shards) {
		if (tried++ % 16 === 0) say({ at: rank, tried: tried - 1 });
		if (calls.length && !(await worker.passes(rank))) continue;
		const source = edited(ask, ask.edits[rank]);
		if (!others.every((x) => passesOther(source, x, ask))) continue;
		if (!ask.patch) say({ found: rank });
		else if (JSON.stringify(await worker.acts(rank)) !== JSON.stringify(mine)) {
			say({ doubt: 'the examples pass as well with ' + JSON.stringify(ask.edits[rank][2]) + ' there' });
			break;
		}
	}
	say({ over: true, tried });
	process.exit(0);
}

if (isMainThread) main();
else thread();
