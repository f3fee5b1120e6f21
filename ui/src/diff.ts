// Two texts line by line: what was removed, what was added. Bounded: texts whose middle is too large to compare are shown as replaced.
export interface DiffLine { kind: ' ' | '-' | '+', text: string }
const CELLS_MOST = 4_000_000

export function diffLines(before: string, after: string): DiffLine[] {
	const a = before.split('\n'), b = after.split('\n'), out: DiffLine[] = []
	let from = 0, end = 0
	while (from < a.length && from < b.length && a[from] === b[from]) from++
	while (end < a.length - from && end < b.length - from && a[a.length - 1 - end] === b[b.length - 1 - end]) end++
	const x = a.slice(from, a.length - end), y = b.slice(from, b.length - end)
	for (const text of a.slice(0, from)) out.push({ kind: ' ', text })
	if (x.length * y.length > CELLS_MOST) {
		for (const text of x) out.push({ kind: '-', text })
		for (const text of y) out.push({ kind: '+', text })
	} else middle(x, y, out)
	for (const text of a.slice(a.length - end)) out.push({ kind: ' ', text })
	return out
}

/** By the longest common sequence of lines. */
function middle(x: string[], y: string[], out: DiffLine[]) {
	const width = y.length + 1, best = new Uint32Array((x.length + 1) * width)
	for (let i = x.length - 1; i >= 0; i--)
		for (let j = y.length - 1; j >= 0; j--)
			best[i * width + j] = x[i] === y[j] ? best[(i + 1) * width + j + 1]! + 1 : Math.max(best[(i + 1) * width + j]!, best[i * width + j + 1]!)
	let i = 0, j = 0
	while (i < x.length || j < y.length)
		if (i < x.length && j < y.length && x[i] === y[j]) { out.push({ kind: ' ', text: x[i]! }); i++; j++ }
		else if (i < x.length && (j === y.length || best[(i + 1) * width + j]! >= best[i * width + j + 1]!)) out.push({ kind: '-', text: x[i++]! })
		else out.push({ kind: '+', text: y[j++]! })
}
