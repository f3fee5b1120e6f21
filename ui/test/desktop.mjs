// desktop.mjs - the template desktop: built, used by its tools over MCP, looked at in a browser, and used with E2B's desktop SDK.
// Started by desktop.sh (make templates); prints how long each part took.
import { createRequire } from 'node:module'
import { inflateSync } from 'node:zlib'
import { call, key, newPage, runAll, url } from './kit.mjs'
import { is, ok, soon, test } from './tap.mjs'

const seconds = (ms) => `${(ms / 1000).toFixed(2)} s`
const note = (what, began) => console.log(`# ${what}: ${seconds(Date.now() - began)}`)
let number = 0

/** The size of a PNG image, and how many different lines of pixels it has. */
function image(png) {
	const bytes = Buffer.from(png)
	is(bytes.subarray(1, 4).toString(), 'PNG')
	const width = bytes.readUInt32BE(16), height = bytes.readUInt32BE(20), parts = []
	for (let at = 8; at < bytes.length; at += 12 + bytes.readUInt32BE(at))
		if (bytes.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(bytes.subarray(at + 8, at + 8 + bytes.readUInt32BE(at)))
	const pixels = inflateSync(Buffer.concat(parts)), lines = new Set()
	for (let y = 0; y < height; y++) lines.add(pixels.toString('latin1', y * pixels.length / height, (y + 1) * pixels.length / height))
	return { width, height, lines: lines.size }
}

async function mcp(name, args = {}) {
	const { status, body } = await fetch(`${url}/mcp`, {
		method: 'POST',
		headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', Authorization: `Bearer ${key}`, 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': name },
		body: JSON.stringify({ jsonrpc: '2.0', id: ++number, method: 'tools/call', params: { name, arguments: args, _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {}, 'io.modelcontextprotocol/clientInfo': { name: 'desktop', version: '1' } } } }),
	}).then(async (a) => ({ status: a.status, body: await a.json() }))
	is(status, 200, JSON.stringify(body))
	ok(body.result && !body.result.isError, `${name}: ${JSON.stringify(body).slice(0, 400)}`)
	return body.result
}
const run = async (box, command) => (await call('POST', `/v1/boxes/${box}/execs`, { command })).body

test('the template is built from Debian packages, and its own test passes', async () => {
	const began = Date.now(), b = (await call('POST', '/v1/templates', { name: 'desktop' })).body
	const built = await soon('the build ends', async () => {
		const now = (await call('GET', `/v1/builds/${b.id}`)).body
		return ['waiting', 'building'].includes(now.state) ? null : now
	}, 1200000)
	is(built.state, 'ready', JSON.stringify(built.reason))
	note('desktop: build', began)
}, 1200)

let box
test('the tools over MCP see the screen, click, type, and open pages', async () => {
	let began = Date.now()
	box = (await mcp('create_box', { template: 'desktop' })).structuredContent.id
	const first = (await mcp('screenshot', { box })).content.find((c) => c.type === 'image')
	note('  new box: first screenshot', began)
	is(first.mimeType, 'image/png')
	is(image(Buffer.from(first.data, 'base64')).width, 1280)

	await run(box, `cat >/tmp/page.html <<'END'
<title>page of the tools</title><style>body { margin: 0 } * { font-size: 40px }</style>
<input style="position: absolute; left: 0; top: 0; width: 1280px; height: 100px" oninput="document.title = 'typed ' + this.value">
<div style="position: absolute; top: 100px; width: 1280px; height: 100px; background: red" ondblclick="document.title = 'double'"></div>
<div style="height: 9000px"></div><script>onscroll = () => { if (scrollY > 100) document.title = 'scrolled' }</script>
END`)
	const named = (title) => soon(`a window is named ${title}`, async () => (await run(box, `xdotool search --onlyvisible --name '${title}'`)).exit_code === 0, 60000)
	began = Date.now()
	await mcp('open_url', { box, url: 'file:///tmp/page.html' })
	await named('page of the tools')
	note('  open_url: the page has its title', began)
	// Where the page is on the screen: below the bar of the browser, which fills the screen.
	const shot = (await mcp('screenshot', { box })).content.find((c) => c.type === 'image')
	ok(image(Buffer.from(shot.data, 'base64')).lines > 50, 'a screenshot of one colour')
	const top = 140
	await soon('text is typed', async () => {
		await mcp('click', { box, x: 600, y: top + 40 })
		await mcp('press_keys', { box, keys: 'ctrl+a' })
		await mcp('type_text', { box, text: 'caf\u00e9 42' })
		return (await run(box, "xdotool search --onlyvisible --name 'typed caf\u00e9 42'")).exit_code === 0
	}, 60000)
	await mcp('double_click', { box, x: 600, y: top + 150 })
	await named('double')
	await mcp('scroll', { box, x: 600, y: 600, direction: 'down', amount: 10 })
	await named('scrolled')
	await mcp('move_mouse', { box, x: 17, y: 23 })
	ok((await run(box, 'xdotool getmouselocation')).stdout.startsWith('x:17 y:23'))
})

test('the desktop is a page at the preview URL of its port', async (x) => {
	const { url: address } = (await mcp('open_port', { box, port: 6080 })).structuredContent
	const page = x.page = await newPage()
	await page.goto(address)
	await page.waitForURL(/vnc.html/)
	await page.waitForSelector('html.noVNC_connected', { timeout: 60000, state: 'attached' })
	await soon('the page shows the screen', () => page.evaluate(() => {
		const c = document.querySelector('canvas')
		return c && c.width === 1280 && new Set(c.getContext('2d').getImageData(0, 0, 1280, 800).data).size > 10
	}), 60000)
	page.problems.length = 0
	await call('DELETE', `/v1/boxes/${box}`)
})

test("E2B's desktop SDK creates a sandbox, sees its screen, types text and streams it", async () => {
	Object.assign(process.env, { E2B_API_KEY: key, E2B_API_URL: url, E2B_SANDBOX_URL: url })
	const { Sandbox } = createRequire(`${process.env.E2B_DESKTOP}/package.json`)('@e2b/desktop')
	let began = Date.now()
	const desktop = await Sandbox.create({ resolution: [1100, 700], timeoutMs: 600000 })
	note("  E2B's SDK: created, with Xfce", began)
	try {
		is(JSON.stringify(await desktop.getScreenSize()), '{"width":1100,"height":700}')
		const shot = image(await desktop.screenshot())
		is(shot.width, 1100)
		ok(shot.lines > 1, 'a screenshot of one colour')
		await desktop.launch('debian-xterm')
		const window = await soon('a terminal opens', () => desktop.getApplicationWindows('xterm').then((w) => w[0], () => null), 60000)
		ok(await desktop.getWindowTitle(window))
		await soon('text is typed', async () => {
			await desktop.commands.run(`xdotool windowactivate ${window}`)
			await desktop.write('echo "typed by the SDK" >/tmp/typed')
			await desktop.press('enter')
			return desktop.files.read('/tmp/typed').then((t) => t === 'typed by the SDK\n', () => false)
		}, 60000)
		await desktop.moveMouse(30, 40)
		is(JSON.stringify(await desktop.getCursorPosition()), '{"x":30,"y":40}')
		await desktop.open('http://localhost:1/')
		await soon('a browser opens', () => desktop.getApplicationWindows('chromium').then((w) => w[0], () => null), 90000)
		await desktop.stream.start({ requireAuth: true })
		ok(desktop.stream.getUrl({ authKey: desktop.stream.getAuthKey() }).includes('/vnc.html?'))
		is((await desktop.commands.run('curl -s localhost:6080/vnc.html | grep -c noVNC')).exitCode, 0)
		await desktop.stream.stop()
	} finally {
		await desktop.kill()
	}
})

await runAll()
