// Open files: their text, whether the daemon has it, and what to do when another client changed the file, too.
import { signal } from '@preact/signals'
import { ApiError } from '../api'
import type { Editor } from '../editor/editor'
import { languageOf } from '../filetypes'
import { tab } from '../storage'
import type { Files } from './files'
import { merge } from './merge'

export type Saved = 'saved' | 'dirty' | 'saving' | 'failed' | 'conflict'
export type Kind = 'loading' | 'text' | 'image' | 'binary' | 'large' | 'error'
export type ViewerKind = 'notebook' | 'csv' | 'markdown' | 'json' | 'html'
const viewers: Record<string, ViewerKind> = { ipynb: 'notebook', csv: 'csv', tsv: 'csv', md: 'markdown', markdown: 'markdown', json: 'json', geojson: 'json', jsonl: 'json', ndjson: 'json', html: 'html', htm: 'html' }
const SAVE_MS = 300, LARGE = 20 << 20
const images: Record<string, string> = { png: 'image/png', jpg: 'image/jpeg', jpeg: 'image/jpeg', gif: 'image/gif', webp: 'image/webp', svg: 'image/svg+xml', ico: 'image/x-icon', bmp: 'image/bmp' }

export class Document {
	readonly kind = signal<Kind>('loading')
	readonly saved = signal<Saved>('saved')
	readonly error = signal<ApiError | null>(null)
	readonly theirs = signal<{ text: string, etag: string } | null>(null)
	readonly size = signal(0)
	readonly revision = signal(0) // grows with every change of the text
	readonly preview = signal(false) // shown by its viewer, not as source
	readonly viewer: ViewerKind | null
	text = ''
	base = '' // what the daemon has, as far as this tab knows
	etag = ''
	state: unknown = null // the editor's, while another file is shown
	editor: Editor | null = null // while this one is
	address = '' // of an image
	flush: (() => void) | null = null // puts what a viewer has changed into the text
	onText: ((text: string) => void) | null = null // the text was changed elsewhere
	head = '' // of a binary file, as hexadecimal digits
	readonly language: string
	private timer: ReturnType<typeof setTimeout> | undefined
	private busy: Promise<void> | null = null

	constructor(readonly files: Files, readonly path: string) {
		this.language = languageOf(path)
		this.viewer = viewers[path.split('.').pop()!.toLowerCase()] ?? null
		this.preview.value = this.previewFirst
	}

	/** Files that are opened by their viewer. */
	get previewFirst() { return this.viewer === 'notebook' || this.viewer === 'csv' }
	private get draft() { return `draft.${this.files.box}.${this.path}` }

	async load() {
		this.error.value = null
		try {
			const entry = await this.files.stat(this.path)
			this.size.value = entry.size
			if (entry.size > LARGE) { this.kind.value = 'large'; return }
			const { bytes, etag } = await this.files.read(this.path)
			this.etag = etag
			const image = images[this.path.split('.').pop()!.toLowerCase()]
			if (image) {
				if (this.address) URL.revokeObjectURL(this.address)
				this.address = URL.createObjectURL(new Blob([bytes as BlobPart], { type: image }))
				this.kind.value = 'loading' // a new address is a new picture
				this.kind.value = 'image'
				return
			}
			const text = decode(bytes)
			if (text === null) {
				this.head = hex(bytes.subarray(0, 4096))
				this.kind.value = 'binary'
				return
			}
			this.base = this.text = text
			this.restore()
			this.revision.value++
			this.kind.value = 'text'
		} catch (e) {
			this.error.value = e as ApiError
			this.kind.value = 'error'
		}
	}

	/** Edits that did not reach the daemon before the page was loaded again. */
	private restore() {
		const kept = tab.get(this.draft)
		if (kept === null) return
		try {
			const { base, text } = JSON.parse(kept)
			const both = merge(base, text, this.base)
			if (both !== null && both !== this.base) this.change(both)
			else if (both === null) { this.text = text; this.theirs.value = { text: this.base, etag: this.etag }; this.base = base; this.saved.value = 'conflict' }
		} catch { /* not ours */ }
		tab.remove(this.draft)
	}

	change(text: string) {
		this.text = text
		this.revision.value++
		if (this.saved.value === 'conflict') return
		this.saved.value = 'dirty'
		clearTimeout(this.timer)
		this.timer = setTimeout(() => void this.save(), SAVE_MS)
	}

	/** Now. Returns when the daemon has it, or it is known that it has not. */
	async save(): Promise<void> {
		this.flush?.()
		clearTimeout(this.timer)
		if (this.busy) { await this.busy; if (this.saved.value === 'dirty') return this.save(); return }
		if (this.kind.value !== 'text' || this.saved.value === 'saved' || this.saved.value === 'conflict') return
		this.busy = this.write(this.text, this.etag)
		await this.busy
		this.busy = null
	}

	private async write(text: string, etag: string) {
		this.saved.value = 'saving'
		try {
			this.etag = (await this.files.write(this.path, text, etag || undefined)).etag
			this.base = text
			this.saved.value = this.text === text ? 'saved' : 'dirty'
			tab.remove(this.draft)
			if (this.saved.value === 'dirty') this.timer = setTimeout(() => void this.save(), SAVE_MS)
		} catch (e) {
			if (e instanceof ApiError && e.status === 412) return this.differ()
			this.error.value = e as ApiError
			this.saved.value = 'failed'
			this.stash()
		}
	}

	/** For the page that is loaded next in this tab. */
	private stash() { tab.set(this.draft, JSON.stringify({ base: this.base, text: this.text })) }

	/** The page goes away and no answer will be seen: a small text is still sent, and kept for a reload. */
	leave() {
		this.flush?.()
		if (this.kind.value !== 'text' || this.saved.value === 'saved') return
		this.stash()
		if (this.saved.value !== 'conflict' && this.text.length < 60000) void this.files.write(this.path, this.text, this.etag || undefined, true).catch(() => {})
	}

	/** The file is not what this tab began with: both changes are kept if they do not touch. */
	private async differ() {
		let bytes, etag
		try {
			({ bytes, etag } = await this.files.read(this.path))
		} catch (e) { // deleted meanwhile, or the daemon is away: the next try writes it anew
			if (e instanceof ApiError && e.status === 404) this.etag = ''
			this.error.value = e as ApiError
			this.saved.value = 'failed'
			this.stash()
			return
		}
		const theirs = decode(bytes) ?? ''
		const both = merge(this.base, this.text, theirs)
		if (both === null) {
			this.theirs.value = { text: theirs, etag }
			this.saved.value = 'conflict'
			this.stash()
			return
		}
		this.base = theirs
		this.etag = etag
		this.show(both)
		if (both === theirs) this.saved.value = 'saved'
		else await this.write(both, etag)
	}

	private show(text: string) {
		this.text = text
		this.revision.value++
		this.onText?.(text)
		if (this.editor) this.editor.replaceDoc(text)
		else this.state = null
	}

	/** A client has written the file, perhaps this tab. */
	async changedOnDisk() {
		if (this.kind.value === 'image') return void this.load()
		if (this.kind.value !== 'text' || this.busy || this.saved.value === 'conflict') return
		try {
			const entry = await this.files.stat(this.path)
			if (entry.etag === this.etag || this.busy) return
			if (this.saved.value === 'saved') {
				const { bytes, etag } = await this.files.read(this.path), text = decode(bytes)
				if (text === null || this.saved.value !== 'saved') return
				this.base = text
				this.etag = etag
				this.show(text)
			} else await this.save()
		} catch { /* it is gone, or the daemon is: the next save reports it */ }
	}

	keepMine() {
		const t = this.theirs.value
		if (!t) return
		this.theirs.value = null
		this.etag = t.etag
		this.base = t.text
		this.saved.value = 'dirty'
		void this.save()
	}
	takeTheirs() {
		const t = this.theirs.value
		if (!t) return
		this.theirs.value = null
		this.etag = t.etag
		this.base = t.text
		this.saved.value = 'saved'
		tab.remove(this.draft)
		this.show(t.text)
	}

	/** The connection is back. */
	retry() { if (this.saved.value === 'failed') { this.saved.value = 'dirty'; void this.save() } else if (this.kind.value === 'error') void this.load() }
	close() { clearTimeout(this.timer); void this.save(); if (this.address) URL.revokeObjectURL(this.address) }
}

/** null: not a text. */
export function decode(bytes: Uint8Array): string | null {
	if (bytes.subarray(0, 8192).includes(0)) return null
	try { return new TextDecoder('utf-8', { fatal: true }).decode(bytes) } catch { return null }
}

function hex(bytes: Uint8Array): string {
	const out = []
	for (let at = 0; at < bytes.length; at += 16) {
		const row = [...bytes.subarray(at, at + 16)]
		out.push(`${at.toString(16).padStart(8, '0')}  ${row.map((b) => b.toString(16).padStart(2, '0')).join(' ').padEnd(47)}  ${row.map((b) => b > 31 && b < 127 ? String.fromCharCode(b) : '.').join('')}`)
	}
	return out.join('\n')
}
