// Output, grouped per run: the newest is open, older ones fold away.
import { signal, type Signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { RunRecord } from '../api'
import { ago } from '../format'
import { Icon } from '../icons'
import { CopyButton, Empty } from '../parts/basics'
import { OutputPane } from '../parts/output'
import { facts, reason, sentence, verdict } from '../record'
import { t } from '../texts'
import { clock, now } from '../clock'
import type { Stream } from './programs'

const TAIL = 16384

export interface Run {
	key: string, title: string, started: string, stream: Stream | null, record: Signal<RunRecord | null>, open: Signal<boolean>
	text: { stdout: string, stderr: string } | null // of a compiler that found errors
	stopped?: boolean
	tail: string // the last of what it printed to stderr
}
export const newRun = (key: string, title: string, stream: Stream | null): Run => ({ key, title, started: new Date(now()).toISOString(), stream, record: stream ? stream.record : signal(null), open: signal(true), text: null, tail: '' })

function Group({ run, onPlace, onStop }: { run: Run, onPlace: (file: string, line: number, column: number) => void, onStop: (r: Run) => void }) {
	const place = useRef<HTMLDivElement>(null), pane = useRef<OutputPane | null>(null)
	useEffect(() => {
		pane.current = new OutputPane(place.current!, onPlace)
		if (run.text) {
			pane.current.add(0, run.text.stdout)
			pane.current.add(1, run.text.stderr)
		}
		const decoders = [new TextDecoder(), new TextDecoder()] as const
		run.stream?.begin((s, data) => {
			const text = decoders[s].decode(data, { stream: true })
			if (s) run.tail = (run.tail + text).slice(-TAIL)
			pane.current!.add(s, text)
		})
		return () => run.stream?.close()
	}, [])
	const r = run.record.value, live = !r && !run.stream?.over.value, gone = run.stream?.failure.value
	const rec = r && run.stopped && r.cause === 'signal' ? { ...r, cause: 'operator', hint: null } : r
	const why = rec && reason(rec)
	return <article class={`group ${rec ? verdict(rec) : 'running'}`} aria-label={run.title}>
		<header>
			<button class="plain" aria-expanded={run.open.value} aria-label={run.title} onClick={() => { run.open.value = !run.open.value }}><Icon name={run.open.value ? 'chevron-down' : 'chevron-right'} size={14} /></button>
			<code>{run.title}</code><span class="dim">{ago(run.started, clock.value)}</span>
			<span class="push" />
			{live && <button class="small stop" onClick={() => onStop(run)}><Icon name="square" size={12} /><span>{t.quick.stop}</span></button>}
			<CopyButton small text={() => pane.current!.text} label={t.output.copy} />
		</header>
		<div class="body" hidden={!run.open.value}>
			<div class="out" ref={place} />
			{rec && <p class={`verdict ${verdict(rec)}`} role="status"><Icon name={verdict(rec) === 'ok' ? 'circle-check' : verdict(rec) === 'stopped' ? 'square' : 'circle-x'} size={14} /><span><strong>{sentence(rec)}</strong><span class="dim">{facts(rec).map((f) => ` · ${f}`).join('')}</span>{why && <span> {why.text} {why.file && why.line && <button class="place" onClick={() => onPlace(why.file!, why.line!, 1)}>{t.record.at(why.file, why.line)}</button>}</span>}{rec.hint && <span class="dim"> {rec.hint}</span>}</span></p>}
			{gone && <p class="pad dim">{gone.message}</p>}
		</div>
	</article>
}

export function RunOutput({ runs, onPlace, onStop }: { runs: Run[], onPlace: (file: string, line: number, column: number) => void, onStop: (r: Run) => void }) {
	const end = useRef<HTMLDivElement>(null)
	const ended = runs[runs.length - 1]?.record.value?.id
	useEffect(() => { end.current?.scrollIntoView({ block: 'end' }) }, [runs.length, ended])
	if (!runs.length) return <Empty text={t.ws.noRuns} />
	return <div class="groups scroll" tabIndex={0} role="group" aria-label={t.output.title}>{runs.map((r) => <Group run={r} key={r.key} onPlace={onPlace} onStop={onStop} />)}<div ref={end} /></div>
}
