// web_templates.mjs - Next.js and Nuxt from npm: built, used through /api/sandbox, rendered in a browser. Started by
// web_templates.sh (make templates), because the installs take minutes; prints how long each part took.
import { call, newPage, runAll } from './kit.mjs'
import { is, ok, soon, test } from './tap.mjs'

const wanted = (process.env.WEB_TEMPLATES ?? 'nextjs-developer vue-developer').split(' ')
const pages = {
	'nextjs-developer': { file_path: 'pages/index.tsx', code: (text) => `export default function Home() {\n  return <h1 id="text">${text}</h1>\n}\n` },
	'vue-developer': { file_path: 'app.vue', code: (text) => `<template>\n  <h1 id="text">${text}</h1>\n</template>\n` },
}
const seconds = (ms) => `${(ms / 1000).toFixed(2)} s`
const note = (what, began) => console.log(`# ${what}: ${seconds(Date.now() - began)}`)

async function fragment(template, session, text) {
	const { file_path, code } = pages[template], began = Date.now()
	const { status, body } = await call('POST', '/api/sandbox', { fragment: { template, file_path, code: code(text), port: 3000, additional_dependencies: [], has_additional_dependencies: false }, session })
	is(status, 200, JSON.stringify(body))
	ok(body.url, JSON.stringify(body))
	return { ...body, began }
}

for (const template of wanted)
	test(`${template} is built from npm and serves a fragment; the next one is served from a box that waits`, async (x) => {
		let began = Date.now()
		const b = (await call('POST', '/v1/templates', { name: template })).body
		const built = await soon('the build ends', async () => {
			const now = (await call('GET', `/v1/builds/${b.id}`)).body
			return ['waiting', 'building'].includes(now.state) ? null : now
		}, 900000)
		is(built.state, 'ready', JSON.stringify(built.reason))
		note(`${template}: build from npm`, began)

		const page = x.page = await newPage()
		const first = await fragment(template, 'one', 'first text')
		note('  first fragment: its address', first.began)
		await page.goto(first.url)
		await page.waitForSelector('#text:text-is("first text")')
		note('  first fragment: page rendered', first.began)

		// The next request of the session writes the file; the server keeps running, and the open page is updated.
		await page.evaluate(() => { window.same = true })
		const second = await fragment(template, 'one', 'second text')
		is(`${second.sbxId} ${second.exec}`, `${first.sbxId} ${first.exec}`)
		await page.waitForSelector('#text:text-is("second text")')
		note('  same session, hot reload: page updated', second.began)
		is(await page.evaluate(() => window.same), true, 'the page was loaded again')

		// Another session takes the box that was prepared meanwhile.
		await soon('a box is prepared', async () => (await call('GET', '/v1/stats')).body.spares === 1, 120000)
		const warm = await fragment(template, 'two', 'warm text')
		ok(warm.sbxId !== first.sbxId, 'the same box for another session')
		note('  another session, prepared box: its address', warm.began)
		await page.goto(warm.url)
		await page.waitForSelector('#text:text-is("warm text")')
		note('  another session, prepared box: page rendered', warm.began)
		await page.goto('about:blank') // the page would report that its server has ended
		page.problems.length = 0 // a dev server says much
		for (const box of [first.sbxId, warm.sbxId]) await call('DELETE', `/v1/boxes/${box}`)
	}, 1200)

const versions = process.env.WEB_TEMPLATES ? [] : ['18', '22']
for (const version of versions)
	test(`Node.js ${version} is built from npm and chosen by the version of a run`, async () => {
		const began = Date.now(), b = (await call('POST', '/v1/templates', { name: `node-${version}` })).body
		const built = await soon('the build ends', async () => {
			const now = (await call('GET', `/v1/builds/${b.id}`)).body
			return ['waiting', 'building'].includes(now.state) ? null : now
		}, 600000)
		is(built.state, 'ready', JSON.stringify(built.reason))
		note(`node-${version}: build from npm`, began)
		const { runtimes } = (await call('GET', `/v1/templates/node-${version}`)).body
		ok(runtimes.node.warm && runtimes.node.version.startsWith(`${version}.`), JSON.stringify(runtimes))
		const { status, body } = await call('POST', '/v1/run', { language: `node@${version}`, code: 'console.log(process.version)' })
		is(status, 200, JSON.stringify(body))
		ok(body.stdout.startsWith(`v${version}.`), body.stdout)
	}, 900)
if (versions.length)
	test('a version that does not exist is an error that names the others', async () => {
		const { status, body } = await call('POST', '/v1/run', { language: 'node@9', code: '1' })
		is(status, 400)
		ok(body.error.message.includes('as templates: node-18, node-22; add it as the template node-9'), body.error.message)
	})

await runAll()
