// Templates and their builds, as the daemon has them; and an archive of a folder, packed in the browser for a build.
import { api, request, upload, type Page } from './api'
import { Resource } from './resource'

export type BuildState = 'waiting' | 'building' | 'ready' | 'error' | 'cancelled'
export interface Reason { message: string, step?: string, line?: number, command?: string, output?: string }
export interface Build { id: string, template: string, state: BuildState, tags: string[], created: string, started: string | null, ended: string | null, reason: Reason | null, bytes: number }
export interface Template {
	id: string, name: string, team: string, public: boolean, builtin: boolean, built: boolean, description: string, tags: Record<string, string>, aliases: string[], builds: Build[],
	created: string, updated: string, spawns?: number, cpu?: number, memory?: number, disk?: number, env?: Record<string, string>, user?: string, workdir?: string,
	start?: string, ready?: string, port?: number, lib?: string[], file?: string, instructions?: string, missing?: string[], shipped?: boolean,
}
export interface LogLine { timestamp: string, level: string, message: string, step: number }

export const templates = new Resource(async () => (await api<Page<Template>>('/v1/templates')).items)
export const pathOf = (name: string) => `/v1/templates/${encodeURIComponent(name)}`

export const inProgress = (b: Build | undefined) => b?.state === 'waiting' || b?.state === 'building'
/** What a template is at present: a name of texts.templates.states. */
export const stateOf = (x: Template) => inProgress(x.builds[0]) ? 'building' : x.built ? 'ready' : x.builds[0]?.state === 'error' ? 'error' : 'absent'
/** The bytes of what its default tag names, or of its newest finished build. */
export function sizeOf(x: Template): number | null {
	return (x.builds.find((b) => b.id === x.tags.default) ?? x.builds.find((b) => b.state === 'ready'))?.bytes ?? null
}
export const tagsOf = (x: Template, build: string) => Object.entries(x.tags).filter(([, id]) => id === build).map(([tag]) => tag).sort()

/** One step of a build, from the lines of its log: "[2/5] RUN make", "CACHED [2/5] RUN make", output, "[2/5] done in 1.2 s". */
export interface Step { number: number, title: string, cached: boolean, began: number, ended: number | null, lines: LogLine[] }
const TITLE = /^(CACHED )?\[(\d+)\/(\d+)\] (.*)$/s
export function stepsOf(log: LogLine[], over: string | null): { steps: Step[], of: number } {
	const steps: Step[] = []
	let of = 0
	const begin = (l: LogLine, title: string, cached: boolean) => {
		const last = steps[steps.length - 1], at = Date.parse(l.timestamp)
		if (last && last.ended === null) last.ended = at
		steps.push({ number: steps.length, title, cached, began: at, ended: cached ? at : null, lines: [] })
	}
	for (const l of log) {
		const [, cached, n, all, text] = TITLE.exec(l.message) ?? []
		if (all) of = Number(all)
		if (text && text.startsWith('done in ')) {
			if (steps.length) steps[steps.length - 1]!.ended = Date.parse(l.timestamp)
		} else if (n) begin(l, `${n}/${all} ${text}`, !!cached)
		else if (!steps.length || /^(starting|testing) '/.test(l.message)) begin(l, l.message, false)
		else steps[steps.length - 1]!.lines.push(l)
	}
	const last = steps[steps.length - 1]
	if (last && last.ended === null && over) last.ended = Date.parse(over)
	return { steps, of }
}

// ---- a build from the page ----

/** Without a source: one that comes with the daemon. archive: one that was uploaded. */
export interface BuildRequest { name: string, tags?: string[], source?: { files: Record<string, string>, file: string, archive?: string }, force?: boolean }
export const startBuild = (ask: BuildRequest) => api<Build>('/v1/templates', { body: ask })
export const cancelBuild = (id: string) => request(`/v1/builds/${id}`, { method: 'DELETE' })
export const removeTemplate = (name: string) => request(pathOf(name), { method: 'DELETE' })

/** Sends an archive for the steps that copy files; the result is its name for startBuild(). */
export async function uploadContext(archive: Blob, progress: (part: number) => void): Promise<string> {
	const hash = [...crypto.getRandomValues(new Uint8Array(32))].map((b) => b.toString(16).padStart(2, '0')).join('')
	await upload(`/v1/templates/uploads/${hash}`, archive, new AbortController().signal, (sent) => progress(sent / archive.size))
	return hash
}

export interface Picked { path: string, file: File }

/** The files of a drop, with their paths below the folder that was dropped. */
export async function filesOf(items: DataTransferItemList): Promise<Picked[]> {
	const all: Picked[] = [], roots = [...items].map((i) => i.webkitGetAsEntry()).filter((e) => e !== null)
	const walk = async (entry: FileSystemEntry, at: string): Promise<void> => {
		if (entry.isFile) {
			all.push({ path: at + entry.name, file: await new Promise<File>((done, no) => (entry as FileSystemFileEntry).file(done, no)) })
			return
		}
		const reader = (entry as FileSystemDirectoryEntry).createReader()
		for (;;) {
			const some = await new Promise<FileSystemEntry[]>((done, no) => reader.readEntries(done, no))
			if (!some.length) return
			for (const e of some) await walk(e, roots.length === 1 && entry === roots[0] ? '' : `${at}${entry.name}/`)
		}
	}
	for (const r of roots) await walk(r, '')
	return all
}

const text = new TextEncoder()

/** The header of a file in a tar archive (POSIX ustar; a long path is split at a slash, or has an extended header). */
function header(path: string, size: number, type: string): Uint8Array<ArrayBuffer> {
	const h = new Uint8Array(512), put = (at: number, s: string | Uint8Array) => h.set(typeof s === 'string' ? text.encode(s) : s, at)
	let name = text.encode(path)
	if (name.length > 100) {
		const slash = name.findIndex((c, i) => c === 47 && i <= 155 && name.length - i - 1 <= 100)
		if (slash > 0) {
			put(345, name.slice(0, slash))
			name = name.slice(slash + 1)
		}
	}
	put(0, name.slice(0, 100))
	put(100, '0000644\x000001750\x000001750\x00')
	put(124, size.toString(8).padStart(11, '0') + '\0')
	put(136, '00000000000\0')
	put(148, '        ')
	put(156, type)
	put(257, 'ustar\x0000')
	put(148, h.reduce((sum, c) => sum + c, 0).toString(8).padStart(6, '0') + '\0 ')
	return h
}

/** A tar archive of these files. Their content is read when it is sent. */
export function tarOf(files: Picked[]): Blob {
	const parts: BlobPart[] = []
	const add = (path: string, body: Blob | Uint8Array<ArrayBuffer>, size: number, type: string) => {
		parts.push(header(path, size, type), body, new Uint8Array(-size & 511))
	}
	for (const { path, file } of files) {
		const bytes = text.encode(path).length
		if (bytes > 100) { // an extended header has the whole path, whatever its length
			let n = bytes + 8
			while (`${n} path=${path}\n`.length - path.length + bytes !== n) n++
			const record = text.encode(`${n} path=${path}\n`)
			add('PaxHeader', record, record.length, 'x')
		}
		add(path, file, file.size, '0')
	}
	parts.push(new Uint8Array(1024))
	return new Blob(parts, { type: 'application/x-tar' })
}
