// Environment variables of all programs in a box. Values that look like secrets are covered until they are asked for.
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { ApiError, box as boxPath, request } from '../api'
import { Icon } from '../icons'
import { ErrorState, Loading, failed } from '../parts/basics'
import * as session from '../session'
import { t } from '../texts'
import { toast } from '../toasts'

type Env = Record<string, string | null>
const secret = /key|token|secret|passw|credential|private|auth/i
const named = /^[A-Za-z_][A-Za-z0-9_]*$/

export default function Variables({ box, alive }: { box: string, alive: boolean }) {
	const env = useSignal<Env | null>(null), error = useSignal<ApiError | null>(null), name = useSignal(''), value = useSignal(''), problem = useSignal(''), bare = useSignal<ReadonlySet<string>>(new Set()), editing = useSignal('')
	const etag = useRef(''), field = useRef<HTMLInputElement>(null)
	const path = `${boxPath(box)}/env`, may = session.mayEdit.value && alive
	const take = async (answer: Response) => { etag.current = answer.headers.get('etag') ?? ''; env.value = (await answer.json()).env }
	const load = async () => {
		error.value = null
		try { await take(await request(path)) } catch (e) { error.value = e as ApiError }
	}
	useEffect(() => { void load() }, [box])
	/** Another client may have changed others meanwhile: its changes stay. */
	const change = async (one: string, to: string | null): Promise<boolean> => {
		for (let n = 0; n < 3; n++) {
			const next = { ...env.value }
			if (to === null) delete next[one]
			else next[one] = to
			try {
				await request(path, { method: 'PUT', body: { env: next }, headers: etag.current ? { 'If-Match': etag.current } : {} })
				await load()
				return true
			} catch (e) {
				if (e instanceof ApiError && e.status === 412) { await load(); continue }
				failed(e)
				return false
			}
		}
		return false
	}
	const add = async (e: Event) => {
		e.preventDefault()
		const n = name.value.trim()
		problem.value = !named.test(n) ? t.env.badName : ''
		if (problem.value || !await change(n, value.value)) return
		name.value = value.value = ''
		field.current?.focus()
	}
	const remove = async (n: string) => {
		const was = env.value?.[n] ?? ''
		if (await change(n, null)) toast({ text: t.env.removed(n), ms: 10000, action: { label: t.undo, run: () => void change(n, was) } })
	}
	if (error.value) return <ErrorState title={t.env.error} error={error.value} retry={() => void load()} />
	if (!env.value) return <Loading lines={4} />
	const all = Object.entries(env.value).sort(([a], [b]) => a.localeCompare(b))
	const covered = (n: string) => secret.test(n) && !bare.value.has(n)
	return <section class="tree variables" aria-label={t.env.title}>
		<form class="pkg-form" onSubmit={(e) => void add(e)}>
			<label>{t.env.name}<input ref={field} type="text" spellcheck={false} autocomplete="off" value={name.value} disabled={!may} onInput={(e) => { name.value = e.currentTarget.value }} aria-describedby="env-problem" /></label>
			<label>{t.env.value}<input type={secret.test(name.value) ? 'password' : 'text'} spellcheck={false} autocomplete="off" value={value.value} disabled={!may} onInput={(e) => { value.value = e.currentTarget.value }} /></label>
			<p class="problem" id="env-problem" role="alert">{problem.value}</p>
			<button class="small primary" type="submit" disabled={!may || !name.value}>{name.value.trim() in env.value ? t.env.replace : t.env.add}</button>
		</form>
		{all.length === 0 && <p class="pad dim">{t.env.empty}</p>}
		<ul class="env-list" tabIndex={0} aria-label={t.env.title}>{all.map(([n, v]) => <li key={n}>
			<span class="env-name" title={n}>{n}</span>
			{editing.value === n ? <input type="text" class="name-field" aria-label={t.env.valueOf(n)} defaultValue={v ?? ''} autofocus ref={(f) => { f?.focus() }} onKeyDown={(e) => { if (e.key === 'Enter') { const to = e.currentTarget.value; editing.value = ''; if (to !== v) void change(n, to) } else if (e.key === 'Escape') editing.value = '' }} onBlur={() => { editing.value = '' }} />
				: <code class="env-value" title={v === null || covered(n) ? undefined : v}>{v === null ? t.env.withheld : covered(n) ? '••••••••' : v || <span class="dim">{t.env.blank}</span>}</code>}
			<span class="env-tools">{v !== null && secret.test(n) && <button class="plain" aria-label={covered(n) ? t.env.show(n) : t.env.hide(n)} title={covered(n) ? t.env.show(n) : t.env.hide(n)} aria-pressed={!covered(n)} onClick={() => { const next = new Set(bare.value); if (!next.delete(n)) next.add(n); bare.value = next }}><Icon name="eye" size={14} /></button>}
				<button class="plain" aria-label={t.env.edit(n)} title={t.env.edit(n)} disabled={!may || v === null} onClick={() => { editing.value = n }}><Icon name="pencil" size={14} /></button>
				<button class="plain" aria-label={t.env.remove(n)} title={t.env.remove(n)} disabled={!may || v === null} onClick={() => void remove(n)}><Icon name="trash-2" size={14} /></button></span>
		</li>)}</ul>
		<p class="note">{t.env.note}</p>
	</section>
}
