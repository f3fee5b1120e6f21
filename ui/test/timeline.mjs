// timeline.mjs - the checkpoints of a box beside its files. Started by tests/system/ui_timeline.sh.
import { gone, newBox, open } from './boxes.mjs'
import { accessible, call, runAll } from './kit.mjs'
import { has, is, soon, soonHas, soonIs, soonOk, test } from './tap.mjs'

const listed = async (box) => (await call('GET', `/v1/boxes/${box}/checkpoints`)).body.items
const run = async (box, command) => (await call('POST', `/v1/boxes/${box}/execs`, { command })).body.stdout

test('take a checkpoint, see what has changed, go back, undo it', async (x) => {
	const box = await newBox({ 'keep.txt': 'one\n' }), page = x.page = await open(box)
	await page.click('.side-tabs [title=Timeline]')
	await soonHas(() => page.textContent('#side-body'), 'This box has no checkpoints')
	await page.fill('.timeline input', 'good')
	await page.keyboard.press('Enter')
	await page.waitForSelector('.timeline li:has-text("good")')
	await soonHas(() => page.textContent('.timeline li'), 'taken by hand')
	is((await listed(box))[0].name, 'good')
	await run(box, 'echo two >keep.txt; echo n >new.txt')
	await page.click('[aria-label="What has changed since good"]')
	await page.waitForSelector('.timeline-diff code >> nth=1')
	const diff = await page.textContent('.timeline-diff')
	has(diff, 'M /home/user/keep.txt')
	has(diff, 'A /home/user/new.txt')
	await page.click('[aria-label="Go back to good"]')
	await soon('gone back', async () => await run(box, 'cat keep.txt; ls') === 'one\nkeep.txt\n')
	await page.waitForSelector('.timeline li:has-text("before a rollback")')
	await page.click('.toast >> text=Undo')
	await soon('undone', async () => await run(box, 'cat keep.txt new.txt') === 'two\nn\n')
	await gone(box)
})

test('steps of an agent appear; a copy of one is opened; one is deleted', async (x) => {
	const box = await newBox({ 'a.txt': 'a\n' }), page = x.page = await open(box)
	await page.click('.side-tabs [title=Timeline]')
	await page.waitForSelector('.timeline')
	await call('POST', `/v1/boxes/${box}/checkpoints`, { name: 'agent-made', note: 'before the change' })
	await page.waitForSelector('.timeline li:has-text("agent-made")') // by an event
	await accessible(page)
	await run(box, 'echo b >a.txt')
	await page.click('[aria-label="Open a copy of agent-made"]')
	await soon('another box', async () => !page.url().includes(box))
	const copy = new URL(page.url()).pathname.split('/')[2]
	is(await run(copy, 'cat a.txt'), 'a\n')
	await run(copy, 'echo c >a.txt')
	const source = x.page = await open(box)
	await source.click('.side-tabs [title=Timeline]')
	await source.click('.timeline-copies button')
	await soon('taken over', async () => await run(box, 'cat a.txt') === 'c\n')
	await source.click('.toast >> text=Undo')
	await soon('undone', async () => await run(box, 'cat a.txt') === 'b\n')
	await gone(copy)
	await soon('the copy is no longer listed', async () => await source.locator('.timeline-copies').count() === 0)
	const back = x.page = await open(box)
	await back.click('.side-tabs [title=Timeline]')
	await back.click('[aria-label="Delete agent-made"]')
	await soon('deleted', async () => !(await listed(box)).some((c) => c.name === 'agent-made'))
	await soon('not shown', async () => !(await back.textContent('#side-body')).includes('agent-made'))
	await gone(box)
})

test('a viewer sees the timeline and cannot change it', async (x) => {
	const box = await newBox()
	await call('POST', `/v1/boxes/${box}/checkpoints`, { name: 'shown' })
	const k = (await call('POST', '/v1/keys', { name: `timeline-${process.pid}`, role: 'viewer' })).body.key, page = x.page = await open(box, null, { key: k })
	await page.click('.side-tabs [title=Timeline]')
	await page.waitForSelector('.timeline li:has-text("shown")')
	for (const label of ['Go back to shown', 'Open a copy of shown', 'Delete shown']) await soonOk(() => page.isDisabled(`[aria-label="${label}"]`), label)
	await gone(box)
})

await runAll()
