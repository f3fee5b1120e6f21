// A terminal: xterm.js on a program of the box. The program continues without the page; its output is read again from its
// first kept byte. Escape sequences can change the look of the terminal and nothing else.
import { useEffect, useRef } from 'preact/hooks'
import { effect, untracked } from '@preact/signals'
import { FitAddon } from '@xterm/addon-fit'
import { WebLinksAddon } from '@xterm/addon-web-links'
import { Terminal } from '@xterm/xterm'
import { bytes } from '../format'
import * as session from '../session'
import { connection } from '../socket'
import { t } from '../texts'
import { dark } from '../theme'
import type { Stream } from './programs'

function look() {
	const s = getComputedStyle(document.documentElement), v = (n: string) => s.getPropertyValue(n).trim()
	const d = dark.value
	return {
		background: v('--bg'), foreground: v('--fg'), cursor: v('--fg'), cursorAccent: v('--bg'), selectionBackground: v('--selection'),
		black: d ? '#3a4350' : '#171a20', brightBlack: d ? '#8b96a6' : '#5d6776', white: d ? '#d5dae2' : '#5d6776', brightWhite: d ? '#ffffff' : '#171a20',
		red: v('--bad'), brightRed: v('--bad'), green: v('--ok'), brightGreen: v('--ok'), yellow: v('--warn'), brightYellow: v('--warn'),
		blue: v('--s-number'), brightBlue: v('--s-number'), magenta: v('--s-keyword'), brightMagenta: v('--s-keyword'), cyan: v('--s-name'), brightCyan: v('--s-name'),
	}
}

function openLink(address: string) {
	if (/^https?:\/\//i.test(address) && confirm(t.term.follow(address.slice(0, 300)))) window.open(address, '_blank', 'noopener,noreferrer')
}

export default function TerminalPane({ stream, shown, onEnd }: { stream: Stream, shown: boolean, onEnd: () => void }) {
	const place = useRef<HTMLDivElement>(null), parts = useRef<{ term: Terminal, fit: FitAddon } | null>(null)
	useEffect(() => {
		const term = new Terminal({
			fontFamily: getComputedStyle(document.documentElement).getPropertyValue('--mono'), fontSize: 13, lineHeight: 1.2, cursorBlink: false, scrollback: 10000, theme: look(),
			allowProposedApi: false, screenReaderMode: false, disableStdin: !session.mayEdit.value, macOptionIsMeta: true,
			linkHandler: { activate: (_e, text) => openLink(text), allowNonHttpProtocols: false },
		})
		const fit = new FitAddon()
		term.loadAddon(fit)
		term.loadAddon(new WebLinksAddon((_e, address) => openLink(address)))
		term.open(place.current!)
		term.textarea?.setAttribute('aria-label', t.term.label)
		parts.current = { term, fit }
		const encoder = new TextEncoder()
		// What the history of a program asks was answered when it was written; a second answer would be typed into the shell.
		let old = false
		term.onData((d) => { if (!old) stream.write(encoder.encode(d)) })
		term.onBinary((d) => stream.write(Uint8Array.from(d, (c) => c.charCodeAt(0))))
		term.onResize(({ rows, cols }) => stream.resize(rows, cols))
		term.attachCustomKeyEventHandler((e) => {
			const ours = e.key === 'F1' || e.key === 'F6' || (e.ctrlKey && (e.key === '`' || (e.shiftKey && ['C', 'V', 'F'].includes(e.key))))
			if (e.type === 'keydown' && e.ctrlKey && e.shiftKey && e.key === 'C' && term.hasSelection()) { void navigator.clipboard?.writeText(term.getSelection()); e.preventDefault() }
			return !ours
		})
		stream.begin((_s, data, isOld) => new Promise((done) => {
			if (isOld) term.write('', () => { old = true })
			term.write(data, () => { old = false; done() })
		}))
		const undo = [
			effect(() => { dark.value; requestAnimationFrame(() => { term.options.theme = look() }) }),
			effect(() => { if (stream.dropped.value) term.write(`\r\n\x1b[7m ${t.output.droppedBytes(bytes(stream.dropped.value))} \x1b[0m\r\n`) }),
			effect(() => { if (stream.over.value) { term.options.disableStdin = true; term.write(`\r\n${stream.failure.peek()?.message ?? t.term.ended}\r\n`); untracked(onEnd) } }),
			effect(() => { term.options.disableStdin = connection.value !== 'live' || !session.mayEdit.value || stream.over.value }),
		]
		const size = new ResizeObserver(() => { if (place.current!.clientWidth > 40 && place.current!.clientHeight > 20) fit.fit() })
		size.observe(place.current!)
		;(place.current as any).terminal = term // for the tests
		return () => { size.disconnect(); undo.forEach((f) => f()); stream.close(); term.dispose() }
	}, [])
	useEffect(() => { if (shown) requestAnimationFrame(() => { parts.current?.fit.fit(); parts.current?.term.focus() }) }, [shown])
	const send = (text: string) => { stream.write(new TextEncoder().encode(text)); parts.current?.term.focus() }
	return <div class={`terminal-box ${shown ? '' : 'away'}`}>
		<div class={`term ${connection.value === 'live' ? '' : 'stale'}`} ref={place} />
		<div class="term-keys" role="toolbar" aria-label={t.term.keys}>{([['Esc', '\x1b'], ['Tab', '\t'], ['Ctrl C', '\x03'], ['Ctrl D', '\x04'], ['↑', '\x1b[A'], ['↓', '\x1b[B']] as const).map(([n, s]) => <button key={n} onClick={() => send(s)}>{n}</button>)}</div>
	</div>
}
