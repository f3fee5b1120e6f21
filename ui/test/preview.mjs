// preview.mjs - previews in a browser: a real dev server with hot reload over a WebSocket, and two boxes that share nothing.
import { execFileSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gone, newBox, put } from './boxes.mjs'
import { call, key, newPage, runAll, url } from './kit.mjs'
import { is, soon, soonHas, soonIs, soonOk, test } from './tap.mjs'

const ui = dirname(dirname(fileURLToPath(import.meta.url)))
const packages = ['vite', 'rollup', 'nanoid', 'picocolors', 'postcss', 'source-map-js']

/** A box has no registry: the packages of ui/ are copied into it. */
async function withVite(files) {
	const box = await newBox(files)
	const tar = execFileSync('tar', ['cz', '-C', ui, ...packages.map((p) => join('node_modules', p))], { maxBuffer: 1 << 28 })
	const answer = await fetch(`${url}/v1/boxes/${box}/files/archive?path=/home/user&format=tar.gz`, { method: 'PUT', body: tar, headers: { 'X-API-Key': key, 'Content-Type': 'application/gzip' } })
	is(answer.ok, true, `unpack: ${answer.status}`)
	await call('POST', `/v1/boxes/${box}/execs`, { command: 'exec node node_modules/vite/bin/vite.js --port 5173 --strictPort', background: true })
	return box
}
async function opened(box, port) {
	const found = await call('GET', `/v1/boxes/${box}/ports/${port}?wait=60s`)
	is(found.body.listening, true, JSON.stringify(found.body))
	return (await call('PUT', `/v1/boxes/${box}/ports/${port}`, {})).body
}

test('a Vite dev server is previewed, and an edit through the file API reloads it hot', async (x) => {
	const box = await withVite({
		'index.html': '<!doctype html><link rel="icon" href="data:,"><h1 id="text"></h1><script type="module" src="/main.js"></script>\n',
		'main.js': `import { text } from './text.js'\nconst show = (t) => { document.getElementById('text').textContent = t }\nshow(text)\nif (import.meta.hot) import.meta.hot.accept('./text.js', (m) => show(m.text))\n`,
		'text.js': `export const text = 'first'\n`,
	})
	const port = await opened(box, 5173), page = x.page = await newPage(), sockets = []
	page.on('websocket', (w) => w.on('framereceived', () => sockets.push(w.url())))
	await page.goto(port.link)
	await page.waitForSelector('#text:text-is("first")')
	await soonOk(() => !page.url().includes('token'), `the token stayed in the address: ${page.url()}`)
	await soon('the page is connected for hot reloads', () => sockets.length > 0)
	await page.evaluate(() => { window.same = true })
	await soon('the edit is shown', async () => { // again, if the dev server did not watch the file yet
		await put(box, 'text.js', `export const text = 'second'\n`)
		return page.waitForSelector('#text:text-is("second")', { timeout: 5000 })
	})
	is(await page.evaluate(() => window.same), true, 'the page was loaded again')
	const other = await newPage() // a browser without the cookie
	is((await other.goto(port.url)).status(), 401)
	await soonHas(() => other.textContent('h1'), 'This preview is private')
	await other.close()
	await gone(box)
})

test('cookies and storage of two boxes are separate, and pages of one do not reach the other', async (x) => {
	const server = `const http = require('http')\nhttp.createServer((q, a) => { a.setHeader('Content-Type', 'text/html'); a.setHeader('Set-Cookie', 'mine=' + process.env.ME); a.end('<!doctype html><link rel="icon" href="data:,"><h1>' + process.env.ME + '</h1><pre>' + (q.headers.cookie || '') + '</pre>') }).listen(3000, '127.0.0.1')\n`
	const boxes = [], page = x.page = await newPage()
	for (const ME of ['one', 'two']) {
		const box = await newBox({ 's.cjs': server }, { env: { ME } })
		await call('POST', `/v1/boxes/${box}/execs`, { command: 'exec node s.cjs', background: true })
		boxes.push({ box, ...await opened(box, 3000) })
	}
	await page.goto(boxes[0].link)
	await page.waitForSelector('h1:text-is("one")')
	await page.evaluate(() => { localStorage.setItem('a', '1'); sessionStorage.setItem('a', '1'); document.cookie = 'script=1; path=/'; document.cookie = 'wide=1; domain=localhost; path=/' })
	await page.goto(boxes[1].link)
	await page.waitForSelector('h1:text-is("two")')
	is(await page.evaluate(() => `${localStorage.getItem('a')} ${sessionStorage.getItem('a')} ${document.cookie}`), 'null null mine=two')
	is(await page.textContent('pre'), '', 'a cookie reached the box')
	await page.reload()
	await soonIs(() => page.textContent('pre'), 'mine=two')
	// The browser has the cookie of the first preview, but a page of the second cannot use it.
	is(await page.evaluate((other) => fetch(other, { credentials: 'include' }).then((a) => a.text(), () => 'refused'), boxes[0].url), 'refused')
	const seen = await page.evaluate((other) => new Promise((done) => { const w = new WebSocket(other.replace('http', 'ws')); w.onopen = () => done('open'); w.onerror = () => done('refused') }), boxes[0].url)
	is(seen, 'refused')
	page.problems.length = 0
	await page.goto(boxes[0].url)
	await page.waitForSelector('h1:text-is("one")')
	await soonHas(() => page.textContent('pre'), 'script=1')
	for (const b of boxes) await gone(b.box)
})

await runAll()
