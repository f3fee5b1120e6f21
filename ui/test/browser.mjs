// browser.mjs - Debian's Chromium for the tests: one new profile per run, nothing but the daemon is reached. The one without
// windows (chromium-headless-shell) needs half the time of the processors.
import { existsSync } from 'node:fs'
import { chromium } from 'playwright-core'

const paths = [process.env.CHROMIUM, '/usr/bin/chromium-headless-shell', '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
export const executable = paths.find((p) => p && existsSync(p))

export async function startBrowser() {
	const browser = await chromium.launch({
		executablePath: executable, headless: true,
		args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
			'--disable-component-update', '--disable-sync'],
	})
	return { browser, close: () => browser.close() }
}
