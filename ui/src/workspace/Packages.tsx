// Packages of a box: those that it has, and how to get more. A box that may reach a registry installs by itself; for all others
// the daemon makes a layer, which a copy of the box gets when it is made.
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { ApiError, api, box as boxPath, type Box } from '../api'
import { Icon } from '../icons'
import { ErrorState, Loading, Menu, failed } from '../parts/basics'
import { OutputPane } from '../parts/output'
import { go } from '../router'
import * as session from '../session'
import { languages } from '../store'
import { t } from '../texts'
import type { Files } from './files'
import { copyWith, installCommand, installed, makeLayer, removeCommand, type Fault, type Manager, type Package } from './installed'

export interface PackagesProps {
	b: Box, files: Files, alive: boolean
	/** Runs a command where its output is seen; returns when it has ended, with its exit status. */
	run: (command: string[], title: string) => Promise<number | null>
}

const runtime: Record<Manager, string> = { pip: 'python', npm: 'node', gem: 'ruby' }

export default function Packages({ b, files, alive, run }: PackagesProps) {
	const manager = useSignal<Manager>('pip'), all = useSignal<Package[] | null>(null), error = useSignal<ApiError | null>(null), words = useSignal(''), busy = useSignal(''), fault = useSignal<Fault | null>(null), ready = useSignal<string[] | null>(null), log = useSignal(false), step = useSignal('')
	const place = useRef<HTMLDivElement>(null), pane = useRef<OutputPane | null>(null), abort = useRef<AbortController | null>(null), turn = useRef(0)
	const may = session.mayEdit.value && alive, reaches = (b.network?.allow.length ?? 0) > 0
	const load = async () => {
		const mine = ++turn.current
		error.value = null
		try { const found = await installed(files, manager.value); if (mine === turn.current) all.value = found } catch (e) { if (mine === turn.current) error.value = e as ApiError }
	}
	useEffect(() => { all.value = null; fault.value = null; ready.value = null; log.value = false; void load() }, [manager.value])
	useEffect(() => () => abort.current?.abort(), [])

	const install = async (text: string) => {
		const spec = text.trim().split(/[\s,]+/).filter(Boolean)
		if (!spec.length || busy.value) return
		fault.value = null
		ready.value = null
		busy.value = t.pkg.installing(spec.join(' '))
		step.value = ''
		try {
			if (reaches) {
				if (await run(installCommand[manager.value](spec), `${manager.value} install ${spec.join(' ')}`) === 0) words.value = ''
				await load()
			} else {
				log.value = true
				pane.current ??= new OutputPane(place.current!)
				pane.current.clear()
				abort.current = new AbortController()
				fault.value = await makeLayer(manager.value, spec, (text, err) => {
					pane.current!.add(err ? 1 : 0, text)
					step.value = text.split(/[\r\n]/).filter((l) => l.trim()).pop() ?? step.value
				}, abort.current.signal)
				if (!fault.value) ready.value = spec
			}
		} catch (e) { if (!abort.current?.signal.aborted) failed(e) }
		busy.value = ''
	}
	const remove = async (p: Package) => {
		busy.value = t.pkg.removing(p.name)
		try { await run(removeCommand[manager.value](p.name), `${manager.value} uninstall ${p.name}`); await load() } catch (e) { failed(e) }
		busy.value = ''
	}
	const copy = async () => {
		const more = ready.value!
		busy.value = t.pkg.copying
		try {
			const mounted = (all.value ?? []).filter((p) => p.origin === 'layer' && p.version && !more.some((s) => s.toLowerCase().startsWith(p.name.toLowerCase()))).map((p) => `${p.name}${manager.value === 'npm' ? '@' : manager.value === 'gem' ? ':' : '=='}${p.version}`)
			const { env } = await api<{ env: Record<string, string> }>(`${boxPath(b.id)}/env`)
			const n = await copyWith(b, manager.value, [...mounted, ...more], env)
			busy.value = ''
			go(`/b/${n.id}`)
		} catch (e) { failed(e); busy.value = '' }
	}
	const need = words.value.trim().split(/[=@<>~!\s:]/)[0]!.toLowerCase(), shown = (all.value ?? []).filter((p) => p.name.toLowerCase().includes(need))
	const here = (['pip', 'npm', 'gem'] as const).filter((m) => m === 'pip' || (languages.value.value?.some((l) => l.name === runtime[m] && l.here) ?? false))
	return <section class="tree packages" aria-label={t.pkg.title}>
		<form class="pkg-form" onSubmit={(e) => { e.preventDefault(); void install(words.value) }}>
			<div class="row"><label class="hidden" for="pkg-manager">{t.pkg.manager}</label><select id="pkg-manager" value={manager.value} disabled={!!busy.value} onChange={(e) => { manager.value = e.currentTarget.value as Manager }}>{here.map((m) => <option value={m} key={m}>{m}</option>)}</select>
				<button class="small primary" type="submit" disabled={!may || !words.value.trim() || !!busy.value}><Icon name="download" size={13} /><span>{t.pkg.install}</span></button></div>
			<input type="search" aria-label={t.pkg.field} placeholder={t.pkg.placeholder[manager.value]} spellcheck={false} autocomplete="off" value={words.value} onInput={(e) => { words.value = e.currentTarget.value }} />
		</form>
		{busy.value && <p class="pkg-busy" role="status"><span>{busy.value}{step.value && <small class="dim">{step.value}</small>}</span>{abort.current && !reaches && <button class="small" onClick={() => { abort.current?.abort(); busy.value = '' }}>{t.cancel}</button>}</p>}
		{fault.value && <div class="pkg-fault" role="alert" key="fault"><p><Icon name="circle-x" size={14} /><strong>{fault.value.message.replace(/^install: /, '')}</strong></p>{fault.value.why && <p class="dim">{fault.value.why}</p>}
			{fault.value.near.length > 0 && <p>{t.pkg.near} {fault.value.near.map((n) => <button class="place" key={n} onClick={() => { words.value = n; void install(n) }}>{n}</button>)}</p>}
			{fault.value.versions.length > 0 && <p>{t.pkg.versions} {fault.value.versions.slice(-12).reverse().map((v) => <button class="place" key={v} onClick={() => { const s = `${need}${manager.value === 'npm' ? '@' : '=='}${v}`; words.value = s; void install(s) }}>{v}</button>)}</p>}</div>}
		{ready.value && <div class="pkg-ready" role="status" key="ready"><p><Icon name="circle-check" size={14} /><strong>{t.pkg.ready(ready.value.join(' '))}</strong></p><p class="dim">{t.pkg.readyWhy}</p><button class="small primary" disabled={!may || !!busy.value} onClick={() => void copy()}>{t.pkg.copy}</button></div>}
		<div class="pkg-log scroll" key="log" hidden={!log.value} tabIndex={0} role="group" aria-label={t.pkg.log}><div class="out" ref={place} /></div>
		<p class="dim count-line" role="status">{all.value ? t.pkg.count(shown.length, all.value.length) : ''}</p>
		{error.value ? <ErrorState title={t.pkg.error} error={error.value} retry={() => void load()} /> : !all.value ? <Loading lines={6} /> :
			<ul class="pkg-list" tabIndex={0} aria-label={t.pkg.installed}>{shown.map((p) => <li key={p.name}><span class="pkg-name" title={p.name}>{p.name}</span><span class="dim">{p.version}</span>{p.origin !== 'system' && <span class="tag">{t.pkg.origins[p.origin]}</span>}
				{p.origin === 'box' && <Menu label={t.pkg.menu(p.name)} items={[{ label: t.pkg.remove, icon: 'trash-2', danger: true, disabled: !may || !!busy.value, run: () => void remove(p) }]} />}</li>)}</ul>}
		{!reaches && <p class="note">{t.pkg.noNetwork}</p>}
	</section>
}
