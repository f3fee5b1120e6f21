// panels.mjs - what stands beside the files of a box: environment variables, packages without a registry, problems, ports.
// Started by tests/system/ui_panels.sh.
import { gone, newBox, open } from './boxes.mjs'
import { accessible, call, runAll } from './kit.mjs'
import { has, is, ok, soon, test } from './tap.mjs'

const { UI_SHOTS } = process.env
const envOf = async (box) => (await call('GET', `/v1/boxes/${box}/env`)).body.env

test('variables: add, change, remove with undo; secrets are covered; programs get them', async (x) => {
	const box = await newBox({}, { env: { API_TOKEN: 'very-secret', MODE: 'slow' } }), page = x.page = await open(box)
	await page.click('.side-tabs [title=Variables]')
	await page.waitForSelector('.env-list li')
	const row = (name) => page.locator('.env-list li', { hasText: name })
	ok(!(await page.textContent('.env-list')).includes('very-secret'), 'covered')
	await page.click('[aria-label="Show the value of API_TOKEN"]')
	await soon('shown', async () => (await row('API_TOKEN').textContent()).includes('very-secret'))
	await page.fill('.variables input >> nth=0', 'GREETING')
	await page.fill('.variables input >> nth=1', 'hello = world')
	await page.keyboard.press('Enter')
	await soon('set', async () => (await envOf(box)).GREETING === 'hello = world')
	is((await call('POST', `/v1/boxes/${box}/execs`, { command: 'echo $GREETING' })).body.stdout, 'hello = world\n')
	await page.click('[aria-label="Change MODE"]')
	await page.waitForSelector('.env-list .name-field:focus')
	await page.keyboard.press('Control+a')
	await page.keyboard.type('fast')
	await page.keyboard.press('Enter')
	await soon('changed', async () => (await envOf(box)).MODE === 'fast')
	// Another client changes something else meanwhile: both changes stay.
	await call('PUT', `/v1/boxes/${box}/env`, { env: { ...await envOf(box), OTHER: '1' } })
	await page.click('[aria-label="Remove MODE"]')
	await soon('removed', async () => !('MODE' in await envOf(box)))
	is((await envOf(box)).OTHER, '1')
	await page.click('.toast >> text=Undo')
	await soon('back', async () => (await envOf(box)).MODE === 'fast')
	await page.fill('.variables input >> nth=0', '1-bad name')
	await page.keyboard.press('Enter')
	has(await page.textContent('.variables .problem'), 'A name has letters')
	await gone(box)
})

test('a viewer sees names and no values', async (x) => {
	const box = await newBox({}, { env: { PLAIN: 'visible-to-editors' } }), k = (await call('POST', '/v1/keys', { name: `look-${process.pid}`, role: 'viewer' })).body.key, page = x.page = await open(box, null, { key: k })
	await page.click('.side-tabs [title=Variables]')
	await page.waitForSelector('.env-list li')
	has(await page.textContent('.env-list'), 'hidden from viewers')
	ok(await page.isDisabled('[aria-label="Remove PLAIN"]'), 'may not remove')
	await gone(box)
})

test('packages without a registry: the error names the setting', async (x) => {
	const box = await newBox(), page = x.page = await open(box)
	await page.click('.side-tabs [title=Packages]')
	await page.waitForSelector('.packages .pkg-list')
	await page.fill('.pkg-form input', 'requests')
	await page.keyboard.press('Enter')
	await page.waitForSelector('.pkg-fault')
	has(await page.textContent('.pkg-fault'), 'no source for pip packages is configured: set packages.pip_index')
	await gone(box)
})

for (const theme of ['light', 'dark'])
	test(`variables are accessible: ${theme}`, async (x) => {
		const box = await newBox({}, { env: { API_TOKEN: 'very-secret', DATABASE_URL: 'postgres://db.internal/sales', MODE: 'fast', EMPTY: '' } }), page = x.page = await open(box, null, { theme })
		await page.click('.side-tabs [title=Variables]')
		await page.waitForSelector('.env-list li')
		if (UI_SHOTS) await page.screenshot({ path: `${UI_SHOTS}/variables-${theme}.png` })
		await accessible(page, 'variables')
		await gone(box)
	})

await runAll()
