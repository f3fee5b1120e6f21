// zygote_node.js - the warm interpreter of node: started before a request, it waits for a program.
//
//	node -r /opt/atoll/zygote_node.js warm     descriptor 3: a blocking stream socket
//
// -r loads this file before the main program, after node has initialised itself. When this file returns,
// node runs its main module. So the stack of the program has only frames of node: require.main, import,
// errors and exit statuses are those of `node FILE`.
//
// It receives one message: a length (u32, little-endian), then that many bytes: cwd, argc, argv..., env...,
// each followed by NUL. argv[1] is a file (relative to cwd), or the driver node.js in the folder of this
// file, which then uses descriptor 3 as its channel. A warm node cannot apply what node reads only at its
// start: options (argv[1] begins with '-' or is missing) and the variables of REFUSED. For these it starts
// another node and exits with its status; executing node directly is faster.
//
// A program can still see two differences: performance.timeOrigin and process.uptime() count from the start
// of the warm node, and process.argv0 is the name by which the warm node was started.
'use strict';

const fs = require('fs');
const path = require('path');
const Module = require('module');
const driver = path.join(__dirname, 'node.js');

const MESSAGE_MAX = 64 << 20;
// What node reads once, when it starts. NODE_ENV, NODE_PATH and their like are read when needed.
const REFUSED = new RegExp(`^(?:${[
	'NODE_OPTIONS', 'NODE_EXTRA_CA_CERTS', 'NODE_ICU_DATA', 'NODE_NO_WARNINGS', 'NODE_PENDING_.*',
	'NODE_PRESERVE_SYMLINKS.*', 'NODE_REDIRECT_WARNINGS', 'NODE_REPL_.*', 'NODE_V8_COVERAGE',
	'NODE_CHANNEL_.*', 'NODE_COMPILE_CACHE', 'NODE_DEBUG_NATIVE', 'NODE_UNIQUE_ID', 'NODE_USE_.*',
	'OPENSSL_CONF', 'SSL_CERT_FILE', 'SSL_CERT_DIR',
].join('|')})=`);

function fail(why) {
	fs.writeSync(2, `atoll: warm node: ${why}\n`);
	process.reallyExit(127);
}

function readExactly(size) {
	const bytes = Buffer.alloc(size);
	for (let at = 0; at < size;) {
		const n = fs.readSync(3, bytes, at, size - at);
		if (n === 0)
			process.reallyExit(0); // the box is not needed
		at += n;
	}
	return bytes;
}

function readMessage() {
	const size = readExactly(4).readUInt32LE(0);
	if (size > MESSAGE_MAX)
		fail(`a message of ${size} bytes`);
	const words = readExactly(size).toString('utf8').split('\0');
	if (words.pop() !== '')
		fail('a message without its last NUL');
	const argc = Number(words[1]);
	if (words.length < 2 || !Number.isInteger(argc) || argc < 0 || words.length < 2 + argc)
		fail('a message that is too short');
	return { cwd: words[0], argv: words.slice(2, 2 + argc), env: words.slice(2 + argc) };
}

function setEnv(env) {
	for (const name of Object.keys(process.env))
		delete process.env[name];
	for (const word of env) {
		const at = word.indexOf('=', 1);
		if (at > 0)
			process.env[word.slice(0, at)] = word.slice(at + 1);
	}
}

/* There is no exec in node (before 23); the next best thing is to be a shell of the real one. */
function runAnother(argv) {
	fs.closeSync(3);
	if (typeof process.execve === 'function')
		process.execve(process.execPath, argv, process.env);
	const { spawnSync } = require('child_process');
	const done = spawnSync(process.execPath, argv.slice(1), { stdio: 'inherit', argv0: argv[0] });
	if (done.error)
		fail(done.error.message);
	if (done.signal)
		process.kill(process.pid, done.signal);
	process.reallyExit(done.status ?? 1);
}

/* The next read of runMain, which is node's own, returns this; later reads return the original. */
function replaceMain(main) {
	const kept = Object.getOwnPropertyDescriptor(Module, 'runMain');
	Object.defineProperty(Module, 'runMain', {
		configurable: true,
		enumerable: kept.enumerable,
		get() {
			Object.defineProperty(Module, 'runMain', kept);
			return main(kept.value ?? kept.get());
		},
	});
}

function forget() {
	process.execArgv = [];
	for (const file of [__filename, driver])
		delete require.cache[file];
}

function main() {
	// Loaded now, so that it is there when it counts: what console.log and most programs need.
	for (const name of ['net', 'tty', 'stream', 'util', 'url', 'events', 'child_process', 'inspector'])
		require(name);
	const { main: serve } = require(driver);

	const { cwd, argv, env } = readMessage();
	try {
		process.chdir(cwd);
	} catch (e) {
		fail(e.message);
	}
	setEnv(env);
	if (!argv[1] || argv[1][0] === '-' || env.some((word) => REFUSED.test(word)))
		runAnother(argv);
	const file = path.resolve(argv[1]);
	process.argv = [process.execPath, file, ...argv.slice(2)];
	Module._initPaths?.(); // of NODE_PATH
	forget();
	if (file === driver)
		return replaceMain(() => () => serve(3, argv.slice(2)));
	fs.closeSync(3);
	// bind() leaves no frame of its own, so a stack looks as it always does.
	replaceMain((run) => run.bind(Module, file));
}

// Threads of the program preload us as well: they have the options that node was started with.
if (require('worker_threads').isMainThread)
	main();
if (require.main === module)
	Module.runMain(); // started without -r: it works, but our frames are on the stacks
