// figures.mjs - figures over time in a browser: overview, one figure by a label, ranges, all states. The history is
// written once a minute, so its answers are made here; what the daemon itself answers is tested by figures.sh.
import { accessible, runAll, signedIn, url } from './kit.mjs'
import { is, soonHas, soonIs, test } from './tap.mjs'

const open = async (page, path) => { await page.goto(url + path); await page.waitForSelector('#main') }

/** An answer with n steps up to now; points(i): what step i has, or null. */
function series(metric, type, unit, step, n, items) {
	const to = Math.floor(Date.now() / 1000 / step) * step, at = (i) => new Date((to - (n - i) * step) * 1000).toISOString()
	const points = (f) => Array.from({ length: n }, (_, i) => f(i) && { at: at(i), ...f(i) }).filter(Boolean)
	return { metric, type, unit, step_s: step, from: at(0), to: at(n), items: items.map(([labels, f]) => ({ labels, points: points(f) })) }
}
const answer = (page, f) => page.route('**/v1/stats/series?*', (r) => r.fulfill({ json: f(new URL(r.request().url()).searchParams) }))

test('a page without stored values is explained; an error can be retried', async (x) => {
	const page = x.page = await signedIn()
	await open(page, '/monitor')
	await page.click('a >> text=Figures over time')
	await soonHas(() => page.url(), '/monitor/figures')
	await page.waitForSelector('.graph canvas, .empty')
	await page.route('**/v1/stats/series?*', (r) => r.abort())
	await open(page, '/monitor/figures?range=7d')
	const error = page.locator('.state[role=alert]')
	await error.waitFor()
	await page.unroute('**/v1/stats/series?*')
	await answer(page, (q) => series(q.get('metric'), 'counter', '', 3600, 168, []))
	await error.locator('text=Retry').click()
	await page.waitForSelector('.empty >> text=No value was stored')
})

test('the overview shows rates, quantiles and values', async (x) => {
	const page = x.page = await signedIn()
	await answer(page, (q) => {
		const name = q.get('metric')
		if (name === 'run_seconds') return series(name, 'histogram', 'seconds', 300, 288, [[{}, () => ({ count: 5, sum: 1, p50: 0.1, p95: 0.25, p99: 0.3 })]])
		if (name === 'boxes') return series(name, 'gauge', '', 300, 288, [[{}, () => ({ value: 7 })]])
		if (name === 'executions_total') return series(name, 'counter', '', 300, 288, [[{}, (i) => i % 2 ? { value: q.get('where') ? 5 : 50 } : null]])
		return series(name, 'counter', '', 300, 288, [])
	})
	await open(page, '/monitor/figures')
	await soonIs(() => page.locator('.graph').count(), 4)
	const last = (title) => page.locator('.graph', { hasText: title }).locator('strong').first().textContent()
	await soonIs(() => page.locator('.graph strong').first().textContent(), '10/min')
	await soonIs(() => last('Executions that failed'), '1/min')
	await soonIs(() => last('Wall time'), '250 ms')
	await soonIs(() => last('Boxes'), '7')
	await accessible(page)
})

test('one figure has a graph for each value of a label', async (x) => {
	const page = x.page = await signedIn()
	let asked
	await answer(page, (q) => { asked = q; return series(q.get('metric'), 'counter', '', 3600, 168, [[{ outcome: 'ok' }, () => ({ value: 60 })], [{ outcome: 'error' }, (i) => i > 100 ? { value: 6 } : null]]) })
	await open(page, '/monitor/figures')
	await page.selectOption('select[aria-label=Figure]', 'executions_total')
	await soonIs(() => page.locator('.graph').count(), 2)
	await soonIs(async () => asked.get('by'), 'language')
	await page.selectOption('select[aria-label=By]', 'outcome')
	await soonIs(async () => asked.get('by'), 'outcome')
	await page.selectOption('select[aria-label=Time]', '7d')
	await soonIs(async () => asked.get('from'), '7d')
	await soonHas(() => page.url(), 'figure=executions_total')
	await soonIs(() => page.locator('.graph figcaption span').first().textContent(), 'error')
	is(await page.locator('h1').textContent(), 'executions_total')
})

await runAll()
