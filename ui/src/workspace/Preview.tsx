// A web server of the box in a frame. Its pages are hostile: they come from another origin and another site than this page,
// hold no key, and the frame's sandbox keeps them from leading this page elsewhere.
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { api, box as boxPath } from '../api'
import { Icon } from '../icons'
import { CopyButton, failed } from '../parts/basics'
import * as session from '../session'
import { local } from '../storage'
import { t } from '../texts'

export interface Shown { port: number, url: string }

export function Preview({ box, onClose, initial, want, onChange }: { box: string, onClose: () => void, initial: number, want: { port: number } | null, onChange: () => void }) {
	const port = useSignal(String(initial || local.get(`port.${box}`) || 3000)), shown = useSignal<Shown | null>(null), turn = useSignal(0), busy = useSignal(false)
	const open = async (e?: Event) => {
		e?.preventDefault()
		const n = Number(port.value)
		if (!(n >= 1 && n <= 65535)) return
		busy.value = true
		try {
			const p = await api<{ link: string | null }>(`${boxPath(box)}/ports/${n}`, { method: 'PUT' })
			if (!p.link) throw new Error(t.preview.noAddress)
			shown.value = { port: n, url: p.link }
			turn.value++
			local.set(`port.${box}`, String(n))
			onChange()
		} catch (x) { failed(x) }
		busy.value = false
	}
	useEffect(() => { if (want) { port.value = String(want.port); void open() } }, [want])
	const shut = async () => {
		const s = shown.value
		shown.value = null
		if (s) await api(`${boxPath(box)}/ports/${s.port}`, { method: 'DELETE' }).then(onChange, failed)
	}
	const s = shown.value
	return <section class="preview" aria-label={t.preview.title}>
		<form class="address" onSubmit={open}>
			<label class="hidden" for="preview-port">{t.preview.port}</label>
			<span class="dim" aria-hidden="true">:</span><input id="preview-port" type="text" inputMode="numeric" pattern="[0-9]*" value={port.value} onInput={(e) => { port.value = e.currentTarget.value }} />
			<button class="small" type="submit" disabled={busy.value || !session.mayEdit.value}>{s && String(s.port) === port.value ? <><Icon name="refresh-cw" size={14} /><span>{t.preview.reload}</span></> : <span>{t.open}</span>}</button>
			{s && <><a class="button plain" href={s.url} target="_blank" rel="noopener noreferrer" aria-label={t.preview.tab} title={t.preview.tab}><Icon name="external-link" /></a><CopyButton small text={() => s.url} label={t.preview.copy} /></>}
			<span class="push" />
			<button class="plain" type="button" aria-label={t.preview.close} title={t.preview.close} onClick={onClose}><Icon name="x" /></button>
		</form>
		{s ? <><iframe key={turn.value} src={s.url} title={t.preview.frame(s.port)} sandbox="allow-scripts allow-forms allow-same-origin allow-modals allow-popups allow-downloads" referrerpolicy="no-referrer" allow="" />
			<p class="note">{t.preview.open} <button class="place" onClick={() => void shut()}>{t.preview.shut}</button></p></>
			: <div class="state empty"><p>{t.preview.empty}</p><p class="dim">{t.preview.hint}</p></div>}
	</section>
}
