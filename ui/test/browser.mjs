// browser.mjs - Debian's Chromium for the tests: one new profile per run, nothing but the daemon is reached.
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'

const paths = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
export const executable = paths.find((p) => p && existsSync(p))

export async function startBrowser() {
	const profile = mkdtempSync(join(process.env.TMPDIR ?? tmpdir(), 'atoll-ui-'))
	const browser = await chromium.launch({
		executablePath: executable, headless: true,
		args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
			'--disable-component-update', '--disable-sync', `--disk-cache-dir=${profile}`],
	})
	return { browser, close: async () => { await browser.close(); rmSync(profile, { recursive: true, force: true }) } }
}
