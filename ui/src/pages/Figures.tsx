// Figures: the server over time, from its stored history: an overview, or all series of one figure.
import { useSignal } from '@preact/signals'
import { useCallback, useEffect, useMemo } from 'preact/hooks'
import { ApiError, api } from '../api'
import { bytes, duration, rate } from '../format'
import { Empty, ErrorState, Loading } from '../parts/basics'
import { Graph } from '../parts/Graph'
import { useEvery } from '../parts/paged'
import { Shell } from '../parts/Shell'
import { Resource } from '../resource'
import { go, query } from '../router'
import { generation } from '../socket'
import { t } from '../texts'

interface Point { at: string, value?: number, count?: number, p95?: number }
interface Series { metric: string, type: 'counter' | 'gauge' | 'histogram', unit: string, step_s: number, from: string, to: string, items: { labels: Record<string, string>, points: Point[] }[] }
interface Figure { name: string, type: Series['type'], unit: string, help: string, labels: string[] }
interface Line { title: string, time: number[], values: (number | null)[], unit: (n: number) => string, binary: boolean }

const x = t.figures
const RANGES: Record<string, string> = { '1h': x.last1h, '6h': x.last6h, '1d': x.last1d, '7d': x.last7d, '30d': x.last30d, '365d': x.last365d }
const OVERVIEW: [string, string, string?][] = [
	[x.executions, 'executions_total'], [x.failures, 'executions_total', 'outcome!=ok'], [x.wall, 'run_seconds'], [x.memory, 'run_memory_bytes'],
	[x.boxes, 'boxes'], [x.toBox, 'box_create_seconds'], [x.cpu, 'cpu_seconds_total'], [x.sent, 'network_bytes_total', 'direction=out'],
	[x.requests, 'http_responses_total'], [x.answers, 'request_seconds'], [x.installs, 'package_installs_total'], [x.pipelines, 'pipeline_runs_total'], [x.cost, 'cost_total'],
]
const list = new Resource(async () => (await api<{ figures: Figure[] }>('/v1/stats?figures=true')).figures)
const number = (n: number) => n.toLocaleString(undefined, { maximumSignificantDigits: 3 })

/** What a point shows: of a counter the increase per minute (bytes and CPU time: per second), of a histogram where 95 % lie below. */
function shown(s: Series, p: Point): number | null {
	if (s.type === 'histogram') return p.p95 ?? null
	if (s.type === 'gauge') return p.value ?? null
	return (p.value ?? 0) / s.step_s * (s.unit === 'seconds' ? 100 : s.unit === 'bytes' ? 1 : 60)
}

function unitOf(s: Series): (n: number) => string {
	if (s.type === 'counter') return s.unit === 'seconds' ? (n) => `${Math.round(n)} %` : s.unit === 'bytes' ? rate : (n) => x.perMinute(number(n))
	return s.unit === 'seconds' ? (n) => duration(n * 1000) : s.unit === 'bytes' ? (n) => bytes(n) : s.unit === 'ratio' ? (n) => `${Math.round(n * 100)} %` : number
}

/** Steps without a point: a counter did not change, of others nothing is known. */
function lines(s: Series, title: (labels: Record<string, string>) => string): Line[] {
	const from = Date.parse(s.from) / 1000, n = Math.round((Date.parse(s.to) / 1000 - from) / s.step_s)
	return s.items.map((item) => {
		const time = Array.from({ length: n }, (_, i) => from + i * s.step_s), values: (number | null)[] = time.map(() => s.type === 'counter' ? 0 : null)
		for (const p of item.points) values[Math.round((Date.parse(p.at) / 1000 - from) / s.step_s)] = shown(s, p)
		return { title: title(item.labels), time, values, unit: unitOf(s), binary: s.unit === 'bytes' }
	})
}

const read = (range: string, metric: string, where = '', by = '') =>
	api<Series>(`/v1/stats/series?metric=${metric}&from=${range}${where && `&where=${encodeURIComponent(where)}`}${by && `&by=${by}`}`)

async function readAll(range: string, metric: string, by: string): Promise<Line[]> {
	if (metric) {
		const s = await read(range, metric, '', by), value = (l: Record<string, string>) => Object.values(l)[0] ?? metric
		return lines(s, value).sort((a, b) => a.title.localeCompare(b.title))
	}
	const all = await Promise.all(OVERVIEW.map(async ([title, name, where]) => lines(await read(range, name, where), () => title)))
	return all.flat()
}

function Controls({ range, metric, by }: { range: string, metric: string, by: string }) {
	const to = (r: string, m: string, b: string) => { const q = new URLSearchParams(); if (r !== '1d') q.set('range', r); if (m) q.set('figure', m); if (b) q.set('by', b); go(`/monitor/figures${q.size ? `?${q}` : ''}`, true) }
	const all = list.value.value ?? [], now = all.find((f) => f.name === metric)
	return <div class="row controls">
		<label>{x.figure} <select aria-label={x.figure} value={metric} onChange={(e) => { const m = e.currentTarget.value; to(range, m, all.find((f) => f.name === m)?.labels[0] ?? '') }}><option value="">{x.overview}</option>{metric && !now && <option value={metric}>{metric}</option>}{all.map((f) => <option value={f.name} key={f.name}>{f.name}</option>)}</select></label>
		{now && now.labels.length > 0 && <label>{x.by} <select aria-label={x.by} value={by} onChange={(e) => to(range, metric, e.currentTarget.value)}><option value="">{x.sum}</option>{now.labels.map((l) => <option value={l} key={l}>{l}</option>)}</select></label>}
		<label>{t.host.range} <select aria-label={t.host.range} value={range} onChange={(e) => to(e.currentTarget.value, metric, by)}>{Object.entries(RANGES).map(([k, text]) => <option value={k} key={k}>{text}</option>)}</select></label>
		<span class="dim wide-only">{now?.help ?? t.host.zoom}</span>
	</div>
}

function Graphs({ range, metric, by }: { range: string, metric: string, by: string }) {
	const all = useSignal<Line[] | null>(null), version = useSignal(0), error = useSignal<ApiError | null>(null)
	const load = useCallback(async () => {
		try {
			all.value = await readAll(range, metric, by)
			error.value = null
			version.value++
		} catch (e) { error.value = e as ApiError }
	}, [range, metric, by])
	useEffect(() => void load(), [load, generation.value])
	useEvery(60000, load)
	if (error.value) return error.value.status === 403 ? <Empty text={t.host.notOperator} /> : <ErrorState title={t.monitor.error} error={error.value} retry={() => void load()} />
	if (!all.value) return <Loading lines={4} slow={t.slow} />
	if (!all.value.length) return <Empty text={x.none} />
	return <div class="graphs all">{all.value.map((l) => <Graph key={l.title} title={l.title} time={l.time} values={l.values} version={version.value} unit={l.unit} binary={l.binary} most={0} from={l.time[0]} />)}</div>
}

export default function Figures() {
	const q = query.value, range = q.get('range') ?? '', r = RANGES[range] ? range : '1d', metric = q.get('figure') ?? '', by = q.get('by') ?? ''
	useEffect(() => void list.load(), [generation.value])
	const graphs = useMemo(() => <Graphs key={`${r} ${metric} ${by}`} range={r} metric={metric} by={by} />, [r, metric, by])
	return <Shell title={x.title}><div class="page monitor-page">
		<section class="card list" aria-labelledby="figures-title">
			<header><h1 id="figures-title">{metric || x.title}</h1><a href="/monitor" class="push side-link">{t.nav.monitor}</a></header>
			<Controls range={r} metric={metric} by={by} />
			{graphs}
		</section>
	</div></Shell>
}
