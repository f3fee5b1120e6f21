// What happened: the events of all boxes, and the audit log with the actions of every key. Newest first.
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { clock } from '../clock'
import { ago } from '../format'
import { Icon, type IconName } from '../icons'
import { Empty } from '../parts/basics'
import { PagedView, usePaged } from '../parts/paged'
import { Shell } from '../parts/Shell'
import { go, query } from '../router'
import { boxes, eventListeners, titleOf } from '../store'
import { t } from '../texts'

interface BoxEvent { seq: number, at: string, box: string, type: string, data: Record<string, unknown> }
interface Audit { seq: number, at: string, who: string, team: string, action: string, subject: string, result: string, detail: Record<string, unknown> }
const x = t.events
const icons: Record<string, IconName> = { 'box.created': 'plus', 'box.ended': 'square', 'box.paused': 'pause', 'box.resumed': 'play', 'box.stopped': 'square', 'box.woken': 'play', 'run.ended': 'terminal', 'port.opened': 'external-link', 'port.closed': 'x' }
const nameOf = (id: string) => { const b = (boxes.value.value ?? []).find((y) => y.id === id); return b ? titleOf(b) : id }
const detailOf = (d: Record<string, unknown>) => Object.entries(d ?? {}).filter(([, v]) => v !== null && v !== '').map(([k, v]) => `${k.replaceAll('_', ' ')} ${typeof v === 'object' ? JSON.stringify(v) : v}`).join(' · ')
const Time = ({ at }: { at: string }) => <td><time dateTime={at} title={new Date(at).toLocaleString()}>{ago(at, clock.value)}</time></td>

function Filter({ name, label, value }: { name: string, label: string, value: string }) {
	const set = (v: string) => { const q = new URLSearchParams(query.value); if (v) q.set(name, v); else q.delete(name); go(`/activity${q.size ? `?${q}` : ''}`, true) }
	return <input type="search" class="filter" aria-label={label} placeholder={label} defaultValue={value} onChange={(e) => set(e.currentTarget.value.trim())} onKeyDown={(e) => { if (e.key === 'Enter') set(e.currentTarget.value.trim()) }} />
}

function Boxes() {
	const box = query.value.get('box') ?? '', kind = query.value.get('kind') ?? ''
	const list = usePaged<BoxEvent>(`/v1/events?order=newest${box ? `&box=${encodeURIComponent(box)}` : ''}`, (e) => e.seq, 100)
	useEffect(() => {
		const onEvent = () => list.first.soon(300)
		eventListeners.add(onEvent)
		return () => { eventListeners.delete(onEvent) }
	}, [list.first])
	const setKind = (v: string) => { const q = new URLSearchParams(query.value); if (v) q.set('kind', v); else q.delete('kind'); go(`/activity${q.size ? `?${q}` : ''}`, true) }
	return <>
		<div class="row controls"><Filter name="box" label={x.box} value={box} /><select aria-label={x.kind} value={kind} onChange={(e) => setKind(e.currentTarget.value)}><option value="">{x.allKinds}</option>{Object.keys(x.types).map((k) => <option value={k} key={k}>{x.types[k]}</option>)}</select></div>
		<PagedView of={list} error={x.error} empty={<Empty text={box ? x.noneOfBox : x.empty} cli={x.cli} />}>{(all) => { const found = all.filter((e) => !kind || e.type === kind); return found.length ? <div class="scroll-x" tabIndex={0} role="group" aria-label={x.title}><table class="rows">
			<thead><tr><th scope="col">{x.when}</th><th scope="col">{x.what}</th><th scope="col">{t.nav.box}</th><th scope="col">{x.detail}</th></tr></thead>
			<tbody>{found.map((e) => <tr key={e.seq}><Time at={e.at} /><td><span class={`mark ${e.data?.cause === 'memory' ? 'bad' : ''}`}><Icon name={icons[e.type] ?? 'list'} size={14} /><span>{x.types[e.type] ?? e.type}</span></span></td><td><a href={`/b/${e.box}`}><code>{nameOf(e.box)}</code></a></td>
				<td class="wrap dim">{typeof e.data?.run === 'string' ? <a href={`/runs/${e.data.run}`}>{e.data.run}</a> : ''} {detailOf(Object.fromEntries(Object.entries(e.data ?? {}).filter(([k]) => k !== 'run')))}</td></tr>)}</tbody></table></div> : <Empty text={x.noneOfKind} /> }}</PagedView>
	</>
}

function AuditLog() {
	const q = query.value, of = (name: string) => q.get(name) ?? '', opened = useSignal<number | null>(null)
	const params = ['who', 'action', 'subject'].filter((n) => of(n)).map((n) => `${n}=${encodeURIComponent(of(n))}`).join('&')
	const list = usePaged<Audit>(`/v1/audit${params ? `?${params}` : ''}`, (e) => e.seq, 100)
	useEffect(() => {
		const onEvent = () => list.first.soon(1000)
		eventListeners.add(onEvent)
		return () => { eventListeners.delete(onEvent) }
	}, [list.first])
	if (list.first.error.value?.status === 403) return <Empty text={x.ownersOnly} />
	return <>
		<div class="row controls"><Filter name="who" label={x.who} value={of('who')} /><Filter name="action" label={x.action} value={of('action')} /><Filter name="subject" label={x.subject} value={of('subject')} /></div>
		<PagedView of={list} error={x.auditError} empty={<Empty text={params ? x.noneOfFilter : x.auditEmpty} cli="atoll audit" />}>{(all) => <div class="scroll-x" tabIndex={0} role="group" aria-label={x.audit}><table class="rows results">
			<thead><tr><th scope="col">{x.action}</th><th scope="col">{x.when}</th><th scope="col">{x.who}</th><th scope="col">{x.subject}</th><th scope="col">{x.result}</th></tr></thead>
			<tbody>{all.map((e) => { const open = opened.value === e.seq; return <><tr key={e.seq} class={open ? 'open' : ''}><td><button class="plain expand" aria-expanded={open} onClick={() => { opened.value = open ? null : e.seq }}><Icon name={open ? 'chevron-down' : 'chevron-right'} size={14} /><span>{e.action}</span></button></td><Time at={e.at} /><td><code>{e.who}</code></td><td><code>{e.subject}</code></td><td><span class={`mark ${['ok', 'found', 'done'].includes(e.result) ? '' : 'bad'}`}>{e.result}</span></td></tr>
				{open && <tr class="detail" key={`${e.seq}d`}><td colSpan={5}><pre class="text" tabIndex={0} role="group" aria-label={x.detail}>{JSON.stringify(e.detail, null, 2)}</pre><p class="dim">{new Date(e.at).toLocaleString()} · #{e.seq}</p></td></tr>}</> })}</tbody></table></div>}</PagedView>
	</>
}

export default function Events() {
	const audit = query.value.get('view') === 'audit'
	return <Shell title={audit ? x.audit : x.title}><div class="page">
		<nav class="tabs-of" aria-label={x.title}><a href="/activity" aria-current={audit ? undefined : 'page'}>{x.title}</a><a href="/activity?view=audit" aria-current={audit ? 'page' : undefined}>{x.audit}</a></nav>
		<section class="card list" aria-labelledby="page-title"><header><h1 id="page-title">{audit ? x.audit : x.title}</h1><span class="dim">{audit ? x.auditLead : x.lead}</span></header>{audit ? <AuditLog key="audit" /> : <Boxes key="events" />}</section>
	</div></Shell>
}
