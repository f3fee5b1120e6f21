// The interpreters, in a worker of the frame: Pyodide and QuickJS. Ended by terminating the worker.
import { OUTPUT_MOST, type PlayMessage, type PlayProgram } from './protocol'

const FLUSH_BYTES = 32 << 10, FLUSH_MS = 50, MEMORY_MOST = 512 << 20, STACK_MOST = 128 << 10
let began = 0 // of the program, without loading its interpreter
const send = (m: PlayMessage) => postMessage(m)
const running = () => { began = performance.now(); send({ type: 'running' }) }

/** Output of one program: sent in pieces, bounded. Also of a program that never returns to the event loop. */
class Output {
	private text = ['', '']
	private decoders = [new TextDecoder(), new TextDecoder()]
	private waiting = 0
	private sent = 0
	private last = performance.now()
	dropped = 0

	bytes(stream: 0 | 1, b: Uint8Array) {
		const room = OUTPUT_MOST - this.sent - this.waiting
		if (b.length > room) this.dropped += b.length - room
		if (room <= 0) return
		const part = b.length > room ? b.subarray(0, room) : b
		this.waiting += part.length
		this.text[stream] += this.decoders[stream]!.decode(part, { stream: true })
		if (this.waiting >= FLUSH_BYTES || performance.now() - this.last > FLUSH_MS) this.flush()
	}

	string(stream: 0 | 1, s: string) { this.bytes(stream, new TextEncoder().encode(s)) }

	flush() {
		this.sent += this.waiting
		this.waiting = 0
		this.last = performance.now()
		for (const stream of [0, 1] as const) {
			if (this.text[stream]) send({ type: 'out', stream, text: this.text[stream]! })
			this.text[stream] = ''
		}
	}
}

let python: any, quickjs: any

/** Lines of Pyodide's own files say nothing about the program. */
const traceback = (text: string) => text.replace(/ {2}File "\/lib\/python[^"]*\/_pyodide\/[^\n]*\n(?: {4}[^\n]*\n)*/g, '')

// Without this, Pyodide reports SystemExit to the page as well.
const RUN = `async def run(code, globals):
    from pyodide.code import eval_code_async
    try:
        await eval_code_async(code, globals, filename="main.py")
    except SystemExit as e:
        return None if e.code in (None, 0) else str(e.code)
    finally:
        import sys
        sys.stdout.flush()
        sys.stderr.flush()
run`

async function runPython({ code, stdin, files }: PlayProgram, out: Output): Promise<string | undefined> {
	python ??= await (await import(`${files}pyodide.mjs`)).loadPyodide({ indexURL: files })
	let rest = new TextEncoder().encode(stdin)
	python.setStdin({ read: (to: Uint8Array) => { const n = Math.min(to.length, rest.length); to.set(rest.subarray(0, n)); rest = rest.subarray(n); return n }, isatty: false })
	for (const [stream, set] of [[0, 'setStdout'], [1, 'setStderr']] as const)
		python[set]({ write: (b: Uint8Array) => { out.bytes(stream, b); return b.length }, isatty: false })
	running()
	const globals = python.toPy({ __name__: '__main__', __builtins__: python.globals.get('__builtins__') })
	try {
		return (await python.runPython(RUN, { filename: '/lib/python/_pyodide/run.py' })(code, globals)) ?? undefined
	} catch (e: any) {
		out.string(1, e instanceof Error && e.message ? traceback(e.message) : `${e}\n`)
		return e?.type ?? 'error'
	} finally {
		globals.destroy()
	}
}

// console and print for QuickJS, which has neither.
const PRELUDE = `(() => { const out = globalThis.__out; delete globalThis.__out
	const show = (v) => { if (typeof v === 'string') return v; if (v instanceof Error) return v + '\\n' + v.stack; if (typeof v !== 'object' || v === null) return typeof v === 'bigint' ? v + 'n' : String(v)
		try { return JSON.stringify(v, (k, x) => typeof x === 'bigint' ? x + 'n' : typeof x === 'function' ? '[Function]' : x instanceof Map ? [...x] : x instanceof Set ? [...x] : x) } catch { return String(v) } }
	const line = (stream) => (...all) => out(stream, all.map(show).join(' ') + '\\n')
	globalThis.print = line(0)
	globalThis.console = { log: line(0), info: line(0), debug: line(0), warn: line(1), error: line(1) } })()`

async function runJavascript({ code, stdin, files }: PlayProgram, out: Output): Promise<string | undefined> {
	quickjs ??= await (await import(`${files}quickjs-core.mjs`)).newQuickJSWASMModuleFromVariant({
		type: 'sync',
		importFFI: () => import(`${files}quickjs-ffi.mjs`).then((m) => m.QuickJSFFI),
		importModuleLoader: () => import(`${files}emscripten-module.browser.mjs`).then((m) => m.default),
	})
	const vm = quickjs.newContext(), lines = stdin.split('\n')
	vm.runtime.setMemoryLimit(MEMORY_MOST)
	vm.runtime.setMaxStackSize(STACK_MOST)
	vm.newFunction('__out', (stream: any, text: any) => out.string(vm.getNumber(stream) ? 1 : 0, vm.getString(text))).consume((f: any) => vm.setProp(vm.global, '__out', f))
	vm.newFunction('readline', () => lines.length ? vm.newString(lines.shift()!) : vm.null).consume((f: any) => vm.setProp(vm.global, 'readline', f))
	vm.unwrapResult(vm.evalCode(PRELUDE, 'prelude.js')).dispose()
	running()
	const failed = (handle: any) => {
		const e = vm.dump(handle)
		handle.dispose()
		const text = e && typeof e === 'object' ? `${e.name}: ${e.message}` : String(e)
		out.string(1, `${text}\n${e?.stack ?? ''}`)
		return text
	}
	try {
		const result = vm.evalCode(code, 'main.js')
		if (result.error) return failed(result.error)
		result.value.dispose()
		const jobs = vm.runtime.executePendingJobs()
		if (jobs.error) return failed(jobs.error)
	} finally {
		try { vm.dispose() } catch { quickjs = undefined } // values that the program left alive
	}
}

onmessage = async ({ data }: MessageEvent<PlayProgram>) => {
	const out = new Output()
	let error: string | undefined
	began = performance.now()
	send({ type: 'loading' })
	try {
		error = await (data.language === 'python' ? runPython : runJavascript)(data, out)
	} catch (e) {
		error = String(e)
		quickjs = undefined // of an unknown state, if the browser's own stack ended
		out.string(1, `${error}\n`)
	}
	out.flush()
	send({ type: 'end', ok: error === undefined, error, dropped: out.dropped, ms: performance.now() - began })
}
