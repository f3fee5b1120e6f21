// screenshots.mjs - a picture of every screen, in both themes and two widths, below UI_SHOTS. Started by screenshots.sh.
import { accessible, call, key, link, newPage, runAll, runCode, url } from './kit.mjs'
import { test } from './tap.mjs'

const out = process.env.UI_SHOTS
const put = (box, path, body) => fetch(`${url}/v1/boxes/${box}/files?${new URLSearchParams({ path })}`, { method: 'PUT', body, headers: { 'X-API-Key': key, 'Content-Type': 'application/octet-stream' } })

const server = `from http.server import HTTPServer, SimpleHTTPRequestHandler


def main(port: int = 3000) -> None:
    """Serve the files of this folder."""
    print(f"serving on port {port}")
    HTTPServer(("", port), SimpleHTTPRequestHandler).serve_forever()


main()
`
const site = '<!doctype html><title>Lagoon</title><style>body{font:16px system-ui;margin:0;display:grid;place-items:center;height:100vh;background:linear-gradient(#0b6e66,#3cc9b8);color:#fff}h1{font-size:44px;margin:0}</style><div><h1>Lagoon</h1><p>served from a box</p></div>'

const csv = 'day,place,depth,temperature\n' + Array.from({ length: 400 }, (_, n) => `2026-${String(n % 12 + 1).padStart(2, '0')}-${String(n % 28 + 1).padStart(2, '0')},${['reef', 'lagoon', 'channel'][n % 3]},${(n * 7 % 40) + 1},${(24 + n * 13 % 50 / 10).toFixed(1)}`).join('\n') + '\n'
const cell = (source, kind = 'code') => ({ cell_type: kind, id: Math.random().toString(36).slice(2, 10), metadata: {}, source, ...(kind === 'code' && { outputs: [], execution_count: null }) })
const book = JSON.stringify({ nbformat: 4, nbformat_minor: 5, metadata: {}, cells: [cell('# Lagoon\nTemperature by *place*, from `data/values.csv`.', 'markdown'), cell('import pandas as pd\nv = pd.read_csv("data/values.csv")\nv.groupby("place")[["depth", "temperature"]].mean().round(2)'), cell('import matplotlib.pyplot as plt\nv.groupby("day").temperature.mean().plot(figsize=(7, 2.2))\nplt.show()')] })

await call('POST', '/v1/boxes', { name: 'web', lifetime_ms: 3600000 })
for (const [path, text] of Object.entries({ 'server.py': server, 'index.html': site, 'README.md': '# Lagoon\n', 'data/values.csv': csv, 'analysis.ipynb': book })) await put('web', path, text)
await call('POST', '/v1/boxes', { name: 'trial', lifetime_ms: 3600000 })
await call('POST', '/v1/boxes/trial/pause', {})
await call('POST', '/v1/boxes', { name: 'worker', lifetime_ms: 3600000 })
await call('POST', '/v1/boxes/worker/execs', { command: 'while :; do seq 40000 >/dev/null; sleep 0.2; done', background: true })
await call('POST', '/v1/boxes/web/execs', { language: 'python', entry: 'server.py', background: true, tag: 'ui-run-first' })

const { id: pipeline } = (await call('POST', '/v1/pipelines', { task: 'print the sum of the values', files: { 'main.py': 'values = [1, 2, 3]\n\nprnt(sum(values))\n' }, examples: [{ input: '', expected: '6\n' }] })).body
await call('GET', `/v1/pipelines/${pipeline}?wait=1`)
await fetch(`${url}/v1/batch?language=python`, { method: 'POST', headers: { 'X-API-Key': key, 'Content-Type': 'application/x-ndjson' }, body: Array.from({ length: 40 }, (_, i) => JSON.stringify({ id: `task-${i}`, code: `print(${i} * 7)`, expected: i % 9 ? `${i * 7}\n` : 'other\n' })).join('\n') + '\n' }).then((a) => a.text())
const [batch] = (await call('GET', '/v1/batch')).body.items

for (const theme of ['light', 'dark'])
	for (const width of [1360, 390])
		test(`${theme}, ${width} px`, async (x) => {
			const page = x.page = await newPage({ theme, width, height: width < 500 ? 844 : 860, mobile: width < 500 })
			const take = async (name) => { await page.waitForTimeout(300); await page.screenshot({ path: `${out}/${name}-${theme}-${width}.png` }) }
			await page.goto(url)
			await page.waitForSelector('form')
			await take('sign-in')
			await page.goto(link())
			await page.waitForSelector('.cm-content')
			await page.waitForSelector('.boxes')
			await page.waitForTimeout(3000)
			await take('home')
			await runCode(page, 'def primes(most: int):\n    """All prime numbers below a limit."""\n    found = []\n    for n in range(2, most):\n        if all(n % p for p in found):\n            found.append(n)\n            yield n\n\n\nfor p in primes(30):\n    print(p, "squared is", p * p)\n', 'ok')
			await take('home-run')
			await runCode(page, 'import sys\nprint("to stdout")\nprint("to stderr", file=sys.stderr)\n1/0\n', 'bad')
			await take('home-error')
			await page.keyboard.press('F1')
			await page.waitForSelector('.palette li')
			await take('palette')
			await page.keyboard.press('Escape')
			await page.goto(`${url}/runs`)
			await page.waitForSelector('.runs')
			await take('runs')
			await page.click('.runs a >> nth=0')
			await page.waitForSelector('.facts')
			await take('run')
			for (const [name, path, there] of [['pipelines', '/pipelines', '.runs'], ['pipeline', `/pipelines/${pipeline}?cell=2.coder`, '.diff'], ['batches', '/batches', '.runs'], ['batch', `/batches/${batch.id}`, '.results'], ['agents', '/agents', '.state'],
				['monitor', '/monitor', '.graph canvas'], ['events', '/activity', '.rows'], ['audit', '/activity?view=audit', '.rows'], ['settings', '/settings', '.keys-table'], ['settings-teams', '/settings/teams', '.days'], ['settings-about', '/settings/about', '.language-list']]) {
				await page.goto(url + path)
				await page.waitForSelector(there)
				await take(name)
			}
			await page.goto(`${url}/b/web?file=server.py`)
			await page.waitForSelector('.cm-line')
			await page.waitForTimeout(500)
			await take('workspace')
			for (const [file, name, wait] of [['analysis.ipynb', 'notebook', '.notebook .nb-cell'], ['data/values.csv', 'table', '.table-view']]) {
				await page.goto(`${url}/b/web?file=${file}`)
				await page.waitForSelector(wait)
				if (name === 'notebook') { await page.click('.nb-bar >> text=Run all'); await page.waitForSelector('.outputs .figure', { timeout: 120000 }); await page.keyboard.press('Control+j') } // more room
				await take(name)
				if (name === 'notebook') await page.keyboard.press('Control+j')
			}
			if (width > 500) {
				await page.click('.side-tabs [title=Packages]')
				await page.waitForSelector('.pkg-list li')
				await take('packages')
				await page.click('.side-tabs [title=Files]')
			}
			await page.goto(`${url}/b/web?file=server.py`)
			await page.waitForSelector('.cm-line')
			await page.click('.bar >> text=Preview')
			await page.fill('#preview-port', '3000')
			await page.click('.address >> text=Open')
			await page.frameLocator('.preview iframe').locator('h1').waitFor()
			await take('workspace-preview')
			await page.click('.preview [aria-label="Close the preview"]')
			if (width < 500) await page.click('.pane-bar >> text=Panel')
			await page.click('.panel .tabs > .small')
			await page.waitForSelector('.terminal-box:not(.away) .xterm-screen')
			await page.waitForTimeout(500)
			await page.keyboard.type('ls -l --color; uname -sr\n')
			await page.waitForTimeout(500)
			await take('workspace-terminal')
			await page.click('.panel [role=tab] >> text=Monitor')
			await page.waitForSelector('.graph canvas')
			await page.waitForTimeout(3000)
			await take('workspace-monitor')
			await accessible(page, 'the last of them')
		})

await runAll()
