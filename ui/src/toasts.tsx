// Short notices at the edge of the page; read aloud, and gone by themselves.
import { signal } from '@preact/signals'
import { Icon } from './icons'
import { t } from './texts'

export interface Toast { text: string, kind?: 'ok' | 'bad', ms?: number, action?: { label: string, run: () => void }, gone?: () => void }
const all = signal<(Toast & { id: number })[]>([])
let next = 1

export function toast(x: Toast) {
	const id = next++
	all.value = [...all.value.slice(-3), { ...x, id }]
	setTimeout(() => { if (dismiss(id)) x.gone?.() }, x.ms ?? 5000)
	return id
}

function dismiss(id: number): boolean {
	const there = all.value.some((x) => x.id === id)
	all.value = all.value.filter((x) => x.id !== id)
	return there
}

export function Toasts() {
	return <div class="toasts" role="region" aria-label="Notices">
		<div aria-live="polite">
			{all.value.map((x) => <div class={`toast ${x.kind ?? ''}`} key={x.id} role={x.kind === 'bad' ? 'alert' : undefined}>
				<span>{x.text}</span>
				{x.action && <button class="small" onClick={() => { dismiss(x.id); x.action!.run() }}>{x.action.label}</button>}
				<button class="plain" aria-label={t.close} onClick={() => { if (dismiss(x.id)) x.gone?.() }}><Icon name="x" size={14} /></button>
			</div>)}
		</div>
	</div>
}
