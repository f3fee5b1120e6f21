// Servers in a box: the sockets that listen, as the daemon lists them, and the ports that are open as previews.
import { signal } from '@preact/signals'
import { api, box as boxPath, type Page } from '../api'

export interface Port { port: number, address: string | null, process: string | null, link: string | null, open: boolean, public: boolean, listening: boolean | null }
const POLL_MS = 2500

export const isLoopback = (address: string | null) => address !== null && (address === '::1' || address.startsWith('127.'))

export class Ports {
	readonly list = signal<Port[] | null>(null)
	readonly failed = signal<Error | null>(null)
	private timer: ReturnType<typeof setTimeout> | undefined
	private before: Set<number> | null = null
	private ended = false
	/** wanted: whether the list is looked at, or programs run that may open ports. */
	constructor(private box: string, private wanted: () => boolean, private onNew: (port: number) => void) {}

	start() { this.ended = false; this.before = null; void this.turn() }
	stop() { this.ended = true; clearTimeout(this.timer) }

	private async turn() {
		clearTimeout(this.timer)
		if (this.wanted() && !document.hidden) await this.load()
		if (!this.ended) this.timer = setTimeout(() => void this.turn(), POLL_MS)
	}

	async load() {
		try {
			const all = (await api<Page<Port>>(`${boxPath(this.box)}/ports`)).items
			const now = new Set(all.filter((p) => p.listening).map((p) => p.port))
			if (this.before) for (const p of now) if (!this.before.has(p)) this.onNew(p)
			this.before = now
			this.failed.value = null
			this.list.value = all
		} catch (e) { this.failed.value = e as Error }
	}
}
