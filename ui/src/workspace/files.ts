// The files of a box: folders are read when they are opened and read again when something in them changes.
import { computed, signal } from '@preact/signals'
import { ApiError, api, box as boxPath, request, upload, type Page } from '../api'

export const HOME = '/home/user'
export interface Entry { name: string, path: string, type: string, size: number, mode: string, mtime: string, etag: string }
export interface Folder { items: Entry[], next: string | null, error: ApiError | null, loading: boolean }
export interface Row { entry: Entry, level: number, open: boolean, more?: string }

export const parentOf = (path: string) => path.slice(0, path.lastIndexOf('/')) || '/'
export const nameOf = (path: string) => path.slice(path.lastIndexOf('/') + 1)
export const shortPath = (path: string) => path.startsWith(HOME + '/') ? path.slice(HOME.length + 1) : path
export const join = (folder: string, name: string) => `${folder === '/' ? '' : folder}/${name}`

/** A name as it can be shown: what would break the line or turn its direction is made visible. */
export const shown = (name: string) => name.replace(/[\x00-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (c) => c === '\n' ? '⏎' : '�')

const PAGE_FIRST = 1000, PAGE_NEXT = 10000 // the API sends no more in one answer
const names = new Intl.Collator(undefined, { numeric: true })
const inOrder = (a: Entry, b: Entry) => Number(isFolder(b)) - Number(isFolder(a)) || names.compare(a.name, b.name)

export class Files {
	readonly folders = signal<ReadonlyMap<string, Folder>>(new Map())
	readonly open = signal<ReadonlySet<string>>(new Set([HOME]))
	readonly hidden = signal<ReadonlySet<string>>(new Set()) // deleted, and may still be brought back
	private timers = new Map<string, ReturnType<typeof setTimeout>>()
	constructor(readonly box: string) {}

	private set(path: string, change: Partial<Folder>) {
		const next = new Map(this.folders.value), old = next.get(path) ?? { items: [], next: null, error: null, loading: false }
		next.set(path, { ...old, ...change })
		this.folders.value = next
	}

	private async page(path: string, limit: number, after: string | null): Promise<Page<Entry>> {
		const page = await api<Page<Entry>>(`${boxPath(this.box)}/files/list?${new URLSearchParams({ path, limit: String(limit), ...(after && { after }) })}`)
		page.items.sort(inOrder)
		return page
	}

	/** Reads a folder: from its beginning as far as it was read before, or one page more. */
	async load(path: string, more = false): Promise<void> {
		const old = this.folders.value.get(path)
		if (more && (old?.loading || !old?.next)) return
		this.set(path, { loading: true, error: null })
		try {
			let { items, next } = more ? await this.page(path, PAGE_NEXT, old!.next) : await this.page(path, Math.min(PAGE_NEXT, Math.max(PAGE_FIRST, old?.items.length ?? 0)), null)
			if (more) items = [...old!.items, ...items].sort(inOrder) // two sorted parts: merged in one pass
			while (!more && next && items.length < (old?.items.length ?? 0)) {
				const page = await this.page(path, PAGE_NEXT, next)
				items = [...items, ...page.items].sort(inOrder)
				next = page.next
			}
			this.set(path, { items, next, error: null, loading: false })
		} catch (e) {
			if (e instanceof ApiError && e.status === 404 && path !== HOME) { // the folder is gone
				const next = new Map(this.folders.value)
				next.delete(path)
				this.folders.value = next
				return
			}
			this.set(path, { error: e as ApiError, loading: false })
		}
	}

	/** Something in it changed; of many changes the last is looked at. A large folder is read again less often. */
	soon(path: string) {
		const folder = this.folders.value.get(path)
		if (!folder || this.timers.has(path)) return
		this.timers.set(path, setTimeout(() => { this.timers.delete(path); void this.load(path) }, Math.max(250, folder.items.length / 20)))
	}

	reload() { for (const path of this.folders.value.keys()) void this.load(path) }

	toggle(path: string, on = !this.open.value.has(path)) {
		const next = new Set(this.open.value)
		if (on) next.add(path)
		else next.delete(path)
		this.open.value = next
		if (on && !this.folders.value.has(path)) void this.load(path)
	}

	/** Opens every folder down to a path. */
	reveal(path: string) {
		for (let p = parentOf(path); p.startsWith(HOME); p = parentOf(p)) this.toggle(p, true)
	}

	rows() { return this.drawn.value }
	private readonly drawn = computed((): Row[] => {
		const out: Row[] = []
		const walk = (path: string, level: number) => {
			const f = this.folders.value.get(path)
			for (const entry of f?.items ?? []) {
				if (this.hidden.value.has(entry.path)) continue
				const open = isFolder(entry) && this.open.value.has(entry.path)
				out.push({ entry, level, open })
				if (open) walk(entry.path, level + 1)
			}
			if (f?.next) out.push({ entry: { name: '', path: `${path}//more`, type: 'more', size: 0, mode: '', mtime: '', etag: '' }, level, open: false, more: path })
		}
		walk(HOME, 1)
		return out
	})

	// ---- changes ----

	async write(path: string, body: BodyInit, match?: string, keepalive = false): Promise<Entry> {
		return (await request(`${boxPath(this.box)}/files?${new URLSearchParams({ path })}`, {
			method: 'PUT', raw: body, keepalive, headers: { 'Content-Type': 'application/octet-stream', ...(match && { 'If-Match': match }) },
		})).json()
	}
	async upload(path: string, file: File, signal: AbortSignal, progress: (sent: number) => void) {
		await upload(`${boxPath(this.box)}/files?${new URLSearchParams({ path })}`, file, signal, progress)
	}
	async create(path: string): Promise<Entry> {
		const e: Entry = await (await request(`${boxPath(this.box)}/files?${new URLSearchParams({ path, new: 'true' })}`, { method: 'PUT', raw: '', headers: { 'Content-Type': 'application/octet-stream' } })).json()
		await this.load(parentOf(path))
		return e
	}
	async mkdir(path: string) { await api(`${boxPath(this.box)}/files/mkdir`, { body: { path } }); await this.load(parentOf(path)) }
	async move(from: string, to: string) {
		await api(`${boxPath(this.box)}/files/move`, { body: { from, to } })
		await Promise.all([this.load(parentOf(from)), parentOf(to) !== parentOf(from) ? this.load(parentOf(to)) : null])
	}
	async remove(path: string) { await api(`${boxPath(this.box)}/files?${new URLSearchParams({ path, recursive: 'true' })}`, { method: 'DELETE' }); this.soon(parentOf(path)) }

	async read(path: string, signal?: AbortSignal): Promise<{ bytes: Uint8Array, etag: string, type: string }> {
		const answer = await request(`${boxPath(this.box)}/files?${new URLSearchParams({ path })}`, { signal })
		return { bytes: new Uint8Array(await answer.arrayBuffer()), etag: answer.headers.get('etag') ?? '', type: answer.headers.get('content-type') ?? '' }
	}
	async stat(path: string): Promise<Entry> { return api(`${boxPath(this.box)}/files/stat?${new URLSearchParams({ path })}`) }

	async download(e: Entry) {
		const folder = isFolder(e)
		const answer = await request(folder ? `${boxPath(this.box)}/files/archive?${new URLSearchParams({ path: e.path, format: 'tar.gz' })}` : `${boxPath(this.box)}/files?${new URLSearchParams({ path: e.path })}`)
		const link = document.createElement('a'), address = URL.createObjectURL(new Blob([await answer.blob()], { type: 'application/octet-stream' }))
		link.href = address
		link.download = shown(folder ? `${e.name}.tar.gz` : e.name)
		link.click()
		setTimeout(() => URL.revokeObjectURL(address), 60000)
	}
}

export const isFolder = (e: Entry) => e.type === 'folder' || e.type === 'directory' || e.type === 'dir'

/** Files and folders of a drop or of a file field, with their paths. */
export async function dropped(items: DataTransferItemList): Promise<{ path: string, file: File }[]> {
	const out: { path: string, file: File }[] = []
	const walk = async (e: FileSystemEntry, prefix: string): Promise<void> => {
		if (e.isFile) out.push({ path: prefix + e.name, file: await new Promise((ok, no) => (e as FileSystemFileEntry).file(ok, no)) })
		else {
			const reader = (e as FileSystemDirectoryEntry).createReader()
			for (;;) {
				const part = await new Promise<FileSystemEntry[]>((ok, no) => reader.readEntries(ok, no))
				if (!part.length) break
				for (const x of part) await walk(x, `${prefix}${e.name}/`)
			}
		}
	}
	const all = [...items].filter((i) => i.kind === 'file').map((i) => ({ entry: i.webkitGetAsEntry(), file: i.getAsFile() })) // before any await: the list is emptied
	for (const { entry, file } of all)
		if (entry) await walk(entry, '')
		else if (file) out.push({ path: file.name, file })
	return out
}
