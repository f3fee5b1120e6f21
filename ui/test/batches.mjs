// batches.mjs - Batches in a browser: started from the page, followed, filtered, cancelled; all states.
import { readFileSync } from 'node:fs'
import { accessible, call, link, newPage, runAll, signedIn, url } from './kit.mjs'
import { is, soon, soonHas, soonIs, soonOk, test } from './tap.mjs'

const open = async (page, path) => { await page.goto(url + path); await page.waitForSelector('#main') }
const good = { id: 'good', code: 'print(6 * 7)', expected: '42\n' }, wrong = { id: 'wrong', code: 'print("<b>41</b>")', expected: '42\n' }, broken = { id: 'broken', code: 'raise ValueError("it broke")' }
const endless = { id: 'endless', code: 'import time\ntime.sleep(300)', timeout_ms: 300000 }
async function begin(page, items) {
	await open(page, '/batches')
	await page.waitForSelector('#items')
	await page.fill('#items', items.map((i) => JSON.stringify(i)).join('\n'))
	await page.click('.ask button[type=submit]')
	await page.waitForSelector('.batch-figures')
	return page.url().split('/').pop()
}

test('empty, loading, error and missing states', async (x) => {
	const page = x.page = await signedIn()
	let release
	const held = new Promise((r) => { release = r })
	await page.route('**/v1/batch?*', async (r) => { await held; await r.continue() })
	await open(page, '/batches')
	await page.waitForSelector('.list .bone')
	release()
	await page.waitForSelector('.list .empty >> text=atoll batch items.jsonl')
	await page.unroute('**/v1/batch?*')
	await page.route('**/v1/batch?*', (r) => r.abort())
	await open(page, '/batches')
	const error = page.locator('.list .state[role=alert]')
	await error.waitFor()
	await soonHas(() => error.textContent(), 'does not answer')
	await page.unroute('**/v1/batch?*')
	await error.locator('text=Retry').click()
	await page.waitForSelector('.list .empty')
	await open(page, '/batches/aaaaaaaaaaaa')
	await page.waitForSelector('.state[role=alert] >> text=no such batch')
})

test('a batch from the page: each item has its result, with what it printed', async (x) => {
	const page = x.page = await signedIn()
	const id = await begin(page, [good, wrong, broken, { nonsense: 1 }])
	await page.waitForSelector('.verdict.bad >> text=Finished')
	await soonHas(() => page.textContent('.verdict'), '4 of 4 results')
	await soonIs(async () => (await page.$$eval('.batch-figures dl > div', (l) => l.slice(0, 3).map((d) => d.textContent))).join(), 'Passed1,Failed2,Not run1')
	const row = (name) => page.locator('.results tbody tr', { hasText: name })
	await row('good').waitFor()
	await soonHas(() => row('wrong').textContent(), 'other output')
	await row('wrong').locator('.expand').click()
	await page.waitForSelector('.detail pre >> text=<b>41</b>') // as text
	await row('broken').first().locator('.expand').click()
	await page.waitForSelector('.detail pre.bad >> text=it broke')
	await page.click('.langs >> text=Passed')
	await soon('only what passed', async () => await page.locator('.results tbody tr').count() === 1)
	await soonHas(() => page.url(), 'show=passed')
	const [saved] = await Promise.all([page.waitForEvent('download'), page.click('text=Download the results')])
	const lines = readFileSync(await saved.path(), 'utf8').trim().split('\n').map((l) => JSON.parse(l))
	is(lines.filter((l) => l.type === 'result').length, 4)
	await page.click('.record footer >> text=Delete')
	await page.waitForSelector('#items')
	await soonIs(async () => (await call('GET', `/v1/batch/${id}`)).status, 404)
})

test('one that runs is followed, survives a lost connection, and can be cancelled', async (x) => {
	const page = x.page = await signedIn()
	await begin(page, [good, endless])
	await page.waitForSelector('.results >> text=good')
	await page.waitForSelector('.verdict.running >> text=1 running now')
	await page.context().setOffline(true)
	await page.waitForSelector('.banner')
	await page.context().setOffline(false)
	await page.waitForSelector('.top .conn.live')
	await soon('the banner leaves', async () => await page.locator('.banner').count() === 0)
	await page.click('text=Cancel the batch')
	await page.waitForSelector('.verdict.stopped >> text=Cancelled')
	is(await page.locator('.results >> text=good').count(), 1, 'a result is shown twice')
})

test('a file of items is sent, and the list shows its progress', async (x) => {
	const page = x.page = await signedIn()
	await open(page, '/batches')
	await page.waitForSelector('#items')
	const text = Array.from({ length: 150 }, (_, i) => JSON.stringify({ id: `n${i}`, command: `echo ${i}`, expected: `${i}\n` })).join('\n') + '\n'
	await page.setInputFiles('input[type=file]', { name: 'items.jsonl', mimeType: 'application/x-ndjson', buffer: Buffer.from(text) })
	await page.waitForSelector('.verdict.ok >> text=150 of 150 results', { timeout: 120000 })
	await page.waitForSelector('.results')
	await soon('all results are read', async () => await page.locator('.results tbody tr').count() === 100)
	await page.click('.results ~ p >> text=Load more')
	await soon('more of them', async () => await page.locator('.results tbody tr').count() === 150)
	await page.click('.crumbs >> text=Batches')
	await page.waitForSelector('.runs >> text=150 passed')
})

test('a viewer may read and not start', async (x) => {
	const page = x.page = await newPage()
	await page.goto(link('--role', 'viewer'))
	await page.waitForSelector('.cm-content')
	await open(page, '/batches')
	await page.waitForSelector('#items:disabled')
	await soonOk(() => page.isDisabled('text=Send a file'), 'a file can be sent')
})

for (const theme of ['light', 'dark'])
	test(`axe finds nothing on Batches, at both widths: ${theme}`, async (x) => {
		const page = x.page = await signedIn({ theme })
		await begin(page, [good, wrong, broken, { nonsense: 1 }])
		await page.waitForSelector('.verdict.bad >> text=Finished')
		await page.locator('.results tbody tr', { hasText: 'broken' }).locator('.expand').click()
		await page.waitForSelector('.detail')
		await accessible(page, 'a batch')
		await page.setViewportSize({ width: 390, height: 844 })
		await accessible(page, 'a batch at 390 px')
		await soonIs(() => page.evaluate(() => document.documentElement.scrollWidth), 390)
		await open(page, '/batches')
		await page.waitForSelector('.runs')
		await accessible(page, 'batches at 390 px')
		await page.setViewportSize({ width: 1280, height: 800 })
		await accessible(page, 'batches')
	})

await runAll()
