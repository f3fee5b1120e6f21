// A file that several people edit: a Yjs document whose updates go through a room of the daemon. Loaded when a second person
// has the workspace open.
//
// Updates are merged only within one epoch: the document that one client began (docs/collaboration.md). The document of
// another epoch replaces this one, and what was typed here since the last known text of the file is added to it.
import { keymap } from '@codemirror/view'
import type { Extension } from '@codemirror/state'
import { effect } from '@preact/signals'
import { yCollab, yUndoManagerKeymap } from 'y-codemirror.next'
import * as Y from 'yjs'
import { connection } from '../socket'
import type { Document, SharedText } from './documents'
import { changeOf, mergeAll } from './merge'
import { colourOf, nameFrom, ownName } from './people'
import { Room } from './room'

const PRESENCE_MS = 60, SAVED_WAIT_MS = 5000, CLAIM_MS = 10000
const FROM_ROOM = 'room'

/** Cursors of the others, in the form that yCollab reads. */
class Cursors {
	readonly doc = { clientID: 0 } // the own state is not in the list
	private states = new Map<number, { user: { name: string, color: string }, cursor: any }>()
	private local: { cursor: unknown } = { cursor: null }
	private listeners = new Set<(change: { added: number[], updated: number[], removed: number[] }) => void>()
	constructor(private changed: () => void) {}
	on(_: string, f: (change: any) => void) { this.listeners.add(f) }
	off(_: string, f: (change: any) => void) { this.listeners.delete(f) }
	getLocalState() { return this.local }
	getStates() { return this.states }
	setLocalStateField(_: string, cursor: unknown) { this.local = { cursor }; this.changed() }
	set(peer: number, state: { user: { name: string, color: string }, cursor: any } | null) {
		if (state) this.states.set(peer, state)
		else this.states.delete(peer)
		for (const f of this.listeners) f({ added: [], updated: state ? [peer] : [], removed: state ? [] : [peer] })
	}
	clear() { for (const peer of [...this.states.keys()]) this.set(peer, null) }
}

export class Shared implements SharedText {
	private room: Room
	private doc: Y.Doc | null = null // null: the file is not shared yet
	private incoming: Y.Doc | null = null // of another epoch, until it is complete
	private epoch = ''
	private nextEpoch = ''
	private synced = false
	private isWriter = false
	private waiting: Uint8Array[] = [] // updates that the daemon has not acknowledged
	private seen = 0 // number of the last update that this document contains, without a gap
	private cursors = new Cursors(() => this.announceSoon())
	private timer: ReturnType<typeof setTimeout> | undefined
	private saves = { etag: '', count: 0 } // of this client as the writer
	private others = new Map<number, { etag: string, count: number }>()
	private onSaved = new Set<() => void>()
	private undo: () => void
	private claimer: ReturnType<typeof setTimeout> | undefined

	constructor(private file: Document) {
		this.room = new Room(file.files.box, file.path, {
			epoch: () => this.doc ? this.epoch : '',
			opened: (_peer, epoch, begin) => {
				this.lost()
				this.cursors.clear()
				if (begin) this.begin(epoch)
				else if (epoch) this.expect(epoch)
				this.announce()
			},
			begin: (epoch) => this.begin(epoch),
			began: (epoch) => { if (epoch) this.expect(epoch); else this.stop() },
			update: (seq, data) => {
				try { Y.applyUpdate(this.incoming ?? this.doc!, data, FROM_ROOM) } catch { /* not an update of Yjs */ }
				this.seen = seq
			},
			synced: () => this.complete(),
			ack: (seq) => {
				this.waiting.shift()
				if (seq === this.seen + 1) this.seen = seq
				if (!this.waiting.length) this.file.sharedChanged()
			},
			compact: () => { if (this.doc && !this.incoming) this.room.snapshot(this.seen, Y.encodeStateAsUpdate(this.doc)) },
			writer: () => { this.isWriter = true; void this.file.takeOver() },
			reader: () => { this.isWriter = false; this.file.sharedChanged() },
			save: () => void this.file.save().then(() => this.announceSave(this.file.etag)),
			presence: (peer, x) => this.present(peer, x),
			left: (peer) => { this.cursors.set(peer, null); this.others.delete(peer) },
			refused: (message) => this.file.sharingFailed(message),
			over: () => this.stop(),
		})
		// Without a connection this client writes nothing: another one may be the writer already.
		this.undo = effect(() => { if (connection.value !== 'live') this.lost() })
	}

	get attached() { return this.doc !== null }
	get writer() { return this.isWriter && this.synced }
	get delivered() { return this.synced && !this.waiting.length }
	get text() { return this.doc!.getText('t').toString() }
	knows(etag: string) { return [...this.others.values(), this.saves].some((s) => s.etag === etag) }

	private lost() {
		this.synced = this.isWriter = false
		this.incoming = null
		this.seen = 0
		this.others.clear()
	}

	// ---- beginning ----

	/** The first update of the room: the document of this client, or a new one with its text. */
	private begin(epoch: string) {
		if (!this.doc || epoch !== this.epoch) {
			const doc = new Y.Doc()
			doc.getText('t').insert(0, this.file.text)
			this.attach(doc, epoch)
		}
		this.synced = true
		this.waiting = []
		this.send(Y.encodeStateAsUpdate(this.doc!))
	}

	private expect(epoch: string) {
		this.nextEpoch = epoch
		this.incoming = this.doc && epoch === this.epoch ? null : new Y.Doc()
	}

	/** All updates of the room are here. */
	private complete() {
		const next = this.incoming
		this.synced = true
		if (!next) { // the same epoch: what the daemon may not have is sent again
			const rest = this.waiting
			this.waiting = []
			if (rest.length) this.send(Y.mergeUpdates(rest))
			this.file.sharedChanged()
			return
		}
		const theirs = next.getText('t').toString(), mine = this.file.text, base = this.file.base
		this.incoming = null
		this.waiting = []
		this.attach(next, this.nextEpoch)
		if (this.file.mayWrite) this.set(mergeAll(base, mine, theirs))
	}

	private attach(doc: Y.Doc, epoch: string) {
		this.doc?.destroy()
		this.doc = doc
		this.epoch = epoch
		this.cursors.clear()
		doc.on('update', (update: Uint8Array, origin: unknown) => {
			if (origin !== FROM_ROOM) this.send(update)
			if (this.doc === doc) this.file.sharedChanged()
			this.claimer ??= setTimeout(() => this.claim(), CLAIM_MS)
		})
		this.file.attach(this.text)
	}

	/** The writer may have vanished without a word: a text that is not saved for so long gets another one. */
	private claim() {
		this.claimer = undefined
		if (this.doc && this.delivered && !this.isWriter && this.file.mayWrite && this.file.text !== this.file.base) this.room.claim()
	}

	private send(update: Uint8Array) {
		this.waiting.push(update)
		if (this.synced) this.room.update(update)
	}

	// ---- for the document ----

	extension(): Extension {
		return [keymap.of(yUndoManagerKeymap), yCollab(this.doc!.getText('t'), this.cursors)]
	}

	/** The text was changed by something else than the editor. */
	set(text: string) {
		const y = this.doc!.getText('t'), old = y.toString()
		if (old === text) return
		const c = changeOf(old, text)
		this.doc!.transact(() => {
			if (c.to > c.from) y.delete(c.from, c.to - c.from)
			if (c.insert) y.insert(c.from, c.insert)
		})
	}

	announceSave(etag: string) {
		this.saves = { etag, count: this.saves.count + 1 }
		this.announce()
	}

	/** Asks the writer, and returns when the file has what this client typed, or after a while. */
	async askSave() {
		if (!this.room.save()) return
		await new Promise<void>((done) => {
			const end = () => { clearTimeout(timer); this.onSaved.delete(end); done() }
			const timer = setTimeout(end, SAVED_WAIT_MS)
			this.onSaved.add(end)
		})
	}

	/** The file is edited by this client alone from now on. */
	stop() {
		this.room.close()
		this.undo()
		clearTimeout(this.timer)
		clearTimeout(this.claimer)
		this.lost()
		const was = this.doc
		this.doc = null
		this.file.detach()
		was?.destroy()
	}

	// ---- presence ----

	private announceSoon() { this.timer ??= setTimeout(() => this.announce(), PRESENCE_MS) }
	private announce() {
		clearTimeout(this.timer)
		this.timer = undefined
		this.room.presence({ name: ownName.value, cursor: this.cursors.getLocalState().cursor, saved: this.saves })
	}

	private present(peer: number, x: any) {
		const { etag, count } = x.saved ?? {}, before = this.others.get(peer)
		if (typeof etag === 'string' && typeof count === 'number') {
			this.others.set(peer, { etag, count })
			if (before?.count !== count) {
				for (const f of [...this.onSaved]) f()
				clearTimeout(this.claimer)
				this.claimer = setTimeout(() => this.claim(), CLAIM_MS)
			}
			if (before?.etag !== etag && etag && this.doc) void this.file.savedElsewhere(etag)
		}
		let cursor = null
		try { // hostile positions are not shown
			const ends = [x.cursor.anchor, x.cursor.head].map((p) => Y.createRelativePositionFromJSON(p))
			for (const p of ends) Y.createAbsolutePositionFromRelativePosition(p, this.doc!)
			cursor = { anchor: ends[0], head: ends[1] }
		} catch { /* no cursor */ }
		this.cursors.set(peer, { user: { name: nameFrom(x.name, peer), color: colourOf(peer) }, cursor })
	}
}
