// /play/: a program, its output, Run and Stop. It needs neither a key nor a box.
import { OutputPane } from '../parts/output'
import { bytes } from '../format'
import { OUTPUT_MOST, type PlayEnd, type PlayLanguage } from './protocol'
import { Player, playInfo } from './run'
import './page.css'

const examples: Record<PlayLanguage, string> = {
	python: 'import sys\n\nprint("hello from your browser: Python", sys.version.split()[0])\nfor n in range(1, 6):\n    print(n, "squared is", n * n)\n',
	javascript: 'console.log("hello from your browser: QuickJS");\nfor (let n = 1; n <= 5; n++)\n  console.log(n, "squared is", n * n);\n',
}
const at = <T extends HTMLElement>(id: string) => document.getElementById(id) as T
const code = at<HTMLTextAreaElement>('code'), input = at<HTMLTextAreaElement>('input'), language = at<HTMLSelectElement>('language'), run = at<HTMLButtonElement>('run'), stop = at<HTMLButtonElement>('stop'), state = at('state')
const player = new Player(), pane = new OutputPane(at('out'))
let before: PlayLanguage = 'python'

function idle(text: string, failed = false) {
	state.textContent = text
	state.className = failed ? 'failed' : ''
	run.disabled = false
	stop.disabled = true
}

function ended({ ok, error, dropped, ms }: PlayEnd) {
	const cut = dropped ? ` The first ${bytes(OUTPUT_MOST)} of output are shown; ${bytes(dropped)} more were left out.` : ''
	idle(`${ok ? `Finished in ${Math.round(ms)} ms.` : `Failed: ${error}.`}${cut}`, !ok)
}

async function start() {
	if (run.disabled) return
	run.disabled = true
	stop.disabled = false
	pane.clear()
	try {
		await player.run({ language: language.value as PlayLanguage, code: code.value, stdin: input.value }, {
			state: (s) => { state.textContent = s === 'loading' ? 'Loading the interpreter…' : 'Running…'; state.className = '' },
			out: (stream, text) => pane.add(stream, text),
			end: ended,
		})
	} catch (e) {
		idle(e instanceof TypeError ? 'The server cannot be reached.' : (e as Error).message, true)
	}
}

run.onclick = () => void start()
stop.onclick = () => { player.stop(); idle('Stopped.') }
language.onchange = () => {
	const now = language.value as PlayLanguage
	if (code.value === examples[before]) code.value = examples[now]
	before = now
}
document.onkeydown = (e) => {
	if ((e.ctrlKey || e.metaKey) && e.key === 'Enter') void start()
	else if ((e.ctrlKey || e.metaKey) && e.key === '.' && !stop.disabled) stop.click()
	else return
	e.preventDefault()
}
code.value = examples.python
void playInfo().then(({ installed, command }) => {
	at('missing').hidden = installed
	at('command').textContent = command
	run.disabled = !installed
}, () => idle('The server cannot be reached.', true))
