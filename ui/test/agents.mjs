// agents.mjs - Agents in a browser, step by step, with a model that replies from a script; and records of runs: all of it, compared, repeated.
import { writeFileSync } from 'node:fs'
import { accessible, call, runAll, signedIn, url } from './kit.mjs'
import { soon, soonHas, soonIs, soonOk, test } from './tap.mjs'

const open = async (page, path) => { await page.goto(url + path); await page.waitForSelector('#main') }
/** A task whose model says these replies, one per step. */
function script(name, replies) {
	writeFileSync(`${process.env.MODEL_SCRIPTS}/${name}.json`, JSON.stringify(replies.map((r) => r.never ? r : JSON.stringify(r))))
	return `script ${name}`
}
const command = (text) => ({ tool: 'run_command', args: { command: text } })
const short = [command("echo '<b>first</b>'"), { tool: 'write_file', args: { path: 'made.txt', content: 'by the agent' } }, command('exit 3'), { done: true, result: 'all is done' }]

test('empty, loading, error and missing states of agents', async (x) => {
	const page = x.page = await signedIn()
	let release
	const held = new Promise((r) => { release = r })
	await page.route('**/v1/agents?*', async (r) => { await held; await r.continue() })
	await open(page, '/agents')
	await page.waitForSelector('.list .bone')
	release()
	await page.waitForSelector('.list .empty >> text=atoll agent run')
	await page.unroute('**/v1/agents?*')
	await page.route('**/v1/agents?*', (r) => r.abort())
	await open(page, '/agents')
	const error = page.locator('.list .state[role=alert]')
	await error.waitFor()
	await page.unroute('**/v1/agents?*')
	await error.locator('text=Retry').click()
	await page.waitForSelector('.list .empty')
	await open(page, '/agents/aaaaaaaaaaaa')
	await page.waitForSelector('.state[role=alert] >> text=no such agent')
})

test('an agent is started from the page; its steps stay after its end', async (x) => {
	const page = x.page = await signedIn()
	await page.keyboard.press('Escape')
	await page.click('.rail >> text=Agents')
	await page.waitForSelector('#task')
	await page.fill('#task', script('short', short))
	await page.press('#task', 'Control+Enter')
	await page.waitForSelector('.verdict.ok >> text=Done')
	await soonHas(() => page.textContent('.record'), 'all is done')
	await soonIs(() => page.locator('.steps > li').count(), 3)
	await soonHas(() => page.textContent('.steps > li >> nth=0'), '<b>first</b>')
	await soonHas(() => page.textContent('.steps > li >> nth=1'), 'by the agent')
	await soonOk(async () => await page.locator('.steps > li.bad').count() === 1, 'the failed command is not marked')
	await page.reload()
	await page.waitForSelector('.steps > li')
	await soonIs(() => page.locator('.steps > li').count(), 3)
	await page.click('.crumbs >> text=Agents')
	await page.waitForSelector('.runs >> text=Done')
})

test('an agent that works is followed step by step and can be stopped', async (x) => {
	const page = x.page = await signedIn()
	await open(page, '/agents')
	await page.waitForSelector('#task')
	await page.fill('#task', script('slow', [command('echo the first step'), { never: true }]))
	await page.click('.ask button[type=submit]')
	await page.waitForSelector('.steps >> text=the first step')
	await page.waitForSelector('.steps >> text=The model decides the next step')
	await page.click('.card header >> text=Stop')
	await soon('the card leaves', async () => await page.locator('.steps').count() === 0)
	await page.waitForSelector('.runs >> text=Stopped')
	await soon('its box has ended', async () => (await call('GET', '/v1/boxes')).body.items.length === 0)
	await page.click('.runs >> text=Stopped')
	await page.waitForSelector('.steps >> text=the first step') // what it did is stored
})

// ---- runs ----

test('a record has everything, as facts and as JSON', async (x) => {
	const page = x.page = await signedIn()
	const { id } = (await call('POST', '/v1/run', { language: 'python', code: 'print("out")\n' })).body
	await open(page, `/runs/${id}`)
	await page.waitForSelector('.facts')
	for (const part of ['CPU time', 'Reads and writes', 'oom kills', 'Start of the box', 'landlock']) await soonHas(() => page.textContent('.record'), part)
	await page.click('.record footer >> text=JSON')
	await soonHas(() => page.textContent('pre.text'), `"id": "${id}"`)
})

test('a run is repeated, and the two are compared', async (x) => {
	const page = x.page = await signedIn()
	const { id } = (await call('POST', '/v1/run', { language: 'python', code: 'print("the same again")\n' })).body
	await open(page, `/runs/${id}`)
	await page.click('text=Run again')
	await page.waitForSelector('.run-compare')
	await soonHas(() => page.url(), `with=${id}`)
	await page.waitForSelector('pre.text >> text=the same again')
	await page.waitForSelector(`text=replay of >> xpath=.. >> text=${id}`)
	await soonOk(async () => await page.locator('.run-compare tr:not(.differs)').count() > 3, 'everything differs')
	const other = (await call('POST', '/v1/run', { language: 'python', code: 'raise SystemExit(4)\n' })).body.id
	await page.locator(`select[aria-label="Compare with"] option[value="${other}"]`).waitFor({ state: 'attached' })
	await page.selectOption('select[aria-label="Compare with"]', other)
	await page.waitForSelector('.run-compare .differs >> text=status 4')
	await page.click('.list >> text=Close')
	await soon('the comparison leaves', async () => await page.locator('.run-compare').count() === 0)
})

for (const theme of ['light', 'dark'])
	test(`axe finds nothing on agents and records: ${theme}`, async (x) => {
		const page = x.page = await signedIn({ theme })
		const { id } = (await call('POST', '/v1/agents', { task: script(`axe-${theme}`, short) })).body
		await open(page, '/agents')
		await page.waitForSelector('.runs')
		await accessible(page, 'agents')
		await open(page, `/agents/${id}`)
		await page.waitForSelector('.steps > li')
		await accessible(page, 'an agent')
		const a = (await call('POST', '/v1/run', { language: 'python', code: 'print(1)' })).body.id, b = (await call('POST', '/v1/run', { language: 'python', code: '1/0' })).body.id
		await open(page, `/runs/${a}?with=${b}`)
		await page.waitForSelector('.run-compare')
		await accessible(page, 'two runs')
		await page.setViewportSize({ width: 390, height: 844 })
		await soonIs(() => page.evaluate(() => document.documentElement.scrollWidth), 390)
	})

await runAll()
