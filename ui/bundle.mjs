// bundle.mjs [--required | --optional] OUTPUT [DEPFILE]: compiles src/ and packs all that browsers get into one file, in the
// format that src/v1/ui.c reads. --optional: where packages cannot be had it prints a warning and leaves an empty file.
// --list prints names and sizes, for the budgets of test/.
import { createHash } from 'node:crypto'
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { fetchPackages } from './fetch.mjs'

const here = dirname(fileURLToPath(import.meta.url))
const types = {
	'.html': 'text/html;charset=utf-8', '.js': 'text/javascript;charset=utf-8', '.css': 'text/css;charset=utf-8',
	'.svg': 'image/svg+xml', '.txt': 'text/plain;charset=utf-8',
}

/** Puts all that the first page needs into one file. Otherwise each module that some of the other pages use, too, becomes a file
 * of its own, and the first page needs twenty. Every page that is loaded later imports all of these modules, so that esbuild finds
 * them used by the same pages. metafile: of a compilation without this. */
function together({ inputs }) {
	const first = new Set(), later = new Set()
	const walk = (path) => {
		if (first.has(path)) return
		first.add(path)
		for (const i of inputs[path].imports) if (i.kind === 'import-statement' && inputs[i.path]) walk(i.path)
	}
	walk('src/main.tsx')
	first.delete('src/main.tsx')
	for (const { imports } of Object.values(inputs)) for (const i of imports) if (i.kind === 'dynamic-import' && i.path.startsWith('src/')) later.add(join(here, i.path))
	return {
		name: 'together',
		setup({ onLoad, onResolve }) {
			onResolve({ filter: /^together$/ }, () => ({ path: 'together', namespace: 'together' }))
			onLoad({ filter: /./, namespace: 'together' }, () => ({ contents: [...first].map((path) => `import ${JSON.stringify(join(here, path))}`).join('\n'), resolveDir: here }))
			onLoad({ filter: /\.tsx?$/ }, ({ path }) => later.has(path) ? { contents: `import 'together'\n${readFileSync(path, 'utf8')}`, loader: extname(path).slice(1) } : undefined)
		},
	}
}

async function compile(plugins = []) {
	const { build } = await import('esbuild')
	const result = await build({
		absWorkingDir: here,
		entryPoints: { app: 'src/main.tsx', style: 'src/style/main.css' },
		entryNames: '[name]-[hash]', chunkNames: '[name]-[hash]', assetNames: '[name]-[hash]',
		outdir: '/a', bundle: true, splitting: true, format: 'esm', target: 'es2022', minify: true,
		jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none', metafile: true, write: false,
		loader: { '.css': 'css' }, logLevel: 'error', plugins,
	})
	return result
}

/** /play/: pages, a worker and a frame of their own, which share no file with the application. */
async function play(all) {
	const { build } = await import('esbuild')
	const { outputFiles, metafile } = await build({
		absWorkingDir: here, entryPoints: { play: 'src/play/page.ts', frame: 'src/play/frame.ts', worker: 'src/play/worker.ts' },
		entryNames: '[name]-[hash]', outdir: '/play', bundle: true, format: 'esm', target: 'es2022', minify: true, legalComments: 'none',
		metafile: true, write: false, logLevel: 'error',
	})
	const names = outputFiles.map((f) => f.path.split('/').pop())
	const path = (name, ending) => '/play/' + names.find((n) => n.startsWith(`${name}-`) && n.endsWith(ending))
	outputFiles.forEach((f, i) => { all['/play/' + names[i]] = Buffer.from(f.contents) })
	const page = (name) => readFileSync(join(here, 'static', name), 'utf8')
	all['/play/'] = Buffer.from(page('play.html').replace('@PLAY_JS@', path('play', '.js')).replace('@PLAY_CSS@', path('play', '.css')))
	all['/play/frame.html'] = Buffer.from(page('play-frame.html').replace('@FRAME@', path('frame', '.js')).replace('@WORKER@', path('worker', '.js')))
	return metafile.inputs
}

/** {path: bytes} of all files, and the names of the two that the page begins with. */
async function files() {
	const { outputFiles, metafile } = await compile([together((await compile()).metafile)])
	const all = {}
	let js, css
	for (const f of outputFiles) {
		const path = '/a/' + f.path.split('/').pop()
		all[path] = Buffer.from(f.contents)
	}
	for (const [out, about] of Object.entries(metafile.outputs)) {
		const path = '/a/' + out.split('/').pop()
		if (about.entryPoint === 'src/main.tsx') js = path
		if (about.entryPoint === 'src/style/main.css') css = path
	}
	// Files that the first screen needs, so that the browser asks for all at once and not for one after the other.
	const outputs = Object.fromEntries(Object.entries(metafile.outputs).map(([out, about]) => ['/a/' + out.split('/').pop(), about]))
	const early = new Set()
	const need = (path) => {
		if (early.has(path)) return
		early.add(path)
		for (const i of outputs[path].imports) if (i.kind === 'import-statement') need('/a/' + i.path.split('/').pop())
	}
	need(js)
	need(Object.keys(outputs).find((path) => outputs[path].entryPoint === 'src/editor/editor.ts'))
	early.delete(js)
	const hints = [...early].sort().map((path) => `<link rel="modulepreload" href="${path}">`).join('\n')
	for (const name of readdirSync(join(here, 'static')))
		if (name !== 'index.html' && !name.startsWith('play')) all['/' + name] = readFileSync(join(here, 'static', name))
	const page = readFileSync(join(here, 'static/index.html'), 'utf8').replaceAll('@JS@', js).replaceAll('@CSS@', css).replace('@EARLY@', hints)
	all['/'] = Buffer.from(page)
	Object.assign(metafile.inputs, await play(all))
	return { all, js, css, metafile }
}

function pack(all) {
	const index = ['atoll-ui 1'], bodies = []
	let offset = 0
	for (const path of Object.keys(all).sort()) {
		const body = gzipSync(all[path], { level: 9 })
		body[9] = 3 // the system's number, which differs between builds of Node
		const hash = createHash('sha256').update(body).digest('hex').slice(0, 32)
		const type = types[path.endsWith('/') ? '.html' : extname(path)]
		if (!type) throw new Error(`${path}: no type is known for this file`)
		index.push(`${path} ${type} ${hash} ${all[path].length} ${offset} ${body.length}`)
		bodies.push(body)
		offset += body.length
	}
	return Buffer.concat([Buffer.from(index.join('\n') + '\n\n'), ...bodies])
}

const [, , output, depfile] = process.argv.filter((a) => !a.startsWith('--'))

/** For ninja: what the output was made of. Packages are known by the lock file. */
function writeDepfile(inputs) {
	const own = ['bundle.mjs', 'fetch.mjs', 'package.json', 'package-lock.json', ...readdirSync(join(here, 'static')).map((f) => `static/${f}`)]
	const all = [...own, ...inputs.filter((f) => f.startsWith('src/'))].map((f) => join(here, f).replaceAll(' ', '\\ '))
	writeFileSync(depfile, `${output}: ${all.join(' ')}\n`)
}
const optional = process.argv.includes('--optional')
try {
	await fetchPackages()
} catch (e) {
	console.error(`${optional ? 'warning: built without the web UI' : 'error: the web UI cannot be built'}: ${e.message}`)
	if (!optional) process.exit(1)
	console.error('once that is there: meson configure BUILD -Dui=enabled (docs/ui.md)')
	writeFileSync(output, '')
	if (depfile) writeDepfile([])
	process.exit(0)
}
const { all, js, css, metafile } = await files()
if (process.argv.includes('--list'))
	console.log(JSON.stringify({ js, css, metafile,
		sizes: Object.fromEntries(Object.entries(all).map(([p, b]) => [p, gzipSync(b, { level: 9 }).length])) }))
if (output) writeFileSync(output, pack(all))
if (depfile) writeDepfile(Object.keys(metafile.inputs))
