// Monitor: what the machine and each box use now and used before, and what was ended for lack of memory.
import { useSignal } from '@preact/signals'
import { useCallback, useEffect, useMemo, useRef } from 'preact/hooks'
import { ApiError, api, box as boxPath, type Box, type HostStats, type Page, type RunRecord } from '../api'
import { clock } from '../clock'
import { ago, bytes, duration, rate } from '../format'
import { Icon } from '../icons'
import { Empty, ErrorState, Loading, Spark, View } from '../parts/basics'
import { Graph, type Marker } from '../parts/Graph'
import { useEvery } from '../parts/paged'
import { Shell } from '../parts/Shell'
import { Resource } from '../resource'
import { go, query } from '../router'
import { Samples } from '../samples'
import { connection, generation } from '../socket'
import { boxes, eventListeners, figures, runs, shownBoxes, titleOf, watch } from '../store'
import { t } from '../texts'

interface Sample { at: string, cpu_us: number | null, memory: number | null, disk: number | null, bytes_in: number | null, bytes_out: number | null, load: number, boxes: number }
interface BoxSample { at: string, memory: number | null, cpu_us: number | null, pids: number | null, disk: number | null, bytes_in: number, bytes_out: number }
interface Event { seq: number, at: string, box: string, type: string, data: { cause?: string, run?: string } }
interface Host extends HostStats { cpus: number, cpu_us: number | null, memory: HostStats['memory'] & { used: number | null }, disk: { total: number | null, used: number | null }, uptime_s: number }

const RANGES: Record<string, { ms: number, step: number, text: string }> = {
	'15m': { ms: 900e3, step: 1, text: t.host.last15m }, '1h': { ms: 3600e3, step: 10, text: t.host.last1h }, '6h': { ms: 6 * 3600e3, step: 10, text: t.host.last6h }, '24h': { ms: 86400e3, step: 10, text: t.host.last24h },
}
const x = t.host

/** What was ended for lack of memory, newest first. */
const kills = new Resource(async () => (await api<Page<Event>>('/v1/events?order=newest&limit=1000')).items.filter((e) => e.data?.cause === 'memory'))
const host = new Resource(() => api<Host>('/v1/stats'))
const nameOf = (id: string) => { const b = (boxes.value.value ?? []).find((y) => y.id === id); return b ? titleOf(b) : id }
const isMemoryEnd = (e: { type: string, data: any }) => e.data?.cause === 'memory'

function Controls({ range, box, table, onTable }: { range: string, box: string, table: boolean, onTable: () => void }) {
	const to = (r: string, b: string) => { const q = new URLSearchParams(); if (r !== '15m') q.set('range', r); if (b) q.set('box', b); go(`/monitor${q.size ? `?${q}` : ''}`, true) }
	const known = shownBoxes.value.some((b) => b.id === box)
	return <div class="row controls">
		<label>{x.show} <select aria-label={x.show} value={box} onChange={(e) => to(range, e.currentTarget.value)}><option value="">{x.machine}</option>{box && !known && <option value={box}>{box}</option>}{shownBoxes.value.slice(0, 200).map((b) => <option value={b.id} key={b.id}>{titleOf(b)}</option>)}</select></label>
		<label>{x.range} <select aria-label={x.range} value={range} onChange={(e) => to(e.currentTarget.value, box)}>{Object.entries(RANGES).map(([k, r]) => <option value={k} key={k}>{r.text}</option>)}</select></label>
		<span class="dim wide-only">{x.zoom}</span>
		<button class="small push" aria-pressed={table} onClick={onTable}>{t.monitor.table}</button>
	</div>
}

/** Samples of the machine (box "") or of one box: history, then one more every second. */
function useSamples(box: string, range: string) {
	const columns = useRef(new Samples()), version = useSignal(0), ready = useSignal(false), error = useSignal<ApiError | null>(null)
	const r = RANGES[range]!, path = box ? `${boxPath(box)}/stats` : '/v1/stats'
	const load = useCallback(async () => {
		try {
			const step = box ? 10 : r.step, h = await api<{ items: (Sample & BoxSample)[] }>(`${path}/history?step=${step}&since=${range}`)
			const c = new Samples()
			for (const s of h.items) c.add(Date.parse(s.at) / 1000, { ...s, extra: box ? s.pids : s.load })
			columns.current = c
			error.value = null
			ready.value = true
			version.value++
		} catch (e) { error.value = e as ApiError }
	}, [box, range])
	useEffect(() => { ready.value = false; error.value = null; void load() }, [load, generation.value])
	const step = useCallback(async () => {
		if (!ready.peek()) return
		try {
			const s = await api<any>(path), at = Date.parse(s.at) / 1000 // by the clock of the daemon
			columns.current.add(at, { cpu_us: box ? s.cpu.us : s.cpu_us, memory: box ? s.memory.now : s.memory.used, disk: s.disk.used, ...s.network, extra: box ? s.pids.now : s.load[0] })
			if (!box) host.value.value = s
			version.value++
		} catch { /* the banner shows a lost connection, and the next one reads all again */ }
	}, [box, range])
	useEvery(r.step === 1 ? 1000 : 10000, step)
	return { columns: columns.current, version: version.value, ready: ready.value, error: error.value, load }
}

function Graphs({ box, range }: { box: string, range: string }) {
	const s = useSamples(box, range), table = useSignal(false), h = host.value.value
	useEffect(() => { if (!box) void host.load() }, [box, generation.value])
	const b = box ? (boxes.value.value ?? []).find((y) => y.id === box) : undefined
	const starts = useMemo(() => box ? new Resource(async () => (await api<Page<RunRecord>>(`/v1/runs?box=${box}&limit=200`)).items.map((r) => Date.parse(r.started) / 1000)) : null, [box])
	const newest = runs.value.value?.[0]?.id ?? ''
	useEffect(() => void starts?.load(), [starts, newest, generation.value])
	const programs = starts?.value.value ?? []
	const markers: Marker[] = (kills.value.value ?? []).filter((e) => !box || e.box === box).map((e): Marker => ({ at: Date.parse(e.at) / 1000, kind: 'memory' })).concat(programs.map((at) => ({ at, kind: 'run' })))
	const c = s.columns, from = (c.time[c.time.length - 1] ?? 0) - RANGES[range]!.ms / 1000, rows = c.time.map((_, i) => i).slice(-120).reverse()
	const cpus = box ? (b?.limits.cpu_milli ?? 1000) / 1000 : h?.cpus ?? 1, memory = box ? b?.limits.mem : h?.memory.total, disk = box ? b?.limits.disk : h?.disk.total
	const common = { time: c.time, version: s.version, markers, from }
	return <section class="card list" aria-labelledby="graphs-title">
		<header><h2 id="graphs-title">{box ? nameOf(box) : x.machine}</h2>{!box && h && <span class="dim wide-only">{x.facts(h.cpus, bytes(h.memory.total), duration(h.uptime_s * 1000))}</span>}{box && programs.length > 0 && <span class="dim wide-only">{x.programs(programs.length)}</span>}{box ? <a href={`/b/${box}`} class="push side-link">{x.openBox}</a> : <a href="/monitor/figures" class="push side-link">{t.figures.open}</a>}</header>
		<Controls range={range} box={box} table={table.value} onTable={() => { table.value = !table.value }} />
		{s.error ? s.error.status === 403 ? <Empty text={x.notOperator} /> : <ErrorState title={t.monitor.error} error={s.error} retry={() => void s.load()} />
			: !s.ready ? <Loading lines={4} slow={t.slow} />
			: table.value ? <div class="scroll-x table-of" tabIndex={0} role="group" aria-label={t.monitor.table}><table class="rows"><thead><tr><th scope="col">{t.monitor.time}</th><th scope="col">{t.boxes.cpu}</th><th scope="col">{t.boxes.memory}</th><th scope="col">{x.disk}</th><th scope="col">{box ? t.monitor.pids : x.load}</th><th scope="col">{t.monitor.received}</th><th scope="col">{t.monitor.sent}</th></tr></thead>
				<tbody>{rows.map((i) => <tr key={c.time[i]}><td>{new Date(c.time[i]! * 1000).toLocaleTimeString()}</td><td class="n">{c.cpu[i] == null ? '–' : `${c.cpu[i]!.toFixed(0)} %`}</td><td class="n">{bytes(c.memory[i])}</td><td class="n">{bytes(c.disk[i])}</td><td class="n">{c.extra[i] ?? '–'}</td><td class="n">{rate(c.received[i])}</td><td class="n">{rate(c.sent[i])}</td></tr>)}</tbody></table></div>
			: <div class="graphs all">
				<Graph key={`c${cpus}`} {...common} title={t.monitor.cpu(cpus)} values={c.cpu} unit={(n) => `${Math.round(n)} %`} most={Math.max(10, cpus * 100)} />
				<Graph key={`m${memory}`} {...common} title={t.monitor.memory(bytes(memory))} values={c.memory} binary unit={(n) => bytes(n)} most={memory ?? 1 << 20} />
				<Graph key={`d${disk}`} {...common} title={x.diskOf(bytes(disk))} values={c.disk} binary unit={(n) => bytes(n)} most={disk ?? 1 << 20} />
				<Graph key="e" {...common} title={box ? t.monitor.pids : x.load} values={c.extra} unit={(n) => box ? String(Math.round(n)) : n.toFixed(1)} most={box ? 4 : cpus} />
				<Graph key="r" {...common} title={t.monitor.received} values={c.received} binary unit={rate} most={1 << 10} />
				<Graph key="s" {...common} title={t.monitor.sent} values={c.sent} binary unit={rate} most={1 << 10} />
			</div>}
	</section>
}

// ---- boxes ----

interface Row { b: Box, cpu: number | null, mem: number | null, pids: number | null, oom: number, spark: number[] }
type Column = 'name' | 'cpu' | 'mem' | 'pids' | 'oom'

function Boxes() {
	const by = useSignal<Column>('cpu')
	const list = shownBoxes.value, ids = list.filter((b) => b.state === 'running').map((b) => b.id).join()
	useEffect(() => watch(ids ? ids.split(',') : []), [ids])
	useEffect(() => () => watch([]), [])
	const rows: Row[] = list.map((b) => {
		const f = b.state === 'running' ? figures.value.get(b.id) : undefined
		return { b, cpu: f ? f.cpu[f.cpu.length - 1] ?? 0 : null, mem: f?.mem ?? null, pids: f?.pids ?? null, oom: f?.oom ?? 0, spark: f?.cpu ?? [] }
	})
	const key = (r: Row) => by.value === 'name' ? 0 : r[by.value] ?? -1
	rows.sort((a, b) => by.value === 'name' ? titleOf(a.b).localeCompare(titleOf(b.b)) : key(b) as number - (key(a) as number) || titleOf(a.b).localeCompare(titleOf(b.b)))
	const head = (c: Column, text: string) => <th scope="col" aria-sort={by.value === c ? c === 'name' ? 'ascending' : 'descending' : undefined}><button class="sort" onClick={() => { by.value = c }}>{text}{by.value === c && <Icon name="chevron-down" size={12} />}</button></th>
	return <section class="card list" aria-labelledby="boxes-title">
		<header><h2 id="boxes-title">{t.boxes.title}</h2>{rows.length > 0 && <span class="count">{rows.length}</span>}</header>
		<View of={boxes} title={t.boxes.error}>{() => rows.length === 0 ? <Empty text={x.noBoxes} cli={t.boxes.emptyCli} /> : <div class="scroll-x" tabIndex={0} role="group" aria-label={t.boxes.table}><table class="boxes usage">
			<thead><tr>{head('name', t.boxes.name)}<th scope="col">{t.boxes.state}</th>{head('cpu', t.boxes.cpu)}{head('mem', t.boxes.memory)}{head('pids', t.monitor.pids)}{head('oom', x.oom)}<th scope="col" class="wide-only">{t.boxes.age}</th></tr></thead>
			<tbody>{rows.slice(0, 100).map(({ b, cpu, mem, pids, oom, spark }) => <tr key={b.id}>
				<td class="name"><a href={`/monitor?box=${b.id}`}>{titleOf(b)}</a></td>
				<td><span class={`badge ${b.state}`}><span class="dot" aria-hidden="true" />{t.boxes.states[b.state] ?? b.state}</span></td>
				<td class="figure">{cpu == null ? <span class="dim">–</span> : <><Spark values={spark} label={`${t.boxes.cpu} ${Math.round(cpu * 100)} %`} /><span class="n">{Math.round(cpu * 100)} %</span></>}</td>
				<td class="figure">{mem == null ? <span class="dim">–</span> : <><meter min={0} max={b.limits.mem} value={mem} high={b.limits.mem * 0.85} aria-label={t.boxes.memory} /><span class="n">{bytes(mem)}</span><span class="dim">{x.of(bytes(b.limits.mem))}</span></>}</td>
				<td class="figure"><span class="n">{pids ?? '–'}</span></td>
				<td>{oom ? <span class="mark bad"><Icon name="triangle-alert" size={14} /><span>{oom}</span></span> : <span class="dim">0</span>}</td>
				<td class="wide-only">{ago(b.created, clock.value)}</td>
			</tr>)}</tbody></table></div>}</View>
	</section>
}

function Kills() {
	return <section class="card list" aria-labelledby="kills-title">
		<header><h2 id="kills-title">{x.kills}</h2></header>
		<View of={kills} title={x.killsError}>{(list) => list.length ? <ul class="runs">{list.slice(0, 20).map((e) => <li key={e.seq}><a href={e.data.run ? `/runs/${e.data.run}` : `/monitor?box=${e.box}`}>
			<span class="v bad"><Icon name="triangle-alert" /></span><span class="what"><span>{e.type === 'box.ended' ? x.boxKilled(nameOf(e.box)) : x.runKilled(nameOf(e.box))}</span></span><span class="when">{ago(e.at, clock.value)}</span></a></li>)}</ul> : <Empty text={x.noKills} />}</View>
	</section>
}

export default function Monitor() {
	const range = query.value.get('range') ?? '', box = query.value.get('box') ?? '', r = RANGES[range] ? range : '15m'
	useEffect(() => void kills.load(), [generation.value])
	useEffect(() => {
		const onEvent = (e: { type: string, data: any }) => { if (isMemoryEnd(e)) kills.soon() }
		eventListeners.add(onEvent)
		return () => { eventListeners.delete(onEvent) }
	}, [])
	const graphs = useMemo(() => <Graphs key={`${box} ${r}`} box={box} range={r} />, [box, r])
	return <Shell title={x.title}><div class="page monitor-page">
		<h1 class="hidden">{x.title}</h1>
		{connection.value !== 'live' && <p class="hidden" role="status">{t.monitor.notLive}</p>}
		{graphs}
		<div class="two"><Boxes /><Kills /></div>
	</div></Shell>
}
