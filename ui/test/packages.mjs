// packages.mjs - packages of a box, from a mirror that the test makes. Started by tests/system/ui_packages.sh.
import { get, gone, newBox, open, put, sh } from './boxes.mjs'
import { accessible, call, runAll } from './kit.mjs'
import { is, soon, soonHas, soonIs, soonOk, test } from './tap.mjs'

const SLOW = { timeout: 110000 } // a package manager in a new box
const wheels = `import zipfile, os
os.makedirs("/data/pip", exist_ok=True)
for version in ("1.0", "1.1"):
    z = zipfile.ZipFile(f"/data/pip/tiny-{version}-py3-none-any.whl", "w")
    z.writestr("tiny/__init__.py", f"version = '{version}'")
    d = f"tiny-{version}.dist-info"
    z.writestr(f"{d}/METADATA", f"Metadata-Version: 2.1\\nName: tiny\\nVersion: {version}\\n")
    z.writestr(f"{d}/WHEEL", "Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    z.writestr(f"{d}/RECORD", "")
    z.close()
`
test('the mirror is made', async () => {
	await call('DELETE', '/v1/volumes/mirror') // of a first attempt
	is((await call('POST', '/v1/volumes', { name: 'mirror', bytes: 64 << 20 })).status, 201)
	const b = (await call('POST', '/v1/boxes', { volumes: [{ name: 'mirror', path: '/data' }] })).body.id
	const r = (await call('POST', `/v1/boxes/${b}/execs`, { language: 'python', code: wheels })).body
	is(r.exit_code, 0, r.stderr)
	await gone(b)
})

async function openPackages(box, options) {
	const page = await open(box, null, options)
	if (options?.width < 500) await page.click('.pane-bar >> text=Files')
	await page.click('.side-tabs [title=Packages]')
	await page.waitForSelector('.packages .pkg-list')
	return page
}

const versions = ['1.0', '1.1'] // a layer that a first attempt has made would be used without any step
test('a box without network: a package is installed as a layer, and a copy is offered', async (x) => {
	const box = await newBox(), page = x.page = await openPackages(box), version = versions.shift()
	await page.fill('.pkg-form input', `tiny==${version}`)
	await page.click('.pkg-form >> text=Install')
	await page.waitForSelector(`.pkg-ready >> text=tiny==${version} is installed`, SLOW)
	await soon('the steps', async () => new RegExp(`Processing .*tiny-${version}.*Successfully installed tiny-${version}`, 's').test(await page.textContent('.pkg-log')))
	await gone(box)
}, 300)

test('a box that may reach hosts installs by itself: the steps are in the output, and the package can be removed', async (x) => {
	const box = await newBox({}, { network: { allow: ['registry.invalid'] }, volumes: [{ name: 'mirror', path: '/data' }], env: { PIP_NO_INDEX: '1', PIP_FIND_LINKS: '/data/pip' } })
	const page = x.page = await openPackages(box)
	await page.fill('.pkg-form input', 'tiny==1.1')
	await page.click('.pkg-form >> text=Install')
	await page.waitForSelector('.group .verdict.ok', SLOW)
	await soonHas(() => page.textContent('.group .out'), 'Successfully installed tiny-1.1')
	const line = page.locator('.pkg-list li', { hasText: 'tiny' })
	await line.waitFor()
	await soonHas(() => line.textContent(), 'this box')
	await line.locator('.menu > button').click()
	await page.click('role=menuitem[name="Remove"]')
	await soon('it is gone', async () => await line.count() === 0, SLOW.timeout)
	await gone(box)
}, 300)

test('packages of npm and gem are listed with their versions', async (x) => {
	const box = await newBox({
		'node_modules/.package-lock.json': JSON.stringify({ packages: { 'node_modules/left': { version: '1.2.3' } } }), 'node_modules/left/package.json': '{}', 'node_modules/@scope/right/package.json': '{"version": "4.5.6"}',
		'.local/share/gem/ruby/3.1.0/specifications/pebble-7.8.9.gemspec': '',
	}), page = x.page = await openPackages(box)
	const listed = (name) => soon(name, async () => (await page.locator('.pkg-list li', { hasText: name }).textContent()))
	await page.selectOption('#pkg-manager', 'npm')
	await soonHas(() => listed('left'), '1.2.3')
	await soonHas(() => listed('@scope/right'), '4.5.6')
	await page.selectOption('#pkg-manager', 'gem')
	await soonHas(() => listed('pebble'), '7.8.9')
	await gone(box)
})

test('a copy of the box has the package, the files and the variables', async (x) => {
	const box = await newBox({ 'kept.txt': 'kept' }, { env: { MODE: 'fast' } }), page = x.page = await openPackages(box)
	await page.fill('.pkg-form input', 'tiny==1.0') // installed before
	await page.click('.pkg-form >> text=Install')
	await page.waitForSelector('.pkg-ready >> text=tiny==1.0 is installed', SLOW)
	await page.click('.pkg-ready >> text=Open a copy with it')
	await soon('another box', () => !page.url().includes(box) && page.url().includes('/b/'))
	const copy = page.url().match(/\/b\/([a-z0-9]+)/)[1]
	await soonIs(() => get(copy, 'kept.txt'), 'kept')
	await soonIs(async () => (await call('GET', `/v1/boxes/${copy}/env`)).body.env.MODE, 'fast')
	is((await call('POST', `/v1/boxes/${copy}/execs`, { language: 'python', code: 'import tiny; print(tiny.version)' })).body.stdout.trim(), '1.0')
	await page.click('.side-tabs [title=Packages]')
	await page.waitForSelector('.pkg-list li:has-text("tiny")')
	await soonHas(() => page.textContent('.pkg-list li:has-text("tiny")'), '1.0')
	await gone(box)
	await gone(copy)
})

test('a package or a version that does not exist: why, and the versions that exist', async (x) => {
	const box = await newBox(), page = x.page = await openPackages(box)
	await page.fill('.pkg-form input', 'tiny==9')
	await page.keyboard.press('Enter')
	await page.waitForSelector('.pkg-fault', SLOW)
	await soonHas(() => page.textContent('.pkg-fault'), 'tiny')
	await page.click('.pkg-fault .place >> text=1.0')
	await page.waitForSelector('.pkg-ready >> text=tiny==1.0 is installed', SLOW)
	await page.fill('.pkg-form input', '--index-url=http://elsewhere.test')
	await page.keyboard.press('Enter')
	await soon('an option is refused', async () => /option|name/.test(await page.textContent('.pkg-fault')))
	await gone(box)
}, 300)

test('what is in the home folder can be removed', async (x) => {
	const box = await newBox({ '.local/lib/python3.11/site-packages/mine/__init__.py': '', '.local/lib/python3.11/site-packages/mine-2.0.dist-info/METADATA': 'Metadata-Version: 2.1\nName: mine\nVersion: 2.0\n', '.local/lib/python3.11/site-packages/mine-2.0.dist-info/RECORD': 'mine/__init__.py,,\nmine-2.0.dist-info/METADATA,,\nmine-2.0.dist-info/RECORD,,\nmine-2.0.dist-info/INSTALLER,,\n', '.local/lib/python3.11/site-packages/mine-2.0.dist-info/INSTALLER': 'pip\n' })
	const page = x.page = await openPackages(box)
	await page.fill('.pkg-form input', 'mine')
	await page.waitForSelector('.pkg-list li:has-text("mine")')
	await soonHas(() => page.textContent('.count-line'), '1 of')
	if ((await sh(box, ['python3', '-m', 'pip', '--version'])).exit_code !== 0) { await gone(box); return } // this machine has no pip
	const version = (await sh(box, ['python3', '-c', 'import sys; print("%d.%d" % sys.version_info[:2])'])).stdout.trim()
	if (version !== '3.11') { await gone(box); return } // another folder
	await page.click('.pkg-list li:has-text("mine") .menu > button')
	await page.click('role=menuitem[name="Remove"]')
	await page.waitForSelector('.group .verdict', SLOW)
	await soon('it is gone', async () => await page.locator('.pkg-list li:has-text("mine")').count() === 0)
	await gone(box)
}, 300)

for (const theme of ['light', 'dark'])
	test(`packages are accessible: ${theme}`, async (x) => {
		const box = await newBox(), page = x.page = await openPackages(box, { theme, width: theme === 'dark' ? 390 : 1280, mobile: theme === 'dark' })
		await page.fill('.pkg-form input', '--option')
		await page.keyboard.press('Enter')
		await page.waitForSelector('.pkg-fault', SLOW)
		await page.fill('.pkg-form input', 'n')
		if (process.env.UI_SHOTS) await page.screenshot({ path: `${process.env.UI_SHOTS}/packages-${theme}.png` })
		await accessible(page, 'packages')
		await soonOk(async () => await page.locator('.pkg-list li').count() > 0, 'system packages are listed')
		await gone(box)
	})

await runAll()
