// Every command by its name, and every box. Pages add their own commands while they are shown.
import { signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { Icon, type IconName } from '../icons'
import { places } from '../places'
import { go } from '../router'
import * as session from '../session'
import { newBox, shownBoxes, titleOf } from '../store'
import { t } from '../texts'
import { nextTheme } from '../theme'
import { Dialog, failed } from './basics'

export interface Command { name: string, icon: IconName, keys?: string, run: () => void }
export const paletteOpen = signal(false)
export const keysOpen = signal(false)
export const pageCommands = signal<Command[]>([])

const common = (): Command[] => [
	...(session.info.value?.box ? [] : places).map((p) => ({ name: p.command, icon: p.icon, keys: `g ${p.key}`, run: () => go(p.path) })),
	...(session.mayEdit.value && !session.info.value?.box ? [{ name: t.palette.newBox, icon: 'plus' as const, run: () => void newBox().then((b) => go(`/b/${b.id}`), failed) }] : []),
	{ name: t.theme.label, icon: 'sun-moon', run: nextTheme },
	{ name: t.palette.keys, icon: 'key-round', keys: '?', run: () => { keysOpen.value = true } },
	{ name: t.signIn.out, icon: 'log-out', run: session.signOut },
]

function List() {
	const words = useSignal(''), at = useSignal(0), list = useRef<HTMLUListElement>(null)
	const all = [...pageCommands.value, ...common(), ...shownBoxes.value.map((b) => ({ name: t.palette.openBox(titleOf(b)), icon: 'box' as const, keys: undefined, run: () => go(`/b/${b.id}`) }))]
	const parts = words.value.toLowerCase().split(/\s+/).filter(Boolean)
	const found = all.filter((c) => parts.every((p) => c.name.toLowerCase().includes(p))).slice(0, 50)
	const now = Math.min(at.value, found.length - 1)
	useEffect(() => list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' }), [now])
	const run = (c?: Command) => { paletteOpen.value = false; if (c) setTimeout(c.run) }
	return <div class="palette">
		<input type="text" role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant={found.length ? `cmd-${now}` : undefined} aria-label={t.palette.open}
			placeholder={t.palette.open} value={words.value} autofocus onInput={(e) => { words.value = e.currentTarget.value; at.value = 0 }}
			onKeyDown={(e) => {
				if (e.key === 'ArrowDown') at.value = (now + 1) % Math.max(1, found.length)
				else if (e.key === 'ArrowUp') at.value = (now - 1 + found.length) % Math.max(1, found.length)
				else if (e.key === 'Enter') run(found[now])
				else return
				e.preventDefault()
			}} />
		<ul role="listbox" id="palette-list" aria-label={t.palette.label} ref={list}>
			{found.map((c, i) => <li role="option" id={`cmd-${i}`} aria-selected={i === now} key={c.name} onClick={() => run(c)} onPointerMove={() => { at.value = i }}><Icon name={c.icon} /><span>{c.name}</span>{c.keys && <kbd>{c.keys}</kbd>}</li>)}
		</ul>
		{!found.length && <p class="none" role="status">{t.palette.none}</p>}
	</div>
}

export const keyTable: [string, string][] = [
	['Ctrl K, F1', t.palette.label], ['Ctrl Enter', t.quick.run], ['Ctrl .', t.quick.stop], ['Ctrl S', 'Save now'], ...places.map((p): [string, string] => [`g ${p.key}`, p.command]),
	['Ctrl P', 'Open a file (in a box)'], ['Ctrl ⇧ F', t.search.title], ['Ctrl B', 'Show or hide the files'], ['Ctrl J', 'Show or hide the panel'], ['Ctrl `', 'Terminal'], ['Alt W', 'Close the file'], ['Alt , and Alt .', 'Previous and next file'], ['F2, Delete', 'Rename, delete (in the file tree)'], ['Ctrl, Shift or Alt Enter', 'Run the cell of a notebook; and go to the next; and insert one'], ['Esc, then a b m y d d', 'Cell above, below, to Markdown, to code, delete (in a notebook)'], ['Esc Tab', 'Leave the editor'], ['?', t.keys.title],
]

export function Palette() {
	return <>
		{paletteOpen.value && <Dialog title={t.palette.label} onClose={() => { paletteOpen.value = false }}><List /></Dialog>}
		{keysOpen.value && <Dialog title={t.keys.title} onClose={() => { keysOpen.value = false }}>
			<table class="keys"><tbody>{keyTable.map(([k, what]) => <tr key={k}><th scope="row"><kbd>{k}</kbd></th><td>{what}</td></tr>)}</tbody></table></Dialog>}
	</>
}

let first = ''
export function onKey(e: KeyboardEvent) {
	const target = e.target as HTMLElement
	const typing = target.closest?.('input, textarea, select, [contenteditable=true], .term, dialog') != null
	if (((e.ctrlKey || e.metaKey) && !e.shiftKey && !e.altKey && e.key.toLowerCase() === 'k' && !target.closest?.('.term')) || e.key === 'F1') {
		e.preventDefault()
		paletteOpen.value = !paletteOpen.value
		return
	}
	if (typing || e.ctrlKey || e.metaKey || e.altKey) return
	if (first === 'g') {
		first = ''
		const to = places.find((p) => p.key === e.key)
		if (to) go(to.path)
	} else if (e.key === 'g') {
		first = 'g'
		setTimeout(() => { first = '' }, 1000)
	} else if (e.key === '?') keysOpen.value = true
}
