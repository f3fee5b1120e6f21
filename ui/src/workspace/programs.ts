// Programs of a box as this tab sees them: terminals and runs. They live in the box: a reload finds them by their tags.
import { signal } from '@preact/signals'
import { ApiError, api, box as boxPath, type Page, type RunRecord } from '../api'
import { socket, type Channel } from '../socket'

export interface Exec { id: string, state: string, kind: string, tag: string, command: string[], started: string, pty: boolean }
/** old: the program wrote it before this page was there. */
export type Sink = (stream: 0 | 1, data: Uint8Array, old: boolean) => Promise<void> | void
const WINDOW = 256 << 10, STEP = 64 << 10

/** The streams of one program from a byte on, whatever happens to the connection. */
export class Stream {
	readonly record = signal<RunRecord | null>(null)
	readonly over = signal(false)
	readonly failure = signal<ApiError | null>(null)
	readonly dropped = signal(0)
	private offset: [number, number] = [0, 0]
	private eaten: [number, number] = [0, 0]
	private told: [number, number] = [WINDOW, WINDOW]
	private history: [number, number]
	private channel: Channel | null = null
	sink: Sink | null = null

	/** found: it was started before this page was loaded. */
	constructor(readonly box: string, readonly exec: string, private kind: 'exec' | 'pty', found = false) { this.history = found ? [Infinity, Infinity] : [0, 0] }

	/** What comes goes to the sink; the program is slowed down to the speed of the sink. */
	begin(sink: Sink) {
		this.sink = sink
		this.channel = socket.channel({
			open: () => {
				this.told = [this.eaten[0] + WINDOW, this.eaten[1] + WINDOW]
				return { kind: this.kind, box: this.box, exec: this.exec, stdout: this.offset[0], stderr: this.offset[1], stdout_credit: this.told[0], stderr_credit: this.told[1] }
			},
			message: (m) => {
				const s = m.stream === 'stderr' ? 1 : 0
				if (m.op === 'reading') this.history[s] = Math.min(this.history[s], m.tip) // of the first time: later losses of the connection are no history
				if (m.op === 'reading' && m.dropped > 0) {
					this.dropped.value += m.dropped
					this.offset[s] = Math.max(this.offset[s], m.from)
					this.eaten[s] = Math.max(this.eaten[s], m.from)
					this.credit(s)
				} else if (m.op === 'exit') this.record.value = m.record
			},
			bytes: (stream, offset, data) => {
				const s = stream as 0 | 1
				if (offset + data.length <= this.offset[s]) return // seen before the connection was lost
				const fresh = data.subarray(Math.max(0, this.offset[s] - offset))
				this.offset[s] = offset + data.length
				const done = () => { this.eaten[s] += fresh.length; if (this.told[s] - this.eaten[s] < WINDOW - STEP) this.credit(s) }
				const from = this.offset[s] - fresh.length, old = Math.max(0, Math.min(fresh.length, this.history[s] - from))
				const parts = [old > 0 ? this.sink!(s, fresh.subarray(0, old), true) : undefined, old < fresh.length ? this.sink!(s, fresh.subarray(old), false) : undefined].filter((p) => p)
				if (parts.length) void Promise.all(parts).then(done)
				else done()
			},
			over: (e) => { this.failure.value = e; this.over.value = true },
		})
	}

	private credit(s: 0 | 1) {
		this.told[s] = this.eaten[s] + WINDOW
		this.channel?.send('credit', { [s ? 'stderr' : 'stdout']: this.told[s] })
	}

	write(data: Uint8Array) { return this.channel?.write(data) ?? false }
	resize(rows: number, cols: number) { this.channel?.send('resize', { rows, cols }) }
	close() { this.channel?.close() }
}

const unique = () => Math.random().toString(36).slice(2, 8)
export const TERMINAL = 'ui-term-', RUN = 'ui-run-'

export async function startTerminal(box: string, rows: number, cols: number): Promise<Exec> {
	return api<Exec>(`${boxPath(box)}/execs`, { body: { command: ['/bin/bash', '-l'], pty: { rows, cols }, background: true, tag: TERMINAL + unique(), env: { TERM: 'xterm-256color', COLORTERM: 'truecolor' } } })
}

/** A program that began, or the record of a compiler that found errors. */
export async function startRun(box: string, body: Record<string, unknown>): Promise<Exec | (RunRecord & { stdout?: string, stderr?: string })> {
	return api(`${boxPath(box)}/execs`, { body: { ...body, background: true, tag: RUN + unique() } })
}

export const listExecs = async (box: string) => (await api<Page<Exec>>(`${boxPath(box)}/execs?limit=100`)).items
export const killExec = (box: string, exec: string) => api(`${boxPath(box)}/execs/${exec}`, { method: 'DELETE' })
