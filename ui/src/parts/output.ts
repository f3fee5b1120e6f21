// The output of programs as lines in the page. Bounded: of a flood the last lines are shown and what was cut is counted; a
// program's bytes never become markup. Colours of ANSI escapes are kept, all other escapes are removed.
import { bytes as size } from '../format'
import { t } from '../texts'

const LINES_MOST = 3000, LINE_MOST = 4000, WAITING_MOST = 4 << 20, DRAW_PAUSE_MOST_MS = 500

interface Piece { stream: 0 | 1, text: string }
interface Look { fg: string, bold: boolean, dim: boolean, italic: boolean, underline: boolean }
const plain: Look = { fg: '', bold: false, dim: false, italic: false, underline: false }
const colours = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white']
// CSI, OSC (ended by BEL or ST), DCS and the like, two-byte escapes.
const escapes = /\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])/g
const places = /File "([^"\n]{1,400})", line (\d+)|(?:^|[\s('"])((?:\/|\.\/)?[\w@.+-]+(?:\/[\w@.+-]+)*\.[A-Za-z+]{1,5}):(\d+)(?::(\d+))?/g

export class OutputPane {
	private waiting: Piece[] = []
	private waitingLength = 0
	private frame = 0
	private look: [Look, Look] = [plain, plain]
	private rest: [string, string] = ['', ''] // of an escape that is not whole yet
	private cut = 0
	private cutLine: HTMLElement | null = null
	private last: HTMLElement | null = null
	private lastOpen = false
	private lastLength = 0 // of the characters of that line
	private notBefore = 0 // no frame is drawn earlier, so that what arrives is read meanwhile
	private returned: HTMLElement | null = null // the line that what follows overwrites
	total = 0

	constructor(private place: HTMLElement, private onPlace?: (file: string, line: number, column: number) => void) {}

	add(stream: 0 | 1, text: string) {
		if (!text) return
		this.total += text.length
		this.waiting.push({ stream, text })
		this.waitingLength += text.length
		while (this.waitingLength > WAITING_MOST) {
			const first = this.waiting.shift()!
			this.waitingLength -= first.text.length
			this.cut += first.text.length
		}
		// A tab in the background has no frames; what it shows then is shown when it is looked at.
		this.ask()
	}

	private ask() {
		this.frame ||= requestAnimationFrame((at) => {
			this.frame = 0
			if (at < this.notBefore) return this.ask()
			this.draw()
			setTimeout(() => { const end = performance.now(); this.notBefore = end + Math.min(2 * (end - at), DRAW_PAUSE_MOST_MS) }) // after the layout
		})
	}

	clear() {
		cancelAnimationFrame(this.frame)
		this.frame = 0
		this.waiting = []
		this.waitingLength = this.cut = this.total = 0
		this.look = [plain, plain]
		this.rest = ['', '']
		this.place.textContent = ''
		this.cutLine = this.last = this.returned = null
		this.lastOpen = false
	}

	/** All that waits, now. */
	flush() {
		cancelAnimationFrame(this.frame)
		this.draw()
	}

	get text() { return [...this.place.querySelectorAll('.ln')].map((l) => l.textContent).join('\n') }

	private draw() {
		this.frame = 0
		const box = this.place.closest('.scroll')! // one may hold the output of several programs
		const follows = box.scrollHeight - box.scrollTop - box.clientHeight < 40
		const todo = this.waiting
		this.waiting = []
		this.waitingLength = 0
		const part = document.createDocumentFragment()
		for (const p of todo) this.put(part, p)
		this.place.append(part)
		this.trim()
		if (follows) box.scrollTop = box.scrollHeight
	}

	private put(to: DocumentFragment, { stream, text }: Piece) {
		text = this.rest[stream] + text
		this.rest[stream] = ''
		const open = text.lastIndexOf('\x1b')
		if (open >= 0 && text.length - open < 64 && !new RegExp(escapes.source).test(text.slice(open))) {
			this.rest[stream] = text.slice(open)
			text = text.slice(0, open)
		}
		const lines = text.replace(/\r+\n/g, '\n').split('\n')
		const first = Math.max(0, lines.length - LINES_MOST)
		if (first) {
			this.cut += lines.slice(0, first).reduce((n, l) => n + l.length + 1, 0)
			this.lastOpen = false
		}
		for (let i = first; i < lines.length; i++) {
			if (i === lines.length - 1 && !lines[i]) break
			this.putLine(to, stream, lines[i]!)
			this.lastOpen = i === lines.length - 1
		}
		if (lines.length > 1 && !lines[lines.length - 1]) this.lastOpen = false
	}

	private putLine(to: DocumentFragment, stream: 0 | 1, text: string) {
		const mark = stream ? 'ln err' : 'ln'
		let line = this.last
		if (!line || !this.lastOpen || line.className !== mark) {
			this.lastLength = 0
			line = document.createElement('div')
			line.className = mark
			to.append(line)
			this.last = line
		}
		// A carriage return begins the line anew, as in a terminal: progress bars. One at the end waits for what follows.
		if (this.returned === line && text) this.empty(line)
		const ends = text.endsWith('\r')
		if (ends) text = text.replace(/\r+$/, '')
		const begin = text.lastIndexOf('\r')
		if (begin >= 0) { this.empty(line); text = text.slice(begin + 1) }
		this.returned = ends ? line : null
		let at = 0
		for (const m of text.matchAll(escapes)) {
			this.putText(line, stream, text.slice(at, m.index))
			at = m.index! + m[0].length
			if (m[0].startsWith('\x1b[') && m[0].endsWith('m')) this.look[stream] = sgr(this.look[stream], m[0].slice(2, -1))
		}
		this.putText(line, stream, text.slice(at))
	}

	private empty(line: HTMLElement) {
		line.textContent = ''
		this.lastLength = 0
	}

	private putText(line: HTMLElement, stream: 0 | 1, text: string) {
		const room = LINE_MOST - this.lastLength
		if (room < 0) return // it was cut before
		text = text.slice(0, 2 * LINE_MOST).replace(/[\x00-\x08\x0b-\x1f\x7f]/g, '')
		if (!text) return
		this.lastLength += text.length
		if (text.length > room) text = text.slice(0, room) + t.output.lineCut(LINE_MOST)
		const l = this.look[stream]
		let to: HTMLElement = line
		if (l !== plain) {
			to = document.createElement('span')
			to.className = [l.fg && `c-${l.fg}`, l.bold && 'c-bold', l.dim && 'c-dim', l.italic && 'c-italic', l.underline && 'c-under'].filter(Boolean).join(' ')
			line.append(to)
		}
		let at = 0
		if (this.onPlace)
			for (const m of text.matchAll(places)) {
				const file = m[1] ?? m[3]!, number = Number(m[2] ?? m[4]), shown = m[3] ? m[0].slice(m[0].indexOf(m[3])) : m[0]
				const from = m.index! + m[0].length - shown.length
				to.append(text.slice(at, from))
				const b = document.createElement('button')
				b.className = 'place'
				b.type = 'button'
				b.textContent = shown
				b.onclick = () => this.onPlace!(file, number, Number(m[5] ?? 1))
				to.append(b)
				at = from + shown.length
			}
		to.append(text.slice(at))
	}

	private trim() {
		let surplus = this.place.childElementCount - (this.cutLine ? 1 : 0) - LINES_MOST
		while (surplus-- > 0) {
			const first = (this.cutLine ? this.cutLine.nextElementSibling : this.place.firstElementChild)!
			this.cut += first.textContent!.length + 1
			first.remove()
		}
		if (!this.cut) return
		if (!this.cutLine) {
			this.cutLine = document.createElement('div')
			this.cutLine.className = 'cut'
			this.place.prepend(this.cutLine)
		}
		this.cutLine.textContent = t.output.cut(size(this.cut))
	}
}

function sgr(l: Look, codes: string): Look {
	for (const c of (codes || '0').split(';').map(Number)) {
		if (c === 0) l = plain
		else if (c === 1) l = { ...l, bold: true }
		else if (c === 2) l = { ...l, dim: true }
		else if (c === 3) l = { ...l, italic: true }
		else if (c === 4) l = { ...l, underline: true }
		else if (c === 22) l = { ...l, bold: false, dim: false }
		else if (c >= 30 && c <= 37) l = { ...l, fg: colours[c - 30]! }
		else if (c >= 90 && c <= 97) l = { ...l, fg: colours[c - 90]! }
		else if (c === 39) l = { ...l, fg: '' }
		else if (c === 38 || c === 48) break // 256 colours and more: not shown
	}
	return l
}
