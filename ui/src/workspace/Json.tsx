// JSON as a tree: folded below the second level, long lists in steps.
import { useState } from 'preact/hooks'
import { Icon } from '../icons'
import { t } from '../texts'
import { Written } from './parse'

const STEP = 200

function Value({ name, value, level }: { name?: string, value: unknown, level: number }) {
	const [open, setOpen] = useState(level < 2), [most, setMost] = useState(STEP)
	const label = name !== undefined && <><span class="j-key">{name}</span>: </>
	if (value instanceof Written) return <div class="j-row leaf">{label}<span class="j-number">{value.source}</span></div>
	if (value === null || typeof value !== 'object')
		return <div class="j-row leaf">{label}<span class={`j-${value === null ? 'null' : typeof value}`}>{typeof value === 'string' ? JSON.stringify(value.length > 5000 ? value.slice(0, 5000) + '…' : value) : String(value)}</span></div>
	const list = Array.isArray(value), all = list ? (value as unknown[]).map((v, i) => [String(i), v] as const) : Object.entries(value as object)
	return <div>
		<div class="j-row"><button class="j-fold" aria-expanded={open} aria-label={name ?? t.view.root} onClick={() => setOpen(!open)}><Icon name={open ? 'chevron-down' : 'chevron-right'} size={13} /></button>{label}<span class="dim">{list ? t.view.items(all.length) : t.view.keys(all.length)}</span></div>
		{open && <div class="j-in">{all.slice(0, most).map(([k, v]) => <Value key={k} name={k} value={v} level={level + 1} />)}
			{all.length > most && <button class="place" onClick={() => setMost(most + STEP * 5)}>{t.view.more(all.length - most)}</button>}</div>}
	</div>
}

export function Json({ value }: { value: unknown }) { return <div class="json"><Value value={value} level={0} /></div> }
