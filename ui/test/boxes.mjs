// boxes.mjs - boxes for journeys in the workspace: their files by the API, and pages that show them.
import { call, key, newPage, url } from './kit.mjs'
import { is, soon } from './tap.mjs'

let made = 0
/** A box with these files. */
export async function newBox(files = {}, options = {}) {
	const b = (await call('POST', '/v1/boxes', { name: `ws-${process.pid}-${++made}`, lifetime_ms: 600000, ...options })).body
	for (const [path, text] of Object.entries(files)) await put(b.id, path, text)
	return b.id
}
const at = (box, path) => `${url}/v1/boxes/${box}/files?${new URLSearchParams({ path })}`
export const put = async (box, path, body) => is((await fetch(at(box, path), { method: 'PUT', body, headers: { 'X-API-Key': key, 'Content-Type': 'application/octet-stream' } })).ok, true, `write ${path}`)
export const get = async (box, path) => (await fetch(at(box, path), { headers: { 'X-API-Key': key } })).text()
export const sh = async (box, command) => (await call('POST', `/v1/boxes/${box}/execs`, { command })).body
export const gone = (box) => call('DELETE', `/v1/boxes/${box}`)

/** A page with the workspace of a box, signed in; with a file: when that is shown, by its text or its viewer. */
export async function open(box, file, options = {}) {
	const page = await newPage(options)
	if (options.link) {
		await page.goto(options.link)
		await page.waitForSelector('.cm-content')
	} else // as a tab that was signed in before
		await page.addInitScript(([origin, k]) => { if (self.origin === origin) sessionStorage.setItem('atoll.key', k) }, [url, options.key ?? key])
	await show(page, box, file, options.shown)
	return page
}
export async function show(page, box, file, shown = '.editor-panel .cm-content') {
	await page.goto(`${url}/b/${box}${file ? `?file=${encodeURIComponent(file)}` : ''}`)
	await page.waitForSelector(file ? '.center .tab.on [role=tab]' : '.tree', { state: 'attached' })
	if (file) await soon('the file is shown', () => page.isVisible(shown)) // hidden until it is loaded
}
export const saved = (page) => soon('it is saved', async () => (await page.textContent('.status [role=status]')) === 'Saved')
