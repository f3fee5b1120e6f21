// bench.mjs - how quick the page is on loopback, beside its budgets: printed, never asserted. Started by bench.sh (make bench-ui).
import { call, closeBrowser, link, newPage, url } from './kit.mjs'

const ROUNDS = 5
const rows = {}
const note = (name, ms) => (rows[name] ??= []).push(ms)
const median = (v) => [...v].sort((a, b) => a - b)[Math.floor(v.length / 2)]
const p95 = (v) => [...v].sort((a, b) => a - b)[Math.floor(v.length * 0.95)]

/** What a row may be at most, or with a minus at least. Sizes of files are checked by home.mjs. */
const budgets = {
	'first paint, cold (ms)': 400, 'editor can be typed into, cold (ms)': 700, 'new terminal to its prompt (ms)': 900, 'blocking time, cold (ms)': 50, 'layout shift, cold': 0.01,
	'transferred, warm (KB)': 2, 'key to its echo, p95 of 40 (ms)': 5, 'terminal flood (MB/s)': -10, 'terminal flood, frames per second': -30, 'JavaScript heap (MB)': 25,
}

/** The page's own clock at the moment when a condition first holds. */
const when = (page, condition) => page.evaluate(`new Promise((done) => { const look = () => (${condition}) ? done(performance.now()) : requestAnimationFrame(look); look() })`)

for (let i = 0; i < ROUNDS; i++) {
	const box = (await call('POST', '/v1/boxes', { lifetime_ms: 600000 })).body.id // a new one: without terminals
	const page = await newPage() // a new profile: nothing is cached
	await page.addInitScript(() => {
		window.seen = { shift: 0, blocked: 0 }
		new PerformanceObserver((l) => { for (const e of l.getEntries()) if (!e.hadRecentInput) seen.shift += e.value }).observe({ type: 'layout-shift', buffered: true })
		new PerformanceObserver((l) => { for (const e of l.getEntries()) seen.blocked += e.duration - 50 }).observe({ type: 'longtask', buffered: true })
	})
	await page.goto(link(), { waitUntil: 'commit' })
	note('editor can be typed into, cold (ms)', await when(page, "document.querySelector('.cm-content') !== null"))
	note('transferred, cold (KB)', await page.evaluate(() => performance.getEntriesByType('resource').reduce((n, r) => n + r.transferSize, 0) / 1000))
	const clicked = await page.evaluate(() => { document.querySelector('button.primary').click(); return performance.now() })
	const output = await when(page, "document.querySelector('.ln') !== null")
	note('click on Run to the first output (ms)', output - clicked)
	note('first visit: from the link to the first output (ms)', output)
	note('blocking time, cold (ms)', await page.evaluate(() => seen.blocked))
	note('layout shift, cold', await page.evaluate(() => seen.shift))
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
	const flood = await page.evaluate(async () => { // as fast as the terminal takes it
		const term = document.querySelector('.terminal-box:not(.away) .term').terminal, end = 'the' + '-end'
		let frames = 0, going = true
		const count = () => { frames++; if (going) requestAnimationFrame(count) }
		requestAnimationFrame(count)
		const from = performance.now()
		term.input('\x15yes 0123456789012345678901234567890123456789012345678901234567890123456789 | head -c 20000000; echo; echo the-""end\n')
		const text = () => { const b = term.buffer.active; return Array.from({ length: 3 }, (_, i) => b.getLine(b.baseY + b.cursorY - i)?.translateToString(true) ?? '').join('\n') }
		while (!text().split('\n').includes(end)) await new Promise((r) => setTimeout(r, 5))
		going = false
		const s = (performance.now() - from) / 1000
		return { speed: 20 / s, frames: frames / s }
	})
	note('terminal flood (MB/s)', flood.speed)
	note('terminal flood, frames per second', flood.frames)
	await page.context().close()
	await call('DELETE', `/v1/boxes/${box}`)
}
for (const [name, v] of Object.entries(rows)) {
	const m = median(v), limit = budgets[name]
	const budget = limit === undefined ? '' : `${limit < 0 ? '≥' : '≤'} ${Math.abs(limit)} ${limit < 0 ? m >= -limit ? 'ok' : 'BELOW' : m <= limit ? 'ok' : 'ABOVE'}`
	console.log(`${name.padEnd(52)} ${m.toFixed(limit < 1 && limit > 0 ? 4 : 1).padStart(8)}   ${budget.padEnd(14)} of ${v.map((n) => n.toFixed(1)).join(' ')}`)
}
await closeBrowser()
