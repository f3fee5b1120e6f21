// commands.js - commands: output, stdin, background, reconnect, kill; terminals; git, which uses commands.
'use strict';
const assert = require('node:assert/strict');
const { rejects, soon } = require('./harness.js');

const settled = (handle) => handle.wait().catch((e) => e);
const text = (parts) => Buffer.concat(parts.map((p) => Buffer.from(p))).toString();

module.exports = [
	[
		'a command returns both output streams and its exit code',
		async ({ make }) => {
			const box = await make();
			const seen = { out: '', err: '' };
			const done = await box.commands.run('echo out; echo err >&2', {
				onStdout: (s) => (seen.out += s),
				onStderr: (s) => (seen.err += s),
			});

			assert.deepEqual([done.exitCode, done.stdout, done.stderr], [0, 'out\n', 'err\n']);
			assert.deepEqual(seen, { out: 'out\n', err: 'err\n' });
			const e = await rejects(box.commands.run('echo no >&2; exit 7'), 'CommandExitError');
			assert.deepEqual([e.exitCode, e.stderr, e.error], [7, 'no\n', 'exit status 7']);
			await rejects(box.commands.run('kill -9 $$'), 'CommandExitError', /./);
		},
	],
	[
		'megabytes of output and all byte values arrive unchanged',
		async ({ make }) => {
			const box = await make();
			const big = await box.commands.run('seq 400000');

			assert.equal(big.stdout.length, 2688895);
			assert.ok(big.stdout.endsWith('400000\n'));
			const odd = await box.commands.run("printf 'ä€😀\\n'; head -c 3000000 /dev/zero | tr '\\0' x");
			assert.ok(odd.stdout.startsWith('ä€😀\n'));
			assert.equal(odd.stdout.length, 3000000 + 5);
		},
	],
	[
		'a command has the requested user, directory and environment',
		async ({ make }) => {
			const box = await make({ envs: { FROM: 'box', BOTH: 'box' } });
			const said = async (cmd, opts) => (await box.commands.run(cmd, opts)).stdout.trim();

			assert.equal(await said('whoami; pwd'), 'user\n/home/user');
			assert.equal(await said('whoami; pwd', { user: 'root' }), 'root\n/root');
			assert.equal(await said('pwd', { cwd: '/tmp' }), '/tmp');
			assert.equal(await said('echo $FROM $BOTH $MINE', { envs: { BOTH: 'cmd', MINE: '1' } }), 'box cmd 1');
			assert.equal(await said('echo $FROM $BOTH $MINE'), 'box box');
			assert.equal(await said('echo $E2B_SANDBOX $E2B_SANDBOX_ID'), `true ${box.sandboxId}`);
			assert.equal(await said('echo $HOME $USER'), '/home/user user');
			await rejects(box.commands.run('true', { cwd: '/nowhere' }), 'InvalidArgumentError', /nowhere/);
			await rejects(box.commands.run('true', { user: 'missing' }), 'AuthenticationError');
		},
	],
	[
		'python and sudo exist in the sandbox',
		async ({ make }) => {
			const box = await make();
			const said = await box.commands.run('python -c "print(6 * 7)"; sudo -E A=b sh -c "echo $0 \\$A"');
			assert.equal(said.stdout, '42\n/bin/bash b\n');
		},
	],
	[
		'a background command is listed, followed and waited for',
		async ({ make }) => {
			const box = await make();
			let out = '';
			const handle = await box.commands.run('echo first; read line; echo "got $line"', {
				background: true,
				stdin: true,
				onStdout: (s) => (out += s),
			});

			await soon(() => out === 'first\n', 'first line');
			const listed = (await box.commands.list()).find((p) => p.pid === handle.pid);
			assert.equal(listed.cmd, '/bin/bash');
			assert.deepEqual(listed.args.slice(0, 2), ['-l', '-c']);
			assert.equal((await box.commands.run(`kill -0 ${handle.pid} && echo alive`)).stdout, 'alive\n');
			await box.commands.sendStdin(handle.pid, 'words\n');
			const done = await handle.wait();
			assert.equal(done.stdout, 'first\ngot words\n');
			await soon(async () => !(await box.commands.list()).some((p) => p.pid === handle.pid));
		},
	],
	[
		'closing stdin ends a program that reads to its end',
		async ({ make }) => {
			const box = await make();
			const handle = await box.commands.run('cat; echo end', { background: true, stdin: true });

			await box.commands.sendStdin(handle.pid, 'a');
			await handle.sendStdin('ü');
			await handle.closeStdin();
			assert.equal((await handle.wait()).stdout, 'aüend\n');
		},
		({ sdk }) => Boolean(sdk.E2B), // newer releases only
	],
	[
		'without stdin a program reads end of file at once',
		async ({ make }) => {
			const box = await make();
			assert.equal((await box.commands.run('cat; echo end')).stdout, 'end\n');
		},
	],
	[
		'a killed command reports its signal, and killing an unknown pid returns false',
		async ({ make }) => {
			const box = await make();
			const handle = await box.commands.run('sleep 60', { background: true });

			assert.equal(await box.commands.kill(handle.pid), true);
			const e = await settled(handle);
			assert.equal(e.constructor.name, 'CommandExitError', String(e));
			assert.equal(e.exitCode, -1);
			assert.equal(await box.commands.kill(handle.pid), false);
			await rejects(box.commands.sendStdin(99999, 'x'), 'NotFoundError');
			await rejects(box.commands.connect(99999), 'NotFoundError');
		},
	],
	[
		'a command continues without its client, and another client connects to it',
		async ({ make, Sandbox }) => {
			const box = await make();
			const handle = await box.commands.run('while read l; do echo "<$l>"; done', { background: true, stdin: true });

			await handle.disconnect();
			const other = await Sandbox.connect(box.sandboxId);
			let out = '';
			const again = await other.commands.connect(handle.pid, { onStdout: (s) => (out += s) });
			assert.equal(again.pid, handle.pid);
			await other.commands.sendStdin(handle.pid, 'one\n');
			await soon(() => out === '<one>\n', 'the line came');
			await again.kill();
			await settled(again);
		},
	],
	[
		'a command over its timeout is ended with a timeout error',
		async ({ make }) => {
			const box = await make();

			await rejects(box.commands.run('sleep 61', { timeoutMs: 400 }), 'TimeoutError');
			await soon(async () => (await box.commands.run('pgrep -f "[s]leep 61" || echo none')).stdout === 'none\n');
		},
	],
	[
		'a command reports that its sandbox was killed',
		async ({ make, sdk }) => {
			const box = await make();
			const handle = await box.commands.run('sleep 60', { background: true });

			await box.kill();
			const e = await settled(handle);
			const name = sdk.E2B ? 'TimeoutError' : 'SandboxError'; // the older release does not check the sandbox
			assert.equal(e.constructor.name, name, String(e));
		},
	],
	[
		'a terminal has size, echo, signals and an exit',
		async ({ make }) => {
			const box = await make();
			const parts = [];
			const pty = await box.pty.create({ cols: 90, rows: 31, onData: (d) => parts.push(d), envs: { MINE: 'x1' } });
			const type = (s) => box.pty.sendInput(pty.pid, new TextEncoder().encode(s));

			await type('stty size; tty; echo $TERM-$MINE\n');
			await soon(() => /31 90[^]*\/dev\/[^]*xterm-256color-x1/.test(text(parts)), 'the terminal answered');
			await box.pty.resize(pty.pid, { cols: 120, rows: 40 });
			await type('stty size\n');
			await soon(() => /40 120/.test(text(parts)), 'the new size');
			await type('echo $((50+5)); sleep 100\n');
			await soon(() => /\b55\b/.test(text(parts)), 'it sleeps');
			// More than once: the shell ignores it while it starts the program.
			let turns = 0;
			await soon(async () => {
				if (turns++ % 50 === 0) await type('\u0003');
				return /\^C[^]*\$ $/.test(text(parts));
			}, 'the prompt is back');
			await type('echo $((40+2)); exit 3\n');
			const e = await settled(pty);
			assert.equal(e.exitCode, 3, String(e));
			assert.match(text(parts), /\b42\b/);
		},
	],
	[
		'a terminal is connected to by its pid, and killed',
		async ({ make }) => {
			const box = await make();
			const pty = await box.pty.create({ cols: 80, rows: 24, onData: () => {}, timeoutMs: 0 });

			await pty.disconnect();
			const parts = [];
			const again = await box.pty.connect(pty.pid, { onData: (d) => parts.push(d) });
			await box.pty.sendInput(pty.pid, new TextEncoder().encode('echo $((6*7))\n'));
			await soon(() => text(parts).includes('42'), 'it answers');
			assert.equal(await box.pty.kill(pty.pid), true);
			await settled(again);
			assert.equal(await box.pty.kill(pty.pid), false);
		},
	],
	[
		'git works through the git methods of the client',
		async ({ make }) => {
			const box = await make();
			const repo = '/home/user/repo';

			await box.git.init(repo, { initialBranch: 'main' });
			await box.git.configureUser('Me', 'me@example.org', { scope: 'local', path: repo });
			assert.equal(await box.git.getConfig('user.name', { scope: 'local', path: repo }), 'Me');
			await box.files.write(`${repo}/a.txt`, 'one\n');
			assert.equal((await box.git.status(repo)).fileStatus.length, 1);
			await box.git.add(repo);
			await box.git.commit(repo, 'first');
			assert.equal((await box.git.status(repo)).isClean, true);
			await box.git.createBranch(repo, 'side');
			const branches = await box.git.branches(repo);
			assert.equal(branches.currentBranch, 'side');
			assert.deepEqual([...branches.branches].sort(), ['main', 'side']);
			await box.git.checkoutBranch(repo, 'main');
			await box.git.deleteBranch(repo, 'side', { force: true });
			await box.commands.run(`git clone -q --bare ${repo} /home/user/far.git`);
			await box.git.remoteAdd(repo, 'origin', '/home/user/far.git', { fetch: true });
			assert.equal(await box.git.remoteGet(repo, 'origin'), '/home/user/far.git');
			await box.files.write(`${repo}/b.txt`, 'two\n');
			await box.git.add(repo, { files: ['b.txt'] });
			await box.git.commit(repo, 'second');
			await box.git.push(repo, { remote: 'origin', branch: 'main', setUpstream: true });
			await box.git.clone('/home/user/far.git', { path: '/home/user/copy' });
			assert.equal(await box.files.read('/home/user/copy/b.txt'), 'two\n');
			await box.git.pull('/home/user/copy', { remote: 'origin', branch: 'main' });
			await box.files.write(`${repo}/b.txt`, 'three\n');
			await box.git.restore(repo, { paths: ['b.txt'] });
			assert.equal(await box.files.read(`${repo}/b.txt`), 'two\n');
			await box.git.reset(repo, { mode: 'hard', target: 'HEAD~1' });
			assert.equal(await box.files.exists(`${repo}/b.txt`), false);
		},
	],
];
