// The file tree: one focusable list, drawn for the rows that are seen, so that a folder of 100,000 files is as quick as one of ten.
import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { bytes } from '../format'
import { Icon } from '../icons'
import { Loading, ErrorState, Menu, failed } from '../parts/basics'
import * as session from '../session'
import { t } from '../texts'
import { toast } from '../toasts'
import { HOME, dropped, isFolder, join, parentOf, shortPath, shown, type Entry, type Files } from './files'

const ROW = 26, UNDO_MS = 10000

export interface TreeProps { files: Files, onOpen: (path: string) => void, active: string, onMoved: (from: string, to: string) => void, onRemoved: (path: string) => void, uploadMost: number }

export function Tree({ files, onOpen, active, onMoved, onRemoved, uploadMost }: TreeProps) {
	const at = useSignal(0), top = useSignal(0), height = useSignal(400), naming = useSignal<{ kind: 'file' | 'folder' | 'rename', folder: string, entry?: Entry } | null>(null)
	const over = useSignal<string | null>(null), sending = useSignal<{ done: number, all: number, percent: number, abort: AbortController } | null>(null)
	const list = useRef<HTMLDivElement>(null), picker = useRef<HTMLInputElement>(null)
	const rows = files.rows(), root = files.folders.value.get(HOME), now = Math.max(0, Math.min(at.value, rows.length - 1))
	const may = session.mayEdit.value

	useEffect(() => {
		const size = new ResizeObserver(() => { height.value = list.current?.clientHeight ?? 400 })
		if (list.current) size.observe(list.current)
		return () => size.disconnect()
	}, [!root || !!root.error || !rows.length]) // whether the list is there

	const see = (i: number) => {
		at.value = i
		const l = list.current!
		if (i * ROW < l.scrollTop) l.scrollTop = i * ROW
		else if ((i + 1) * ROW > l.scrollTop + l.clientHeight) l.scrollTop = (i + 1) * ROW - l.clientHeight
	}
	const act = (i: number) => {
		const r = rows[i]
		if (!r) return
		if (r.more) void files.load(r.more, true)
		else if (isFolder(r.entry)) files.toggle(r.entry.path)
		else onOpen(r.entry.path)
	}
	const remove = (e: Entry) => {
		let done = false
		const show = () => { const next = new Set(files.hidden.value); next.delete(e.path); files.hidden.value = next }
		const really = () => {
			if (done) return
			done = true
			removeEventListener('pagehide', really)
			files.remove(e.path).catch(failed).finally(show)
		}
		files.hidden.value = new Set([...files.hidden.value, e.path])
		onRemoved(e.path)
		addEventListener('pagehide', really)
		toast({ text: t.files.deleted(shown(e.name)), ms: UNDO_MS, gone: really, action: { label: t.undo, run: () => { done = true; removeEventListener('pagehide', really); show() } } })
	}
	const finish = async (name: string) => {
		const n = naming.value
		naming.value = null
		list.current?.focus()
		if (!n || !name || name === n.entry?.name) return
		const path = join(n.folder, name)
		try {
			if (n.kind === 'rename') { await files.move(n.entry!.path, path); onMoved(n.entry!.path, path) }
			else if (n.kind === 'folder') { await files.mkdir(path); files.reveal(join(path, 'x')) }
			else { await files.create(path); files.reveal(path); onOpen(path) }
		} catch (e) { failed(e) }
	}
	const begin = (kind: 'file' | 'folder', e?: Entry) => {
		const folder = !e ? HOME : isFolder(e) ? e.path : parentOf(e.path)
		files.toggle(folder, true)
		naming.value = { kind, folder }
	}
	const upload = async (all: { path: string, file: File }[], folder: string) => {
		const big = uploadMost > 0 && all.find((f) => f.file.size > uploadMost)
		if (big) { toast({ text: t.files.tooLarge(big.path, bytes(uploadMost)), kind: 'bad' }); return }
		const abort = new AbortController(), size = all.reduce((n, f) => n + f.file.size, 0)
		let before = 0
		for (const [i, f] of all.entries()) {
			const progress = (sent: number) => { sending.value = { done: i, all: all.length, percent: size ? Math.floor((before + Math.min(sent, f.file.size)) * 100 / size) : 0, abort } }
			progress(0)
			try { await files.upload(join(folder, f.path), f.file, abort.signal, progress) } catch (e) { if (!abort.signal.aborted) failed(e); break }
			before += f.file.size
		}
		sending.value = null
		void files.load(folder)
	}
	const menu = (e: Entry) => [
		...(isFolder(e) ? [] : [{ label: t.open, icon: 'file' as const, run: () => onOpen(e.path) }]),
		{ label: t.files.newFile, icon: 'file-plus' as const, run: () => begin('file', e), disabled: !may },
		{ label: t.files.newFolder, icon: 'folder-plus' as const, run: () => begin('folder', e), disabled: !may },
		{ label: t.rename, icon: 'pencil' as const, run: () => { naming.value = { kind: 'rename', folder: parentOf(e.path), entry: e } }, disabled: !may },
		{ label: t.download, icon: 'download' as const, run: () => void files.download(e).catch(failed) },
		{ label: t.delete, icon: 'trash-2' as const, danger: true, run: () => remove(e), disabled: !may },
	]
	const keys = (e: KeyboardEvent) => {
		if (e.target !== list.current) return
		const r = rows[now]
		if (e.key === 'ArrowDown') see(Math.min(now + 1, rows.length - 1))
		else if (e.key === 'ArrowUp') see(Math.max(now - 1, 0))
		else if (e.key === 'Home') see(0)
		else if (e.key === 'End') see(rows.length - 1)
		else if (e.key === 'Enter' || e.key === ' ') act(now)
		else if (e.key === 'ArrowRight' && r && isFolder(r.entry)) { if (!r.open) files.toggle(r.entry.path, true); else see(Math.min(now + 1, rows.length - 1)) }
		else if (e.key === 'ArrowLeft' && r) { if (r.open) files.toggle(r.entry.path, false); else { const up = rows.findIndex((x) => x.entry.path === parentOf(r.entry.path)); if (up >= 0) see(up) } }
		else if (e.key === 'F2' && r && may) naming.value = { kind: 'rename', folder: parentOf(r.entry.path), entry: r.entry }
		else if (e.key === 'Delete' && r && may && !r.more) remove(r.entry)
		else return
		e.preventDefault()
	}
	const drop = (folder: string) => ({
		onDragOver: (e: DragEvent) => { if (may && e.dataTransfer?.types.includes('Files')) { e.preventDefault(); e.stopPropagation(); over.value = folder } },
		onDrop: (e: DragEvent) => {
			e.preventDefault()
			e.stopPropagation()
			over.value = null
			if (may && e.dataTransfer) void dropped(e.dataTransfer.items).then((all) => upload(all, folder), failed)
		},
	})
	const from = Math.max(0, Math.floor(top.value / ROW) - 5), to = Math.min(rows.length, Math.ceil((top.value + height.value) / ROW) + 5)
	const more = rows.slice(from, to).find((r) => r.more)?.more // the end of what was read is seen
	useEffect(() => { if (more && !files.folders.value.get(more)?.error) void files.load(more, true) }, [more, rows])
	const field = (level: number) => <NameField value={naming.value?.entry?.name ?? ''} label={naming.value?.kind === 'rename' ? t.rename : naming.value?.kind === 'folder' ? t.files.newFolder : t.files.newFile} level={level} done={(n) => void finish(n)} />
	return <section class="tree" aria-label={t.files.title} {...drop(HOME)} onDragLeave={() => { over.value = null }}>
		<header><h2>{t.files.title}</h2>
			<button class="plain push" aria-label={t.files.newFile} title={t.files.newFile} disabled={!may} onClick={() => begin('file')}><Icon name="file-plus" /></button>
			<button class="plain" aria-label={t.files.newFolder} title={t.files.newFolder} disabled={!may} onClick={() => begin('folder')}><Icon name="folder-plus" /></button>
			<button class="plain" aria-label={t.files.upload} title={t.files.upload} disabled={!may} onClick={() => picker.current!.click()}><Icon name="upload" /></button>
			<button class="plain" aria-label={t.files.refresh} title={t.files.refresh} onClick={() => files.reload()}><Icon name="refresh-cw" /></button>
			<input type="file" multiple hidden ref={picker} onChange={(e) => { void upload([...e.currentTarget.files!].map((file) => ({ path: file.name, file })), HOME); e.currentTarget.value = '' }} />
		</header>
		{naming.value && naming.value.kind !== 'rename' && <div class="naming">{naming.value.folder !== HOME && <span class="dim">{shortPath(naming.value.folder)}/</span>}{field(1)}</div>}
		{!root || (root.loading && !root.items.length && !root.error) ? <Loading lines={4} /> : root.error ? <ErrorState title={t.files.error} error={root.error} retry={() => void files.load(HOME)} /> : !rows.length ?
			<div class="state empty"><p>{t.files.empty}</p>{may && <><button class="small" onClick={() => begin('file')}><Icon name="file-plus" size={14} /><span>{t.files.newFile}</span></button><p class="dim">{t.files.drop}</p></>}</div> :
			<div class="rows" role="tree" tabIndex={0} aria-label={t.files.title} aria-activedescendant={rows[now] ? `row-${now}` : undefined} ref={list} onKeyDown={keys} onScroll={(e) => { top.value = e.currentTarget.scrollTop }}>
				<div style={{ height: `${rows.length * ROW}px`, position: 'relative' }} role="none">
					{rows.slice(from, to).map((r, i) => {
						const n = from + i, folder = isFolder(r.entry)
						return <div role="treeitem" id={`row-${n}`} key={r.entry.path} aria-level={r.level} aria-expanded={folder ? r.open : undefined} aria-selected={n === now}
							class={`row-item ${r.entry.path === active ? 'active' : ''} ${over.value === r.entry.path ? 'over' : ''}`} style={{ top: `${n * ROW}px`, paddingLeft: `${8 + (r.level - 1) * 14}px` }}
							onClick={(e) => { if ((e.target as Element).closest('.menu, input')) return; at.value = n; act(n) }} {...(folder ? drop(r.entry.path) : {})}>
							{r.more ? <span class="more-link">{files.folders.value.get(r.more)?.error ? t.loadMore : t.files.reading}</span> : <>
								<span class="twist">{folder && <Icon name={r.open ? 'chevron-down' : 'chevron-right'} size={14} />}</span>
								<Icon name={folder ? (r.open ? 'folder-open' : 'folder') : 'file'} size={15} />
								{naming.value?.entry?.path === r.entry.path ? field(r.level) : <bdi class="file-name" title={shortPath(shown(r.entry.path))}>{shown(r.entry.name)}</bdi>}
								<Menu label={t.files.menu(shown(r.entry.name))} items={menu(r.entry)} /></>}
						</div>
					})}
				</div>
			</div>}
		{sending.value && <div class="sending" role="status"><span>{t.files.sending(sending.value.done + 1, sending.value.all, sending.value.percent)}</span><button class="small" onClick={() => sending.value?.abort.abort()}>{t.cancel}</button></div>}
		{over.value === HOME && <div class="drop-here" aria-hidden="true">{t.files.dropHere}</div>}
	</section>
}

function NameField({ value, label, done }: { value: string, label: string, level: number, done: (name: string) => void }) {
	const field = useRef<HTMLInputElement>(null), over = useRef(false)
	useLayoutEffect(() => { // before the next key arrives
		field.current!.focus()
		const dot = value.lastIndexOf('.')
		field.current!.setSelectionRange(0, dot > 0 ? dot : value.length)
	}, [])
	const end = (name: string) => { if (!over.current) { over.current = true; done(name.trim()) } }
	return <input type="text" class="name-field" ref={field} defaultValue={value} aria-label={label} spellcheck={false} onKeyDown={(e) => {
		e.stopPropagation()
		if (e.key === 'Enter') end(e.currentTarget.value)
		else if (e.key === 'Escape') end('')
	}} onBlur={(e) => end(e.currentTarget.value)} />
}
