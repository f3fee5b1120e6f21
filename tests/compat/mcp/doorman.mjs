// doorman.mjs PORT KEY: forwards requests to that port of this machine, and adds the key where it is missing.
import http from "node:http";

const [port, key] = process.argv.slice(2);
const server = http.createServer((q, r) => {
	const headers = { authorization: `Bearer ${key}`, ...q.headers };
	const on = http.request({ host: "127.0.0.1", port, path: q.url, method: q.method, headers }, (a) => {
		r.writeHead(a.statusCode, a.headers);
		r.flushHeaders();
		a.pipe(r);
	});
	on.on("error", () => r.destroy());
	r.on("close", () => on.destroy());
	q.pipe(on);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
