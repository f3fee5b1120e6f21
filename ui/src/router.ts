// The address is the state: every view can be linked to.
import { signal } from '@preact/signals'

export const path = signal(location.pathname)
export const query = signal(new URLSearchParams(location.search))

function read() {
	path.value = location.pathname
	query.value = new URLSearchParams(location.search)
}
addEventListener('popstate', read)

export function go(to: string, replace = false) {
	if (to === location.pathname + location.search) return
	history[replace ? 'replaceState' : 'pushState'](null, '', to)
	read()
	if (!replace) scrollTo(0, 0)
}

/** Links stay links: middle click, copy and new tab work as everywhere. */
export function onLink(e: MouseEvent) {
	const a = (e.target as Element).closest?.('a[href]') as HTMLAnchorElement | null
	if (!a || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return
	if (a.target || a.hasAttribute('download') || a.origin !== location.origin || a.getAttribute('href')!.startsWith('#')) return
	e.preventDefault()
	go(a.pathname + a.search)
}
