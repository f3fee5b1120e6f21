// Two changes of one text. Each is seen as one replaced stretch; stretches that do not touch are both kept.
export interface Change { from: number, to: number, insert: string }

export function changeOf(base: string, text: string): Change {
	let from = 0, end = 0
	while (from < base.length && from < text.length && base[from] === text[from]) from++
	while (end < base.length - from && end < text.length - from && base[base.length - 1 - end] === text[text.length - 1 - end]) end++
	return { from, to: base.length - end, insert: text.slice(from, text.length - end) }
}

/** Both changes in one text; null: they touch, and a person has to decide. */
export function merge(base: string, mine: string, theirs: string): string | null {
	if (mine === theirs || base === theirs) return mine
	if (base === mine) return theirs
	const a = changeOf(base, mine), b = changeOf(base, theirs)
	const [first, second] = a.from <= b.from ? [a, b] : [b, a]
	if (first.to >= second.from) return null
	return base.slice(0, first.from) + first.insert + base.slice(first.to, second.from) + second.insert + base.slice(second.to)
}

// ---- without a question to a person ----

interface Hunk<T> { from: number, to: number, insert: T[] }
const CELLS_MOST = 4_000_000

/** What was replaced, by the longest common sequence; texts whose middle is too large to compare are one hunk. */
function hunks<T>(a: readonly T[], b: readonly T[]): Hunk<T>[] {
	let from = 0, end = 0
	while (from < a.length && from < b.length && a[from] === b[from]) from++
	while (end < a.length - from && end < b.length - from && a[a.length - 1 - end] === b[b.length - 1 - end]) end++
	const x = a.slice(from, a.length - end), y = b.slice(from, b.length - end), out: Hunk<T>[] = []
	if (!x.length && !y.length) return out
	if (!x.length || !y.length || x.length * y.length > CELLS_MOST) return [{ from, to: from + x.length, insert: y }]
	const width = y.length + 1, best = new Uint32Array((x.length + 1) * width)
	for (let i = x.length - 1; i >= 0; i--)
		for (let j = y.length - 1; j >= 0; j--)
			best[i * width + j] = x[i] === y[j] ? best[(i + 1) * width + j + 1]! + 1 : Math.max(best[(i + 1) * width + j]!, best[i * width + j + 1]!)
	let i = 0, j = 0, open: Hunk<T> | null = null
	while (i < x.length || j < y.length) {
		if (i < x.length && j < y.length && x[i] === y[j]) { i++; j++; open = null; continue }
		if (!open) out.push(open = { from: from + i, to: from + i, insert: [] })
		if (j < y.length && (i === x.length || best[i * width + j + 1]! >= best[(i + 1) * width + j]!)) open.insert.push(y[j++]!)
		else open.to = from + ++i
	}
	return out
}

/** The part of a base after these hunks, which are within it. */
function applied<T>(base: readonly T[], from: number, to: number, all: Hunk<T>[]): T[] {
	const parts: T[][] = []
	for (const h of all) {
		parts.push(base.slice(from, h.from), h.insert)
		from = h.to
	}
	return [...parts, base.slice(from, to)].flat() as T[]
}

/** Hunks that touch no hunk of the other side are kept; `both` decides about the others. */
function merge3<T>(base: readonly T[], mine: readonly T[], theirs: readonly T[], both: (base: T[], mine: T[], theirs: T[]) => T[]): T[] {
	const a = hunks(base, mine), b = hunks(base, theirs), parts: T[][] = []
	let at = 0
	while (a.length || b.length) {
		const from = Math.min(a[0]?.from ?? Infinity, b[0]?.from ?? Infinity), x: Hunk<T>[] = [], y: Hunk<T>[] = []
		let to = from
		for (let more = true; more;) {
			more = false
			for (const [list, taken] of [[a, x], [b, y]] as const)
				while (list.length && list[0]!.from <= to) {
					to = Math.max(to, list[0]!.to)
					taken.push(list.shift()!)
					more = true
				}
		}
		parts.push(base.slice(at, from))
		parts.push(!y.length ? applied(base, from, to, x) : !x.length ? applied(base, from, to, y) : both(base.slice(from, to), applied(base, from, to, x), applied(base, from, to, y)))
		at = to
	}
	return [...parts, base.slice(at)].flat() as T[]
}

/** Two texts at one place: one after the other. Lines or words at their beginning that are equal are there once. */
function join(x: string, y: string, border: RegExp): string {
	if (x.includes(y)) return x
	if (y.includes(x)) return y
	let same = 0
	while (same < x.length && x[same] === y[same]) same++
	while (same > 0 && !border.test(x[same - 1]!)) same--
	return x + y.slice(same)
}

/** Both changes in one text, first by lines, then by letters. Where they touch, nothing that is in either of them is lost. */
export function mergeAll(base: string, mine: string, theirs: string): string {
	if (mine === theirs || base === theirs) return mine
	if (base === mine) return theirs
	const letters = (l: string[]) => [...l.map((line) => `${line}\n`).join('')]
	return merge3(base.split('\n'), mine.split('\n'), theirs.split('\n'), (b, m, t) => {
		const text = !b.length ? join(letters(m).join(''), letters(t).join(''), /\n/) : merge3(letters(b), letters(m), letters(t), (_, x, y) => [...join(x.join(''), y.join(''), /\s/)]).join('')
		return text ? text.replace(/\n$/, '').split('\n') : []
	}).join('\n')
}
