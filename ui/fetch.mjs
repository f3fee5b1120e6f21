// fetch.mjs - puts the packages of package-lock.json into node_modules.
//
// With npm: `npm ci`. Without it (Debian's npm is hundreds of packages, nodejs alone a dozen): every tarball of the
// lock file is downloaded from the registry that the user's or this folder's .npmrc, or npm_config_registry, names, and
// must have the SHA-512 that the lock file has. No script of a package is executed in either way.
import { createHash } from 'node:crypto'
import { execFileSync, spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync, renameSync, rmdirSync, statSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const modules = join(here, 'node_modules')
const stamp = join(modules, '.atoll-stamp')

const wanted = (dev) =>
	createHash('sha256').update(readFileSync(join(here, 'package-lock.json'))).digest('hex') + (dev ? ' dev' : '')

function isThere(dev) {
	if (!existsSync(stamp)) return false
	const have = readFileSync(stamp, 'utf8')
	return have === wanted(dev) || have === wanted(true)
}

function registry() {
	const env = process.env.npm_config_registry || process.env.NPM_CONFIG_REGISTRY
	if (env) return env
	for (const file of [join(here, '.npmrc'), join(homedir(), '.npmrc'), '/etc/npmrc', '/usr/etc/npmrc'])
		if (existsSync(file)) {
			const line = readFileSync(file, 'utf8').match(/^\s*registry\s*=\s*(\S+)/m)
			if (line) return line[1]
		}
	return null
}

const fitsHere = (p) => (!p.os || p.os.includes(process.platform)) && (!p.cpu || p.cpu.includes(process.arch)) &&
	(!p.libc || p.libc.includes('glibc'))

async function download(from, path, p) {
	const name = p.name || path.slice(path.lastIndexOf('node_modules/') + 13)
	const url = `${from.replace(/\/$/, '')}/${name}/-/${name.split('/').pop()}-${p.version}.tgz`
	const answer = await fetch(url)
	if (!answer.ok) throw new Error(`${name} ${p.version}: the registry answered ${answer.status}`)
	const bytes = Buffer.from(await answer.arrayBuffer())
	const sum = 'sha512-' + createHash('sha512').update(bytes).digest('base64')
	if (sum !== p.integrity) throw new Error(`${name} ${p.version}: its content is not that of package-lock.json`)
	const dir = join(here, path)
	mkdirSync(dir, { recursive: true })
	execFileSync('tar', ['xz', '--strip-components=1', '--no-same-owner', '-C', dir], { input: bytes })
}

async function fetchAll(dev) {
	const from = registry()
	if (!from)
		throw new Error('npm is not installed, and no registry is named: install npm, or set npm_config_registry')
	const { packages } = JSON.parse(readFileSync(join(here, 'package-lock.json'), 'utf8'))
	const want = Object.entries(packages).filter(([path, p]) => path && (dev || !p.dev) && fitsHere(p))
	rmSync(modules, { recursive: true, force: true })
	while (want.length)
		await Promise.all(want.splice(0, 8).map(([path, p]) => download(from, path, p).catch((e) => {
			if (!p.optional) throw e
		})))
}

/** sudo keeps HOME at a folder that the owner of this one may not write to. */
function cacheFolder() {
	try {
		accessSync(homedir(), constants.W_OK)
		return []
	} catch {
		return [`--cache=${join(tmpdir(), `atoll-npm-${process.getuid()}`)}`]
	}
}

function npm(dev) {
	const r = spawnSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error',
		'--prefer-offline', '--fetch-retries=1', '--fetch-timeout=20000', ...cacheFolder(), ...(dev ? [] : ['--omit=dev'])],
	{ cwd: here, encoding: 'utf8', timeout: 300000 })
	if (r.error?.code === 'ENOENT') return false
	if (r.status !== 0)
		throw new Error('npm ci failed: ' + (r.stderr || r.error?.message || '').trim().split('\n').slice(0, 3).join('; '))
	return true
}

/** Packages are in node_modules when this returns. dev: those for the tests, too. Throws what is missing. */
export async function fetchPackages(dev = false) {
	if (isThere(dev)) return
	const lock = join(here, '.fetching')
	for (;;) {
		try {
			mkdirSync(lock)
			break
		} catch (e) {
			if (e.code !== 'EEXIST') throw new Error(`cannot write to ${here}: ${e.code}`)
			if (Date.now() - statSync(lock, { throwIfNoEntry: false })?.mtimeMs > 400000) rmdirSync(lock)
			await new Promise((r) => setTimeout(r, 200))
		}
	}
	try {
		if (isThere(dev)) return // another build was faster
		if (!npm(dev)) await fetchAll(dev)
		writeFileSync(stamp + '.new', wanted(dev))
		renameSync(stamp + '.new', stamp)
	} finally {
		rmSync(lock, { recursive: true, force: true })
	}
}

if (process.argv[1] === fileURLToPath(import.meta.url))
	fetchPackages(process.argv.includes('--dev')).catch((e) => {
		console.error(`ui: ${e.message}`)
		process.exit(1)
	})
