// Sharing a box: links that open it for other people, and the list of people in its workspace.
import { useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { api, box as boxPath, request, type Box, type Page } from '../api'
import { clock } from '../clock'
import { duration } from '../format'
import { Icon } from '../icons'
import { CopyButton, Dialog, Empty, View, failed } from '../parts/basics'
import { Resource } from '../resource'
import * as session from '../session'
import { titleOf } from '../store'
import { t } from '../texts'
import { ownName, type People } from './people'
import { shown } from './files'

interface Share { id: string, role: string, created: string, used: string | null, expires: string, url?: string | null, key?: string }
const HOUR_MS = 3600000, LIFETIMES = [HOUR_MS, 24 * HOUR_MS, 7 * 24 * HOUR_MS]
const x = t.share

function Links({ b }: { b: Box }) {
	const list = useMemo(() => new Resource(async () => (await api<Page<Share>>(`${boxPath(b.id)}/shares`)).items), [b.id])
	const role = useSignal('viewer'), ms = useSignal(24 * HOUR_MS), busy = useSignal(false), made = useSignal<Share | null>(null)
	useEffect(() => void list.load(), [list])
	const make = async () => {
		busy.value = true
		try {
			made.value = await api<Share>(`${boxPath(b.id)}/shares`, { body: { role: role.value, expires_ms: ms.value } })
			await list.load()
		} catch (e) { failed(e) }
		busy.value = false
	}
	const revoke = async (s: Share) => {
		try {
			await request(`${boxPath(b.id)}/shares/${s.id}`, { method: 'DELETE' })
			if (made.value?.id === s.id) made.value = null
			await list.load()
		} catch (e) { failed(e) }
	}
	return <section aria-labelledby="links-title">
		<h3 id="links-title">{x.links}</h3>
		<form class="fields" aria-label={x.newLink} onSubmit={(e) => { e.preventDefault(); if (!busy.value) void make() }}>
			<label>{x.role}<select value={role.value} onChange={(e) => { role.value = e.currentTarget.value }}><option value="viewer">{x.mayView}</option><option value="editor">{x.mayEdit}</option></select></label>
			<label>{x.lifetime}<select value={ms.value} onChange={(e) => { ms.value = Number(e.currentTarget.value) }}>{LIFETIMES.map((n) => <option value={n} key={n}>{x.lifetimes[n / HOUR_MS]}</option>)}</select></label>
			<button class="primary" type="submit" disabled={busy.value}><Icon name="plus" size={14} /><span>{x.create}</span></button>
		</form>
		<div aria-live="polite">{made.value && <div class="new-link"><p>{x.once}</p><div class="cli"><code>{made.value.url ?? made.value.key}</code><CopyButton small text={() => made.value!.url ?? made.value!.key!} label={x.copyLink} /></div></div>}</div>
		<View of={list} title={x.error}>{(items) => items.length ? <ul class="links">{items.map((s) => <li key={s.id}><Icon name={s.role === 'viewer' ? 'eye' : 'pencil'} size={15} /><span class="grow">{s.role === 'viewer' ? x.mayView : x.mayEdit}<span class="dim"> {t.boxes.endsIn(duration(Math.max(0, Date.parse(s.expires) - clock.value)))}{s.used ? '' : `, ${x.unused}`}</span></span>
			<button class="small" onClick={() => void revoke(s)}>{x.revoke}</button></li>)}</ul> : <Empty text={x.none} />}</View>
	</section>
}

export function ShareDialog({ b, people, onClose }: { b: Box, people: People, onClose: () => void }) {
	const name = useSignal(ownName.value), me = session.info.value
	return <Dialog title={x.title(titleOf(b))} onClose={onClose}><div class="share">
		{me?.role === 'owner' && <Links b={b} />}
		<section aria-labelledby="people-title">
			<h3 id="people-title">{x.people}</h3>
			<label class="field">{x.name}<input type="text" maxLength={40} value={name.value} placeholder={x.guest(people.me.value)} onInput={(e) => { name.value = e.currentTarget.value; people.setName(name.value) }} /></label>
			<ul class="links people">
				<li><span class="face" style={{ background: 'var(--bg4)', color: 'var(--fg)' }} aria-hidden="true">{initials(ownName.value || x.guest(people.me.value))}</span><span class="grow">{x.you} <span class="dim">{x.roles[me?.role ?? ''] ?? ''}</span></span></li>
				{[...people.others.value.values()].map((p) => <li key={p.peer}><span class="face" style={{ background: p.colour }} aria-hidden="true">{initials(p.name)}</span><span class="grow"><bdi>{shown(p.name)}</bdi> <span class="dim">{p.role}{p.file && `, ${x.at(shown(p.file))}`}</span></span></li>)}
			</ul>
		</section>
	</div></Dialog>
}

const initials = (name: string) => [...name.trim()].slice(0, 1).join('').toUpperCase()

/** Beside the Share button: the others in this workspace. */
export function Faces({ people }: { people: People }) {
	const all = [...people.others.value.values()]
	return <span class="faces" role="status" aria-label={x.others(all.length)}>{all.slice(0, 4).map((p) => <span class="face" key={p.peer} style={{ background: p.colour }} title={shown(p.name)} aria-hidden="true">{initials(p.name)}</span>)}{all.length > 4 && <span class="dim" aria-hidden="true">+{all.length - 4}</span>}</span>
}
