// viewers.mjs - files that are shown as more than text: tables, Markdown, JSON, HTML. Started by tests/system/ui_viewers.sh.
import { get, gone, newBox, open, put, saved } from './boxes.mjs'
import { accessible, runAll, url } from './kit.mjs'
import { is, ok, soon, soonHas, soonIs, test } from './tap.mjs'

const { UI_SHOTS } = process.env
const body = (page) => page.textContent('.grid-body')

test('a table of 200,000 rows: only what is seen is drawn; scroll, filter, sort, source', async (x) => {
	const lines = ['id,name,value,note']
	for (let n = 0; n < 200000; n++) lines.push(`${n},name ${n},${(n * 7919) % 200000},${n % 1000 ? '' : '"a ""quoted"", field"'}`)
	const box = await newBox({ 'data.csv': lines.join('\n') + '\n' }), page = x.page = await open(box, 'data.csv', { shown: '.table-view' })
	await soonHas(() => page.textContent('.view-bar'), '200,000 rows, 4 columns')
	await soonHas(() => body(page), 'a "quoted", field')
	ok(await page.locator('.grid-body [role=row]').count() < 100, 'few rows are drawn')
	await page.evaluate(() => { const s = document.querySelector('.grid-scroll'); s.scrollTop = s.scrollHeight })
	await soon('the last row', async () => (await body(page)).includes('name 199999'))
	await page.click('.grid-head >> text=value')
	await page.evaluate(() => { document.querySelector('.grid-scroll').scrollTop = 0 })
	const third = () => page.locator('.grid-body [role=row]').evaluateAll((rows) => rows.slice(0, 3).map((r) => r.children[3].textContent).join())
	await soon('0, 1, 2', async () => await third() === '0,1,2')
	await page.click('.grid-head >> text=value')
	await soon('downwards', async () => await third() === '199999,199998,199997')
	await page.fill('.view-bar input', 'name 4242')
	await soon('11 rows', async () => (await page.textContent('.view-bar')).includes('11 of 200,000 rows'))
	await page.click('.view-switch >> text=Source')
	await soon('its source', async () => (await page.textContent('.editor-panel > .editor .cm-content')).includes('id,name,value,note'))
	await soonHas(() => page.url(), 'view=source')
	await gone(box)
})

test('separators, quotes with line breaks, short rows, nothing at all', async (x) => {
	const box = await newBox({ 'a.csv': 'x;y;z\r\n1;"two\nlines";3\r\n4;5\r\n', 'b.tsv': 'p\tq\n1,5\t2\n', 'none.csv': '' }), page = x.page = await open(box, 'a.csv', { shown: '.table-view' })
	await soonHas(() => page.textContent('.view-bar'), '2 rows, 3 columns')
	await soonHas(() => body(page), 'two\nlines')
	await page.click('.row-item >> text=b.tsv')
	await soon('tabs', async () => (await page.textContent('.view-bar')).includes('1 row, 2 columns'))
	await page.click('.row-item >> text=none.csv')
	await page.waitForSelector('text=This table has no rows.')
	await gone(box)
})

test('Markdown: what it says, links to files of the box, pictures of the box, nothing that is executed', async (x) => {
	const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64')
	const text = '# Title\n\nSome *text*, `code` and ~~old~~ [a file](sub/other.py) and [a page](https://example.org/).\n\n- [x] done\n- [ ] open\n\n1. one\n2. two\n\n> quoted\n\n```python\nprint(1)\n```\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n![dot](dot.png)\n\n[bad](javascript:alert(1)) <b onclick="alert(1)">bold</b>\n\n<script>document.title = "taken"</script>\n'
	const box = await newBox({ 'readme.md': text, 'sub/other.py': 'print("other")\n', 'dot.png': png }), page = x.page = await open(box, 'readme.md')
	await page.click('.view-switch >> text=Preview')
	await page.waitForSelector('.markdown .md-h1 >> text=Title')
	for (const part of ['em >> text=text', 'code >> text=code', 's >> text=old', 'ol li >> text=two', 'blockquote >> text=quoted', 'pre >> text=print(1)', 'td >> text=2']) await page.waitForSelector(`.markdown ${part}`)
	await soonIs(() => page.getAttribute('.markdown a', 'href'), 'https://example.org/')
	await soonIs(() => page.getAttribute('.markdown a', 'rel'), 'noopener noreferrer')
	await soonIs(() => page.locator('.markdown a').count(), 1)
	await soon('the picture', () => page.locator('.markdown img').evaluate((i) => i.naturalWidth === 1))
	is(await page.locator('.markdown b').count(), 0)
	ok(await page.title() !== 'taken', 'no script was executed')
	await page.click('.markdown .place >> text=a file')
	await page.waitForSelector('.tab.on >> text=other.py')
	await page.click('.tab >> text=readme.md')
	await put(box, 'readme.md', '# Changed in the box\n')
	await page.waitForSelector('.markdown .md-h1 >> text=Changed in the box')
	await gone(box)
})

test('JSON as a tree with all digits; what is not JSON says where', async (x) => {
	const box = await newBox({ 'a.json': '{"big": 12345678901234567890, "list": [1, {"deep": {"deeper": true}}], "text": "<b>x</b>"}', 'bad.json': '{\n  "a": 1,\n  oops\n}\n', 'l.jsonl': '{"n": 1}\n{"n": 2}\n' }), page = x.page = await open(box, 'a.json')
	await page.click('.view-switch >> text=Tree')
	await soon('all digits', async () => (await page.textContent('.json')).includes('12345678901234567890'))
	await soonHas(() => page.textContent('.json'), '<b>x</b>')
	is(await page.locator('.json >> text=deeper').count(), 0, 'folded')
	await page.click('.json .j-fold[aria-label="1"]')
	await page.click('.json .j-fold[aria-label=deep]')
	await page.waitForSelector('.json >> text=deeper')
	await page.click('.row-item >> text=bad.json')
	await page.waitForSelector('.tab.on >> text=bad.json')
	await page.click('.view-switch >> text=Tree')
	await page.waitForSelector('text=bad.json is not valid JSON')
	await page.click('text=Show line 3')
	await soon('the line', async () => (await page.textContent('.editor-panel .cm-activeLine')).includes('oops'))
	await page.click('.row-item >> text=l.jsonl')
	await page.waitForSelector('.tab.on >> text=l.jsonl')
	await page.click('.view-switch >> text=Tree')
	await soon('two documents', async () => (await page.textContent('.json')).includes('[2 items]'))
	await gone(box)
})

test('an HTML file is shown in a frame of its own and cannot reach the page or the API', async (x) => {
	const attack = `<!doctype html><title>x</title><h1>A page</h1><p id=said></p><script>
		const out = []
		for (const [name, f] of Object.entries({ parent: () => parent.document, storage: () => localStorage.length, opener: () => top.location.href })) try { f(); out.push(name + ' REACHED') } catch { out.push(name + ' refused') }
		fetch('${url}/v1/boxes').then(() => out.push('fetch REACHED'), () => out.push('fetch refused')).finally(() => { document.getElementById('said').textContent = out.join(', ') })
	</script>`
	const box = await newBox({ 'page.html': attack, 'leave.html': `<script>location = '${url}/'</script>` }), page = x.page = await open(box, 'page.html')
	await page.click('.view-switch >> text=Preview')
	const frame = page.frameLocator('.html-frame')
	await frame.locator('h1 >> text=A page').waitFor()
	await soon('the attack was tried', async () => (await frame.locator('#said').textContent()) === 'parent refused, storage refused, opener refused, fetch refused')
	await page.click('.row-item >> text=leave.html')
	await page.waitForSelector('.tab.on >> text=leave.html')
	await page.click('.view-switch >> text=Preview')
	await soon('the UI is not shown in the frame', async () => !(await Promise.all(page.frames().slice(1).map((f) => f.locator('#app').count().catch(() => 0)))).some(Boolean))
	ok(page.url().startsWith(`${url}/b/${box}`), 'the page is where it was')
	page.problems.length = 0 // the browser reports what it refused
	await gone(box)
})

test('typing in the source and looking at the preview are one text', async (x) => {
	const box = await newBox({ 'a.md': 'one\n' }), page = x.page = await open(box, 'a.md')
	await page.click('.editor-panel .cm-content')
	await page.keyboard.press('Control+a')
	await page.keyboard.insertText('# Two\n')
	await page.click('.view-switch >> text=Preview')
	await page.waitForSelector('.markdown .md-h1 >> text=Two')
	await saved(page)
	await soonIs(() => get(box, 'a.md'), '# Two\n')
	await page.reload()
	await page.waitForSelector('.markdown .md-h1 >> text=Two') // the address has the view
	await page.click('.view-switch >> text=Source')
	await soon('the source', async () => (await page.textContent('.editor-panel .cm-content')).includes('# Two'))
	await gone(box)
})

for (const theme of ['light', 'dark'])
	test(`viewers are accessible: ${theme}`, async (x) => {
		const box = await newBox({
			'sales.csv': 'month,region,units,revenue\n' + Array.from({ length: 300 }, (_, n) => `2026-${String(n % 12 + 1).padStart(2, '0')},${['north', 'south', 'east', 'west'][n % 4]},${n * 7 % 300},${(n * 791.3 % 9000).toFixed(2)}`).join('\n'),
			'README.md': '# Sales\n\nFigures of the **four regions**, from `sales.csv`.\n\n## Columns\n\n| column | meaning |\n|---|---|\n| month | the month of the order |\n| units | pieces sold |\n\n- [x] imported\n- [ ] checked\n\n> Revenue is in euro.\n\n```python\nimport pandas as pd\npd.read_csv("sales.csv")\n```\n',
			'config.json': JSON.stringify({ name: 'sales', version: 3, active: true, regions: ['north', 'south'], limits: { rows: 100000, note: null } }), 'page.html': '<h1>A page</h1><p>Text of the page</p>',
		}), page = x.page = await open(box, 'sales.csv', { theme, shown: '.table-view' })
		const look = async (name) => { if (UI_SHOTS) await page.screenshot({ path: `${UI_SHOTS}/viewer-${name}-${theme}.png` }); await accessible(page, name) }
		await look('csv')
		for (const [file, wait] of [['README.md', '.markdown .md-h1'], ['config.json', '.json'], ['page.html', '.html-frame']]) {
			await page.click(`.row-item >> text=${file}`)
			await page.waitForSelector(`.tab.on >> text=${file}`)
			await page.click('.view-switch [aria-checked=false]')
			await page.waitForSelector(wait)
			if (file === 'page.html') await page.frameLocator('.html-frame').locator('h1').waitFor()
			await look(file.replace(/\W/g, '-'))
		}
		await gone(box)
	})

await runAll()
