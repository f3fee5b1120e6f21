// Samples of what the machine or a box uses, as columns for graphs.

export type Column = (number | null)[]

/** What the daemon counts. Totals (CPU time, bytes of the network) become rates between two samples. */
export interface Counted { cpu_us: number | null, memory: number | null, disk: number | null, bytes_in: number | null, bytes_out: number | null, extra: number | null }

const MOST = 9000
const GAP_S = 60 // no rate across a longer pause

/** Columns in the order of time; CPU as percent of one processor, network in bytes per second. */
export class Samples {
	time: number[] = []
	cpu: Column = []
	memory: Column = []
	disk: Column = []
	received: Column = []
	sent: Column = []
	extra: Column = []
	private before: { at: number, of: Counted } | null = null

	private rate(at: number, now: number | null, total: 'cpu_us' | 'bytes_in' | 'bytes_out'): number | null {
		const b = this.before, then = b?.of[total] ?? null
		return b && now !== null && then !== null && now >= then && at - b.at < GAP_S ? (now - then) / (at - b.at) : null
	}

	add(at: number, now: Counted) {
		if (this.time.length && at < this.time[this.time.length - 1]! + 0.5) return
		const cpu = this.rate(at, now.cpu_us, 'cpu_us')
		this.cpu.push(cpu === null ? null : cpu / 10000)
		this.received.push(this.rate(at, now.bytes_in, 'bytes_in'))
		this.sent.push(this.rate(at, now.bytes_out, 'bytes_out'))
		this.memory.push(now.memory)
		this.disk.push(now.disk)
		this.extra.push(now.extra)
		this.time.push(at)
		this.before = { at, of: now }
		if (this.time.length > MOST) for (const c of [this.time, this.cpu, this.memory, this.disk, this.received, this.sent, this.extra]) c.shift()
	}
}
