// Lists that the daemon returns in pages: the first page stays current, older pages are added on request.
import { useSignal, type Signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useMemo } from 'preact/hooks'
import { api, type Page } from '../api'
import { Resource } from '../resource'
import { connection, generation } from '../socket'
import { t } from '../texts'
import { View, failed } from './basics'

/** Calls f every so many ms while the page is visible and connected. */
export function useEvery(ms: number, f: () => void, on = true) {
	useEffect(() => {
		if (!on) return
		const timer = setInterval(() => { if (!document.hidden && connection.peek() === 'live') f() }, ms)
		return () => clearInterval(timer)
	}, [ms, on, f])
}

export interface Paged<T> { first: Resource<T[]>, older: Signal<T[]>, next: Signal<string | null | undefined>, busy: Signal<boolean>, more: () => Promise<void>, all: () => T[] }

/** path: with its query, to which limit and after are added. A new path starts a new list. */
export function usePaged<T>(path: string, idOf: (x: T) => string | number, limit = 50): Paged<T> {
	const older = useSignal<T[]>([]), next = useSignal<string | null | undefined>(undefined), busy = useSignal(false)
	const ask = (after?: string | null) => `${path}${path.includes('?') ? '&' : '?'}limit=${limit}${after ? `&after=${encodeURIComponent(after)}` : ''}`
	const first = useMemo(() => {
		older.value = []
		next.value = undefined
		return new Resource(async () => {
			const p = await api<Page<T>>(ask())
			if (next.peek() === undefined) next.value = p.next
			return p.items
		})
	}, [path])
	useEffect(() => void first.load(), [first, generation.value])
	const more = async () => {
		busy.value = true
		try {
			const p = await api<Page<T>>(ask(next.value))
			older.value = [...older.value, ...p.items]
			next.value = p.next
		} catch (e) { failed(e) }
		busy.value = false
	}
	const all = () => {
		const now = first.value.value ?? [], seen = new Set(now.map(idOf))
		return [...now, ...older.value.filter((x) => !seen.has(idOf(x)))]
	}
	return { first, older, next, busy, more, all }
}

/** The states of such a list, and a button for older items below it. */
export function PagedView<T>({ of, error, empty, children }: { of: Paged<T>, error: string, empty: ComponentChildren, children: (all: T[]) => ComponentChildren }) {
	return <View of={of.first} title={error} slow={t.slow}>{() => {
		const all = of.all()
		return all.length ? <>{children(all)}{of.next.value && <p class="pad"><button class="small" disabled={of.busy.value} onClick={() => void of.more()}>{t.loadMore}</button></p>}</> : empty
	}}</View>
}
