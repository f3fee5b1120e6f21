// home.mjs - sign-in, Home and Runs: what people do, in a real browser with a real daemon and real boxes. Started by
// tests/system/ui.sh, which sets url, key, ATOLL, ATOLL_RUN, SUPERVISOR. UI_SHOTS: a folder for pictures of failures.
import { execFileSync, spawnSync } from 'node:child_process'
import { ATOLL, accessible, call, key, killServer, link, newPage, output, runAll, runCode, signedIn, type, url } from './kit.mjs'
import { has, is, ok, soon, soonHas, soonIs, soonOk, test } from './tap.mjs'

// ---- signing in ----

test('a visitor without a key gets a form, which refuses a wrong key and takes a right one', async (x) => {
	const page = x.page = await newPage()
	await page.goto(url)
	await page.waitForSelector('form')
	await page.fill('#key', 'not a key')
	await page.click('button[type=submit]')
	await soonHas(() => page.textContent('.problem'), '40 hexadecimal digits')
	await page.fill('#key', 'e2b_' + '0'.repeat(40))
	await page.click('button[type=submit]')
	await soon('the reason', async () => (await page.textContent('.problem')).includes('not known here'))
	await page.fill('#key', key)
	await page.click('button[type=submit]')
	await page.waitForSelector('.cm-content')
	await page.reload()
	await page.waitForSelector('.cm-content') // this tab keeps it
	is(await page.evaluate(() => localStorage.getItem('atoll.key') ?? document.cookie), '', 'nothing outlives the tab')
})

test('a one-time link opens signed in, leaves nothing in the address, and opens once', async (x) => {
	const page = x.page = await newPage(), address = link()
	has(address, '#k=')
	await page.goto(address)
	await page.waitForSelector('.cm-content')
	await soonIs(() => page.url(), `${url}/`)
	const other = await page.context().browser().newContext(), second = await other.newPage()
	await second.goto(address)
	await second.waitForSelector('form')
	await soonHas(() => second.textContent('.problem'), 'used before')
	await other.close()
	const tab = await page.context().newPage() // a second tab of the same browser asks the first
	await tab.goto(`${url}/runs`)
	await tab.waitForSelector('h1:text("Runs")')
})

test('a link that is opened in a tab which shows the form already signs in, too', async (x) => {
	const page = x.page = await newPage()
	await page.goto(url)
	await page.waitForSelector('form')
	await page.goto(link())
	await page.waitForSelector('.cm-content')
})

test('signing out removes the key that the link made', async (x) => {
	const page = x.page = await signedIn()
	const before = (await call('GET', '/v1/keys')).body.items.filter((k) => k.name.startsWith('ui-')).length
	await page.click('.top .menu button')
	await page.click('text=Sign out')
	await page.waitForSelector('form')
	await soon('the key is gone', async () => (await call('GET', '/v1/keys')).body.items.filter((k) => k.name.startsWith('ui-')).length === before - 1)
})

// ---- quick run ----

test('one click from the open page to the output of a program', async (x) => {
	const page = x.page = await signedIn()
	await page.click('button.primary')
	await page.waitForSelector('.verdict.ok')
	await soonHas(() => output(page), '5 squared is 25')
	await soonHas(() => page.textContent('.verdict'), 'Finished in')
	await soon('the run is listed', async () => (await page.textContent('.runs')).includes('main.py'))
})

test('output arrives as it is printed, and Stop ends the program with a sentence', async (x) => {
	const page = x.page = await signedIn()
	await type(page, 'import time\nprint("first")\ntime.sleep(60)\nprint("never")\n')
	await page.keyboard.press('Control+Enter')
	await soon('the first line', async () => (await output(page)).includes('first'))
	await page.click('button.stop')
	await page.waitForSelector('.verdict.stopped')
	await soonHas(() => page.textContent('.verdict'), 'Stopped after')
	ok(!(await output(page)).includes('never'), 'it continued')
})

test('stderr is marked, and the place of an error leads to the line', async (x) => {
	const page = x.page = await signedIn()
	await runCode(page, 'import sys\nprint("to stdout")\nprint("to stderr", file=sys.stderr)\n\n1/0\n', 'bad')
	for (const part of ['Exited with status 1', 'ZeroDivisionError']) await soonHas(() => page.textContent('.verdict'), part)
	await soonIs(() => page.textContent('.ln.err >> nth=0'), 'to stderr')
	await soonIs(() => page.textContent('.ln:not(.err) >> nth=0'), 'to stdout')
	await page.click('.out .place')
	await soonIs(() => page.evaluate(() => document.querySelector('.cm-activeLine').textContent), '1/0')
})

test('a program over its memory limit is reported as such and can be run with more', async (x) => {
	const page = x.page = await signedIn()
	await runCode(page, 'b = bytearray(700 << 20)\nprint(len(b))\n', 'bad')
	await soonHas(() => page.textContent('.verdict'), 'memory limit')
	await page.click('text=Re-run with 1 GiB')
	await page.waitForSelector('.verdict.ok')
	await soonHas(() => output(page), String(700 << 20))
})

test('a compiler error is a sentence with a place', async (x) => {
	const page = x.page = await signedIn()
	await page.click('role=radio[name=c]')
	await runCode(page, 'int main(void)\n{\n    return x;\n}\n', 'bad')
	for (const part of ['Not compiled: 1 error', 'line 3']) await soonHas(() => page.textContent('.verdict'), part)
})

test('input and options reach the program', async (x) => {
	const page = x.page = await signedIn()
	await page.click('text=Options')
	await page.fill('.options textarea', 'seven')
	await runCode(page, 'print("read", input())\n', 'ok')
	await soonHas(() => output(page), 'read seven')
})

test('what is shown as code runs as it stands, in all four spellings', async (x) => {
	const page = x.page = await signedIn()
	const code = `print("it's", 6 * 7, "\\\\ \\"x\\" é")\n`
	await type(page, code)
	await page.click('text=Show as code')
	const env = { ...process.env, ATOLL_KEY: key, PATH: `${ATOLL.replace(/\/[^/]*$/, '')}:${process.env.PATH}` }
	const ways = {
		atoll: (text) => spawnSync('bash', ['-c', text], { env, encoding: 'utf8' }),
		curl: (text) => spawnSync('bash', ['-c', text], { env, encoding: 'utf8' }),
		JavaScript: (text) => spawnSync('node', ['--input-type=module', '-e', text], { env, encoding: 'utf8' }),
		Python: (text) => spawnSync('python3', ['-c', text], { env: { ...env, PYTHONIOENCODING: 'utf-8' }, encoding: 'utf8' }),
	}
	for (const [name, way] of Object.entries(ways)) {
		await page.click(`role=tab[name=${name}]`)
		const r = way(await page.textContent('#as-text'))
		const said = name === 'curl' ? JSON.parse(r.stdout || '{}').stdout : r.stdout
		has(`${said}${r.stderr}`, `it's 42 \\ "x" é`)
	}
})

test('a flood of output keeps the page small and alive', async (x) => {
	const page = x.page = await signedIn()
	await type(page, 'import sys\nline = "x" * 99 + "\\n"\nfor i in range(3000):\n    sys.stdout.write(line * 100)\nprint("the end")\n')
	await page.keyboard.press('Control+Enter')
	const worst = await page.evaluate(() => new Promise((done) => { // how long the page does not answer
		let last = performance.now(), most = 0
		const end = last + 1500, tick = () => { const now = performance.now(); most = Math.max(most, now - last); last = now; now < end ? setTimeout(tick, 10) : done(most) }
		tick()
	}))
	await page.waitForSelector('.verdict.ok', { timeout: 120000 })
	await soon('the last line', async () => (await page.textContent('.ln >> nth=-1')) === 'the end')
	ok(await page.evaluate(() => document.querySelectorAll('.ln').length) <= 3000, 'more lines than allowed')
	await soonHas(() => page.textContent('.cut'), 'not shown')
	ok(worst < 20000, `the page stood still for ${worst} ms`)
})

test('output is text: no markup, no script, no escape sequence has an effect', async (x) => {
	const page = x.page = await signedIn()
	const title = await page.title()
	await runCode(page, 'print("<img src=x onerror=\'window.owned=1\'><script>window.owned=1</script>")\nprint("\\x1b]0;owned\\x07\\x1b]8;;javascript:alert(1)\\x07click\\x1b]8;;\\x07 \\x1b[2J\\x1b[31mred\\x1b[0m \\x9b31m\\u202eRTL")\n', 'ok')
	await soonHas(() => output(page), '<img src=x')
	await soonHas(() => output(page), 'click red')
	is(await page.evaluate(() => window.owned), undefined)
	is(await page.title(), title)
	is(await page.$$eval('.out img, .out script, .out a', (l) => l.length), 0)
})

test('a viewer sees why nothing can be run', async (x) => {
	const page = x.page = await newPage()
	await page.goto(link('--role', 'viewer'))
	await page.waitForSelector('.cm-content')
	await soonOk(() => page.isDisabled('button.primary'), 'Run is not disabled')
	await soonHas(() => page.textContent('.note'), 'viewer')
})

// ---- boxes ----

test('the table of boxes is live: made elsewhere, paused, brought back after a delete, gone after another', async (x) => {
	const page = x.page = await signedIn()
	const made = await call('POST', '/v1/boxes', { name: 'journey' })
	is(made.status, 201)
	const row = page.locator('.boxes tbody tr', { hasText: 'journey' })
	await row.waitFor()
	await call('POST', '/v1/boxes/journey/execs', { command: 'while :; do :; done', background: true })
	await soon('CPU is shown', async () => /[1-9]\d* %/.test(await row.textContent()))
	await row.locator('.menu button').first().click()
	await page.click('role=menuitem[name=Pause]')
	await soon('paused', async () => (await row.textContent()).includes('paused'))
	await row.locator('.menu button').first().click()
	await page.click('role=menuitem[name=Delete]')
	await soon('gone from the table', async () => await row.count() === 0)
	await page.click('.toast >> text=Undo')
	await row.waitFor()
	await soonIs(async () => (await call('GET', '/v1/boxes/journey')).status, 200)
	await row.locator('.menu button').first().click()
	await page.click('role=menuitem[name=Delete]')
	await page.click('.toast [aria-label=Close]')
	await soon('gone from the daemon', async () => (await call('GET', '/v1/boxes/journey')).status === 404)
})

test('a box that is kept by a quick run is listed with its files', async (x) => {
	const page = x.page = await signedIn()
	await page.click('text=Keep the box')
	await runCode(page, 'open("made.txt", "w").write("by the run")\n', 'ok')
	await page.waitForSelector('text=Open the box')
	const all = await soon('one box', async () => { const { items } = (await call('GET', '/v1/boxes')).body; return items.length === 1 && items })
	await page.locator('.boxes tbody tr', { hasText: all[0].id }).waitFor()
	const file = await fetch(`${url}/v1/boxes/${all[0].id}/files?path=made.txt`, { headers: { 'X-API-Key': key } })
	is(await file.text(), 'by the run')
	await call('DELETE', `/v1/boxes/${all[0].id}`)
})

// ---- states ----

test('empty, loading and error states say what is there and what to do', async (x) => {
	const page = x.page = await newPage()
	let release
	const held = new Promise((r) => { release = r })
	await page.route('**/v1/boxes?*', async (r) => { await held; await r.continue() })
	await page.goto(link())
	await page.waitForSelector('.list .bone') // loading
	release()
	await page.waitForSelector('.list .empty >> text=atoll new demo')
	await page.unroute('**/v1/boxes?*')
	await page.route('**/v1/runs?*', (r) => r.abort())
	await page.goto(`${url}/runs`)
	const error = page.locator('.state[role=alert]')
	await error.waitFor()
	await soonHas(() => error.textContent(), 'does not answer')
	await page.unroute('**/v1/runs?*')
	await error.locator('text=Retry').click()
	await page.waitForSelector('.runs, .list .empty')
	await page.goto(`${url}/runs/aaaaaaaaaaaa`)
	await soonHas(() => page.locator('.state[role=alert]').textContent(), 'no such run')
	await page.goto(`${url}/boxes/x/y`)
	await page.waitForSelector('h1:text("nothing at this address")')
})

test('offline: a banner, edits continue, and the page reconnects by itself', async (x) => {
	const page = x.page = await signedIn()
	await page.waitForSelector('.top .conn.live')
	await page.context().setOffline(true)
	await page.waitForSelector('.banner')
	await soonHas(() => page.textContent('.banner'), 'Edits are kept')
	await type(page, 'print("typed offline")\n')
	await page.keyboard.press('Control+Enter')
	await page.waitForSelector('.result .state[role=alert]')
	await call('POST', '/v1/boxes', { name: 'meanwhile' })
	await page.context().setOffline(false)
	await page.waitForSelector('.top .conn.live')
	await soon('the banner leaves', async () => await page.locator('.banner').count() === 0)
	await page.locator('.boxes tbody tr', { hasText: 'meanwhile' }).waitFor()
	await page.click('.result >> text=Retry')
	await page.waitForSelector('.verdict.ok')
	await soonHas(() => output(page), 'typed offline')
	await call('DELETE', '/v1/boxes/meanwhile')
})

test('kill -9 of the server: the page reconnects and misses no event', async (x) => {
	const page = x.page = await signedIn()
	await page.waitForSelector('.top .conn.live')
	await killServer()
	await soon('it answers', async () => (await call('POST', '/v1/boxes', { name: 'after' })).status === 201)
	await page.locator('.boxes tbody tr', { hasText: 'after' }).waitFor()
	await page.waitForSelector('.top .conn.live')
	await runCode(page, 'print("still here")\n', 'ok')
	await call('DELETE', '/v1/boxes/after')
})

test('a key that is revoked brings the form over the page, and the work stays on the page', async (x) => {
	const page = x.page = await signedIn()
	await type(page, 'print("my work")\n')
	for (const k of (await call('GET', '/v1/keys')).body.items.filter((k) => k.name.startsWith('ui-'))) await call('DELETE', `/v1/keys/${k.id}`)
	await page.waitForSelector('.over form')
	await soonHas(() => page.textContent('.over'), 'Nothing on this page is lost')
	await page.fill('#key', key)
	await page.click('.over button[type=submit]')
	await soon('the form leaves', async () => await page.locator('.over').count() === 0)
	await soonHas(() => page.textContent('.cm-content'), 'my work')
	await page.keyboard.press('Escape')
	await page.click('button.primary')
	await page.waitForSelector('.verdict.ok')
})

test('storage that is full or switched off changes nothing but what is remembered', async (x) => {
	const page = x.page = await newPage()
	await page.addInitScript(() => { for (const s of ['localStorage', 'sessionStorage']) Object.defineProperty(window, s, { get() { throw new DOMException('denied') } }) })
	await page.goto(link())
	await page.waitForSelector('.cm-content')
	await runCode(page, 'print("without storage")\n', 'ok')
})

// ---- by keyboard, on a phone, in both themes ----

test('everything on Home is done by keyboard alone', async (x) => {
	const page = x.page = await signedIn()
	await soonOk(() => page.evaluate(() => document.activeElement?.closest('.cm-editor') != null), 'the editor has no focus at the start')
	await page.keyboard.press('Control+Enter')
	await page.waitForSelector('.verdict.ok')
	await page.keyboard.press('Escape')
	await page.keyboard.press('Tab')
	await soonOk(() => page.evaluate(() => !document.activeElement?.closest('.cm-editor')), 'Escape and Tab do not leave the editor')
	await page.keyboard.press('F1')
	await page.waitForSelector('.palette input:focus')
	await page.keyboard.type('runs')
	await page.keyboard.press('Enter')
	await page.waitForSelector('h1:text("Runs")')
	await page.keyboard.press('g')
	await page.keyboard.press('b')
	await page.waitForSelector('.cm-content')
	await soon('the keys are listed', async () => { // the editor may take the focus when it is ready
		if (await page.isVisible('.keys')) return true
		await page.keyboard.press('Escape')
		await page.evaluate(() => { document.activeElement?.blur?.(); document.body.focus() })
		await page.keyboard.press('?')
	})
	await page.keyboard.press('Escape')
	await soon('the dialog leaves', async () => await page.locator('dialog').count() === 0)
})

test('at 390 px nothing is cut off and what is touched is large enough', async (x) => {
	const page = x.page = await signedIn({ width: 390, height: 844, mobile: true })
	await page.tap('button.primary')
	await page.waitForSelector('.verdict.ok')
	await soonIs(() => page.evaluate(() => document.documentElement.scrollWidth), 390)
	await soonIs(() => page.evaluate(() => document.getElementById('main').scrollWidth <= 390), true)
	const small = await page.$$eval('.top button, .rail a, .quick footer button, .quick label.check', (l) => l.filter((b) => b.offsetParent && b.getBoundingClientRect().height < 44).map((b) => b.textContent))
	is(small.join(), '', 'smaller than 44 px')
	await page.tap('.rail >> text=Runs')
	await page.waitForSelector('.runs')
	await soonIs(() => page.evaluate(() => document.documentElement.scrollWidth), 390)
})

for (const theme of ['light', 'dark'])
	test(`axe finds nothing on any screen: ${theme}`, async (x) => {
		const page = x.page = await newPage({ theme })
		await page.goto(url)
		await page.waitForSelector('form')
		await accessible(page, 'sign-in')
		await page.goto(link())
		await page.waitForSelector('.cm-content')
		await page.waitForSelector('.list .empty, .boxes')
		await accessible(page, 'home, empty')
		await call('POST', '/v1/boxes', { name: `axe-${theme}` })
		await page.locator('.boxes tbody tr', { hasText: `axe-${theme}` }).waitFor()
		await page.click('text=Options')
		await runCode(page, '# comment\nimport sys\nclass A:\n    x = {"a": 1.5, None: f"{2}"}\nprint("\\x1b[31mred \\x1b[32mgreen \\x1b[33myellow \\x1b[34mblue \\x1b[35mmagenta \\x1b[36mcyan\\x1b[0m")\nraise ValueError("bad")\n', 'bad')
		await page.click('text=Show as code')
		await accessible(page, 'home, after a run')
		await page.keyboard.press('F1')
		await page.waitForSelector('.palette li')
		await accessible(page, 'palette')
		await page.keyboard.press('Escape')
		await page.setViewportSize({ width: 390, height: 844 })
		await accessible(page, 'home at 390 px')
		await page.setViewportSize({ width: 1280, height: 800 })
		await page.click('.rail >> text=Runs')
		await page.waitForSelector('.runs')
		await accessible(page, 'runs')
		await page.click('.runs a >> nth=0')
		await page.waitForSelector('.facts')
		await accessible(page, 'run')
		await call('DELETE', `/v1/boxes/axe-${theme}`)
	})

// ---- what protects it ----

test('no inline script runs, and no page may frame it', async (x) => {
	const page = x.page = await signedIn()
	const ran = await page.evaluate(() => new Promise((done) => {
		const s = document.createElement('script')
		s.textContent = 'window.inline = 1'
		document.body.append(s)
		const e = document.createElement('div')
		e.innerHTML = '<img src="data:," onerror="window.inline = 2">'
		document.body.append(e)
		setTimeout('window.inline = 3')
		setTimeout(() => done(window.inline ?? 0), 300)
	}))
	is(ran, 0)
	const other = await newPage() // of another origin: localhost is not 127.0.0.1
	await other.route('http://localhost:1/', (r) => r.fulfill({ contentType: 'text/html', body: `<iframe src="${url}/"></iframe>` }))
	await other.goto('http://localhost:1/')
	await other.waitForTimeout(500)
	is(await other.frames()[1]?.evaluate(() => document.getElementById('app') !== null).catch(() => false) ?? false, false)
	await other.context().close()
	page.problems.length = 0 // the browser reports what it refused
})

test('budgets: shell 60 KB, one chunk 100 KB, all 750 KB', async () => {
	const { js, css, sizes, metafile } = JSON.parse(execFileSync('node', [new URL('../bundle.mjs', import.meta.url).pathname, '--list'], { encoding: 'utf8', maxBuffer: 64 << 20 }))
	const short = (p) => '/a/' + p.split('/').pop(), outputs = Object.fromEntries(Object.entries(metafile.outputs).map(([p, o]) => [short(p), o]))
	const first = new Set(), add = (p) => { if (first.has(p)) return; first.add(p); for (const i of outputs[p].imports) if (i.kind === 'import-statement') add(short(i.path)) }
	add(js)
	const shell = [...first, css, '/'].reduce((n, p) => n + sizes[p], 0), all = Object.values(sizes).reduce((a, b) => a + b, 0)
	console.log(`# shell ${shell} bytes, largest file ${Math.max(...Object.values(sizes))}, all ${all}`)
	ok(shell <= 60e3, `the shell has ${shell} bytes`)
	for (const [p, n] of Object.entries(sizes)) ok(n <= 100e3, `${p} has ${n} bytes`)
	ok(all <= 750e3, `all files together have ${all} bytes`)
})

await runAll()
