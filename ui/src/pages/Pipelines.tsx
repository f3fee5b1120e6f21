// Pipelines: all of them, and one as stages and attempts with every document.
import { useSignal } from '@preact/signals'
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import { api, lines, type Page } from '../api'
import { clock } from '../clock'
import { ago, duration } from '../format'
import { Icon, type IconName } from '../icons'
import { CopyButton, Empty, View, failed } from '../parts/basics'
import { PagedView, useEvery, usePaged } from '../parts/paged'
import { Shell } from '../parts/Shell'
import { Resource } from '../resource'
import { go, query } from '../router'
import * as session from '../session'
import { connection, generation } from '../socket'
import { languages } from '../store'
import { t } from '../texts'
import { toast } from '../toasts'
import { DocumentView, cellText, money, type PipelineDocument } from './PipelineDocument'

interface Question { name: string, question: string, type?: string, options?: { template?: string, says?: string }[] | string[] }
interface Pipeline {
	id: string, state: 'running' | 'waiting' | 'finished', task: string, attempts: number, created_at: string, ended_at?: string, ms: number, outcome?: string, category?: string,
	usage: { calls: number, cost: number }, question?: Question, documents?: PipelineDocument[]
}
interface PipelineEvent { seq: number, at: string, type: string, attempt: number, stage?: string, outcome?: string, detail?: string, stream?: string, text?: string, reason?: string, change?: string, role?: string, model?: string, ms?: number }
interface Metrics { runs: number, success_rate: number | null }

type Tone = 'ok' | 'bad' | 'running' | 'stopped' | 'ask'
export const toneOf = (p: Pipeline): Tone => p.state === 'running' ? 'running' : p.state === 'waiting' ? 'ask'
	: ['verified', 'examples_pass', 'plausible'].includes(p.outcome ?? '') ? 'ok' : p.outcome === 'cancelled' ? 'stopped' : p.outcome === 'needs_input' ? 'ask' : 'bad'
const icons: Record<Tone, IconName> = { ok: 'circle-check', bad: 'circle-x', running: 'play', stopped: 'square', ask: 'circle-help' }
const wordOf = (p: Pipeline) => p.state === 'running' ? t.pipelines.running : p.state === 'waiting' ? t.pipelines.waiting : t.pipelines.outcomes[p.outcome ?? ''] ?? p.outcome ?? ''

// ---- all ----

function New() {
	const task = useSignal(''), language = useSignal(''), busy = useSignal(false), here = (languages.value.value ?? []).filter((l) => l.here)
	const start = async () => {
		if (!task.value.trim() || busy.value) return
		busy.value = true
		try { go(`/pipelines/${(await api<Pipeline>('/v1/pipelines', { body: { task: task.value.trim(), ...(language.value && { language: language.value }) } })).id}`) } catch (e) { failed(e) }
		busy.value = false
	}
	return <form class="card ask" aria-labelledby="new-title" onSubmit={(e) => { e.preventDefault(); void start() }}>
		<header><h2 id="new-title">{t.pipelines.new}</h2></header>
		<div class="body">
			<p class="dim">{t.pipelines.lead}</p>
			<textarea id="task" rows={3} aria-label={t.pipelines.task} placeholder={t.pipelines.placeholder} value={task.value} disabled={!session.mayEdit.value} onInput={(e) => { task.value = e.currentTarget.value }}
				onKeyDown={(e) => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) { e.preventDefault(); void start() } }} />
			<div class="row"><button class="primary" type="submit" disabled={busy.value || !task.value.trim() || !session.mayEdit.value}><Icon name="play" size={14} /><span>{busy.value ? t.pipelines.starting : t.pipelines.start}</span><kbd>Ctrl ⏎</kbd></button>
				<select aria-label={t.pipelines.language} value={language.value} onChange={(e) => { language.value = e.currentTarget.value }}><option value="">{t.pipelines.anyLanguage}</option>{here.map((l) => <option value={l.name} key={l.name}>{l.title}</option>)}</select>
				{session.info.value && !session.mayEdit.value && <span class="dim">{t.quick.readOnly}</span>}</div>
		</div>
	</form>
}

function List() {
	const outcome = query.value.get('outcome') ?? ''
	const list = usePaged<Pipeline>(`/v1/pipelines${outcome ? `?outcome=${encodeURIComponent(outcome)}` : ''}`, (p) => p.id)
	const metrics = useMemo(() => new Resource(() => api<Metrics>('/v1/pipelines/metrics')), [])
	const active = (list.first.value.value ?? []).some((p) => p.state !== 'finished')
	const again = useCallback(() => { void list.first.load(); void metrics.load() }, [list.first, metrics])
	useEffect(() => void metrics.load(), [metrics, generation.value])
	useEvery(active ? 1500 : 6000, again)
	const m = metrics.value.value
	return <Shell title={t.pipelines.title}><div class="page">
		<h1 class="hidden">{t.pipelines.title}</h1>
		<New />
		<section class="card list" aria-labelledby="list-title">
			<header><h2 id="list-title">{t.pipelines.title}</h2>{m && m.runs > 0 && <span class="dim">{t.pipelines.figures(m.runs, `${Math.round((m.success_rate ?? 0) * 100)} %`)}</span>}
				<select class="push" aria-label={t.pipelines.filter} value={outcome} onChange={(e) => go(e.currentTarget.value ? `/pipelines?outcome=${e.currentTarget.value}` : '/pipelines', true)}>
					<option value="">{t.pipelines.all}</option>{Object.entries(t.pipelines.outcomes).map(([k, v]) => <option value={k} key={k}>{v}</option>)}</select></header>
			<PagedView of={list} error={t.pipelines.error} empty={outcome ? <Empty text={t.pipelines.none} /> : <Empty text={t.pipelines.empty} cli={t.pipelines.emptyCli} />}>{(all) => <ul class="runs">{all.map((p) => <li key={p.id}><a href={`/pipelines/${p.id}`}>
				<span class={`v ${toneOf(p)}`}><Icon name={icons[toneOf(p)]} /></span>
				<span class="what"><span class="one-line">{p.task}</span><span class="dim">{wordOf(p)}{p.category ? `: ${p.category.replaceAll('_', ' ')}` : ''}{p.attempts ? ` · ${t.pipelines.attempts(p.attempts)}` : ''}</span></span>
				<span class="when"><span>{ago(p.created_at, clock.value)}</span><span class="dim">{p.state === 'finished' ? duration(p.ms) : ''}</span></span>
			</a></li>)}</ul>}</PagedView>
		</section>
	</div></Shell>
}

// ---- one ----

const STAGES = ['planner', 'coder', 'executor', 'debugger'] as const
type Stage = typeof STAGES[number]
const stageOfKind: Record<string, Stage> = { plan: 'planner', artifact: 'coder', result: 'executor', diagnosis: 'debugger', repair: 'debugger' }
type Row = Record<Stage, PipelineDocument[]>

/** Documents in their order as attempts: a second program or a new plan begins a row. Questions and answers belong to the stage before them. */
export function attemptsOf(documents: PipelineDocument[]): Row[] {
	const rows: Row[] = [], fresh = (): Row => ({ planner: [], coder: [], executor: [], debugger: [] })
	let row: Row | null = null, stage: Stage = 'planner'
	for (const d of documents) {
		if (d.kind === 'task' || d.kind === 'report') continue
		if (!row || (d.kind === 'artifact' && row.coder.length) || (d.kind === 'plan' && (row.coder.length || row.planner.length))) rows.push(row = fresh())
		stage = stageOfKind[d.kind] ?? stage
		row[stage].push(d)
	}
	return rows
}

function Grid({ rows, events, running, selected, onSelect }: { rows: Row[], events: PipelineEvent[], running: boolean, selected: string, onSelect: (cell: string) => void }) {
	const last = [...events].reverse().find((e) => e.type === 'stage_started' || e.type === 'stage_finished')
	const at = running && last?.type === 'stage_started' ? last.stage : ''
	const shown = rows.length ? rows : [{ planner: [], coder: [], executor: [], debugger: [] } as Row]
	const begins = at === 'planner' && shown[shown.length - 1]!.coder.length > 0 ? [...shown, { planner: [], coder: [], executor: [], debugger: [] } as Row] : shown
	return <div class="scroll-x" tabIndex={0} role="group" aria-label={t.pipelines.grid}><table class="stages">
		<thead><tr><th scope="col">{t.pipelines.attempt}</th>{STAGES.map((s) => <th scope="col" key={s}>{t.pipelines.stages[s]}</th>)}</tr></thead>
		<tbody>{begins.map((row, i) => <tr key={i}><th scope="row">{i + 1}</th>{STAGES.map((s) => {
			const docs = row[s], id = `${i + 1}.${s}`, busy = at === s && i === begins.length - 1 && (s === 'debugger' || !docs.length)
			if (!docs.length) return <td key={s}>{busy ? <span class="cell running" role="status"><span class="dot" /><span>{t.pipelines.working}</span></span> : <span class="cell none">{s === 'planner' && i > 0 ? t.pipelines.same : s === 'debugger' && row.executor.length && !running ? t.pipelines.nothing : '–'}</span>}</td>
			const c = cellText(docs)
			return <td key={s}><button class={`cell ${c.tone}`} aria-pressed={selected === id} onClick={() => onSelect(id)}><Icon name={c.tone === 'bad' ? 'circle-x' : c.tone === 'ask' ? 'circle-help' : 'circle-check'} size={14} /><span class="one-line"><span class="hidden">{t.pipelines.cell(t.pipelines.stages[s]!, i + 1)}: </span>{c.title}</span><span class="dim one-line">{c.more}</span></button></td>
		})}</tr>)}</tbody>
	</table></div>
}

function Ask({ p, onSent }: { p: Pipeline, onSent: () => void }) {
	const q = p.question!, text = useSignal(''), busy = useSignal(false), field = useRef<HTMLTextAreaElement>(null)
	useLayoutEffect(() => field.current?.focus(), [q.name])
	const options = (q.options ?? []).map((o) => typeof o === 'string' ? { value: o, label: o } : { value: o.template ?? '', label: o.says ?? o.template ?? '' })
	const send = async (answer: string) => {
		if (busy.value) return
		busy.value = true
		try { await api(`/v1/pipelines/${p.id}/answer`, { body: { name: q.name, text: answer } }); onSent() } catch (e) { failed(e) }
		busy.value = false
	}
	return <form class="question" aria-labelledby="question" onSubmit={(e) => { e.preventDefault(); void send(text.value) }}>
		<h2><Icon name="circle-help" />{t.pipelines.question}</h2>
		<p id="question">{q.question}</p>
		{options.length > 0 ? <p class="row">{options.map((o) => <button type="button" key={o.value} disabled={busy.value || !session.mayEdit.value} onClick={() => void send(o.value)}>{o.label}</button>)}</p>
			: <><textarea ref={field} rows={3} aria-label={t.pipelines.answer} value={text.value} onInput={(e) => { text.value = e.currentTarget.value }} onKeyDown={(e) => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) { e.preventDefault(); void send(text.value) } }} />
				<p class="row"><button class="primary" type="submit" disabled={busy.value || !session.mayEdit.value}><span>{busy.value ? t.pipelines.sending : t.pipelines.send}</span><kbd>Ctrl ⏎</kbd></button></p></>}
	</form>
}

function eventText(e: PipelineEvent): string {
	if (e.type === 'output') return `${e.stream}: ${(e.text ?? '').trimEnd()}`
	if (e.type === 'retry') return `${e.reason} → ${e.change}`
	if (e.type === 'model_call') return `${e.role ?? ''} ${e.model ?? ''} ${e.ms ? duration(e.ms) : ''}`
	return [e.outcome, e.detail, e.ms ? duration(e.ms) : ''].filter(Boolean).join(' · ')
}

function Log({ events }: { events: PipelineEvent[] }) {
	return events.length ? <ol class="log" tabIndex={0} aria-label={t.pipelines.log}>{events.map((e) => <li key={e.seq}><time dateTime={e.at}>{new Date(e.at).toLocaleTimeString()}</time><span class="stage">{t.pipelines.stages[e.stage ?? ''] ?? e.stage ?? ''}</span><span class="type">{e.type.replaceAll('_', ' ')}</span><span class="text">{eventText(e)}</span></li>)}</ol>
		: <Empty text={t.pipelines.noLog} />
}

/** The events of a pipeline: all of them while it runs, as they happen. */
function useEvents(id: string, state: string | undefined, onStep: () => void) {
	const events = useSignal<PipelineEvent[]>([])
	useEffect(() => {
		if (!state) return
		const abort = new AbortController(), after = () => events.peek()[events.peek().length - 1]?.seq ?? 0
		const add = (e: PipelineEvent) => {
			if (!e.seq || e.seq <= after()) return
			events.value = [...events.peek().slice(-2000), e]
			if (e.type !== 'output') onStep()
		}
		const path = `/v1/pipelines/${id}/events`
		const done = state === 'running' ? lines(`${path}?follow=true&after=${after()}`, { signal: abort.signal }, add)
			: api<Page<PipelineEvent>>(`${path}?limit=1000&after=${after()}`, { signal: abort.signal }).then((p) => { events.value = [...events.peek(), ...p.items.filter((e) => e.seq > after())] })
		done.then(() => { if (state === 'running') onStep() }, () => {}) // a lost connection: the next generation reads again
		return () => abort.abort()
	}, [id, state, generation.value])
	return events.value
}

function One({ id }: { id: string }) {
	const of = useMemo(() => new Resource(() => api<Pipeline>(`/v1/pipelines/${encodeURIComponent(id)}`)), [id])
	const busy = useSignal(''), replayed = useSignal('')
	useEffect(() => void of.load(), [of, generation.value])
	const p = of.value.value
	const step = useCallback(() => of.soon(120), [of])
	const events = useEvents(id, p?.state, step)
	const again = useCallback(() => void of.load(), [of])
	useEvery(3000, again, p != null && p.state !== 'finished')
	const cell = query.value.get('cell') ?? ''
	const select = (c: string) => go(`/pipelines/${id}${c ? `?cell=${c}` : ''}`, true)
	const act = async (what: string, f: () => Promise<unknown>) => {
		busy.value = what
		try { await f() } catch (e) { failed(e) }
		busy.value = ''
	}
	const replay = (attempt: number) => act('replay', async () => {
		const r = await api<{ same: boolean, differs: string | null }>(`/v1/pipelines/${id}/replay`, { body: { attempt } })
		replayed.value = r.same ? t.pipelines.replaySame : t.pipelines.replayDiffers(typeof r.differs === 'string' ? r.differs : JSON.stringify(r.differs))
	})
	return <Shell title={p?.task ?? t.pipelines.title}><div class="page"><View of={of} title={t.pipelines.missing}>{(p) => {
		const documents = p.documents ?? [], rows = attemptsOf(documents), report = documents.find((d) => d.kind === 'report'), task = documents.find((d) => d.kind === 'task')
		const [attempt, stage] = cell.split('.'), chosen = cell === 'task' ? task ? [task] : [] : cell === 'log' ? [] : rows[Number(attempt) - 1]?.[stage as Stage] ?? []
		const shown = cell === 'log' ? [] : chosen.length ? chosen : report ? [report] : rows.length ? lastDocuments(rows[rows.length - 1]!) : task ? [task] : []
		const at = chosen.length || cell === 'log' ? cell : report ? 'report' : shown[0]?.kind === 'task' ? 'task' : ''
		const before = stage === 'coder' && Number(attempt) > 1 ? rows[Number(attempt) - 2]?.coder[0] : undefined
		const why = (report?.document.why as string | undefined) ?? '', nth = Math.max(1, rows.filter((r) => r.executor.length).length)
		return <>
			<section class="card record" aria-labelledby="page-title">
				<header class={`verdict ${toneOf(p)}`}><Icon name={icons[toneOf(p)]} size={22} /><div><h1 id="page-title">{p.task}</h1><p role="status"><strong>{wordOf(p)}</strong>{why ? `: ${why}` : ''}</p>
					<p class="dim">{[t.pipelines.attempts(p.attempts), p.state === 'finished' ? duration(p.ms) : '', ago(p.created_at, clock.value), p.usage.calls ? t.pipelines.calls(p.usage.calls, money(p.usage.cost)) : ''].filter(Boolean).join(' · ')}</p></div></header>
				{p.state === 'waiting' && p.question && <Ask p={p} onSent={again} />}
				<Grid rows={rows} events={events} running={p.state === 'running'} selected={at} onSelect={select} />
				<footer class="row">
					{p.state !== 'finished' ? <button class="stop" disabled={busy.value !== '' || !session.mayEdit.value} onClick={() => void act('cancel', async () => { await api(`/v1/pipelines/${id}/cancel`, { body: {} }); await of.load() })}><Icon name="square" size={14} /><span>{t.pipelines.cancel}</span></button>
						: rows.some((r) => r.executor.length) && <button disabled={busy.value !== '' || !session.mayEdit.value} onClick={() => void replay(nth)}><Icon name="rotate-ccw" size={14} /><span>{busy.value === 'replay' ? t.pipelines.replaying : t.pipelines.replay(nth)}</span></button>}
					<span class="dim" role="status">{replayed.value}</span>
					<span class="push" /><CopyButton text={() => `atoll pipeline show ${id}`} label="atoll pipeline show" />
					{p.state === 'finished' && <button class="small" disabled={busy.value !== '' || !session.mayEdit.value} onClick={() => void act('delete', async () => { await api(`/v1/pipelines/${id}`, { method: 'DELETE' }); toast({ text: t.pipelines.removed }); go('/pipelines') })}><Icon name="trash-2" size={14} /><span>{t.pipelines.remove}</span></button>}
				</footer>
			</section>
			<section class="card documents" aria-label={t.pipelines.message}>
				<header><div role="group" aria-label={t.pipelines.message} class="langs">
					{([['task', t.pipelines.kinds.task], ...(report ? [['report', t.pipelines.report]] : []), ['log', t.pipelines.log]] as [string, string][]).map(([c, name]) => <button key={c} aria-pressed={at === c} onClick={() => select(c === 'report' ? '' : c)}>{name}</button>)}</div>
					<h2>{cell === 'log' ? t.pipelines.log : STAGES.includes(stage as Stage) && chosen.length ? t.pipelines.cell(t.pipelines.stages[stage!]!, Number(attempt)) : shown[0] ? t.pipelines.kinds[shown[0].kind] : t.pipelines.message}</h2></header>
				{cell === 'log' ? <Log events={events} /> : shown.length ? shown.map((d) => <DocumentView d={d} before={before} key={d.seq} />) : <Empty text={connection.value === 'live' ? t.pipelines.working : t.error.offline} />}
			</section>
		</>
	}}</View></div></Shell>
}

const lastDocuments = (row: Row) => [...STAGES].reverse().map((s) => row[s]).find((d) => d.length) ?? []

export default function Pipelines({ id }: { id: string }) {
	return id ? <One id={id} /> : <List />
}
