// Tries edits of a program against its examples, many in one box. The output is not trusted.
//
// stdin: {source, name, examples, edits: [[at, cut, text], ...], shard, shards, limit_ms}; at and cut are bytes. A name that
// ends in .ts is TypeScript: its types are taken out here, and whether they fit is seen where it is tried again.
// stdout: {candidates}, {found: rank, acts}, {at: rank, tried}, {over: true, tried}, a line each; acts: four letters for each
// generated input.
// With patch in it, the source is one that passes: {doubt: text} for a place that no example runs, or for an edit that
// fails fewer than KILLS examples and does something else with generated inputs.
//
// Calls run in contexts of a thread that can be ended; what reads stdin or is a command is a process of its own.
'use strict';
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const { spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const vm = require('vm');

const COMMAND_MS = 10000, INPUT_MS = 2000;

function edited(ask, [at, cut, text]) {
	const raw = Buffer.from(ask.source);
	return Buffer.concat([raw.subarray(0, at), Buffer.from(text), raw.subarray(at + cut)]).toString();
}

function isTyped(ask) {
	return ask.name.endsWith('.ts');
}

// The program as JavaScript; what is no program throws, later.
function untyped(source) {
	const ts = require(path.resolve(path.dirname(fs.realpathSync('/usr/bin/tsc')), '../lib/typescript.js'));
	return ts.transpileModule(source, { compilerOptions: { module: 'commonjs', target: 'es2022', esModuleInterop: true } }).outputText;
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

function passesCall(script, x, ask) {
	const c = context(ask.name);
	script.runInContext(c, { timeout: ask.limit_ms });
	const got = vm.runInContext('(' + x.call + ')', c, { timeout: ask.limit_ms });
	if (String(got) === x.expected.trim()) return true;
	const want = vm.runInContext('(' + x.expected + ')', c, { timeout: ask.limit_ms });
	return shown(got) !== undefined && shown(got) === shown(want);
}

// How many calls fail; no more than `most` of them are looked for.
function failingCalls(source, calls, ask, most) {
	const script = new vm.Script(source, { filename: ask.name });
	let bad = 0;
	for (const x of calls) {
		let good = false;
		try {
			good = passesCall(script, x, ask);
		} catch {}
		bad += !good;
		if (bad >= most) break;
	}
	return bad;
}

// The first place that no call runs, as a line; 0: there is none.
function lineNotRun(source, calls, ask) {
	const { Session } = require('inspector');
	const session = new Session();
	let found = 0;
	session.connect();
	session.post('Profiler.enable');
	session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
	failingCalls(source, calls, ask, calls.length);
	session.post('Profiler.takePreciseCoverage', (err, said) => {
		const mine = err ? [] : said.result.filter((r) => r.url === ask.name);
		// One entry each time that it was loaded: what no entry has run was never run.
		const runs = new Uint8Array(source.length);
		for (const { functions } of mine) {
			const counts = new Uint8Array(source.length);
			for (const { ranges } of functions) for (const r of ranges) counts.fill(r.count ? 1 : 0, r.startOffset, r.endOffset);
			counts.forEach((c, i) => { runs[i] |= c; });
		}
		const at = [...source].length === source.length ? runs.findIndex((c, i) => !c && /[\w$]/.test(source[i])) : 0;
		if (!mine.length) found = 1;
		else if (at >= 0) found = source.slice(0, at).split('\n').length;
	});
	session.disconnect();
	return found;
}

// ---- generated inputs ----

const PROBES = 48, DOUBTS = 160, PROBES_LEAST = 6, PROBE_MS = 50;
const KILLS = 2; // examples that must fail for an edit to be out of question

// Values of the same kind; a sign stays what it is.
function neighbours(v) {
	if (typeof v === 'boolean') return [!v];
	if (typeof v === 'number') {
		return [0, v + 1, v - 1, v * 2, v + 3, v * 10 + 7, Math.trunc(v / 2), 1, 2].filter((w) => !w || v >= 0 === w > 0);
	}
	if (typeof v === 'string') {
		return v ? [v.slice(1), v.slice(0, -1), [...v].reverse().join(''), v + v, v + v[0], v.toUpperCase(), v.toLowerCase(),
			v + ' ' + v, v.replaceAll(' ', ''), '', v[0], v.slice(0, 2), [...v].sort().join('')] : ['a', 'ab'];
	}
	if (!Array.isArray(v) || !v.length) return [];
	const some = v.slice(0, 8).flatMap((x, i) => neighbours(x).slice(0, 3).map((w) => [...v.slice(0, i), w, ...v.slice(i + 1)]));
	return [[], v.slice(1), v.slice(0, -1), v.slice(0, 1), [...v].reverse(), [...v, ...v], [...v, v[0]], v.map(() => v[0]),
		[...v].sort(), ...some];
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
	const most = ask.patch ? DOUBTS : PROBES;
	const all = [...out], step = Math.max(1, Math.floor(all.length / most));
	return all.filter((_, i) => i % step === 0).slice(0, most);
}

// Four letters that stand for an answer; those of '----' say nothing.
function letters(answer) {
	let h = 0;
	for (const c of answer) h = (h * 31 + c.codePointAt(0)) & 0xffff;
	return answer === '' ? 'ffff' : h.toString(16).padStart(4, '0');
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

// For each probe. On a busy machine other processes may have used the time: a probe that ran out of time is repeated.
function acts(source, calls, ask) {
	const script = new vm.Script(source);
	return calls.map((call) => act(script, call, ask.name, PROBE_MS) ?? act(script, call, ask.name, ask.limit_ms) ?? '');
}

// ---- the thread ----

function thread() {
	const { ask, calls } = workerData;
	let others = null;
	parentPort.on('message', ({ rank, wants, plain, first }) => {
		let said = false;
		try {
			const source = plain ?? (rank < 0 ? ask.source : edited(ask, ask.edits[rank]));
			if (wants === 'acts') {
				others = others || probes(first ?? ask.source, calls, ask);
				said = acts(source, others, ask);
			} else if (wants === 'line') said = lineNotRun(source, calls, ask);
			else said = failingCalls(source, calls, ask, ask.patch ? KILLS : 1);
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
		if (isTyped(this.ask)) {
			this.first = this.first ?? untyped(this.ask.source);
			message.first = this.first;
			message.plain = message.rank < 0 ? this.first : untyped(edited(this.ask, this.ask.edits[message.rank]));
		}
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

	// How many calls fail, no more than are looked for. One that never answers fails.
	async failing(rank) {
		const most = 4 * this.ask.limit_ms + 1000;
		const bad = await this.answer({ rank, wants: 'failing' }, most) ?? await this.answer({ rank, wants: 'failing' }, 2 * most);
		if (bad === null) this.lost = true;
		return typeof bad === 'number' ? bad : KILLS;
	}

	async line(rank) {
		const line = await this.answer({ rank, wants: 'line' }, 8 * this.ask.limit_ms + 1000);
		return typeof line === 'number' ? line : 1;
	}

	async acts(rank) {
		return (await this.answer({ rank, wants: 'acts' }, 2 * DOUBTS * PROBE_MS)) || [];
	}
}

const trimmed = (text) => text.trimEnd().split('\n').map((line) => line.trimEnd()).join('\n');

function passesOther(source, x, ask) {
	const file = isTyped(ask) && !x.command ? '.untyped.js' : ask.name;
	fs.writeFileSync(file, file === ask.name ? source : untyped(source));
	const [program, args, input, timeout] = x.command ? ['/bin/bash', ['-c', x.command], '', COMMAND_MS]
		: [process.execPath, [file], x.input, INPUT_MS];
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
		const line = calls.length && !others.length ? await worker.line(-1) : 0;
		if (line) return end(say, { doubt: 'no example runs all of line ' + line }, tried);
		mine = await worker.acts(-1);
		if (mine.filter(Boolean).length < PROBES_LEAST) return end(say, { doubt: 'there are no other inputs to compare with' }, tried);
		mine = JSON.stringify(mine);
	}
	const enough = ask.patch ? KILLS : 1;
	for (let rank = ask.shard; rank < ask.edits.length; rank += ask.shards) {
		if (tried++ % 16 === 0) say({ at: rank, tried: tried - 1 });
		let bad = calls.length ? await worker.failing(rank) : 0;
		const source = edited(ask, ask.edits[rank]);
		for (const x of others) if (bad < enough && !passesOther(source, x, ask)) bad++;
		if (bad >= enough) continue;
		const acts = calls.length ? await worker.acts(rank) : [];
		if (!ask.patch) say({ found: rank, acts: acts.slice(0, PROBES).map(letters).join('') });
		else if (JSON.stringify(acts) !== mine) {
			const how = bad ? 'only one example fails' : 'the examples pass as well';
			return end(say, { doubt: how + ' with ' + JSON.stringify(ask.edits[rank][2]) + ' in line ' +
				Buffer.from(ask.source).subarray(0, ask.edits[rank][0]).toString().split('\n').length }, tried);
		}
	}
	end(say, ask.patch && worker.lost ? { doubt: 'another change could not be tried to its end' } : null, tried, worker.lost);
}

function end(say, last, tried, cut) {
	if (last) say(last);
	say(cut ? { over: true, tried, cut } : { over: true, tried });
	process.exit(0);
}

if (isMainThread) main();
else thread();
