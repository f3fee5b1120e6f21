// Runs as a list: what ran, how it ended, when.
import type { RunRecord } from '../api'
import { ago, duration } from '../format'
import { Icon } from '../icons'
import { commandOf, sentence, took, verdict } from '../record'

export const verdictIcon = (r: RunRecord) => ({ ok: 'circle-check', bad: 'circle-x', running: 'play', stopped: 'square' } as const)[verdict(r)]

export function RunRows({ list, now }: { list: RunRecord[], now: number }) {
	return <ul class="runs">{list.map((r) => <li key={r.id}><a href={`/runs/${r.id}`}>
		<span class={`v ${verdict(r)}`}><Icon name={verdictIcon(r)} /></span>
		<span class="what"><code>{commandOf(r)}</code><span class="dim">{sentence(r)}</span></span>
		<span class="when"><span>{ago(r.started, now)}</span><span class="dim">{r.language ?? ''}{r.language && r.ended ? ' · ' : ''}{r.ended ? duration(took(r)) : ''}</span></span>
	</a></li>)}</ul>
}
