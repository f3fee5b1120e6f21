// sandboxes.js - life cycle of sandboxes: created, found, paused, forked, ended.
'use strict';
const assert = require('node:assert/strict');
const { started, continued } = require('./continues.js');
const { rejects, soon } = require('./harness.js');

const mark = () => Math.random().toString(36).slice(2);
const all_of = async (pages) => {
	const items = [];

	while (pages.hasNext) items.push(...(await pages.nextItems()));
	return items;
};
const boot_id = async (box) => (await box.files.read('/proc/sys/kernel/random/boot_id')).trim();
// Starts a long-running program.
async function asleep(box) {
	const handle = await box.commands.run('sleep 300', { background: true, timeoutMs: 0 });

	handle.wait().catch(() => {}); // it ends with its sandbox
	return handle;
}

// Boxes of other tiers are copied without their programs.
const copies_programs = ({ Sandbox }) => Boolean(Sandbox.fork) && (process.env.ATOLL_TIER || 'container') === 'container';

module.exports = [
	[
		'a sandbox is created, has its info, and ends',
		async ({ make, Sandbox }) => {
			const box = await make({ metadata: { who: 'me' }, timeoutMs: 60000 });
			const info = await box.getInfo();

			assert.match(box.sandboxId, /^[a-z0-9]+$/);
			assert.equal(info.sandboxId, box.sandboxId);
			assert.deepEqual(info.metadata, { who: 'me' });
			assert.equal(info.state, 'running');
			assert.ok(info.startedAt instanceof Date && info.endAt instanceof Date);
			assert.ok(Math.abs(info.endAt - Date.now() - 60000) < 10000, `${info.endAt}`);
			assert.ok(info.cpuCount > 0 && info.memoryMB > 0);
			assert.equal(await box.isRunning(), true);
			assert.equal((await box.kill()) ?? true, true);
			assert.equal(await box.isRunning(), false);
			assert.equal(await Sandbox.kill(box.sandboxId), false);
			await rejects(Sandbox.getInfo(box.sandboxId), 'SandboxNotFoundError');
		},
	],
	[
		'an unknown template is rejected, and base is accepted by all its names',
		async ({ make, sdk }) => {
			const plain = await sdk.Sandbox.create('base', { timeoutMs: 20000 });
			assert.equal((await plain.commands.run('echo base')).stdout, 'base\n');
			await plain.kill();
			await make('code-interpreter-v1', { timeoutMs: 20000 });
			const e = await rejects(sdk.Sandbox.create('missing-template'), 'SandboxError');
			assert.match(e.message, /404/);
		},
	],
	[
		'a wrong key is refused',
		async ({ Sandbox }) => {
			const apiKey = `e2b_${'0'.repeat(40)}`;
			await rejects(Sandbox.create({ apiKey }), 'AuthenticationError');
			await rejects(all_of(Sandbox.list({ apiKey })), 'AuthenticationError');
		},
	],
	[
		'a sandbox is connected to by its id and keeps its state',
		async ({ make, Sandbox }) => {
			const box = await make({ timeoutMs: 60000 });

			await box.files.write('kept', 'here');
			const again = await Sandbox.connect(box.sandboxId, { timeoutMs: 5000 });
			assert.equal(await again.files.read('kept'), 'here');
			assert.equal((await again.commands.run('cat kept')).stdout, 'here');
			const before = (await box.getInfo()).endAt.getTime();
			await again.connect({ timeoutMs: 1000 });
			assert.equal((await box.getInfo()).endAt.getTime(), before, 'connect never shortens');
			await again.connect({ timeoutMs: 300000 });
			assert.ok((await box.getInfo()).endAt.getTime() > before + 100000);
			await rejects(Sandbox.connect('i0nobody0'), 'SandboxNotFoundError');
		},
	],
	[
		'sandboxes are listed by metadata and state, page by page, newest first',
		async ({ make, Sandbox }) => {
			const tag = mark();
			const first = await make({ metadata: { tag, 'k k': 'v&v=ä' } });
			const second = await make({ metadata: { tag } });
			const third = await make({ metadata: { tag } });
			const query = { metadata: { tag } };

			assert.deepEqual(
				(await all_of(Sandbox.list({ query }))).map((x) => x.sandboxId),
				[third, second, first].map((x) => x.sandboxId)
			);
			const pages = Sandbox.list({ query, limit: 2 });
			assert.equal((await pages.nextItems()).length, 2);
			assert.equal(pages.hasNext, true);
			assert.deepEqual((await pages.nextItems()).map((x) => x.sandboxId), [first.sandboxId]);
			assert.equal(pages.hasNext, false);
			const odd = await all_of(Sandbox.list({ query: { metadata: { tag, 'k k': 'v&v=ä' } } }));
			assert.deepEqual(odd.map((x) => x.sandboxId), [first.sandboxId]);
			await second.pause();
			const paused = await all_of(Sandbox.list({ query: { ...query, state: ['paused'] } }));
			assert.deepEqual(paused.map((x) => [x.sandboxId, x.state]), [[second.sandboxId, 'paused']]);
			const running = await all_of(Sandbox.list({ query: { ...query, state: ['running'] } }));
			assert.equal(running.length, 2);
		},
	],
	[
		'a timeout is extended and shortened, and the sandbox ends with it',
		async ({ make, Sandbox }) => {
			const box = await make({ timeoutMs: 60000 });

			await box.setTimeout(120000);
			assert.ok((await box.getInfo()).endAt - Date.now() > 100000);
			await box.setTimeout(1000);
			await soon(async () => !(await box.isRunning()), 'it is not running');
			await rejects(Sandbox.getInfo(box.sandboxId), 'SandboxNotFoundError');
			await rejects(box.setTimeout(1000), 'SandboxNotFoundError');
			await rejects(box.commands.run('true'), 'SandboxNotFoundError');
		},
	],
	[
		'a sandbox with autoPause is paused at its timeout and resumed with its processes',
		async ({ Sandbox, mine }) => {
			const lifecycle = { onTimeout: 'pause' };
			const box = Sandbox.betaCreate
				? await Sandbox.betaCreate({ timeoutMs: 1000, autoPause: true })
				: await Sandbox.create({ timeoutMs: 1000, lifecycle });
			mine.push(box);
			await soon(async () => (await box.getInfo()).state === 'paused', 'it is paused', 8000);
			assert.equal(await box.isRunning(), false);
			await box.connect({ timeoutMs: 30000 });
			assert.equal((await box.commands.run('echo back')).stdout, 'back\n');
		},
	],
	[
		'a pause keeps processes, pids and the boot id; a second pause is reported',
		async ({ make, Sandbox }) => {
			const box = await make({ envs: { KEPT: 'yes' }, timeoutMs: 60000 });
			const sleeper = await asleep(box);
			const boot = await boot_id(box);

			assert.equal(await box.pause(), true);
			assert.equal(await box.isRunning(), false);
			assert.equal((await box.getInfo()).state, 'paused');
			assert.equal(await Sandbox.pause(box.sandboxId), false);
			await box.connect({ timeoutMs: 60000 });
			assert.equal(await box.isRunning(), true);
			assert.ok((await box.commands.list()).some((p) => p.pid === sleeper.pid));
			assert.equal(await boot_id(box), boot);
			assert.equal((await box.commands.run('echo $KEPT')).stdout, 'yes\n');
			await rejects(Sandbox.pause('i0nobody0'), 'SandboxNotFoundError');
		},
	],
	[
		'a pause without memory keeps files and is like a reboot',
		async ({ make }) => {
			const box = await make({ timeoutMs: 60000 });
			const sleeper = await asleep(box);
			const boot = await boot_id(box);

			await box.files.write('/home/user/kept', 'still');
			assert.equal(await box.pause({ keepMemory: false }), true);
			await box.connect({ timeoutMs: 60000 });
			assert.equal(await box.files.read('/home/user/kept'), 'still');
			assert.ok(!(await box.commands.list()).some((p) => p.pid === sleeper.pid));
			assert.notEqual(await boot_id(box), boot);
		},
		({ Sandbox }) => Boolean(Sandbox.fork), // came with it
	],
	[
		'a fork has the files of its parent and is independent',
		async ({ make, mine, patience }) => {
			const box = await make({ timeoutMs: 60000 * patience });

			await box.files.write('seed', 'one');
			const forks = await box.fork({ count: 2, timeoutMs: 60000 * patience });
			mine.push(...forks.filter((f) => f.kill));
			assert.equal(forks.length, 2);
			for (const fork of forks) {
				assert.ok(!(fork instanceof Error), String(fork));
				assert.notEqual(fork.sandboxId, box.sandboxId);
				assert.equal(await fork.files.read('seed'), 'one');
			}
			await forks[0].files.write('seed', 'two');
			assert.equal(await box.files.read('seed'), 'one');
			assert.equal(await forks[1].files.read('seed'), 'one');
		},
		({ Sandbox }) => Boolean(Sandbox.fork),
	],
	[
		'a variable, a command with its pid and a server continue in eight forks',
		async ({ make, mine }) => {
			const box = await make('code-interpreter-v1', { timeoutMs: 120000 });
			const pids = await started(box);
			const forks = await box.fork({ count: 8, timeoutMs: 120000 });

			mine.push(...forks.filter((f) => f.kill));
			assert.deepEqual(forks.filter((f) => f instanceof Error).map(String), []);
			assert.equal(new Set(forks.map((f) => f.sandboxId)).size, 8);
			await Promise.all(forks.map((f) => continued(f, pids, 1)));
			await continued(box, pids, 1);
		},
		copies_programs,
	],
	[
		'a variable, a command with its pid and a server continue in sandboxes of a snapshot',
		async ({ make, Sandbox }) => {
			const box = await make('code-interpreter-v1', { timeoutMs: 120000 });
			const pids = await started(box);
			const { snapshotId } = await box.createSnapshot();

			await box.kill();
			for (let turn = 0; turn < 2; turn++) await continued(await make(snapshotId, { timeoutMs: 120000 }), pids, 1);
			const files = await make(snapshotId, { timeoutMs: 120000, metadata: { 'atoll.fork': 'files' } });
			assert.ok(!(await files.commands.list()).some((p) => p.pid === pids.web));
			assert.equal(await Sandbox.deleteSnapshot(snapshotId), true);
		},
		copies_programs,
	],
	[
		'a program that cannot be captured is named by each fork and by a snapshot, unless only files are wanted',
		async ({ make, mine }) => {
			const raw = 'python3 -uc "import socket,time; s=socket.socket(16, 3); print(1); time.sleep(300)"';
			const run = async (box) => {
				const handle = await box.commands.run(raw, { background: true, timeoutMs: 0 });
				handle.wait().catch(() => {});
				await soon(() => handle.stdout, 'it has its socket');
				await box.files.write('seed', 'one');
				return handle;
			};
			const box = await make({ timeoutMs: 60000 });
			const handle = await run(box);
			const forks = await box.fork({ count: 2, timeoutMs: 60000 });

			mine.push(...forks.filter((f) => f.kill));
			for (const f of forks) assert.match(String(f), /netlink/);
			await rejects(box.createSnapshot(), 'SandboxError', /netlink/);
			assert.ok((await box.commands.list()).some((p) => p.pid === handle.pid));
			const plain = await make({ timeoutMs: 60000, metadata: { 'atoll.fork': 'files' } });
			await run(plain);
			const [copy] = await plain.fork({ timeoutMs: 60000 });
			mine.push(copy);
			assert.equal(await copy.files.read('seed'), 'one');
			await rejects(make({ metadata: { 'atoll.fork': 'drop' } }), 'SandboxError', /memory or files/);
		},
		copies_programs,
	],
	[
		'a snapshot is created, listed, used for a sandbox, and removed',
		async ({ make, Sandbox, patience }) => {
			const box = await make({ timeoutMs: 60000 * patience });

			await box.files.write('/home/user/deep/seed', 'grown');
			const snapshot = await box.createSnapshot();
			assert.ok(snapshot.snapshotId);
			const mine = await all_of(box.listSnapshots());
			assert.deepEqual(mine.map((s) => s.snapshotId), [snapshot.snapshotId]);
			const child = await make(snapshot.snapshotId, { timeoutMs: 60000 * patience });
			assert.equal(await child.files.read('/home/user/deep/seed'), 'grown');
			assert.equal(await Sandbox.deleteSnapshot(snapshot.snapshotId), true);
			assert.equal(await Sandbox.deleteSnapshot(snapshot.snapshotId), false);
			await rejects(Sandbox.create(snapshot.snapshotId), 'SandboxError');
		},
	],
	[
		'a snapshot has its given name',
		async ({ make, Sandbox, patience }) => {
			const box = await make({ timeoutMs: 60000 * patience });
			const name = `snap-${mark()}`;
			const snapshot = await box.createSnapshot({ name });

			assert.match(snapshot.snapshotId, new RegExp(name));
			const child = await make(snapshot.snapshotId, { timeoutMs: 60000 * patience });
			assert.equal((await child.commands.run('echo up')).stdout, 'up\n');
			assert.equal(await Sandbox.deleteSnapshot(snapshot.snapshotId), true);
		},
		({ Sandbox }) => Boolean(Sandbox.fork),
	],
	[
		'metrics are sampled while the sandbox runs',
		async ({ make, sdk }) => {
			const box = await make({ timeoutMs: 60000 });
			const got = await soon(async () => {
				const m = await box.getMetrics();
				return m.length && m;
			}, 'there is a sample', 20000);
			const last = got[got.length - 1];

			assert.ok(last.timestamp instanceof Date);
			assert.ok(last.memTotal > 0 && last.cpuCount > 0 && last.diskTotal > 0);
			assert.ok(last.memUsed >= 0 && last.cpuUsedPct >= 0);
			const end = new Date(Date.now() - 3600000);
			const before = await box.getMetrics({ start: new Date(end - 1000), end });
			if (sdk.E2B) assert.deepEqual(before, []); // the older release does not send the parameters
		},
	],
	[
		'the network is closed at the start, and can be opened and closed while the sandbox runs',
		async ({ make }) => {
			const box = await make({ allowInternetAccess: false, timeoutMs: 60000 });

			await box.updateNetwork({ denyOut: ['0.0.0.0/0'] });
			await box.updateNetwork({});
			await rejects(box.updateNetwork({ denyOut: ['not an address'] }), 'SandboxError', /400/);
			await rejects(box.updateNetwork({ allowOut: ['example.org'] }), 'SandboxError', /400/);
		},
		({ Sandbox }) => Boolean(Sandbox.updateNetwork),
	],
	[
		'a client with explicit options needs no environment variables',
		async ({ sdk }) => {
			const { E2B_API_KEY: apiKey, E2B_API_URL: apiUrl, E2B_SANDBOX_URL: sandboxUrl } = process.env;
			const client = new sdk.E2B({ apiKey, apiUrl, sandboxUrl });
			const box = await client.Sandbox.create({ timeoutMs: 20000 });

			assert.equal((await box.commands.run('echo bound')).stdout, 'bound\n');
			await box.kill();
		},
		({ sdk }) => Boolean(sdk.E2B),
	],
	[
		'thirty sandboxes created at once are separate',
		async ({ Sandbox, mine, patience }) => {
			const slow = { timeoutMs: 60000 * patience, requestTimeoutMs: 30000 * patience };
			const boxes = await Promise.all(Array.from({ length: 30 }, (_, n) => Sandbox.create({ ...slow, envs: { N: String(n) } })));
			mine.push(...boxes);
			const said = await Promise.all(boxes.map((box) => box.commands.run('echo $N', slow)));

			assert.equal(new Set(boxes.map((box) => box.sandboxId)).size, 30);
			assert.deepEqual(said.map((x) => x.stdout.trim()), boxes.map((_, n) => String(n)));
		},
	],
];
