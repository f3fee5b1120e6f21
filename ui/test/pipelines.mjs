// pipelines.mjs - Pipelines in a browser: started from the page, followed, answered, cancelled, repeated; all states.
import { accessible, call, newPage, link, runAll, signedIn, url } from './kit.mjs'
import { is, soon, soonHas, soonIs, soonOk, test } from './tap.mjs'

const mistyped = { task: 'print the sum', files: { 'main.py': 'values = [1, 2, 3]\n\nprnt(sum(values))\n' }, examples: [{ input: '', expected: '6\n' }] }
const asking = { task: 'run it', files: { 'main.py': 'print(input().upper())\n' } }
const slow = { task: 'run it slowly', files: { 'main.py': 'import time\nprint("it began", flush=True)\ntime.sleep(300)\n' } }
async function begin(body) {
	const a = await call('POST', '/v1/pipelines', body)
	is(a.status, 202)
	return a.body.id
}
async function report(body) {
	const id = await begin(body)
	await soon('the report', async () => (await call('GET', `/v1/pipelines/${id}?documents=0`)).body.state === 'finished')
	return id
}
const open = async (page, path) => { await page.goto(url + path); await page.waitForSelector('#main') }

test('empty, loading, error and missing states', async (x) => {
	const page = x.page = await signedIn()
	let release
	const held = new Promise((r) => { release = r })
	await page.route('**/v1/pipelines?*', async (r) => { await held; await r.continue() })
	await open(page, '/pipelines')
	await page.waitForSelector('.list .bone')
	release()
	await page.waitForSelector('.list .empty >> text=atoll pipeline run')
	await page.unroute('**/v1/pipelines?*')
	await page.route('**/v1/pipelines?*', (r) => r.abort())
	await open(page, '/pipelines')
	const error = page.locator('.list .state[role=alert]')
	await error.waitFor()
	await soonHas(() => error.textContent(), 'does not answer')
	await page.unroute('**/v1/pipelines?*')
	await error.locator('text=Retry').click()
	await page.waitForSelector('.list .empty')
	await open(page, '/pipelines/aaaaaaaaaaaa')
	await page.waitForSelector('.state[role=alert] >> text=no such pipeline')
})

test('a task that is typed becomes a plan, a program and a result, each of them readable', async (x) => {
	const page = x.page = await signedIn()
	await page.keyboard.press('Escape')
	await page.click('.rail >> text=Pipelines')
	await page.waitForSelector('#task')
	await soonOk(() => page.isDisabled('.ask button[type=submit]'), 'Start is enabled without a task')
	await page.fill('#task', 'Compute the mean and median of 3, 1 and 2 in Python')
	await page.press('#task', 'Control+Enter')
	await page.waitForSelector('.verdict.ok >> text=Verified')
	await soonHas(() => page.textContent('.document'), 'median: 2')
	await page.click('.stages button >> text=Plan, attempt 1')
	await page.waitForSelector('.document h3:text("Plan")')
	await soonHas(() => page.textContent('.document'), 'mean-median')
	await soonHas(() => page.url(), 'cell=1.planner')
	await page.click('.stages button >> text=Execute, attempt 1')
	await page.waitForSelector('.document h3:text("Result")')
	await soonHas(() => page.textContent('.document'), 'mean: 2')
	await page.click('.document >> text=JSON')
	await soonHas(() => page.textContent('.document pre'), '"atoll.result/1"')
	await page.click('.documents >> text=Log')
	await page.waitForSelector('.log >> text=run finished')
	await page.reload() // the address is the state
	await page.waitForSelector('.log >> text=run finished')
	await page.click('text=Replay attempt 1')
	await page.waitForSelector('text=The replay had the same result.')
	await page.click('.crumbs >> text=Pipelines')
	await page.waitForSelector('.runs >> text=Verified')
})

test('a second attempt is shown with what changed in it', async (x) => {
	const page = x.page = await signedIn()
	const id = await report(mistyped)
	await open(page, `/pipelines/${id}`)
	await page.waitForSelector('.verdict.ok >> text=Examples pass')
	await soonIs(() => page.locator('.stages tbody tr').count(), 2)
	await page.waitForSelector('.stages button.bad >> text=exit 1')
	await page.click('.stages button >> text=Code, attempt 2')
	await page.waitForSelector('.diff .del >> text=prnt(sum(values))')
	await page.waitForSelector('.diff .add >> text=print(sum(values))')
	await page.click('.stages button >> text=Debug, attempt 1')
	await soonHas(() => page.textContent('.document'), 'mistyped')
})

test('a question is answered on the page, and what follows is shown without a reload', async (x) => {
	const page = x.page = await signedIn()
	const id = await begin(asking)
	await open(page, `/pipelines/${id}`)
	await page.waitForSelector('.question >> text=What should it read?')
	await page.waitForSelector('.question textarea:focus')
	await page.keyboard.type('quiet words')
	await page.keyboard.press('Control+Enter')
	await page.waitForSelector('.verdict.ok >> text=Plausible')
	await soonIs(() => page.locator('.question').count(), 0)
	await soonHas(() => page.textContent('.document'), 'QUIET WORDS')
	await soonIs(() => page.locator('.stages tbody tr').count(), 2)
	await page.click('.stages button >> text=Debug, attempt 1')
	await page.waitForSelector('.document h3:text("Answer")')
})

test('one that runs is followed, survives a lost connection, and can be cancelled', async (x) => {
	const page = x.page = await signedIn()
	const id = await begin(slow)
	await open(page, `/pipelines/${id}?cell=log`)
	await page.waitForSelector('.cell.running')
	await page.waitForSelector('.log >> text=it began')
	await page.context().setOffline(true)
	await page.waitForSelector('.banner')
	await page.context().setOffline(false)
	await page.waitForSelector('.top .conn.live')
	await soon('the banner leaves', async () => await page.locator('.banner').count() === 0)
	await page.waitForSelector('.cell.running')
	await page.click('text=Cancel the pipeline')
	await page.waitForSelector('.verdict.stopped >> text=Cancelled')
	await page.waitForSelector('.log >> text=run finished')
	is(await page.locator('.log >> text=it began').count(), 1, 'an event is shown twice')
	await page.click('.record footer >> text=Delete')
	await page.waitForSelector('#task')
	await soonIs(async () => (await call('GET', `/v1/pipelines/${id}`)).status, 404)
})

test('the list is live and can be filtered by outcome', async (x) => {
	const page = x.page = await signedIn()
	await open(page, '/pipelines')
	await page.waitForSelector('#task')
	const id = await report({ task: 'ponder the imponderable' })
	await page.waitForSelector(`.runs a[href="/pipelines/${id}"]`)
	await page.selectOption('select[aria-label=Outcome]', 'not_understood')
	await soon('only this outcome', async () => (await page.$$eval('.runs .what .dim', (l) => l.map((e) => e.textContent))).every((s) => s.startsWith('Not understood')))
	await soonHas(() => page.url(), 'outcome=not_understood')
	await page.selectOption('select[aria-label=Outcome]', 'cancelled')
	await page.waitForSelector('text=No pipeline has this outcome.')
})

test('a viewer may read and not start', async (x) => {
	const page = x.page = await newPage()
	await page.goto(link('--role', 'viewer'))
	await page.waitForSelector('.cm-content')
	await open(page, '/pipelines')
	await page.waitForSelector('#task:disabled')
	await soonOk(() => page.isDisabled('.ask button[type=submit]'), 'Start is enabled')
})

for (const theme of ['light', 'dark']) {
	test(`axe finds nothing on the list of pipelines and on a question, at both widths: ${theme}`, async (x) => {
		const page = x.page = await signedIn({ theme })
		const waits = await begin(asking)
		await open(page, '/pipelines')
		await page.waitForSelector('.runs')
		await accessible(page, 'pipelines')
		await page.setViewportSize({ width: 390, height: 844 })
		await open(page, `/pipelines/${waits}`)
		await page.waitForSelector('.question')
		await accessible(page, 'a question at 390 px')
		await soonIs(() => page.evaluate(() => document.documentElement.scrollWidth), 390)
		await call('POST', `/v1/pipelines/${waits}/cancel`, {})
	})
	test(`axe finds nothing on any document of a pipeline: ${theme}`, async (x) => {
		const page = x.page = await signedIn({ theme })
		const over = await report(mistyped)
		for (const cell of ['', '?cell=1.planner', '?cell=2.coder', '?cell=1.executor', '?cell=1.debugger', '?cell=log']) {
			await open(page, `/pipelines/${over}${cell}`)
			await page.waitForSelector(cell === '?cell=log' ? '.log li' : '.document')
			await accessible(page, `a pipeline, ${cell}`)
		}
	})
}

await runAll()
