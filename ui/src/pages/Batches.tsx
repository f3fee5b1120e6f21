// Batches: all of them, and one with its progress and results as they arrive.
import { useSignal } from '@preact/signals'
import { useCallback, useEffect, useMemo, useRef } from 'preact/hooks'
import { api, lines, request } from '../api'
import { clock } from '../clock'
import { ago, duration } from '../format'
import { Icon, type IconName } from '../icons'
import { CopyButton, Empty, View, failed } from '../parts/basics'
import { PagedView, useEvery, usePaged } from '../parts/paged'
import { Shell } from '../parts/Shell'
import { Resource } from '../resource'
import { go, query } from '../router'
import * as session from '../session'
import { generation } from '../socket'
import { languages } from '../store'
import { t } from '../texts'
import { toast } from '../toasts'

interface Batch { id: string, state: string, results: number, passed: number, failed: number, errors: number, whole: boolean, items: number | null, created: string, ended?: string, seconds?: number, causes?: Record<string, number>, flying?: number }
interface Result { n: number, item: number, id?: string, verdict: 'passed' | 'failed' | 'error', cause: string, exit_code?: number | null, signal?: string, ms?: number, cpu_ms?: number, stdout?: string, stderr?: string, message?: string, hint?: string, line?: number, stdout_encoding?: string, compiled_before?: boolean }

const RESULTS_MOST = 20000, SHOWN_FIRST = 100
const x = t.batches
const live = (b: Batch) => !['finished', 'cancelled'].includes(b.state)
const toneOf = (b: Batch) => live(b) ? 'running' : b.state === 'cancelled' ? 'stopped' : b.failed + b.errors ? 'bad' : 'ok'
const icons: Record<string, IconName> = { ok: 'circle-check', bad: 'circle-x', running: 'play', stopped: 'square' }
const wordOf = (b: Batch) => x.states[b.state] ?? b.state
const countsOf = (b: Batch) => [x.passed(b.passed), b.failed ? x.failed(b.failed) : '', b.errors ? x.errors(b.errors) : ''].filter(Boolean).join(', ')

// ---- all ----

const example = '{"code": "print(6 * 7)", "expected": "42\\n"}\n{"code": "print(6 * 9)", "expected": "42\\n"}\n'

function New() {
	const text = useSignal(''), language = useSignal('python'), busy = useSignal(false), file = useRef<HTMLInputElement>(null)
	const here = (languages.value.value ?? []).filter((l) => l.here)
	const start = async (body: BodyInit) => {
		if (busy.value) return
		busy.value = true
		const abort = new AbortController()
		let id = ''
		try {
			await lines(`/v1/batch?language=${encodeURIComponent(language.value)}`, { raw: body, headers: { 'Content-Type': 'application/x-ndjson' }, signal: abort.signal }, (m) => {
				if (m.type !== 'batch') return
				id = m.id
				abort.abort() // the batch continues; its page reads the results
			})
		} catch (e) { if (!id) failed(e) }
		busy.value = false
		if (id) go(`/batches/${id}`)
	}
	return <form class="card ask" aria-labelledby="new-title" onSubmit={(e) => { e.preventDefault(); void start(text.value.trim() + '\n') }}>
		<header><h2 id="new-title">{x.new}</h2></header>
		<div class="body">
			<p class="dim">{x.lead}</p>
			<textarea id="items" class="mono" rows={4} spellcheck={false} aria-label={x.items} placeholder={example} value={text.value} disabled={!session.mayEdit.value} onInput={(e) => { text.value = e.currentTarget.value }} />
			<div class="row"><button class="primary" type="submit" disabled={busy.value || !text.value.trim() || !session.mayEdit.value}><Icon name="play" size={14} /><span>{busy.value ? x.starting : x.start}</span></button>
				<select aria-label={x.language} value={language.value} onChange={(e) => { language.value = e.currentTarget.value }}>{(here.length ? here : [{ name: 'python', title: 'Python' }]).map((l) => <option value={l.name} key={l.name}>{l.title}</option>)}</select>
				<input type="file" hidden ref={file} accept=".jsonl,.ndjson,.json" aria-label={x.file} onChange={(e) => { const f = e.currentTarget.files?.[0]; if (f) void start(f); e.currentTarget.value = '' }} />
				<button type="button" disabled={busy.value || !session.mayEdit.value} onClick={() => file.current!.click()}><Icon name="upload" size={14} /><span>{x.file}</span></button>
				{!text.value && <button type="button" class="plain" disabled={!session.mayEdit.value} onClick={() => { text.value = example }}>{x.example}</button>}
				{session.info.value && !session.mayEdit.value && <span class="dim">{t.quick.readOnly}</span>}</div>
		</div>
	</form>
}

function Bar({ b }: { b: Batch }) {
	const all = b.items ?? Math.max(1, b.results + (b.flying ?? 0)), part = (n: number) => `${n / Math.max(1, all) * 100}%`
	return <div class="bar-of" role="img" aria-label={`${x.progress(b.results, b.items)}: ${countsOf(b)}`}><span class="ok" style={{ width: part(b.passed) }} /><span class="bad" style={{ width: part(b.failed) }} /><span class="err" style={{ width: part(b.errors) }} /></div>
}

function List() {
	const list = usePaged<Batch>('/v1/batch', (b) => b.id)
	const again = useCallback(() => void list.first.load(), [list.first])
	useEvery((list.first.value.value ?? []).some(live) ? 1500 : 6000, again)
	return <Shell title={x.title}><div class="page">
		<h1 class="hidden">{x.title}</h1>
		<New />
		<section class="card list" aria-labelledby="list-title">
			<header><h2 id="list-title">{x.title}</h2></header>
			<PagedView of={list} error={x.error} empty={<Empty text={x.empty} cli={x.emptyCli} />}>{(all) => <ul class="runs">{all.map((b) => <li key={b.id}><a href={`/batches/${b.id}`}>
				<span class={`v ${toneOf(b)}`}><Icon name={icons[toneOf(b)]!} /></span>
				<span class="what"><code>{b.id}</code><span class="dim">{wordOf(b)} · {countsOf(b)}</span></span>
				<Bar b={b} />
				<span class="when"><span>{ago(b.created, clock.value)}</span><span class="dim">{b.seconds != null ? duration(b.seconds * 1000) : ''}</span></span>
			</a></li>)}</ul>}</PagedView>
		</section>
	</div></Shell>
}

// ---- one ----

/** Results as they arrive, at most RESULTS_MOST; drawn a few times a second. */
function useResults(id: string, there: boolean, onEnd: () => void) {
	const version = useSignal(0), all = useRef<Result[]>([]), cut = useSignal(false)
	useEffect(() => { all.current = []; cut.value = false }, [id])
	useEffect(() => {
		if (!there) return
		const abort = new AbortController(), last = () => all.current[all.current.length - 1]?.n ?? 0
		let timer: ReturnType<typeof setTimeout> | undefined
		const draw = () => { timer ??= setTimeout(() => { timer = undefined; version.value++ }, 150) }
		lines(`/v1/batch/${encodeURIComponent(id)}/results?after=${last()}`, { signal: abort.signal }, (m) => {
			if (m.type !== 'result' || m.n <= last()) return
			all.current.push(m)
			draw()
			if (all.current.length >= RESULTS_MOST) { cut.value = true; abort.abort() }
		}).then(onEnd, () => {}) // a lost connection: the next generation continues after the last result
		return () => { abort.abort(); clearTimeout(timer) }
	}, [id, there, generation.value])
	void version.value
	return { all: all.current, cut: cut.value }
}

function ResultRow({ r, open, onOpen }: { r: Result, open: boolean, onOpen: () => void }) {
	const mark = r.verdict === 'passed' ? 'ok' : 'bad', end = r.cause === 'exit' ? `exit ${r.exit_code}` : x.causes[r.cause] ?? r.cause
	return <><tr class={open ? 'open' : ''}>
		<td><button class="plain expand" aria-expanded={open} onClick={onOpen}><Icon name={open ? 'chevron-down' : 'chevron-right'} size={14} /><span>{r.id ?? x.item(r.item)}</span></button></td>
		<td><span class={`mark ${mark}`}><Icon name={r.verdict === 'passed' ? 'check' : r.verdict === 'error' ? 'triangle-alert' : 'x'} size={14} /><span>{x.verdicts[r.verdict]}</span></span></td>
		<td>{end}</td><td class="n">{r.ms != null ? duration(r.ms) : '–'}</td>
		<td class="one-line dim">{r.message ?? (r.stdout ?? '').split('\n')[0]}</td>
	</tr>{open && <tr class="detail"><td colSpan={5}>
		{r.message && <p>{r.message}{r.line ? ` (${x.line(r.line)})` : ''}</p>}{r.hint && <p class="dim">{r.hint}</p>}
		{r.stdout ? <><h3>stdout{r.stdout_encoding ? ` (${r.stdout_encoding})` : ''}</h3><pre class="text" tabIndex={0} role="group" aria-label="stdout">{r.stdout}</pre></> : null}
		{r.stderr ? <><h3>stderr</h3><pre class="text bad" tabIndex={0} role="group" aria-label="stderr">{r.stderr}</pre></> : null}
		{!r.stdout && !r.stderr && !r.message && <p class="dim">{t.output.noOutput}</p>}
	</td></tr>}</>
}

function One({ id }: { id: string }) {
	const of = useMemo(() => new Resource(() => api<Batch>(`/v1/batch/${encodeURIComponent(id)}`)), [id])
	const busy = useSignal(false), opened = useSignal<number | null>(null), most = useSignal(SHOWN_FIRST), wanted = query.value.get('show') ?? ''
	useEffect(() => void of.load(), [of, generation.value])
	const again = useCallback(() => void of.load(), [of]), b = of.value.value
	useEvery(1000, again, b != null && live(b))
	const { all, cut } = useResults(id, b != null, again)
	const end = async (forget: boolean) => {
		busy.value = true
		try {
			await request(`/v1/batch/${id}${forget ? '?forget=true' : ''}`, { method: 'DELETE' })
			if (forget) { toast({ text: x.removed }); go('/batches') } else await of.load()
		} catch (e) { failed(e) }
		busy.value = false
	}
	const save = async () => {
		try {
			const body = await (await request(`/v1/batch/${id}/results?follow=false`, { headers: { Accept: 'application/x-ndjson' } })).blob(), a = document.createElement('a')
			a.href = URL.createObjectURL(body)
			a.download = `${id}.jsonl`
			a.click()
			setTimeout(() => URL.revokeObjectURL(a.href), 10000)
		} catch (e) { failed(e) }
	}
	const found = all.filter((r) => !wanted || r.verdict === wanted)
	return <Shell title={x.one(id)}><div class="page"><View of={of} title={x.missing}>{(b) => <>
		<section class="card record" aria-labelledby="page-title">
			<header class={`verdict ${toneOf(b)}`}><Icon name={icons[toneOf(b)]!} size={22} /><div><h1 id="page-title">{x.one(id)}</h1><p role="status"><strong>{wordOf(b)}</strong>: {x.progress(b.results, b.items)}{b.whole ? '' : `. ${x.notWhole}`}</p>
				<p class="dim">{[ago(b.created, clock.value), b.seconds != null ? duration(b.seconds * 1000) : '', b.flying ? x.flying(b.flying) : ''].filter(Boolean).join(' · ')}</p></div></header>
			<div class="batch-figures"><Bar b={b} /><dl>{([[x.verdicts.passed, b.passed, 'ok'], [x.verdicts.failed, b.failed, 'bad'], [x.verdicts.error, b.errors, 'warn']] as const).map(([k, v, tone]) => <div key={k} class={v ? tone : ''}><dt>{k}</dt><dd>{v.toLocaleString()}</dd></div>)}
				{Object.entries(b.causes ?? {}).map(([k, v]) => <div key={k}><dt>{x.causes[k] ?? k}</dt><dd>{v.toLocaleString()}</dd></div>)}</dl></div>
			<footer class="row">{live(b) ? <button class="stop" disabled={busy.value || !session.mayEdit.value} onClick={() => void end(false)}><Icon name="square" size={14} /><span>{x.cancel}</span></button> : null}
				<button disabled={!b.results} onClick={() => void save()}><Icon name="download" size={14} /><span>{x.save}</span></button>
				<span class="push" /><CopyButton text={() => `atoll batch --resume ${id}`} label="atoll batch --resume" />
				{!live(b) && <button class="small" disabled={busy.value || !session.mayEdit.value} onClick={() => void end(true)}><Icon name="trash-2" size={14} /><span>{t.delete}</span></button>}</footer>
		</section>
		<section class="card list" aria-labelledby="results-title">
			<header><h2 id="results-title">{x.results}</h2><div class="langs" role="group" aria-label={x.filter}>{['', 'failed', 'error', 'passed'].map((v) => <button key={v} aria-pressed={wanted === v} onClick={() => { most.value = SHOWN_FIRST; go(`/batches/${id}${v ? `?show=${v}` : ''}`, true) }}>{v ? x.verdicts[v] : x.allResults}</button>)}</div></header>
			{cut && <p class="note pad">{x.cut(RESULTS_MOST)}</p>}
			{found.length ? <div class="scroll-x" tabIndex={0} role="group" aria-label={x.results}><table class="rows results">
				<thead><tr><th scope="col">{x.itemTitle}</th><th scope="col">{x.verdict}</th><th scope="col">{x.end}</th><th scope="col">{t.runs.took}</th><th scope="col">{x.says}</th></tr></thead>
				<tbody>{found.slice(0, most.value).map((r) => <ResultRow r={r} key={r.n} open={opened.value === r.n} onOpen={() => { opened.value = opened.value === r.n ? null : r.n }} />)}</tbody>
			</table>{found.length > most.value && <p class="pad"><button class="small" onClick={() => { most.value += 500 }}>{t.loadMore}</button></p>}</div>
				: <Empty text={all.length ? x.filterNone : live(b) ? x.waiting : x.noResults} />}
		</section>
	</>}</View></div></Shell>
}

export default function Batches({ id }: { id: string }) {
	return id ? <One id={id} /> : <List />
}
