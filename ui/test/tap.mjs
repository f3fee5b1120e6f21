// tap.mjs - tests with names, their results as TAP for tests/run.
//
// A journey that fails is attempted once more, in a new browser context. If it passes then, it is reported as
// `ok N - name # unsteady`: tests/run counts and lists it. A journey that fails twice fails.
const all = []
export const test = (name, body, seconds = 240) => all.push({ name, body, seconds })
export function is(a, b, what = '') { if (a !== b) throw new Error(`${what ? what + ': ' : ''}${JSON.stringify(a)} is not ${JSON.stringify(b)}`) }
export function ok(x, what) { if (!x) throw new Error(what) }
export function has(text, part) { if (!String(text).includes(part)) throw new Error(`${JSON.stringify(part)} is not in ${JSON.stringify(String(text).slice(0, 400))}`) }
const pause = () => new Promise((r) => setTimeout(r, 30))
export async function soon(what, f, ms = 60000) {
	const end = Date.now() + ms
	for (let last; ; await pause()) {
		try { last = await f(); if (last) return last } catch (e) { last = e }
		if (Date.now() > end) throw new Error(`never came true: ${what} (${last})`)
	}
}
/** Repeats checks until all of them pass; throws what the last of them threw. */
export async function eventually(checks, ms = 60000) {
	for (const end = Date.now() + ms; ; await pause()) try { return await checks() } catch (e) { if (Date.now() > end) throw e }
}
// For a value that the page or another process changes, which is read again until it is right. What must hold at
// any time is read once, with is(), ok() and has().
export const soonIs = (read, b, what) => eventually(async () => is(await read(), b, what))
export const soonOk = (read, what) => eventually(async () => ok(await read(), what))
export const soonHas = (read, part) => eventually(async () => has(await read(), part))

async function attempt(t, setUp, tearDown) {
	let ctx, timer, error
	try {
		ctx = await setUp(t.name)
		await Promise.race([t.body(ctx), new Promise((_, no) => { timer = setTimeout(() => no(new Error(`took more than ${t.seconds} s`)), t.seconds * 1000) })])
		await ctx.check?.()
	} catch (e) {
		error = e ?? new Error('failed without a reason')
		await ctx?.failed?.(t.name)
	}
	clearTimeout(timer)
	await tearDown(ctx, !!error)
	return error
}
const print = (error, start) => console.log(String(error.stack ?? error).split('\n').slice(0, 14).map((l) => `# ${start}${l}`).join('\n'))

export async function run(setUp, tearDown, only) {
	let n = 0, failed = 0
	for (const t of all.filter((x) => !only || x.name.includes(only))) {
		n++
		const began = Date.now(), first = await attempt(t, setUp, tearDown)
		if (!first) {
			console.log(`ok ${n} - ${t.name} (${Date.now() - began} ms)`)
			continue
		}
		print(first, 'first attempt: ')
		// After a journey that failed twice the result of the file is known, and its time is limited.
		const second = failed ? first : await attempt(t, setUp, tearDown)
		if (!second) {
			console.log(`ok ${n} - ${t.name} # unsteady`)
			continue
		}
		failed++
		console.log(`not ok ${n} - ${t.name}`)
		print(second, '  ')
	}
	console.log(`1..${n}`)
	return failed ? 1 : 0
}
