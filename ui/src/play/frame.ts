// In a frame with an opaque origin (/play/frame.html): starts the worker, passes messages on, ends it. The page around this
// frame may be the web UI, whose key no program may reach.
import { OUTPUT_MOST, type PlayMessage } from './protocol'

const MESSAGES_MOST = 4096
let worker: Worker | null = null, received = 0, messages = 0
const tell = (m: PlayMessage) => parent.postMessage(m, '*')

function end() {
	worker?.terminate()
	worker = null
}

/** Programs can send messages themselves: what is not one of ours ends the worker, and so does a flood. */
function pass(m: PlayMessage) {
	if (m?.type === 'out' && typeof m.text === 'string') received += m.text.length
	if (++messages > MESSAGES_MOST || received > 2 * OUTPUT_MOST || !['loading', 'running', 'out', 'end'].includes(m?.type)) {
		end()
		return tell({ type: 'end', ok: false, error: 'the program sent messages to the page and was ended', dropped: 0, ms: 0 })
	}
	tell(m)
}

function start() {
	const module = new URL((document.querySelector('meta[name=worker]') as HTMLMetaElement).content, location.href)
	const address = URL.createObjectURL(new Blob([`import(${JSON.stringify(module.href)}).then(() => postMessage({ type: 'ready' }))`], { type: 'text/javascript' }))
	const started = new Worker(address), waiting: unknown[] = []
	let ready = false
	started.onmessage = ({ data }) => {
		if (ready) return pass(data)
		ready = true
		URL.revokeObjectURL(address)
		for (const m of waiting) started.postMessage(m)
	}
	started.onerror = (e) => {
		end()
		tell({ type: 'end', ok: false, error: e.message || 'the interpreter could not be loaded', dropped: 0, ms: 0 })
	}
	return { worker: started, send: (m: unknown) => ready ? started.postMessage(m) : waiting.push(m) }
}

let send: (m: unknown) => void
addEventListener('message', ({ data, source }) => {
	if (source !== parent) return
	if (data?.stop) return end()
	if (!data?.run) return
	received = messages = 0
	if (!worker) ({ worker, send } = start())
	send(data.run)
})
tell({ type: 'ready' })
