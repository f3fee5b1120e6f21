// Agents: a task, the steps of the agent as they happen, its report; and all sessions before.
import { signal, useSignal } from '@preact/signals'
import { useCallback, useEffect, useMemo, useRef } from 'preact/hooks'
import { ApiError, api, lines } from '../api'
import { clock } from '../clock'
import { ago, duration } from '../format'
import { Icon, type IconName } from '../icons'
import { Empty, ErrorState, View } from '../parts/basics'
import { PagedView, useEvery, usePaged } from '../parts/paged'
import { Shell } from '../parts/Shell'
import { Resource } from '../resource'
import { go } from '../router'
import * as session from '../session'
import { generation } from '../socket'
import { t } from '../texts'
import { money } from './PipelineDocument'

interface Usage { calls: number, in: number, out: number, cost: number }
interface Entry { step?: number, tool?: string, args?: Record<string, unknown>, result?: { ok?: boolean, text?: string, exit_code?: number } | string, done?: boolean, failed?: string }
interface Report { outcome: string, why: string, result: unknown, steps: number, max_steps: number, usage: Usage, ms: number, box: string, kept: boolean, id: string }
interface Session { id: string, task: string, state: string, created_at: string, ended_at?: string, outcome?: string, report?: Partial<Report>, log?: Entry[], log_truncated?: boolean }
interface Step { n: number, tool: string, args: Record<string, unknown>, result?: { ok?: boolean, text?: string, exit_code?: number } }

const x = t.agents
const toneOf = (outcome?: string) => !outcome ? 'running' : outcome === 'done' ? 'ok' : ['cancelled', 'lost'].includes(outcome) ? 'stopped' : 'bad'
const icons: Record<string, IconName> = { ok: 'circle-check', bad: 'circle-x', running: 'play', stopped: 'square' }
const wordOf = (outcome?: string) => outcome ? x.outcomes[outcome] ?? outcome : x.running

/** The log of an agent as steps: what it did, and what came of it. */
export function stepsOf(log: Entry[]): Step[] {
	const steps: Step[] = []
	for (const e of log) {
		if (e.tool) steps.push({ n: e.step ?? steps.length + 1, tool: e.tool, args: e.args ?? {} })
		else if (e.result !== undefined && !e.done) {
			const last = steps.find((s) => s.n === e.step)
			if (last) last.result = typeof e.result === 'string' ? { text: e.result } : e.result
		}
	}
	return steps
}

function Steps({ steps, waiting }: { steps: Step[], waiting?: string }) {
	return <ol class="steps" aria-label={x.stepsTitle}>{steps.map((s) => {
		const bad = s.result && (s.result.ok === false || (s.result.exit_code ?? 0) !== 0), main = s.args.command ?? s.args.path
		return <li key={s.n} class={s.result ? bad ? 'bad' : 'ok' : ''}><span class="number" aria-hidden="true">{s.n}</span><div class="what">
			<div class="head"><span class="hidden">{x.step(s.n)}</span><strong>{x.tools[s.tool] ?? s.tool}</strong>{main !== undefined && <code>{String(main)}</code>}</div>
			{Object.entries(s.args).filter(([k]) => k !== 'command' && k !== 'path').map(([k, v]) => <div key={k}><span class="dim">{k}</span><pre class="text" tabIndex={0} role="group" aria-label={k}>{typeof v === 'string' ? v : JSON.stringify(v, null, 2)}</pre></div>)}
			{s.result ? s.result.text ? <pre class={`text ${bad ? 'bad' : ''}`} tabIndex={0} role="group" aria-label={`${x.step(s.n)}: ${x.result}`}>{s.result.text}</pre> : null : <p class="dim" role="status">{waiting ? x.working : ''}</p>}
		</div></li>
	})}{waiting && steps.every((s) => s.result) && <li><span class="number" aria-hidden="true">…</span><div class="what dim" role="status">{waiting}</div></li>}</ol>
}

const usageText = (u?: Partial<Usage>) => u?.calls ? x.calls(u.calls, ((u.in ?? 0) + (u.out ?? 0)).toLocaleString(), money(u.cost ?? 0)) : ''
const textOf = (v: unknown) => typeof v === 'string' ? v : v === undefined || v === null ? '' : JSON.stringify(v, null, 2)

// ---- the one of this page ----

interface Live { task: string, log: Entry[], usage: Usage | null, error: ApiError | null, abort: AbortController }
const live = signal<Live | null>(null)

async function begin(task: string, max_steps: number, keep: boolean) {
	const abort = new AbortController()
	live.value = { task, log: [], usage: null, error: null, abort }
	const change = (part: Partial<Live>) => { if (live.value?.abort === abort) live.value = { ...live.value, ...part } }
	try {
		await lines('/v1/agents', { body: { task, max_steps, keep }, signal: abort.signal }, (e) => {
			if (e.type === 'log') change({ log: [...live.value!.log, e.entry] })
			else if (e.type === 'model_call') change({ usage: e.total })
			else if (e.type === 'error') throw new ApiError(500, e.error.code, e.error.message, e.error.why, e.error.hints)
			else if (e.type === 'report') {
				if (live.value?.abort === abort) live.value = null
				go(`/agents/${e.id}`)
			}
		})
	} catch (e) {
		if (abort.signal.aborted) { if (live.value?.abort === abort) live.value = null } else change({ error: e instanceof ApiError ? e : new ApiError(-1, 'failed', String(e)) })
	}
}

function Now({ now }: { now: Live }) {
	return <section class="card" aria-labelledby="now-title"><header><h2 id="now-title" class="one-line">{now.task}</h2><span class="dim wide-only">{usageText(now.usage ?? undefined)}</span>
		<button class="stop small push" onClick={() => { if (now.error) live.value = null; else now.abort.abort() }}><Icon name={now.error ? 'x' : 'square'} size={14} /><span>{now.error ? t.close : x.stop}</span></button></header>
		<Steps steps={stepsOf(now.log)} waiting={now.error ? undefined : x.thinking} />
		{now.error ? <ErrorState title={x.outcomes.failed!} error={now.error} retry={() => void begin(now.task, 5, false)} /> : <p class="note">{x.stopsWithPage}</p>}
	</section>
}

function New() {
	const task = useSignal(''), steps = useSignal(5), keep = useSignal(false)
	const start = () => { if (task.value.trim() && !live.value) void begin(task.value.trim(), steps.value, keep.value) }
	return <form class="card ask" aria-labelledby="new-title" onSubmit={(e) => { e.preventDefault(); start() }}>
		<header><h2 id="new-title">{x.new}</h2></header>
		<div class="body"><p class="dim">{x.lead}</p>
			<textarea id="task" rows={3} aria-label={x.task} placeholder={x.placeholder} value={task.value} disabled={!session.mayEdit.value} onInput={(e) => { task.value = e.currentTarget.value }} onKeyDown={(e) => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) { e.preventDefault(); start() } }} />
			<div class="row"><button class="primary" type="submit" disabled={!task.value.trim() || live.value !== null || !session.mayEdit.value}><Icon name="play" size={14} /><span>{x.start}</span><kbd>Ctrl ⏎</kbd></button>
				<label class="check">{x.steps}<select value={steps.value} onChange={(e) => { steps.value = Number(e.currentTarget.value) }}>{[5, 10, 20, 40].map((n) => <option value={n} key={n}>{n}</option>)}</select></label>
				<label class="check"><input type="checkbox" checked={keep.value} onChange={(e) => { keep.value = e.currentTarget.checked }} />{x.keep}</label>
				{session.info.value && !session.mayEdit.value && <span class="dim">{t.quick.readOnly}</span>}</div></div>
	</form>
}

function List() {
	const list = usePaged<Session>('/v1/agents', (s) => s.id), models = useMemo(() => new Resource(() => api<{ items: unknown[] }>('/v1/models')), [])
	useEffect(() => void models.load(), [models, generation.value])
	const again = useCallback(() => void list.first.load(), [list.first])
	useEvery((list.first.value.value ?? []).some((s) => s.state === 'running') ? 1500 : 6000, again)
	const none = [404, 409, 503].includes(models.error.value?.status ?? 0) || models.value.value?.items.length === 0
	return <Shell title={x.title}><div class="page">
		<h1 class="hidden">{x.title}</h1>
		{none ? <section class="card" aria-label={x.new}><Empty text={x.noModel} cli={x.noModelCli} /></section> : <New />}
		{live.value && <Now now={live.value} />}
		<section class="card list" aria-labelledby="list-title"><header><h2 id="list-title">{x.title}</h2></header>
			<PagedView of={list} error={x.error} empty={<Empty text={x.empty} cli={x.emptyCli} />}>{(all) => <ul class="runs">{all.map((s) => <li key={s.id}><a href={`/agents/${s.id}`}>
				<span class={`v ${toneOf(s.outcome)}`}><Icon name={icons[toneOf(s.outcome)]!} /></span><span class="what"><span class="one-line">{s.task}</span><span class="dim">{wordOf(s.outcome)}</span></span>
				<span class="when"><span>{ago(s.created_at, clock.value)}</span><span class="dim">{s.ended_at ? duration(Date.parse(s.ended_at) - Date.parse(s.created_at)) : ''}</span></span></a></li>)}</ul>}</PagedView>
		</section>
	</div></Shell>
}

function One({ id }: { id: string }) {
	const of = useMemo(() => new Resource(() => api<Session>(`/v1/agents/${encodeURIComponent(id)}`)), [id]), title = useRef<HTMLHeadingElement>(null)
	useEffect(() => void of.load(), [of, generation.value])
	const again = useCallback(() => void of.load(), [of])
	useEvery(2000, again, of.value.value?.state === 'running')
	return <Shell title={x.session(id)}><div class="page"><View of={of} title={x.missing}>{(s) => {
		const r = s.report, steps = stepsOf(s.log ?? []), result = textOf(r?.result)
		return <><section class="card record" aria-labelledby="page-title">
			<header class={`verdict ${toneOf(s.outcome)}`}><Icon name={icons[toneOf(s.outcome)]!} size={22} /><div><h1 id="page-title" ref={title}>{s.task}</h1><p role="status"><strong>{wordOf(s.outcome)}</strong>{r?.why ? `: ${r.why}` : ''}</p>
				<p class="dim">{[r?.steps != null ? x.stepsOf(r.steps, r.max_steps ?? r.steps) : '', r?.ms != null ? duration(r.ms) : '', usageText(r?.usage), ago(s.created_at, clock.value)].filter(Boolean).join(' · ')}</p></div></header>
			{result && <div class="pad part"><h2>{x.result}</h2><pre class="text" tabIndex={0} role="group" aria-label={x.result}>{result}</pre></div>}
			{r?.kept && r.box && <footer class="row"><a href={`/b/${r.box}`}>{x.openBox}</a></footer>}
		</section>
		{s.state !== 'running' && <section class="card list" aria-labelledby="steps-title"><header><h2 id="steps-title">{x.stepsTitle}</h2></header>{steps.length ? <Steps steps={steps} /> : <Empty text={x.noSteps} />}{s.log_truncated && <p class="note pad">{x.cut}</p>}</section>}</>
	}}</View></div></Shell>
}

export default function Agents({ id }: { id: string }) {
	return id ? <One id={id} /> : <List />
}
