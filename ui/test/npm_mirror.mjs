// npm_mirror.mjs REGISTRY: an npm registry on the loopback, as registry.test, that passes requests on to the registry that npm of
// this machine uses; so builds in boxes work wherever npm does, also behind an address that boxes may not reach. Prints
// "port=PORT" and serves until its stdin ends.
import { createServer } from 'node:http'

const upstream = process.argv[2].replace(/\/*$/, '/')
const server = createServer(async (q, a) => {
	try {
		const from = await fetch(upstream + q.url.slice(1), { headers: { Accept: q.headers.accept ?? '*/*' } })
		let body = Buffer.from(await from.arrayBuffer())
		const type = from.headers.get('content-type') ?? 'application/octet-stream'
		if (type.includes('json')) { // the addresses of the archives
			const about = JSON.parse(body), base = `http://registry.test:${server.address().port}`
			for (const v of Object.values(about.versions ?? {})) if (v.dist?.tarball) v.dist.tarball = base + new URL(v.dist.tarball).pathname
			body = Buffer.from(JSON.stringify(about))
		}
		a.writeHead(from.status, { 'Content-Type': type, 'Content-Length': body.length }).end(body)
	} catch (e) {
		a.writeHead(502).end(String(e))
	}
})
server.listen(0, '127.0.0.1', () => console.log(`port=${server.address().port}`))
process.stdin.resume().on('end', () => process.exit(0))
