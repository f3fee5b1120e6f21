// templates.mjs - templates in a browser: the list, builds with their log, a box of one; all states.
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { accessible, call, link, newPage, runAll, signedIn, url } from './kit.mjs'
import { has, is, ok, soon, test } from './tap.mjs'

const open = async (page, path) => { await page.goto(url + path); await page.waitForSelector('#main') }
const row = (page, name) => page.locator('.templates tbody tr', { has: page.locator(`a:text-is("${name}")`) })
const build = async (name, dockerfile) => {
	const b = (await call('POST', '/v1/templates', { name, source: { files: { Dockerfile: dockerfile }, file: 'Dockerfile' } })).body
	await soon(`the build of ${name} ends`, async () => !['waiting', 'building'].includes((await call('GET', `/v1/builds/${b.id}`)).body.state))
	return b.id
}
async function fillDialog(page, name, dockerfile) {
	await open(page, '/templates')
	await row(page, 'base').waitFor()
	await page.click('.list > header >> text=Build')
	await page.waitForSelector('dialog[open]')
	await page.fill('#build-name', name)
	await page.fill('#build-text', dockerfile)
	await page.click('dialog button[type=submit]')
	await page.waitForSelector('.record.build')
}

test('loading, error and missing states; templates that are not built', async (x) => {
	const page = x.page = await signedIn()
	let release
	const held = new Promise((r) => { release = r })
	await page.route('**/v1/templates', async (r) => { await held; await r.continue() })
	await open(page, '/templates')
	await page.waitForSelector('.list .bone')
	release()
	await row(page, 'base').waitFor()
	await page.unroute('**/v1/templates')
	has(await row(page, 'base').textContent(), 'Ready')
	has(await row(page, 'vue-developer').textContent(), 'Not built')
	has(await row(page, 'vue-developer').textContent(), 'packages.npm_registry is not set')
	ok(await row(page, 'vue-developer').locator('button').isDisabled(), 'a box of a template that is not built')
	await page.route('**/v1/templates', (r) => r.abort())
	await open(page, '/templates')
	const error = page.locator('.list .state[role=alert]')
	await error.waitFor()
	has(await error.textContent(), 'does not answer')
	await page.unroute('**/v1/templates')
	await error.locator('text=Retry').click()
	await row(page, 'base').waitFor()
	await open(page, '/templates/nosuch')
	await page.waitForSelector(".state[role=alert] >> text=there is no template 'nosuch'")
})

test('a Dockerfile is built from the page; its steps are shown, and a box of it starts', async (x) => {
	const page = x.page = await signedIn()
	await fillDialog(page, 'paged', 'FROM base\nRUN echo from the step; echo content >/home/user/made\nENV GREETING=hello\n')
	await page.waitForSelector('.record.build .verdict.ok >> text=Ready')
	await page.waitForSelector('.build-steps >> text=RUN echo from the step')
	await page.click('.build-steps .step:has-text("RUN echo from the step")')
	await page.waitForSelector('.build-steps pre >> text=from the step')
	await soon('the tag is shown', async () => (await page.textContent('.record.build .verdict')).includes('default'))
	await page.waitForSelector('.facts >> text=GREETING=hello')
	await page.click('.record footer >> text=New box')
	await page.waitForURL('**/b/*')
	const box = page.url().split('/').pop()
	is((await call('GET', `/v1/boxes/${box}`)).body.template, 'paged')
	is((await call('POST', `/v1/boxes/${box}/execs`, { command: 'cat made; echo $GREETING' })).body.stdout, 'content\nhello\n')
	await call('DELETE', `/v1/boxes/${box}`)
	await open(page, '/') // the template of a new box can be chosen there
	await page.waitForSelector('select.template option[value=paged]', { state: 'attached' })
	await page.selectOption('select.template', 'paged')
	await page.click('.list > header >> text=New box')
	await page.waitForURL('**/b/*')
	is((await call('GET', `/v1/boxes/${page.url().split('/').pop()}`)).body.template, 'paged')
	await call('DELETE', `/v1/boxes/${page.url().split('/').pop()}`)
})

test('a failing step is shown with its line and output; steps that were built before are marked', async (x) => {
	const page = x.page = await signedIn()
	await fillDialog(page, 'broken', 'FROM base\nRUN echo one\nRUN echo it broke here >&2; exit 3\n')
	await page.waitForSelector('.record.build .verdict.bad >> text=Failed')
	const reason = page.locator('.build .reason')
	await reason.waitFor()
	has(await reason.textContent(), 'exited with status 3')
	has(await reason.textContent(), 'Line 3')
	has(await reason.textContent(), 'it broke here')
	await fillDialog(page, 'broken', 'FROM base\nRUN echo one\nRUN echo two\n')
	await page.waitForSelector('.record.build .verdict.ok >> text=Ready')
	await page.waitForSelector('.build-steps li:has-text("RUN echo one") >> text=CACHED')
	is(await page.locator('.build-steps li:has-text("RUN echo two") .tag').count(), 0)
	is(await page.locator('.runs li').count(), 2, 'both builds are listed')
	await page.click('.runs li >> nth=1')
	await page.waitForSelector('.record.build .verdict.bad')
	has(page.url(), 'build=')
})

test('a syntax error is an error of the dialog', async (x) => {
	const page = x.page = await signedIn()
	await open(page, '/templates')
	await row(page, 'base').waitFor()
	await page.click('.list > header >> text=Build')
	await page.fill('#build-name', 'wrong')
	await page.fill('#build-text', 'FROM base\nRUNN x\n')
	await page.click('dialog button[type=submit]')
	await page.waitForSelector('.toast >> text=Dockerfile:2')
	ok(await page.isVisible('dialog[open]'), 'the dialog was closed')
	is((await call('GET', '/v1/templates/wrong')).status, 404)
})

test('a running build is followed, found again after a reload, and cancelled', async (x) => {
	const page = x.page = await signedIn()
	await fillDialog(page, 'endless', 'FROM base\nRUN echo it has begun; sleep 1000\n')
	await page.waitForSelector('.build-steps pre >> text=it has begun')
	await page.waitForSelector('.record.build .verdict.running >> text=step 1 of 1')
	await page.reload()
	await page.waitForSelector('.build-steps pre >> text=it has begun')
	await page.context().setOffline(true)
	await page.waitForSelector('.banner')
	await page.context().setOffline(false)
	await page.waitForSelector('.top .conn.live')
	await soon('the banner leaves', async () => await page.locator('.banner').count() === 0)
	await page.click('text=Cancel the build')
	await page.waitForSelector('.record.build .verdict.stopped >> text=Cancelled')
	await page.click('.record footer >> text=Delete')
	await page.click('dialog button.danger')
	await row(page, 'base').waitFor()
	is((await call('GET', '/v1/templates/endless')).status, 404)
})

test('a folder is packed in the browser, and its files are copied by the build', async (x) => {
	const page = x.page = await signedIn(), root = mkdtempSync(join(process.env.TMPDIR ?? tmpdir(), 'folder-')), long = `${'deep-folder-name/'.repeat(12)}leaf.txt`
	try {
		mkdirSync(join(root, 'app', long, '..'), { recursive: true })
		writeFileSync(join(root, 'app', 'Dockerfile'), 'FROM base\nCOPY . /home/user/app\n')
		writeFileSync(join(root, 'app', 'a ü.txt'), 'x'.repeat(1000))
		writeFileSync(join(root, 'app', long), 'long')
		await open(page, '/templates')
		await row(page, 'base').waitFor()
		await page.click('.list > header >> text=Build')
		await page.fill('#build-name', 'packed')
		await page.setInputFiles('dialog input[type=file]', join(root, 'app'))
		await page.waitForSelector('dialog .drop >> text=3 files')
		await soon('the Dockerfile of the folder is shown', async () => (await page.inputValue('#build-text')).includes('COPY'))
		await page.click('dialog button[type=submit]')
		await page.waitForSelector('.record.build .verdict.ok >> text=Ready')
	} finally { rmSync(root, { recursive: true, force: true }) }
	const box = (await call('POST', '/v1/boxes', { template: 'packed' })).body.id
	is((await call('POST', `/v1/boxes/${box}/execs`, { command: `wc -c <'app/a ü.txt'; cat 'app/${long}'` })).body.stdout, '1000\nlong')
	await call('DELETE', `/v1/boxes/${box}`)
})

test('a viewer may read and not build', async (x) => {
	const page = x.page = await newPage()
	await page.goto(link('--role', 'viewer'))
	await page.waitForSelector('.cm-content')
	await open(page, '/templates')
	await row(page, 'base').waitFor()
	ok(await page.isDisabled('.list > header >> text=Build'), 'a viewer can build')
	ok(await row(page, 'base').locator('button').isDisabled(), 'a viewer can create a box')
})

for (const theme of ['light', 'dark'])
	test(`axe finds nothing on Templates, at both widths: ${theme}`, async (x) => {
		const page = x.page = await signedIn({ theme })
		await build('looked-at', 'FROM base\nRUN echo one\nRUN echo two; false\n')
		for (const width of [1280, 390]) {
			await page.setViewportSize({ width, height: 844 })
			await open(page, '/templates/looked-at')
			await page.waitForSelector('.build .reason')
			await page.waitForSelector('.build-steps')
			await accessible(page, `a template at ${width} px`)
			is(await page.evaluate(() => document.documentElement.scrollWidth), width)
			await open(page, '/templates')
			await row(page, 'looked-at').waitFor()
			await accessible(page, `templates at ${width} px`)
			is(await page.evaluate(() => document.documentElement.scrollWidth), width)
			await page.click('.list > header >> text=Build')
			await page.waitForSelector('dialog[open]')
			await accessible(page, `the dialog at ${width} px`)
		}
	})

await runAll()
