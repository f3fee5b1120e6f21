// bench.mjs - how quick the page is on loopback: printed, never asserted. Started by bench.sh (make bench-ui).
import { call, closeBrowser, link, newPage, url } from './kit.mjs'

const ROUNDS = 5
const rows = {}
const note = (name, ms) => (rows[name] ??= []).push(ms)
const median = (v) => [...v].sort((a, b) => a - b)[Math.floor(v.length / 2)]
const p95 = (v) => [...v].sort((a, b) => a - b)[Math.floor(v.length * 0.95)]

/** The page's own clock at the moment when a condition first holds. */
const when = (page, condition) => page.evaluate(`new Promise((done) => { const look = () => (${condition}) ? done(performance.now()) : requestAnimationFrame(look); look() })`)

for (let i = 0; i < ROUNDS; i++) {
	const box = (await call('POST', '/v1/boxes', { lifetime_ms: 600000 })).body.id // a new one: without terminals
	const page = await newPage() // a new profile: nothing is cached
	await page.goto(link(), { waitUntil: 'commit' })
	note('editor can be typed into, cold (ms)', await when(page, "document.querySelector('.cm-content') !== null"))
	note('transferred, cold (KB)', await page.evaluate(() => performance.getEntriesByType('resource').reduce((n, r) => n + r.transferSize, 0) / 1000))
	const clicked = await page.evaluate(() => { document.querySelector('button.primary').click(); return performance.now() })
	note('click on Run to the first output (ms)', await when(page, "document.querySelector('.ln') !== null") - clicked)
	note('first paint, cold (ms)', await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN))
	await page.reload()
	note('editor can be typed into, warm (ms)', await when(page, "document.querySelector('.cm-content') !== null"))
	note('transferred, warm (KB)', await page.evaluate(() => performance.getEntriesByType('resource').filter((r) => r.name.includes('/a/')).reduce((n, r) => n + r.transferSize, 0) / 1000))
	await page.goto(`${url}/b/${box}`)
	await page.waitForSelector('.tree')
	const asked = await page.evaluate(() => { document.querySelector('.panel .tabs > .small').click(); return performance.now() })
	note('new terminal to its prompt (ms)', await when(page, "(document.querySelector('.terminal-box:not(.away) .xterm-rows')?.textContent ?? '').includes('$')") - asked)
	const echo = await page.evaluate(async () => { // a key, the program's terminal, and back
		const term = [...document.querySelectorAll('.terminal-box:not(.away) .term')][0].terminal, out = []
		for (let n = 0; n < 40; n++) {
			const from = performance.now()
			await new Promise((done) => { const d = term.onWriteParsed(() => { d.dispose(); done() }); term.input('x') })
			out.push(performance.now() - from)
			await new Promise((r) => setTimeout(r, 20))
		}
		return out
	})
	note('key to its echo, p95 of 40 (ms)', p95(echo))
	note('JavaScript heap (MB)', await page.evaluate(() => (performance.memory?.usedJSHeapSize ?? NaN) / 1e6))
	await page.context().close()
	await call('DELETE', `/v1/boxes/${box}`)
}
for (const [name, v] of Object.entries(rows)) console.log(`${name.padEnd(44)} ${median(v).toFixed(1).padStart(8)}   of ${v.map((n) => n.toFixed(1)).join(' ')}`)
await closeBrowser()
