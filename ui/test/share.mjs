// share.mjs - sharing a box: links, people, files that two browsers edit at once. Started by tests/system/ui_share.sh.
//
//	UI_SHARE_SECONDS=60 ...		how long two browsers type at once; 8 without it
import { readFileSync } from 'node:fs'
import { transformSync } from 'esbuild'
import { get, gone, newBox, open, put, saved, sh } from './boxes.mjs'
import { accessible, call, killServer, newPage, runAll, url } from './kit.mjs'
import { has, is, ok, soon, soonHas, soonIs, soonOk, test } from './tap.mjs'

const seconds = Number(process.env.UI_SHARE_SECONDS ?? 8)
/** The whole text of the editor, without the names at carets. */
const text = (page) => page.evaluate(() => { const c = document.querySelector('.editor-panel .cm-content'); return (c.cmTile ?? c.cmView).view.state.doc.toString() })
const others = (page, n) => soon(`${n} others are here`, async () => await page.locator('.faces .face').count() === n)
/** Both edit one document: an edit of one arrives at the other without the file. */
const together = (...pages) => Promise.all(pages.map((p) => soon('the file is shared', () => p.evaluate(() => { const c = document.querySelector('.editor-panel .cm-content'); return !!(c.cmTile ?? c.cmView).view.plugins.find((x) => x.value?.conf?.ytext) }))))
const same = (what, ...pages) => soon(what, async () => new Set(await Promise.all(pages.map(text))).size === 1)
async function typeAt(page, line, words) {
	await page.click(`.editor-panel .cm-line >> nth=${line}`)
	await page.keyboard.press('End')
	await page.keyboard.type(words)
}
const count = (all, part) => all.split(part).length - 1
/** As a person with nothing but the link. */
async function guest(link, file, options) {
	const page = await newPage(options)
	await page.goto(file ? link.replace('#', `?file=${file}#`) : link)
	await page.waitForSelector('.tree .row-item, .tree .empty')
	if (file) await soon('the file is shown', () => page.isVisible('.editor-panel .cm-content'))
	return page
}
const links = (page, n) => soon(`${n} links are listed`, async () => n ? await page.locator('.share section >> nth=0 >> .links li').count() === n : page.isVisible('.share section >> nth=0 >> .empty'))
/** One more link than the n that the box has. */
async function share(page, role, lifetime, n = 0) {
	if (!await page.isVisible('.share')) await page.click('.bar >> text=Share')
	await links(page, n)
	await page.selectOption('.share select >> nth=0', role)
	if (lifetime) await page.selectOption('.share select >> nth=1', { label: lifetime })
	await page.click('.share >> text=Create link')
	await links(page, n + 1)
	return page.textContent('.new-link code')
}
async function closeShare(page) {
	await page.keyboard.press('Escape')
	await page.waitForSelector('dialog', { state: 'detached' })
}

test('a text that two changed at the same place keeps both, and what is equal once', async () => {
	const code = transformSync(readFileSync(new URL('../src/workspace/merge.ts', import.meta.url), 'utf8'), { loader: 'ts', format: 'esm' }).code
	const { mergeAll } = await import(`data:text/javascript,${encodeURIComponent(code)}`)
	is(mergeAll('ad', 'abd', 'acd'), 'abcd')
	is(mergeAll('a\nb\nc', 'a<1>\nb\nc', 'a<2>\nb\nc<3>'), 'a<1><2>\nb\nc<3>', 'two words at one place, a third elsewhere')
	is(mergeAll('a\n', 'a\nnew line\n', 'a\nother line\n'), 'a\nnew line\nother line\n')
	is(mergeAll('', 'x\n', 'y'), 'x\ny')
	is(mergeAll('a\nb\nc\n', 'a\nc\n', 'a\nb changed\nc\n'), 'a\nb changed\nc\n', 'a deletion does not remove what another person typed')
	is(mergeAll('start end', 'start one two end', 'start one end'), 'start one two end', 'a part of my change is there already')
	is(mergeAll('x', 'x one', 'x one'), 'x one')
	is(mergeAll('a\nb\nc\n', 'A\nb\nc\n', 'a\nb\nC\n'), 'A\nb\nC\n')
	const within = (part, all) => { let at = 0; for (const c of part) { at = all.indexOf(c, at) + 1; if (!at) return false } return true }
	let seed = 7
	const random = (n) => { seed = (seed * 1103515245 + 12345) % 2147483648; return seed % n }
	for (let n = 0; n < 500; n++) {
		const base = Array.from({ length: random(12) }, () => 'abc\n'[random(4)]).join('')
		const typed = (s) => { for (let k = random(4); k > 0; k--) { const at = random(s.length + 1); s = s.slice(0, at) + 'xyz\n'[random(4)] + s.slice(at) } return s }
		const mine = typed(base), theirs = typed(base), both = mergeAll(base, mine, theirs)
		ok(within(mine, both) && within(theirs, both) && both.length <= mine.length + theirs.length - base.length, `${base}: ${mine} and ${theirs} became ${both}`)
	}
})

test('a link is made, opened by two people, and revoked: a viewer reads, an editor writes', async (x) => {
	const box = await newBox({ 'a.txt': 'shared line\n' }), page = x.page = await open(box, 'a.txt')
	const viewing = await share(page, 'viewer', '1 hour'), editing = await share(page, 'editor', '7 days', 1)
	has(viewing, `${url}/b/${box}#k=e2b_`)
	await soonHas(() => page.textContent('.share .links'), 'can look')
	await closeShare(page)
	const viewer = await guest(viewing, 'a.txt'), editor = await guest(editing, 'a.txt')
	await soonOk(() => !viewer.url().includes('#'), 'the key is not in the address')
	await soon('the text', async () => (await text(viewer)) === 'shared line\n')
	for (const p of [page, viewer, editor]) await others(p, 2)
	await soonIs(() => viewer.locator('.rail a').count(), 1, 'only the box')
	await soonIs(() => viewer.getAttribute('.editor-panel .cm-content', 'contenteditable'), 'false')
	await soonIs(() => viewer.isDisabled('.bar .primary'), true)
	await viewer.click('.editor-panel .cm-line >> nth=0')
	await viewer.keyboard.type('NO')
	await together(page, viewer, editor)
	await typeAt(editor, 0, ' and edited')
	await soon('the viewer sees it', async () => (await text(viewer)).startsWith('shared line and edited'))
	await soon('it is saved', async () => (await get(box, 'a.txt')) === 'shared line and edited\n')
	await soon('a caret with a name', async () => (await page.textContent('.cm-ySelectionInfo')).startsWith('Guest'))
	await viewer.click('.bar >> text=Share')
	await viewer.waitForSelector('.share .people')
	is(await viewer.isVisible('.share >> text=Create link'), false)
	await viewer.fill('.share input', 'Eve')
	await page.click('.bar >> text=Share')
	await soon('her name', async () => (await page.textContent('.share .people')).includes('Eve'))
	for (const n of [2, 1]) {
		await links(page, n)
		await page.click('.share section >> nth=0 >> .links li >> nth=0 >> text=Revoke')
	}
	await links(page, 0)
	for (const p of [viewer, editor]) {
		await p.waitForSelector('.signin')
		await soonHas(() => p.textContent('#key-problem'), 'revoked')
	}
	await closeShare(page)
	await others(page, 0)
	const late = await newPage()
	await late.goto(editing)
	await late.waitForSelector('.signin')
	await soonHas(() => late.textContent('#key-problem'), 'revoked or has expired')
	for (const p of [viewer, editor, late]) await p.context().close()
	await gone(box)
}, 300)

test('a session of a link sees its box and no other page', async (x) => {
	const box = await newBox({ 'a.txt': 'x\n' })
	const { body } = await call('POST', `/v1/boxes/${box}/shares`, { role: 'editor' })
	const page = x.page = await guest(body.url)
	await page.goto(`${url}/settings/keys`)
	await soon('the box', () => page.url().includes(`/b/${box}`))
	await page.waitForSelector('.tree .row-item')
	await page.keyboard.press('F1')
	await page.waitForSelector('.palette input')
	await page.fill('.palette input', 'go to')
	await page.waitForSelector('text=No command has these words.')
	await page.keyboard.press('Escape')
	await gone(box)
}, 300)

for (const [theme, width] of [['light', 1280], ['dark', 1280], ['light', 390], ['dark', 390]])
	test(`the Share dialog is accessible: ${theme}, ${width} px`, async (x) => {
		const box = await newBox({ 'a.txt': 'x\n' }), page = x.page = await open(box, 'a.txt', { theme, width, mobile: width < 500 }), other = await open(box, 'a.txt')
		await others(page, 1)
		await share(page, 'editor')
		await page.waitForSelector('.share .people li >> nth=1')
		await accessible(page, `Share, ${theme}, ${width}`)
		await closeShare(page)
		await other.context().close()
		await gone(box)
	}, 300)

/** Two pages with the file, each typing words of its own at its own line until `until`; returns the words. */
async function typing(page, name, line, until) {
	const words = []
	for (let n = 0; !until(); n++) {
		const word = `<${name}${n}>`
		await typeAt(page, line, word)
		words.push(word)
	}
	return words
}
async function agree(box, a, b, words) {
	await same('both have the same text', a, b)
	await soon('all words arrived', async () => { const all = await text(a); return words.every((w) => all.includes(w)) && (await text(b)) === all })
	const all = await text(a)
	for (const w of words) is(count(all, w), 1, w)
	await soon('the file has it', async () => (await get(box, 'a.txt')) === await text(a))
	for (const p of [a, b]) await saved(p)
}

test('two browsers edit one file at once, the network of one is cut twice: the same text, nothing is lost', async (x) => {
	const box = await newBox({ 'a.txt': 'first\nsecond\n' }), a = x.page = await open(box, 'a.txt'), b = await open(box, 'a.txt')
	await others(a, 1)
	await together(a, b)
	const end = Date.now() + seconds * 1000, part = seconds * 1000 / 5
	let done = false
	const cuts = (async () => {
		for (let n = 0; n < 2; n++) {
			await new Promise((r) => setTimeout(r, part))
			await a.context().setOffline(true)
			await a.waitForSelector('.conn.offline')
			await new Promise((r) => setTimeout(r, part))
			await a.context().setOffline(false)
			await a.waitForSelector('.conn.live')
		}
		await soon('the time has passed', () => Date.now() > end)
		done = true
	})()
	const words = (await Promise.all([typing(a, 'a', 0, () => done), typing(b, 'b', 1, () => done), cuts])).slice(0, 2).flat()
	ok(words.length > 4, `only ${words.length} words were typed`)
	await agree(box, a, b, words)
	await b.context().close()
	await gone(box)
}, 240 + seconds)

test('the server is killed while two browsers type: nothing is lost and nothing is doubled', async (x) => {
	const box = await newBox({ 'a.txt': 'first\nsecond\n' }), a = x.page = await open(box, 'a.txt'), b = await open(box, 'a.txt')
	await together(a, b)
	let done = false
	const kill = (async () => {
		await soon('typed', async () => (await text(a)).includes('<b2>'))
		const connected = [a, b].map((p) => p.waitForEvent('websocket'))
		await killServer()
		await Promise.all(connected)
		await Promise.all([a, b].map((p) => p.waitForSelector('.conn.live')))
		done = true
	})()
	const words = (await Promise.all([typing(a, 'a', 0, () => done), typing(b, 'b', 1, () => done), kill])).slice(0, 2).flat()
	await agree(box, a, b, words)
	await b.context().close()
	await gone(box)
}, 300)

test('a page that was away while the others began anew adds what was typed in it, once', async (x) => {
	const box = await newBox({ 'a.txt': 'first\nsecond\nthird\n' }), a = x.page = await open(box, 'a.txt'), b = await open(box, 'a.txt')
	await together(a, b)
	await typeAt(a, 0, '<a1>')
	await agree(box, a, b, ['<a1>'])
	await a.context().setOffline(true)
	await a.waitForSelector('.conn.offline')
	await typeAt(a, 0, '<a2>')
	await b.reload()
	await soon('the file is shown', () => b.isVisible('.editor-panel .cm-content'))
	await others(b, 0)
	const c = await open(box, 'a.txt') // both know nothing of the first page
	await together(b, c)
	await typeAt(b, 2, '<b1>')
	await agree(box, b, c, ['<b1>'])
	await typeAt(c, 0, '<c1>') // at the place where the first page typed
	await agree(box, b, c, ['<c1>'])
	await a.context().setOffline(false)
	await agree(box, a, b, ['<a1>', '<a2>', '<b1>', '<c1>', 'first', 'second', 'third'])
	await agree(box, b, c, ['<a2>'])
	for (const p of [b, c]) await p.context().close()
	await gone(box)
}, 300)

test('a program in the box changes a file that two people edit: all changes are in it', async (x) => {
	const box = await newBox({ 'a.txt': 'first\nsecond\nthird\n' }), a = x.page = await open(box, 'a.txt'), b = await open(box, 'a.txt')
	await together(a, b)
	await typeAt(b, 0, '<b1>')
	await agree(box, a, b, ['<b1>'])
	await sh(box, 'echo "<box>" >> a.txt')
	await soon('in both', async () => (await text(a)).includes('<box>') && (await text(b)).includes('<box>'))
	await typeAt(a, 1, '<a1>')
	await agree(box, a, b, ['<a1>', '<b1>', '<box>', 'third'])
	await b.context().close()
	await gone(box)
}, 300)

test('a paste of 700 KB arrives, and one that is too large for a room ends the sharing without a loss', async (x) => {
	const box = await newBox({ 'a.txt': 'first\n' }), a = x.page = await open(box, 'a.txt'), b = await open(box, 'a.txt')
	await together(a, b)
	const paste = (page, text) => page.evaluate((t) => { const c = document.querySelector('.editor-panel .cm-content'), { view } = c.cmTile ?? c.cmView; view.dispatch({ changes: { from: view.state.doc.length, insert: t } }) }, text)
	await paste(a, 'x'.repeat(99) + '\n'.repeat(1) + 'y'.repeat(700000) + '\n')
	await soon('it arrived', async () => (await text(b)).length === 700107, 60000)
	await soon('it is saved', async () => (await get(box, 'a.txt')).length === 700107, 60000)
	await paste(b, 'z'.repeat(3000000) + '\n')
	await soon('a notice', () => b.isVisible('text=not edited together any longer'), 60000)
	await soon('it is saved', async () => (await get(box, 'a.txt')).length === 3700108, 60000)
	await soon('the other has it', async () => (await text(a)).length === 3700108, 60000)
	await same('both have the same text', a, b)
	await b.context().close()
	await gone(box)
}, 240)

test('the page that writes the file stops without a word: another one writes it', async (x) => {
	const box = await newBox({ 'a.txt': 'first\nsecond\n' }), a = x.page = await open(box, 'a.txt'), b = await open(box, 'a.txt')
	await together(a, b)
	for (const p of [a, b]) { // the page that writes is the one whose save is asked for
		p.wrote = 0
		await p.route('**/v1/boxes/*/files?*', (r) => { if (r.request().method() === 'PUT') p.wrote++; return r.continue() })
	}
	let n = 0
	await soon('one page writes', async () => { // a page that is slow is replaced: then both have written
		a.wrote = b.wrote = 0
		await typeAt(a, 0, `<a${++n}>`)
		await agree(box, a, b, [`<a${n}>`])
		return Number(a.wrote > 0) + Number(b.wrote > 0) === 1
	})
	const [writer, reader] = a.wrote ? [a, b] : [b, a]
	await writer.unroute('**/v1/boxes/*/files?*')
	await writer.route('**/v1/boxes/*/files?*', (r) => r.request().method() === 'PUT' ? undefined : r.continue()) // never answered
	await typeAt(reader, 1, '<r1>')
	await soon('the file has it', async () => (await get(box, 'a.txt')).includes('<r1>'), 60000)
	is(reader.wrote > 0, true)
	await writer.unroute('**/v1/boxes/*/files?*')
	await b.context().close()
	await gone(box)
}, 150)

test('terminals and runs that one person starts are seen by the other', async (x) => {
	const box = await newBox({ 'loop.py': 'import time\nprint("begun")\ntime.sleep(300)\n' }), a = x.page = await open(box, 'loop.py')
	const { body } = await call('POST', `/v1/boxes/${box}/shares`, { role: 'viewer' })
	const b = await guest(body.url)
	await others(a, 1)
	await a.click('.panel .tabs >> text=New terminal')
	await a.waitForSelector('.terminal-box:not(.away) .xterm-helper-textarea:focus')
	await a.keyboard.type('echo seen by $((40 + 2))\n')
	await b.click('.panel [role=tab]:has-text("Terminal 1")')
	const screen = () => b.evaluate(() => { const t = document.querySelector('.terminal-box:not(.away) .term')?.terminal?.buffer.active, out = []; for (let i = 0; t && i < t.length; i++) out.push(t.getLine(i).translateToString(true)); return out.join('\n') })
	await soon('its output', async () => (await screen()).includes('seen by 42'))
	await b.click('.terminal-box:not(.away) .term')
	await b.keyboard.type('echo typed by a viewer\n')
	await a.click('.bar .primary')
	await b.click('.panel [role=tab]:has-text("Output")')
	await soon('the run', async () => (await b.textContent('.group .out')).includes('begun'))
	await a.click('.bar .stop')
	await b.waitForSelector('.group .verdict.stopped, .group .verdict.bad')
	ok(!(await screen()).includes('typed by a viewer'), 'a viewer typed in a terminal')
	await b.context().close()
	await gone(box)
}, 300)

test('a box ends while two people edit: the text stays on both pages', async (x) => {
	const box = await newBox({ 'a.txt': 'first\n' }), a = x.page = await open(box, 'a.txt'), b = await open(box, 'a.txt')
	await together(a, b)
	await typeAt(b, 0, ' kept')
	await same('both', a, b)
	await gone(box)
	for (const p of [a, b]) {
		await p.waitForSelector('.ws-note[role=alert]')
		await soonIs(() => text(p), 'first kept\n')
	}
	await b.context().close()
}, 300)

test('hostile frames of another client do not harm the page', async (x) => {
	const box = await newBox({ 'a.txt': 'first\n' }), a = x.page = await open(box, 'a.txt'), b = await open(box, 'a.txt')
	await together(a, b)
	await b.evaluate(async ([box, k]) => {
		const ws = new WebSocket(`ws://${location.host}/v1/socket`, ['atoll.v1', `key.${k}`])
		await new Promise((done) => { ws.onopen = done })
		const frame = (ch, kind, data) => { const f = new Uint8Array(5 + data.length); f[3] = ch; f[4] = kind; f.set(data, 5); ws.send(f) }
		const bytes = (s) => new TextEncoder().encode(s)
		ws.send(JSON.stringify({ op: 'open', ch: 1, kind: 'room', box, path: '' }))
		ws.send(JSON.stringify({ op: 'open', ch: 2, kind: 'room', box, path: '/home/user/a.txt' }))
		for (const ch of [1, 2]) for (const s of ['not json', '[]', 'null', '{"name":{"a":1},"cursor":{"anchor":7,"head":{"item":"x"}},"saved":5,"file":[]}', '{"name":"<img src=x onerror=alert(1)>\\u202e","role":"__proto__","cursor":{"anchor":{"type":null,"tname":"t","item":{"client":-1,"clock":"x"}},"head":{}},"saved":{"etag":"x","count":1}}']) frame(ch, 1, bytes(s))
		for (const data of [[], [255, 255, 255, 255], [1, 1, 1, 0, 255], [0, 0, 0]]) frame(2, 0, new Uint8Array(data))
	}, [box, process.env.key])
	await soon('it is listed', async () => await a.locator('.faces .face').count() === 2)
	await typeAt(b, 0, ' second')
	await soon('the other has it', async () => (await text(a)) === 'first second\n')
	await soon('saved', async () => (await get(box, 'a.txt')) === 'first second\n')
	await b.context().close()
	await gone(box)
}, 300)

await runAll()
