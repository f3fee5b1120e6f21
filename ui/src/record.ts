// The record of a run as one sentence, and the facts that go with it.
import type { RunRecord } from './api'
import { bytes, duration } from './format'
import { t } from './texts'

export type Verdict = 'ok' | 'bad' | 'running' | 'stopped'

export function took(r: RunRecord): number {
	if (r.started && r.ended) return Math.max(0, Date.parse(r.ended) - Date.parse(r.started))
	return r.timings?.run_us ? r.timings.run_us / 1000 : 0
}

export function verdict(r: RunRecord): Verdict {
	if (r.state === 'running' || !r.cause) return 'running'
	if (r.cause === 'exit') return r.exit_code === 0 ? 'ok' : 'bad'
	return r.cause === 'operator' ? 'stopped' : 'bad'
}

export function sentence(r: RunRecord): string {
	const s = t.record, time = duration(took(r)), l = r.limits
	if (verdict(r) === 'running') return t.runs.running
	if (r.step === 'compile' && r.cause === 'exit' && r.exit_code !== 0)
		return s.compile((r.errors ?? []).filter((e) => e.severity.includes('error')).length)
	switch (r.cause) {
	case 'exit': return r.exit_code === 0 ? s.ok(time) : s.exit(r.exit_code ?? r.status ?? 1, time)
	case 'signal': return s.signal(typeof r.signal === 'number' ? `signal ${r.signal}` : r.signal ?? 'a signal', time)
	case 'memory': return s.memory(time, bytes(l?.mem))
	case 'processes': return s.processes(l?.pids ?? 0, time)
	case 'disk': return s.disk(time, bytes(l?.disk))
	case 'cpu': return s.cpu(time)
	case 'wall': return s.wall(l?.wall_ms ? duration(l.wall_ms) : time)
	case 'lifetime': return s.lifetime
	case 'idle': return s.idle
	case 'policy': return s.policy(time)
	case 'operator': return s.operator(time)
	case 'host': return s.host(time)
	default: return r.summary ?? r.cause ?? ''
	}
}

/** What went wrong, as the program said it. */
export function reason(r: RunRecord): { text: string, file: string | null, line: number | null } | null {
	const first = r.errors?.find((e) => e.severity.includes('error'))
	if (r.error?.message || r.error?.type)
		return { text: [r.error.type, r.error.message].filter(Boolean).join(': '), file: r.error.file, line: r.error.line }
	return first ? { text: first.message, file: first.file, line: first.line } : null
}

export function facts(r: RunRecord): string[] {
	const out = []
	if (r.cpu_s != null) out.push(t.record.cpuTime(duration(r.cpu_s * 1000)))
	if (r.mem_peak != null) out.push(t.record.peak(bytes(r.mem_peak)))
	if (r.processes != null) out.push(t.record.procs(r.processes))
	return out
}

/** "python main.py" without the folders of the box. */
export const commandOf = (r: RunRecord) => r.command.map((w, i) => i === 0 ? w.replace(/^\/usr\/(local\/)?bin\//, '') : w.replace(/^\/home\/user\//, '')).join(' ')
