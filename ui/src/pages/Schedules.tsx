// Schedules: when they run, in words and as next times, what became of the last ticks; run now, pause, delete.
import { useSignal } from '@preact/signals'
import { useCallback, useEffect, useMemo } from 'preact/hooks'
import { api, request } from '../api'
import { clock } from '../clock'
import { ago, duration } from '../format'
import { Icon, type IconName } from '../icons'
import { CopyButton, Empty, View, failed } from '../parts/basics'
import { PagedView, useEvery, usePaged } from '../parts/paged'
import { Shell } from '../parts/Shell'
import { Resource } from '../resource'
import { go } from '../router'
import * as session from '../session'
import { generation } from '../socket'
import { t } from '../texts'
import { toast } from '../toasts'

interface Time { at: string, local: string }
interface Tick { at: string, state: string, manual: boolean, attempt: number, kind: string, started?: string, late?: boolean, late_ms?: number, ended?: string, run?: string, count?: number, detail?: string }
interface Schedule { id: string, name: string, cron: string, tz: string, words: string, state: 'active' | 'paused' | 'ended', reason: string, kind: string, who: string, next: Time[], last: Tick[], warnings: string[], overlap: string, catch_up: string, retries: number, run?: { command?: string | string[], entry?: string, language?: string } }
interface Preview { words: string, next: Time[] }

const x = t.schedules
const toneOf = (s: string) => s === 'succeeded' ? 'ok' : s === 'failed' ? 'bad' : ['waiting', 'starting', 'running'].includes(s) ? 'running' : 'stopped'
const icons: Record<string, IconName> = { ok: 'circle-check', bad: 'circle-x', running: 'play', stopped: 'square' }
const timeText = (n: Time) => n.local.replace('T', ' ').replace(/:00([+-])/, ' $1')
const address = (s: { name: string }) => `/v1/schedules/${encodeURIComponent(s.name)}`
const links: Record<string, string> = { run: '/runs/', batch: '/batches/', pipeline: '/pipelines/' }

// ---- a new one ----

/** The expression in words and its next times, or what is wrong with it, while it is typed. */
function usePreview(cron: string, tz: string) {
	const found = useSignal<Preview | null>(null), wrong = useSignal('')
	useEffect(() => {
		let current = true
		const timer = setTimeout(() => {
			if (!cron.trim()) { found.value = null; wrong.value = ''; return }
			api<Preview>(`/v1/schedules/next?cron=${encodeURIComponent(cron)}&tz=${encodeURIComponent(tz || 'UTC')}`).then(
				(p) => { if (current) { found.value = p; wrong.value = '' } },
				(e) => { if (current) { found.value = null; wrong.value = (e as Error).message } })
		}, 250)
		return () => { current = false; clearTimeout(timer) }
	}, [cron, tz])
	return { found: found.value, wrong: wrong.value }
}

const Times = ({ next }: { next: Time[] }) => <ol class="times" aria-label={x.next}>{next.map((n) => <li key={n.at}><time dateTime={n.at}>{timeText(n)}</time></li>)}</ol>

function New({ onNew }: { onNew: () => void }) {
	const name = useSignal(''), cron = useSignal('0 6 * * 1-5'), tz = useSignal(Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC'), command = useSignal(''), busy = useSignal(false)
	const { found, wrong } = usePreview(cron.value, tz.value), off = !session.mayEdit.value
	const create = async () => {
		if (busy.value) return
		busy.value = true
		try {
			const made = await api<Schedule>('/v1/schedules', { method: 'POST', body: { name: name.value.trim(), cron: cron.value, tz: tz.value || 'UTC', run: { command: command.value } } })
			for (const w of made.warnings) toast({ text: w, ms: 8000 })
			name.value = command.value = ''
			onNew()
		} catch (e) { failed(e) }
		busy.value = false
	}
	return <form class="card ask" aria-labelledby="new-title" onSubmit={(e) => { e.preventDefault(); void create() }}>
		<header><h2 id="new-title">{x.new}</h2></header>
		<div class="body">
			<p class="dim">{x.lead}</p>
			<div class="row">
				<label class="field"><span>{x.name}</span><input id="name" value={name.value} disabled={off} onInput={(e) => { name.value = e.currentTarget.value }} /></label>
				<label class="field"><span>{x.cron}</span><input id="cron" class="mono" spellcheck={false} value={cron.value} disabled={off} aria-describedby="echo" onInput={(e) => { cron.value = e.currentTarget.value }} /></label>
				<label class="field"><span>{x.tz}</span><input id="tz" spellcheck={false} value={tz.value} disabled={off} onInput={(e) => { tz.value = e.currentTarget.value }} /></label>
			</div>
			<div id="echo" role="status">{wrong ? <p class="bad-text">{wrong}</p> : found ? <><p><strong>{found.words}</strong></p><Times next={found.next} /></> : null}</div>
			<label class="field"><span>{x.command}</span><input id="command" class="mono" spellcheck={false} value={command.value} disabled={off} onInput={(e) => { command.value = e.currentTarget.value }} /></label>
			<div class="row"><button class="primary" type="submit" disabled={off || busy.value || !name.value.trim() || !command.value.trim() || !found}><Icon name="plus" size={14} /><span>{x.create}</span></button>
				{session.info.value && off && <span class="dim">{t.quick.readOnly}</span>}</div>
		</div>
	</form>
}

// ---- all ----

function Actions({ s, again }: { s: Schedule, again: () => void }) {
	const busy = useSignal(false)
	const send = async (what: string, text: string) => {
		busy.value = true
		try {
			await request(`${address(s)}/${what}`, { method: 'POST' })
			toast({ text })
		} catch (e) { failed(e) }
		busy.value = false
		again()
	}
	const off = busy.value || !session.mayEdit.value
	return <span class="row">
		<button class="small" disabled={off} aria-label={`${x.runNow}: ${s.name}`} onClick={() => void send('run', x.started(s.name))}><Icon name="play" size={14} /><span>{x.runNow}</span></button>
		{s.state === 'active' ? <button class="small" disabled={off} aria-label={`${x.pause}: ${s.name}`} onClick={() => void send('pause', x.isPaused(s.name))}><Icon name="pause" size={14} /><span>{x.pause}</span></button> : null}
		{s.state === 'paused' ? <button class="small" disabled={off} aria-label={`${x.resume}: ${s.name}`} onClick={() => void send('resume', x.isResumed(s.name))}><Icon name="fast-forward" size={14} /><span>{x.resume}</span></button> : null}
	</span>
}

/** The last results, the newest first, as marks with their names. */
const Last = ({ last }: { last: Tick[] }) => <span class="last" role="list" aria-label={x.last}>{last.map((k) => { const tone = toneOf(k.state), text = `${x.states[k.state] ?? k.state}, ${k.at}${k.detail ? `: ${k.detail}` : ''}`
	return <span role="listitem" key={k.at} class={`mark ${tone}`} title={text}><Icon name={icons[tone]!} size={14} /><span class="hidden">{text}</span></span> })}</span>

function List() {
	const list = usePaged<Schedule>('/v1/schedules', (s) => s.id)
	const again = useCallback(() => void list.first.load(), [list.first])
	useEvery(3000, again)
	return <Shell title={x.title}><div class="page">
		<h1 class="hidden">{x.title}</h1>
		<New onNew={again} />
		<section class="card list" aria-labelledby="list-title">
			<header><h2 id="list-title">{x.title}</h2></header>
			<PagedView of={list} error={x.error} empty={<Empty text={x.empty} cli={x.emptyCli} />}>{(all) => <div class="scroll-x" tabIndex={0} role="group" aria-label={x.title}><table class="rows schedules">
				<thead><tr><th scope="col">{x.name}</th><th scope="col">{x.when}</th><th scope="col">{x.next}</th><th scope="col">{x.last}</th><th scope="col">{x.state}</th><th scope="col"><span class="hidden">{x.actions}</span></th></tr></thead>
				<tbody>{all.map((s) => <tr key={s.id}>
					<td><a href={`/schedules/${encodeURIComponent(s.name)}`}>{s.name}</a></td>
					<td class="wrap">{s.words}<br /><code class="dim">{s.cron}</code> <span class="dim">{s.tz}</span></td>
					<td>{s.next.length ? <Times next={s.next} /> : <span class="dim">–</span>}</td>
					<td>{s.last.length ? <Last last={s.last} /> : <span class="dim">{x.never}</span>}</td>
					<td title={s.reason}>{x.scheduleStates[s.state]}</td>
					<td><Actions s={s} again={again} /></td>
				</tr>)}</tbody>
			</table></div>}</PagedView>
		</section>
	</div></Shell>
}

// ---- one ----

function TickRow({ k }: { k: Tick }) {
	const tone = toneOf(k.state)
	return <tr>
		<td><time dateTime={k.at}>{k.at.replace('T', ' ').replace(/\.\d+Z$/, ' UTC')}</time></td>
		<td><span class={`mark ${tone}`}><Icon name={icons[tone]!} size={14} /><span>{x.states[k.state] ?? k.state}{k.count ? ` (${k.count.toLocaleString()})` : ''}</span></span></td>
		<td>{[k.manual ? x.manual : '', k.late ? x.late(duration(k.late_ms ?? 0)) : '', k.attempt > 1 ? x.attempt(k.attempt) : ''].filter(Boolean).join(', ') || '–'}</td>
		<td>{k.run ? <a href={`${links[k.kind] ?? '/runs/'}${k.run}`}><code>{k.run}</code></a> : '–'}</td>
		<td class="wrap dim">{k.detail ?? ''}</td>
	</tr>
}

function One({ name }: { name: string }) {
	const path = address({ name }), of = useMemo(() => new Resource(() => api<Schedule>(path)), [path]), ticks = usePaged<Tick>(`${path}/ticks`, (k) => k.at), busy = useSignal(false)
	useEffect(() => void of.load(), [of, generation.value])
	const again = useCallback(() => { void of.load(); void ticks.first.load() }, [of, ticks.first])
	useEvery(2000, again)
	const remove = async () => {
		busy.value = true
		try {
			await request(path, { method: 'DELETE' })
			toast({ text: x.removed })
			go('/schedules')
		} catch (e) { failed(e) }
		busy.value = false
	}
	return <Shell title={name}><div class="page"><View of={of} title={x.missing}>{(s) => <>
		<section class="card record" aria-labelledby="page-title">
			<header class={`verdict ${s.state === 'active' ? 'ok' : 'stopped'}`}><Icon name="clock" size={22} /><div><h1 id="page-title">{s.name}</h1><p role="status"><strong>{x.scheduleStates[s.state]}</strong>: {s.words}</p>
				<p class="dim">{[s.cron, s.tz, x.kinds[s.kind] ?? s.kind, s.last[0] ? ago(s.last[0].at, clock.value) : '', s.reason].filter(Boolean).join(' · ')}</p></div></header>
			<div class="body">{s.next.length ? <><h2>{x.next}</h2><Times next={s.next} /></> : null}{s.warnings.map((w) => <p class="note" key={w}>{w}</p>)}</div>
			<footer class="row"><Actions s={s} again={again} /><span class="push" /><CopyButton text={() => `atoll schedule history ${s.name}`} label="atoll schedule history" />
				<button class="small" disabled={busy.value || !session.mayEdit.value} onClick={() => void remove()}><Icon name="trash-2" size={14} /><span>{t.delete}</span></button></footer>
		</section>
		<section class="card list" aria-labelledby="ticks-title">
			<header><h2 id="ticks-title">{x.history}</h2></header>
			<PagedView of={ticks} error={x.error} empty={<Empty text={x.noTicks} />}>{(all) => <div class="scroll-x" tabIndex={0} role="group" aria-label={x.history}><table class="rows ticks">
				<thead><tr><th scope="col">{x.at}</th><th scope="col">{x.state}</th><th scope="col">{x.how}</th><th scope="col">{x.run}</th><th scope="col">{x.why}</th></tr></thead>
				<tbody>{all.map((k) => <TickRow k={k} key={k.at} />)}</tbody>
			</table></div>}</PagedView>
		</section>
	</>}</View></div></Shell>
}

export default function Schedules({ name }: { name: string }) {
	return name ? <One name={name} /> : <List />
}
