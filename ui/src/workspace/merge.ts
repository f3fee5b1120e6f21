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

const CELLS_MOST = 4_000_000

/** Both texts in one: what is equal in both, in order, is there once. */
function union(x: string, y: string): string {
	if (x.length * y.length > CELLS_MOST) return x + y
	const width = y.length + 1, best = new Uint32Array((x.length + 1) * width)
	for (let i = x.length - 1; i >= 0; i--)
		for (let j = y.length - 1; j >= 0; j--)
			best[i * width + j] = x[i] === y[j] ? best[(i + 1) * width + j + 1]! + 1 : Math.max(best[(i + 1) * width + j]!, best[i * width + j + 1]!)
	let i = 0, j = 0, out = ''
	while (i < x.length && j < y.length)
		if (x[i] === y[j]) { out += x[i++]; j++ }
		else if (best[(i + 1) * width + j]! >= best[i * width + j + 1]!) out += x[i++]
		else out += y[j++]
	return out + x.slice(i) + y.slice(j)
}

/** The same without a question to a person: where both changes touch, nothing that is in either of them is lost. */
export function mergeAll(base: string, mine: string, theirs: string): string {
	const easy = merge(base, mine, theirs)
	if (easy !== null) return easy
	const a = changeOf(base, mine), b = changeOf(base, theirs)
	const from = Math.min(a.from, b.from), to = Math.max(a.to, b.to)
	const part = (c: Change) => base.slice(from, c.from) + c.insert + base.slice(c.to, to)
	const x = part(a), y = part(b), c = changeOf(x, y) // equal ends are not compared again
	const end = x.length - c.to
	return base.slice(0, from) + x.slice(0, c.from) + union(x.slice(c.from, c.to), c.insert) + x.slice(x.length - end) + base.slice(to)
}
