// One WebSocket per tab, with many channels (docs/socket.md). A channel survives the connection: after a loss it is opened
// again where it stopped. Its user receives no byte twice and misses none, or learns how many were dropped.
import { signal } from '@preact/signals'
import { ApiError, api, getKey } from './api'

export type Connection = 'connecting' | 'live' | 'lost' | 'offline'
export const connection = signal<Connection>('connecting')
export const blocked = signal(false) // requests are answered and WebSockets are not: lists are read by the clock
export const generation = signal(0) // grows with every connection that was made: what was read before may be old

export interface ChannelEvents {
	/** The words that open it, from where it stands now. */
	open: () => Record<string, unknown>
	message?: (m: any) => void
	bytes?: (stream: number, offset: number, data: Uint8Array) => void
	/** It has ended: closed by the daemon, or refused with an error. It is not opened again. */
	over?: (error: ApiError | null) => void
}

export class Channel {
	constructor(readonly number: number, readonly on: ChannelEvents, private owner: Socket) {}
	send(op: string, rest: Record<string, unknown> = {}) { return this.owner.say({ op, ch: this.number, ...rest }) }
	/** Bytes for the program's input. false: there is no connection, and they were not sent. */
	write(data: Uint8Array): boolean { return this.owner.write(this.number, data) }
	/** One frame of a room, in as many parts as it needs. */
	frame(kind: number, data: Uint8Array): boolean { return this.owner.write(this.number, data, kind, true) }
	close() { this.owner.drop(this) }
}

const RETRY_FIRST_MS = 200, RETRY_MOST_MS = 5000, FAILURES_TOLERATED = 3, PING_MS = 15000, PONG_MS = 8000
const PART = 65536, MORE = 0x80 // bytes of one message; in the kind of a frame: more parts follow

class Socket {
	private ws: WebSocket | null = null
	private channels = new Map<number, Channel>()
	private next = 1
	private wait = RETRY_FIRST_MS
	private failures = 0 // since the last connection
	private timer: ReturnType<typeof setTimeout> | undefined
	private ping: ReturnType<typeof setTimeout> | undefined
	private wanted = false

	start() {
		this.wanted = true
		this.connect()
	}

	stop() {
		this.wanted = false
		clearTimeout(this.timer)
		clearTimeout(this.ping)
		this.ws?.close()
		this.ws = null
		this.channels.clear()
		connection.value = 'connecting'
	}

	/** At once, whatever the clock says. */
	retry() {
		if (!this.wanted || this.ws) return
		clearTimeout(this.timer)
		this.wait = RETRY_FIRST_MS
		this.connect()
	}

	channel(on: ChannelEvents): Channel {
		const c = new Channel(this.next++, on, this)
		this.channels.set(c.number, c)
		if (connection.value === 'live') this.open(c)
		return c
	}

	drop(c: Channel) {
		if (!this.channels.delete(c.number)) return
		this.say({ op: 'close', ch: c.number })
	}

	say(message: Record<string, unknown>): boolean {
		if (this.ws?.readyState !== WebSocket.OPEN) return false
		this.ws.send(JSON.stringify(message))
		return true
	}

	write(channel: number, data: Uint8Array, kind = 0, parts = false): boolean {
		if (this.ws?.readyState !== WebSocket.OPEN) return false
		for (let at = 0; at < data.length; at += PART) {
			const part = data.subarray(at, at + PART), frame = new Uint8Array(5 + part.length)
			new DataView(frame.buffer).setUint32(0, channel)
			frame[4] = kind | (parts && at + PART < data.length ? MORE : 0)
			frame.set(part, 5)
			this.ws.send(frame)
		}
		return true
	}

	private open(c: Channel) { this.say({ op: 'open', ch: c.number, ...c.on.open() }) }

	private connect() {
		const ws = new WebSocket(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/v1/socket`, ['atoll.v1', `key.${getKey()}`])
		this.ws = ws
		ws.binaryType = 'arraybuffer'
		ws.onopen = () => this.opened()
		ws.onmessage = (e) => typeof e.data === 'string' ? this.text(JSON.parse(e.data)) : this.binary(e.data)
		ws.onclose = (e) => { if (this.ws === ws) this.closed(e.code) }
	}

	private opened() {
		this.wait = RETRY_FIRST_MS
		this.failures = 0
		blocked.value = false
		connection.value = 'live'
		generation.value++
		for (const c of this.channels.values()) this.open(c)
		this.alive()
	}

	/** The browser does not show pings of the daemon, so the page asks by itself whether the daemon answers. */
	private alive() {
		clearTimeout(this.ping)
		this.ping = setTimeout(() => {
			this.say({ op: 'ping' })
			this.ping = setTimeout(() => this.cut(), PONG_MS)
		}, PING_MS)
	}

	cut() {
		const ws = this.ws
		if (!ws) return
		this.ws = null
		ws.onclose = null
		ws.onmessage = null
		ws.close()
		this.closed(1006)
	}

	private closed(code: number) {
		this.ws = null
		clearTimeout(this.ping)
		if (!this.wanted) return
		connection.value = navigator.onLine === false ? 'offline' : connection.value === 'connecting' && ++this.failures < FAILURES_TOLERATED ? 'connecting' : 'lost'
		// A refused key looks like any other failure here; a request shows it, and then the sign-in form is shown.
		if (code === 4401 || this.wait > 1000) void api('/v1/who').then(() => { blocked.value = this.ws?.readyState !== WebSocket.OPEN && this.wanted }, () => {})
		const ms = this.wait * (0.7 + Math.random() * 0.6)
		this.wait = Math.min(this.wait * 2, RETRY_MOST_MS)
		clearTimeout(this.timer)
		this.timer = setTimeout(() => this.connect(), ms)
	}

	private text(m: any) {
		this.alive()
		const c = this.channels.get(m.ch)
		if (!c) return
		if (m.op === 'closed' || (m.op === 'error' && !c.on.message)) this.over(c, m)
		else if (m.op === 'error' && m.error?.code === 'not_found') this.over(c, m)
		else c.on.message?.(m)
	}

	private over(c: Channel, m: any) {
		this.channels.delete(c.number)
		const e = m.error
		c.on.over?.(e ? new ApiError(404, e.code, e.message, e.why, e.hints) : null)
	}

	private binary(data: ArrayBuffer) {
		this.alive()
		const view = new DataView(data)
		const c = this.channels.get(view.getUint32(0))
		c?.on.bytes?.(view.getUint8(4), Number(view.getBigUint64(5)), new Uint8Array(data, 13))
	}
}

export const socket = new Socket()
addEventListener('online', () => socket.retry())
addEventListener('offline', () => { socket.cut(); connection.value = 'offline' })
addEventListener('focus', () => socket.retry())
document.addEventListener('visibilitychange', () => { if (!document.hidden) socket.retry() })
