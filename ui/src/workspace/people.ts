// The people in the workspace of a box, and the programs that they started.
import { signal } from '@preact/signals'
import * as session from '../session'
import { local } from '../storage'
import { t } from '../texts'
import { Room } from './room'

export interface Person { peer: number, name: string, role: string, file: string, colour: string }
const NAME_MOST = 40
// Each has a contrast of 4.5 or more with white letters.
const colours = ['#1d4ed8', '#b91c1c', '#047857', '#7e22ce', '#9a4b06', '#0e7490', '#be185d', '#3f6212']

export const colourOf = (peer: number) => colours[peer % colours.length]!
/** What another client says about itself is text, and short. */
export const nameFrom = (x: unknown, peer: number) => typeof x === 'string' && x.trim() ? x.trim().slice(0, NAME_MOST) : t.share.guest(peer)
export const ownName = signal(local.get('name') ?? '')

export class People {
	readonly others = signal<ReadonlyMap<number, Person>>(new Map())
	readonly me = signal(0)
	private room: Room
	private file = ''
	private started = 0
	private seen = new Map<number, number>()

	constructor(box: string, private onProgram: () => void) {
		this.room = new Room(box, '', {
			epoch: () => '',
			opened: (peer) => { this.others.value = new Map(); this.seen.clear(); this.me.value = peer; this.say() },
			presence: (peer, x) => {
				const next = new Map(this.others.value)
				next.set(peer, { peer, name: nameFrom(x.name, peer), role: t.share.roles[String(x.role)] ?? '', file: typeof x.file === 'string' ? x.file.slice(0, 200) : '', colour: colourOf(peer) })
				this.others.value = next
				const started = Number(x.started) || 0
				if ((this.seen.get(peer) ?? 0) !== started) this.onProgram()
				this.seen.set(peer, started)
			},
			left: (peer) => {
				const next = new Map(this.others.value)
				next.delete(peer)
				this.seen.delete(peer)
				this.others.value = next
			},
		})
	}

	private say() { this.room.presence({ name: ownName.value, role: session.info.value?.role, file: this.file, started: this.started }) }
	setName(name: string) {
		ownName.value = name.slice(0, NAME_MOST)
		local.set('name', ownName.value)
		this.say()
	}
	setFile(path: string) {
		if (path === this.file) return
		this.file = path
		if (this.me.value) this.say()
	}
	/** The others look for terminals and runs. */
	programStarted() {
		this.started++
		this.say()
	}
	close() { this.room.close() }
}
