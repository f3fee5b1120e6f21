// The view of a notebook: cells with their editors and results, and the interpreter that runs them.
import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Editor } from '../editor/editor'
import { duration } from '../format'
import { Icon, type IconName } from '../icons'
import { ErrorState, Menu, failed } from '../parts/basics'
import { loadEditor } from '../parts/CodeEditor'
import { OutputPane } from '../parts/output'
import * as session from '../session'
import { languages } from '../store'
import { t } from '../texts'
import { toast } from '../toasts'
import { HOME, nameOf, parentOf, shown } from './files'
import { Frame } from './Frame'
import { Json } from './Json'
import { Markdown } from './LazyMarkdown'
import { notebookLanguages, type Cell, type Notebook as Model, type Output, type RichOutput } from './cells'

type OnPlace = (file: string, line: number, column: number) => void

// ---- results ----

/** Text that grows at its end, with colours and links to files; the pane keeps its last lines. */
function Text({ text, err, onPlace }: { text: string, err: boolean, onPlace: OnPlace }) {
	const place = useRef<HTMLDivElement>(null), pane = useRef<{ pane: OutputPane, text: string } | null>(null)
	useLayoutEffect(() => {
		if (pane.current && !text.startsWith(pane.current.text)) { pane.current.pane.clear(); pane.current.text = '' }
		pane.current ??= { pane: new OutputPane(place.current!, onPlace), text: '' }
		pane.current.pane.add(err ? 1 : 0, text.slice(pane.current.text.length))
		pane.current.text = text
	}, [text])
	return <div class="cell-text scroll" tabIndex={0} role="group" aria-label={err ? t.output.stderr : t.output.title}><div class="out" ref={place} /></div>
}

const pictures = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']
function Rich({ o, nb, onPlace }: { o: RichOutput, nb: NotebookFiles, onPlace: OnPlace }) {
	const d = o.data, plain = typeof d['text/plain'] === 'string' ? d['text/plain'] as string : ''
	const picture = pictures.find((type) => typeof d[type] === 'string')
	if (typeof d['text/html'] === 'string') return <Frame html={d['text/html']} title={t.nb.html} />
	if (typeof d['text/markdown'] === 'string') return <Markdown text={d['text/markdown']} onFile={nb.onFile} image={nb.image} />
	if (typeof d['image/svg+xml'] === 'string') return <img class="figure" src={`data:image/svg+xml;charset=utf-8,${encodeURIComponent(d['image/svg+xml'])}`} alt={plain || t.nb.picture} />
	if (picture) return <img class="figure" src={`data:${picture};base64,${(d[picture] as string).replace(/\s/g, '')}`} alt={plain || t.nb.picture} />
	if (typeof d['application/javascript'] === 'string') return <Frame html={`<script>${(d['application/javascript']).replace(/<\/script/gi, '<\\/script')}</script>`} title={t.nb.html} />
	if (d['application/json'] !== undefined) return <Json value={d['application/json']} />
	const text = plain || String(d['text/latex'] ?? Object.values(d).find((v) => typeof v === 'string') ?? '')
	return <Text text={text} err={false} onPlace={onPlace} />
}

interface NotebookFiles { onFile: (path: string) => void, image: (path: string) => Promise<string> }

function Result({ o, nb, onPlace }: { o: Output, nb: NotebookFiles, onPlace: OnPlace }) {
	if (o.output_type === 'stream') return <Text text={o.text} err={o.name === 'stderr'} onPlace={onPlace} />
	if (o.output_type !== 'error') return <Rich o={o} nb={nb} onPlace={onPlace} />
	const text = o.traceback.join('\n').trimEnd()
	return <div class="cell-error"><p><Icon name="circle-x" size={14} /><span><strong>{o.ename}</strong>{o.evalue && <>: {o.evalue}</>}</span></p>{text && <Text text={text} err onPlace={onPlace} />}</div>
}

function Question({ nb, cell }: { nb: Model, cell: Cell }) {
	const ask = cell.asks.value!, field = useRef<HTMLInputElement>(null)
	useLayoutEffect(() => field.current?.focus(), [])
	return <form class="cell-ask" onSubmit={(e) => { e.preventDefault(); nb.answer(cell, field.current!.value).catch(failed) }}>
		<label>{ask.prompt || t.nb.input}<input ref={field} type={ask.password ? 'password' : 'text'} autocomplete="off" /></label>
		<button class="small primary" type="submit">{t.nb.send}</button><button class="small" type="button" onClick={() => void nb.answer(cell, null).catch(failed)}>{t.nb.endInput}</button>
	</form>
}

// ---- one cell ----

/** A picture that is in the cell itself. */
function attachment(cell: Cell, path: string): Promise<string> | null {
	if (!path.startsWith('attachment:')) return null
	const data = (cell.attachments as Record<string, Record<string, string>> | undefined)?.[decodeURIComponent(path.slice('attachment:'.length))] ?? {}, type = pictures.find((p) => data[p])
	return type ? Promise.resolve(`data:${type};base64,${data[type]}`) : Promise.reject(new Error(path))
}

const editorLanguage: Record<string, string> = { jshell: 'java' }

interface CellProps { nb: Model, cell: Cell, number: number, focusOn: { value: string }, onPlace: OnPlace, files: NotebookFiles }

function CellView({ nb, cell, number, focusOn, onPlace, files }: CellProps) {
	const root = useRef<HTMLElement>(null), place = useRef<HTMLDivElement>(null), editor = useRef<Editor | null>(null), [near, setNear] = useState(number < 12)
	const kind = cell.kind.value, may = session.mayEdit.value, source = kind !== 'markdown' || cell.editing.value, on = nb.current.value === cell.id, state = cell.state.value
	const language = kind === 'markdown' ? 'markdown' : kind === 'raw' ? 'text' : editorLanguage[nb.language.value] ?? nb.language.value.replace(/^jupyter:/, '').replace(/^python3$/, 'python')
	const act = useRef(actions), last = useRef('')
	act.current = actions

	function actions(what: string) {
		const all = nb.cells.value, at = all.indexOf(cell)
		const to = (c: Cell | undefined, edit = false) => { if (c) { nb.select(c); focusOn.value = (edit ? 'edit ' : 'cell ') + c.id } }
		if (what === 'run') nb.run(cell)
		else if (what === 'next') { nb.run(cell); to(all[at + 1] ?? nb.insert(all.length, 'code'), at + 1 === all.length) }
		else if (what === 'insert') { nb.run(cell); to(nb.insert(at + 1, 'code'), true) }
		else if (what === 'above') to(nb.insert(at, 'code'), true)
		else if (what === 'below') to(nb.insert(at + 1, kind === 'markdown' ? 'markdown' : 'code'), true)
		else if (what === 'up') to(all[at - 1])
		else if (what === 'down') to(all[at + 1])
		else if (what === 'move up') { nb.move(cell, -1); to(cell) }
		else if (what === 'move down') { nb.move(cell, 1); to(cell) }
		else if (what === 'code' || what === 'markdown') { nb.setKind(cell, what); to(cell, what === 'markdown') }
		else if (what === 'edit') { if (kind === 'markdown') cell.editing.value = true; to(cell, true) }
		else if (what === 'leave') root.current?.focus()
		else if (what === 'remove') {
			const back = nb.remove(cell)
			to(nb.find(nb.current.value))
			toast({ text: t.nb.removed, ms: 10000, action: { label: t.undo, run: back } })
		}
	}

	// An editor for cells that are seen, or were.
	useEffect(() => {
		if (near) return
		const seen = new IntersectionObserver((e) => { if (e.some((x) => x.isIntersecting)) setNear(true) }, { rootMargin: '400px' })
		seen.observe(root.current!)
		return () => seen.disconnect()
	}, [near])
	useEffect(() => {
		if (!near || !source) return
		let gone = false
		void loadEditor().then(({ Editor }) => {
			if (gone) return
			place.current!.textContent = ''
			editor.current = new Editor(place.current!, {
				doc: cell.source, language, label: t.nb.source(number + 1), readOnly: !may, small: true,
				onChange: (text) => { cell.source = text; nb.touch() }, onSave: () => { nb.touch(0); void nb.doc.save() },
				keys: [{ key: 'Mod-Enter', run: () => act.current('run') }, { key: 'Shift-Enter', run: () => act.current('next') }, { key: 'Alt-Enter', run: () => act.current('insert') }, { key: 'Escape', run: () => act.current('leave') }],
			})
			if (focusOn.value === `edit ${cell.id}`) { focusOn.value = ''; editor.current.focus() }
		})
		return () => { gone = true; editor.current?.destroy(); editor.current = null }
	}, [near, source, language])
	useEffect(() => { if (editor.current && editor.current.doc !== cell.source) editor.current.replaceDoc(cell.source) }, [cell.revision.value])
	useEffect(() => {
		if (!on || !focusOn.value.endsWith(cell.id)) return
		if (focusOn.value.startsWith('cell')) { focusOn.value = ''; root.current!.focus({ preventScroll: true }); root.current!.scrollIntoView({ block: 'nearest' }) }
		else if (editor.current) { focusOn.value = ''; editor.current.focus() }
	})
	// A link to a line of this cell.
	useEffect(() => {
		const goto = (e: Event) => { const [id, line] = (e as CustomEvent).detail; if (id === cell.id) { root.current!.scrollIntoView({ block: 'nearest' }); editor.current?.goto(line) } }
		document.addEventListener('atoll-cell', goto)
		return () => document.removeEventListener('atoll-cell', goto)
	}, [])

	const keys = (e: KeyboardEvent) => {
		if (e.target !== root.current) return
		const mod = e.ctrlKey || e.metaKey, k = e.key
		const what = k === 'Enter' ? (e.shiftKey ? 'next' : mod ? 'run' : e.altKey ? 'insert' : 'edit') : mod ? '' : k === 'ArrowUp' ? (e.altKey ? 'move up' : 'up') : k === 'ArrowDown' ? (e.altKey ? 'move down' : 'down')
			: e.altKey ? '' : k === 'k' ? 'up' : k === 'j' ? 'down' : k === 'a' ? 'above' : k === 'b' ? 'below' : k === 'm' ? 'markdown' : k === 'y' ? 'code' : k === 'd' && last.current === 'd' ? 'remove' : k === 'Delete' ? 'remove' : ''
		last.current = k
		if (!what || (!may && !['up', 'down'].includes(what))) { if (k === 'd') e.stopPropagation(); return }
		e.preventDefault()
		e.stopPropagation()
		actions(what)
	}
	const button = (what: string, icon: IconName, label: string, disabled = false) => <button class="plain" aria-label={label} title={label} disabled={disabled || !may} onClick={(e) => { e.stopPropagation(); actions(what) }}><Icon name={icon} size={14} /></button>
	const n = state === 'running' ? '*' : state === 'waiting' ? '…' : cell.count.value ?? ' '
	const end = nb.cells.value.length - 1
	return <section class={`nb-cell ${kind} ${on ? 'on' : ''} ${state} ${source ? 'source' : ''} ${state ? '' : cell.outcome}`} ref={root} tabIndex={0} aria-label={t.nb.cell(number + 1, t.nb.kinds[kind])} onKeyDown={keys} onFocusCapture={() => { if (!on) nb.current.value = cell.id }} onPointerDown={() => { if (!on) nb.current.value = cell.id }}>
		<div class="gutter">
			{kind === 'code' ? <><button class="plain run" aria-label={state ? t.nb.interrupt : t.nb.runCell} title={state ? t.nb.interrupt : `${t.nb.runCell} (Ctrl Enter)`} disabled={!may} onClick={() => state ? void nb.interrupt().catch(failed) : actions('run')}><Icon name={state ? 'square' : 'play'} size={13} /></button><span class="count" aria-hidden="true">[{n}]</span></> : <span class="count" aria-hidden="true">{kind === 'markdown' ? 'M↓' : ''}</span>}
		</div>
		<div class="cell-main">
			<div class="cell-tools" role="group" aria-label={t.nb.tools(number + 1)}>
				{kind === 'markdown' && (cell.editing.value ? button('run', 'check', t.nb.showMarkdown) : button('edit', 'pencil', t.nb.editMarkdown))}
				{button(kind === 'code' ? 'markdown' : 'code', kind === 'code' ? 'pilcrow' : 'code', kind === 'code' ? t.nb.toMarkdown : t.nb.toCode)}
				{button('move up', 'chevron-up', t.nb.up, number === 0)}{button('move down', 'chevron-down', t.nb.down, number === end)}{button('below', 'plus', t.nb.below)}{button('remove', 'trash-2', t.nb.remove)}
			</div>
			{source ? <div class="cell-editor" ref={place}><pre class="cell-wait" aria-hidden="true">{cell.source || ' '}</pre></div>
				: <div class="cell-markdown" onDblClick={() => { if (may) actions('edit') }}>{cell.source.trim() ? <Markdown text={cell.source} onFile={files.onFile} image={(path) => attachment(cell, path) ?? files.image(path)} /> : <p class="dim">{t.nb.emptyMarkdown}</p>}</div>}
			{kind === 'code' && (cell.outputs.value.length > 0 || cell.asks.value) && <div class="outputs">{cell.outputs.value.map((o, i) => <Result key={i} o={o} nb={files} onPlace={onPlace} />)}{cell.asks.value && <Question nb={nb} cell={cell} />}</div>}
			{kind === 'code' && !state && cell.took.value >= 100 && <span class="took dim">{duration(cell.took.value)}</span>}
		</div>
	</section>
}

// ---- the whole ----

export default function Notebook({ nb, onPlace }: { nb: Model, onPlace: OnPlace }) {
	const focusOn = useRef({ value: '' }), busy = useSignal(false), may = session.mayEdit.value, dir = parentOf(nb.doc.path)
	const absolute = (path: string) => path.startsWith('/') ? path : `${dir === '/' ? '' : dir}/${decodeURIComponent(path)}`
	const files: NotebookFiles = {
		onFile: (path) => onPlace(absolute(path), 0, 0),
		image: async (path) => { const { bytes, type } = await nb.doc.files.read(absolute(path)); return URL.createObjectURL(new Blob([bytes as BlobPart], { type: /\.svg$/i.test(path) ? 'image/svg+xml' : type })) },
	}
	useEffect(() => nb.read(), [nb]) // the source may have been changed meanwhile
	const place: OnPlace = (file, line, column) => {
		const n = file.match(/^<cell (\d+)>$/)?.[1], c = n && nb.cells.value.find((x) => x.count.value === Number(n))
		if (c) { nb.select(c); document.dispatchEvent(new CustomEvent('atoll-cell', { detail: [c.id, line] })) }
		else if (!n) onPlace(file.startsWith('/') ? file : `${HOME}/${file}`, line, column)
	}
	if (nb.problem.value) return <div class="state" role="alert"><Icon name="triangle-alert" size={20} /><p><strong>{t.nb.invalid(shown(nameOf(nb.doc.path)))}</strong></p><p>{nb.problem.value}</p><button class="small" onClick={() => { nb.doc.preview.value = false }}>{t.view.showSource}</button></div>
	const cell = nb.find(nb.current.value), k = nb.kernel.value
	const here = notebookLanguages.filter((n) => n === nb.language.value || n === 'python' || languages.value.value?.some((l) => l.name === (n === 'jshell' ? 'java' : n) && l.here))
	const during = async (f: () => Promise<unknown>) => { busy.value = true; await f().catch(failed); busy.value = false }
	const add = (kind: 'code' | 'markdown') => { const c = nb.insert(cell ? nb.index(cell) + 1 : nb.cells.value.length, kind); focusOn.current.value = `edit ${c.id}` }
	return <div class="notebook">
		<div class="nb-bar" role="toolbar" aria-label={t.nb.toolbar}>
			<button class="small" disabled={!may || !cell} onClick={() => cell && nb.run(cell)} title="Ctrl Enter"><Icon name="play" size={13} /><span>{t.nb.runCell}</span></button>
			<button class="small" disabled={!may} onClick={() => nb.runAll()}><Icon name="fast-forward" size={13} /><span>{t.nb.runAll}</span></button>
			<button class="small" disabled={!may || !nb.busy} onClick={() => void during(() => nb.interrupt())}><Icon name="square" size={12} /><span>{t.nb.interrupt}</span></button>
			<button class="small" disabled={!may || k === 'none' || k === 'starting' || busy.value} onClick={() => void during(() => nb.restart())}><Icon name="rotate-ccw" size={13} /><span>{t.nb.restart}</span></button>
			<span class="split" aria-hidden="true" />
			<button class="small" disabled={!may} onClick={() => add('code')}><Icon name="plus" size={13} /><span>{t.nb.code}</span></button>
			<button class="small" disabled={!may} onClick={() => add('markdown')}><Icon name="plus" size={13} /><span>{t.nb.markdown}</span></button>
			<span class="push" />
			<label class="hidden" for="nb-language">{t.nb.language}</label>
			<select id="nb-language" disabled={!may || nb.busy} value={nb.language.value} onChange={(e) => void nb.setLanguage(e.currentTarget.value)}>{(here.includes(nb.language.value) ? here : [...here, nb.language.value]).map((n) => <option value={n} key={n}>{languages.value.value?.find((l) => l.name === n)?.title ?? t.nb.languages[n] ?? n}</option>)}</select>
			<span class={`kernel ${k}`} role="status"><span class="dot" aria-hidden="true" />{t.nb.states[k]}</span>
			<Menu label={t.nb.more} items={[
				{ label: t.nb.restartRun, icon: 'fast-forward', disabled: !may, run: () => void during(async () => { await nb.restart(); nb.runAll() }) },
				{ label: t.nb.clear, icon: 'x', disabled: !may, run: () => nb.clearOutputs() },
				{ label: t.nb.shutDown, icon: 'square', disabled: !may || k === 'none', run: () => void during(() => nb.shutDown()) },
			]} />
		</div>
		{nb.failure.value && <ErrorState title={t.nb.noKernel} error={nb.failure.value} retry={() => { nb.failure.value = null; if (cell) nb.run(cell) }} />}
		{k === 'dead' && !nb.failure.value && <div class="banner" role="alert"><Icon name="triangle-alert" /><span>{t.nb.dead}</span><button class="small" onClick={() => void during(() => nb.restart())}>{t.nb.restart}</button></div>}
		<div class="nb-cells">
			{nb.cells.value.map((c, i) => <CellView key={c.id} nb={nb} cell={c} number={i} focusOn={focusOn.current} onPlace={place} files={files} />)}
			<div class="nb-end"><button class="small" disabled={!may} onClick={() => { const c = nb.insert(nb.cells.value.length, 'code'); focusOn.current.value = `edit ${c.id}` }}><Icon name="plus" size={13} /><span>{t.nb.code}</span></button><button class="small" disabled={!may} onClick={() => { const c = nb.insert(nb.cells.value.length, 'markdown'); focusOn.current.value = `edit ${c.id}` }}><Icon name="plus" size={13} /><span>{t.nb.markdown}</span></button></div>
		</div>
	</div>
}
