// A notebook: the cells of an .ipynb file (nbformat 4) and the context of the box that runs them. The interpreter lives in the
// box: a reload finds it again, with the cell that runs and all its output.
import { signal } from '@preact/signals'
import { ApiError, api, box as boxPath, lines } from '../api'
import * as session from '../session'
import { generation } from '../socket'
import { local } from '../storage'
import { t } from '../texts'
import type { Document } from './documents'
import { HOME, parentOf } from './files'

export type Data = Record<string, unknown>
export interface StreamOutput { output_type: 'stream', name: 'stdout' | 'stderr', text: string }
export interface RichOutput { output_type: 'execute_result' | 'display_data', data: Data, metadata: Record<string, unknown>, execution_count?: number | null, display?: string }
export interface ErrorOutput { output_type: 'error', ename: string, evalue: string, traceback: string[] }
export type Output = StreamOutput | RichOutput | ErrorOutput
export type CellKind = 'code' | 'markdown' | 'raw'
export type KernelState = 'none' | 'starting' | 'idle' | 'busy' | 'dead'

const TIME_MS = 24 * 3600 * 1000 // a person looks at it, and has a button
const identifier = () => Math.random().toString(36).slice(2, 10)
const joined = (x: unknown) => Array.isArray(x) ? x.join('') : typeof x === 'string' ? x : ''
const split = (text: string) => text.match(/[^\n]*\n|[^\n]+/g) ?? []
const isJson = (type: string) => type === 'application/json' || type.endsWith('+json')
/** What a progress bar has overwritten is not kept. */
const withoutReturns = (text: string) => text.includes('\r') ? text.replace(/\r+\n/g, '\n').replace(/^.*\r(?=.)/gm, '') : text

export class Cell {
	readonly id: string
	readonly kind = signal<CellKind>('code')
	readonly outputs = signal<Output[]>([])
	readonly count = signal<number | null>(null)
	readonly state = signal<'' | 'waiting' | 'running'>('')
	readonly asks = signal<{ prompt: string, password: boolean } | null>(null)
	readonly took = signal(0) // milliseconds of the last run in this page
	readonly editing = signal(false) // of a Markdown cell: its source is shown
	readonly revision = signal(0) // grows when the source is changed elsewhere than in its editor
	fresh = false // it has results that are not in the file yet
	source = ''
	metadata: Record<string, unknown> = {}
	attachments: unknown
	constructor(kind: CellKind = 'code', source = '', id = identifier()) {
		this.id = id
		this.kind.value = kind
		this.source = source
	}
	get outcome(): 'ok' | 'bad' | '' { return this.outputs.value.some((o) => o.output_type === 'error') ? 'bad' : this.count.value !== null ? 'ok' : '' }
}

function readOutput(o: any): Output | null {
	if (o?.output_type === 'stream') return { output_type: 'stream', name: o.name === 'stderr' ? 'stderr' : 'stdout', text: joined(o.text) }
	if (o?.output_type === 'error') return { output_type: 'error', ename: String(o.ename ?? ''), evalue: String(o.evalue ?? ''), traceback: Array.isArray(o.traceback) ? o.traceback.map(String) : [] }
	if (o?.output_type !== 'execute_result' && o?.output_type !== 'display_data') return null
	const data: Data = {}
	for (const [type, v] of Object.entries(o.data ?? {})) data[type] = isJson(type) ? v : joined(v)
	return { output_type: o.output_type, data, metadata: o.metadata ?? {}, ...(o.output_type === 'execute_result' && { execution_count: o.execution_count ?? null }) }
}

function writeOutput(o: Output): unknown {
	if (o.output_type === 'stream') return { name: o.name, output_type: 'stream', text: split(withoutReturns(o.text)) }
	if (o.output_type === 'error') return { ename: o.ename, evalue: o.evalue, output_type: 'error', traceback: o.traceback }
	const data = Object.fromEntries(Object.entries(o.data).map(([type, v]) => [type, typeof v === 'string' && !type.startsWith('image/') || type === 'image/svg+xml' ? split(v as string) : v]))
	return { data, ...(o.output_type === 'execute_result' && { execution_count: o.execution_count ?? null }), metadata: o.metadata, output_type: o.output_type }
}

/** Our name of a language, and that of Jupyter's kernel specifications. */
const kernels: Record<string, { name: string, display_name: string, language: string }> = {
	python: { name: 'python3', display_name: 'Python 3', language: 'python' }, node: { name: 'javascript', display_name: 'JavaScript', language: 'javascript' },
	typescript: { name: 'typescript', display_name: 'TypeScript', language: 'typescript' }, bash: { name: 'bash', display_name: 'Bash', language: 'bash' },
	ruby: { name: 'ruby', display_name: 'Ruby', language: 'ruby' }, r: { name: 'ir', display_name: 'R', language: 'R' }, php: { name: 'php', display_name: 'PHP', language: 'php' },
	jshell: { name: 'java', display_name: 'Java (JShell)', language: 'java' },
}
export const notebookLanguages = Object.keys(kernels)
function languageOfMetadata(m: any): string {
	const name = String(m?.kernelspec?.language ?? m?.language_info?.name ?? 'python').toLowerCase()
	const ours = Object.entries(kernels).find(([, k]) => k.language.toLowerCase() === name)?.[0]
	return ours ?? (m?.kernelspec?.name ? `jupyter:${m.kernelspec.name}` : 'python')
}

export class Notebook {
	readonly cells = signal<Cell[]>([])
	readonly current = signal('') // the id of the selected cell
	readonly kernel = signal<KernelState>('none')
	readonly version = signal('')
	readonly language = signal('python')
	readonly problem = signal('') // why this is not a notebook
	readonly failure = signal<ApiError | null>(null) // of the interpreter
	private metadata: Record<string, unknown> = {}
	private context = ''
	private queue: Cell[] = []
	private active: Cell | null = null
	private known: string | null = null // the text that the cells were read from, or written to
	private timer: ReturnType<typeof setTimeout> | undefined
	private closed = new AbortController()
	private starting: Promise<string> | null = null

	constructor(readonly box: string, readonly doc: Document) {
		doc.flush = () => { if (this.timer) this.write() }
		doc.onText = () => this.read()
		this.read()
		void this.attach()
	}

	// ---- the file ----

	/** The cells of the file; cells that are shown already stay the same objects. */
	read() {
		const text = this.doc.text
		if (text === this.known) return
		this.known = text
		let file: any
		try { file = text.trim() ? JSON.parse(text) : { cells: [], metadata: {}, nbformat: 4 } } catch (e) { this.problem.value = (e as Error).message; return }
		if (!Array.isArray(file?.cells) || file.nbformat !== 4) { this.problem.value = file?.nbformat ? t.nb.oldFormat(String(file.nbformat)) : t.nb.noNotebook; return }
		this.problem.value = ''
		this.metadata = file.metadata ?? {}
		this.language.value = languageOfMetadata(this.metadata)
		const old = new Map(this.cells.value.map((c) => [c.id, c])), seen = new Set<string>()
		const cells: Cell[] = file.cells.map((x: any, i: number) => {
			const id = typeof x.id === 'string' && !seen.has(x.id) ? x.id : this.cells.value[i] && !seen.has(this.cells.value[i]!.id) && typeof x.id !== 'string' ? this.cells.value[i]!.id : identifier()
			seen.add(id)
			const c = old.get(id) ?? new Cell('code', '', id), source = joined(x.source)
			c.kind.value = x.cell_type === 'markdown' ? 'markdown' : x.cell_type === 'raw' ? 'raw' : 'code'
			c.metadata = x.metadata ?? {}
			c.attachments = x.attachments
			if (c.source !== source) { c.source = source; c.revision.value++ }
			if (!c.state.value && !c.fresh) {
				c.count.value = typeof x.execution_count === 'number' ? x.execution_count : null
				c.outputs.value = (x.outputs ?? []).map(readOutput).filter(Boolean)
			}
			return c
		})
		this.cells.value = cells.length ? cells : [new Cell()]
		if (!this.cells.value.some((c) => c.id === this.current.value)) this.current.value = this.cells.value[0]!.id
	}

	text(): string {
		const cells = this.cells.value.map((c) => ({
			...(c.attachments !== undefined && { attachments: c.attachments }), cell_type: c.kind.value,
			...(c.kind.value === 'code' && { execution_count: c.count.value }), id: c.id, metadata: c.metadata,
			...(c.kind.value === 'code' && { outputs: c.outputs.value.map(writeOutput) }), source: split(c.source),
		}))
		const k = kernels[this.language.value]
		const metadata = { ...this.metadata, ...(k && { kernelspec: k, language_info: { ...(this.metadata.language_info as object), name: k.language } }) }
		return JSON.stringify({ cells, metadata, nbformat: 4, nbformat_minor: 5 }, null, 1) + '\n'
	}

	/** Something changed: the file follows soon, and once for many changes. */
	touch(ms = 250) {
		if (!session.mayEdit.value) return
		if (this.doc.saved.value === 'saved') this.doc.saved.value = 'dirty'
		this.timer ??= setTimeout(() => this.write(), ms)
	}
	private write() {
		clearTimeout(this.timer)
		this.timer = undefined
		if (this.doc.text !== this.known) this.read() // its source was edited meanwhile
		if (this.problem.value) return
		this.known = this.text()
		for (const c of this.cells.value) c.fresh = false
		this.doc.change(this.known)
		this.doc.editor?.replaceDoc(this.known)
	}

	// ---- cells ----

	find(id: string) { return this.cells.value.find((c) => c.id === id) }
	index(c: Cell) { return this.cells.value.indexOf(c) }
	select(c: Cell | undefined) { if (c) this.current.value = c.id }
	insert(at: number, kind: CellKind): Cell {
		const c = new Cell(kind)
		c.editing.value = kind === 'markdown'
		this.cells.value = [...this.cells.value.slice(0, at), c, ...this.cells.value.slice(at)]
		this.select(c)
		this.touch()
		return c
	}
	/** Returns what brings it back. */
	remove(c: Cell): () => void {
		const at = this.index(c)
		if (c.state.value === 'running') void this.interrupt()
		this.queue = this.queue.filter((x) => x !== c)
		const rest = this.cells.value.filter((x) => x !== c)
		this.cells.value = rest.length ? rest : [new Cell()]
		this.select(this.cells.value[Math.min(at, this.cells.value.length - 1)])
		this.touch()
		return () => {
			this.cells.value = [...this.cells.value.slice(0, at), c, ...this.cells.value.slice(at)]
			this.select(c)
			this.touch()
		}
	}
	move(c: Cell, by: 1 | -1) {
		const all = [...this.cells.value], at = all.indexOf(c), to = at + by
		if (to < 0 || to >= all.length) return
		all.splice(at, 1)
		all.splice(to, 0, c)
		this.cells.value = all
		this.touch()
	}
	setKind(c: Cell, kind: CellKind) {
		c.kind.value = kind
		c.editing.value = kind === 'markdown'
		if (kind !== 'code') { c.outputs.value = []; c.count.value = null }
		this.touch()
	}
	clearOutputs() {
		for (const c of this.cells.value) if (!c.state.value) { c.outputs.value = []; c.count.value = null }
		this.touch()
	}

	// ---- the interpreter ----

	private get path() { return `${boxPath(this.box)}/contexts` }
	private get store() { return `kernel.${this.box}.${this.doc.path}` }
	private remember(running?: { cell: string, number: number }) {
		local.set(this.store, JSON.stringify({ context: this.context, running, queue: this.queue.map((c) => c.id) }))
	}

	/** The context that this notebook had before the page was loaded, and the cell that it runs. */
	private async attach() {
		let kept: any
		try { kept = JSON.parse(local.get(this.store) ?? 'null') } catch { /* none */ }
		if (typeof kept?.context !== 'string' || !kept.context) return
		try {
			const c = await api<any>(`${this.path}/${kept.context}`)
			this.context = c.id
			this.version.value = c.version ?? ''
			this.kernel.value = c.state === 'dead' ? 'dead' : c.state === 'busy' ? 'busy' : 'idle'
			const cell = kept.running && this.find(kept.running.cell)
			this.queue = (kept.queue ?? []).map((id: string) => this.find(id)).filter(Boolean)
			for (const x of this.queue) x.state.value = 'waiting'
			if (cell) {
				this.active = cell
				cell.state.value = 'running'
				await this.follow(cell, null, kept.running.number)
			}
			void this.pump()
		} catch { local.remove(this.store) }
	}

	private start(): Promise<string> {
		if (this.context && this.kernel.value !== 'dead') return Promise.resolve(this.context)
		return this.starting ??= (async () => {
			this.kernel.value = 'starting'
			this.failure.value = null
			try {
				const c = this.context ? await api<any>(`${this.path}/${this.context}/restart`, { method: 'POST' })
					: await api<any>(this.path, { body: { language: this.language.value, cwd: this.doc.path.startsWith(HOME + '/') ? parentOf(this.doc.path) : HOME } })
				this.context = c.id
				this.version.value = c.version ?? ''
				this.kernel.value = 'idle'
				this.remember()
				return c.id as string
			} catch (e) {
				this.kernel.value = this.context ? 'dead' : 'none'
				if (e instanceof ApiError && e.status === 404) this.context = ''
				this.failure.value = e as ApiError
				throw e
			} finally { this.starting = null }
		})()
	}

	run(...cells: Cell[]) {
		this.failure.value = null
		for (const c of cells) {
			if (c.kind.value === 'markdown') { c.editing.value = false; continue }
			if (c.kind.value !== 'code' || c.state.value) continue
			c.state.value = 'waiting'
			this.queue.push(c)
		}
		void this.pump()
	}
	runAll() { this.run(...this.cells.value) }

	private async pump() {
		while (!this.active && this.queue.length && !this.closed.signal.aborted) {
			const cell = this.queue.shift()!
			if (!cell.source.trim()) { cell.state.value = ''; cell.outputs.value = []; cell.count.value = null; this.touch(); continue }
			this.active = cell
			try { await this.start() } catch { this.active = null; cell.state.value = ''; this.drop(); return }
			await this.follow(cell, cell.source, 0)
			if (cell.outcome === 'bad') this.drop()
		}
	}
	/** Of cells that wait, none is started. */
	private drop() {
		for (const c of this.queue) c.state.value = ''
		this.queue = []
	}

	/** Runs a cell and reads its events until the end, whatever happens to the connection; without source: of a cell that runs. */
	private async follow(cell: Cell, source: string | null, number: number) {
		let place = '', over = false
		const signal = this.closed.signal
		const event = (e: any) => {
			if (e.at) place = e.at
			if (e.type === 'start') { number = e.cell; cell.count.value = number; this.remember({ cell: cell.id, number }) }
			if (e.type === 'end') over = true
			this.take(cell, e, number)
		}
		cell.state.value = 'running'
		cell.fresh = true
		cell.outputs.value = []
		cell.count.value = number || null
		this.kernel.value = 'busy'
		while (!over && !signal.aborted) {
			const seen = generation.peek()
			try {
				if (source !== null) {
					const code = source
					source = null
					await lines(`${this.path}/${this.context}/cells`, { body: { code, input: true, timeout_ms: TIME_MS }, signal }, event)
				} else if (number) await lines(`${this.path}/${this.context}/cells/${number}/events?${new URLSearchParams(place ? { after: place } : {})}`, { signal }, event)
				else throw new ApiError(0, 'unreachable', t.nb.lostStart)
				if (!over) throw new ApiError(0, 'unreachable', t.record.lost)
			} catch (e) {
				if (signal.aborted) break
				if (e instanceof ApiError && e.offline && number) { await connected(seen, signal); continue }
				const message = e instanceof ApiError ? [e.message, e.why].filter(Boolean).join(': ') : String(e)
				if (e instanceof ApiError && (e.status === 404 || e.status === 409)) { this.kernel.value = 'dead'; if (e.status === 404) this.context = '' }
				cell.outputs.value = [...cell.outputs.value, { output_type: 'error', ename: t.nb.notRun, evalue: message, traceback: [] }]
				break
			}
		}
		if (signal.aborted) return // another page reads on
		cell.state.value = ''
		cell.fresh = true
		cell.asks.value = null
		this.active = null
		if (this.kernel.value === 'busy') this.kernel.value = 'idle'
		this.remember()
		this.touch(0)
	}

	private take(cell: Cell, e: any, number: number) {
		const out = cell.outputs.value, last = out[out.length - 1]
		if (e.type === 'stdout' || e.type === 'stderr') {
			const text = e.data ?? new TextDecoder().decode(Uint8Array.from(atob(e.base64 ?? ''), (c) => c.charCodeAt(0)))
			if (last?.output_type === 'stream' && last.name === e.type) cell.outputs.value = [...out.slice(0, -1), { ...last, text: last.text + text }]
			else cell.outputs.value = [...out, { output_type: 'stream', name: e.type, text }]
		} else if (e.type === 'result') {
			const shown: RichOutput = { output_type: e.main ? 'execute_result' : 'display_data', data: e.data, metadata: {}, display: e.extra?.display_id, ...(e.main && { execution_count: number }) }
			if (e.extra?.update) { // of a result that was shown before, in any cell
				for (const c of this.cells.value) if (c.outputs.value.some((o) => 'display' in o && o.display === shown.display)) c.outputs.value = c.outputs.value.map((o) => 'display' in o && o.display === shown.display ? { ...o, data: e.data } : o)
			} else cell.outputs.value = [...out, shown]
		} else if (e.type === 'error') cell.outputs.value = [...out, { output_type: 'error', ename: e.name, evalue: e.value, traceback: String(e.text ?? '').split('\n') }]
		else if (e.type === 'input') cell.asks.value = { prompt: e.prompt ?? '', password: !!e.password }
		else if (e.type === 'end') {
			cell.took.value = (e.duration_us ?? 0) / 1000
			if (e.status === 'killed' || e.status === 'died' || e.status === 'dropped') {
				cell.outputs.value = [...out, { output_type: 'error', ename: t.nb.ends[e.cause] ?? t.nb.ends.died!, evalue: [e.message, e.hint].filter(Boolean).join(' '), traceback: [] }]
				if (e.cause !== 'restart') this.kernel.value = 'dead'
			} else if (e.status === 'interrupted' && e.cause === 'timeout') cell.outputs.value = [...out, { output_type: 'error', ename: t.nb.ends.timeout!, evalue: e.message ?? '', traceback: [] }]
			if (e.truncated) cell.outputs.value = [...cell.outputs.value, { output_type: 'stream', name: 'stderr', text: t.nb.truncated + '\n' }]
		}
		cell.fresh = true
		if (e.type !== 'start') this.touch(1000)
	}

	async answer(cell: Cell, text: string | null) {
		cell.asks.value = null
		if (text !== null) this.take(cell, { type: 'stdout', data: text + '\n' }, 0)
		await api(`${this.path}/${this.context}/input`, { body: text === null ? { end: true } : { text } })
	}
	async interrupt() {
		this.drop()
		if (this.context && this.active) await api(`${this.path}/${this.context}/interrupt`, { method: 'POST' }).catch((e) => { if (e.status !== 409) throw e })
	}
	async restart() {
		this.drop()
		if (!this.context) return
		this.kernel.value = 'starting'
		try {
			await api(`${this.path}/${this.context}/restart`, { method: 'POST' })
			this.kernel.value = 'idle'
			this.failure.value = null
			for (const c of this.cells.value) if (!c.state.value) c.count.value = null
			this.touch()
		} catch (e) { this.kernel.value = 'dead'; this.failure.value = e as ApiError }
	}
	async shutDown() {
		this.drop()
		const c = this.context
		this.context = ''
		this.kernel.value = 'none'
		local.remove(this.store)
		if (c) await api(`${this.path}/${c}`, { method: 'DELETE' })
	}
	async setLanguage(name: string) {
		await this.shutDown().catch(() => {})
		this.language.value = name
		if (!kernels[name]) this.metadata = { ...this.metadata, kernelspec: { name: name.replace(/^jupyter:/, ''), display_name: name, language: name.replace(/^jupyter:/, '') } }
		this.touch()
	}
	/** The tab is closed; the interpreter and the running cell continue in the box. */
	close() {
		if (this.timer) this.write()
		this.closed.abort()
		this.doc.flush = this.doc.onText = null
	}
	get busy() { return this.kernel.value === 'busy' || this.kernel.value === 'starting' }
}

/** After the next connection that is made; the socket tries for it. */
function connected(seen: number, signal: AbortSignal): Promise<void> {
	return new Promise((done) => {
		const timer = setTimeout(end, 5000) // the socket may not have noticed the loss
		const undo = generation.subscribe((g) => { if (g > seen) queueMicrotask(end) })
		signal.addEventListener('abort', end, { once: true })
		function end() { clearTimeout(timer); undo(); done() }
	})
}
