// Two changes of one text. Each is seen as one replaced stretch; stretches that do not touch are both kept.
interface Change { from: number, to: number, insert: string }

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
