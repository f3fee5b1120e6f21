// workspace.mjs - the workspace of a box: files, editor, runs, terminals. Started by tests/system/ui_workspace.sh.
import { get, gone, newBox, open, put, saved, sh, show } from './boxes.mjs'
import { accessible, call, key, killServer, link, newPage, runAll, url } from './kit.mjs'
import { has, is, ok, soon, soonHas, soonIs, soonOk, test } from './tap.mjs'

async function write(page, text) {
	await page.click('.editor-panel .cm-content')
	await page.keyboard.press('Control+a')
	await page.keyboard.insertText(text)
}
/** The lines that are drawn, without the carets of other people. */
const text = (page) => page.evaluate(() => [...document.querySelectorAll('.editor-panel .cm-line')].map((l) => { const c = l.cloneNode(true); c.querySelectorAll('.cm-ySelectionCaret').forEach((w) => w.remove()); return c.textContent }).join('\n'))
const row = (page, name) => page.locator('.row-item', { hasText: name }).first()
const menu = async (page, name, what) => { await row(page, name).hover(); await row(page, name).locator('.menu > button').click(); await page.click(`role=menuitem[name="${what}"]`) }
/** What a terminal has, all of it. */
const screen = (page) => page.evaluate(() => {
	const b = [...document.querySelectorAll('.terminal-box:not(.away) .term')][0]?.terminal?.buffer.active, out = []
	for (let i = 0; b && i < b.length; i++) { const l = b.getLine(i); l.isWrapped ? out[out.length - 1] += l.translateToString(true) : out.push(l.translateToString(true)) }
	return out.join('\n')
})
async function terminal(page) {
	await page.click('.panel .tabs >> text=New terminal')
	await page.waitForSelector('.terminal-box:not(.away) .xterm-screen')
	await page.waitForSelector('.terminal-box:not(.away) .xterm-helper-textarea:focus')
	await soon('a prompt', async () => /\$ ?$/m.test((await screen(page)).trimEnd()))
}

// ---- files and the editor ----

test('a new file is made, typed into, saved by itself and run', async (x) => {
	const box = await newBox(), page = x.page = await open(box)
	await page.waitForSelector('.tree .empty')
	await page.click('.tree header [aria-label="New file"]')
	await page.waitForSelector('.name-field:focus')
	await page.keyboard.type('hello.py')
	await page.keyboard.press('Enter')
	await page.waitForSelector('.tab.on >> text=hello.py')
	await soon('an editor', () => page.isVisible('.editor-panel .cm-content'))
	await write(page, 'print("made in the browser")\n')
	await saved(page)
	await soonIs(() => get(box, 'hello.py'), 'print("made in the browser")\n')
	await page.click('.bar .primary')
	await page.waitForSelector('.group .verdict.ok')
	await soonHas(() => page.textContent('.group .out'), 'made in the browser')
	await soonHas(() => page.url(), 'file=hello.py')
	await gone(box)
})

test('the place of an error in another file opens that file at that line', async (x) => {
	const box = await newBox({ 'main.py': 'import util\nutil.f()\n', 'util.py': '# one\n# two\ndef f():\n    return 1/0\n' }), page = x.page = await open(box, 'main.py')
	await page.waitForSelector('.bar .primary:not([disabled])')
	await page.keyboard.press('Control+Enter')
	await page.waitForSelector('.group .verdict.bad')
	await page.click('.group .out .place:has-text("util.py")')
	await page.waitForSelector('.tab.on >> text=util.py')
	await soon('the line', async () => (await page.textContent('.editor-panel .cm-activeLine')).includes('1/0'))
	await gone(box)
})

test('a reload finds a run that continues, with all its output, and Stop ends it', async (x) => {
	const box = await newBox({ 'loop.py': 'import time\nfor n in range(10000):\n    print("tick", n)\n    time.sleep(0.05)\n' }), page = x.page = await open(box, 'loop.py')
	await page.click('.bar .primary')
	await soon('ticks', async () => (await page.textContent('.group .out')).includes('tick 5'))
	await page.reload()
	await page.waitForSelector('.group')
	await soon('from the first line on', async () => /tick 0\D.*tick 20/.test(await page.textContent('.group .out')))
	await page.click('.bar .stop')
	await page.waitForSelector('.group .verdict.stopped')
	await gone(box)
})

test('compiler errors are shown with their places', async (x) => {
	const box = await newBox({ 'bad.c': 'int main(void)\n{\n    return nothing;\n}\n' }), page = x.page = await open(box, 'bad.c')
	await page.click('.bar .primary')
	await page.waitForSelector('.group .verdict.bad')
	await soonHas(() => page.textContent('.group .verdict'), 'Not compiled')
	await gone(box)
})

test('two tabs that change different places of one file keep both changes', async (x) => {
	const box = await newBox({ 'a.txt': 'one\ntwo\nthree\nfour\n' }), page = x.page = await open(box, 'a.txt'), other = await open(box, 'a.txt')
	await page.click('.editor-panel .cm-line >> nth=0')
	await page.keyboard.press('Home')
	await page.keyboard.type('ONE ')
	await saved(page)
	await soon('the other sees it', async () => (await text(other)).startsWith('ONE one'))
	await other.click('.editor-panel .cm-line >> nth=3')
	await other.keyboard.press('End')
	await other.keyboard.type(' FOUR')
	await saved(other)
	await soon('both', async () => (await get(box, 'a.txt')) === 'ONE one\ntwo\nthree\nfour FOUR\n')
	await soon('here, too', async () => (await text(page)).includes('four FOUR'))
	await other.context().close()
	await gone(box)
})

test('two changes of the same place are a conflict that a person decides, and nothing is lost', async (x) => {
	const box = await newBox({ 'a.txt': 'line\n' }), page = x.page = await open(box, 'a.txt')
	await page.context().setOffline(true)
	await write(page, 'mine\n')
	await soon('not saved', async () => (await page.textContent('.status [role=status]')) === 'Not saved')
	await put(box, 'a.txt', 'theirs\n')
	await page.context().setOffline(false)
	await page.waitForSelector('.banner >> text=Keep mine')
	is(await get(box, 'a.txt'), 'theirs\n', 'nothing was overwritten')
	await page.click('text=Compare')
	await soonHas(() => page.textContent('.compare'), 'theirs')
	await page.keyboard.press('Escape')
	await page.click('text=Keep mine')
	await saved(page)
	await soonIs(() => get(box, 'a.txt'), 'mine\n')
	await gone(box)
})

test('a file that a program in the box changes changes in the editor', async (x) => {
	const box = await newBox({ 'log.txt': 'begin\n' }), page = x.page = await open(box, 'log.txt')
	await sh(box, 'echo "from the box" >> log.txt; mkdir made; echo x > made/by-shell.txt')
	await soon('the editor', async () => (await text(page)).includes('from the box'))
	await row(page, 'made').waitFor()
	await row(page, 'made').click()
	await row(page, 'by-shell.txt').waitFor()
	await gone(box)
})

test('typed while the connection is away: nothing is lost, also by a reload', async (x) => {
	const box = await newBox({ 'a.txt': '' }), page = x.page = await open(box, 'a.txt')
	await page.route('**/v1/boxes/*/files?*', (r) => r.request().method() === 'PUT' ? r.abort() : r.continue())
	await write(page, 'typed and not sent\n')
	await soon('not saved', async () => (await page.textContent('.status [role=status]')) === 'Not saved')
	page.on('dialog', (d) => d.accept()) // "Leave site?"
	await page.unroute('**/v1/boxes/*/files?*')
	await page.reload()
	await soon('it is back', async () => (await text(page)).includes('typed and not sent'))
	await saved(page)
	await soonIs(() => get(box, 'a.txt'), 'typed and not sent\n')
	await gone(box)
})

test('a file that is deleted in the box while it is edited is written anew when asked', async (x) => {
	const box = await newBox({ 'a.txt': 'one\n' }), page = x.page = await open(box, 'a.txt')
	await soon('the text', async () => (await text(page)).includes('one'))
	await sh(box, 'rm a.txt')
	await write(page, 'two\n')
	await page.waitForSelector('.banner >> text=Retry')
	await page.click('.banner >> text=Retry')
	await saved(page)
	await soonIs(() => get(box, 'a.txt'), 'two\n')
	await gone(box)
})

test('what was typed just before the page is left is not lost', async (x) => {
	const box = await newBox({ 'a.txt': '' }), page = x.page = await open(box, 'a.txt')
	await write(page, 'the last word\n')
	await page.goto('about:blank') // within the 300 ms before it is saved
	await soon('it is there', async () => (await get(box, 'a.txt')) === 'the last word\n')
	await gone(box)
})

test('rename, delete with undo, delete, upload and download', async (x) => {
	const box = await newBox({ 'one.txt': '1', 'two.txt': '2' }), page = x.page = await open(box, 'one.txt')
	await row(page, 'two.txt').waitFor()
	await page.focus('.rows')
	await page.keyboard.press('Home')
	await page.keyboard.press('F2')
	await page.waitForSelector('.name-field:focus')
	await page.keyboard.press('Control+a')
	await page.keyboard.type('renamed.txt')
	await page.keyboard.press('Enter')
	await row(page, 'renamed.txt').waitFor()
	await page.waitForSelector('.tab.on >> text=renamed.txt') // the open file goes with it
	await menu(page, 'two.txt', 'Delete')
	await soon('gone', async () => await page.locator('.row-item', { hasText: 'two.txt' }).count() === 0)
	await page.click('.toast >> text=Undo')
	await row(page, 'two.txt').waitFor()
	await menu(page, 'two.txt', 'Delete')
	await page.click('.toast [aria-label=Close]')
	await soon('deleted in the box', async () => (await call('GET', `/v1/boxes/${box}/files/stat?path=two.txt`)).status === 404)
	await page.setInputFiles('.tree input[type=file]', [{ name: 'up.bin', mimeType: 'application/octet-stream', buffer: Buffer.from([0, 1, 2, 255]) }])
	await row(page, 'up.bin').waitFor()
	const [download] = await Promise.all([page.waitForEvent('download'), menu(page, 'up.bin', 'Download')])
	is(download.suggestedFilename(), 'up.bin')
	await gone(box)
})

test('files that are dropped on the tree are uploaded', async (x) => {
	const box = await newBox(), page = x.page = await open(box)
	await page.waitForSelector('.tree .empty')
	await page.evaluate(() => { // a drop as the browser makes it, of two files
		const d = new DataTransfer()
		d.items.add(new File(['first'], 'first.txt'))
		d.items.add(new File(['second'], 'second.txt'))
		for (const type of ['dragover', 'drop']) document.querySelector('.tree').dispatchEvent(new DragEvent(type, { dataTransfer: d, bubbles: true, cancelable: true }))
	})
	await row(page, 'second.txt').waitFor()
	await soonIs(() => get(box, 'first.txt'), 'first')
	await gone(box)
})

test('odd names are harmless, and a folder of 3,000 files is drawn by the screenful', async (x) => {
	const box = await newBox({ 'line\nbreak.txt': 'x', '\u202egnp.exe': 'x', '🏝 é.txt': 'island', '<b>bold<b>.txt': 'x' }), page = x.page = await open(box)
	await sh(box, 'mkdir many; cd many; seq -f file-%05g 3000 | xargs touch')
	await row(page, 'many').waitFor() // a row that appears later would move the others
	await row(page, 'line⏎break.txt').waitFor()
	await row(page, '<b>bold<b>.txt').waitFor()
	await row(page, '🏝 é.txt').click()
	await soon('opened', async () => (await text(page)) === 'island')
	await row(page, 'many').click()
	await row(page, 'file-00001').waitFor()
	ok(await page.locator('.row-item').count() < 100, 'all rows are drawn')
	await page.focus('.rows')
	await page.keyboard.press('End')
	await page.evaluate(() => { document.querySelector('.rows').scrollTop = 26 * 990 }) // the next page is read when its place is seen
	await soon('the next page', () => page.evaluate(() => document.querySelector('.rows').scrollHeight > 26 * 1900))
	await page.evaluate(() => { document.querySelector('.rows').scrollTop = 26 * 1500 })
	await row(page, 'file-015').waitFor()
	await gone(box)
})

test('pictures are shown, binary and large files have a notice instead', async (x) => {
	const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64')
	const box = await newBox({ 'a.png': png, 'b.bin': Buffer.from([0, 1, 2, 3]), 'x.svg': '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>window.owned = 1</script></svg>' }), page = x.page = await open(box)
	await sh(box, 'head -c 21000000 /dev/zero > large.dat')
	await row(page, 'large.dat').waitFor() // a row that appears later would move the others
	await row(page, 'a.png').click()
	await soon('a picture', () => page.evaluate(() => document.querySelector('.viewer img')?.naturalWidth === 1))
	await row(page, 'b.bin').click()
	await soon('its bytes', async () => (await page.textContent('.viewer.text')).includes('00000000  00 01 02 03'))
	await row(page, 'x.svg').click()
	await soon('drawn', () => page.evaluate(() => document.querySelector('.viewer img')?.naturalWidth === 9))
	is(await page.evaluate(() => window.owned), undefined)
	await row(page, 'large.dat').click()
	await page.waitForSelector('text=more than the editor opens')
	await gone(box)
})

// ---- terminals ----

test('a terminal takes input, follows its size, and survives a reload with its scrollback', async (x) => {
	const box = await newBox(), page = x.page = await open(box)
	await terminal(page)
	await page.keyboard.type('echo first-$((6*7)); tput cols\n')
	await soon('the answer', async () => (await screen(page)).includes('first-42'))
	await soonOk(async () => /^(9\d|1\d\d)$/m.test(await screen(page)), 'the terminal has the width of its place')
	await page.keyboard.type('export KEEP=kept; cd /tmp; echo moved-$((1+1))\n')
	await soon('the folder is another', async () => (await screen(page)).includes('moved-2'))
	await page.reload()
	await page.waitForSelector('.terminal-box:not(.away) .xterm-screen')
	await page.waitForSelector('.terminal-box:not(.away) .xterm-helper-textarea:focus')
	await soon('scrollback', async () => (await screen(page)).includes('first-42'))
	await page.click('.term')
	await page.keyboard.type('echo again-$KEEP-$PWD\n')
	await soon('the same shell', async () => (await screen(page)).includes('again-kept-/tmp'))
	await page.keyboard.type('exit\n')
	await soon('its end', async () => (await screen(page)).includes('the shell has ended'))
	await gone(box)
})

test('kill -9 of the server in a flood of a terminal: no line twice, none missing', async (x) => {
	const box = await newBox(), page = x.page = await open(box)
	await terminal(page)
	await page.keyboard.type("for i in $(seq 60000); do echo line-$i-; done; echo the-''end\n")
	await soon('it floods', async () => /line-\d{3,}-/.test(await screen(page)))
	await killServer()
	await soon('the end', async () => (await screen(page)).includes('the-end'))
	const n = (await screen(page)).match(/^line-(\d+)-$/gm).map((l) => Number(l.slice(5, -1)))
	is(n[n.length - 1], 60000)
	for (let i = 1; i < n.length; i++) is(n[i], n[i - 1] + 1, `line ${i}`)
	ok(n.length > 5000, `only ${n.length} lines are kept`)
	await gone(box)
})

test('escape sequences in a terminal change neither page, clipboard nor title', async (x) => {
	const box = await newBox(), page = x.page = await open(box)
	const title = await page.title()
	await terminal(page)
	await page.keyboard.type("printf '\\033]0;owned\\007\\033]52;c;b3duZWQ=\\007\\033]8;;javascript:alert(1)\\007x\\033]8;;\\007<b>y</b>\\n'\n")
	await soon('shown', async () => (await screen(page)).includes('x<b>y</b>'))
	is(await page.title(), title)
	is(await page.evaluate(() => document.querySelectorAll('.term b').length), 0)
	await gone(box)
})

test('keys of the page do not take those of the program', async (x) => {
	const box = await newBox(), page = x.page = await open(box)
	await terminal(page)
	await page.keyboard.type('echo ready-$((1+1)); cat -v\n')
	await soon('a program reads the keys', async () => (await screen(page)).includes('ready-2'))
	for (const k of ['Control+k', 'Control+b', 'Control+j', 'g', 'r']) await page.keyboard.press(k)
	await page.keyboard.press('Enter')
	await soon('they arrive', async () => (await screen(page)).includes('^K^B'))
	is(await page.locator('dialog').count(), 0)
	has(page.url(), `/b/${box}`)
	await page.keyboard.press('F1')
	await page.waitForSelector('.palette')
	await gone(box)
})

// ---- previews ----

test('a preview shows a server of the box, and its hostile page reaches nothing of this one', async (x) => {
	const attack = `<h1>from the box</h1><pre id=r></pre><script>
		const r = {}
		const attempt = (n, f) => { try { r[n] = String(f()) } catch (e) { r[n] = 'refused' } }
		attempt('dom', () => parent.document.title)
		attempt('storage', () => parent.sessionStorage.length)
		attempt('mine', () => sessionStorage.getItem('atoll.key'))
		attempt('lead', () => { top.location = 'about:blank'; return 'sent' })
		new BroadcastChannel('atoll.session').postMessage({ ask: 'key' })
		const read = (n, address, Accept) => fetch(address, { headers: { Accept } }).then((a) => a.text(), () => 'refused').then((t) => { r[n] = t.slice(0, 40) })
		const reads = [read('api', '${url}/v1/info', 'application/json'), read('page', '${url}/', 'text/html')]
		new BroadcastChannel('atoll.session').onmessage = (e) => { r.answered = JSON.stringify(e.data) }
		setTimeout(() => Promise.all(reads).then(() => { document.getElementById('r').textContent = JSON.stringify(r) }), 700)
	</script>`
	const box = await newBox({ 'index.html': attack, 'secret.txt': 'x' }), page = x.page = await open(box)
	await call('POST', `/v1/boxes/${box}/execs`, { command: 'exec python3 -m http.server 3000', background: true })
	await soon('it listens', async () => (await get(box, '/proc/net/tcp')).includes(':0BB8'))
	await page.click('.bar >> text=Preview')
	await page.fill('#preview-port', '3000')
	await page.click('.address >> text=Open')
	const frame = page.frameLocator('.preview iframe')
	await frame.locator('h1:text("from the box")').waitFor()
	const result = JSON.parse(await soon('the attack has ended', () => frame.locator('#r').textContent()))
	for (const what of ['dom', 'storage', 'api', 'page']) is(result[what], 'refused', what)
	ok(['null', 'refused'].includes(result.mine), 'it has the key')
	is(result.answered, undefined)
	has(page.url(), `/b/${box}`)
	await accessible(page, 'preview')
	await page.click('.preview >> text=Close the port')
	await soon('closed', async () => (await call('GET', `/v1/boxes/${box}/ports/3000`)).body.open === false)
	page.problems.length = 0 // what the browser says of the attack
	await gone(box)
})

// ---- search ----

test('a word is found in all files, and a hit opens its line', async (x) => {
	const box = await newBox({ 'a.py': 'one\ntwo needle\n', 'src/deep/b.py': '\n\n    é🏝 NEEDLE here\n', 'c.txt': '<b>nothing</b>' }), page = x.page = await open(box, 'a.py')
	await page.keyboard.press('Control+Shift+F')
	await page.waitForSelector('.search-files input:focus')
	await page.keyboard.type('needle')
	await soon('both', async () => (await page.textContent('.count-line')) === '2 hits in 2 files')
	await accessible(page, 'search')
	await page.click('text=Match case')
	await soon('one', async () => (await page.textContent('.count-line')) === '1 hit in 1 file')
	await page.click('text=Match case')
	await soon('marked', async () => (await page.textContent('.hits li:has-text("here") mark')) === 'NEEDLE')
	await page.click('.hits li:has-text("here") button')
	await page.waitForSelector('.center .tab.on >> text=b.py')
	await soon('the line', async () => (await page.textContent('.editor-panel .cm-activeLine')).includes('NEEDLE'))
	await page.fill('.search-files input[type=search]', 'is nowhere')
	await soon('nothing', async () => (await page.textContent('.count-line')) === 'Nothing was found.')
	await gone(box)
})

// ---- monitor ----

test('the monitor draws what the box uses now, and has it as a table', async (x) => {
	const box = await newBox(), page = x.page = await open(box)
	await call('POST', `/v1/boxes/${box}/execs`, { command: 'while :; do :; done', background: true })
	await page.click('.panel [role=tab] >> text=Monitor')
	await page.waitForSelector('.graph canvas')
	await soon('CPU', async () => Number((await page.textContent('.graph strong >> nth=0')).replace(/\D/g, '')) > 1) // a busy machine gives the box little
	await soonOk(() => page.evaluate(() => { const c = document.querySelector('.graph canvas'), p = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; return p.some((v) => v > 0) }), 'nothing is drawn')
	await page.click('text=As a table')
	await soon('rows', async () => await page.locator('.samples tbody tr').count() > 2)
	await accessible(page, 'monitor')
	await gone(box)
})

// ---- states of the box ----

test('a box that ends while a file is open keeps the text on the page and says why', async (x) => {
	const box = await newBox({ 'a.txt': 'precious\n' }), page = x.page = await open(box, 'a.txt')
	await soon('the text', async () => (await text(page)).includes('precious'))
	await gone(box)
	await page.waitForSelector('.ws-note')
	await soonHas(() => page.textContent('.ws-note'), 'it was deleted')
	await soonHas(() => text(page), 'precious')
	await page.reload()
	await page.waitForSelector('h1:text("This box has ended")')
	await page.goto(`${url}/b/never-was`)
	await page.waitForSelector('h1:text("There is no such box")')
})

test('a paused box has a notice and is resumed', async (x) => {
	const box = await newBox({ 'a.txt': 'x' }), page = x.page = await open(box, 'a.txt')
	await page.click('.bar .menu button')
	await page.click('role=menuitem[name=Pause]')
	await page.waitForSelector('.ws-note >> text=paused')
	await soonOk(() => page.isDisabled('.bar .primary'), 'Run is not disabled')
	await page.click('.ws-note >> text=Resume')
	await soon('running', async () => (await page.textContent('.status')).includes('running'))
	await row(page, 'a.txt').waitFor()
	await gone(box)
})

test('a viewer reads and cannot write', async (x) => {
	const box = await newBox({ 'a.py': 'print(1)\n' }), page = x.page = await open(box, 'a.py', { link: link('--role', 'viewer') })
	await soon('the text', async () => (await text(page)).includes('print(1)'))
	await soonOk(() => page.isDisabled('.bar .primary'), 'Run')
	await soonIs(() => page.getAttribute('.editor-panel .cm-content', 'contenteditable'), 'false')
	await soonOk(() => page.isDisabled('.panel .tabs .small'), 'New terminal')
	await gone(box)
})

// ---- keyboard, phone, themes ----

test('at 390 px one pane is shown at a time, and nothing is cut off', async (x) => {
	const box = await newBox({ 'a.py': 'print("small screen")\n' }), page = x.page = await open(box, 'a.py', { width: 390, height: 844, mobile: true })
	await page.tap('.bar .primary')
	await page.waitForSelector('.group .verdict.ok')
	await soonIs(() => page.evaluate(() => document.documentElement.scrollWidth), 390)
	await page.tap('.pane-bar >> text=Files')
	await soonOk(async () => await page.isVisible('.tree') && !await page.isVisible('.editor-panel'), 'one pane')
	await page.tap('.pane-bar >> text=Panel')
	await page.tap('.panel .tabs > .small')
	await page.waitForSelector('.term-keys >> text=Ctrl C')
	await soonIs(() => page.evaluate(() => document.documentElement.scrollWidth), 390)
	await gone(box)
})

for (const theme of ['light', 'dark'])
	test(`axe finds nothing in the workspace: ${theme}`, async (x) => {
		const box = await newBox({ 'src/a.py': '# comment\nprint("text", 1.5)\n1/0\n', 'b.md': '# head\n' }), page = x.page = await open(box, 'src/a.py', { theme })
		await row(page, 'a.py').waitFor()
		await accessible(page, 'editor')
		await page.click('.bar .primary')
		await page.waitForSelector('.group .verdict.bad')
		await accessible(page, 'output')
		await terminal(page)
		await accessible(page, 'terminal')
		await page.setViewportSize({ width: 390, height: 844 })
		await accessible(page, 'terminal at 390 px')
		await page.click('.pane-bar >> text=Files')
		await accessible(page, 'files at 390 px')
		await page.setViewportSize({ width: 1280, height: 800 })
		await gone(box)
		await page.waitForSelector('.ws-note')
		await accessible(page, 'ended')
	})

await runAll()
