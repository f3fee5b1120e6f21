// restart.js - node restart.js PACKAGES begin|end FILE: sandboxes that are paused, and continued by another server, or by another
// server and keeper. FILE keeps what `end` must know of `begin`.
'use strict';
const assert = require('node:assert/strict');
const fs = require('node:fs');
const { load, soon } = require('./harness.js');
const { started, continued } = require('./continues.js');

const [folder, part, file] = process.argv.slice(2);
const { Sandbox } = load(folder);
const disk = { 'atoll.pause': 'disk' };
const is_paused = async (id) => (await Sandbox.getInfo(id)).state === 'paused';
// A sandbox is paused as soon as its programs are stopped; they survive everything when they are on the disk.
async function is_on_disk(id) {
	const headers = { 'X-API-Key': process.env.E2B_API_KEY };

	return (await (await fetch(`${process.env.E2B_API_URL}/v1/boxes/${id}`, { headers })).json()).paused_to === 'disk';
}

async function begin() {
	const traffic = { onTimeout: 'pause', autoResume: true };
	const all = { paused: { metadata: disk }, late: { metadata: disk, lifecycle: traffic } };
	const known = {};

	for (const [name, how] of Object.entries(all)) {
		const box = await Sandbox.create('code-interpreter-v1', { timeoutMs: 600000, ...how });

		known[name] = { id: box.sandboxId, pids: await started(box) };
		if (name === 'paused') assert.equal(await box.pause(), true);
		else await box.setTimeout(1000);
		await soon(() => is_on_disk(box.sandboxId), `${name} is on the disk`);
	}
	fs.writeFileSync(file, JSON.stringify(known));
}

async function end() {
	const { paused, late } = JSON.parse(fs.readFileSync(file));

	await Promise.all([paused, late].map(async (x) => assert.ok(await is_paused(x.id))));
	const box = await Sandbox.connect(paused.id, { timeoutMs: 60000 });
	await continued(box, paused.pids, 1);
	await box.kill();
	const headers = { 'E2b-Sandbox-Id': late.id, 'E2b-Sandbox-Port': '8000' };
	assert.equal(await (await fetch(process.env.E2B_SANDBOX_URL, { headers })).text(), `${late.pids.web} 2`); // resumed by traffic
	const again = await Sandbox.connect(late.id, { timeoutMs: 60000 });
	await continued(again, late.pids, 2);
	await again.kill();
}

({ begin, end })[part]().catch((e) => {
	console.log(String(e.stack || e).split('\n').slice(0, 12).map((l) => `# ${l}`).join('\n'));
	process.exit(1);
});
