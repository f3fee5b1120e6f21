// harness.mjs - runs tests and prints TAP; imports packages from the folder where they were installed.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

export { assert };
export const { MCP_URL: url, MCP_KEY: key, MCP_ATOLL: atoll, MCP_PACKAGES: packages } = process.env;
const from = createRequire(packages + "/package.json");
export const load = (name) => import(pathToFileURL(from.resolve(name)));
// Packages that can be imported but not required.
export const loadFile = (path) => import(pathToFileURL(packages + "/node_modules/" + path));

const tests = [];
export const test = (name, run) => tests.push({ name, run });

export async function api(method, path, body) {
	const r = await fetch(url + path, {
		method,
		headers: { "X-API-Key": key, "Content-Type": "application/json" },
		body: body && JSON.stringify(body),
	});
	const text = await r.text();
	assert.ok(r.ok, `${method} ${path}: ${r.status} ${text}`);
	return text ? JSON.parse(text) : null;
}

export async function until(what) {
	for (let i = 0; i < 500; i++) {
		if (await what()) return;
		await new Promise((go) => setTimeout(go, 20));
	}
	throw new Error("never came true");
}

export async function main(title) {
	let failed = 0;
	for (const { name, run } of tests) {
		let clock;
		const late = new Promise((_, no) => (clock = setTimeout(() => no(new Error("takes too long")), 30000)));
		try {
			await Promise.race([run(), late]);
			console.log(`ok - ${title}: ${name}`);
		} catch (e) {
			failed++;
			console.log(`not ok - ${title}: ${name}`);
			console.log(String((e && e.stack) || e).replace(/^/gm, "#   "));
		}
		clearTimeout(clock);
	}
	process.exit(failed ? 1 : 0);
}
