// What a box uses: history from the daemon (a sample every 10 s), then live samples once a second. One cursor for all graphs.
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { ApiError, api, box as boxPath, type Box } from '../api'
import { bytes, rate } from '../format'
import { ErrorState, Loading } from '../parts/basics'
import { Graph } from '../parts/Graph'
import { Samples } from '../samples'
import { connection, generation, socket } from '../socket'
import { t } from '../texts'

interface Sample { at: string, memory: number | null, cpu_us: number | null, pids: number | null, disk: number | null, bytes_in: number, bytes_out: number }

export default function Monitor({ b, shown }: { b: Box, shown: boolean }) {
	const series = useRef(new Samples()), version = useSignal(0), error = useSignal<ApiError | null>(null), ready = useSignal(false), table = useSignal(false)
	const load = async () => {
		try {
			const h = await api<{ items: Sample[] }>(`${boxPath(b.id)}/stats/history`)
			const s = new Samples()
			for (const x of h.items) s.add(Date.parse(x.at) / 1000, { ...x, extra: x.pids })
			series.current = s
			error.value = null
			ready.value = true
			version.value++
		} catch (e) { error.value = e as ApiError }
	}
	useEffect(() => { void load() }, [generation.value])
	useEffect(() => {
		if (!shown || b.state !== 'running') return
		const c = socket.channel({
			open: () => ({ kind: 'stats', box: b.id }),
			message: (m) => {
				if (m.op !== 'stats' || !ready.peek()) return
				series.current.add(Date.now() / 1000, { cpu_us: m.cpu_us, memory: m.mem, disk: null, bytes_in: m.bytes_in, bytes_out: m.bytes_out, extra: m.pids })
				version.value++
			},
		})
		return () => c.close()
	}, [shown, b.state])
	if (error.value) return <ErrorState title={t.monitor.error} error={error.value} retry={() => void load()} />
	if (!ready.value) return <Loading lines={4} />
	const s = series.current, v = version.value, rows = s.time.map((_, i) => i).slice(-60).reverse()
	return <div class="monitor scroll" tabIndex={0} role="group" aria-label={t.monitor.title}>
		<div class="row pad"><span class="dim">{connection.value === 'live' && b.state === 'running' ? t.monitor.live : t.monitor.notLive}</span><button class="small push" aria-pressed={table.value} onClick={() => { table.value = !table.value }}>{t.monitor.table}</button></div>
		{table.value ? <table class="samples"><caption class="hidden">{t.monitor.title}</caption><thead><tr><th scope="col">{t.monitor.time}</th><th scope="col">{t.boxes.cpu}</th><th scope="col">{t.boxes.memory}</th><th scope="col">{t.monitor.pids}</th><th scope="col">{t.monitor.received}</th><th scope="col">{t.monitor.sent}</th></tr></thead>
			<tbody>{rows.map((i) => <tr key={s.time[i]}><td>{new Date(s.time[i]! * 1000).toLocaleTimeString()}</td><td>{s.cpu[i] == null ? '–' : `${s.cpu[i]!.toFixed(0)} %`}</td><td>{bytes(s.memory[i])}</td><td>{s.extra[i] ?? '–'}</td><td>{rate(s.received[i])}</td><td>{rate(s.sent[i])}</td></tr>)}</tbody></table>
			: <div class="graphs">
				<Graph title={t.monitor.cpu(b.limits.cpu_milli / 1000)} time={s.time} values={s.cpu} version={v} unit={(n) => `${Math.round(n)} %`} most={10} />
				<Graph title={t.monitor.memory(bytes(b.limits.mem))} time={s.time} values={s.memory} version={v} binary unit={(n) => bytes(n)} most={1 << 20} />
				<Graph title={t.monitor.pids} time={s.time} values={s.extra} version={v} unit={(n) => String(Math.round(n))} most={4} />
				<Graph title={t.monitor.received} time={s.time} values={s.received} version={v} binary unit={rate} most={1 << 10} />
				<Graph title={t.monitor.sent} time={s.time} values={s.sent} version={v} binary unit={rate} most={1 << 10} />
			</div>}
	</div>
}
