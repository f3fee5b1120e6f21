// Figures for people.
import { t } from './texts'

export function bytes(n: number | null | undefined): string {
	if (n == null) return '–'
	const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
	let i = 0
	while (n >= 1024 && i < units.length - 1) {
		n /= 1024
		i++
	}
	return `${i === 0 || n >= 100 ? Math.round(n) : n >= 10 ? n.toFixed(n % 1 < 0.05 ? 0 : 1) : n.toFixed(n % 1 < 0.05 ? 0 : 1)} ${units[i]}`
}

/** Bytes per second. */
export const rate = (n: number | null | undefined) => n == null ? '–' : `${bytes(n)}/s`

/** A time that passed: "48 ms", "3.1 s", "8 min", "1 h 52 min", "3 d". */
export function duration(ms: number): string {
	if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`
	const s = ms / 1000
	if (s < 60) return `${s < 10 && s % 1 ? s.toFixed(1) : Math.round(s)} s`
	const min = Math.floor(s / 60)
	if (min < 60) return `${min} min`
	const h = Math.floor(min / 60)
	if (h < 48) return min % 60 ? `${h} h ${min % 60} min` : `${h} h`
	return `${Math.floor(h / 24)} d`
}


export function ago(when: string, now: number): string {
	const ms = now - Date.parse(when)
	return ms < 5000 ? t.time.now : t.time.ago(duration(ms < 60000 ? Math.round(ms / 1000) * 1000 : ms))
}
