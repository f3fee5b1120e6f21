// Packages of a box, read from its files: no program is started, and it works in a box that is not running anything.
import { ApiError, api, box as boxPath, lines, request, type Box } from '../api'
import { newBox } from '../store'
import { HOME, isFolder, type Entry, type Files } from './files'

export type Manager = 'pip' | 'npm' | 'gem'
/** box: in the home folder, can be removed; layer: mounted when the box was made; system: of the machine. */
export type Origin = 'box' | 'layer' | 'system'
export interface Package { name: string, version: string, origin: Origin }

async function entries(files: Files, path: string): Promise<Entry[]> {
	const out: Entry[] = []
	let after: string | null = ''
	do {
		const page: { items: Entry[], next: string | null } = await api(`${boxPath(files.box)}/files/list?${new URLSearchParams({ path, limit: '1000', ...(after && { after }) })}`)
		out.push(...page.items)
		after = page.next
	} while (after && out.length < 20000)
	return out
}
/** [] if there is no such folder. */
const list = (files: Files, path: string) => entries(files, path).catch((e) => { if (e instanceof ApiError && (e.status === 404 || e.status === 409 || e.status === 403)) return []; throw e })

async function pip(files: Files): Promise<Package[]> {
	const below = async (path: string, inner: string) => (await list(files, path)).filter((e) => isFolder(e) && /^python3/.test(e.name)).map((e) => `${path}/${e.name}/${inner}`)
	const places: [Origin, string[]][] = [['box', await below(`${HOME}/.local/lib`, 'site-packages')], ['layer', await below('/usr/local/lib', 'dist-packages')], ['system', ['/usr/lib/python3/dist-packages']]]
	const out: Package[] = [], seen = new Set<string>()
	for (const [origin, paths] of places)
		for (const path of paths)
			for (const e of await list(files, path)) {
				const m = e.name.match(/^(.+?)-(\d[^-]*)(?:-py[\d.]+)?\.(?:dist|egg)-info$/), key = m?.[1]!.toLowerCase().replace(/[-_.]+/g, '-')
				if (m && !seen.has(key!)) { seen.add(key!); out.push({ name: m[1]!.replace(/_/g, '-'), version: m[2]!, origin }) }
			}
	return out
}

async function npm(files: Files): Promise<Package[]> {
	const out: Package[] = []
	for (const [origin, path] of [['box', `${HOME}/node_modules`], ['layer', '/node_modules']] as const) {
		const found = await list(files, path)
		let versions: Record<string, { version?: string }> = {}
		if (found.some((e) => e.name === '.package-lock.json')) versions = await files.read(`${path}/.package-lock.json`).then(({ bytes }) => JSON.parse(new TextDecoder().decode(bytes)).packages ?? {}, () => ({}))
		const names: string[] = []
		for (const e of found) if (isFolder(e) && !e.name.startsWith('.')) names.push(...(e.name.startsWith('@') ? (await list(files, e.path)).map((x) => `${e.name}/${x.name}`) : [e.name]))
		for (const name of names) {
			const version = versions[`node_modules/${name}`]?.version ?? await files.read(`${path}/${name}/package.json`).then(({ bytes }) => String(JSON.parse(new TextDecoder().decode(bytes)).version ?? ''), () => '')
			out.push({ name, version, origin })
		}
	}
	return out
}

async function gem(files: Files): Promise<Package[]> {
	const out: Package[] = []
	for (const [origin, path] of [['box', `${HOME}/.local/share/gem/ruby`], ['layer', '/var/lib/gems']] as const)
		for (const v of await list(files, path))
			for (const e of await list(files, `${v.path}/specifications`)) { const m = e.name.match(/^(.+)-(\d[^-]*)\.gemspec$/); if (m) out.push({ name: m[1]!, version: m[2]!, origin }) }
	return out
}

export async function installed(files: Files, manager: Manager): Promise<Package[]> {
	return (await { pip, npm, gem }[manager](files)).sort((a, b) => a.name.localeCompare(b.name))
}

/** What a person types in a terminal of the box. */
export const installCommand: Record<Manager, (spec: string[]) => string[]> = {
	pip: (spec) => ['python3', '-m', 'pip', 'install', '--user', '--no-input', '--disable-pip-version-check', '--break-system-packages', ...spec],
	npm: (spec) => ['npm', 'install', '--no-audit', '--no-fund', ...spec], gem: (spec) => ['gem', 'install', '--user-install', '--no-document', ...spec],
}
export const removeCommand: Record<Manager, (name: string) => string[]> = {
	pip: (name) => ['python3', '-m', 'pip', 'uninstall', '--yes', '--break-system-packages', name], npm: (name) => ['npm', 'uninstall', name], gem: (name) => ['gem', 'uninstall', '--executables', '--all', '--user-install', name],
}

export interface Fault { message: string, why: string, category: string, near: string[], versions: string[] }
const faultOf = (e: any): Fault => ({ message: e?.message ?? '', why: e?.why ?? '', category: e?.category ?? '', near: e?.near ?? [], versions: e?.versions ?? [] })

/** A set of packages as a layer for new boxes; what the manager prints is handed over. Returns why it failed, or null. */
export async function makeLayer(manager: Manager, spec: string[], print: (text: string, err: boolean) => void, signal: AbortSignal): Promise<Fault | null> {
	let fault: Fault | null = null
	try {
		await lines('/v1/packages', { body: { packages: { [manager]: spec } }, signal }, (e) => {
			if (e.type === 'install') print(e.text, e.stream === 'stderr')
			else if (e.type === 'error') fault = faultOf(e.error)
		})
	} catch (e) {
		if (!(e instanceof ApiError)) throw e
		fault = { ...faultOf(null), message: e.message, why: e.why }
	}
	return fault
}

/** A new box with these packages, the variables and the home folder of another. */
export async function copyWith(b: Box, manager: Manager, spec: string[], env: Record<string, string>): Promise<Box> {
	const fresh = await newBox({ packages: { [manager]: spec }, ...(Object.keys(env).length && { env }) })
	const tar = await (await request(`${boxPath(b.id)}/files/archive?${new URLSearchParams({ path: HOME, format: 'tar' })}`)).blob()
	await request(`${boxPath(fresh.id)}/files/archive?${new URLSearchParams({ path: HOME, format: 'tar' })}`, { method: 'PUT', raw: tar, headers: { 'Content-Type': 'application/octet-stream' } })
	return fresh
}
