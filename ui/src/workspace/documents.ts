// Open files: their text, whether the daemon has it, and what to do when another client changed the file, too.
import { signal } from '@preact/signals'
import type { Extension } from '@codemirror/state'
import { ApiError } from '../api'
import type { Editor } from '../editor/editor'
import { languageOf } from '../filetypes'
import * as session from '../session'
import { tab } from '../storage'
import { t } from '../texts'
import { toast } from '../toasts'
import type { Files } from './files'
import { merge, mergeAll } from './merge'

export type Saved = 'saved' | 'dirty' | 'saving' | 'failed' | 'conflict'
export type Kind = 'loading' | 'text' | 'image' | 'binary' | 'large' | 'error'
export type ViewerKind = 'notebook' | 'csv' | 'markdown' | 'json' | 'html'
const viewers: Record<string, ViewerKind> = { ipynb: 'notebook', csv: 'csv', tsv: 'csv', md: 'markdown', markdown: 'markdown', json: 'json', geojson: 'json', jsonl: 'json', ndjson: 'json', html: 'html', htm: 'html' }
const SAVE_MS = 300, LARGE = 20 << 20
const SHARED_MOST = 1 << 20 // longer texts are not edited together
const DELIVERY_TRIES = 150, DELIVERY_MS = 20

/** A text that several people edit (shared.ts). */
export interface SharedText {
	readonly attached: boolean // the text is that of the room
	readonly writer: boolean // this client writes the file
	readonly delivered: boolean // the others have everything that was typed here
	readonly text: string
	knows(etag: string): boolean // a client of the room wrote the file with this tag
	extension(): Extension
	set(text: string): void
	announceSave(etag: string): void
	askSave(): Promise<void>
	stop(): void
}
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
	private closed = false
	private alone = false // the daemon has refused to share it
	shared: SharedText | null = null

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
		if (this.shared?.attached) { this.shared.set(text); return }
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
		if (this.shared?.attached) return this.saveShared()
		return this.saveAlone()
	}

	private async saveAlone(): Promise<void> {
		if (this.busy) { await this.busy; if (this.saved.value === 'dirty') return this.saveAlone(); return }
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
			if (this.shared?.attached) this.shared.announceSave(this.etag)
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
		const mine = !this.shared?.attached || (this.shared.writer && this.shared.delivered)
		if (mine && this.saved.value !== 'conflict' && this.text.length < 60000) void this.files.write(this.path, this.text, this.etag || undefined, true).catch(() => {})
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
		const both = !this.shared?.attached ? merge(this.base, this.text, theirs) : this.shared.knows(etag) ? this.text : mergeAll(this.base, this.text, theirs)
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
		else if (!this.shared?.attached) await this.write(both, etag) // else when the others have it
	}

	private show(text: string) {
		if (this.shared?.attached) { this.shared.set(text); return }
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
		if (this.shared?.attached) return this.takeOver()
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
	retry() { if (this.shared?.attached) this.sharedChanged(); else if (this.saved.value === 'failed') { this.saved.value = 'dirty'; void this.save() } else if (this.kind.value === 'error') void this.load() }
	close() {
		this.closed = true
		clearTimeout(this.timer)
		if (this.shared?.attached && !this.shared.writer) this.shared.stop()
		else void this.save().finally(() => this.shared?.stop())
		if (this.address) URL.revokeObjectURL(this.address)
	}

	// ---- edited by several people ----

	get mayWrite() { return session.mayEdit.value }
	/** Positions of a room are those of the editor, which has one kind of line ends. The cells of a notebook are not one text. */
	get canBeShared() { return !this.alone && this.kind.value === 'text' && this.viewer !== 'notebook' && this.saved.value !== 'conflict' && this.text.length <= SHARED_MOST && !this.text.includes('\r') }

	/** The room has a text: from now on it is the text of this file. */
	attach(text: string) {
		clearTimeout(this.timer)
		this.text = text
		this.state = null
		this.revision.value++
		this.onText?.(text)
		this.editor?.share(this.shared!.extension(), text)
		this.sharedChanged()
	}
	detach() {
		this.shared = null
		this.state = null
		if (this.closed) return
		this.editor?.share(null, this.text)
		if (this.mayWrite && this.text !== this.base) this.change(this.text)
		else { this.saved.value = 'saved'; void this.changedOnDisk() }
	}
	sharingFailed(message: string) {
		this.alone = true
		this.shared?.stop()
		toast({ text: t.share.failed(message), kind: 'bad', ms: 8000 })
	}

	/** The text, or what is known about it elsewhere, has changed. */
	sharedChanged() {
		const s = this.shared
		if (!s?.attached) return
		if (s.text !== this.text) {
			this.text = s.text
			this.revision.value++
			this.onText?.(this.text)
			if (!this.editor) this.state = null
		}
		if (this.busy) return // looks again when it is done
		clearTimeout(this.timer)
		if (!s.delivered) this.saved.value = 'dirty'
		else if (!s.writer || this.text === this.base) this.saved.value = 'saved'
		else {
			this.saved.value = 'dirty'
			this.timer = setTimeout(() => void this.save(), SAVE_MS)
		}
	}

	/** One client writes. What it writes is known to the others, so that no client adds it a second time. */
	private async saveShared(): Promise<void> {
		for (let n = 0; n < DELIVERY_TRIES && this.shared?.attached && !this.shared.delivered && this.mayWrite; n++) await new Promise((done) => setTimeout(done, DELIVERY_MS))
		const s = this.shared
		if (!s?.attached) return this.saveAlone()
		if (!s.delivered || !this.mayWrite) return // without a connection: sharedChanged() follows with the next one
		if (!s.writer) return s.askSave()
		while (this.busy) await this.busy
		if (this.text !== this.base) {
			this.busy = this.write(this.text, this.etag)
			await this.busy
			this.busy = null
		}
		this.sharedChanged()
	}

	/** This client writes from now on, or the file was written by another program: its changes become part of the text. */
	async takeOver(): Promise<void> {
		if (!this.shared?.writer || this.busy) return
		this.busy = (async () => {
			try {
				if ((await this.files.stat(this.path)).etag === this.etag) return
				const { bytes, etag } = await this.files.read(this.path), theirs = decode(bytes)
				if (theirs === null || !this.shared?.writer) return
				const both = this.shared.knows(etag) ? this.text : mergeAll(this.base, this.text, theirs)
				this.base = theirs
				this.etag = etag
				this.shared.set(both)
			} catch { /* it is gone, or the daemon is: the next save reports it */ }
		})()
		await this.busy
		this.busy = null
		this.sharedChanged()
	}

	/** Another client has written the file. */
	async savedElsewhere(etag: string): Promise<void> {
		if (etag === this.etag || this.busy || this.shared?.writer) return
		try {
			const now = await this.files.read(this.path), text = decode(now.bytes)
			if (text === null || !this.shared?.knows(now.etag) || this.shared.writer || this.busy) return
			this.base = text
			this.etag = now.etag
		} catch { /* the next one */ }
	}
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
