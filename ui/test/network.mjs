// network.mjs - the network of a box in a browser: rules, refusals, approvals. Started by tests/system/ui_network.sh, with a
// host "registry.test" that the operator permits.
import { gone, newBox, open } from './boxes.mjs'
import { accessible, call, runAll } from './kit.mjs'
import { soon, soonHas, soonIs, test } from './tap.mjs'

const host = `registry.test:${process.env.REGISTRY_PORT}`
const panel = async (page) => { await page.click('.panel [role=tab]:has-text("Network")'); await page.waitForSelector('.net-rules') }
const fetchInBox = (box, background) => call('POST', `/v1/boxes/${box}/execs`, { command: `curl -sS http://${host}/simple`, background })
const row = (page, text) => page.locator('.net-rules li', { hasText: text })

test('a refused connection is shown with its reason; a rule allows it; removing it refuses it again', async (x) => {
	const box = await newBox({}, { network: { allow: ['other.below.test'] } }), page = x.page = await open(box)
	await panel(page)
	await row(page, 'other.below.test').waitFor()
	await soonHas(async () => (await fetchInBox(box)).body.stdout, 'may not reach')
	await page.waitForSelector(`.net .samples tr:has-text("${host}") .bad`)
	await page.fill('.net-rules input:not([type=checkbox])', host)
	await page.keyboard.press('Enter')
	await row(page, host).waitFor()
	await soonIs(async () => (await fetchInBox(box)).body.stdout.trim(), 'packages')
	await page.waitForSelector('.net .samples td:has-text("connected")')
	await page.click(`[aria-label="Remove the rule ${host}"]`)
	await row(page, host).waitFor({ state: 'detached' })
	await soonHas(async () => (await fetchInBox(box)).body.stdout, 'may not reach')
	await page.fill('.net-rules input:not([type=checkbox])', 'forbidden.example')
	await page.keyboard.press('Enter')
	await page.waitForSelector('.toast.bad:has-text("egress.allow")')
	await accessible(page, 'network of a box')
	await gone(box)
})

test('a connection waits for an approval: the page shows it from anywhere', async (x) => {
	const box = await newBox(), page = x.page = await open(box)
	await panel(page)
	await page.check('.net-rules input[type=checkbox]')
	await soon('asks', async () => (await call('GET', `/v1/boxes/${box}/network`)).body.ask)
	await page.click('.panel [role=tab]:has-text("Output")')
	const { id } = (await fetchInBox(box, true)).body
	await page.click('.toast button:has-text("Decide")')
	await page.waitForSelector(`.net-waiting li:has-text("${host}")`)
	await accessible(page, 'a connection that waits')
	await page.click('.net-waiting >> text=Allow once')
	await soon('answered', async () => ((await call('GET', `/v1/runs/${id}`)).body.stdout_bytes ?? 0) > 0)
	await page.locator('.net-waiting').waitFor({ state: 'detached' })
	await gone(box)
})

test('a viewer sees rules and cannot change them', async (x) => {
	const box = await newBox({}, { network: { allow: [host] } }), k = (await call('POST', '/v1/keys', { name: `net-${process.pid}`, role: 'viewer' })).body.key, page = x.page = await open(box, null, { key: k })
	await panel(page)
	await row(page, host).waitFor()
	await soonIs(() => page.isDisabled(`[aria-label="Remove the rule ${host}"]`), true)
	await soonIs(() => page.isDisabled('.net-rules form input'), true)
	await gone(box)
})

await runAll()
