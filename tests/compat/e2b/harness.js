// harness.js - runs tables of tests against one release of the E2B packages, and prints TAP.
//
// A test is a sentence and a function of a context:
// 	sdk, ci     the two packages: e2b, @e2b/code-interpreter
// 	Sandbox     the one to make: the code interpreter's, which has everything of the other one
// 	make(...)   Sandbox.create; the sandbox is killed after the test
// 	folder, from    where they are; from(NAME) and from.import(NAME) load others that are there
// 	plain       true over http at an address, false over https at a domain
// A row of a table is [sentence, test, applies]; applies(context), if given, returns whether this release,
// reached in this way, has the feature; skipped features are named in a comment.
'use strict';
const assert = require('node:assert/strict');
const { AsyncLocalStorage } = require('node:async_hooks');
const path = require('node:path');
const { createRequire } = require('node:module');
const { pathToFileURL } = require('node:url');

// How much longer than usual everything may take, and one test at a time: for emulated virtual machines.
const PATIENCE = Number(process.env.E2B_COMPAT_PATIENCE || 1);
const LIMIT_MS = 60000 * PATIENCE; // of a test; the machine may be busy

// Sandboxes whose end is not what a test waits for live longer, too.
function lengthen(of) {
	for (const name of ['create', 'betaCreate', 'connect']) {
		const called = of[name];
		const longer = (a) => {
			if (!a || !(a.timeoutMs >= 20000)) return a;
			return { requestTimeoutMs: 30000 * PATIENCE, ...a, timeoutMs: a.timeoutMs < 60000 ? a.timeoutMs * PATIENCE : a.timeoutMs };
		};

		if (called && !called.longer) of[name] = Object.assign(function (...args) { return called.apply(this, args.map(longer)); }, { longer });
	}
	for (const name of ['runCode', 'createCodeContext']) {
		const called = of[name], at = name === 'runCode' ? 1 : 0; // of the options
		const longer = (a = {}) => ({ requestTimeoutMs: 30000 * PATIENCE, ...a, timeoutMs: a.timeoutMs < 10000 ? a.timeoutMs : (a.timeoutMs || 60000) * PATIENCE });

		if (called && !called.longer) of[name] = Object.assign(function (...args) { args[at] = longer(args[at]); return called.apply(this, args); }, { longer });
	}
}

// What the last cell of each test has reported: a test that compares a result fails with "undefined" only.
const cells = new AsyncLocalStorage();
function note_errors(of) {
	const called = of.runCode;

	of.runCode = async function (...args) {
		const ran = await called.apply(this, args);

		if (cells.getStore()) cells.getStore().error = ran.error && `${ran.error.name}: ${ran.error.value}`;
		return ran;
	};
}

// load FOLDER: the packages installed there.
function load(folder) {
	const from = createRequire(path.join(path.resolve(folder), 'package.json'));
	const sdk = from('e2b');
	const ci = from('@e2b/code-interpreter');

	if (PATIENCE > 1) [sdk.Sandbox, sdk.Sandbox.prototype, ci.Sandbox, ci.Sandbox.prototype].forEach(lengthen);
	note_errors(ci.Sandbox.prototype);
	from.import = (name) => import(pathToFileURL(from.resolve(name)));
	return { folder: path.resolve(folder), from, sdk, ci, Sandbox: ci.Sandbox };
}

// Waits until fn() is true, or fails with its last value.
async function soon(fn, what = String(fn), ms = 30000) {
	const end = Date.now() + ms * PATIENCE;

	for (;;) {
		const value = await fn();
		if (value) return value;
		if (Date.now() > end) assert.fail(`never came true: ${what}`);
		await new Promise((go) => setTimeout(go, 20));
	}
}

function limited(promise, ms) {
	let timer;
	const late = new Promise((_, no) => {
		timer = setTimeout(() => no(new Error(`took longer than ${ms} ms`)), ms);
	});

	return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

async function run_one(shared, name, fn) {
	const mine = [];
	const make = async (...args) => {
		const box = await shared.Sandbox.create(...args);
		mine.push(box);
		return box;
	};
	const cell = {};
	let error;

	try {
		await limited(cells.run(cell, fn, { ...shared, make, soon, mine, patience: PATIENCE }), LIMIT_MS);
	} catch (e) {
		error = e;
	}
	await Promise.allSettled(mine.map((box) => limited(box.kill(), 10000)));
	const lines = error ? String(error.stack || error).split('\n').slice(0, 14) : [];

	if (error && error.cause) lines.unshift(`cause: ${error.cause.message || error.cause}`);
	if (error && cell.error) lines.unshift(`the last cell: ${cell.error}`);
	console.log([`${error ? 'not ok' : 'ok'} - ${shared.title}: ${name}`, ...lines.map((l) => `#   ${l}`)].join('\n'));
	return !error;
}

// width: the number of parallel tests; only: tests with these words.
async function run(shared, tables, { width = PATIENCE > 1 ? 1 : 4, only } = {}) {
	const queue = [];
	let failed = 0;

	for (const table of tables)
		for (const [name, fn, applies] of table) {
			if (only && !name.includes(only)) continue;
			if (applies && !applies(shared)) console.log(`# ${shared.title}: not in this release or way: ${name}`);
			else queue.push([name, fn]);
		}
	const total = queue.length;
	const work = async () => {
		for (let next; (next = queue.shift()); ) if (!(await run_one(shared, ...next))) failed++;
	};

	await Promise.all(Array.from({ length: width }, work));
	console.log(`# ran ${total}`);
	return failed;
}

// The name of the error class; the packages have several copies of some classes.
async function rejects(promise, name, text) {
	try {
		await promise;
	} catch (e) {
		assert.equal(e.constructor.name, name, `${e.constructor.name}: ${e.message}`);
		if (text) assert.match(e.message, text);
		return e;
	}
	return assert.fail(`no ${name} was thrown`);
}

module.exports = { load, run, soon, rejects };
