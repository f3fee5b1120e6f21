// files.js - files and folders: written, read, listed, moved, watched, and transferred by signed URLs.
'use strict';
const assert = require('node:assert/strict');
const { rejects, soon } = require('./harness.js');

const bytes = (n) => Uint8Array.from({ length: n }, (_, i) => (i * 7 + (i >> 8)) & 255);
const stream_of = (...parts) =>
	new ReadableStream({
		start(c) {
			for (const p of parts) c.enqueue(typeof p === 'string' ? new TextEncoder().encode(p) : p);
			c.close();
		},
	});
const has_streams = ({ sdk }) => Boolean(sdk.E2B);

module.exports = [
	[
		'a file is written and read, as text, bytes, blob and stream',
		async ({ make }) => {
			const box = await make();
			const raw = bytes(300000);

			const { name, type, path } = await box.files.write('a.txt', 'häl😀');
			assert.deepEqual([name, type, path], ['a.txt', 'file', '/home/user/a.txt']);
			assert.equal(await box.files.read('a.txt'), 'häl😀');
			assert.equal(await box.files.read('/home/user/a.txt'), 'häl😀');
			await box.files.write('raw', raw.buffer);
			assert.deepEqual(Buffer.from(await box.files.read('raw', { format: 'bytes' })), Buffer.from(raw));
			assert.equal((await box.files.read('raw', { format: 'blob' })).size, raw.length);
			let n = 0;
			for await (const part of await box.files.read('raw', { format: 'stream' })) n += part.length;
			assert.equal(n, raw.length);
			await box.files.write('blob', new Blob(['from a blob']));
			assert.equal(await box.files.read('blob'), 'from a blob');
			await box.files.write('empty', '');
			assert.equal(await box.files.read('empty'), '');
			await box.files.write('a.txt', 'short');
			assert.equal(await box.files.read('a.txt'), 'short');
			await rejects(box.files.read('not/there'), 'FileNotFoundError');
		},
	],
	[
		'missing parent folders are created and owned by the user',
		async ({ make }) => {
			const box = await make();

			await box.files.write('/home/user/x/y/z.txt', 'deep');
			await box.files.write('/tmp/by-root', 'r', { user: 'root' });
			const said = await box.commands.run('stat -c "%U %a" x x/y x/y/z.txt /tmp/by-root');
			assert.equal(said.stdout, 'user 755\nuser 755\nuser 644\nroot 644\n');
			assert.equal(await box.files.read('/etc/hostname', { user: 'root' }).then((s) => s.length > 0), true);
			await rejects(box.files.write('/home/user/x', 'a folder'), 'InvalidArgumentError');
			await rejects(box.files.read('a', { user: 'missing' }), 'AuthenticationError');
		},
	],
	[
		'many files are written in one request',
		async ({ make }) => {
			const box = await make();
			const many = Array.from({ length: 20 }, (_, n) => ({ path: `many/${n}/f ü ${n}.txt`, data: `no ${n}` }));
			const wrote = await box.files.write(many);

			assert.equal(wrote.length, 20);
			assert.deepEqual(wrote.map((w) => w.path), many.map((m) => `/home/user/${m.path}`));
			for (const m of many.slice(0, 3)) assert.equal(await box.files.read(m.path), m.data);
			assert.deepEqual(await box.files.write([]), []);
		},
	],
	[
		'a stream is uploaded, compressed on request',
		async ({ make }) => {
			const box = await make();
			const raw = bytes(100000);

			await box.files.write('s', stream_of('one ', raw, ' two'));
			assert.equal((await box.files.getInfo('s')).size, 100008);
			await box.files.write('z', 'gz'.repeat(50000), { gzip: true });
			assert.equal((await box.commands.run('wc -c <z')).stdout.trim(), '100000');
			assert.equal(await box.files.read('z', { gzip: true }), 'gz'.repeat(50000));
			await box.files.write('o', 'octets', { useOctetStream: true });
			assert.equal(await box.files.read('o'), 'octets');
		},
		has_streams,
	],
	[
		'twenty megabytes are uploaded and downloaded unchanged',
		async ({ make }) => {
			const box = await make();
			const raw = bytes(20 << 20);
			const { createHash } = require('node:crypto');
			const sum = createHash('sha256').update(raw).digest('hex');

			await box.files.write('/tmp/big', raw.buffer);
			assert.equal((await box.commands.run('sha256sum </tmp/big')).stdout.slice(0, 64), sum);
			const back = await box.files.read('/tmp/big', { format: 'bytes' });
			assert.equal(createHash('sha256').update(back).digest('hex'), sum);
		},
	],
	[
		'an entry has type, size, mode and owner',
		async ({ make }) => {
			const box = await make();

			await box.files.write('f', '12345');
			await box.commands.run('chmod 640 f; mkdir -p d; chmod 1777 d; ln -s f l');
			const info = await box.files.getInfo('f');
			assert.deepEqual(
				[info.name, info.type, info.path, info.size, info.mode, info.permissions, info.owner, info.group],
				['f', 'file', '/home/user/f', 5, 0o640, '-rw-r-----', 'user', 'user']
			);
			assert.ok(Math.abs(info.modifiedTime - Date.now()) < 60000);
			const dir = await box.files.getInfo('d');
			assert.deepEqual([dir.type, dir.permissions], ['dir', 'dtrwxrwxrwx']);
			const link = await box.files.getInfo('l');
			assert.deepEqual([link.type, link.symlinkTarget], ['file', '/home/user/f']);
			await rejects(box.files.getInfo('none'), 'FileNotFoundError');
		},
	],
	[
		'a folder is listed in order with the requested depth',
		async ({ make }) => {
			const box = await make();

			await box.files.write([
				{ path: 't/b/c/d', data: '' },
				{ path: 't/a', data: '' },
				{ path: 't/z', data: '' },
			]);
			const names = async (opts) => (await box.files.list('t', opts)).map((e) => e.path.slice('/home/user/t/'.length));
			assert.deepEqual(await names(), ['a', 'b', 'z']);
			assert.deepEqual(await names({ depth: 3 }), ['a', 'b', 'b/c', 'b/c/d', 'z']);
			assert.equal((await box.files.list('t'))[1].type, 'dir');
			await rejects(box.files.list('t', { depth: 0 }), 'InvalidArgumentError');
			await rejects(box.files.list('none'), 'FileNotFoundError');
			await rejects(box.files.list('t/a'), 'InvalidArgumentError');
		},
	],
	[
		'folders and files are created, found, renamed and removed',
		async ({ make }) => {
			const box = await make();

			assert.equal(await box.files.makeDir('m/n'), true);
			assert.equal(await box.files.makeDir('m/n'), false);
			assert.equal(await box.files.exists('m/n'), true);
			assert.equal(await box.files.exists('m/o'), false);
			await box.files.write('m/n/f', 'x');
			const moved = await box.files.rename('m/n/f', 'm/g');
			assert.deepEqual([moved.name, moved.path, moved.type], ['g', '/home/user/m/g', 'file']);
			assert.equal(await box.files.read('m/g'), 'x');
			assert.equal(await box.files.exists('m/n/f'), false);
			await rejects(box.files.rename('m/none', 'm/h'), 'FileNotFoundError');
			await box.files.remove('m');
			assert.equal(await box.files.exists('m'), false);
			await box.files.remove('m');
		},
	],
	[
		'metadata of a file is stored with it',
		async ({ make }) => {
			const box = await make();
			const wrote = await box.files.write('noted', 'x', { metadata: { author: 'me', Stage: 'one' } });

			assert.deepEqual(wrote.metadata, { author: 'me', stage: 'one' });
			assert.deepEqual((await box.files.getInfo('noted')).metadata, { author: 'me', stage: 'one' });
			await box.files.write('noted', 'y');
			assert.deepEqual((await box.files.getInfo('noted')).metadata ?? {}, {});
		},
		has_streams,
	],
	[
		'a folder is watched, also recursively',
		async ({ make }) => {
			const box = await make();
			const seen = [];

			await box.files.makeDir('w');
			const watch = await box.files.watchDir('w', (e) => seen.push(`${e.type} ${e.name}`), { recursive: true });
			await box.files.write('w/f', 'x');
			await soon(() => seen.includes('create f') && seen.includes('write f'), `create and write`);
			await box.commands.run('chmod 600 w/f; mv w/f w/g; mkdir w/s');
			await soon(() => ['chmod f', 'rename f', 'create g', 'create s'].every((s) => seen.includes(s)), 'moved');
			await box.files.write('w/s/deep', 'x');
			await soon(() => seen.includes('write s/deep'), 'the branch');
			await box.files.remove('w/g');
			await soon(() => seen.includes('remove g'), 'removed');
			await watch.stop();
			await rejects(box.files.watchDir('none', () => {}), 'FileNotFoundError');
			await rejects(box.files.watchDir('w/s/deep', () => {}), 'InvalidArgumentError');
		},
	],
	[
		'a watch reports its end, and events may have the entry',
		async ({ make }) => {
			const box = await make();
			const seen = [];
			let over = 0;

			await box.files.makeDir('w');
			const watch = await box.files.watchDir('w', (e) => seen.push(e), { includeEntry: true, onExit: () => over++ });
			await box.files.write('w/f', '123');
			const got = await soon(() => seen.find((e) => e.entry && e.entry.size === 3), 'an entry');
			assert.equal(got.entry.path, '/home/user/w/f');
			await watch.stop();
			await soon(() => over === 1, 'onExit was called');
		},
		has_streams,
	],
	[
		'a signed URL downloads and uploads without headers until it expires',
		async ({ make }) => {
			const box = await make();

			await box.files.write('l i+n&k.txt', 'by link');
			const down = await fetch(await box.downloadUrl('l i+n&k.txt'));
			assert.deepEqual([down.status, await down.text()], [200, 'by link']);
			const form = new FormData();
			form.append('file', new Blob(['put']), 'ignored.txt');
			const up = await fetch(await box.uploadUrl('up.txt'), { method: 'POST', body: form });
			assert.equal(up.status, 200, await up.clone().text());
			assert.equal(await box.files.read('up.txt'), 'put');
			const timed = await box.downloadUrl('up.txt', { useSignatureExpiration: 10000 });
			assert.equal((await fetch(timed)).status, 200);
			const late = await fetch(await box.downloadUrl('up.txt', { useSignatureExpiration: -120000 }));
			assert.deepEqual([late.status, await late.json()], [401, { code: 401, message: 'signature is already expired' }]);
			const forged = (await box.downloadUrl('up.txt')).replace('path=up.txt', 'path=%2Fetc%2Fpasswd');
			assert.equal((await fetch(forged)).status >= 400, true);
		},
	],
];
