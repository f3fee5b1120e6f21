// A room of the daemon (docs/collaboration.md): the clients that have one file open, or one workspace. It is joined again
// after each loss of the connection.
import type { ApiError } from '../api'
import { socket, type Channel } from '../socket'

const UPDATE = 0, PRESENCE = 1, SNAPSHOT = 2

/** The same for all connections of this page, so that the daemon knows which one is old. */
const client = Array.from({ length: 12 }, () => 'abcdefghijklmnopqrstuvwxyz234567'[Math.floor(Math.random() * 32)]).join('')

export interface RoomEvents {
	/** The epoch of the text that this client has; empty: none. */
	epoch: () => string
	opened: (peer: number, epoch: string, begin: boolean) => void
	/** This client is to send the first update. */
	begin?: (epoch: string) => void
	/** Another client has sent the first update; empty: there is no text any longer. */
	began?: (epoch: string) => void
	update?: (seq: number, data: Uint8Array) => void
	synced?: () => void
	ack?: (seq: number) => void
	compact?: () => void
	writer?: () => void
	/** Another client writes the file from now on. */
	reader?: () => void
	save?: () => void
	presence: (peer: number, state: any) => void
	left: (peer: number) => void
	/** A frame was not taken, or the room cannot be joined. */
	refused?: (message: string) => void
	over?: (error: ApiError | null) => void
}

export class Room {
	private channel: Channel

	constructor(box: string, path: string, on: RoomEvents) {
		this.channel = socket.channel({
			open: () => ({ kind: 'room', box, path, client, ...(on.epoch() && { epoch: on.epoch() }) }),
			message: (m) => {
				if (m.op === 'opened') on.opened(m.peer, m.epoch, m.begin)
				else if (m.op === 'begin') on.begin?.(m.epoch)
				else if (m.op === 'epoch') on.began?.(m.epoch)
				else if (m.op === 'synced') on.synced?.()
				else if (m.op === 'ack') on.ack?.(m.seq)
				else if (m.op === 'compact') on.compact?.()
				else if (m.op === 'writer') on.writer?.()
				else if (m.op === 'reader') on.reader?.()
				else if (m.op === 'save') on.save?.()
				else if (m.op === 'left') on.left(m.peer)
				else if (m.op === 'error') on.refused?.(m.error.message)
			},
			bytes: (kind, number, data) => {
				if (kind === PRESENCE) {
					let state: unknown = null
					try { state = JSON.parse(new TextDecoder().decode(data)) } catch { /* of another kind of client */ }
					if (state && typeof state === 'object') on.presence(number, state)
				} else on.update?.(number, data)
			},
			over: (e) => on.over?.(e),
		})
	}

	/** false: there is no connection, and it was not sent. */
	update(data: Uint8Array): boolean { return this.channel.frame(UPDATE, data) }
	/** All updates up to this number. */
	snapshot(seq: number, data: Uint8Array) {
		const all = new Uint8Array(8 + data.length)
		new DataView(all.buffer).setBigUint64(0, BigInt(seq))
		all.set(data, 8)
		this.channel.frame(SNAPSHOT, all)
	}
	presence(state: object) { this.channel.frame(PRESENCE, new TextEncoder().encode(JSON.stringify(state))) }
	save(): boolean { return this.channel.send('save') }
	claim() { this.channel.send('claim') }
	close() { this.channel.close() }
}
