// clients.mjs SDK HOW: a complete session with the official client libraries.
//   SDK: 1 (@modelcontextprotocol/sdk), 2 (@modelcontextprotocol/client); HOW: http, stdio; ERA: legacy, auto
import { assert, api, atoll, key, load, loadFile, main, test, until, url } from "./harness.mjs";

const [sdk, how, era] = process.argv.slice(2);
const old = era === "legacy";
let Client, Http, Stdio, schema;
if (sdk === "1") {
	({ Client } = await load("@modelcontextprotocol/sdk/client/index.js"));
	({ StreamableHTTPClientTransport: Http } = await load("@modelcontextprotocol/sdk/client/streamableHttp.js"));
	({ StdioClientTransport: Stdio } = await load("@modelcontextprotocol/sdk/client/stdio.js"));
} else {
	({ Client, StreamableHTTPClientTransport: Http } = await loadFile("@modelcontextprotocol/client/dist/index.mjs"));
	({ StdioClientTransport: Stdio } = await loadFile("@modelcontextprotocol/client/dist/stdio.mjs"));
}

function transport() {
	if (how === "http")
		return new Http(new URL(url + "/mcp"), { requestInit: { headers: { Authorization: `Bearer ${key}` } } });
	return new Stdio({ command: atoll, args: ["-H", url, "mcp"], env: { ...process.env, ATOLL_KEY: key } });
}
async function session(run) {
	const options = sdk === "2" && !old ? { versionNegotiation: { mode: "auto" } } : {};
	const c = new Client({ name: "atoll-tests", version: "1" }, options);
	await c.connect(transport());
	try {
		return await run(c);
	} finally {
		await c.close();
	}
}
// Versions differ in whether the schema of the result is the second argument.
const call = (c, name, args, options) =>
	sdk === "1" ? c.callTool({ name, arguments: args }, undefined, options) : c.callTool({ name, arguments: args }, options);

test("the protocol version of the client is used", () =>
	session(async (c) => {
		assert.equal(c.getServerVersion()?.name, "atoll");
		assert.ok(c.getServerCapabilities().tools);
		assert.match(c.getInstructions(), /boxes/);
		if (sdk === "2") assert.equal(c.getNegotiatedProtocolVersion(), old ? "2025-11-25" : "2026-07-28");
	}));

test("tools are listed and called", () =>
	session(async (c) => {
		const { tools } = await c.listTools();
		for (const name of ["read_file", "run_command", "apply_patch", "create_box"])
			assert.ok(tools.some((t) => t.name === name), name);
		await call(c, "write_file", { path: "a.txt", content: "hello\n" });
		const r = await call(c, "run_command", { command: "cat a.txt; exit 4" });
		assert.equal(r.isError, true);
		assert.equal(r.structuredContent.exit_code, 4);
		assert.equal(r.structuredContent.stdout, "hello\n");
		await assert.rejects(call(c, "no_such_tool", {}));
		const bad = await call(c, "read_file", { pth: "x" });
		assert.match(bad.content[0].text, /pth: is not a field/);
	}));

// Waits for each line: a library may drop progress that arrives together with the answer.
test("output is sent as progress", () =>
	session(async (c) => {
		const said = [], told = [];
		const received = (n) => told.push(call(c, "write_file", { path: `received${n}`, content: "x" }));
		const wait = "until test -e received$i; do sleep 0.02; done";
		await call(c, "run_command", { command: `rm -f received*; for i in 1 2; do echo line $i; ${wait}; done` },
			{ onprogress: (p) => received(said.push(p)) });
		await Promise.all(told);
		assert.equal(said.map((p) => p.message).join(""), "line 1\nline 2\n");
	}));

test("aborting a call ends its program", () =>
	session(async (c) => {
		const stop = new AbortController();
		const { structuredContent: made } = await call(c, "create_box", {});
		const running = async () => (await api("GET", `/v1/boxes/${made.id}/execs?running=1`)).items.length;
		const done = call(c, "run_command", { box: made.id, command: "sleep 100" }, { signal: stop.signal });
		done.catch(() => {});
		await until(async () => (await running()) === 1);
		stop.abort("enough");
		await assert.rejects(done);
		await until(async () => (await running()) === 0);
		await call(c, "delete_box", { box: made.id });
	}));

test("simultaneous calls get their own answers", () =>
	session(async (c) => {
		const all = await Promise.all([...Array(12).keys()].map((i) => call(c, "run_command", { command: `echo ${i}` })));
		all.forEach((r, i) => assert.equal(r.structuredContent.stdout, `${i}\n`));
	}));

test("files are listed and read as resources", () =>
	session(async (c) => {
		await call(c, "write_file", { path: "ö/file one.txt", content: "text" });
		const { resources } = await c.listResources();
		const one = resources.find((r) => r.name === "file one.txt");
		assert.ok(one, JSON.stringify(resources));
		assert.equal((await c.readResource({ uri: one.uri })).contents[0].text, "text");
		await assert.rejects(c.readResource({ uri: one.uri + "x" }));
		assert.equal((await c.listResourceTemplates()).resourceTemplates.length, 1);
	}));

test("prompts are listed and their arguments completed", () =>
	session(async (c) => {
		assert.equal((await c.listPrompts()).prompts.length, 3);
		const p = await c.getPrompt({ name: "solve", arguments: { task: "count words" } });
		assert.match(p.messages[0].content.text, /count words/);
		const { completion } = await c.complete({ ref: { type: "ref/prompt", name: "solve" }, argument: { name: "language", value: "py" } });
		assert.deepEqual(completion.values, ["python"]);
	}));

if (old)
	test("ping and log level requests are answered", () =>
		session(async (c) => {
			await c.ping();
			await c.setLoggingLevel("info");
			const received = [];
			c.fallbackNotificationHandler = async (n) => void received.push(n);
			await call(c, "run_command", { command: "true" });
			assert.ok(received.some((n) => n.method === "notifications/message"), JSON.stringify(received));
		}));

await main(`mcp client ${sdk}, ${how}, ${era}`);
