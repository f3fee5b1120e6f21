// stored.js - templates and their tags, volumes, secrets.
'use strict';
const assert = require('node:assert/strict');
const { rejects } = require('./harness.js');

const mark = () => Math.random().toString(36).slice(2);

module.exports = [
	[
		'base exists, other templates do not, and tags are listed',
		async ({ sdk: { Template } }) => {
			assert.equal(await Template.exists('base'), true);
			assert.equal(await Template.exists('code-interpreter-v1'), true);
			assert.equal(await Template.exists(`none-${mark()}`), false);
			assert.ok((await Template.getTags('base')).some((t) => t.tag === 'default'));
		},
	],
	[
		'a volume is created, written, mounted, listed and deleted',
		async ({ sdk: { Volume }, make }) => {
			const name = `vol-${mark()}`;
			const volume = await Volume.create(name);

			try {
				assert.ok((await Volume.list()).some((v) => v.volumeId === volume.volumeId && v.name === name));
				assert.equal((await Volume.getInfo(volume.volumeId)).name, name);
				const box = await make({ volumeMounts: { '/mnt/v': volume }, timeoutMs: 60000 });
				await box.commands.run('echo kept >/mnt/v/f');
				await box.kill();
				const next = await make({ volumeMounts: { '/mnt/v': name }, timeoutMs: 60000 });
				assert.equal((await next.commands.run('cat /mnt/v/f')).stdout, 'kept\n');
				await next.kill();
			} finally {
				assert.equal(await Volume.destroy(volume.volumeId), true);
			}
			assert.equal(await Volume.destroy(volume.volumeId), false);
			await rejects(Volume.getInfo(volume.volumeId), 'VolumeNotFoundError');
		},
		({ sdk }) => Boolean(sdk.Volume && sdk.E2B),
	],
	[
		'a secret is rejected with a reason',
		async ({ sdk: { Secret } }) => {
			const e = await rejects(Secret.create(`s-${mark()}`, 'value'), 'SecretError');
			assert.doesNotMatch(e.message, /value/);
		},
		({ sdk }) => Boolean(sdk.Secret),
	],
];
