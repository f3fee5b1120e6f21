// Small parts that every page uses.
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { ApiError } from '../api'
import { Icon, type IconName } from '../icons'
import type { Resource } from '../resource'
import { t } from '../texts'
import { toast } from '../toasts'

/** The clipboard needs a secure context; elsewhere a selected text field does. */
export async function copy(text: string): Promise<boolean> {
	try {
		await navigator.clipboard.writeText(text)
		return true
	} catch {
		const area = document.createElement('textarea')
		area.value = text
		area.style.cssText = 'position:fixed;opacity:0'
		document.body.append(area)
		area.select()
		const ok = document.execCommand('copy')
		area.remove()
		return ok
	}
}

export function CopyButton({ text, label = t.copy, small }: { text: () => string, label?: string, small?: boolean }) {
	const [done, setDone] = useState(false)
	return <button class={small ? 'plain' : 'small'} aria-label={small ? label : undefined} title={small ? label : undefined} onClick={async () => {
		if (!await copy(text())) return
		setDone(true)
		setTimeout(() => setDone(false), 1500)
	}}><Icon name={done ? 'check' : 'copy'} size={14} />{!small && <span>{done ? t.copied : label}</span>}<span class="hidden" aria-live="polite">{done ? t.copied : ''}</span></button>
}

/** A line to type in a terminal. */
export function Line({ text }: { text: string }) {
	return <span class="cli"><code>{text}</code><CopyButton small text={() => text} label={`${t.copy}: ${text}`} /></span>
}

export function Dialog({ title, onClose, children, wide }: { title: string, onClose: () => void, children: ComponentChildren, wide?: boolean }) {
	const d = useRef<HTMLDialogElement>(null)
	useLayoutEffect(() => {
		const opener = document.activeElement as HTMLElement | null
		d.current!.showModal()
		return () => opener?.focus?.()
	}, [])
	return <dialog ref={d} class={wide ? 'wide' : ''} aria-label={title} onClose={onClose} onCancel={(e) => { e.preventDefault(); onClose() }}
		onClick={(e) => { if (e.target === d.current) onClose() }}>
		<div class="dialog-body">
			<header><h2>{title}</h2><button class="plain" aria-label={t.close} onClick={onClose}><Icon name="x" /></button></header>
			{children}
		</div>
	</dialog>
}

export interface Item { label: string, icon?: IconName, run: () => void, danger?: boolean, disabled?: boolean }

/** A button with a list of things to do. */
export function Menu({ label, items, children }: { label: string, items: Item[], children?: ComponentChildren }) {
	const [open, setOpen] = useState(false)
	const root = useRef<HTMLDivElement>(null)
	useLayoutEffect(() => {
		if (!open) return
		const list = () => [...root.current!.querySelectorAll<HTMLButtonElement>('[role=menuitem]:not(:disabled)')]
		list()[0]?.focus()
		const away = (e: Event) => { if (!root.current!.contains(e.target as Node)) setOpen(false) }
		const keys = (e: KeyboardEvent) => {
			const all = list(), at = all.indexOf(document.activeElement as HTMLButtonElement)
			if (e.key === 'Escape' || e.key === 'Tab') {
				setOpen(false)
				root.current!.querySelector('button')!.focus()
				if (e.key === 'Escape') e.stopPropagation()
			} else if (e.key === 'ArrowDown') all[(at + 1) % all.length]?.focus()
			else if (e.key === 'ArrowUp') all[(at - 1 + all.length) % all.length]?.focus()
			else if (e.key === 'Home') all[0]?.focus()
			else if (e.key === 'End') all[all.length - 1]?.focus()
			else return
			if (e.key !== 'Tab') e.preventDefault()
		}
		document.addEventListener('pointerdown', away)
		root.current!.addEventListener('keydown', keys)
		return () => {
			document.removeEventListener('pointerdown', away)
			root.current?.removeEventListener('keydown', keys)
		}
	}, [open])
	return <div class="menu" ref={root}>
		<button class="plain" aria-haspopup="menu" aria-expanded={open} aria-label={children ? undefined : label} title={label} onClick={() => setOpen(!open)}>{children ?? <Icon name="ellipsis" />}</button>
		{open && <div role="menu" aria-label={label}>
			{items.map((i) => <button role="menuitem" class={i.danger ? 'danger' : ''} disabled={i.disabled} key={i.label}
				onClick={() => { setOpen(false); root.current!.querySelector('button')!.focus(); i.run() }}>{i.icon && <Icon name={i.icon} />}<span>{i.label}</span></button>)}
		</div>}
	</div>
}

export function ErrorState({ title, error, retry }: { title: string, error: ApiError, retry?: () => void }) {
	return <div class="state" role="alert">
		<Icon name={error.offline ? 'wifi-off' : 'triangle-alert'} size={20} />
		<p><strong>{title}</strong></p>
		<p>{error.message}{error.why && <>: <span class="why">{error.why}</span></>}</p>
		{error.hints.map((h) => <p class="hint" key={h}>{h}</p>)}
		<p class="row">{retry && <button class="small" onClick={retry}><Icon name="refresh-cw" size={14} /><span>{t.retry}</span></button>}
			<CopyButton text={() => error.details} label={t.copyDetails} /></p>
	</div>
}

/** Nothing for 150 ms, then the outline of what will come; after 5 s the reason. */
export function Loading({ lines = 3, slow }: { lines?: number, slow?: string }) {
	const [stage, setStage] = useState(0)
	useEffect(() => {
		const a = setTimeout(() => setStage(1), 150), b = setTimeout(() => setStage(2), 5000)
		return () => { clearTimeout(a); clearTimeout(b) }
	}, [])
	return <div class="loading" aria-busy="true">
		{stage > 0 && Array.from({ length: lines }, (_, i) => <div class="bone" style={{ width: `${[72, 54, 63, 40, 58][i % 5]}%` }} key={i} />)}
		{stage > 1 && slow && <p role="status">{slow}</p>}
	</div>
}

/** What a resource is, whichever of its states it is in. */
export function View<T>({ of, title, slow, children }: { of: Resource<T>, title: string, slow?: string, children: (v: T) => ComponentChildren }) {
	const v = of.value.value, e = of.error.value
	if (v !== null) return <>{children(v)}</>
	if (e) return <ErrorState title={title} error={e} retry={() => void of.load()} />
	return <Loading slow={slow ?? t.boxes.slow} />
}

export function Empty({ text, cli, children }: { text: string, cli?: string, children?: ComponentChildren }) {
	return <div class="state empty"><p>{text}</p>{children}{cli && <Line text={cli} />}</div>
}

export const failed = (e: unknown) => toast({ text: e instanceof ApiError && e.why ? `${e.message}: ${e.why}` : (e as Error).message, kind: 'bad', ms: 8000 })

export function Spark({ values, label }: { values: number[], label: string }) {
	const most = Math.max(0.1, ...values), n = 30
	const at = (v: number, i: number) => `${((i + n - values.length) / (n - 1) * 60).toFixed(1)},${(15 - v / most * 13).toFixed(1)}`
	return <svg class="spark" viewBox="0 0 60 16" width="60" height="16" role="img" aria-label={label}>{values.length > 1 && <polyline points={values.map(at).join(' ')} fill="none" />}</svg>
}
