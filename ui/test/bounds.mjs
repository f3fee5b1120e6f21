// bounds.mjs - large and hostile input, and connections that break. Started by tests/system/ui_bounds.sh.
//
//	UI_OFFLINE_S=30 UI_FLOOD_MB=1000 UI_FILES=100000	full length (make bounds-ui); without them the same in less time
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { get, gone, newBox, open, put, saved, sh, show } from './boxes.mjs'
import { call, key, killServer, link, newPage, runAll, runCode, url } from './kit.mjs'
import { has, is, ok, soon, soonHas, soonIs, test } from './tap.mjs'

const OFFLINE_S = Number(process.env.UI_OFFLINE_S ?? 3), FLOOD_MB = Number(process.env.UI_FLOOD_MB ?? 50), FILES = Number(process.env.UI_FILES ?? 12000)
const row = (page, name) => page.locator('.row-item', { hasText: name }).first()
const text = (page) => page.evaluate(() => [...document.querySelectorAll('.editor-panel .cm-line')].map((l) => l.textContent).join('\n'))
const groupText = (page) => page.textContent('.group:last-of-type .out')
const heap = (page) => page.evaluate(() => (globalThis.gc?.(), performance.memory.usedJSHeapSize / 1e6))
const screen = (page) => page.evaluate(() => {
	const b = document.querySelector('.terminal-box:not(.away) .term')?.terminal?.buffer.active, out = []
	for (let i = 0; b && i < b.length; i++) out.push(b.getLine(i).translateToString(true))
	return out.join('\n')
})
async function terminal(page) {
	await page.click('.panel .tabs >> text=New terminal')
	await page.waitForSelector('.terminal-box:not(.away) .xterm-helper-textarea:focus')
	await soon('a prompt', async () => /\$ ?$/m.test((await screen(page)).trimEnd()))
}
/** Each number from 0 to the last, once. */
function counted(out, last) {
	const n = [...out.matchAll(/n=(\d+);/g)].map((m) => Number(m[1]))
	is(n[n.length - 1], last, 'the last number')
	n.forEach((v, i) => is(v, i, 'a number that was lost or came twice'))
}

/** A proxy between browser and daemon, by TCP. what.sockets: 'pass' or 'refuse' (answers an upgrade with 400). */
async function proxy(what) {
	const to = new URL(url), open = new Set()
	const server = createServer((client) => {
		const daemon = connect(Number(to.port), to.hostname)
		let first = true
		client.on('data', (d) => {
			const upgrade = first && /^upgrade: *websocket/im.test(d.toString('latin1'))
			first = false
			if (upgrade) {
				if (what.sockets === 'refuse') { client.end('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'); daemon.destroy(); return }
				open.add(client)
				what.upgrades = (what.upgrades ?? 0) + 1
			}
			daemon.write(d)
		})
		daemon.on('data', (d) => client.write(d))
		for (const [a, b] of [[client, daemon], [daemon, client]]) a.on('error', () => {}).on('close', () => { open.delete(client); b.destroy() })
	})
	await new Promise((done) => server.listen(0, '127.0.0.1', done))
	return { url: `http://127.0.0.1:${server.address().port}`, cut: () => { for (const s of open) s.destroy() }, close: () => { for (const s of open) s.destroy(); server.close() } }
}

// ---- connections ----

test('offline for a while: a banner, typing continues, and no text and no output is lost', async (x) => {
	const box = await newBox({ 'a.txt': '', 'count.py': 'import time\nfor n in range(10**6):\n    print(f"n={n};", flush=True)\n    time.sleep(0.02)\n    if open("stop").read(): break\nprint("last", n)\n', stop: '' })
	const page = x.page = await open(box, 'count.py')
	await page.click('.bar .primary')
	await soon('numbers', async () => (await groupText(page)).includes('n=5;'))
	await row(page, 'a.txt').click()
	await page.waitForSelector('.editor-panel[aria-label="a.txt"] .cm-content')
	await soonIs(() => text(page), '') // its text is loaded
	await page.context().setOffline(true)
	await page.waitForSelector('.top .conn.offline')
	await soon('the banner', async () => (await page.textContent('.banner')).includes('Edits are kept'))
	await page.click('.editor-panel .cm-content')
	await page.keyboard.insertText('typed while offline')
	await soon('not saved', async () => (await page.textContent('.status [role=status]')) === 'Not saved')
	await new Promise((r) => setTimeout(r, OFFLINE_S * 1000)) // the time itself is what is tested
	await page.keyboard.insertText(', and later')
	is(await page.textContent('.top .conn'), 'Offline')
	await page.context().setOffline(false)
	await page.waitForSelector('.top .conn.live')
	await soon('the banner leaves', async () => await page.locator('.notice .banner').count() === 0)
	await saved(page)
	await soonIs(() => get(box, 'a.txt'), 'typed while offline, and later')
	await put(box, 'stop', 'x')
	await page.waitForSelector('.group .verdict.ok')
	await soon('the last line', async () => (await groupText(page)).includes('last'))
	const out = await groupText(page)
	counted(out, Number(out.match(/last (\d+)/)[1]))
	await gone(box)
}, 180 + OFFLINE_S)

test('a proxy that cuts WebSockets: every number arrives once', async (x) => {
	const what = { sockets: 'pass' }, between = await proxy(what)
	const box = await newBox({ 'count.py': 'import time\nfor n in range(1500):\n    print(f"n={n};", flush=True)\n    time.sleep(0.002)\n' })
	const page = x.page = await newPage()
	await page.addInitScript((k) => sessionStorage.setItem('atoll.key', k), key)
	await page.goto(`${between.url}/b/${box}?file=count.py`)
	await page.waitForSelector('.top .conn.live')
	await soon('the file', () => page.isVisible('.editor-panel .cm-content'))
	await page.click('.bar .primary:not([disabled])')
	await soon('numbers', async () => (await groupText(page)).includes('n=5;'))
	for (let i = 0; i < 3; i++) {
		const before = what.upgrades
		between.cut()
		await soon('another connection', () => what.upgrades > before)
	}
	await page.waitForSelector('.group .verdict.ok')
	await soonHas(() => groupText(page), 'n=1499;')
	counted(await groupText(page), 1499)
	await gone(box)
	between.close()
})

test('a proxy that refuses WebSockets: the page states it, its lists are filled, and programs run', async (x) => {
	const between = await proxy({ sockets: 'refuse' }), box = await newBox()
	const page = x.page = await newPage()
	await page.addInitScript((k) => sessionStorage.setItem('atoll.key', k), key)
	await page.goto(between.url)
	await page.waitForSelector('.cm-content')
	await page.locator('.boxes tbody tr', { hasText: 'ws-' }).first().waitFor()
	await soon('why', async () => (await page.textContent('.banner')).includes('WebSocket'))
	await runCode(page, 'print("by HTTP alone")\n', 'ok')
	await soonHas(() => page.textContent('.out'), 'by HTTP alone')
	await gone(box)
	between.close()
})

test('kill -9 of the server while a person types: nothing typed is lost', async (x) => {
	const box = await newBox({ 'a.txt': '' }), page = x.page = await open(box, 'a.txt')
	await page.click('.editor-panel .cm-content')
	const words = Array.from({ length: 40 }, (_, i) => `word${i}`)
	for (const [i, w] of words.entries()) {
		if (i === 10 || i === 25) await killServer()
		await page.keyboard.insertText(w + '\n')
		await page.waitForTimeout(40) // as a person types
	}
	await soon('all of it is in the box', async () => (await get(box, 'a.txt').catch(() => '')) === words.join('\n') + '\n')
	await saved(page)
	await gone(box)
})

test('another version of the daemon: a notice, and code that is gone is offered by a reload', async (x) => {
	const box = await newBox({ 'a.csv': 'a,b\n1,2\n' }), page = x.page = await open(box)
	await page.waitForSelector('.top .conn.live')
	await page.route('**/v1/info', async (r) => { const a = await r.fetch(), b = await a.json(); await r.fulfill({ response: a, json: { ...b, version: '99.1' } }) })
	await page.route('**/a/*.js', (r) => r.fulfill({ status: 404, body: '' })) // what the old page still wants
	await killServer()
	await soon('the notice', async () => (await page.textContent('.notice')).includes('Updated to 99.1'))
	await row(page, 'a.csv').click()
	await page.waitForSelector('.state[role=alert] >> text=Retry')
	await page.unroute('**/a/*.js')
	await page.click('.state[role=alert] >> text=Retry')
	await page.waitForSelector('.table-view')
	page.problems = [] // the 404 above
	await gone(box)
})

// ---- output ----

test('a program that writes as fast as it can: Stop works, the page stays small, what is left out is counted', async (x) => {
	const box = await newBox({ 'flood.py': 'import sys\nline = "x" * 79 + "\\n"\nwhile True:\n    sys.stdout.write(line * 1000)\n' }), page = x.page = await open(box, 'flood.py')
	await page.click('.bar .primary')
	const cut = async () => { const m = (await page.textContent('.group .cut')).match(/([\d.]+) (KB|KiB|MB|MiB|GB|GiB)/); return Number(m[1]) * { K: 1e-3, M: 1, G: 1e3 }[m[2][0]] }
	await soon('a large part is left out', async () => await cut() >= FLOOD_MB, 20000 + FLOOD_MB * 1000)
	await page.click('.bar .stop')
	await page.waitForSelector('.group .verdict.stopped')
	ok(await page.locator('.group .ln').count() <= 3000, 'more lines than allowed')
	await soon('the page uses less than 150 MB', async () => await heap(page) < 150)
	await soonHas(() => page.textContent('.group .cut'), 'not shown')
	await gone(box)
}, 60 + FLOOD_MB)

test('one line of millions of colours and one without an end are cut, and the page continues', async (x) => {
	const box = await newBox({ 'colours.py': 'import sys\nfor i in range(20):\n    sys.stdout.write("\\x1b[31mx\\x1b[32my" * 20000)\nprint()\nsys.stdout.write("\\x1b]8;;" + "z" * 4000000)\nprint("\\x07")\nprint("the end")\n' }), page = x.page = await open(box, 'colours.py')
	await page.click('.bar .primary')
	await page.waitForSelector('.group .verdict.ok')
	await soon('the end', async () => (await page.textContent('.group .ln >> nth=-1')) === 'the end')
	const elements = await page.locator('.group .out *').count()
	ok(elements < 5000, `${elements} elements for three lines`)
	const first = await page.textContent('.group .ln >> nth=0')
	has(first, 'xyxy')
	has(first.slice(-60), 'the line is cut after 4,000 characters')
	await gone(box)
})

// ---- files ----

test(`a folder of ${FILES} files: scrolled to its end, and what a program adds appears`, async (x) => {
	const box = await newBox({}, { limits: { files: FILES + 1000 } }), page = x.page = await open(box)
	await sh(box, `mkdir many; cd many; seq -f file-%06g ${FILES} | xargs touch`)
	const last = `file-${String(FILES).padStart(6, '0')}`
	await row(page, 'many').click()
	await row(page, 'file-000001').waitFor()
	const down = () => page.evaluate(() => { const r = document.querySelector('.rows'); r.scrollTop = r.scrollHeight })
	await soon('the last file', async () => { await down(); return await row(page, last).count() > 0 }, 120000)
	ok(await page.locator('.row-item').count() < 120, 'all rows are drawn')
	await page.focus('.rows')
	await page.keyboard.press('Home')
	await row(page, 'many').waitFor()
	await sh(box, 'echo new > many/file-000000-new')
	await row(page, 'file-000000-new').waitFor()
	await page.keyboard.press('End')
	await soon('the last is still listed', async () => await row(page, last).count() > 0)
	await soon('the page uses less than 200 MB', async () => await heap(page) < 200)
	await gone(box)
}, 300)

test('a file of 200 MB: the limit of the editor, a download, an upload with progress that can be cancelled', async (x) => {
	const dir = mkdtempSync(join(process.env.TMPDIR, 'large-')), size = 200 << 20
	writeFileSync(join(dir, 'up.bin'), '')
	execFileSync('truncate', ['-s', String(size), join(dir, 'up.bin')])
	const box = await newBox({}, { limits: { disk: 1 << 30 } }), page = x.page = await open(box)
	await sh(box, `truncate -s ${size} large.bin`)
	await row(page, 'large.bin').click()
	await page.waitForSelector('text=more than the editor opens')
	const [download] = await Promise.all([page.waitForEvent('download', { timeout: 120000 }), page.click('.editor-panel >> text=Download')])
	is(statSync(await download.path()).size, size)
	await download.delete()
	const network = await page.context().newCDPSession(page), speed = (n) => network.send('Network.emulateNetworkConditions', { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: n })
	await speed(4e6) // slow enough to be cancelled
	await page.setInputFiles('.tree input[type=file]', join(dir, 'up.bin'))
	await soon('progress', async () => / \d+ %/.test(await page.textContent('.sending')))
	await page.click('.sending >> text=Cancel')
	await soon('its end', async () => await page.locator('.sending').count() === 0)
	await speed(-1)
	await soonIs(async () => (await call('GET', `/v1/boxes/${box}/files/stat?path=up.bin`)).status, 404, 'a cancelled upload left a file')
	await page.setInputFiles('.tree input[type=file]', join(dir, 'up.bin'))
	await row(page, 'up.bin').waitFor({ timeout: 120000 })
	await soon('all of it', async () => (await call('GET', `/v1/boxes/${box}/files/stat?path=up.bin`)).body.size === size)
	await gone(box)
	const small = await newBox({}, { limits: { disk: 64 << 20 } })
	await show(page, small)
	await page.setInputFiles('.tree input[type=file]', join(dir, 'up.bin'))
	await soon('why it does not fit', async () => /space|full|disk/i.test(await page.textContent('.toast')))
	await gone(small)
	rmSync(dir, { recursive: true })
}, 300)

test('names with line breaks, direction marks and emoji: opened, edited, run and downloaded', async (x) => {
	const names = ['two\nlines.py', 'a\u202egnp.py', '🏝️ é ½.py', ' space .py', '-rf.py', '%2e%2e.py', '"quo\'te`$(x).py']
	const box = await newBox(Object.fromEntries(names.map((n) => [n, `print("ran", ${names.indexOf(n)})\n`]))), page = x.page = await open(box)
	for (const [i, n] of names.entries()) {
		await page.locator('.row-item').nth(0).waitFor()
		await show(page, box, n)
		await soon('its text', async () => (await text(page)).includes(`"ran", ${i}`))
		await page.click('.editor-panel .cm-content')
		await page.keyboard.press('Control+End')
		await page.keyboard.insertText('# edited\n')
		await saved(page)
		await soonHas(() => get(box, n), '# edited')
		await page.click('.bar .primary:not([disabled])')
		await soon('its output', async () => (await groupText(page)).includes(`ran ${i}`))
		ok(!/[\u202a-\u202e\u2066-\u2069]/.test(await page.evaluate(() => document.body.innerText)), 'a mark of direction is shown as it is')
	}
	const [download] = await Promise.all([page.waitForEvent('download'), (async () => { await row(page, 'gnp.py').hover(); await row(page, 'gnp.py').locator('.menu > button').click(); await page.click('role=menuitem[name=Download]') })()])
	ok(!/[\u202a-\u202e/\n]/.test(download.suggestedFilename()), download.suggestedFilename())
	await gone(box)
})

// ---- terminals ----

test('reports of a terminal are not typed again when its history is read again', async (x) => {
	const box = await newBox(), page = x.page = await open(box)
	await terminal(page)
	// A program that asks gets its answer once.
	await page.keyboard.type("stty -echo; printf '\\033[c'; IFS= read -rsd c answer; stty echo; echo answer-${answer#?}-\n")
	await soon('an answer', async () => /answer-\[\?[\d;]+-/.test(await screen(page)))
	await page.keyboard.type("printf '\\033[6n\\033[c\\033[>c\\033]10;?\\007\\033]11;?\\033\\\\\\033P$qm\\033\\\\\\033[21t\\033[14t\\005' > /dev/null; clear; echo cleared-$((1+1))\n")
	await soon('all of it ran', async () => (await screen(page)).includes('cleared-2'))
	await page.reload()
	await page.waitForSelector('.terminal-box:not(.away) .xterm-helper-textarea:focus')
	await soon('a prompt', async () => /cleared-2\n.*\$ ?$/.test((await screen(page)).trimEnd()))
	await page.click('.term')
	await page.keyboard.type('echo after-$((40+2))\n')
	await soon('the line', async () => (await screen(page)).includes('after-42'))
	const typed = (await screen(page)).split('\n').filter((l) => l.includes('echo after-'))
	is(typed.length, 1)
	ok(/\$ echo after-/.test(typed[0]), `before the line there is ${JSON.stringify(typed[0])}`)
	await gone(box)
})

test('titles, clipboard and links of a terminal are without effect; a link to a page asks first', async (x) => {
	const box = await newBox({ hostile: '\x1b]0;owned\x07\x1b]2;owned\x07\x1b]52;c;b3duZWQ=\x07\x1b]8;;javascript:window.owned=1\x07AAAA\x1b]8;;\x07\r\n\x1b]8;;data:text/html,x\x07BBBB\x1b]8;;\x07\r\n\x1b]8;;https://example.invalid/path\x07CCCC\x1b]8;;\x07\r\n\x1b[21t\x1b[20t\x1b[5i\x1bP+q544e\x1b\\\x1b[?1049h\x1b[?1049l\r\ndone-hostile\r\n' }), page = x.page = await open(box)
	await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
	await page.evaluate(() => navigator.clipboard.writeText('mine'))
	const title = await page.title(), asked = []
	page.on('dialog', (d) => { asked.push(d.message()); void d.dismiss() })
	await terminal(page)
	await page.keyboard.type('cat hostile\n')
	await soon('shown', async () => (await screen(page)).includes('done-hostile'))
	is(await page.title(), title)
	is(await page.evaluate(() => navigator.clipboard.readText()), 'mine')
	for (const word of ['AAAA', 'BBBB', 'CCCC']) {
		const place = await soon(`${word} is drawn`, () => page.evaluate((w) => {
			const at = [...document.querySelectorAll('.terminal-box:not(.away) .xterm-rows > div')].find((d) => d.textContent.startsWith(w)).getBoundingClientRect()
			return { x: at.x + 12, y: at.y + at.height / 2 }
		}, word))
		await page.mouse.move(place.x + 1, place.y)
		await page.mouse.move(place.x, place.y)
		if (word === 'CCCC') await soon('it asks', async () => { await page.mouse.move(place.x + asked.length % 3, place.y); await page.mouse.click(place.x, place.y); return asked.length })
		else await page.mouse.click(place.x, place.y)
	}
	ok(asked.every((a) => a.includes('https://example.invalid/path')), asked.join('; '))
	is(await page.evaluate(() => window.owned), undefined)
	is(page.context().pages().length, 1)
	await page.click('.term')
	await page.keyboard.type('echo clean-$((40+2))\n')
	await soon('the shell has no surplus text', async () => /\$ echo clean-/.test(await screen(page)))
	await soon('its answer', async () => (await screen(page)).includes('clean-42'))
	await gone(box)
})

// ---- the browser itself ----

test('storage that is switched off: the workspace edits, saves, runs, and opens a terminal', async (x) => {
	const box = await newBox({ 'a.py': 'print(1)\n' }), page = x.page = await newPage()
	await page.addInitScript(() => { for (const s of ['localStorage', 'sessionStorage']) Object.defineProperty(window, s, { get() { throw new DOMException('denied') } }) })
	await page.goto(link())
	await page.waitForSelector('.cm-content')
	await page.locator('.boxes tbody tr a', { hasText: 'ws-' }).first().click() // not by its address: the key is in the memory of the page
	await row(page, 'a.py').click()
	await soon('its text', async () => (await text(page)).includes('print(1)'))
	await page.click('.editor-panel .cm-content')
	await page.keyboard.press('Control+a')
	await page.keyboard.insertText('print("kept", 6 * 7)\n')
	await saved(page)
	await page.click('.bar .primary:not([disabled])')
	await soon('its output', async () => (await groupText(page)).includes('kept 42'))
	await terminal(page)
	await gone(box)
})

for (const [name, hours] of [['ahead', 5], ['behind', -5]])
	test(`a clock that is five hours ${name}: ages and ends are those of the daemon`, async (x) => {
		const page = x.page = await newPage()
		await page.addInitScript((ms) => { const real = Date.now.bind(Date); Date.now = () => real() + ms }, hours * 3600000)
		const box = await newBox({}, { lifetime_ms: 1800000 })
		await page.goto(link())
		const line = page.locator('.boxes tbody tr', { hasText: 'ws-' }).first()
		await soon('its age and its end', async () => { const s = await line.textContent(); return /just now|\b[0-9]+ s/.test(s) && /(29|30) min/.test(s) || s })
		const s = await line.textContent()
		ok(!/\bh\b|hour/.test(s), s)
		await gone(box)
	})

await runAll()
