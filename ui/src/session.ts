// The session of this tab. The key is in this tab's memory and its sessionStorage: it ends with the tab, is sent only in a header,
// and no page of another origin can read it. A new tab of the same browser asks the others for it.
import { computed, signal } from '@preact/signals'
import { ApiError, api, setKey, whenRefused, type Info } from './api'
import { tab } from './storage'
import { t } from './texts'

export type State = 'starting' | 'out' | 'in' | 'expired'
export const state = signal<State>('starting')
export const info = signal<Info | null>(null)
export const problem = signal('') // why the sign-in form is shown, if it is not the first visit
export const mayEdit = computed(() => info.value !== null && info.value.role !== 'viewer')

const channel = 'BroadcastChannel' in globalThis ? new BroadcastChannel('atoll.session') : null
const SHARE = /^#k=(e2b_[0-9a-f]{40})$/ // a key for one box
let key = ''
let waiting = false // the other tabs were asked for the key, and have not answered in time

if (channel)
	channel.onmessage = ({ data }) => {
		if (data?.ask === 'key' && key && state.value === 'in' && !info.value?.box) channel.postMessage({ key })
		else if (data?.out && key === data.out) forget()
		else if (typeof data?.key === 'string' && waiting && state.value === 'out') void signIn(data.key) // a busy machine answers late
	}

function askOtherTabs(): Promise<string | null> {
	if (!channel) return Promise.resolve(null)
	return new Promise((done) => {
		const timer = setTimeout(() => { waiting = true; done(null) }, 120)
		channel.addEventListener('message', ({ data }) => {
			if (typeof data?.key !== 'string') return
			clearTimeout(timer)
			done(data.key)
		})
		channel.postMessage({ ask: 'key' })
	})
}

function use(k: string) {
	key = k
	waiting = false
	setKey(k)
	tab.set('key', k)
}

function forget() {
	key = ''
	waiting = false
	setKey('')
	tab.remove('key')
	info.value = null
	state.value = 'out'
}

/** Signed in with this key if the daemon takes it. */
export async function signIn(k: string): Promise<boolean> {
	const before = key
	setKey(k)
	try {
		info.value = await api<Info>('/v1/info')
		use(k)
		problem.value = ''
		state.value = 'in'
		return true
	} catch (e) {
		setKey(before)
		problem.value = e instanceof ApiError && e.status === 401 ? t.signIn.refused : e instanceof ApiError && e.offline ? t.signIn.unreachable : e instanceof Error ? e.message : String(e)
		return false
	}
}

export function signOut() {
	const mine = info.value
	if (mine?.role === 'owner') void api(`/v1/keys/${mine.who}`).then((k: any) =>
		k?.name?.startsWith('ui-') ? api(`/v1/keys/${mine.who}`, { method: 'DELETE' }) : null).catch(() => {}).finally(done)
	else done()
	function done() {
		channel?.postMessage({ out: key })
		forget()
	}
}

interface NewKey { key: string, id: string, team: string, role: Info['role'] }
async function exchange(token: string): Promise<NewKey | null> {
	try {
		return await api<NewKey>('/v1/ui/sessions', { body: { token }, withoutKey: true })
	} catch (e) {
		problem.value = e instanceof ApiError && e.offline ? t.signIn.unreachable : t.signIn.linkUsed
		return null
	}
}

/** At the start of the page: a one-time link, a link that shares a box, this tab's key, or that of another tab. */
export async function begin(): Promise<void> {
	const token = location.hash.match(/^#k=([0-9a-f]{48})$/)?.[1], share = location.hash.match(SHARE)?.[1]
	if (token || share) history.replaceState(null, '', location.pathname + location.search) // not in the history, not in a bookmark
	const made = token ? await exchange(token) : null, k = share ?? made?.key ?? tab.get('key') ?? await askOtherTabs()
	whenRefused(() => {
		if (state.value === 'in') {
			problem.value = info.value?.box ? t.signIn.shareEnded : t.signIn.expired
			state.value = 'expired'
		}
	})
	if (made) { // nothing more is needed to show the page
		info.value = { version: '', who: made.id, team: made.team, role: made.role, box: '', limits: {} }
		use(made.key)
		problem.value = ''
		state.value = 'in'
		void refreshInfo().catch(() => {})
		return
	}
	if (k) {
		const why = problem.value
		key = k
		setKey(k)
		try {
			info.value = await api<Info>('/v1/info')
			use(k)
			state.value = 'in'
			problem.value = ''
			return
		} catch (e) {
			if (e instanceof ApiError && e.status !== 401) { // the key may be good: continue, and try again when the daemon answers
				use(k)
				state.value = 'in'
				return
			}
			forget()
			problem.value = why || (share ? t.signIn.shareEnded : t.signIn.refused)
		}
	}
	state.value = 'out'
}

// A link that is opened in a tab which shows this page already does not load it again.
addEventListener('hashchange', () => { if (SHARE.test(location.hash)) location.reload(); else if (location.hash.startsWith('#k=')) void begin() })

export async function refreshInfo() {
	info.value = await api<Info>('/v1/info')
}
