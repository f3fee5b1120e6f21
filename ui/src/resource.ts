// Something that is read from the daemon: its value, that it is being read, or why it could not be.
import { signal } from '@preact/signals'
import { ApiError } from './api'

export class Resource<T> {
	readonly value = signal<T | null>(null)
	readonly error = signal<ApiError | null>(null)
	readonly loading = signal(false)
	private turn = 0
	private timer: ReturnType<typeof setTimeout> | undefined

	constructor(private read: () => Promise<T>) {}

	async load() {
		const turn = ++this.turn
		clearTimeout(this.timer)
		this.timer = undefined
		this.loading.value = true
		try {
			const v = await this.read()
			if (turn !== this.turn) return
			this.value.value = v
			this.error.value = null
		} catch (e) {
			if (turn === this.turn) this.error.value = e instanceof ApiError ? e : new ApiError(-1, 'failed', String(e))
		} finally {
			if (turn === this.turn) this.loading.value = false
		}
	}

	/** Soon, and once for many reasons. */
	soon(ms = 150) {
		this.timer ??= setTimeout(() => void this.load(), ms)
	}

	clear() {
		this.turn++
		this.value.value = null
		this.error.value = null
		this.loading.value = false
	}
}
