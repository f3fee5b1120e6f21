// Home: run something now, see all boxes and the latest runs.
import { useComputed, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Box } from '../api'
import { clock } from '../clock'
import { ago, bytes, duration } from '../format'
import { Icon } from '../icons'
import { Empty, Line, Menu, Spark, View, failed } from '../parts/basics'
import { RunRows } from '../parts/RunRows'
import { Shell } from '../parts/Shell'
import { go } from '../router'
import * as session from '../session'
import { act, boxes, deleteBox, figures, newBox, runs, shownBoxes, titleOf, watch } from '../store'
import { generation } from '../socket'
import { templates } from '../templates'
import { TierBadge, tiers } from '../parts/tier'
import { t } from '../texts'
import { QuickRun } from './QuickRun'

function BoxRow({ b }: { b: Box }) {
	const f = figures.value.get(b.id), running = b.state === 'running', cpu = f?.cpu[f.cpu.length - 1] ?? 0
	const ends = b.state === 'stopped' ? b.kept_until : b.ends
	return <tr>
		<td class="name"><a href={`/b/${b.id}`}>{titleOf(b)}</a>{b.name && <span class="id">{b.id}</span>}<TierBadge of={b} brief /></td>
		<td><span class={`badge ${b.state}`}><span class="dot" aria-hidden="true" />{t.boxes.states[b.state] ?? b.state}</span></td>
		<td class="figure">{running && f ? <><Spark values={f.cpu} label={`${t.boxes.cpu} ${Math.round(cpu * 100)} %`} /><span class="n">{Math.round(cpu * 100)} %</span></> : <span class="dim">–</span>}</td>
		<td class="figure">{running && f ? <><meter min={0} max={b.limits.mem} value={f.mem} high={b.limits.mem * 0.85} aria-label={t.boxes.memory} /><span class="n">{bytes(f.mem)}</span></> : <span class="dim">–</span>}</td>
		<td class="wide-only">{ago(b.created, clock.value)}</td>
		<td class="wide-only">{ends ? t.boxes.endsIn(duration(Math.max(0, Date.parse(ends) - clock.value))) : t.boxes.never}</td>
		<td class="end"><Menu label={t.boxes.menu(titleOf(b))} items={[
			{ label: t.open, icon: 'external-link', run: () => go(`/b/${b.id}`) },
			b.state === 'paused' ? { label: t.boxes.resume, icon: 'play', run: () => void act(b, 'resume'), disabled: !session.mayEdit.value }
				: { label: t.boxes.pause, icon: 'pause', run: () => void act(b, 'pause'), disabled: !session.mayEdit.value || !running },
			{ label: t.delete, icon: 'trash-2', danger: true, run: () => deleteBox(b), disabled: !session.mayEdit.value },
		]} /></td>
	</tr>
}

const SHOWN_FIRST = 50

function Boxes() {
	const words = useSignal(''), busy = useSignal(false), most = useSignal(SHOWN_FIRST), template = useSignal(''), tier = useSignal('')
	const ready = (templates.value.value ?? []).filter((x) => x.built && x.name !== 'base')
	const offered = (tiers.value.value ?? []).filter((x) => x.offered)
	useEffect(() => { void templates.load(); void tiers.load() }, [generation.value])
	const found = useComputed(() => {
		const parts = words.value.toLowerCase().split(/\s+/).filter(Boolean)
		return shownBoxes.value.filter((b) => parts.every((p) => `${b.name} ${b.id} ${b.state}`.toLowerCase().includes(p)))
	})
	const ids = found.value.slice(0, most.value).filter((b) => b.state === 'running').map((b) => b.id).join()
	useEffect(() => watch(ids ? ids.split(',') : []), [ids])
	useEffect(() => () => watch([]), [])
	const make = async () => {
		busy.value = true
		try { go(`/b/${(await newBox({ ...(template.value && { template: template.value }), ...(tier.value && { isolation: tier.value }) })).id}`) } catch (e) { failed(e) }
		busy.value = false
	}
	const all = shownBoxes.value.length
	return <section class="card list" aria-labelledby="boxes-title">
		<header>
			<h2 id="boxes-title">{t.boxes.title}</h2>
			{all > 0 && <span class="count">{t.boxes.count(found.value.length, all)}</span>}
			{all > 5 && <input type="search" class="filter" placeholder={t.boxes.filter} aria-label={t.boxes.filter} value={words.value} onInput={(e) => { words.value = e.currentTarget.value }} />}
			<span class="push" />
			{ready.length > 0 && session.mayEdit.value && <select class="template" aria-label={t.templates.ofBox} value={template.value} onChange={(e) => { template.value = e.currentTarget.value }}>
				<option value="">base</option>{ready.map((x) => <option value={x.name} key={x.id}>{x.name}</option>)}</select>}
			{offered.length > 1 && session.mayEdit.value && <select class="template" aria-label={t.boxes.tierOfBox} value={tier.value} onChange={(e) => { tier.value = e.currentTarget.value }}>
				<option value="">{t.boxes.tierAuto}</option>{offered.map((x) => <option value={x.tier} key={x.tier}>{x.tier}</option>)}</select>}
			<button class="small" onClick={() => void make()} disabled={busy.value || !session.mayEdit.value}><Icon name="plus" size={14} /><span>{busy.value ? t.boxes.creating : t.boxes.new}</span></button>
		</header>
		<View of={boxes} title={t.boxes.error}>{() => all === 0 ? <Empty text={t.boxes.empty} cli={t.boxes.emptyCli} /> :
			found.value.length === 0 ? <Empty text={t.boxes.filterNone} /> : <div class="scroll-x" tabIndex={0} role="group" aria-label={t.boxes.table}><table class="boxes">
				<thead><tr><th scope="col">{t.boxes.name}</th><th scope="col">{t.boxes.state}</th><th scope="col">{t.boxes.cpu}</th><th scope="col">{t.boxes.memory}</th>
					<th scope="col" class="wide-only">{t.boxes.age}</th><th scope="col" class="wide-only">{t.boxes.ends}</th><th scope="col"><span class="hidden">{t.boxes.actions}</span></th></tr></thead>
				<tbody>{found.value.slice(0, most.value).map((b) => <BoxRow b={b} key={b.id} />)}</tbody>
			</table>{found.value.length > most.value && <p class="pad"><button class="small" onClick={() => { most.value += 200 }}>{t.loadMore}</button></p>}</div>}</View>
	</section>
}

function Recent() {
	return <section class="card list recent" aria-labelledby="runs-title">
		<header><h2 id="runs-title">{t.runs.title}</h2><a class="push" href="/runs">{t.runs.all}</a></header>
		<View of={runs} title={t.runs.error}>{(list) => list.length ? <RunRows list={list.slice(0, 8)} now={clock.value} /> : <Empty text={t.runs.empty} cli={t.runs.emptyCli} />}</View>
	</section>
}

function Elsewhere() {
	return <section class="elsewhere" aria-label={t.home.elsewhere}>
		<div><span>{t.home.terminal}</span><Line text="atoll run hello.py" /></div>
		<div><span>{t.home.agent}</span><Line text="atoll mcp" /></div>
		<div><span>{t.home.sdk}</span><Line text={`E2B_API_URL=${location.origin}`} /></div>
	</section>
}

export function Home() {
	return <Shell title={t.product}>
		<div class="page home">
			<QuickRun />
			<div class="two"><Boxes /><Recent /></div>
			<Elsewhere />
		</div>
	</Shell>
}
