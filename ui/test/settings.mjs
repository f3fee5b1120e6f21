// settings.mjs - Settings, Events and the audit log in a browser: keys, teams, models, about; all states.
import { accessible, call, link, newPage, runAll, signedIn, url } from './kit.mjs'
import { is, ok, soon, soonHas, soonIs, soonOk, test } from './tap.mjs'

const open = async (page, path) => { await page.goto(url + path); await page.waitForSelector('#main') }
async function viewerPage() {
	const page = await newPage()
	await page.goto(link('--role', 'viewer'))
	await page.waitForSelector('.cm-content')
	return page
}

test('a key is created, its secret shown once and good for its role, then revoked', async (x) => {
	const page = x.page = await signedIn()
	await page.keyboard.press('Escape')
	await page.click('.rail >> text=Settings')
	await page.fill('#key-name', 'from-the-page')
	await page.selectOption('.fields select >> nth=0', 'viewer')
	await page.selectOption('.fields select >> nth=2', '7')
	await page.press('#key-name', 'Enter')
	await page.waitForSelector('dialog >> text=shown only this once')
	const secret = await page.textContent('dialog code')
	ok(/^e2b_[0-9a-f]{40}$/.test(secret), secret)
	await soonIs(async () => (await call('GET', '/v1/boxes', undefined, secret)).status, 200)
	is((await call('POST', '/v1/boxes', {}, secret)).status, 403)
	await page.click('text=I have stored it')
	const row = page.locator('.keys-table tbody tr', { hasText: 'from-the-page' })
	await soonHas(() => row.textContent(), 'Viewer')
	await soonOk(async () => !(await page.content()).includes(secret), 'the secret is still in the page')
	await row.locator('text=Revoke').click()
	await page.click('dialog .stop')
	await soon('gone from the table', async () => await row.count() === 0)
	await soonIs(async () => (await call('GET', '/v1/boxes', undefined, secret)).status, 401)
})

test('a secret is set, listed without its value and deleted; a viewer sees its name only', async (x) => {
	const page = x.page = await signedIn(), value = 'value-that-is-not-shown'
	await open(page, '/settings/secrets')
	await page.waitForSelector('.empty >> text=There is no secret.')
	await page.fill('#secret-name', 'PAGE_KEY')
	await page.fill('#secret-value', value)
	await page.press('#secret-value', 'Enter')
	const row = page.locator('.secrets-table tbody tr', { hasText: 'PAGE_KEY' })
	await row.waitFor()
	await soonOk(async () => !(await page.content()).includes(value) && await page.inputValue('#secret-value') === '', 'the value is still in the page')
	const { id } = (await call('POST', '/v1/boxes', { secrets: [{ name: 'PAGE_KEY' }] })).body
	is((await call('POST', `/v1/boxes/${id}/execs`, { command: 'printf %s "$PAGE_KEY" | wc -c' })).body.stdout.trim(), String(value.length))
	await call('DELETE', `/v1/boxes/${id}`)
	await accessible(page, 'secrets')
	const other = await viewerPage()
	await open(other, '/settings/secrets')
	await other.waitForSelector('.secrets-table >> text=PAGE_KEY')
	await soonIs(() => other.isDisabled('#secret-name'), true)
	await other.context().close()
	await row.locator('text=Delete').click()
	await page.click('dialog .stop')
	await page.waitForSelector('.empty >> text=There is no secret.')
	await soonIs(async () => (await call('GET', '/v1/secrets/PAGE_KEY')).status, 404)
})

test('a key can be bound to one box', async (x) => {
	const page = x.page = await signedIn()
	const { id } = (await call('POST', '/v1/boxes', { name: 'mine' })).body
	await call('POST', '/v1/boxes', { name: 'other' })
	await open(page, '/settings/keys')
	await page.locator('.fields option', { hasText: 'only box mine' }).waitFor({ state: 'attached' })
	await page.fill('#key-name', 'bound')
	await page.selectOption('.fields select >> nth=1', id)
	await page.click('.fields button[type=submit]')
	const secret = await page.textContent('dialog code')
	await soonIs(async () => (await call('GET', '/v1/boxes/mine', undefined, secret)).status, 200)
	ok((await call('GET', '/v1/boxes/other', undefined, secret)).status >= 400, 'the key opens another box')
	for (const name of ['mine', 'other']) await call('DELETE', `/v1/boxes/${name}`)
})

test('a name that exists is an error with its reason', async (x) => {
	const page = x.page = await signedIn()
	await open(page, '/settings/keys')
	await page.fill('#key-name', 'tests') // the key of this file
	await page.click('.fields button[type=submit]')
	await page.waitForSelector('.toast.bad')
})

test('teams: a new one, its quotas, and that it is gone', async (x) => {
	const page = x.page = await signedIn()
	await call('POST', '/v1/run', { command: 'true' })
	await open(page, '/settings/teams')
	await page.waitForSelector('.days li')
	await page.click('text=New team')
	await page.fill('#team-name', 'green')
	await page.fill('dialog .field >> nth=1 >> input', '7')
	await page.click('dialog button[type=submit]')
	const row = page.locator('.rows tbody tr', { hasText: 'green' })
	await row.waitFor()
	await soonIs(async () => (await call('GET', '/v1/teams/green')).body.own.boxes, 7)
	await row.locator('text=Quotas').click()
	await page.fill('dialog .field >> nth=0 >> input', '')
	await page.click('dialog button[type=submit]')
	await soon('the standard again', async () => (await call('GET', '/v1/teams/green')).body.own.boxes === null)
	await row.locator('[aria-label="Delete team green"]').click()
	await soon('gone', async () => await row.count() === 0)
	await soonIs(async () => (await call('GET', '/v1/teams/green')).status, 404)
})

test('models: that there is none, and the policy of pipelines', async (x) => {
	const page = x.page = await signedIn()
	await open(page, '/settings/models')
	await page.waitForSelector('.empty >> text=No language model is configured')
	await page.selectOption('.fields select', 'warn')
	await soon('the policy is stored', async () => (await call('GET', '/v1/pipelines/policy')).body.scan === 'warn')
	await page.selectOption('.fields select', 'block')
	await soon('and again', async () => (await call('GET', '/v1/pipelines/policy')).body.scan === 'block')
})

test('about says what runs here; the theme can be chosen', async (x) => {
	const page = x.page = await signedIn()
	await open(page, '/settings/about')
	await page.waitForSelector('.language-list >> text=Python')
	await soonHas(() => page.textContent('.facts'), (await call('GET', '/v1/info')).body.version)
	await page.selectOption('.fields select', 'dark')
	await soonIs(() => page.evaluate(() => document.documentElement.dataset.theme), 'dark')
})

test('the doctor checks the machine, again when asked; a viewer learns that it is for owners', async (x) => {
	const page = x.page = await signedIn()
	await open(page, '/settings/about')
	await page.waitForSelector('.findings tbody tr')
	const rows = (await call('GET', '/v1/doctor')).body.items
	await soonIs(() => page.locator('.findings tbody tr').count(), rows.length)
	await soonHas(() => page.textContent('.findings tr:has-text("keeper")'), rows.find((r) => r.name === 'keeper').value.slice(0, 6))
	const [asked] = await Promise.all([page.waitForResponse('**/v1/doctor'), page.click('text=Check again')])
	is(asked.status(), 200)
	await page.context().close()
	const other = x.page = await viewerPage()
	await open(other, '/settings/about')
	await other.waitForSelector('.empty >> text=Only an owner')
})

test('a viewer learns that keys, quotas and the audit log are for owners', async (x) => {
	const page = x.page = await viewerPage()
	await open(page, '/settings/keys')
	await page.waitForSelector('.empty >> text=Only an owner')
	await open(page, '/settings/teams')
	await page.waitForSelector('.rows >> text=default')
	is(await page.locator('text=New team').count(), 0)
	await open(page, '/activity?view=audit')
	await page.waitForSelector('.empty >> text=Only an owner')
})

test('events are live, filtered by box and kind, and lead to the run', async (x) => {
	const page = x.page = await signedIn()
	await open(page, '/activity')
	await page.waitForSelector('.rows, .empty')
	const { id } = (await call('POST', '/v1/boxes', { name: 'seen' })).body
	await page.waitForSelector('.rows tbody tr >> nth=0 >> text=Box created')
	await call('POST', '/v1/boxes/seen/execs', { command: 'exit 3' })
	await page.waitForSelector('.rows tbody tr >> nth=0 >> text=Program ended')
	await page.selectOption('select[aria-label=Kind]', 'box.created')
	await soon('only this kind', async () => (await page.$$eval('.rows tbody .mark', (l) => l.map((e) => e.textContent))).every((s) => s === 'Box created'))
	await page.selectOption('select[aria-label=Kind]', '')
	await page.fill('input[type=search]', id)
	await page.press('input[type=search]', 'Enter')
	await soon('only this box', async () => (await page.$$eval('.rows tbody tr td:nth-child(3)', (l) => l.map((e) => e.textContent))).join() === 'seen,seen')
	await soonHas(() => page.url(), `box=${id}`)
	await page.click('.rows a[href^="/runs/"]')
	await page.waitForSelector('.record >> text=status 3')
	await call('DELETE', '/v1/boxes/seen')
})

test('the audit log has each action with its key, and can be searched', async (x) => {
	const page = x.page = await signedIn()
	await call('POST', '/v1/boxes', { name: 'audited' })
	await open(page, '/activity?view=audit')
	await page.waitForSelector('.rows >> text=box.create')
	await page.fill('input[aria-label=Action]', 'box.create')
	await page.press('input[aria-label=Action]', 'Enter')
	await soon('only this action', async () => (await page.$$eval('.rows .expand', (l) => l.map((e) => e.textContent))).every((s) => s === 'box.create'))
	await page.click('.rows .expand >> nth=0')
	await page.waitForSelector('.detail pre >> text=request')
	await call('DELETE', '/v1/boxes/audited')
})

test('loading, error and offline states', async (x) => {
	const page = x.page = await signedIn()
	for (const [path, pattern] of [['/settings/keys', '**/v1/keys?*'], ['/activity', '**/v1/events?*'], ['/activity?view=audit', '**/v1/audit?*'], ['/settings/teams', '**/v1/teams'], ['/settings/about', '**/v1/info']]) {
		let release
		const held = new Promise((r) => { release = r })
		if (pattern !== '**/v1/info') await page.route(pattern, async (r) => { await held; await r.abort() })
		else await page.route(pattern, (r) => r.abort())
		await open(page, path)
		if (pattern !== '**/v1/info') await page.waitForSelector('.list .bone')
		release()
		const error = page.locator('.list .state[role=alert]').first()
		await error.waitFor()
		await page.unroute(pattern)
		await error.locator('text=Retry').click()
		await soon(`${path} is there`, async () => await page.locator('.list .state[role=alert]').count() === 0)
	}
	await page.context().setOffline(true)
	await page.waitForSelector('.banner')
	await page.context().setOffline(false)
	await soon('the banner leaves', async () => await page.locator('.banner').count() === 0)
})

const screens = {
	'Keys and Teams': [['/settings/keys', '.keys-table'], ['/settings/teams', '.days']], 'Models and About': [['/settings/models', '.empty'], ['/settings/about', '.findings']],
	'Events and the audit log': [['/activity', '.rows'], ['/activity?view=audit', '.rows']],
}
for (const theme of ['light', 'dark'])
	for (const [name, paths] of Object.entries(screens))
		test(`axe finds nothing on ${name}, at both widths: ${theme}`, async (x) => {
			const page = x.page = await signedIn({ theme })
			await call('POST', '/v1/run', { command: 'true' })
			for (const [path, there] of paths) {
				await open(page, path)
				await page.waitForSelector(there)
				await page.setViewportSize({ width: 390, height: 844 })
				await soonIs(() => page.evaluate(() => document.documentElement.scrollWidth), 390, path)
				await accessible(page, `${path} at 390 px`)
				await page.setViewportSize({ width: 1280, height: 800 })
				await accessible(page, path)
			}
		})

test('axe finds nothing on the dialog with a new key', async (x) => {
	const page = x.page = await signedIn()
	await open(page, '/settings/keys')
	await page.fill('#key-name', 'axe')
	await page.click('.fields button[type=submit]')
	await page.waitForSelector('dialog code')
	await accessible(page, 'a new key')
	await call('DELETE', '/v1/keys/axe')
})

await runAll()
