// The native API over HTTP. One place adds the key, reads the errors of the daemon, and separates a refused key from a lost
// connection. Every answer is the daemon's word: types here say what docs/daemon.md promises.
import { compareClock } from './clock'
import { t } from './texts'

export interface Limits { mem: number, disk: number, files: number, cpu_milli: number, pids: number, cpu_ms: number | null, wall_ms?: number }
/** How a box is isolated: what was requested, what it got and why. */
export interface Isolation { tier: string, rank: number, engine: string | null, version: string | null, platform: string | null, emulated: boolean, evidence: string | null }
export interface Tier extends Isolation { offered: boolean, reason: string | null }
export interface Box {
	id: string, name: string, tier: string, isolation?: Isolation, state: string, template: string, created: string, ends: string | null, limits: Limits,
	lifetime_from: string, lifetime_ms: number | null, running: number, kept_until: string | null, metadata: Record<string, string>, cause?: string, ended?: string, network?: { allow: string[] }
}
export interface RunRecord {
	id: string, box: string, template?: string, command: string[], started: string, ended: string | null, cause: string | null,
	summary: string | null, hint: string | null, status: number | null, exit_code: number | null, signal: string | number | null,
	cpu_s: number | null, mem_peak: number | null, processes: number | null, stdout_bytes: number, stderr_bytes: number,
	truncated: boolean, limits?: Limits, tier?: string, isolation?: Isolation, layers?: string[], language?: string, step?: string, state: string,
	error?: { type: string | null, message: string | null, file: string | null, line: number | null } | null,
	errors?: { file: string | null, line: number | null, column: number | null, severity: string, message: string }[] | null,
	timings?: { create_us?: number, run_us?: number }
}
export interface Language {
	name: string, title: string, here: boolean, version: string | null, endings: string[], hello: string, install: string, compiled: boolean
}
export interface Info { version: string, who: string, team: string, role: 'viewer' | 'editor' | 'owner', box: string, limits: Record<string, number> }
export interface HostStats { boxes: number, load: number[], memory: { total: number, free: number } }
export interface Page<T> { items: T[], next: string | null }

export class ApiError extends Error {
	constructor(
		public status: number, // 0: the daemon was not reached
		public code: string, message: string, public why = '', public hints: string[] = [], public request = '',
	) { super(message) }
	get offline() { return this.status === 0 }
	/** For a bug report: no key and no content in it. */
	get details() { return `${this.code} (${this.status}): ${this.message}${this.why ? `: ${this.why}` : ''}${this.request ? ` [request ${this.request}]` : ''}` }
}

let key = ''
let onRefused: () => void = () => {}
export const setKey = (k: string) => { key = k }
export const getKey = () => key
export const whenRefused = (f: () => void) => { onRefused = f }

async function failure(answer: Response): Promise<ApiError> {
	const id = answer.headers.get('x-request-id') ?? ''
	try {
		const { error } = await answer.json()
		return new ApiError(answer.status, error.code, error.message, error.why, error.hints, id)
	} catch {
		return new ApiError(answer.status, 'unexpected', t.error.unknown, `HTTP ${answer.status}`, [], id)
	}
}

export interface Ask { method?: string, body?: unknown, raw?: BodyInit, headers?: Record<string, string>, signal?: AbortSignal, withoutKey?: boolean, keepalive?: boolean }

export async function request(path: string, ask: Ask = {}): Promise<Response> {
	const headers: Record<string, string> = { Accept: 'application/json', ...ask.headers }
	if (key && !ask.withoutKey) headers['X-API-Key'] = key
	if (ask.body !== undefined) headers['Content-Type'] = 'application/json'
	let answer: Response
	try {
		answer = await fetch(path, {
			method: ask.method ?? (ask.body !== undefined || ask.raw !== undefined ? 'POST' : 'GET'),
			headers, body: ask.raw ?? (ask.body !== undefined ? JSON.stringify(ask.body) : undefined),
			signal: ask.signal, credentials: 'omit', cache: 'no-store', keepalive: ask.keepalive,
		})
	} catch (e) {
		if (ask.signal?.aborted) throw e
		throw new ApiError(0, 'unreachable', t.error.offline, t.error.offlineWhy)
	}
	compareClock(answer.headers.get('date'))
	if (answer.ok) return answer
	const e = await failure(answer)
	if (e.status === 401 && !ask.withoutKey) onRefused()
	throw e
}

/** A file is sent with its progress, which fetch does not report. */
export function upload(path: string, file: Blob, signal: AbortSignal, progress: (sent: number) => void): Promise<void> {
	return new Promise((done, no) => {
		const x = new XMLHttpRequest(), abort = () => x.abort()
		x.open('PUT', path)
		x.setRequestHeader('Accept', 'application/json')
		x.setRequestHeader('Content-Type', 'application/octet-stream')
		x.setRequestHeader('X-API-Key', key)
		x.upload.onprogress = (e) => progress(e.loaded)
		x.onload = () => {
			if (x.status < 300) return done()
			if (x.status === 401) onRefused()
			void failure(new Response(x.responseText, { status: x.status, headers: { 'x-request-id': x.getResponseHeader('x-request-id') ?? '' } })).then(no)
		}
		x.onerror = () => no(new ApiError(0, 'unreachable', t.error.offline, t.error.offlineWhy))
		x.onabort = () => no(signal.reason)
		x.onloadend = () => signal.removeEventListener('abort', abort)
		signal.addEventListener('abort', abort)
		x.send(file)
	})
}

export async function api<T>(path: string, ask: Ask = {}): Promise<T> {
	const answer = await request(path, ask)
	const text = await answer.text()
	return (text ? JSON.parse(text) : null) as T
}

/** An answer that comes as lines of JSON, each handed over as it arrives. Slow readers slow the program down. */
export async function lines(path: string, ask: Ask, each: (line: any) => void | Promise<void>): Promise<void> {
	const answer = await request(path, { ...ask, headers: { ...ask.headers, Accept: 'application/x-ndjson' } })
	const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader()
	let rest = ''
	for (;;) {
		let part
		try {
			part = await reader.read()
		} catch (e) {
			if (ask.signal?.aborted) throw e
			throw new ApiError(0, 'unreachable', t.error.offline, t.record.lost)
		}
		if (part.done) break
		const all = (rest + part.value).split('\n')
		rest = all.pop()!
		for (const line of all) if (line) await each(JSON.parse(line))
	}
	if (rest.trim()) await each(JSON.parse(rest))
}

export const box = (name: string) => `/v1/boxes/${encodeURIComponent(name)}`
