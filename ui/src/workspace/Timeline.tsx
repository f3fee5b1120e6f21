// The checkpoints of a box: newest first, branches indented. Take one, list what has changed since, go back with an undo, copy the box.
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { ApiError, api, box as boxPath, type Box, type Page } from '../api'
import { clock } from '../clock'
import { ago, bytes } from '../format'
import { Icon } from '../icons'
import { Empty, ErrorState, Loading, failed } from '../parts/basics'
import { go } from '../router'
import * as session from '../session'
import { eventListeners, titleOf } from '../store'
import { t } from '../texts'
import { toast } from '../toasts'
import type { Files } from './files'

interface Checkpoint { id: string, name: string | null, note: string, parent: string | null, reason: string, author: string, created: string, pinned: boolean, files: { changed: number, deleted: number, bytes: number }, children: Checkpoint[] }
interface Change { path: string, change: string, was?: string }
interface Difference { counts: Record<string, number>, items: Change[], left_out: number }

/** A child continues the line of its parent; all children but the newest are branches. */
function flat(roots: Checkpoint[]): { c: Checkpoint, depth: number }[] {
	const all: { c: Checkpoint, depth: number }[] = []
	const add = (c: Checkpoint, depth: number) => {
		all.push({ c, depth })
		c.children.forEach((x, i) => add(x, depth + (i === c.children.length - 1 ? 0 : 1)))
	}
	for (const r of roots) add(r, 0)
	return all.sort((a, b) => b.c.created.localeCompare(a.c.created))
}

const marks: Record<string, string> = { added: 'A', deleted: 'D', changed: 'M', mode: 'M', type: 'T', renamed: 'R' }

export default function Timeline({ box, files, alive }: { box: string, files: Files, alive: boolean }) {
	const all = useSignal<{ c: Checkpoint, depth: number }[] | null>(null), error = useSignal<ApiError | null>(null), name = useSignal(''), busy = useSignal('')
	const copies = useSignal<Box[]>([])
	const shown = useSignal(''), difference = useSignal<Difference | null>(null)
	const may = session.mayEdit.value && alive && !busy.value, path = boxPath(box)
	const load = async () => {
		error.value = null
		try { all.value = flat((await api<Page<Checkpoint>>(`${path}/checkpoints?tree=true`)).items) } catch (e) { error.value = e as ApiError }
	}
	/** Copies that exist, by the events of this box: the key of a share link may not list other boxes. */
	const loadCopies = async () => {
		if (session.info.value?.box) return
		try {
			const forked = (await api<Page<{ type: string, data: { boxes?: string[] } }>>(`${path}/events?order=newest&limit=1000`)).items.filter((e) => e.type === 'box.forked').flatMap((e) => e.data.boxes ?? [])
			copies.value = forked.length ? (await api<Page<Box>>('/v1/boxes?limit=500')).items.filter((b) => forked.includes(b.id) && b.state === 'running') : []
		} catch { copies.value = [] }
	}
	useEffect(() => {
		const changed = (e: { type: string, box: string }) => {
			if (e.type === 'box.forked' || e.type === 'box.ended') void loadCopies()
			if (e.box !== box) return
			if (e.type.startsWith('checkpoint.')) void load()
			if (e.type === 'box.rolled_back' || e.type === 'box.promoted') for (const p of files.open.value) void files.load(p)
		}
		eventListeners.add(changed)
		void load()
		void loadCopies()
		return () => { eventListeners.delete(changed) }
	}, [box])
	const work = async (what: string, f: () => Promise<void>) => {
		busy.value = what
		try { await f() } catch (e) { failed(e) } finally { busy.value = '' }
	}
	const take = (e: Event) => {
		e.preventDefault()
		void work('take', async () => {
			const named = name.value.trim()
			await api(`${path}/checkpoints`, { body: named ? { name: named } : {} })
			name.value = ''
			await load()
		})
	}
	const replace = (how: 'rollback' | 'promote', body: { to: string } | { from: string }, title: string) => void work(how, async () => {
		const answer = await api<Box & { safety: string | null }>(`${path}/${how}`, { body })
		await load()
		const undo = answer.safety
		toast({ text: t.timeline.went(title), ms: 15000, ...(undo ? { action: { label: t.undo, run: () => back(undo, t.timeline.before) } } : {}) })
	})
	const back = (to: string, title: string) => { replace('rollback', { to }, title) }
	const fork = (from: string) => void work(from, async () => {
		const answer = await api<{ items: { box?: Box, error?: { message: string } }[] }>(`${path}/fork`, { body: { from } }), made = answer.items[0]
		if (made?.box) go(`/b/${made.box.id}`)
		else throw new Error(made?.error?.message ?? '')
	})
	const remove = (c: Checkpoint) => void work(c.id, async () => { await api(`/v1/checkpoints/${c.id}`, { method: 'DELETE' }); await load() })
	const compare = (id: string) => {
		if (shown.value === id) { shown.value = ''; return }
		shown.value = id
		difference.value = null
		void work(id, async () => {
			try { difference.value = await api<Difference>(`/v1/checkpoints/${id}/diff?limit=200`) } catch (e) { shown.value = ''; throw e }
		})
	}
	if (error.value) return <ErrorState title={t.timeline.error} error={error.value} retry={() => void load()} />
	if (!all.value) return <Loading lines={4} />
	return <section class="tree variables timeline" aria-label={t.timeline.title}>
		<form class="pkg-form" onSubmit={take}>
			<label>{t.timeline.name}<input type="text" spellcheck={false} autocomplete="off" value={name.value} disabled={!may} onInput={(e) => { name.value = e.currentTarget.value }} /></label>
			<button class="small primary" type="submit" disabled={!may}>{t.timeline.take}</button>
		</form>
		{all.value.length === 0 && <Empty text={t.timeline.empty} />}
		<ul class="env-list" tabIndex={0} aria-label={t.timeline.title} aria-busy={!!busy.value}>{all.value.map(({ c, depth }) => {
			const title = c.name ?? ago(c.created, clock.value)
			return <li key={c.id} style={{ paddingLeft: `${12 + 14 * Math.min(depth, 8)}px` }}>
				<span class="env-name" title={c.note || c.id}>{title}</span>
				<span class="env-value">{[t.timeline.reasons[c.reason] ?? c.reason, ...(c.name ? [ago(c.created, clock.value)] : []), c.author, t.timeline.files(c.files.changed, c.files.deleted, bytes(c.files.bytes))].filter(Boolean).join(' · ')}</span>
				<span class="env-tools">
					<button class="plain" aria-label={t.timeline.diff(title)} title={t.timeline.diff(title)} aria-expanded={shown.value === c.id} disabled={!may} onClick={() => { compare(c.id) }}><Icon name="list" size={14} /></button>
					<button class="plain" aria-label={t.timeline.back(title)} title={t.timeline.back(title)} disabled={!may} onClick={() => { back(c.id, title) }}><Icon name="rotate-ccw" size={14} /></button>
					<button class="plain" aria-label={t.timeline.fork(title)} title={t.timeline.fork(title)} disabled={!may} onClick={() => { fork(c.id) }}><Icon name="copy" size={14} /></button>
					<button class="plain" aria-label={t.timeline.remove(title)} title={t.timeline.remove(title)} disabled={!may} onClick={() => { remove(c) }}><Icon name="trash-2" size={14} /></button></span>
				{shown.value === c.id && <div class="timeline-diff" role="status">{!difference.value ? <span class="dim">{t.timeline.comparing}</span> : <>
					{difference.value.items.length === 0 && <span class="dim">{t.timeline.same}</span>}
					{difference.value.items.map((x) => <code key={x.path}>{marks[x.change] ?? '?'} {x.was ? `${x.was} → ${x.path}` : x.path}</code>)}
					{difference.value.left_out > 0 && <span class="dim">{t.timeline.more(difference.value.left_out)}</span>}</>}</div>}
			</li>
		})}</ul>
		{copies.value.length > 0 && <section class="timeline-copies" aria-label={t.timeline.copies}><h3>{t.timeline.copies}</h3><ul>{copies.value.map((b) => <li key={b.id}>
			<a href={`/b/${b.id}`}>{titleOf(b)}</a>
			<button class="small" aria-label={t.timeline.promoteOf(titleOf(b))} disabled={!may} onClick={() => { replace('promote', { from: b.id }, titleOf(b)) }}>{t.timeline.promote}</button></li>)}</ul></section>}
		<p class="note">{t.timeline.notice}</p>
	</section>
}
