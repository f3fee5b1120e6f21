// Readers of data files: tables with separators, JSON.

/** A number that JavaScript cannot hold exactly, as it is written. */
export class Written { constructor(readonly source: string) {} }

type Read = { value: unknown } | { error: string, line?: number }

export function parseJson(text: string): Read {
	try {
		const exact = /\d{16}/.test(text) // only then numbers may lose digits
		return { value: exact ? JSON.parse(text, ((_k: string, v: unknown, c?: { source?: string }) => typeof v === 'number' && c?.source && String(v) !== c.source ? new Written(c.source) : v) as (k: string, v: unknown) => unknown) : JSON.parse(text) }
	} catch (e) {
		const message = (e as Error).message, at = message.match(/position (\d+)/)?.[1]
		return { error: message, line: at ? text.slice(0, Number(at)).split('\n').length : undefined }
	}
}

/** One JSON value per line. */
export function parseLines(text: string): Read {
	const value: unknown[] = []
	for (const [i, line] of text.split('\n').entries()) {
		if (!line.trim()) continue
		const r = parseJson(line)
		if ('error' in r) return { error: r.error, line: i + 1 }
		value.push(r.value)
	}
	return { value }
}

/** The separator that divides the first lines into the most columns, the same number in each. */
function separatorOf(text: string): string {
	let best = ',', most = 1
	const head = text.slice(0, 20000).split('\n').slice(0, 20).filter(Boolean)
	for (const s of [',', ';', '\t', '|']) {
		const counts = head.map((l) => l.replace(/"[^"]*"/g, '').split(s).length), n = Math.min(...counts)
		if (n > most) { most = n; best = s }
	}
	return best
}

/** Rows of fields. Quoted fields may have separators, line breaks and doubled quotes in them (RFC 4180). */
export function parseTable(text: string, tabs: boolean): string[][] {
	const sep = tabs ? '\t' : separatorOf(text), rows: string[][] = []
	let row: string[] = [], at = text.charCodeAt(0) === 0xfeff ? 1 : 0
	const end = text.length
	while (at < end) {
		let field: string
		if (text[at] === '"') {
			field = ''
			for (at++; ;) {
				const q = text.indexOf('"', at)
				if (q < 0) { field += text.slice(at); at = end; break }
				field += text.slice(at, q)
				at = q + 1
				if (text[at] !== '"') break
				field += '"'
				at++
			}
			while (at < end && text[at] !== sep && text[at] !== '\n') { if (text[at] !== '\r') field += text[at]; at++ }
		} else {
			const from = at
			while (at < end && text[at] !== sep && text[at] !== '\n') at++
			field = text.slice(from, at)
			if (field.endsWith('\r') && text[at] === '\n') field = field.slice(0, -1)
		}
		row.push(field)
		if (at < end && text[at] === sep) { at++; if (at < end && text[at] !== '\n') continue; row.push('') }
		if (row.length > 1 || row[0] !== '') rows.push(row)
		row = []
		at++
	}
	if (row.length) rows.push(row)
	return rows
}
