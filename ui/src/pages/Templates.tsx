// Templates: all of them; one with its contents, tags and builds, and the log of a build while it runs.
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useCallback, useEffect, useMemo, useRef } from 'preact/hooks'
import { api, lines } from '../api'
import { clock } from '../clock'
import { ago, bytes, duration } from '../format'
import { Icon, type IconName } from '../icons'
import { CopyButton, Dialog, Empty, View, failed } from '../parts/basics'
import { useEvery } from '../parts/paged'
import { Shell } from '../parts/Shell'
import { Resource } from '../resource'
import { go, query } from '../router'
import * as session from '../session'
import { generation } from '../socket'
import { newBox } from '../store'
import { cancelBuild, filesOf, inProgress, pathOf, removeTemplate, sizeOf, startBuild, stateOf, stepsOf, tagsOf, tarOf, templates, uploadContext, type Build, type LogLine, type Picked, type Step, type Template } from '../templates'
import { t } from '../texts'
import { toast } from '../toasts'

const x = t.templates
const LOG_MOST = 20000, LINES_SHOWN = 400, TEXT_MOST = 1 << 20
const icons: Record<string, IconName> = { ready: 'circle-check', building: 'play', error: 'circle-x', absent: 'square', waiting: 'clock', cancelled: 'square' }
const tones: Record<string, string> = { ready: 'ok', building: 'running', error: 'bad', absent: 'stopped', waiting: 'running', cancelled: 'stopped' }
const took = (b: Build, now: number) => b.started ? duration((b.ended ? Date.parse(b.ended) : now) - Date.parse(b.started)) : ''

function NewBox({ name, small, disabled }: { name: string, small?: boolean, disabled?: boolean }) {
	const busy = useSignal(false)
	const make = async () => {
		busy.value = true
		try { go(`/b/${(await newBox({ template: name })).id}`) } catch (e) { failed(e) }
		busy.value = false
	}
	return <button class={small ? 'small' : 'primary'} disabled={busy.value || disabled || !session.mayEdit.value} aria-label={x.newBoxOf(name)} onClick={() => void make()}><Icon name="plus" size={14} /><span>{busy.value ? t.boxes.creating : x.newBox}</span></button>
}

// ---- a build from pasted text, or from a folder ----

const exampleDockerfile = 'FROM base\nRUN apt-get update && apt-get install -y jq\nENV GREETING=hello\nWORKDIR /home/user\n'
const exampleToml = '[template]\nfrom = "base"\nrun = ["echo hello >/home/user/greeting"]\n'
type Source = 'Dockerfile' | 'atoll.toml'
const sources: Source[] = ['Dockerfile', 'atoll.toml']
const NAME = '[a-z0-9][a-z0-9_\\-]{0,63}'

function BuildDialog({ name: given, onClose }: { name: string, onClose: () => void }) {
	const kind = useSignal<Source>('Dockerfile'), text = useSignal(''), name = useSignal(given), tag = useSignal(''), force = useSignal(false)
	const picked = useSignal<Picked[]>([]), texts = useSignal<Record<string, string>>({}), over = useSignal(false), busy = useSignal(''), folder = useRef<HTMLInputElement>(null)
	/** A folder has its own instructions: these are shown, and its files are sent with them. */
	const take = async (all: Picked[]) => {
		const file = (n: string) => all.find((f) => f.path === n)?.file
		const toml = file('atoll.toml'), docker = file('Dockerfile') ?? file('e2b.Dockerfile')
		picked.value = all
		texts.value = Object.fromEntries(await Promise.all(all.filter((f) => /^(Dockerfile|[^/]*\.Dockerfile|atoll\.toml|\.dockerignore)$/.test(f.path) && f.file.size < TEXT_MOST).map(async (f) => [f.path, await f.file.text()] as const)))
		if (toml || docker) {
			kind.value = toml ? 'atoll.toml' : 'Dockerfile'
			text.value = await (toml ?? docker)!.text()
		}
	}
	const build = async () => {
		try {
			let archive: string | undefined
			if (picked.value.length) {
				busy.value = x.sending
				archive = await uploadContext(tarOf(picked.value), (part) => { busy.value = x.sendingPart(Math.round(part * 100)) })
			}
			busy.value = x.starting
			const b = await startBuild({ name: name.value, ...(tag.value && { tags: [tag.value] }), source: { files: { ...texts.value, [kind.value]: text.value }, file: kind.value, ...(archive && { archive }) }, ...(force.value && { force: true }) })
			onClose()
			go(`/templates/${encodeURIComponent(name.value)}?build=${b.id}`)
		} catch (e) { failed(e) }
		busy.value = ''
	}
	const size = picked.value.reduce((n, f) => n + f.file.size, 0)
	return <Dialog title={given ? x.buildOf(given) : x.build} onClose={onClose} wide>
		<form class="build-form" onSubmit={(e) => { e.preventDefault(); void build() }}>
			<div class="row">
				<label class="field">{x.name}<input type="text" id="build-name" required pattern={NAME} title={x.nameRule} value={name.value} readOnly={!!given} onInput={(e) => { name.value = e.currentTarget.value }} /></label>
				<label class="field">{x.tag}<input type="text" pattern="[a-z0-9_.\-]{1,64}" placeholder="default" value={tag.value} onInput={(e) => { tag.value = e.currentTarget.value }} /></label>
			</div>
			<div class="langs" role="group" aria-label={x.source}>{sources.map((k) => <button type="button" key={k} aria-pressed={kind.value === k} onClick={() => { kind.value = k }}>{k}</button>)}
				{!text.value && <button type="button" class="plain" onClick={() => { text.value = kind.value === 'atoll.toml' ? exampleToml : exampleDockerfile }}>{t.batches.example}</button>}</div>
			<textarea id="build-text" class="mono" rows={10} required spellcheck={false} aria-label={kind.value} value={text.value} onInput={(e) => { text.value = e.currentTarget.value }} />
			<div class={`drop ${over.value ? 'over' : ''}`} onDragOver={(e) => { e.preventDefault(); over.value = true }} onDragLeave={() => { over.value = false }}
				onDrop={(e) => { e.preventDefault(); over.value = false; if (e.dataTransfer) filesOf(e.dataTransfer.items).then(take, failed) }}>
				<span>{picked.value.length ? x.context(picked.value.length, bytes(size)) : x.drop}</span>
				<input type="file" hidden ref={folder} multiple {...{ webkitdirectory: true }} aria-label={x.folder} onChange={(e) => { void take([...e.currentTarget.files ?? []].map((file) => ({ path: file.webkitRelativePath.split('/').slice(1).join('/') || file.name, file }))); e.currentTarget.value = '' }} />
				<button type="button" class="small" onClick={() => folder.current!.click()}><Icon name="folder-open" size={14} /><span>{x.folder}</span></button>
				{picked.value.length > 0 && <button type="button" class="small" onClick={() => { picked.value = []; texts.value = {} }}>{x.noFiles}</button>}
			</div>
			<label class="check"><input type="checkbox" checked={force.value} onChange={(e) => { force.value = e.currentTarget.checked }} />{x.force}</label>
			<div class="row end"><button type="button" onClick={onClose}>{t.cancel}</button><button class="primary" type="submit" disabled={!!busy.value || !session.mayEdit.value}><Icon name="play" size={14} /><span>{busy.value || x.build}</span></button></div>
		</form>
	</Dialog>
}

// ---- all ----

function Row({ of }: { of: Template }) {
	const s = stateOf(of), size = sizeOf(of), tags = Object.keys(of.tags).sort()
	return <tr>
		<td class="name"><a href={`/templates/${encodeURIComponent(of.name)}`}>{of.name}</a></td>
		<td><span class={`mark ${tones[s]}`}><Icon name={icons[s]!} size={14} /><span>{x.states[s]}</span></span></td>
		<td class="wrap">{of.description}{of.missing?.map((m) => <span class="dim missing" key={m}>{x.missing(m)}</span>)}</td>
		<td class="n">{of.builtin ? <span class="dim">–</span> : bytes(size)}</td>
		<td class="n">{of.builds.length}</td>
		<td class="one-line dim">{tags.join(', ') || '–'}</td>
		<td class="end"><NewBox small name={of.name} disabled={!of.built} /></td>
	</tr>
}

function List() {
	const building = useSignal(query.value.get('new') !== null)
	useEffect(() => void templates.load(), [generation.value])
	const again = useCallback(() => void templates.load(), [])
	useEvery((templates.value.value ?? []).some((y) => stateOf(y) === 'building') ? 1500 : 8000, again)
	return <Shell title={x.title}><div class="page">
		<h1 class="hidden">{x.title}</h1>
		<section class="card list" aria-labelledby="list-title">
			<header><h2 id="list-title">{x.title}</h2><button class="small push" disabled={!session.mayEdit.value} onClick={() => { building.value = true }}><Icon name="plus" size={14} /><span>{x.build}</span></button></header>
			<View of={templates} title={x.error}>{(all) => all.length ? <div class="scroll-x" tabIndex={0} role="group" aria-label={x.title}><table class="rows templates">
				<thead><tr>{[x.name, x.state, x.description, x.size, x.builds, x.tags].map((h) => <th scope="col" key={h}>{h}</th>)}<th scope="col"><span class="hidden">{t.boxes.actions}</span></th></tr></thead>
				<tbody>{all.map((y) => <Row of={y} key={y.id} />)}</tbody>
			</table></div> : <Empty text={x.empty} cli={x.emptyCli} />}</View>
		</section>
		{building.value && <BuildDialog name="" onClose={() => { building.value = false }} />}
	</div></Shell>
}

// ---- one build ----

/** The lines of the log as they are written; after a lost connection they are read again. */
function useLog(id: string, live: boolean, onEnd: () => void) {
	const version = useSignal(0), all = useRef<LogLine[]>([])
	useEffect(() => {
		const abort = new AbortController(), mine: LogLine[] = []
		let timer: ReturnType<typeof setTimeout> | undefined
		const draw = () => { timer ??= setTimeout(() => { timer = undefined; version.value++ }, 120) }
		lines(`/v1/builds/${id}/log?follow=1`, { signal: abort.signal }, (m) => {
			if (m.type === 'end') return
			if (mine.length < LOG_MOST) mine.push(m)
			if (mine.length >= all.current.length) all.current = mine // until then the earlier ones stay
			draw()
		}).then(onEnd, () => {}) // a lost connection: the next generation continues
		return () => { abort.abort(); clearTimeout(timer) }
	}, [id, live, generation.value])
	return { all: all.current, version: version.value }
}

function StepRow({ step, bad, now, open, onOpen }: { step: Step, bad: boolean, now: number, open: boolean, onOpen: () => void }) {
	const shown = step.lines.slice(-LINES_SHOWN), tone = bad ? 'bad' : step.ended === null ? 'running' : 'ok'
	return <li class={tone}>
		<button class="plain step" aria-expanded={open} disabled={!step.lines.length} onClick={onOpen}>
			<Icon name={bad ? 'circle-x' : step.ended === null ? 'play' : 'check'} size={14} /><code>{step.title}</code>
			{step.cached && <span class="tag">{x.cached}</span>}<span class="dim time">{duration(Math.max(0, (step.ended ?? now) - step.began))}</span></button>
		{open && shown.length > 0 && <pre class={`text ${bad ? 'bad' : ''}`} tabIndex={0} role="group" aria-label={x.outputOf(step.title)}>{step.lines.length > shown.length ? `${x.linesCut(step.lines.length - shown.length)}\n` : ''}{shown.map((l) => l.message).join('\n')}</pre>}
	</li>
}

function BuildLog({ of, build, reload }: { of: Template, build: Build, reload: () => void }) {
	const { all: log, version } = useLog(build.id, inProgress(build), reload), opened = useSignal<ReadonlySet<number>>(new Set()), busy = useSignal(false)
	const { steps, of: count } = useMemo(() => stepsOf(log, build.ended), [version, build.ended]), now = clock.value, last = steps[steps.length - 1]
	const isOpen = (s: Step) => opened.value.has(s.number) !== (s === last && build.state !== 'ready') // the last step is open, unless all is well
	const toggle = (s: Step) => { const n = new Set(opened.value); if (!n.delete(s.number)) n.add(s.number); opened.value = n }
	const cancel = async () => {
		busy.value = true
		try { await cancelBuild(build.id) } catch (e) { failed(e) }
		busy.value = false
		reload()
	}
	const tags = tagsOf(of, build.id), done = Math.min(count, steps.filter((s) => s.ended !== null).length)
	return <section class="card record build" aria-labelledby="build-title">
		<header class={`verdict ${tones[build.state]}`}><Icon name={icons[build.state]!} size={22} /><div><h2 id="build-title">{x.buildTitle(build.id.slice(0, 8))}</h2>
			<p role="status"><strong>{x.buildStates[build.state]}</strong>{build.state === 'building' && count ? `: ${x.stepOf(Math.min(done + 1, count), count)}` : ''}</p>
			<p class="dim">{[ago(build.created, now), took(build, now), build.bytes ? bytes(build.bytes) : '', tags.join(', ')].filter(Boolean).join(' · ')}</p></div></header>
		{build.state === 'building' && count ? <progress class="build-bar" max={count} value={done} aria-label={x.stepOf(done, count)} /> : null}
		{build.reason && <div class="reason" role="alert">
			<p><strong>{build.reason.message}</strong></p>
			{(build.reason.command || build.reason.step) && <p>{build.reason.line ? `${x.line(build.reason.line)}: ` : ''}<code>{build.reason.command ?? build.reason.step}</code></p>}
			{build.reason.output && <pre class="text bad" tabIndex={0} role="group" aria-label={x.output}>{build.reason.output}</pre>}
		</div>}
		{steps.length ? <ol class="build-steps">{steps.map((s) => <StepRow key={s.number} step={s} bad={s === last && build.state === 'error'} now={now} open={isOpen(s)} onOpen={() => toggle(s)} />)}</ol>
			: <p class="pad dim">{inProgress(build) ? x.waiting : x.noLog}</p>}
		<footer class="row">{inProgress(build) && <button class="stop" disabled={busy.value || !session.mayEdit.value} onClick={() => void cancel()}><Icon name="square" size={14} /><span>{x.cancel}</span></button>}
			<span class="push" /><CopyButton text={() => log.map((l) => `${l.timestamp} ${l.message}`).join('\n')} label={x.copyLog} /></footer>
	</section>
}

// ---- one template ----

function Fact({ name, children }: { name: string, children: ComponentChildren }) {
	return <div><dt>{name}</dt><dd>{children}</dd></div>
}

function Contents({ of }: { of: Template }) {
	const env = Object.entries(of.env ?? {})
	return <dl class="facts pad">
		{of.start && <Fact name={x.start}><code>{of.start}</code></Fact>}
		{of.ready && <Fact name={x.ready}><code>{of.ready}</code></Fact>}
		{of.port ? <Fact name={x.port}>{of.port}</Fact> : null}
		{of.cpu ? <Fact name={t.boxes.cpu}>{x.cpus(of.cpu / 1000)}</Fact> : null}
		{of.memory ? <Fact name={t.boxes.memory}>{bytes(of.memory)}</Fact> : null}
		{of.disk ? <Fact name={x.disk}>{bytes(of.disk)}</Fact> : null}
		{of.user && <Fact name={x.user}>{of.user}</Fact>}
		{of.workdir && <Fact name={x.workdir}><code>{of.workdir}</code></Fact>}
		{of.lib?.length ? <Fact name={x.lib}>{of.lib.join(', ')}</Fact> : null}
		{of.file && <Fact name={x.file}><code>{of.file}</code></Fact>}
		{of.instructions && <Fact name={x.instructions}>{of.instructions}</Fact>}
		{env.length ? <Fact name={x.env}>{env.map(([k, v]) => <code class="line" key={k}>{k}={v}</code>)}</Fact> : null}
		{of.aliases.length ? <Fact name={x.aliases}>{of.aliases.join(', ')}</Fact> : null}
		<Fact name={x.team}>{of.team}{of.public ? ` (${x.public})` : ''}</Fact>
		{of.spawns != null && <Fact name={x.spawns}>{of.spawns.toLocaleString()}</Fact>}
	</dl>
}

function Builds({ of, shown }: { of: Template, shown: string }) {
	return <section class="card list" aria-labelledby="builds-title">
		<header><h2 id="builds-title">{x.builds}</h2></header>
		<ul class="runs">{of.builds.map((b) => <li key={b.id}><a href={`/templates/${encodeURIComponent(of.name)}?build=${b.id}`} aria-current={b.id === shown ? 'true' : undefined}>
			<span class={`v ${tones[b.state]}`}><Icon name={icons[b.state]!} /></span>
			<span class="what"><code>{b.id.slice(0, 8)}</code><span class="dim">{b.reason?.message ?? x.buildStates[b.state]}</span></span>
			<span class="tags">{tagsOf(of, b.id).map((y) => <span class="tag" key={y}>{y}</span>)}</span>
			<span class="when"><span>{ago(b.created, clock.value)}</span><span class="dim">{[took(b, clock.value), b.bytes ? bytes(b.bytes) : ''].filter(Boolean).join(' · ')}</span></span>
		</a></li>)}</ul>
	</section>
}

function One({ name }: { name: string }) {
	const of = useMemo(() => new Resource(() => api<Template>(pathOf(name))), [name])
	const building = useSignal(false), sure = useSignal(false), busy = useSignal(false), asked = query.value.get('build') ?? ''
	useEffect(() => void of.load(), [of, generation.value, asked])
	const again = useCallback(() => void of.load(), [of]), now = of.value.value
	useEvery(1000, again, now != null && now.builds.some(inProgress))
	const prepare = async () => {
		busy.value = true
		try { go(`/templates/${encodeURIComponent(name)}?build=${(await startBuild({ name })).id}`) } catch (e) { failed(e) }
		busy.value = false
	}
	const remove = async () => {
		busy.value = true
		try {
			await removeTemplate(name)
			toast({ text: x.removed(name) })
			void templates.load()
			go('/templates')
		} catch (e) { failed(e) }
		busy.value = false
	}
	return <Shell title={name}><div class="page"><View of={of} title={x.missingTemplate}>{(y) => {
		const s = stateOf(y), build = y.builds.find((b) => b.id === asked) ?? y.builds[0]
		return <>
			<section class="card record" aria-labelledby="page-title">
				<header class={`verdict ${tones[s]}`}><Icon name={icons[s]!} size={22} /><div><h1 id="page-title">{y.name}</h1><p role="status"><strong>{x.states[s]}</strong>{y.description ? `: ${y.description}` : ''}</p>
					{y.missing?.map((m) => <p class="missing" key={m}>{x.missing(m)}</p>)}</div></header>
				<Contents of={y} />
				<footer class="row">{!y.shipped && <NewBox name={y.name} disabled={!y.built} />}
					{y.shipped && <button class="primary" disabled={busy.value || !session.mayEdit.value} onClick={() => void prepare()}><Icon name="play" size={14} /><span>{x.build}</span></button>}
					{!y.builtin && !y.shipped && <button disabled={!session.mayEdit.value} onClick={() => { building.value = true }}><Icon name="refresh-cw" size={14} /><span>{x.buildAgain}</span></button>}
					<span class="push" /><CopyButton text={() => `atoll new -t ${y.name}`} label={`atoll new -t ${y.name}`} />
					{!y.builtin && !y.shipped && <button class="small" disabled={busy.value || !session.mayEdit.value} onClick={() => { sure.value = true }}><Icon name="trash-2" size={14} /><span>{t.delete}</span></button>}</footer>
			</section>
			{build && <BuildLog key={build.id} of={y} build={build} reload={again} />}
			{y.builds.length > 1 && <Builds of={y} shown={build!.id} />}
			{building.value && <BuildDialog name={y.name} onClose={() => { building.value = false }} />}
			{sure.value && <Dialog title={x.removeTitle(y.name)} onClose={() => { sure.value = false }}><div class="build-form"><p>{x.removeText}</p>
				<div class="row end"><button onClick={() => { sure.value = false }}>{t.cancel}</button><button class="danger" disabled={busy.value} onClick={() => void remove()}>{t.delete}</button></div></div></Dialog>}
		</>
	}}</View></div></Shell>
}

export default function Templates({ name }: { name: string }) {
	return name ? <One name={name} /> : <List />
}
