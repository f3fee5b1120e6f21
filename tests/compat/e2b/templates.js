// templates.js - templates that E2B's SDK defines, builds and uses.
'use strict';
const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { rejects } = require('./harness.js');

// Once: with the newer release, which reports the line of each failed step.
const applies = ({ folder, plain }) => plain && path.basename(folder) === 'now';

let names = 0;
const fresh = (what) => `t-${what}-${process.pid}-${names++}`;

// A folder with files for COPY; removed after the test.
async function with_context(files, fn) {
	const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'templates-'));

	try {
		for (const [name, text] of Object.entries(files)) {
			fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
			fs.writeFileSync(path.join(folder, name), text);
		}
		await fn(folder);
	} finally {
		fs.rmSync(folder, { recursive: true, force: true });
	}
}
const said = async (box, command, options) => (await box.commands.run(command, options)).stdout.trim();

module.exports = [
	[
		'a template is built from steps and a sandbox has their result',
		async ({ sdk, make }) => {
			const { Template } = sdk;

			await with_context({ 'app/main.txt': 'main', 'app/sub/deep.txt': 'deep', 'one.txt': 'one' }, async (folder) => {
				fs.symlinkSync('main.txt', path.join(folder, 'app/link.txt'));
				const name = fresh('steps');
				const template = Template({ fileContextPath: folder })
					.fromBaseImage()
					.copy('app/*', 'copied')
					.copy('one.txt', '/srv/data/', { mode: 0o600, user: 'root' })
					.copy('one.txt', 'renamed.txt')
					.setEnvs({ GREETING: 'hello world' })
					.setEnvs({ TWICE: '$GREETING!' })
					.setWorkdir('/srv/app')
					.runCmd('echo "$GREETING" >greeting; id -un >name')
					.runCmd(['id -un >/root/name', 'pwd >/root/where'], { user: 'root' })
					.makeDir('made/deep')
					.makeSymlink('/srv/app/greeting', 'made/link')
					.rename('name', 'made/name')
					.runCmd('touch gone')
					.remove('gone');
				const logs = [];
				const built = await Template.build(template, name, { cpuCount: 1, memoryMB: 512, onBuildLogs: (entry) => logs.push(entry.message) });

				assert.match(built.buildId, /^[0-9a-f-]{36}$/);
				assert.ok(logs.some((l) => l.includes('echo "$GREETING"')), logs.join('\n'));
				const box = await make(name, { envs: { MINE: 'mine' }, timeoutMs: 60000 });

				assert.equal(await said(box, 'cat ~/copied/main.txt ~/copied/sub/deep.txt ~/copied/link.txt ~/renamed.txt'), 'maindeepmainone');
				assert.equal(await said(box, 'readlink ~/copied/link.txt; stat -c %U ~/copied/main.txt'), 'main.txt\nuser');
				assert.equal(await said(box, 'stat -c "%a %U" /srv/data/one.txt', { user: 'root' }), '600 root');
				assert.equal(await said(box, 'echo "$GREETING|$TWICE|$MINE|$(pwd)|$(id -un)"'), 'hello world|hello world!|mine|/srv/app|user');
				assert.equal(await said(box, 'cat greeting made/name made/link; stat -c %U . greeting; ls -A'), 'hello world\nuser\nhello world\nuser\nuser\ngreeting\nmade');
				assert.equal(await said(box, 'cat /root/name /root/where', { user: 'root' }), 'root\n/srv/app');
				const info = await box.getInfo();

				assert.deepEqual([info.templateId, info.cpuCount, info.memoryMB], [built.templateId, 1, 512]);
				assert.equal(info.name, name);

				// The same files again: nothing is uploaded, and all steps are in the cache.
				const again = [];

				await Template.build(template, name, { cpuCount: 1, memoryMB: 512, onBuildLogs: (entry) => again.push(entry.message) });
				assert.equal(again.filter((l) => l.includes('already cached')).length, 3, again.join('\n'));
				assert.ok(again.some((l) => l.startsWith('CACHED') && l.includes('greeting')), again.join('\n'));
			});
		},
		applies,
	],
	[
		'a template starts from another one and runs as another user',
		async ({ sdk, make }) => {
			const { Template } = sdk;
			const parent = fresh('parent');
			const child = fresh('child');

			await Template.build(Template().fromTemplate('base').runCmd('echo parent >~/origin').setEnvs({ A: 'a' }), parent);
			await Template.build(
				Template().fromTemplate(parent).setUser('app').setWorkdir('/home/app/work').setEnvs({ B: '${A}b' }).runCmd('id -un >me; cat /home/user/origin >>me'),
				child,
			);
			const box = await make(child, { timeoutMs: 60000 });

			assert.equal(await said(box, 'cat me; echo "$A $B $HOME $(id -un) $(pwd)"; stat -c %U me'), 'app\nparent\na ab /home/app app /home/app/work\napp');
		},
		applies,
	],
	[
		'a failed step is reported with its command, its output and the line of the caller',
		async ({ sdk }) => {
			const { Template } = sdk;
			const fails = async (template, text, here) => {
				const logs = [];
				const error = await rejects(Template.build(template, fresh('fails'), { onBuildLogs: (entry) => logs.push(entry.message) }), 'BuildError', text);

				assert.match(error.stack.split('\n').find((l) => l.includes('.js:')), here);
				return logs.join('\n');
			};
			const line = () => Number(new Error().stack.split('\n')[2].match(/templates\.js:(\d+)/)[1]);
			const at = (n) => new RegExp(`templates\\.js:${n}:`);

			let n = line() + 1;
			const run = Template().fromBaseImage().runCmd('true').runCmd('echo broken >&2; exit 3');
			assert.match(await fails(run, /^failed to run command 'echo broken >&2; exit 3': .*status 3/, at(n)), /broken/);
			n = line() + 1;
			const unknown = Template().fromBaseImage().skipCache().runCmd('whoami', { user: 'root123' });
			await fails(unknown, /^failed to run command 'whoami': command failed: unauthenticated: invalid username: 'root123'$/, at(n));
			n = line() + 1;
			const from = Template().fromTemplate('there-is-none').runCmd('true');
			await fails(from, /there-is-none/, at(n));
			n = line() + 1;
			const workdir = Template().fromBaseImage().setWorkdir('/etc/passwd');
			await fails(workdir, /./, at(n));
			n = line() + 1;
			const user = Template().fromBaseImage().setUser('; exit 1');
			await fails(user, /./, at(n));
			n = line() + 1;
			const rm = Template().fromBaseImage().remove('nothing/here');
			await fails(rm, /rm nothing\/here/, at(n));
			n = line() + 1;
			const start = Template().fromBaseImage().setStartCmd('./nothing/here', 'false');
			await fails(start, /nothing\/here/, at(n));
			const quick = () => Template().fromBaseImage().setEnvs({ npm_config_fetch_retries: '0', PIP_RETRIES: '0', PIP_INDEX_URL: 'http://127.0.0.1:1/' });
			for (const install of [quick().pipInstall('there-is-none'), quick().npmInstall('there-is-none')])
				await rejects(Template.build(install, fresh('install')), 'BuildError', /^failed to run command '(pip|npm) install there-is-none'/);
		},
		applies,
	],
	[
		'a build in the background is building at once and becomes ready',
		async ({ sdk, soon }) => {
			const { Template } = sdk;
			const info = await Template.buildInBackground(Template().fromBaseImage().skipCache().runCmd('sleep 1'), fresh('later'));
			const first = await Template.getBuildStatus(info);

			assert.equal(first.status, 'building');
			assert.deepEqual([first.buildID, first.templateID], [info.buildId, info.templateId]);
			await soon(async () => (await Template.getBuildStatus(info)).status === 'ready');
			const { logEntries } = await Template.getBuildStatus(info, { logsOffset: 1 });
			const all = (await Template.getBuildStatus(info, { logsOffset: 0 })).logEntries;

			assert.deepEqual(logEntries, all.slice(1));
		},
		applies,
	],
	[
		'tags name builds, and a sandbox is created from each',
		async ({ sdk, make, Sandbox }) => {
			const { Template } = sdk;
			const name = fresh('tags');
			const one = await Template.build(Template().fromBaseImage().runCmd('echo one >~/v'), `${name}:v1`, { tags: ['stable', 'V1.0'] });
			const two = await Template.build(Template().fromBaseImage().runCmd('echo two >~/v'), `${name}:v2`);
			const at = async (tag) => said(await make(`${name}:${tag}`, { timeoutMs: 60000 }), 'cat ~/v');

			assert.equal(one.templateId, two.templateId);
			assert.deepEqual(one.tags, ['v1', 'stable', 'v1.0']);
			assert.equal(await Template.exists(name), true);
			assert.equal(await Template.exists(`${name}:v2`), true);
			assert.equal(await Template.exists(`${name}:v3`), false);
			assert.equal(await Template.exists(fresh('none')), false);
			assert.deepEqual([await at('v1'), await at('stable'), await at('v2'), await at(two.buildId)], ['one', 'one', 'two', 'two']);
			const moved = await Template.assignTags(`${name}:v2`, ['stable', 'latest']);

			assert.deepEqual([moved.buildId, moved.tags], [two.buildId, ['stable', 'latest']]);
			assert.equal(await at('stable'), 'two');
			await Template.removeTags(name, 'latest');
			const tags = await Template.getTags(name);

			assert.deepEqual(tags.map((t) => t.tag).sort(), ['stable', 'v1', 'v1.0', 'v2']);
			assert.ok(tags.every((t) => t.createdAt instanceof Date && t.buildId));
			for (const bad of [':x', `${name}:`, 'a/b', one.buildId]) await rejects(Template.assignTags(`${name}:v1`, bad), 'TemplateError', /400/);
			await rejects(Template.getTags(fresh('none')), 'TemplateError');
			await rejects(Template.removeTags(fresh('none'), 'x'), 'TemplateError');
			await rejects(Sandbox.create(`${name}:latest`), 'SandboxError', /404/);
			await rejects(Sandbox.create(name), 'SandboxError', /404/); // it has no tag `default`
		},
		applies,
	],
	[
		'a sandbox is returned when the server of its template answers',
		async ({ sdk, make, plain }) => {
			const { Template, waitForPort } = sdk;
			const name = fresh('server');
			const template = Template()
				.fromBaseImage()
				.setWorkdir('/srv/site')
				.runCmd('echo page >index.html')
				.setStartCmd('sleep 0.3; exec python3 -m http.server 8123', waitForPort(8123));

			await Template.build(template, name);
			const box = await make(name, { timeoutMs: 60000 });
			const page = await fetch(`${plain ? process.env.E2B_API_URL : `https://${box.getHost(8123)}`}/index.html`, {
				headers: plain ? { 'e2b-sandbox-id': box.sandboxId, 'e2b-sandbox-port': '8123' } : {},
			});

			assert.equal(await page.text(), 'page\n');
			assert.ok((await box.commands.list()).some((p) => p.args.join(' ').includes('http.server')));
		},
		applies,
	],
];
