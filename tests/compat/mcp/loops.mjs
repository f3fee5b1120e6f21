// loops.mjs: tool loops of the official model libraries, with a scripted model and a real box.
import http from "node:http";
import { api, assert, load, main, test } from "./harness.mjs";

const { default: OpenAI } = await load("openai");
const { default: Anthropic } = await load("@anthropic-ai/sdk");

// A scripted model: replies one turn after the other, and stores the requests.
async function model(turns) {
	const asked = [];
	const server = http.createServer((q, r) => {
		let text = "";
		q.on("data", (d) => (text += d));
		q.on("end", () => {
			asked.push(JSON.parse(text));
			r.writeHead(200, { "Content-Type": "application/json" });
			r.end(JSON.stringify(turns[asked.length - 1]));
		});
	});
	await new Promise((go) => server.listen(0, "127.0.0.1", go));
	return { base: `http://127.0.0.1:${server.address().port}`, asked, close: () => server.close() };
}
async function box(run) {
	const made = await api("POST", "/v1/boxes", {});
	try {
		await run({
			id: made.id,
			openai: (item) => api("POST", `/v1/boxes/${made.id}/tools/openai`, item),
			anthropic: (block) => api("POST", `/v1/boxes/${made.id}/tools/anthropic`, block),
			read: async (path) => (await api("POST", `/v1/boxes/${made.id}/tools/read_file`, { path })).data.content,
		});
	} finally {
		await api("DELETE", `/v1/boxes/${made.id}`);
	}
}

const chat = (message, finish_reason) => ({
	id: "c", object: "chat.completion", created: 1, model: "m",
	choices: [{ index: 0, finish_reason, message: { role: "assistant", content: null, refusal: null, ...message } }],
});
const chatCall = (id, name, args) => ({ id, type: "function", function: { name, arguments: JSON.stringify(args) } });

test("OpenAI chat completions use the tools of a box", () =>
	box(async (b) => {
		const m = await model([
			chat({ tool_calls: [chatCall("c1", "write_file", { path: "n.py", content: "print(6*7)\n" }),
				chatCall("c2", "run_command", { command: "python3 n.py", cwd: null, stdin: null, timeout_ms: null, background: null })] }, "tool_calls"),
			chat({ tool_calls: [chatCall("c3", "read_file", { path: "missing", start_line: null, end_line: null })] }, "tool_calls"),
			chat({ content: "42" }, "stop"),
		]);
		const client = new OpenAI({ apiKey: "none", baseURL: m.base, maxRetries: 0 });
		const { tools } = await api("GET", "/v1/tools?format=openai");
		const messages = [{ role: "user", content: "what is six times seven?" }];
		for (;;) {
			const { choices: [{ message }] } = await client.chat.completions.create({ model: "m", messages, tools });
			messages.push(message);
			if (!message.tool_calls) break;
			for (const call of message.tool_calls) messages.push(await b.openai(call));
		}
		m.close();
		assert.equal(m.asked.length, 3);
		const told = m.asked[2].messages.filter((x) => x.role === "tool");
		assert.deepEqual(told.map((x) => x.tool_call_id), ["c1", "c2", "c3"]);
		assert.match(told[1].content, /^42\n\[exit 0/);
		assert.match(told[2].content, /missing/);
	}));

const response = (output) => ({
	id: "r", object: "response", created_at: 1, model: "m", status: "completed", output, error: null, incomplete_details: null,
	instructions: null, metadata: {}, parallel_tool_calls: true, temperature: 1, tool_choice: "auto", tools: [], top_p: 1,
});

test("OpenAI responses use a box: functions, shell, apply_patch", () =>
	box(async (b) => {
		const m = await model([
			response([{ type: "function_call", id: "f1", call_id: "c1", name: "write_file", status: "completed",
				arguments: JSON.stringify({ path: "a.txt", content: "one\ntwo\n" }) }]),
			response([{ type: "apply_patch_call", id: "p1", call_id: "c2", status: "completed",
				operation: { type: "update_file", path: "a.txt", diff: "@@\n one\n-two\n+three\n" } }]),
			response([{ type: "shell_call", id: "s1", call_id: "c3", status: "completed",
				action: { commands: ["cat a.txt", "exit 5"], timeout_ms: 20000, max_output_length: 4000 } }]),
			response([{ type: "message", id: "m1", role: "assistant", status: "completed",
				content: [{ type: "output_text", text: "done", annotations: [] }] }]),
		]);
		const client = new OpenAI({ apiKey: "none", baseURL: m.base, maxRetries: 0 });
		const { tools } = await api("GET", "/v1/tools?format=openai-responses");
		const input = [{ role: "user", content: "go" }];
		let last;
		for (;;) {
			last = await client.responses.create({ model: "m", input, tools: [...tools, { type: "shell" }, { type: "apply_patch" }] });
			const calls = last.output.filter((item) => item.call_id);
			if (!calls.length) break;
			input.push(...last.output);
			for (const call of calls) input.push(await b.openai(call));
		}
		m.close();
		assert.equal(last.output_text, "done");
		const told = m.asked[3].input.filter((x) => /_output$/.test(x.type || ""));
		assert.deepEqual(told.map((x) => [x.type, x.call_id]),
			[["function_call_output", "c1"], ["apply_patch_call_output", "c2"], ["shell_call_output", "c3"]]);
		assert.equal(told[1].status, "completed");
		assert.deepEqual(told[2].output.map((o) => [o.stdout, o.outcome.exit_code]), [["one\nthree\n", 0], ["", 5]]);
		assert.equal(await b.read("a.txt"), "one\nthree\n");
	}));

const message = (content, stop_reason) => ({
	id: "m", type: "message", role: "assistant", model: "m", content, stop_reason, stop_sequence: null,
	usage: { input_tokens: 1, output_tokens: 1 },
});
const use = (id, name, input) => ({ type: "tool_use", id, name, input });

test("Anthropic messages use a box: bash, the editor, Atoll's tools", () =>
	box(async (b) => {
		const m = await model([
			message([use("t1", "bash", { command: "cd /tmp && export WORD=kept" }),
				use("t2", "str_replace_based_edit_tool", { command: "create", path: "/home/user/x.sh", file_text: "echo $WORD\n" })], "tool_use"),
			message([use("t3", "bash", { command: "pwd; . ~/x.sh" }), use("t4", "list_files", {}),
				use("t5", "str_replace_based_edit_tool", { command: "str_replace", path: "/home/user/x.sh", old_str: "nothing", new_str: "x" })], "tool_use"),
			message([{ type: "text", text: "done" }], "end_turn"),
		]);
		const client = new Anthropic({ apiKey: "none", baseURL: m.base, maxRetries: 0 });
		const { tools } = await api("GET", "/v1/tools?format=anthropic");
		const messages = [{ role: "user", content: "go" }];
		for (;;) {
			const said = await client.messages.create({ model: "m", max_tokens: 100, messages,
				tools: [...tools, { type: "bash_20250124", name: "bash" }, { type: "text_editor_20250728", name: "str_replace_based_edit_tool" }] });
			messages.push({ role: "assistant", content: said.content });
			if (said.stop_reason !== "tool_use") break;
			const results = [];
			for (const block of said.content) if (block.type === "tool_use") results.push(await b.anthropic(block));
			messages.push({ role: "user", content: results });
		}
		m.close();
		const told = m.asked[2].messages[4].content;
		assert.deepEqual(told.map((x) => [x.type, x.tool_use_id, x.is_error]),
			[["tool_result", "t3", undefined], ["tool_result", "t4", undefined], ["tool_result", "t5", true]]);
		assert.match(told[0].content, /^\/tmp\nkept\n/);
		assert.match(told[1].content, /x\.sh/);
	}));

await main("model loops");
