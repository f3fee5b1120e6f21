// kit.mjs - what the journeys share: a browser, pages that are signed in, the API as a second client, axe.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { startBrowser } from './browser.mjs'
import { is, run, soon } from './tap.mjs'

export const { url, key, ATOLL } = process.env
const { UI_SHOTS } = process.env
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const { browser, close } = await startBrowser()
export const closeBrowser = close

export const cli = (...words) => execFileSync(ATOLL, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
export const link = (...words) => cli('ui', '-q', ...words)
export async function call(method, path, body, k = key) {
	const answer = await fetch(url + path, { method, headers: { 'X-API-Key': k, ...(body !== undefined && { 'Content-Type': 'application/json' }) }, body: body === undefined ? undefined : JSON.stringify(body) })
	const text = await answer.text()
	return { status: answer.status, body: text ? JSON.parse(text) : null }
}
const serverPids = () => execFileSync('pgrep', ['-x', '-P', process.env.SUPERVISOR, 'atoll-server'], { encoding: 'utf8' }).trim().split('\n').map(Number)
let killed
/** Kills the server process that runs now, which is not the one that was killed before. */
export async function killServer() {
	killed = await soon('a server runs', () => serverPids().find((p) => p !== killed))
	process.kill(killed, 'SIGKILL')
}

export async function newPage({ theme = 'light', width = 1280, height = 800, mobile = false } = {}) {
	const context = await browser.newContext({ colorScheme: theme, viewport: { width, height }, hasTouch: mobile, reducedMotion: 'reduce' })
	const page = await context.newPage()
	page.setDefaultTimeout(60000)
	page.problems = []
	page.on('pageerror', (e) => page.problems.push(e.message))
	page.on('console', (m) => { if (m.type() === 'error' && !/Failed to load resource|WebSocket connection/.test(m.text())) page.problems.push(m.text()) })
	return page
}
export async function signedIn(options) {
	const page = await newPage(options)
	await page.goto(link())
	await page.waitForSelector('.cm-content')
	return page
}
export async function type(page, code) {
	await page.click('.cm-content')
	await page.keyboard.press('Control+a')
	await page.keyboard.insertText(code)
}
export async function runCode(page, code, verdict) {
	await type(page, code)
	await page.keyboard.press('Control+Enter')
	await page.waitForSelector(`.verdict.${verdict}`)
	return page.textContent('.verdict')
}
export const output = (page) => page.textContent('.out')

/** Each screen is checked in both themes; a narrow one in the dark theme only, unless UI_AXE=all: axe takes a second. */
const screens = new Set()
export async function accessible(page, name) {
	if (process.env.UI_AXE !== 'all' && page.viewportSize().width < 720 && !await page.evaluate(() => matchMedia('(prefers-color-scheme: dark)').matches)) return
	await page.evaluate(axe)
	// What another theme can change is the contrast: the second time nothing else is checked.
	const first = !screens.has(name)
	screens.add(name)
	const runOnly = first || process.env.UI_AXE === 'all' ? ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] : { type: 'rule', values: ['color-contrast'] }
	const { violations } = await page.evaluate((runOnly) => axe.run(document, { runOnly }), runOnly)
	is(violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.target.join(' ')).join(', ')}`).join('; '), '', `axe on ${name}`)
}

/** Removes what a failed attempt left, so that its names can be used again. Volumes stay: journeys share them. */
async function removeAll() {
	const items = (path) => soon(`${path} are listed`, async () => (await call('GET', `/v1/${path}`)).body.items)
	for (const k of await items('keys')) if (!['tests', 'viewer', 'editor'].includes(k.name)) await call('DELETE', `/v1/keys/${k.id}`) // those are of daemon.lib
	for (const s of await items('secrets')) await call('DELETE', `/v1/secrets/${s.name}`)
	for (const t of await items('teams')) if (t.name !== 'default') await call('DELETE', `/v1/teams/${t.name}`) // refused while it has keys
	await soon('no box is left', async () => {
		const left = await items('boxes')
		for (const b of left) await call('DELETE', `/v1/boxes/${b.id}`)
		return left.length === 0
	})
}

/** All tests of the file that calls it; never returns. */
export async function runAll() {
	const code = await run(async () => ({
		async check() { if (this.page?.problems.length) throw new Error(`the page said: ${this.page.problems.join('; ')}`) },
		async failed(name) { if (UI_SHOTS && this.page) await this.page.screenshot({ path: `${UI_SHOTS}/failed-${name.replace(/\W+/g, '-').slice(0, 60)}.png` }).catch(() => {}) },
	}), async (x, failed) => {
		for (const c of browser.contexts()) await c.close().catch(() => {})
		if (failed) await removeAll().catch((e) => console.log(`# ${e.message}`))
	}, process.argv[2])
	await close()
	process.exit(code)
}
