// The time of the daemon, once a second, for "3 min ago"; paused while the page is hidden. Ages and ends are computed from times
// of the daemon, and the clock of this device may be wrong.
import { signal } from '@preact/signals'

const TOLERATED_MS = 5000 // the Date header has seconds, and answers take a moment
let off = 0 // what this device's clock lacks

export const now = () => Date.now() + off
export const clock = signal(now())
const tick = () => { if (!document.hidden) clock.value = now() }
setInterval(tick, 1000)

/** Compares with the Date header of an answer that has just arrived. */
export function compareClock(date: string | null) {
	const ms = date ? Date.parse(date) - Date.now() : NaN
	if (Number.isNaN(ms)) return
	const next = Math.abs(ms) > TOLERATED_MS ? ms : 0
	if (Math.abs(next - off) < TOLERATED_MS) return
	off = next
	tick()
}
