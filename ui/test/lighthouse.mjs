// lighthouse.mjs - what Lighthouse finds on Home: printed, never asserted. Started by bench.sh, with LIGHTHOUSE: the folder where
// npm has installed it. It is not a dependency of ui/, because nothing but this needs it.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { closeBrowser, link } from './kit.mjs'

await closeBrowser() // it starts one of its own
const from = createRequire(`${process.env.LIGHTHOUSE}/package.json`), load = (name) => import(pathToFileURL(from.resolve(name)).href)
const { default: lighthouse, desktopConfig } = await load('lighthouse')
const { launch } = await load('chrome-launcher')
const chrome = await launch({ chromePath: process.env.CHROMIUM ?? '/usr/bin/chromium', chromeFlags: ['--headless=new', '--no-sandbox', '--disable-gpu', '--no-first-run'] })
try {
	const { lhr } = await lighthouse(link(), { port: chrome.port, logLevel: 'error', output: 'json', onlyCategories: ['accessibility', 'best-practices', 'performance'] }, desktopConfig)
	if (lhr.runtimeError) throw new Error(lhr.runtimeError.message)
	for (const c of Object.values(lhr.categories)) {
		console.log(`Lighthouse: ${c.title.toLowerCase().padEnd(40)} ${String(Math.round(c.score * 100)).padStart(8)}   of 100`)
		for (const { id, weight } of c.auditRefs) {
			const a = lhr.audits[id]
			if (weight > 0 && a.score !== null && a.score < 1) console.log(`	${a.title}: ${a.displayValue ?? a.score}${(a.details?.items ?? []).slice(0, 3).map((i) => `\n		${JSON.stringify(i).slice(0, 300)}`).join('')}`)
		}
	}
} finally {
	await chrome.kill()
}
