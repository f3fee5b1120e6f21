// schedules.mjs - Schedules in a browser: echo of an expression, created, run now, paused, history, deleted; all states.
import { accessible, call, link, newPage, runAll, signedIn, url } from './kit.mjs'
import { is, soonHas, soonIs, soonOk, test } from './tap.mjs'

const open = async (page, path) => { await page.goto(url + path); await page.waitForSelector('#main') }
async function create(page, name, command) {
	await open(page, '/schedules')
	await page.waitForSelector('#name')
	await page.fill('#name', name)
	await page.fill('#cron', '0 6 * * 1-5')
	await page.fill('#tz', 'UTC')
	await page.fill('#command', command)
	await page.waitForSelector('#echo >> text=at 06:00 on Monday to Friday')
	await page.click('.ask button[type=submit]')
	await page.waitForSelector(`.schedules >> text=${name}`)
}
const row = (page, name) => page.locator('.schedules tbody tr', { hasText: name })

test('empty, error and missing states', async (x) => {
	const page = x.page = await signedIn()
	await open(page, '/schedules')
	await page.waitForSelector('.list .empty >> text=atoll schedule new')
	await page.route('**/v1/schedules?*', (r) => r.abort())
	await open(page, '/schedules')
	const error = page.locator('.list .state[role=alert]')
	await error.waitFor()
	await page.unroute('**/v1/schedules?*')
	await error.locator('text=Retry').click()
	await page.waitForSelector('.list .empty')
	await open(page, '/schedules/nothing')
	await page.waitForSelector('.state[role=alert] >> text=no such schedule')
})

test('an expression is echoed in words with five times, and an error says what to type', async (x) => {
	const page = x.page = await signedIn()
	await open(page, '/schedules')
	await page.waitForSelector('#cron')
	await page.fill('#tz', 'UTC')
	await page.fill('#cron', '*/15 * * * *')
	await page.waitForSelector('#echo >> text=every 15 minutes')
	await soonIs(() => page.locator('#echo .times li').count(), 5)
	await page.fill('#cron', '* * 31 2 *')
	await page.waitForSelector('#echo >> text=never occurs')
	await page.fill('#name', 'never')
	await page.fill('#command', 'true')
	await soonOk(() => page.isDisabled('.ask button[type=submit]'), 'it can be created')
})

test('a schedule is created, run now, paused, resumed, and its history links to the run', async (x) => {
	const page = x.page = await signedIn()
	await create(page, 'report', 'echo hello from a tick')
	await soonIs(() => row(page, 'report').locator('.times li').count(), 5)
	await row(page, 'report').locator('text=Run now').click()
	await row(page, 'report').locator('.last .mark.ok').waitFor()
	await row(page, 'report').locator('text=Pause').click()
	await row(page, 'report').locator('text=Paused').waitFor()
	await row(page, 'report').locator('text=Resume').click()
	await row(page, 'report').locator('text=Active').waitFor()
	await row(page, 'report').locator('a').click()
	await page.waitForSelector('.ticks >> text=Succeeded')
	await page.click('.ticks tbody a')
	await page.waitForSelector('text=hello from a tick')
	await open(page, '/schedules/report')
	await page.click('.record footer >> text=Delete')
	await page.waitForSelector('#name')
	await soonIs(async () => (await call('GET', '/v1/schedules/report')).status, 404)
})

test('a viewer may read and not change', async (x) => {
	const page = x.page = await newPage()
	await page.goto(link('--role', 'viewer'))
	await page.waitForSelector('.cm-content')
	await open(page, '/schedules')
	await page.waitForSelector('#name:disabled')
})

for (const theme of ['light', 'dark'])
	test(`axe finds nothing on Schedules, at both widths: ${theme}`, async (x) => {
		const page = x.page = await signedIn({ theme })
		await create(page, `fails-${theme}`, 'exit 3')
		await row(page, `fails-${theme}`).locator('text=Run now').click()
		await row(page, `fails-${theme}`).locator('.last .mark.bad').waitFor()
		await accessible(page, 'schedules')
		await page.setViewportSize({ width: 390, height: 844 })
		await accessible(page, 'schedules at 390 px')
		await soonIs(() => page.evaluate(() => document.documentElement.scrollWidth), 390)
		await open(page, `/schedules/fails-${theme}`)
		await page.waitForSelector('.ticks >> text=exit status 3')
		await accessible(page, 'a schedule at 390 px')
		is((await call('DELETE', `/v1/schedules/fails-${theme}`)).status, 204)
	})

await runAll()
