// The workspace of a box: files, editor, terminals, output. The address has the file: a pasted link opens the same one.
import { signal, untracked, useComputed, useSignal, useSignalEffect } from '@preact/signals'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { api, box as boxPath, ApiError, type Box } from '../api'
import { clock } from '../clock'
import type { Editor } from '../editor/editor'
import { bytes, duration } from '../format'
import { Icon } from '../icons'
import { CopyButton, Dialog, Empty, ErrorState, Loading, Menu, Spark, failed } from '../parts/basics'
import { loadEditor } from '../parts/CodeEditor'
import { Later } from '../parts/Lazy'
import { pageCommands, paletteOpen } from '../parts/Palette'
import { Shell } from '../parts/Shell'
import { Resource } from '../resource'
import { go, query } from '../router'
import * as session from '../session'
import { connection, generation, socket } from '../socket'
import { local } from '../storage'
import { act, eventListeners, figures, languages, newBox, titleOf, watch } from '../store'
import { TierBadge } from '../parts/tier'
import { t } from '../texts'
import { toast } from '../toasts'
import { Document } from '../workspace/documents'
import type { Notebook } from '../workspace/cells'
import { Files, HOME, nameOf, parentOf, shortPath, shown } from '../workspace/files'
import { Network } from '../workspace/network'
import { PortList } from '../workspace/PortList'
import { Ports } from '../workspace/ports'
import { Preview } from '../workspace/Preview'
import { Problems, problemsOf } from '../workspace/Problems'
import { Faces, ShareDialog } from '../workspace/Share'
import { People } from '../workspace/people'
import { RUN, Stream, TERMINAL, killExec, listExecs, startRun, startTerminal } from '../workspace/programs'
import { RunOutput, newRun, type Run } from '../workspace/RunOutput'
import { Search } from '../workspace/Search'
import { Tree } from '../workspace/Tree'

interface Term { id: string, name: string, stream: Stream, over: boolean }
type Side = 'files' | 'search' | 'packages' | 'env' | 'timeline'
type Pane = 'files' | 'code' | 'panel' | 'preview'

class Model {
	readonly files: Files
	readonly tabs = signal<Document[]>([])
	readonly active = signal<Document | null>(null)
	readonly terms = signal<Term[]>([])
	readonly runs = signal<Run[]>([])
	readonly panel = signal('output') // or the id of a terminal
	readonly side = signal<Side>('files')
	readonly pane = signal<Pane>('code') // of a narrow screen
	readonly layout = signal({ side: 240, panel: 260, preview: 480, sideOn: true, panelOn: true, previewOn: false })
	readonly cursor = signal({ line: 1, column: 1 })
	editor: Editor | null = null
	readonly want = signal<{ port: number } | null>(null) // what the preview is to show
	readonly ports: Ports
	readonly network: Network
	readonly notebooks = new Map<Document, Notebook>()
	readonly people: People
	private numbered = 0

	constructor(readonly id: string) {
		this.files = new Files(id)
		this.people = new People(id, () => void this.find(false))
		this.network = new Network(id)
		this.ports = new Ports(this.files.box, () => connection.value === 'live' && (this.panel.value === 'ports' || this.running !== undefined || this.terms.value.some((x) => !x.over)),
			(port) => toast({ text: t.ports.opened(port), ms: 10000, action: { label: t.ports.preview, run: () => this.showPort(port) } }))
		try { this.layout.value = { ...this.layout.value, ...JSON.parse(local.get(`layout.${id}`) ?? local.get('layout') ?? '{}') } } catch { /* as built in */ }
	}
	setLayout(change: Partial<{ side: number, panel: number, preview: number, sideOn: boolean, panelOn: boolean, previewOn: boolean }>) {
		this.layout.value = { ...this.layout.value, ...change }
		local.set(`layout.${this.id}`, JSON.stringify(this.layout.value))
		local.set('layout', JSON.stringify(this.layout.value))
	}

	// ---- documents ----

	open(path: string, line?: number, column?: number) {
		let d = this.tabs.value.find((x) => x.path === path)
		if (!d) {
			d = new Document(this.files, path)
			this.tabs.value = [...this.tabs.value, d]
			void d.load()
		}
		this.active.value = d
		this.files.reveal(path)
		this.pane.value = 'code'
		this.goto = line ? { path, line, column: column ?? 1 } : null
		if (line) d.preview.value = false // a line of the source
		this.remember()
		if (line && this.editor && d.editor === this.editor) { this.editor.goto(line, column); this.goto = null }
	}
	goto: { path: string, line: number, column: number } | null = null

	close(d: Document) {
		const at = this.tabs.value.indexOf(d)
		this.notebooks.get(d)?.close()
		this.notebooks.delete(d)
		d.close()
		this.tabs.value = this.tabs.value.filter((x) => x !== d)
		if (this.active.value === d) this.active.value = this.tabs.value[Math.min(at, this.tabs.value.length - 1)] ?? null
		this.remember()
	}
	moved(from: string, to: string) {
		for (const d of this.tabs.value)
			if (d.path === from || d.path.startsWith(from + '/')) {
				const was = this.active.value === d, kernel = local.get(`kernel.${this.id}.${d.path}`)
				if (kernel) { local.set(`kernel.${this.id}.${to}${d.path.slice(from.length)}`, kernel); local.remove(`kernel.${this.id}.${d.path}`) }
				this.close(d)
				if (was) this.open(to + d.path.slice(from.length))
			}
	}
	removed(path: string) { for (const d of this.tabs.value) if (d.path === path || d.path.startsWith(path + '/')) this.close(d) }
	remember() {
		local.set(`tabs.${this.id}`, JSON.stringify(this.tabs.value.map((d) => d.path)))
		const q = new URLSearchParams()
		const d = this.active.value
		if (d) q.set('file', shortPath(d.path))
		if (d?.viewer && d.preview.value !== d.previewFirst) q.set('view', d.preview.value ? 'preview' : 'source')
		history.replaceState(null, '', `/b/${this.id}${q.size ? `?${q}` : ''}`)
	}
	restore() {
		try { for (const p of JSON.parse(local.get(`tabs.${this.id}`) ?? '[]').slice(0, 20)) if (typeof p === 'string') this.open(p) } catch { /* none */ }
		const file = query.peek().get('file'), line = Number(query.peek().get('line') ?? 0), view = query.peek().get('view')
		if (file) this.open(file.startsWith('/') ? file : `${HOME}/${file}`, line || undefined)
		const d = this.active.value
		if (file && view && d?.viewer) { d.preview.value = view === 'preview'; this.remember() }
	}
	setPreview(d: Document, on: boolean) {
		d.flush?.()
		d.preview.value = on
		this.remember()
	}
	/** Its file has a name that is not used yet. */
	async newNotebook() {
		for (let n = 0; n < 100; n++) {
			const path = `${HOME}/${t.nb.untitled}${n || ''}.ipynb`
			try {
				await this.files.create(path)
				this.open(path)
				return
			} catch (e) { if ((e as ApiError).status !== 409 && (e as ApiError).status !== 412) { failed(e); return } }
		}
	}

	// ---- programs ----

	private addTerm(id: string, found = false): Term {
		const term: Term = { id, name: t.term.name(++this.numbered), stream: new Stream(this.id, id, 'pty', found), over: false }
		this.terms.value = [...this.terms.value, term]
		return term
	}
	async newTerminal() {
		try {
			const e = await startTerminal(this.id, 24, 80)
			this.people.programStarted()
			this.panel.value = this.addTerm(e.id).id
			this.setLayout({ panelOn: true })
			this.pane.value = 'panel'
		} catch (e) { failed(e) }
	}
	closeTerm(x: Term) {
		if (!x.over) void killExec(this.id, x.id).catch(() => {})
		this.terms.value = this.terms.value.filter((y) => y !== x)
		if (this.panel.value === x.id) this.panel.value = this.terms.value[0]?.id ?? 'output'
	}
	termOver(id: string) { this.terms.value = this.terms.value.map((x) => x.id === id ? { ...x, over: true } : x) }

	/** Programs that were started before this page was loaded, or by another person. */
	async find(first = true) {
		let list
		try { list = await listExecs(this.id) } catch { return }
		const recent = new Set(list.filter((e) => e.tag?.startsWith(RUN)).slice(0, 5).map((e) => e.id))
		for (const e of [...list].reverse()) {
			if (e.tag?.startsWith(TERMINAL) && e.state === 'running' && !this.terms.value.some((x) => x.id === e.id)) this.addTerm(e.id, true)
			if (recent.has(e.id) && !this.runs.value.some((x) => x.key === e.id)) {
				for (const old of this.runs.value) old.open.value = false
				const r = newRun(e.id, commandShown(e.command), new Stream(this.id, e.id, 'exec'))
				r.started = e.started
				this.runs.value = [...this.runs.value, r]
			}
		}
		if (first && this.panel.value === 'output' && this.terms.value.length && !this.runs.value.some((r) => !r.record.value)) this.panel.value = this.terms.value[this.terms.value.length - 1]!.id
	}

	async run(d: Document) {
		const nb = this.notebooks.get(d)
		if (nb && d.preview.value) { nb.runAll(); return }
		await d.save()
		const lang = languages.value.value?.find((l) => l.name === d.language)
		this.panel.value = 'output'
		this.setLayout({ panelOn: true })
		this.pane.value = 'panel'
		try {
			const x: any = await startRun(this.id, lang ? { language: lang.name, entry: d.path.startsWith(HOME + '/') ? shortPath(d.path) : d.path } : { command: [d.path] })
			this.people.programStarted()
			for (const r of this.runs.value) r.open.value = false
			const r = newRun(x.id, shown(lang ? `${lang.name} ${shortPath(d.path)}` : shortPath(d.path)), x.cause ? null : new Stream(this.id, x.id, 'exec'))
			if (x.cause) {
				r.record = signal(x)
				r.text = { stdout: x.stdout ?? '', stderr: x.stderr ?? '' }
			}
			this.runs.value = [...this.runs.value.slice(-19), r]
		} catch (e) { failed(e) }
	}
	showPort(port: number) {
		this.want.value = { port }
		this.setLayout({ previewOn: true })
		this.pane.value = 'preview'
	}
	/** A command with its output in the panel; returns its exit status when it has ended, null if it did not exit by itself. */
	async command(command: string[], title: string): Promise<number | null> {
		this.panel.value = 'output'
		this.setLayout({ panelOn: true })
		const x: any = await startRun(this.id, { command })
		this.people.programStarted()
		for (const r of this.runs.value) r.open.value = false
		const r = newRun(x.id, title, new Stream(this.id, x.id, 'exec'))
		this.runs.value = [...this.runs.value.slice(-19), r]
		return new Promise((done) => {
			const undo = r.stream!.record.subscribe((rec) => { if (rec) { queueMicrotask(() => undo()); done(rec.exit_code) } })
		})
	}
	stop(r: Run) {
		r.stopped = true
		void killExec(this.id, r.key).catch(failed)
	}
	get running() { return [...this.runs.value].reverse().find((r) => !r.record.value && !r.stream?.over.value) }
}

const sides = [['files', t.files.title, 'files'], ['search', t.search.title, 'search'], ['packages', t.pkg.title, 'package'], ['env', t.env.short, 'braces'], ['timeline', t.timeline.title, 'history']] as const
const loadShared = async () => (await import('../workspace/shared')).Shared
const loadPackages = async () => (await import('../workspace/Packages')).default, loadVariables = async () => (await import('../workspace/Variables')).default, loadTimeline = async () => (await import('../workspace/Timeline')).default
const commandShown = (c: string[]) => shown(c.map((w) => shortPath(w).replace(/^\/usr\/(local\/)?bin\//, '')).join(' '))

// ---- parts ----

function Separator({ vertical, flip, value, set, label, reset }: { vertical?: boolean, flip?: boolean, value: number, set: (n: number) => void, label: string, reset: number }) {
	const drag = (e: PointerEvent) => {
		const el = e.currentTarget as HTMLElement, from = vertical ? e.clientX : e.clientY
		el.setPointerCapture(e.pointerId)
		const move = (m: PointerEvent) => set(value + (vertical ? (m.clientX - from) * (flip ? -1 : 1) : from - m.clientY))
		el.addEventListener('pointermove', move)
		el.addEventListener('pointerup', () => el.removeEventListener('pointermove', move), { once: true })
	}
	return <div role="separator" tabIndex={0} aria-label={label} aria-orientation={vertical ? 'vertical' : 'horizontal'} aria-valuenow={value} aria-valuemin={120} aria-valuemax={900} class={`sep ${vertical ? 'v' : 'h'} ${flip ? 'p' : ''}`}
		onPointerDown={drag} onDblClick={() => set(reset)} onKeyDown={(e) => {
			const step = e.key === (vertical ? 'ArrowRight' : 'ArrowUp') ? 20 : e.key === (vertical ? 'ArrowLeft' : 'ArrowDown') ? -20 : 0
			if (step) { e.preventDefault(); set(value + (flip ? -step : step)) }
		}} />
}

function Tabs({ m }: { m: Model }) {
	const marks = { saved: '', dirty: '●', saving: '●', failed: '!', conflict: '!' }, words = t.ws.saved
	return <div class="tabs"><div role="tablist" aria-label={t.ws.openFiles} onKeyDown={(e) => { if (e.key === 'Delete' && m.active.value) m.close(m.active.value) }}>
		{m.tabs.value.map((d, i) => <div class={`tab ${m.active.value === d ? 'on' : ''}`} role="presentation" key={d.path}>
			<button role="tab" id={`tab-${i}`} aria-selected={m.active.value === d} aria-controls="editor-panel" tabIndex={m.active.value === d ? 0 : -1} title={shortPath(shown(d.path))} onClick={() => { m.active.value = d; m.remember() }}
				onAuxClick={(e) => { if (e.button === 1) m.close(d) }} onKeyDown={(e) => {
					const step = e.key === 'ArrowRight' ? 1 : e.key === 'ArrowLeft' ? -1 : 0
					if (!step) return
					const all = m.tabs.value, next = (i + step + all.length) % all.length
					m.active.value = all[next]!
					requestAnimationFrame(() => document.getElementById(`tab-${next}`)?.focus())
				}}><bdi>{shown(nameOf(d.path))}</bdi><span class={`mark ${d.saved.value}`} title={words[d.saved.value]}>{marks[d.saved.value]}<span class="hidden">{d.saved.value !== 'saved' ? words[d.saved.value] : ''}</span></span></button>
			<span class="closer" title={t.ws.closeTab(shown(nameOf(d.path)))} aria-hidden="true" onClick={() => m.close(d)}><Icon name="x" size={13} /></span>
		</div>)}
	</div>{m.active.value?.viewer && m.active.value.kind.value === 'text' && <ViewSwitch m={m} d={m.active.value} />}</div>
}

/** One editor for all tabs: each keeps its own state with its cursor and its history. */
function EditorPane({ m }: { m: Model }) {
	const place = useRef<HTMLDivElement>(null), [ready, setReady] = useState<Editor | null>(null), current = useRef<Document | null>(null)
	const d = m.active.value, kind = d?.kind.value, source = kind === 'text' && !(d!.viewer && d!.preview.value)
	useEffect(() => {
		let gone = false, made: Editor | null = null
		void loadEditor().then(({ Editor }) => {
			if (gone) return
			made = m.editor = new Editor(place.current!, {
				doc: '', language: 'text', label: t.quick.code, readOnly: !session.mayEdit.value,
				onChange: (text) => current.current?.change(text), onRun: () => { if (current.current) void m.run(current.current) }, onSave: () => void current.current?.save(),
				onCursor: (line, column) => { m.cursor.value = { line, column } },
			})
			setReady(made)
		})
		return () => { gone = true; if (current.current) current.current.editor = null; made?.destroy(); m.editor = null }
	}, [])
	useEffect(() => {
		if (!ready) return
		const old = current.current
		if (old && (old !== d || !source)) {
			old.state = ready.view.state
			old.editor = null
		}
		current.current = null
		if (d && source) {
			if (old !== d || d.editor !== ready) ready.show(d.state, d.text, d.language, d.shared?.attached ? d.shared.extension() : null)
			d.state = null
			d.editor = ready
			current.current = d
			if (m.goto?.path === d.path) { ready.goto(m.goto.line, m.goto.column); m.goto = null }
		}
	}, [ready, d, source])
	return <div class="editor-panel" id="editor-panel" role={d ? 'tabpanel' : undefined} aria-label={d ? shown(nameOf(d.path)) : undefined}>
		{d?.saved.value === 'conflict' && <Conflict d={d} />}
		{d?.saved.value === 'failed' && d.error.value && !d.error.value.offline && <div class="banner"><Icon name="triangle-alert" /><span>{t.ws.notSaved}: {d.error.value.message}</span><button class="small" onClick={() => d.retry()}>{t.retry}</button><CopyButton text={() => d.text} label={t.ws.copyText} /></div>}
		<div class="editor" ref={place} style={{ display: source ? undefined : 'none' }} />
		{d && kind === 'text' && !source && <ViewerPane key={d.path} m={m} d={d} />}
		{!d && <div class="state empty"><Icon name="files" size={28} /><p>{t.ws.noFile}</p><p class="dim">{t.ws.noFileHint}</p>{session.mayEdit.value && <button class="small" onClick={() => void m.newNotebook()}><Icon name="notebook" size={14} /><span>{t.nb.new}</span></button>}</div>}
		{kind === 'loading' && <Loading lines={5} />}
		{kind === 'error' && <ErrorState title={t.ws.cannotOpen(shown(nameOf(d!.path)))} error={d!.error.value!} retry={() => void d!.load()} />}
		{kind === 'image' && <div class="viewer"><img src={d!.address} alt={shown(nameOf(d!.path))} /></div>}
		{kind === 'binary' && <div class="viewer text" tabIndex={0} role="group" aria-label={shown(nameOf(d!.path))}><p class="dim">{t.ws.binary(bytes(d!.size.value))}</p><pre>{d!.head}</pre></div>}
		{kind === 'large' && <div class="state"><p>{t.ws.large(bytes(d!.size.value))}</p><button class="small" onClick={() => void m.files.download({ name: nameOf(d!.path), path: d!.path, type: 'file', size: d!.size.value, mode: '', mtime: '', etag: '' }).catch(failed)}><Icon name="download" size={14} /><span>{t.download}</span></button></div>}
	</div>
}

/** What a file shows instead of its source. Its code is loaded when it is first needed. */
function ViewerPane({ m, d }: { m: Model, d: Document }) {
	const [view, setView] = useState<{ V: typeof import('../workspace/Viewer').default } | null>(null), [away, setAway] = useState(false)
	useEffect(() => { import('../workspace/Viewer').then((x) => setView({ V: x.default }), () => setAway(true)) }, [])
	if (away) return <ErrorState title={t.ws.cannotOpen(shown(nameOf(d.path)))} error={new ApiError(0, 'unreachable', t.error.offlineWhy)} retry={() => location.reload()} />
	return view ? <view.V box={m.id} d={d} notebooks={m.notebooks} onPlace={(file, line, column) => m.open(file, line || undefined, column)} /> : <Loading lines={5} />
}

function ViewSwitch({ m, d }: { m: Model, d: Document }) {
	const name = { notebook: t.view.notebook, csv: t.view.table, json: t.view.tree, markdown: t.view.preview, html: t.view.preview }[d.viewer!]
	return <div class="langs view-switch push" role="radiogroup" aria-label={t.view.switch}>{([[false, t.view.source], [true, name]] as const).map(([on, label]) => <button role="radio" key={label} aria-checked={d.preview.value === on} tabIndex={d.preview.value === on ? 0 : -1} onClick={() => m.setPreview(d, on)} onKeyDown={(e) => {
		if (!['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown'].includes(e.key)) return
		m.setPreview(d, !d.preview.value)
		const group = e.currentTarget.parentElement!
		requestAnimationFrame(() => group.querySelector<HTMLElement>('[aria-checked=true]')?.focus())
	}}>{label}</button>)}</div>
}

function Conflict({ d }: { d: Document }) {
	const both = useSignal(false)
	return <div class="banner" role="alert"><Icon name="triangle-alert" /><span>{t.ws.conflict}</span>
		<button class="small" onClick={() => d.keepMine()}>{t.ws.keepMine}</button><button class="small" onClick={() => d.takeTheirs()}>{t.ws.takeTheirs}</button><button class="small" onClick={() => { both.value = true }}>{t.ws.compare}</button>
		{both.value && <Dialog wide title={t.ws.compare} onClose={() => { both.value = false }}><div class="compare"><div><h3>{t.ws.mine}</h3><pre tabIndex={0}>{d.text}</pre></div><div><h3>{t.ws.theirs}</h3><pre tabIndex={0}>{d.theirs.value?.text}</pre></div></div></Dialog>}
	</div>
}

function Panel({ m, b, alive }: { m: Model, b: Box, alive: boolean }) {
	const [pane, setPane] = useState<{ T: typeof import('../workspace/TerminalPane').default } | null>(null)
	const any = m.terms.value.length > 0, [monitor, setMonitor] = useState<{ M: typeof import('../workspace/Monitor').default } | null>(null)
	useEffect(() => { if (m.panel.value === 'monitor' && !monitor) void import('../workspace/Monitor').then((x) => setMonitor({ M: x.default })) }, [m.panel.value])
	const [net, setNet] = useState<{ N: typeof import('../workspace/NetworkPanel').default } | null>(null)
	useEffect(() => { if (m.panel.value === 'network' && !net) void import('../workspace/NetworkPanel').then((x) => setNet({ N: x.default })) }, [m.panel.value])
	useEffect(() => { if (any && !pane) void import('../workspace/TerminalPane').then((x) => setPane({ T: x.default })) }, [any])
	const problems = problemsOf(m.runs.value), servers = m.ports.list.value?.filter((p) => p.listening).length ?? 0
	const fixed: [string, string, number?][] = [['output', t.output.title], ['problems', t.problems.title, problems.length], ['ports', t.ports.title, servers], ['network', t.network.title, m.network.rules.value.value?.requests.length], ['monitor', t.monitor.title]]
	const tab = (id: string, name: string, close?: () => void, count?: number) => <div class={`tab ${m.panel.value === id ? 'on' : ''}`} role="presentation" key={id}>
		<button role="tab" aria-selected={m.panel.value === id} aria-controls="panel-body" tabIndex={m.panel.value === id ? 0 : -1} onClick={() => { m.panel.value = id }} onKeyDown={(e) => {
			const all = [...fixed.map((f) => f[0]), ...m.terms.value.map((x) => x.id)], step = e.key === 'ArrowRight' ? 1 : e.key === 'ArrowLeft' ? -1 : 0
			if (e.key === 'Delete' && close) close()
			if (step) { m.panel.value = all[(all.indexOf(id) + step + all.length) % all.length]!; ((e.currentTarget as Element).closest('[role=tablist]')!.querySelectorAll<HTMLElement>('[role=tab]')[all.indexOf(m.panel.value)])?.focus() }
		}}>{name}{count ? <span class="count">{count}</span> : null}</button>
		{close && <span class="closer" title={t.ws.closeTab(name)} aria-hidden="true" onClick={close}><Icon name="x" size={13} /></span>}
	</div>
	return <section class="panel" aria-label={t.ws.panel}>
		<div class="tabs"><div role="tablist" aria-label={t.ws.panel}>
			{fixed.map(([id, name, count]) => tab(id, name, undefined, count))}
			{m.terms.value.map((x) => tab(x.id, x.name, () => m.closeTerm(x)))}
			</div>
			<button class="small" onClick={() => void m.newTerminal()} disabled={!session.mayEdit.value || !alive} title={t.term.new}><Icon name="plus" size={14} /><span>{t.term.new}</span></button>
			<button class="plain push wide-720" aria-label={t.ws.hidePanel} title={t.ws.hidePanel} onClick={() => m.setLayout({ panelOn: false })}><Icon name="chevron-down" /></button>
		</div>
		<div class="panel-body" id="panel-body" role="tabpanel" aria-label={fixed.find((f) => f[0] === m.panel.value)?.[1] ?? m.terms.value.find((x) => x.id === m.panel.value)?.name}>
			<div class={m.panel.value === 'output' ? 'fill' : 'away'}><RunOutput runs={m.runs.value} onStop={(r) => m.stop(r)} onPlace={(file, line, column) => m.open(file.startsWith('/') ? file : `${HOME}/${file}`, line, column)} /></div>
			{m.panel.value === 'problems' && <div><Problems list={problems} onPlace={(file, line, column) => m.open(file, line, column)} /></div>}
			{m.panel.value === 'ports' && <div><PortList box={b.id} ports={m.ports} onOpen={(port) => m.showPort(port)} /></div>}
			{net && m.panel.value === 'network' && <div class="fill"><net.N network={m.network} shown alive={alive} /></div>}
			{monitor && <div class={m.panel.value === 'monitor' ? 'fill' : 'away'}><monitor.M b={b} shown={m.panel.value === 'monitor'} /></div>}
			{pane && m.terms.value.map((x) => <pane.T key={x.id} stream={x.stream} shown={m.panel.value === x.id} onEnd={() => m.termOver(x.id)} />)}
		</div>
	</section>
}

function Status({ b, m }: { b: Box, m: Model }) {
	const f = figures.value.get(b.id), cpu = f?.cpu[f.cpu.length - 1] ?? 0, d = m.active.value, ends = b.state === 'stopped' ? b.kept_until : b.ends
	return <footer class="status">
		<span class={`badge ${b.state}`}><span class="dot" aria-hidden="true" />{t.boxes.states[b.state] ?? b.state}</span>
		<TierBadge of={b} />
		{f && b.state === 'running' && <><span class="figure">{t.ws.cpu(Math.round(cpu * 100))}<Spark values={f.cpu} label={t.boxes.cpu} /></span><span>{t.ws.memory(bytes(f.mem), bytes(b.limits.mem))}</span></>}
		{ends && <span class="wide-only">{t.ws.ends(duration(Math.max(0, Date.parse(ends) - clock.value)))}</span>}
		<span class="push" />
		{d?.kind.value === 'text' && <>{!(d.viewer && d.preview.value) && <span>{t.ws.place(m.cursor.value.line, m.cursor.value.column)}</span>}<span>{d.viewer === 'notebook' ? t.view.notebook : d.language}</span><span role="status">{t.ws.saved[d.saved.value]}</span></>}
	</footer>
}

// ---- the page ----

export default function Workspace({ id }: { id: string }) {
	const of = useMemo(() => new Resource(() => api<Box>(boxPath(id))), [id])
	useEffect(() => void of.load(), [of, generation.value])
	const b = of.value.value, e = of.error.value, alive = useRef<Box | null>(null)
	if (b && b.state !== 'deleted') alive.current = b
	const why = b?.state === 'deleted' ? t.ws.endedBecause(titleOf(b), t.ws.causes[b.cause ?? ''] ?? b.cause ?? '') : e?.status === 404 ? e.message : ''
	if (alive.current) return <Inside b={alive.current} reload={() => void of.load()} ended={why} key={alive.current.id} />
	return <Shell title={id}><div class="page">{why ? <Ended title={b || e?.code === 'box_ended' ? t.ws.ended : t.ws.noBox} why={why} /> : e ? <ErrorState title={t.ws.cannotOpen(id)} error={e} retry={() => void of.load()} /> : <Loading lines={6} />}</div></Shell>
}

function Ended({ title, why }: { title: string, why: string }) {
	return <div class="state" role="alert"><Icon name="box" size={28} /><h1>{title}</h1><p>{why}</p>
		<p class="row"><button class="primary" onClick={() => void newBox().then((n) => go(`/b/${n.id}`), failed)} disabled={!session.mayEdit.value}>{t.boxes.new}</button><button onClick={() => go('/')}>{t.error.goHome}</button></p></div>
}

function Inside({ b, reload, ended }: { b: Box, reload: () => void, ended: string }) {
	const m = useMemo(() => new Model(b.id), [b.id]), l = m.layout.value
	const alive = !ended && b.state === 'running', d = m.active.value
	const running = useComputed(() => m.running), sharing = useSignal(false)

	useEffect(() => {
		void m.files.load(HOME)
		m.restore()
		void m.find()
		watch([b.id])
		const onBoxEvent = (ev: { type: string, box: string, data: any }) => {
			if (ev.box !== b.id) return
			if (ev.type.startsWith('box.')) reload()
			if (ev.type.startsWith('network.')) m.network.rules.soon()
			if (ev.type === 'network.request' && m.panel.peek() !== 'network')
				toast({ text: t.network.asked(titleOf(b), `${ev.data?.host}:${ev.data?.port}`), ms: 20000, action: { label: t.network.show, run: () => { m.panel.value = 'network'; m.setLayout({ panelOn: true }); m.pane.value = 'panel' } } })
		}
		eventListeners.add(onBoxEvent)
		const changes = socket.channel({
			open: () => ({ kind: 'fs', box: b.id, path: '', recursive: true }),
			message: (ev) => {
				if (ev.op !== 'event') return
				if (ev.type === 'overflow') { m.files.reload(); return }
				for (const p of [ev.path, ev.to]) {
					if (typeof p !== 'string' || !p) continue
					const path = p.startsWith('/') ? p : `${HOME}/${p}`
					if (ev.type !== 'write' && ev.type !== 'chmod') m.files.soon(parentOf(path))
					for (const doc of m.tabs.value) if (doc.path === path) void doc.changedOnDisk()
				}
			},
			over: () => {},
		})
		return () => {
			eventListeners.delete(onBoxEvent)
			changes.close()
			watch([])
			for (const nb of m.notebooks.values()) nb.close()
			for (const doc of m.tabs.value) doc.close()
			m.people.close()
		}
	}, [])
	// With a second person in the workspace, files are edited together.
	useSignalEffect(() => {
		if (!m.people.others.value.size) return
		for (const doc of m.tabs.value)
			if (doc.canBeShared && !doc.shared) void loadShared().then((make) => { if (!doc.shared && doc.canBeShared && m.tabs.peek().includes(doc)) doc.shared = new make(doc) })
	})
	useSignalEffect(() => m.people.setFile(m.active.value ? shortPath(m.active.value.path) : ''))
	useEffect(() => {
		if (!alive) return
		m.ports.start()
		return () => m.ports.stop()
	}, [alive])
	useEffect(() => { if (m.panel.value === 'ports' && alive) void m.ports.load() }, [m.panel.value])
	// After a loss: what was not saved is saved, what was not seen is read.
	useSignalEffect(() => {
		if (generation.value < 2) return
		untracked(() => {
			m.files.reload()
			for (const doc of m.tabs.value) { doc.retry(); void doc.changedOnDisk() }
			void m.find(false)
		})
	})
	useEffect(() => {
		const quit = (ev: BeforeUnloadEvent) => { if (m.tabs.value.some((x) => x.saved.value === 'failed' || x.saved.value === 'conflict')) ev.preventDefault() }
		const leave = () => { for (const x of m.tabs.value) x.leave() }
		addEventListener('beforeunload', quit)
		addEventListener('pagehide', leave)
		const keys = (ev: KeyboardEvent) => {
			const inTerm = (ev.target as Element).closest?.('.term') != null, mod = ev.ctrlKey || ev.metaKey
			if (mod && ev.key === '`') { if (ev.shiftKey || !m.terms.value.length) void m.newTerminal(); else { m.setLayout({ panelOn: true }); m.panel.value = m.terms.value[m.terms.value.length - 1]!.id } }
			else if (inTerm) return
			else if (mod && ev.shiftKey && ev.key.toLowerCase() === 'f') { m.setLayout({ sideOn: true }); m.side.value = 'search'; m.pane.value = 'files' }
			else if (mod && !ev.shiftKey && ev.key.toLowerCase() === 'p') paletteOpen.value = true
			else if (mod && ev.key === 'Enter' && !(ev.target as Element).closest?.('.cm-editor')) { if (m.active.value) void m.run(m.active.value) }
			else if (mod && ev.key === '.') { const r = m.running; if (r) m.stop(r) }
			else if (mod && !ev.shiftKey && ev.key.toLowerCase() === 'b') m.setLayout({ sideOn: !m.layout.value.sideOn })
			else if (mod && !ev.shiftKey && ev.key.toLowerCase() === 'j') m.setLayout({ panelOn: !m.layout.value.panelOn })
			else if (mod && ev.key.toLowerCase() === 's') void m.active.value?.save()
			else if (ev.altKey && ev.key.toLowerCase() === 'w') { if (m.active.value) m.close(m.active.value) }
			else if (ev.altKey && (ev.key === ',' || ev.key === '.')) { const all = m.tabs.value, at = all.indexOf(m.active.value!); if (all.length) m.active.value = all[(at + (ev.key === '.' ? 1 : -1) + all.length) % all.length]! }
			else return
			ev.preventDefault()
		}
		document.addEventListener('keydown', keys)
		return () => { removeEventListener('beforeunload', quit); removeEventListener('pagehide', leave); document.removeEventListener('keydown', keys) }
	}, [])
	useEffect(() => {
		pageCommands.value = [
			{ name: t.nb.new, icon: 'notebook', run: () => void m.newNotebook() },
			...(d ? [{ name: t.ws.runFile(shown(nameOf(d.path))), icon: 'play' as const, keys: 'Ctrl Enter', run: () => void m.run(d) }] : []),
			{ name: t.term.new, icon: 'terminal', keys: 'Ctrl `', run: () => void m.newTerminal() },
			{ name: t.search.title, icon: 'search', keys: 'Ctrl ⇧ F', run: () => { m.setLayout({ sideOn: true }); m.side.value = 'search'; m.pane.value = 'files' } },
			...([['packages', t.pkg.title, 'package'], ['env', t.env.title, 'braces']] as const).map(([id, name, icon]) => ({ name, icon, run: () => { m.setLayout({ sideOn: true }); m.side.value = id; m.pane.value = 'files' } })),
			{ name: t.share.button, icon: 'share-2', run: () => { sharing.value = true } },
			{ name: t.ws.toggleSide, icon: 'panel-left', keys: 'Ctrl B', run: () => m.setLayout({ sideOn: !m.layout.value.sideOn }) },
			{ name: t.ws.togglePanel, icon: 'panel-bottom', keys: 'Ctrl J', run: () => m.setLayout({ panelOn: !m.layout.value.panelOn }) },
			...m.files.rows().filter((r) => r.entry.type === 'file').slice(0, 500).map((r) => ({ name: shortPath(shown(r.entry.path)), icon: 'file' as const, run: () => m.open(r.entry.path) })),
		]
		return () => { pageCommands.value = [] }
	}, [d, m.files.folders.value])

	const clamp = (n: number, most: number) => Math.max(120, Math.min(n, most))
	const book = d?.viewer === 'notebook' && d.preview.value
	const runnable = d?.kind.value === 'text' && (book || (languages.value.value?.some((x) => x.name === d.language && x.here) ?? false))
	return <Shell title={titleOf(b)} status={<Status b={b} m={m} />}>
		<div class={`ws pane-${m.pane.value} ${l.sideOn ? '' : 'no-side'} ${l.panelOn ? '' : 'no-panel'} ${l.previewOn ? '' : 'no-preview'}`} style={{ '--side': `${l.side}px`, '--panel': `${l.panel}px`, '--preview': `${l.preview}px` }}>
			<div class="bar">
				<h1 class="hidden">{titleOf(b)}</h1>
				<button class="plain wide-720" aria-label={t.ws.toggleSide} aria-pressed={l.sideOn} title={`${t.ws.toggleSide} (Ctrl B)`} onClick={() => m.setLayout({ sideOn: !l.sideOn })}><Icon name="panel-left" /></button>
				{running.value ? <button class="stop" onClick={() => m.stop(running.value!)}><Icon name="square" size={14} /><span>{t.quick.stop}</span></button>
					: <button class="primary" disabled={!runnable || !session.mayEdit.value || !alive} onClick={() => void m.run(d!)} title={d && !runnable ? t.ws.notRunnable : undefined}><Icon name="play" size={14} /><span>{book ? t.nb.runAll : d && runnable ? t.ws.runFile(shown(nameOf(d.path))) : t.quick.run}</span></button>}
				<span class="dim wide-only">{b.name ? b.id : ''}</span>
				<span class="push" />
				<Faces people={m.people} />
				<button class="small" aria-haspopup="dialog" onClick={() => { sharing.value = true }}><Icon name="share-2" size={14} /><span>{t.share.button}</span></button>
				<button class="small" aria-pressed={l.previewOn} onClick={() => { m.setLayout({ previewOn: !l.previewOn }); m.pane.value = l.previewOn ? 'code' : 'preview' }}><Icon name="external-link" size={14} /><span>{t.preview.title}</span></button>
				<button class="plain wide-720" aria-label={t.ws.togglePanel} aria-pressed={l.panelOn} title={`${t.ws.togglePanel} (Ctrl J)`} onClick={() => m.setLayout({ panelOn: !l.panelOn })}><Icon name="panel-bottom" /></button>
				<Menu label={t.boxes.menu(titleOf(b))} items={[
					b.state === 'paused' ? { label: t.boxes.resume, icon: 'play', run: () => void act(b, 'resume').then(reload) } : { label: t.boxes.pause, icon: 'pause', run: () => void act(b, 'pause').then(reload), disabled: !alive },
					{ label: t.nb.new, icon: 'notebook', run: () => void m.newNotebook(), disabled: !session.mayEdit.value || !alive },
					{ label: t.ws.downloadAll, icon: 'download', run: () => void m.files.download({ name: titleOf(b), path: HOME, type: 'folder', size: 0, mode: '', mtime: '', etag: '' }).catch(failed) },
				]} />
			</div>
			{sharing.value && <ShareDialog b={b} people={m.people} onClose={() => { sharing.value = false }} />}
			{ended && <div class="banner ws-note" role="alert"><Icon name="triangle-alert" /><span>{ended} {t.ws.endedKept}</span></div>}
			{!ended && b.state === 'paused' && <div class="banner ws-note calm"><Icon name="pause" /><span>{t.ws.paused}</span><button class="small" onClick={() => void act(b, 'resume').then(reload)}>{t.boxes.resume}</button></div>}
			{!ended && b.state === 'stopped' && <div class="banner ws-note calm"><span>{t.ws.kept}</span></div>}
			<div class="side">{b.state === 'paused' ? <Empty text={t.ws.paused} /> : <>
				<div class="side-tabs" role="tablist" aria-label={t.ws.sideTabs}>{sides.map(([id, name, icon], i) => <button role="tab" key={id} id={`side-${id}`} aria-selected={m.side.value === id} aria-controls="side-body" title={name} tabIndex={m.side.value === id ? 0 : -1} onClick={() => { m.side.value = id }} onKeyDown={(e) => {
					const step = e.key === 'ArrowRight' ? 1 : e.key === 'ArrowLeft' ? -1 : 0
					if (!step) return
					m.side.value = sides[(i + step + sides.length) % sides.length]![0]
					document.getElementById(`side-${m.side.value}`)?.focus()
				}}><Icon name={icon} size={15} /><span class={m.side.value === id ? '' : 'hidden'}>{name}</span></button>)}</div>
				<div class="side-body" id="side-body" role="tabpanel" aria-labelledby={`side-${m.side.value}`}>{m.side.value === 'packages' ? <Later load={loadPackages} props={{ b, files: m.files, alive, run: (c, title) => m.command(c, title) }} /> : m.side.value === 'env' ? <Later load={loadVariables} props={{ box: b.id, alive }} /> : m.side.value === 'timeline' ? <Later load={loadTimeline} props={{ box: b.id, files: m.files, alive }} /> : m.side.value === 'search' ? <Search box={b.id} onOpen={(p, line, column) => m.open(p, line, column)} /> : <Tree files={m.files} active={d?.path ?? ''} onOpen={(p) => m.open(p)} onMoved={(x, y) => m.moved(x, y)} onRemoved={(p) => m.removed(p)} uploadMost={session.info.value?.limits.upload_bytes ?? 0} />}</div></>}</div>
			<Separator vertical value={l.side} set={(n) => m.setLayout({ side: clamp(n, 600) })} label={t.ws.resizeSide} reset={240} />
			<section class="center" aria-label={t.ws.editor}>{m.tabs.value.length > 0 && <Tabs m={m} />}<EditorPane m={m} /></section>
			<Separator value={l.panel} set={(n) => m.setLayout({ panel: clamp(n, 900) })} label={t.ws.resizePanel} reset={260} />
			<Panel m={m} b={b} alive={alive && connection.value === 'live'} />
			{l.previewOn && <><Separator vertical flip value={l.preview} set={(n) => m.setLayout({ preview: clamp(n, 1200) })} label={t.ws.resizePreview} reset={480} />
				<Preview box={b.id} initial={Number(query.peek().get('port') ?? 0)} want={m.want.value} onChange={() => { if (m.ports.list.value) void m.ports.load() }} onClose={() => { m.setLayout({ previewOn: false }); m.pane.value = 'code' }} /></>}
			<nav class="pane-bar" aria-label={t.ws.panes}>{([['files', 'files', t.files.title], ['code', 'code', t.quick.code], ['panel', 'terminal', t.ws.panel]] as const).map(([p, icon, name]) => <button key={p} aria-current={m.pane.value === p ? 'true' : undefined} onClick={() => { m.pane.value = p }}><Icon name={icon} size={18} /><span>{name}</span></button>)}</nav>
		</div>
	</Shell>
}
