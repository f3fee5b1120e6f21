// Search in the files of a box: hits arrive as they are found, grouped by file; another word cancels the search before it.
import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { ApiError, box as boxPath, lines } from '../api'
import { Icon } from '../icons'
import { ErrorState } from '../parts/basics'
import { t } from '../texts'
import { HOME, shortPath, shown } from './files'

interface Hit { path: string, line: number, text: string, at: number }
const WAIT_MS = 200, MOST = 1000

export function Search({ box, onOpen }: { box: string, onOpen: (path: string, line: number, column: number) => void }) {
	const words = useSignal(''), exact = useSignal(false), hits = useSignal<Hit[]>([]), state = useSignal<'' | 'busy' | 'done'>(''), cut = useSignal(false), error = useSignal<ApiError | null>(null)
	const field = useRef<HTMLInputElement>(null)
	useLayoutEffect(() => field.current?.focus(), [])
	useEffect(() => {
		hits.value = []
		error.value = null
		state.value = ''
		if (!words.value) return
		const abort = new AbortController()
		const timer = setTimeout(() => {
			state.value = 'busy'
			let found: Hit[] = [], frame = 0
			const show = () => { frame = 0; hits.value = found }
			lines(`${boxPath(box)}/files/search?${new URLSearchParams({ path: HOME, content: words.value, limit: String(MOST), ...(!exact.value && { ignore_case: 'true' }) })}`, { signal: abort.signal }, (h) => {
				if (h.type === 'hit') {
					found = [...found, { ...h, at: characters(h.text, h.at) }]
					frame ||= requestAnimationFrame(show)
				} else if (h.type === 'done') { cut.value = h.truncated; show(); state.value = 'done' }
			}).catch((e) => { if (!abort.signal.aborted) { error.value = e; state.value = '' } })
		}, WAIT_MS)
		return () => { clearTimeout(timer); abort.abort() }
	}, [words.value, exact.value])
	const byFile = new Map<string, Hit[]>()
	for (const h of hits.value) byFile.set(h.path, [...(byFile.get(h.path) ?? []), h])
	return <section class="tree search-files" aria-label={t.search.title}>
		<div class="search-field"><input type="search" ref={field} placeholder={t.search.title} aria-label={t.search.title} spellcheck={false} value={words.value} onInput={(e) => { words.value = e.currentTarget.value }} />
			<label class="check"><input type="checkbox" checked={exact.value} onChange={(e) => { exact.value = e.currentTarget.checked }} />{t.search.exact}</label></div>
		<p class="dim count-line" role="status">{state.value === 'busy' ? t.search.busy : state.value === 'done' ? t.search.found(hits.value.length, byFile.size, cut.value) : words.value ? '' : t.search.hint}</p>
		{error.value && <ErrorState title={t.search.error} error={error.value} />}
		<div class="hits" tabIndex={0} role="group" aria-label={t.search.results}>{[...byFile].map(([path, list]) => <div key={path}><h2 title={shortPath(shown(path))}><Icon name="file" size={14} /><bdi>{shortPath(shown(path))}</bdi><span class="count">{list.length}</span></h2>
			<ul>{list.map((h) => <li key={h.line}><button onClick={() => onOpen(h.path, h.line, h.at + 1)}><span class="dim">{h.line}</span><code>{around(h, words.value)}</code></button></li>)}</ul></div>)}</div>
	</section>
}

/** The daemon counts bytes. */
const characters = (text: string, bytes: number) => new TextDecoder().decode(new TextEncoder().encode(text).subarray(0, bytes)).length

/** The line without its indentation, the word marked. */
function around(h: Hit, word: string) {
	const from = Math.max(0, h.at - 30), before = h.text.slice(from, h.at).trimStart()
	return <>{from > 0 ? '…' : ''}{before}<mark>{h.text.slice(h.at, h.at + word.length)}</mark>{h.text.slice(h.at + word.length, h.at + word.length + 200)}</>
}
