// play.mjs - programs in the browser: no box, no key, no network. Started by tests/system/ui_play.sh.
import { accessible, call, killServer, newPage, runAll, signedIn, type, url } from './kit.mjs'
import { has, is, ok, soonHas, soonOk, test } from './tap.mjs'

const state = (page) => page.textContent('#state')
const shown = (page) => page.textContent('#out')
async function play() {
	const page = await newPage()
	await page.goto(`${url}/play/`)
	await soonOk(() => page.isEnabled('#run'), 'the interpreters are installed')
	return page
}
async function run(page, language, code, end = 'Finished') {
	await page.selectOption('#language', language)
	await page.fill('#code', code)
	await page.click('#run')
	await page.waitForSelector('#stop:disabled') // loading an interpreter can take half a minute
	has(await state(page), end)
}
/** The program ends, and part is in its output. */
async function gives(page, language, code, part) {
	await run(page, language, code)
	await soonHas(() => shown(page), part)
}
const boxes = async () => (await call('GET', '/v1/boxes')).body.items.map((b) => b.id)

test('Python and JavaScript run on the page, without a box', async (x) => {
	const page = x.page = await play()
	await accessible(page, 'play')
	has(await page.textContent('body'), 'in your browser')
	await gives(page, 'python', 'import sys, json\nprint(6 * 7, json.dumps({"a": [1]}), sys.version_info[0])', '42 {"a": [1]} 3')
	await gives(page, 'javascript', 'console.log(6 * 7, {a: [1]}, "text"); Promise.resolve(5).then((n) => print("later", n))', '42 {"a":[1]} text')
	await soonHas(() => shown(page), 'later 5')
	is((await boxes()).length, 0)
})

test('errors, exit codes and input', async (x) => {
	const page = x.page = await play()
	await run(page, 'python', 'def f():\n    return 1 / 0\nf()', 'Failed: ZeroDivisionError')
	await soonHas(() => shown(page), 'File "main.py", line 2, in f')
	ok(!(await shown(page)).includes('_pyodide'), 'no lines of Pyodide itself')
	await run(page, 'python', 'raise SystemExit(3)', 'Failed: 3')
	await run(page, 'javascript', 'null.x', 'Failed: TypeError')
	await run(page, 'javascript', 'function f() { return f() + 1 }\nf()', 'stack')
	await page.click('summary')
	await page.fill('#input', 'first\nsecond\n')
	await gives(page, 'python', 'print(input(), "and", input())', 'first and second')
	await gives(page, 'javascript', 'print(readline(), "and", readline())', 'first and second')
})

test('Stop ends an endless loop within a second, and the next program runs', async (x) => {
	const page = x.page = await play()
	for (const [language, code] of [['python', 'print("on")\nwhile True: pass'], ['javascript', 'print("on"); for (;;);']]) {
		await run(page, language, 'print(1)') // loaded
		await page.fill('#code', code)
		await page.click('#run')
		await soonOk(async () => (await state(page)).startsWith('Running'), 'the loop runs')
		const worker = page.workers()[0], closed = new Promise((resolve) => worker.on('close', resolve)), began = performance.now()
		await page.click('#stop')
		await page.waitForSelector('#run:enabled')
		const took = performance.now() - began
		ok(took < 1000, `stopped after ${Math.round(took)} ms`)
		is(await state(page), 'Stopped.')
		await closed // Chromium ends a busy thread after two seconds
		await gives(page, language, 'print(11 * 11)', '121')
	}
})

test('100 MB of output are bounded, and the page reports it', async (x) => {
	const page = x.page = await play()
	await run(page, 'python', 'line = "x" * 99999 + "\\n"\nfor n in range(1000): print(line, end="")')
	has(await state(page), 'The first 1 MiB of output are shown; ')
	has(await state(page), 'were left out')
	ok((await shown(page)).length <= 1 << 20, 'no more than that is in the page')
	await page.evaluate(() => document.title) // it answers
	await run(page, 'javascript', 'const line = "y".repeat(99999); for (let n = 0; n < 1000; n++) print(line)')
	has(await state(page), 'were left out')
})

const FETCH = `import js, asyncio
async def attempt(what):
    try:
        a = await js.fetch(what)
        return "reached " + str(a.status)
    except Exception as e:
        return "blocked"
`
test('a program reaches neither the API nor another host nor anything of the web UI', async (x) => {
	const page = x.page = await play(), asked = []
	page.context().on('request', (r) => asked.push(r.url()))
	for (const address of [`${url}/v1/boxes`, `${url}/`, `${url}/play/info`, 'http://127.0.0.1:1/', 'https://example.com/'])
		await gives(page, 'python', `${FETCH}print(await attempt("${address}"))`, 'blocked')
	await gives(page, 'python', `${FETCH}print(await attempt("${url}/play/lib/"))`, 'reached 404')
	await gives(page, 'python', `import js
for f in (lambda: js.XMLHttpRequest.new().send(), lambda: js.WebSocket.new("${url.replace('http', 'ws')}/v1/ws"), lambda: js.importScripts("${url}/v1/boxes"), lambda: js.eval("1")):
    try: f(); print("no error")
    except BaseException as e: print("error")
print(js.self.origin)`, 'null') // an opaque origin: no storage, no channel of the web UI
	ok(!asked.some((a) => a.includes('/v1/') || a.includes('example.com')), `requests: ${asked.filter((a) => !a.includes('/play/'))}`)
	await gives(page, 'python', 'import js\ntry:\n    await js.indexedDB.databases()\n    print("has storage")\nexcept BaseException: print("no storage")', 'no storage')
	await gives(page, 'javascript', 'print(typeof fetch, typeof XMLHttpRequest, typeof postMessage)', 'undefined undefined undefined')
	page.problems.length = 0 // each attempt is reported
})

test('programs run while the server is not reachable', async (x) => {
	const page = x.page = await play()
	await run(page, 'python', 'print(1)')
	await run(page, 'javascript', 'print(1)')
	await page.context().setOffline(true)
	await killServer()
	await gives(page, 'python', 'import statistics\nprint(statistics.mean([1, 2, 6]))', '3')
	await gives(page, 'javascript', 'print(2 ** 10)', '1024')
})

test('"Run in the browser" of the web UI creates no box', async (x) => {
	const page = x.page = await signedIn(), before = await boxes()
	await type(page, 'print("from", 40 + 2)')
	await page.click('text=Run in the browser')
	await page.waitForSelector('.verdict.ok')
	has(await page.textContent('.out'), 'from 42')
	await soonHas(() => page.textContent('.result'), 'In your browser: no box was created.')
	await type(page, 'while True: pass')
	await page.click('text=Run in the browser')
	await soonOk(() => page.isVisible('button.stop'), 'it runs')
	await page.click('button.stop')
	await soonHas(() => page.textContent('.verdict'), 'stopped')
	ok((await boxes()).every((id) => before.includes(id)), 'no new box')
})

await runAll()
