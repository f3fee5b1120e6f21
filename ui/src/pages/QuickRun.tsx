// Quick run: code, one click, output as it is printed, and what became of it.
import { useComputed, useSignal, useSignalEffect } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { ApiError, api, box as boxPath, lines, type Box, type Language, type RunRecord } from '../api'
import { bytes, duration } from '../format'
import { Icon } from '../icons'
import { CopyButton, ErrorState, Line, Menu } from '../parts/basics'
import { CodeEditor, type EditorHandle } from '../parts/CodeEditor'
import { OutputPane } from '../parts/output'
import { pageCommands } from '../parts/Palette'
import { OUTPUT_MOST, playLanguage, type PlayEnd } from '../play/protocol'
import type { Player } from '../play/run'
import { facts, reason, sentence, verdict } from '../record'
import { go } from '../router'
import * as session from '../session'
import { requestOf, spellings, type Program } from '../showcode'
import { local } from '../storage'
import { hideBox, languages } from '../store'
import { templates } from '../templates'
import { t } from '../texts'

const FIRST = ['python', 'node', 'bash', 'c', 'go']
const MEMORY = [256, 512, 1024, 2048], TIMES = [10, 30, 120, 600]

const examples: Record<string, string> = {
	python: `import platform, sys\n\nprint("hello from a box on", platform.system(), platform.release())\nprint("Python", sys.version.split()[0])\n\nfor n in range(1, 6):\n    print(n, "squared is", n * n)\n`,
	node: `console.log("hello from a box with Node", process.version);\n\nfor (let n = 1; n <= 5; n++)\n  console.log(n, "squared is", n * n);\n`,
	bash: `echo "hello from a box"\nuname -sr\nfor n in 1 2 3 4 5; do\n  echo "$n squared is $((n * n))"\ndone\n`,
	c: `#include <stdio.h>\n\nint main(void)\n{\n    printf("hello from a box\\n");\n    for (int n = 1; n <= 5; n++)\n        printf("%d squared is %d\\n", n, n * n);\n    return 0;\n}\n`,
}

type Stage = 'idle' | 'starting' | 'compiling' | 'running' | 'stopping' | 'over' | 'failed'

export function QuickRun() {
	const list = languages.value.value ?? []
	const language = useSignal(local.get('quick.language') ?? 'python')
	const now = list.find((l) => l.name === language.value)
	const drafts = useRef<Record<string, string>>({})
	const code = (name: string, l?: Language) => drafts.current[name] ??= local.get(`quick.code.${name}`) ?? examples[name] ?? l?.hello ?? ''
	const editor = useRef(null) as EditorHandle
	const stdin = useSignal(''), template = useSignal(''), keep = useSignal(false), memory = useSignal(0), seconds = useSignal(0), more = useSignal(false)
	const stage = useSignal<Stage>('idle'), record = useSignal<RunRecord | null>(null), error = useSignal<ApiError | null>(null)
	const kept = useSignal<Box | null>(null), shown = useSignal(false), asCode = useSignal(false), anything = useSignal(false)
	const place = useRef<HTMLDivElement>(null), pane = useRef<OutputPane | null>(null)
	const going = useRef<{ box: string, exec: string, abort: AbortController } | null>(null)
	const player = useRef<Player | null>(null), played = useSignal<PlayEnd | null>(null), inBrowser = useSignal(false) // the program of the output, not of a box
	const busy = useComputed(() => ['starting', 'compiling', 'running', 'stopping'].includes(stage.value))

	useEffect(() => {
		pane.current = new OutputPane(place.current!, (file, line, column) => { if (!file.includes('/usr/')) editor.current?.goto(line, column) })
		return () => { going.current?.abort.abort(); player.current?.stop() }
	}, [])

	const program = (): Program => ({
		language: language.value, code: code(language.value, now), template: template.value || undefined, stdin: stdin.value || undefined,
		memory: memory.value ? memory.value << 20 : undefined, wall_ms: seconds.value ? seconds.value * 1000 : undefined,
	})

	const onEvent = (e: any) => {
		if (e.type === 'started') {
			going.current = { ...going.current!, box: e.box, exec: e.exec }
			if (!keep.value) hideBox(e.box)
			if (stage.value !== 'stopping') stage.value = e.step === 'compile' ? 'compiling' : 'running'
		} else if (e.type === 'stdout' || e.type === 'stderr') {
			anything.value = true
			pane.current!.add(e.type === 'stderr' ? 1 : 0, e.data ?? atob(e.base64 ?? ''))
		} else if (e.type === 'exit') {
			record.value = stage.value === 'stopping' && e.cause === 'signal' ? { ...e, cause: 'operator', hint: null } : e // the signal was ours
			stage.value = 'over'
		} else if (e.type === 'error') throw new ApiError(500, e.error.code, e.error.message, e.error.why, e.error.hints)
	}

	const begin = (here: boolean) => {
		shown.value = true
		record.value = error.value = kept.value = played.value = null
		anything.value = false
		inBrowser.value = here
		pane.current!.clear()
		stage.value = 'starting'
	}

	const runHere = async () => {
		const which = playLanguage(language.value)
		if (busy.value || !which) return
		begin(true)
		try {
			const { Player } = await import('../play/run')
			player.current ??= new Player()
			await player.current.run({ language: which, code: code(language.value, now), stdin: stdin.value }, {
				state: (s) => { stage.value = s === 'loading' ? 'starting' : 'running' },
				out: (stream, text) => { anything.value = true; pane.current!.add(stream, text) },
				end: (e) => { played.value = e; stage.value = 'over' },
			})
		} catch (e) {
			error.value = new ApiError(-1, 'failed', t.quick.browserFailed, e instanceof TypeError ? t.error.offline : (e as Error).message)
			stage.value = 'failed'
		}
	}

	const run = async () => {
		if (busy.value || !session.mayEdit.value) return
		const abort = new AbortController()
		going.current = { box: '', exec: '', abort }
		begin(false)
		try {
			const { limits, template: of, ...body } = requestOf(program())
			if (keep.value) {
				kept.value = await api<Box>('/v1/boxes', { body: { limits, template: of, on_timeout: 'keep' }, signal: abort.signal })
				await lines(`${boxPath(kept.value.id)}/execs`, { body, signal: abort.signal }, onEvent)
			} else await lines('/v1/run', { body: { ...body, limits, template: of }, signal: abort.signal }, onEvent)
			if (stage.peek() !== 'over') throw new ApiError(0, 'unreachable', t.error.offline, t.record.lost)
		} catch (e) {
			if (abort.signal.aborted) { stage.value = 'idle'; return }
			error.value = e instanceof ApiError ? e : new ApiError(-1, 'failed', String(e))
			stage.value = 'failed'
		}
	}

	const stop = () => {
		if (inBrowser.value && busy.value) {
			player.current?.stop()
			played.value = { ok: false, error: t.quick.browserStopped, dropped: 0, ms: 0 }
			stage.value = 'over'
			return
		}
		const g = going.current
		if (!g || !busy.value) return
		stage.value = 'stopping'
		if (!g.exec) g.abort.abort()
		else void api(`${boxPath(g.box)}/execs/${g.exec}`, { method: 'DELETE' }).catch(() => g.abort.abort())
	}

	const choose = (name: string) => {
		language.value = name
		local.set('quick.language', name)
		void editor.current?.open(code(name, list.find((l) => l.name === name)), name)
	}

	const reset = () => {
		delete drafts.current[language.value]
		local.remove(`quick.code.${language.value}`)
		choose(language.value)
	}

	// A language whose example was not known yet when the page began.
	useSignalEffect(() => {
		const all = languages.value.value
		if (all && editor.current && !editor.current.doc) choose(language.peek())
	})

	useEffect(() => {
		pageCommands.value = [
			{ name: t.palette.run, icon: 'play', keys: 'Ctrl Enter', run: () => void run() },
			{ name: t.palette.focusEditor, icon: 'code', run: () => editor.current?.focus() },
			{ name: t.quick.reset, icon: 'rotate-ccw', run: reset },
		]
		const keys = (e: KeyboardEvent) => {
			if (!(e.ctrlKey || e.metaKey)) return
			if (e.key === 'Enter' && !(e.target as Element).closest('.cm-editor, dialog')) void run()
			else if (e.key === '.') stop()
			else return
			e.preventDefault()
		}
		document.addEventListener('keydown', keys)
		return () => { pageCommands.value = []; document.removeEventListener('keydown', keys) }
	})

	const here = list.filter((l) => l.here), top = FIRST.map((n) => here.find((l) => l.name === n)).filter((l): l is Language => !!l)
	const others = list.filter((l) => !top.includes(l))
	const viewer = session.info.value !== null && !session.mayEdit.value
	const ready = (templates.value.value ?? []).filter((x) => x.built && !x.builtin)
	return <section class="quick" aria-labelledby="quick-title">
		<div class="card code">
			<header>
				<h1 id="quick-title">{t.quick.title}</h1>
				<div class="langs" role="radiogroup" aria-label={t.quick.language}>
					{(top.length ? top : FIRST.map((name) => ({ name, title: name, version: null }))).map((l) =>
						<button role="radio" aria-checked={l.name === language.value} tabIndex={l.name === language.value || (l.name === (top[0]?.name ?? 'python') && !top.some((x) => x.name === language.value)) ? 0 : -1} key={l.name}
							title={l.version ? `${l.title} ${l.version}` : l.title} onClick={() => choose(l.name)} onKeyDown={(e) => {
								const step = e.key === 'ArrowRight' ? 1 : e.key === 'ArrowLeft' ? -1 : 0
								if (!step) return
								const all = [...e.currentTarget.parentElement!.querySelectorAll('button')], next = all[(all.indexOf(e.currentTarget) + step + all.length) % all.length]!
								next.focus()
								next.click()
							}}>{l.name}</button>)}
				</div>
				{others.length > 0 && <select class="more" aria-label={t.quick.moreLanguages} value={others.some((l) => l.name === language.value) ? language.value : ''} onChange={(e) => { if (e.currentTarget.value) choose(e.currentTarget.value) }}>
					<option value="">{t.quick.moreLanguages}…</option>
					{others.map((l) => <option value={l.name} disabled={!l.here} key={l.name} title={l.here ? '' : t.quick.missing(l.title, l.install)}>{l.title}{l.here ? '' : ' (not installed)'}</option>)}
				</select>}
				<Menu label={t.more} items={[{ label: t.quick.reset, icon: 'rotate-ccw', run: reset }]} />
			</header>
			<CodeEditor handle={editor} focus options={{
				doc: code(language.value, now), language: language.value, label: t.quick.code, onRun: () => void run(),
				onChange: (d) => { drafts.current[language.value] = d; local.set(`quick.code.${language.value}`, d) },
			}} />
			{more.value && <div class="options" id="quick-options">
				{ready.length > 0 && <label>{t.templates.ofBox}<select value={template.value} onChange={(e) => { template.value = e.currentTarget.value }}><option value="">base</option>{ready.map((x) => <option value={x.name} key={x.id}>{x.name}</option>)}</select></label>}
				<label>{t.quick.memory}<select value={memory.value} onChange={(e) => { memory.value = Number(e.currentTarget.value) }}><option value={0}>512 MiB</option>{MEMORY.filter((m) => m !== 512).map((m) => <option value={m} key={m}>{bytes(m << 20)}</option>)}</select></label>
				<label>{t.quick.time}<select value={seconds.value} onChange={(e) => { seconds.value = Number(e.currentTarget.value) }}><option value={0}>30 s</option>{TIMES.filter((s) => s !== 30).map((s) => <option value={s} key={s}>{duration(s * 1000)}</option>)}</select></label>
				<label class="grow">{t.quick.input}<textarea rows={2} spellcheck={false} placeholder={t.quick.inputHint} value={stdin.value} onInput={(e) => { stdin.value = e.currentTarget.value }} /></label>
			</div>}
			<footer>
				{busy.value ? <button class="stop" onClick={stop} disabled={stage.value === 'stopping'}><Icon name="square" size={14} /><span>{stage.value === 'stopping' ? t.quick.stopping : t.quick.stop}</span><kbd>Ctrl .</kbd></button>
					: <button class="primary" onClick={() => void run()} disabled={viewer} title={viewer ? t.quick.readOnly : undefined}><Icon name="play" size={14} /><span>{t.quick.run}</span><kbd>Ctrl ⏎</kbd></button>}
				{playLanguage(language.value) && !busy.value && <button class="small" title={t.quick.browserHint} onClick={() => void runHere()}><Icon name="play" size={14} /><span>{t.quick.browser}</span></button>}
				<label class="check" title={t.quick.keepHint}><input type="checkbox" checked={keep.value} onChange={(e) => { keep.value = e.currentTarget.checked }} />{t.quick.keep}</label>
				<button class="small push" aria-expanded={more.value} aria-controls="quick-options" onClick={() => { more.value = !more.value; if (more.value) void templates.load() }}><Icon name={more.value ? 'chevron-down' : 'chevron-right'} size={14} /><span>{t.quick.options}</span></button>
			</footer>
			{viewer && <p class="note">{t.quick.readOnly}</p>}
		</div>
		<div class="card result">
			<header>
				<h2>{t.output.title}</h2>
				<span class="stage" role="status">{stage.value === 'starting' ? t.output.starting : stage.value === 'compiling' ? t.output.compiling : busy.value ? t.output.running : ''}</span>
				{anything.value && <CopyButton small text={() => pane.current!.text} label={t.output.copy} />}
			</header>
			<div class="scroll" tabIndex={0} role="log" aria-live="off" aria-label={t.output.label}>
				<div class="out" ref={place} />
				{!shown.value && <div class="state empty"><p>{t.output.empty}</p><p class="dim">{t.output.emptyCli}</p><Line text={`atoll run hello${now?.endings[0] ?? '.py'}`} /></div>}
				{stage.value === 'over' && !anything.value && <p class="dim pad">{t.output.noOutput}</p>}
				{inBrowser.value && <p class="dim pad">{t.quick.inBrowser}</p>}
				{error.value && <ErrorState title={error.value.message} error={new ApiError(error.value.status, error.value.code, error.value.why || error.value.code, '', error.value.hints, error.value.request)} retry={() => void (inBrowser.value ? runHere() : run())} />}
			</div>
			{played.value && <div class={`verdict ${played.value.ok ? 'ok' : 'bad'}`} aria-live="polite">
				<Icon name={played.value.ok ? 'circle-check' : 'circle-x'} />
				<div><p><strong>{t.quick.browserEnd(played.value.ok, played.value.error ?? '', played.value.ms)}</strong></p>{played.value.dropped > 0 && <p>{t.quick.browserCut(bytes(OUTPUT_MOST), bytes(played.value.dropped))}</p>}</div>
			</div>}
			<Verdict record={record.value} onPlace={(line) => editor.current?.goto(line)} box={kept.value} rerun={{
				memory: (mib) => { memory.value = mib; more.value = true; void run() }, time: (s) => { seconds.value = s; more.value = true; void run() },
			}} />
			<footer><button class="small" aria-expanded={asCode.value} onClick={() => { asCode.value = !asCode.value }}><Icon name="code" size={14} /><span>{t.code.title}</span></button></footer>
			{asCode.value && <AsCode program={program()} />}
		</div>
	</section>
}

function Verdict({ record, onPlace, box, rerun }: { record: RunRecord | null, onPlace: (line: number) => void, box: Box | null, rerun: { memory: (mib: number) => void, time: (s: number) => void } }) {
	if (!record) return <div class="verdict" aria-live="polite" />
	const v = verdict(record), why = reason(record), l = record.limits
	const mib = l ? l.mem / 1048576 * 2 : 0, s = l?.wall_ms ? l.wall_ms / 1000 * 4 : 0
	return <div class={`verdict ${v}`} aria-live="polite">
		<Icon name={v === 'ok' ? 'circle-check' : v === 'stopped' ? 'square' : 'circle-x'} />
		<div>
			<p><strong>{sentence(record)}</strong> <span class="dim">{facts(record).map((f) => ` · ${f}`).join('')}</span></p>
			{why && <p>{why.text}{why.file && why.line && <> <button class="place" onClick={() => onPlace(why.line!)}>{t.record.at(why.file, why.line)}</button></>}</p>}
			{record.hint && <p class="hint">{record.hint}</p>}
			<p class="row">
				{record.cause === 'memory' && MEMORY.includes(mib) && <button class="small" onClick={() => rerun.memory(mib)}>{t.output.rerunMem(bytes(mib * 1048576))}</button>}
				{record.cause === 'wall' && s > 0 && <button class="small" onClick={() => rerun.time(s)}>{t.output.rerunTime(duration(s * 1000))}</button>}
				{box && <button class="small" onClick={() => go(`/b/${box.id}`)}><Icon name="box" size={14} /><span>{t.output.openBox}</span></button>}
			</p>
		</div>
	</div>
}

function AsCode({ program }: { program: Program }) {
	const which = useSignal<'cli' | 'curl' | 'js' | 'python'>('cli')
	const all = spellings(program, location.origin), names = ['cli', 'curl', 'js', 'python'] as const
	return <div class="ascode">
		<div class="row">
			<div role="tablist" aria-label={t.code.title}>
				{names.map((n) => <button role="tab" id={`as-${n}`} aria-selected={which.value === n} aria-controls="as-text" tabIndex={which.value === n ? 0 : -1} key={n} onClick={() => { which.value = n }} onKeyDown={(e) => {
					const step = e.key === 'ArrowRight' ? 1 : e.key === 'ArrowLeft' ? -1 : 0
					if (!step) return
					which.value = names[(names.indexOf(which.value) + step + names.length) % names.length]!
					document.getElementById(`as-${which.value}`)!.focus()
				}}>{t.code[n]}</button>)}
			</div>
			<CopyButton text={() => all[which.value]} />
		</div>
		<pre id="as-text" role="tabpanel" aria-labelledby={`as-${which.value}`} tabIndex={0}>{all[which.value]}</pre>
		{which.value !== 'cli' && <p class="dim">{t.code.key}</p>}
	</div>
}
