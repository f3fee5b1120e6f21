// All runs, and the record of one.
import { useSignal } from '@preact/signals'
import { useCallback, useEffect, useMemo } from 'preact/hooks'
import { api, type Page, type RunRecord } from '../api'
import { clock } from '../clock'
import { ago, bytes, duration } from '../format'
import { Icon } from '../icons'
import { Empty, View, failed, CopyButton } from '../parts/basics'
import { Diff } from '../parts/Diff'
import { useEvery } from '../parts/paged'
import { RunRows, verdictIcon } from '../parts/RunRows'
import { Shell } from '../parts/Shell'
import { commandOf, reason, sentence, took, verdict } from '../record'
import { Resource } from '../resource'
import { go, query } from '../router'
import * as session from '../session'
import { generation } from '../socket'
import { runs } from '../store'
import { TierBadge } from '../parts/tier'
import { t } from '../texts'

function List() {
	const older = useSignal<RunRecord[]>([]), next = useSignal<string | null | undefined>(undefined), busy = useSignal(false)
	const first = useMemo(() => new Resource(async () => {
		const p = await api<Page<RunRecord>>('/v1/runs?limit=50')
		if (next.peek() === undefined) next.value = p.next
		return p.items
	}), [])
	const newest = runs.value.value?.[0]?.id ?? ''
	useEffect(() => void first.load(), [newest, generation.value])
	const more = async () => {
		busy.value = true
		try {
			const p = await api<Page<RunRecord>>(`/v1/runs?limit=100&after=${encodeURIComponent(next.value!)}`)
			older.value = [...older.value, ...p.items]
			next.value = p.next
		} catch (e) { failed(e) }
		busy.value = false
	}
	return <Shell title={t.runs.page}><div class="page">
		<section class="card list" aria-labelledby="page-title">
			<header><h1 id="page-title">{t.runs.page}</h1></header>
			<View of={first} title={t.runs.error}>{(list) => {
				const seen = new Set(list.map((r) => r.id)), all = [...list, ...older.value.filter((r) => !seen.has(r.id))]
				return all.length ? <><RunRows list={all} now={clock.value} />{next.value && <p class="pad"><button class="small" disabled={busy.value} onClick={() => void more()}>{t.loadMore}</button></p>}</> : <Empty text={t.runs.empty} cli={t.runs.emptyCli} />
			}}</View>
		</section>
	</div></Shell>
}

/** A member of a record as a text; records of two runs are compared by these rows. */
type Fact = [string, string]
interface FullRecord extends RunRecord { replay_of?: string, tag?: string, tier?: string, io?: { reads: number | null, writes: number | null }, evidence?: Record<string, unknown>, stdout?: string, stderr?: string }

function factsOf(r: FullRecord): Fact[] {
	const l = r.limits, none = '–'
	return [
		[t.runs.result, sentence(r)], [t.runs.command, commandOf(r)], [t.runs.started, new Date(r.started).toLocaleString()], [t.runs.took, r.ended ? duration(took(r)) : none],
		[t.runs.cpu, r.cpu_s == null ? none : duration(r.cpu_s * 1000)], [t.runs.memory, `${bytes(r.mem_peak)}${l ? ` of ${bytes(l.mem)}` : ''}`], [t.runs.processes, `${r.processes ?? none}${l ? ` of ${l.pids}` : ''}`],
		[t.runs.output, `${bytes(r.stdout_bytes)} stdout, ${bytes(r.stderr_bytes)} stderr${r.truncated ? `, ${t.runs.truncated}` : ''}`], [t.runs.io, r.io ? `${bytes(r.io.reads)} read, ${bytes(r.io.writes)} written` : none],
		[t.runs.limits, l ? `${l.cpu_milli / 1000} CPU, ${bytes(l.disk)} disk, ${l.wall_ms ? duration(l.wall_ms) : t.runs.noLimit}` : none], [t.runs.language, r.language ?? none], [t.runs.starting, r.timings?.create_us ? duration(r.timings.create_us / 1000) : none],
		[t.runs.box, r.box], ...(r.tag ? [[t.runs.tag, r.tag] as Fact] : []), ...(r.step ? [[t.runs.step, r.step] as Fact] : []),
	]
}

/** Output of replays of this tab, by the id of the run: the daemon does not keep it after the box has ended. */
const outputs = new Map<string, { stdout: string, stderr: string }>()

function Compare({ a, b }: { a: FullRecord, b: Resource<FullRecord> }) {
	return <section class="card list" aria-labelledby="compare-title"><header><h2 id="compare-title">{t.runs.compared}</h2><button class="small push" onClick={() => go(`/runs/${a.id}`, true)}>{t.close}</button></header>
		<View of={b} title={t.runs.missing}>{(other) => {
			const theirs = new Map(factsOf(other)), rows = factsOf(a), mine = outputs.get(a.id), its = outputs.get(other.id)
			return <><div class="scroll-x" tabIndex={0} role="group" aria-label={t.runs.compared}><table class="rows run-compare"><thead><tr><th scope="col">{t.runs.facts}</th><th scope="col"><a href={`/runs/${other.id}`}>{other.id}</a></th><th scope="col">{a.id}</th></tr></thead>
				<tbody>{rows.map(([k, v]) => { const w = theirs.get(k) ?? '–', differs = v !== w; return <tr key={k} class={differs ? 'differs' : ''}><th scope="row">{k}{differs && <span class="hidden"> ({t.runs.differs})</span>}</th><td class="wrap">{w}</td><td class="wrap">{v}</td></tr> })}</tbody></table></div>
				{mine && its && <div class="pad part"><h3>stdout</h3><Diff before={its.stdout} after={mine.stdout} label="stdout" /></div>}</>
		}}</View></section>
}

function One({ id }: { id: string }) {
	const of = useMemo(() => new Resource(() => api<FullRecord>(`/v1/runs/${encodeURIComponent(id)}`)), [id]), withId = query.value.get('with') ?? ''
	const other = useMemo(() => new Resource(() => api<FullRecord>(`/v1/runs/${encodeURIComponent(withId)}`)), [withId])
	const busy = useSignal(false), raw = useSignal(false)
	useEffect(() => void of.load(), [of, generation.value])
	useEffect(() => { if (withId) void other.load() }, [other, generation.value])
	const going = of.value.value?.state === 'running', again = useCallback(() => void of.load(), [of])
	useEvery(1000, again, going)
	const replay = async () => {
		busy.value = true
		try {
			const r = await api<FullRecord>(`/v1/runs/${id}/replay`, { body: {} })
			outputs.set(r.id, { stdout: r.stdout ?? '', stderr: r.stderr ?? '' })
			go(`/runs/${r.id}?with=${id}`)
		} catch (e) { failed(e) }
		busy.value = false
	}
	return <Shell title={t.runs.one(id)}><div class="page"><View of={of} title={t.runs.missing}>{(r) => {
		const why = reason(r), shown = outputs.get(id), recent = (runs.value.value ?? []).filter((y) => y.id !== id)
		return <><section class="card record" aria-labelledby="page-title">
			<header class={`verdict ${verdict(r)}`}><Icon name={verdictIcon(r)} size={22} /><div><h1 id="page-title">{sentence(r)}</h1>{why && <p>{why.text}{why.file && why.line ? ` (${t.record.at(why.file, why.line)})` : ''}</p>}{r.summary && <p>{r.summary}</p>}{r.hint && <p class="hint">{r.hint}</p>}
				<p class="dim">{ago(r.started, clock.value)}{r.replay_of && <> · {t.runs.replayOf} <a class="under" href={`/runs/${id}?with=${r.replay_of}`}>{r.replay_of}</a></>}</p></div></header>
			<pre class="command" tabIndex={0} role="group" aria-label={t.runs.command}>{commandOf(r)}</pre>
			{raw.value ? <pre class="text command" tabIndex={0} role="group" aria-label={t.pipelines.json}>{JSON.stringify(r, null, 2)}</pre> : <>
				<dl class="facts">{factsOf(r).slice(2).map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{k === t.runs.box ? <a href={`/b/${r.box}`}>{v}</a> : v}</dd></div>)}</dl>
				{shown && <div class="pad part"><h2>{t.runs.output}</h2>{shown.stdout ? <pre class="text" tabIndex={0} role="group" aria-label="stdout">{shown.stdout}</pre> : null}{shown.stderr ? <pre class="text bad" tabIndex={0} role="group" aria-label="stderr">{shown.stderr}</pre> : null}{!shown.stdout && !shown.stderr && <p class="dim">{t.output.noOutput}</p>}</div>}
				{r.errors && r.errors.length > 0 && <><h2>{t.runs.errors}</h2><ul class="plain-list pad">{r.errors.slice(0, 50).map((e, i) => <li key={i}><code>{e.file}{e.line ? `:${e.line}` : ''}</code> {e.severity}: {e.message}</li>)}</ul></>}
				{r.evidence && <><h2>{t.runs.evidence}</h2><dl class="facts small-facts">{Object.entries(r.evidence).filter(([, v]) => v !== null).map(([k, v]) => <div key={k}><dt>{k.replaceAll('_', ' ')}</dt><dd>{k.startsWith('disk_') ? bytes(Number(v)) : String(v)}</dd></div>)}</dl></>}
				{r.layers && <><h2>{t.runs.layers}</h2><p class="tags"><TierBadge of={r} />{r.layers.map((y) => <span class="tag" key={y}>{y}</span>)}</p></>}</>}
			<footer class="row"><button class="primary" disabled={busy.value || !session.mayEdit.value} onClick={() => void replay()}><Icon name="rotate-ccw" size={14} /><span>{busy.value ? t.pipelines.replaying : t.runs.replay}</span></button>
				{recent.length > 0 && <select aria-label={t.runs.compare} value={withId} onChange={(e) => go(`/runs/${id}${e.currentTarget.value ? `?with=${e.currentTarget.value}` : ''}`, true)}><option value="">{t.runs.compare}…</option>{withId && !recent.some((y) => y.id === withId) && <option value={withId}>{withId}</option>}{recent.map((y) => <option value={y.id} key={y.id}>{y.id}: {sentence(y)}</option>)}</select>}
				<span class="push" /><button class="small" aria-pressed={raw.value} onClick={() => { raw.value = !raw.value }}><Icon name="code" size={14} /><span>{t.pipelines.json}</span></button><CopyButton text={() => `atoll runs ${id}`} label="atoll runs" /></footer>
		</section>
		{withId && <Compare a={r} b={other} />}</>
	}}</View></div></Shell>
}

export default function Runs({ id }: { id: string }) {
	return id ? <One id={id} /> : <List />
}
