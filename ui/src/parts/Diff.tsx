// The difference of two texts, unchanged stretches shortened.
import { diffLines, type DiffLine } from '../diff'
import { t } from '../texts'

const CONTEXT = 3

export function Diff({ before, after, label }: { before: string, after: string, label: string }) {
	const ends = before.endsWith('\n') && after.endsWith('\n'), lines = diffLines(ends ? before.slice(0, -1) : before, ends ? after.slice(0, -1) : after)
	const near = lines.map((_, i) => lines.slice(Math.max(0, i - CONTEXT), i + CONTEXT + 1).some((l) => l.kind !== ' '))
	const rows: (DiffLine | number)[] = []
	lines.forEach((l, i) => {
		const last = rows[rows.length - 1]
		if (near[i]) rows.push(l)
		else if (typeof last === 'number') rows[rows.length - 1] = last + 1
		else rows.push(1)
	})
	return <pre class="diff" role="group" tabIndex={0} aria-label={label}>{rows.map((r, i) => typeof r === 'number' ? <div class="skip-lines" key={i}>{t.diff.unchanged(r)}</div>
		: <div class={r.kind === '+' ? 'add' : r.kind === '-' ? 'del' : ''} key={i}><span class="sign">{r.kind}</span>{r.text}</div>)}</pre>
}
