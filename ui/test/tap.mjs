// tap.mjs - tests with names, their results as TAP for tests/run.
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
export async function run(setUp, tearDown, only) {
	let n = 0, failed = 0
	for (const t of all.filter((x) => !only || x.name.includes(only))) {
		n++
		const began = Date.now()
		let ctx
		try {
			ctx = await setUp(t.name)
			let timer
			await Promise.race([t.body(ctx), new Promise((_, no) => { timer = setTimeout(() => no(new Error(`took more than ${t.seconds} s`)), t.seconds * 1000) })]).finally(() => clearTimeout(timer))
			await ctx.check?.()
			console.log(`ok ${n} - ${t.name} (${Date.now() - began} ms)`)
		} catch (e) {
			failed++
			console.log(`not ok ${n} - ${t.name}`)
			console.log(String(e.stack ?? e).split('\n').slice(0, 14).map((l) => `#   ${l}`).join('\n'))
			await ctx?.failed?.(t.name)
		}
		await tearDown(ctx)
	}
	console.log(`1..${n}`)
	return failed ? 1 : 0
}
