// What the daemon has, kept current: lists are read over HTTP and read again when the events channel says that they changed.
import { computed, effect, signal } from '@preact/signals'
import { api, box as boxPath, request, type Box, type HostStats, type Language, type Page, type RunRecord } from './api'
import { Resource } from './resource'
import * as session from './session'
import { blocked, connection, generation, socket, type Channel } from './socket'
import { t } from './texts'
import { toast } from './toasts'

export const languages = new Resource(async () => (await api<Page<Language>>('/v1/languages')).items)
export const boxes = new Resource(async () => (await api<Page<Box>>('/v1/boxes?limit=500')).items)
export const runs = new Resource(async () => (await api<Page<RunRecord>>('/v1/runs?limit=12')).items)
export const host = new Resource(() => api<HostStats>('/v1/stats'))

/** The only box of this session: it was opened by a link that shares one. Lists of the team are not for it. */
const onlyBox = () => session.info.peek()?.box ?? ''

/** Boxes that the user has deleted and may still bring back. */
const hidden = signal<ReadonlySet<string>>(new Set())
/** Boxes of quick runs live for milliseconds: not those of a run that has its own box. */
export const shownBoxes = computed(() => (boxes.value.value ?? []).filter((b) => !hidden.value.has(b.id) && b.state !== 'making'))

/** The box of a quick run: it lives as long as its program and is not listed. */
export const hideBox = (id: string) => { hidden.value = new Set([...[...hidden.value].slice(-200), id]) }

export interface Figures { cpu: number[], mem: number, pids: number, oom: number }
export const figures = signal<ReadonlyMap<string, Figures>>(new Map())
export const eventListeners = new Set<(e: { type: string, box: string, data: any }) => void>()

let events: Channel | null = null
let lastSeq = -1
const watched = new Map<string, Channel>()

function onEvent(m: any) {
	if (m.op !== 'event') return
	lastSeq = m.seq
	if (m.type.startsWith('box.') && !onlyBox()) boxes.soon()
	if (m.type.startsWith('run.') && !onlyBox()) runs.soon(250)
	for (const f of eventListeners) f(m)
}

function watchFigures(id: string): Channel {
	let before: { us: number, at: number } | null = null
	return socket.channel({
		open: () => { before = null; return { kind: 'stats', box: id } },
		message: (m) => {
			if (m.op !== 'stats') return
			const now = performance.now(), old = figures.value.get(id)
			const cpu = before && m.cpu_us != null ? Math.max(0, (m.cpu_us - before.us) / 1000 / (now - before.at)) : 0
			before = { us: m.cpu_us ?? 0, at: now }
			const next = new Map(figures.value)
			next.set(id, { cpu: [...(old?.cpu ?? []), cpu].slice(-30), mem: m.mem ?? 0, pids: m.pids ?? 0, oom: m.oom_kills ?? 0 })
			figures.value = next
		},
		over: () => { watched.delete(id); if (!onlyBox()) boxes.soon() },
	})
}

const WATCHED_MOST = 24
/** Figures of these boxes once a second, of no others. */
export function watch(ids: string[]) {
	const want = new Set(ids.slice(0, WATCHED_MOST))
	for (const [id, c] of watched)
		if (!want.has(id)) {
			c.close()
			watched.delete(id)
		}
	for (const id of want) if (!watched.has(id)) watched.set(id, watchFigures(id))
}

export function start() {
	socket.start()
	events = socket.channel({ open: () => ({ kind: 'events', ...(lastSeq >= 0 && { after: lastSeq }), ...(onlyBox() && { box: onlyBox() }) }), message: onEvent })
	void languages.load()
}

export function stop() {
	events?.close()
	events = null
	watched.clear()
	figures.value = new Map()
	for (const r of [boxes, runs, host, languages]) r.clear()
	socket.stop()
}

function reload() {
	if (!onlyBox()) for (const r of [boxes, runs, host]) void r.load()
}

// After each connection everything may have changed.
effect(() => {
	if (generation.value === 0) return
	reload()
	if (!languages.value.peek() && !languages.loading.peek()) void languages.load()
	if (!session.info.peek() || generation.value > 1) void checkVersion()
})

export const newVersion = signal('')
let version = ''
async function checkVersion() {
	try { await session.refreshInfo() } catch { return }
	const v = session.info.value!.version
	if (version && v !== version) newVersion.value = v
	version = v
}
effect(() => { if (!version && session.info.value) version = session.info.value.version })

effect(() => { if (blocked.value) reload() })
setInterval(() => {
	if (document.hidden) return
	if (blocked.value) reload()
	else if (connection.value === 'live') void host.load()
}, 10000)

// ---- what is done to boxes ----

export async function newBox(more: Record<string, unknown> = {}): Promise<Box> {
	return api<Box>('/v1/boxes', { body: { ...more, lifetime_ms: Math.min(7200000, session.info.value?.limits.max_lifetime_ms ?? 7200000), lifetime_from: 'use', on_timeout: 'keep' } })
}

export const titleOf = (b: { id: string, name?: string }) => b.name || b.id

export async function act(b: Box, what: 'pause' | 'resume') {
	try {
		await api(`${boxPath(b.id)}/${what}`, { body: {} })
	} catch (e) {
		toast({ text: (e as Error).message, kind: 'bad' })
	}
	void boxes.load()
}

const UNDO_MS = 10000
/** The box is gone from the list at once and from the daemon in ten seconds, unless it is brought back; or when the tab closes. */
export function deleteBox(b: Box) {
	let done = false
	const show = () => { const next = new Set(hidden.value); next.delete(b.id); hidden.value = next }
	const really = (leaving = false) => {
		if (done) return
		done = true
		removeEventListener('pagehide', onHide)
		request(boxPath(b.id), { method: 'DELETE', keepalive: leaving }).then(() => boxes.load(), (e) => {
			show()
			if (e.status !== 404) toast({ text: e.message, kind: 'bad' })
		})
	}
	const onHide = () => really(true)
	addEventListener('pagehide', onHide)
	hidden.value = new Set([...hidden.value, b.id])
	toast({
		text: t.boxes.deleted(titleOf(b)), ms: UNDO_MS, gone: () => really(),
		action: { label: t.undo, run: () => { done = true; removeEventListener('pagehide', onHide); show() } },
	})
}
