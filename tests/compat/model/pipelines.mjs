// pipelines.mjs - many pipelines with a scripted model of one dialect that misbehaves on purpose.
//
//	node pipelines.mjs PORT-FILE DIALECT COUNT
//
// The mock writes its port to the file and waits for a line on stdin: "URL KEY" of the daemon. A pipeline's task names its
// number and its case; the mock answers by that, by the role (which is the model's name) and by how often that
// role was called. Its tokens are summed and compared with the report.
import { writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { createRequire } from 'node:module';

const [portFile, dialect, count] = process.argv.slice(2);
const { LLMock } = await import(createRequire(`${process.env.MODEL_PACKAGES}/package.json`).resolve('@copilotkit/aimock'));
const say = (ok, what, why = []) => console.log([`${ok ? 'ok' : 'not ok'} - models, ${dialect}: ${what}`, ...why.map((w) => `#   ${w}`)].join('\n'));

// ---- replies of a good model ----
const plan = (more) => ({ reasoning: 'r', language: 'python', steps: ['print it'], packages: [], entry: 'main.py',
	checks: [{ kind: 'exit', arg: '0' }, { kind: 'stdout_contains', arg: 'forty-two' }], inputs_needed: [], assumptions: [], confidence: 0.9, ...more });
const code = (text) => ({ reasoning: 'r', files: [{ path: 'main.py', content: text }], entry: 'main.py', packages: [], stdin: null });
const diagnosis = (more) => ({ reasoning: 'r', category: 'unknown', root_cause: 'it says something else', file: 'main.py', line: 1, action: 'edit',
	detail: 'it says what was asked for', edits: [], packages: [], question: null, confidence: 0.8, ...more });
const GOOD = "print('forty-' + 'two')\n";
const fix = diagnosis({ edits: [{ path: 'main.py', old: "'three'", new: "'two'" }] });

// ---- cases: role -> one reply per question; then the last one again. A text is sent as it is. ----
const wrong = code("print('forty-' + 'three')\n");
const fenced = (doc) => '```json\n' + JSON.stringify(doc) + '\n```';
const rate = { error: { message: 'slow down', type: 'rate_limit_error' }, status: 429, retryAfter: 0 };
const down = { error: { message: 'overloaded', type: 'server_error' }, status: 503 };
const bad = { error: { message: 'no such parameter', type: 'invalid_request_error' }, status: 400 };
const cut = { text: JSON.stringify(code(GOOD)).slice(0, 40), finishReason: 'length' };
const cases = {
	good: { planner: [plan()], coder: [code(GOOD)], outcome: ['verified', 'examples_pass', 'plausible'], attempts: 1, calls: 2 },
	fixed: { planner: [plan()], coder: [wrong], debugger: [fix], outcome: ['verified', 'examples_pass', 'plausible'], attempts: 2, calls: 3 },
	fenced_once: { planner: [fenced(plan()), plan()], coder: [code(GOOD)], outcome: ['verified', 'examples_pass', 'plausible'], calls: 3 },
	prose_twice: { planner: ['Sure! Here is a plan.', 'As I said.'], outcome: ['failed'], calls: 2, category: 'model' },
	empty: { planner: ['', plan()], coder: [code(GOOD)], outcome: ['verified', 'examples_pass', 'plausible'] },
	not_whole: { planner: [plan()], coder: [code('# TODO: write this\n'), code(GOOD)], outcome: ['verified', 'examples_pass', 'plausible'], calls: 3 },
	outside: { planner: [plan()], coder: [{ ...code(GOOD), files: [{ path: '../../etc/passwd', content: 'x' }] }, code(GOOD)], outcome: ['verified', 'examples_pass', 'plausible'], calls: 3 },
	cut_off: { planner: [plan()], coder: [cut, cut], outcome: ['failed'] },
	rate_limited: { planner: [rate, plan()], coder: [rate, code(GOOD)], outcome: ['verified', 'examples_pass', 'plausible'], calls: 4 },
	unavailable: { planner: [down, plan()], coder: [code(GOOD)], outcome: ['verified', 'examples_pass', 'plausible'], calls: 3 },
	// Before its first byte: whether the provider charges for it is unknown.
	hangs_up: { planner: [plan()], coder: [code(GOOD)], outcome: ['verified', 'examples_pass', 'plausible'], calls: 3, unsure: true },
	refused: { planner: [bad], outcome: ['failed'], calls: 1, category: 'model' },
	gives_up: { planner: [plan()], coder: [wrong], debugger: [diagnosis({ category: 'wrong_output', action: 'stop', detail: 'nothing helps' })],
		outcome: ['failed'], attempts: 1, category: 'wrong_output' },
	same_again: { planner: [plan()], coder: [wrong], debugger: [diagnosis({ edits: [{ path: 'main.py', old: "'three'", new: "'three'" }] })], outcome: ['failed'], attempts: 1 },
	asks: { planner: [plan({ inputs_needed: [{ name: 'colour', question: 'Which colour?' }] }), plan()], coder: [code(GOOD)],
		answer: 'blue', outcome: ['verified', 'examples_pass', 'plausible'] },
	breaks: { planner: [plan()], coder: [code("import sys\nsys.exit(3)\n")], debugger: [diagnosis({ category: 'unknown', action: 'stop' })], outcome: ['failed'] },
};
const names = Object.keys(cases);

// ---- the mock ----
const asked = new Map(), paid = new Map();
const textOf = (m) => (typeof m.content === 'string' ? m.content : (m.content ?? []).map((p) => p.text ?? '').join('\n'));
const whose = (req) => /number (\d+), case (\w+)/.exec(req.messages.map(textOf).join('\n')) ?? [];
const hangsUp = (req) => whose(req)[2] === 'hangs_up' && req.model === 'planner' && !asked.get(`${whose(req)[1]} planner`);
function reply(req) {
	const [, id, name] = whose(req);
	const list = cases[name]?.[req.model] ?? [''];
	const key = `${id} ${req.model}`, n = asked.get(key) ?? 0, one = list[Math.min(n, list.length - 1)];

	asked.set(key, n + 1);
	const tokens = one.error ? { in: 0, out: 0 } : { in: 100 + n, out: 7 + (Number(id) % 5) };
	const sum = paid.get(id) ?? { in: 0, out: 0, calls: 0 };
	paid.set(id, { in: sum.in + tokens.in, out: sum.out + tokens.out, calls: sum.calls + 1 });
	if (one.error) return one;
	const usage = dialect === 'chat' ? { prompt_tokens: tokens.in, completion_tokens: tokens.out } : { input_tokens: tokens.in, output_tokens: tokens.out };
	const content = typeof one === 'string' ? one : one.text ?? JSON.stringify(one);

	return { content, usage, ...(one.finishReason ? { finishReason: one.finishReason } : {}) };
}
const mock = new LLMock({ port: 0, host: '127.0.0.1', logLevel: 'silent', journalMaxEntries: 10 });
mock.on({ predicate: hangsUp }, reply, { truncateAfterChunks: 2 });
mock.on({ predicate: () => true }, reply);
await mock.start();
writeFileSync(portFile, String(mock.port ?? new URL(mock.url).port));
const [url, key] = String((await once(process.stdin, 'data'))[0]).trim().split(' ');
process.stdin.pause();

// ---- the pipelines ----
async function api(method, path, body) {
	const r = await fetch(url + path, { method, headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
		body: body && JSON.stringify(body), signal: AbortSignal.timeout(60000) });
	const doc = await r.json();
	if (r.status >= 300) throw new Error(`${method} ${path}: ${r.status} ${JSON.stringify(doc)}`);
	return doc;
}
function wrongs(id, want, report) {
	const sum = paid.get(String(id)) ?? { in: 0, out: 0, calls: 0 }, out = [];

	if (!want.outcome.includes(report.outcome)) out.push(`outcome is ${report.outcome}: ${report.why}`);
	if (want.attempts !== undefined && report.attempts !== want.attempts) out.push(`${report.attempts} attempts, not ${want.attempts}`);
	if (want.category && report.category !== want.category) out.push(`category is ${report.category}`);
	for (const what of want.unsure ? [] : ['in', 'out', 'calls'])
		if (report.usage[what] !== sum[what]) out.push(`usage.${what} is ${report.usage[what]}, not ${sum[what]}`);
	if (want.calls !== undefined && sum.calls !== want.calls) out.push(`${sum.calls} questions were asked, not ${want.calls}`);
	return out;
}
async function one(id) {
	const name = names[id % names.length], want = cases[name];
	let report = await api('POST', '/v1/pipelines?wait=1', { mode: 'llm', task: `Do what number ${id}, case ${name} wants, and say forty-two` });

	if (want.answer) {
		if (report.outcome !== 'needs_input') return [`nothing is asked: ${report.outcome}`];
		await api('POST', `/v1/pipelines/${report.run_id}/answer`, { text: want.answer });
		report = await api('GET', `/v1/pipelines/${report.run_id}?wait=1`);
	}
	return wrongs(id, want, report);
}
const found = new Map(names.map((n) => [n, []]));
let next = 0;
await Promise.all(Array.from({ length: 8 }, async () => {
	for (let id; (id = next++) < Number(count); ) {
		let why;
		try { why = await one(id); } catch (e) { why = [String(e)]; }
		found.get(names[id % names.length]).push(...why.map((w) => `number ${id}: ${w}`));
	}
}));
for (const [name, why] of found) say(why.length === 0, `pipelines of the case ${name} end as they should`, why.slice(0, 5));
console.log(`# ran ${count}`);
await mock.stop();
process.exit(0);
