// What compilers and interpreters reported: of each program its last run, so that a corrected error leaves the list.
import { Icon } from '../icons'
import { Empty } from '../parts/basics'
import { t } from '../texts'
import { HOME, shortPath, shown } from './files'
import type { Run } from './RunOutput'

export interface Problem { severity: 'error' | 'warning' | 'note', message: string, file: string | null, line: number | null, column: number | null, run: string }

/** The error of a traceback: what it says, and its innermost place in a file of the user. */
export function traceOf(text: string): Pick<Problem, 'message' | 'file' | 'line' | 'column'> | null {
	const lines = text.trimEnd().split('\n'), own = (f: string) => !/^(\/usr\/|\/opt\/|node:|<)/.test(f)
	const python = [...text.matchAll(/File "([^"\n]+)", line (\d+)/g)].filter((m) => own(m[1]!)).pop()
	if (python) return { message: lines[lines.length - 1]!.trim(), file: python[1]!, line: Number(python[2]), column: null }
	const script = [...text.matchAll(/^\s+at (?:.*?\()?(?:file:\/\/)?(\/[^():\n]+):(\d+):(\d+)\)?$/gm)].find((m) => own(m[1]!))
	if (script) return { message: text.match(/^(?:Uncaught )?(\w*(?:Error|Exception)\b[^\n]*)/m)?.[1] ?? lines[0]!, file: script[1]!, line: Number(script[2]), column: Number(script[3]) }
	const other = text.match(/^(?:.*?\s)?((?:\/home\/user\/|\.\/)?[\w./+-]+\.(?:rb|go|rs|php|pl|lua|sh|js|java|r|R|jl))(?::| line |: line )(\d+)(?::(\d+))?(.*)/m)
	return other ? { message: other[4]!.replace(/^[:\s]+/, '') || lines[0]!.trim(), file: other[1]!, line: Number(other[2]), column: other[3] ? Number(other[3]) : null } : null
}

export function problemsOf(runs: Run[]): Problem[] {
	const last = new Map<string, Run>()
	for (const r of runs) if (r.record.value) last.set(r.title, r)
	const out: Problem[] = []
	for (const r of last.values()) {
		const rec = r.record.value!
		for (const e of rec.errors ?? []) out.push({ severity: e.severity.includes('error') ? 'error' : e.severity.includes('warn') ? 'warning' : 'note', message: e.message, file: e.file, line: e.line, column: e.column, run: r.title })
		if (rec.error && (rec.error.type || rec.error.message) && !rec.errors?.length) out.push({ severity: 'error', message: [rec.error.type, rec.error.message].filter(Boolean).join(': '), file: rec.error.file, line: rec.error.line, column: null, run: r.title })
		else if (!rec.errors?.length && rec.cause === 'exit' && rec.exit_code !== 0 && r.tail) { const e = traceOf(r.tail); if (e) out.push({ ...e, severity: 'error', run: r.title }) }
	}
	const rank = { error: 0, warning: 1, note: 2 }
	return out.sort((a, b) => (a.file ?? '').localeCompare(b.file ?? '') || rank[a.severity] - rank[b.severity] || (a.line ?? 0) - (b.line ?? 0))
}

export function Problems({ list, onPlace }: { list: Problem[], onPlace: (file: string, line: number, column: number) => void }) {
	if (!list.length) return <Empty text={t.problems.none} />
	const files = [...new Set(list.map((p) => p.file ?? ''))]
	return <div class="problems" tabIndex={0} role="group" aria-label={t.problems.title}>{files.map((f) => <section key={f} aria-label={f ? shortPath(shown(f)) : t.problems.noFile}>
		<h3><Icon name="file" size={14} /><bdi>{f ? shortPath(shown(f)) : t.problems.noFile}</bdi><span class="count">{list.filter((p) => (p.file ?? '') === f).length}</span></h3>
		<ul>{list.filter((p) => (p.file ?? '') === f).map((p, i) => <li key={i}><button class="problem-row" disabled={!p.file || !p.line} onClick={() => onPlace(p.file!.startsWith('/') ? p.file! : `${HOME}/${p.file}`, p.line!, p.column ?? 1)}>
			<Icon name={p.severity === 'error' ? 'circle-x' : 'triangle-alert'} size={14} /><span class="hidden">{t.problems.severities[p.severity]}</span><span class={`what sev-${p.severity}`}>{p.message}</span><span class="dim">{p.line ? t.ws.place(p.line, p.column ?? 1) : ''}</span><span class="dim from">{p.run}</span></button></li>)}</ul>
	</section>)}</div>
}
