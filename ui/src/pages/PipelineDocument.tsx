// One document of a pipeline for people: what was planned, written, measured, found. The document itself is one click away.
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { bytes, duration } from '../format'
import { Icon } from '../icons'
import { CopyButton } from '../parts/basics'
import { Diff } from '../parts/Diff'
import { t } from '../texts'

export interface PipelineDocument { seq: number, kind: string, attempt: number, document: Record<string, any> }

export const money = (n: number) => `$${n < 0.01 ? n.toFixed(4) : n.toFixed(2)}`
const x = t.pipelines

/** What a cell of the grid says. */
export function cellText(docs: PipelineDocument[]): { tone: 'ok' | 'bad' | 'ask', title: string, more: string } {
	const last = docs[docs.length - 1]!, d = last.document
	const open = last.kind === 'question'
	const main = [...docs].reverse().find((e) => e.kind !== 'question' && e.kind !== 'answer')?.document ?? d
	const files = Object.keys(main.files ?? {})
	switch (docs.find((e) => e.kind !== 'question' && e.kind !== 'answer')?.kind) {
	case 'plan': return { tone: main.not_understood ? 'bad' : open ? 'ask' : 'ok', title: main.not_understood ? x.outcomes.not_understood! : main.language ?? '', more: main.template ?? (main.source === 'given' ? x.given : main.source ?? '') }
	case 'artifact': return { tone: 'ok', title: main.entry ?? files[0] ?? '', more: String(main.provenance ?? '').replace('template:', '') }
	case 'result': {
		const p = main.phases?.[main.phases.length - 1]
		const wrong = (main.examples ?? []).filter((e: any) => !e.pass).length, title = p ? p.exit_code != null ? `${p.name === 'run' ? '' : `${p.name}: `}exit ${p.exit_code}` : `${p.name}: ${p.cause}` : main.phase ?? ''
		return { tone: main.success ? 'ok' : 'bad', title, more: wrong ? `${wrong} of ${main.examples.length} ${x.examples.toLowerCase()} ${x.fail}` : p ? duration(p.ms) : '' }
	}
	case 'diagnosis': case 'repair': return { tone: open ? 'ask' : main.action?.kind === 'stop' ? 'bad' : 'ok', title: String(main.category ?? x.kinds.repair).replaceAll('_', ' '), more: main.root_cause ?? '' }
	default: return { tone: open ? 'ask' : 'ok', title: x.kinds[last.kind] ?? last.kind, more: d.question ?? d.text ?? '' }
	}
}

function Facts({ rows }: { rows: [string, ComponentChildren][] }) {
	const there = rows.filter(([, v]) => v !== undefined && v !== null && v !== '' && v !== false)
	return there.length ? <dl class="facts">{there.map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{v}</dd></div>)}</dl> : null
}

function Part({ title, children }: { title: string, children: ComponentChildren }) {
	return <div class="part"><h4>{title}</h4>{children}</div>
}

const Text = ({ text, label, bad }: { text: string, label: string, bad?: boolean }) => <pre class={`text ${bad ? 'bad' : ''}`} tabIndex={0} role="group" aria-label={label}>{text}</pre>
const List = ({ title, items }: { title: string, items?: ComponentChildren[] | null }) => items?.length ? <Part title={title}><ul class="plain-list">{items.map((i, n) => <li key={n}>{i}</li>)}</ul></Part> : null
const Mark = ({ pass }: { pass: boolean }) => <span class={`mark ${pass ? 'ok' : 'bad'}`}><Icon name={pass ? 'check' : 'x'} size={14} /><span>{pass ? x.pass : x.fail}</span></span>
const packagesOf = (d: any): string[] => Array.isArray(d.packages) ? d.packages.map((p: any) => `${p.manager}: ${p.name}${p.version ? ` ${p.version}` : ''}`) : []

function Files({ files, before }: { files?: Record<string, string>, before?: Record<string, string> }) {
	return <>{Object.entries(files ?? {}).map(([name, text]) => <Part title={name} key={name}>{before && before[name] !== undefined && before[name] !== text ? <Diff before={before[name]!} after={text} label={`${name}: ${x.changes}`} />
		: <div class="with-copy"><Text text={text} label={name} /><CopyButton small text={() => text} label={`${t.copy}: ${name}`} /></div>}</Part>)}</>
}

function Result({ d }: { d: any }) {
	return <>
		{d.phases?.map((p: any, i: number) => <Part title={`${x.phase}: ${p.name}`} key={i}>
			<Facts rows={[[x.exit, p.exit_code ?? p.signal ?? p.cause], [x.cause, p.cause], [x.took, duration(p.ms)], [x.memory, p.peak_bytes ? bytes(p.peak_bytes) : '']]} />
			{p.stdout && <Text text={p.stdout} label={`${p.name}, stdout`} />}{p.stderr && <Text text={p.stderr} label={`${p.name}, stderr`} bad />}
		</Part>)}
		<List title={x.checks} items={d.checks?.map((c: any) => <><Mark pass={c.pass} /> <code>{c.kind} {c.arg}</code> {c.detail}</>)} />
		<List title={x.examples} items={d.examples?.map((e: any) => <><Mark pass={e.pass} /> {e.input ? <code>{e.input.trim()}</code> : null} {e.pass ? <code>{String(e.got).trim()}</code> : <span>{x.expected} <code>{String(e.expected).trim()}</code>, {x.got} <code>{String(e.got ?? '').trim() || '""'}</code></span>}</>)} />
		<List title={x.installed} items={d.installed?.map((p: any) => `${p.manager}: ${p.name} ${p.version ?? ''}`)} />
		<List title={x.scan} items={d.scan?.map((s: any) => `${s.action}: ${s.rule}, line ${s.line}: ${s.why}`)} />
	</>
}

function Body({ d, before }: { d: PipelineDocument, before?: PipelineDocument }) {
	const c = d.document
	switch (d.kind) {
	case 'task': return <><p class="lead">{c.task}</p><Facts rows={[[x.language, c.language], [x.packages, c.packages && JSON.stringify(c.packages)]]} /><Files files={c.files} /><List title={x.examples} items={c.examples?.map((e: any) => <code>{e.call ?? e.input} → {e.expected}</code>)} /></>
	case 'plan': return <><Facts rows={[[x.language, c.language], [x.source, c.source], [x.template, c.template], [x.confidence, c.confidence != null ? `${Math.round(c.confidence * 100)} %` : '']]} />
		{c.not_understood && <p class="lead">{c.not_understood.why}</p>}<List title={x.steps} items={c.steps?.map((s: any) => s.goal)} /><List title={x.packages} items={packagesOf(c)} /><List title={x.assumptions} items={c.assumptions} />
		<List title={x.checks} items={c.checks?.map((k: any) => <code>{k.kind} {k.arg}</code>)} /><List title={x.kinds.question!} items={c.inputs_needed?.map((i: any) => i.question)} /></>
	case 'artifact': return <><Facts rows={[[x.language, c.language], [x.provenance, c.provenance], [x.changed, c.changed_because]]} /><List title={x.packages} items={packagesOf(c)} /><Files files={c.files} before={before?.document.files} /></>
	case 'result': return <Result d={c} />
	case 'diagnosis': return <><p class="lead">{c.root_cause}</p><Facts rows={[[x.category, String(c.category ?? '').replaceAll('_', ' ')], [x.action, c.action && `${c.action.kind}: ${c.action.detail}`], [x.place, c.location && t.record.at(c.location.file, c.location.line)], [x.confidence, c.confidence != null ? `${Math.round(c.confidence * 100)} %` : '']]} />
		<List title={x.evidence} items={c.evidence?.map((e: any) => <><span class="dim">{e.source}{e.line ? `:${e.line}` : ''}</span> <code>{e.text}</code></>)} /></>
	case 'question': return <p class="lead">{c.question}</p>
	case 'answer': return <Text text={c.text ?? ''} label={x.kinds.answer!} />
	case 'report': return <><p class="lead">{x.outcomes[c.outcome] ?? c.outcome}: {c.why}</p>{c.output != null && c.output !== '' && <Part title={x.output}><Text text={c.output} label={x.output} /></Part>}
		<List title={x.evidence} items={c.evidence} /><Facts rows={[[x.category, c.category && String(c.category).replaceAll('_', ' ')], [x.cause, c.root_cause], [x.hint, c.hint], [x.usage, c.usage?.calls ? x.calls(c.usage.calls, money(c.usage.cost)) : '']]} />
		<List title={x.nearest} items={c.nearest?.map((n: any) => <><code>{n.template}</code> {n.says}</>)} /><Files files={c.artifact?.files} /></>
	default: return <Text text={JSON.stringify(c, null, 2)} label={d.kind} />
	}
}

export function DocumentView({ d, before }: { d: PipelineDocument, before?: PipelineDocument }) {
	const raw = useSignal(false), text = () => JSON.stringify(d.document, null, 2)
	return <article class="document" aria-labelledby={`doc-${d.seq}`}>
		<header><h3 id={`doc-${d.seq}`}>{x.kinds[d.kind] ?? d.kind}</h3><span class="dim">{d.document.schema}</span><button class="small push" aria-pressed={raw.value} onClick={() => { raw.value = !raw.value }}><Icon name="code" size={14} /><span>{x.json}</span></button><CopyButton small text={text} label={x.copyJson} /></header>
		{raw.value ? <Text text={text()} label={x.json} /> : <Body d={d} before={before} />}
	</article>
}
