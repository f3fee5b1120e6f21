// Servers in a box: sockets that listen, as the kernel lists them in /proc/net. The box's files are read; nothing is started in it.
import { signal } from '@preact/signals'
import { api, box as boxPath, type Page } from '../api'
import type { Files } from './files'

export interface Port { port: number, loopback: boolean, url: string | null, open: boolean, listening: boolean }
const POLL_MS = 2500, LISTEN = '0A'

/** [port, only on the loopback interface] of each line. */
export function listening(text: string): [number, boolean][] {
	const out: [number, boolean][] = []
	for (const line of text.split('\n').slice(1)) {
		const f = line.trim().split(/\s+/)
		if (f[3] !== LISTEN || !f[1]) continue
		const [address, port] = f[1].split(':') as [string, string]
		out.push([parseInt(port, 16), address === '0100007F' || address === '00000000000000000000000001000000'])
	}
	return out
}

export class Ports {
	readonly list = signal<Port[] | null>(null)
	readonly failed = signal<Error | null>(null)
	private timer: ReturnType<typeof setTimeout> | undefined
	private before: Set<number> | null = null
	private ended = false
	/** wanted: whether the list is looked at, or programs run that may open ports. */
	constructor(private files: Files, private wanted: () => boolean, private onNew: (port: number) => void) {}

	start() { this.ended = false; this.before = null; void this.turn() }
	stop() { this.ended = true; clearTimeout(this.timer) }

	private async turn() {
		clearTimeout(this.timer)
		if (this.wanted() && !document.hidden) await this.load()
		if (!this.ended) this.timer = setTimeout(() => void this.turn(), POLL_MS)
	}

	async load() {
		try {
			const [four, six, published] = await Promise.all([this.read('/proc/net/tcp'), this.read('/proc/net/tcp6'), api<Page<{ port: number, url: string | null }>>(`${boxPath(this.files.box)}/ports`)])
			const all = new Map<number, Port>()
			for (const [port, loopback] of [...listening(four), ...listening(six)]) all.set(port, { port, loopback: loopback && (all.get(port)?.loopback ?? true), url: null, open: false, listening: true })
			for (const p of published.items) all.set(p.port, { ...(all.get(p.port) ?? { port: p.port, loopback: false, listening: false }), url: p.url, open: true })
			const now = new Set([...all.values()].filter((p) => p.listening).map((p) => p.port))
			if (this.before) for (const p of now) if (!this.before.has(p)) this.onNew(p)
			this.before = now
			this.failed.value = null
			this.list.value = [...all.values()].sort((a, b) => a.port - b.port)
		} catch (e) { this.failed.value = e as Error }
	}
	private async read(path: string) { return new TextDecoder().decode((await this.files.read(path)).bytes) }
}
