// All runs, and the record of one.
import { useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { api, type Page, type RunRecord } from '../api'
import { clock } from '../clock'
import { ago, bytes, duration } from '../format'
import { Icon } from '../icons'
import { Empty, View, failed, CopyButton } from '../parts/basics'
import { RunRows, verdictIcon } from '../parts/RunRows'
import { Shell } from '../parts/Shell'
import { commandOf, reason, sentence, took, verdict } from '../record'
import { Resource } from '../resource'
import { go } from '../router'
import * as session from '../session'
import { generation } from '../socket'
import { runs } from '../store'
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

function One({ id }: { id: string }) {
	const of = useMemo(() => new Resource(() => api<RunRecord>(`/v1/runs/${encodeURIComponent(id)}`)), [id])
	const busy = useSignal(false)
	useEffect(() => void of.load(), [of, generation.value])
	const again = async () => {
		busy.value = true
		try { go(`/runs/${(await api<RunRecord>(`/v1/runs/${id}/replay`, { body: {} })).id}`) } catch (e) { failed(e) }
		busy.value = false
	}
	return <Shell title={t.runs.one(id)}><div class="page"><section class="card record" aria-labelledby="page-title">
		<View of={of} title={t.runs.missing}>{(r) => {
			const why = reason(r), l = r.limits
			const rows: [string, string][] = [
				[t.runs.started, `${ago(r.started, clock.value)} (${new Date(r.started).toLocaleString()})`], [t.runs.took, duration(took(r))], [t.runs.box, r.box],
				[t.runs.cpu, r.cpu_s == null ? '–' : duration(r.cpu_s * 1000)], [t.runs.memory, `${bytes(r.mem_peak)}${l ? ` of ${bytes(l.mem)}` : ''}`],
				[t.runs.processes, `${r.processes ?? '–'}${l ? ` of ${l.pids}` : ''}`], [t.runs.output, `${bytes(r.stdout_bytes)} stdout, ${bytes(r.stderr_bytes)} stderr`],
			]
			return <>
				<header class={`verdict ${verdict(r)}`}><Icon name={verdictIcon(r)} size={22} /><div><h1 id="page-title">{sentence(r)}</h1>{why && <p>{why.text}{why.file && why.line ? ` (${t.record.at(why.file, why.line)})` : ''}</p>}{r.summary && <p>{r.summary}</p>}{r.hint && <p class="hint">{r.hint}</p>}</div></header>
				<pre class="command">{commandOf(r)}</pre>
				<dl class="facts">{rows.map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{v}</dd></div>)}</dl>
				{r.layers && <><h2>{t.runs.layers}</h2><p class="tags">{r.layers.map((x) => <span class="tag" key={x}>{x}</span>)}</p></>}
				<footer class="row"><button class="primary" disabled={busy.value || !session.mayEdit.value} onClick={() => void again()}><Icon name="rotate-ccw" size={14} /><span>{t.runs.replay}</span></button>
					<CopyButton text={() => `atoll runs ${id}`} label="atoll runs" /></footer>
			</>
		}}</View>
	</section></div></Shell>
}

export default function Runs({ id }: { id: string }) {
	return id ? <One id={id} /> : <List />
}
