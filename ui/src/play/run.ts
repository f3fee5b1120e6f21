// Starts programs in the browser, for /play/ and for the web UI.
import { type PlayEnd, type PlayMessage, type PlayProgram } from './protocol'

export interface PlayInfo { installed: boolean, command: string, files: string }
export interface PlayEvents { state: (s: 'loading' | 'running') => void, out: (stream: 0 | 1, text: string) => void, end: (e: PlayEnd) => void }

let info: PlayInfo | undefined
/** Whether the server has the files. An answer that they are there is kept: programs run without the server from then on. */
export async function playInfo(): Promise<PlayInfo> {
	if (info?.installed) return info
	return info = await (await fetch('/play/info')).json()
}

/** One frame with its interpreter, which is kept for the next program. */
export class Player {
	private frame: HTMLIFrameElement | null = null
	private ready: Promise<void> | null = null
	private on: PlayEvents | null = null

	constructor() {
		addEventListener('message', ({ data, source }: MessageEvent<PlayMessage>) => {
			if (!this.frame || source !== this.frame.contentWindow || !this.on) return
			if (data.type === 'out') this.on.out(data.stream ? 1 : 0, String(data.text))
			else if (data.type === 'loading' || data.type === 'running') this.on.state(data.type)
			else if (data.type === 'end') {
				const { on } = this
				this.on = null
				on.end(data)
			}
		})
	}

	private open(): Promise<void> {
		return this.ready ??= new Promise((resolve) => {
			const frame = this.frame = document.createElement('iframe')
			frame.setAttribute('sandbox', 'allow-scripts')
			frame.hidden = true
			frame.title = 'interpreter'
			const first = ({ source }: MessageEvent) => {
				if (source !== frame.contentWindow) return
				removeEventListener('message', first)
				resolve()
			}
			addEventListener('message', first)
			frame.src = '/play/frame.html'
			document.body.append(frame)
		})
	}

	async run(program: Omit<PlayProgram, 'files'>, on: PlayEvents) {
		const { installed, command, files } = await playInfo()
		if (!installed) throw new Error(`The interpreters are not installed. On the server, type: ${command}`)
		this.on = on
		on.state('loading')
		await this.open()
		if (this.on === on) this.frame!.contentWindow!.postMessage({ run: { ...program, files: new URL(files, location.href).href } }, '*')
	}

	/** Ends the program at once, whatever it does: the frame and its worker are removed. */
	stop() {
		this.frame?.remove()
		this.frame = this.ready = this.on = null
	}
}
