// "Show as code": the same run by other means. Each text runs as it stands where $ATOLL_KEY is set (ui/test runs them).
export interface Program { language: string, code: string, template?: string, stdin?: string, memory?: number, wall_ms?: number }

export function requestOf(p: Program) {
	const body: Record<string, unknown> = { language: p.language, code: p.code }
	if (p.template) body.template = p.template
	if (p.stdin) body.stdin = p.stdin
	if (p.memory) body.limits = { mem: p.memory }
	if (p.wall_ms) body.timeouts = { run_ms: p.wall_ms }
	return body
}

const shell = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

/** A line that is in no line of the text. */
function fence(text: string) {
	let name = 'END'
	while (text.split('\n').includes(name)) name += '_'
	return name
}

function cli(p: Program): string {
	const flags = p.template ? [`-t ${p.template}`, `--lang ${p.language}`] : [`-t ${p.language}`]
	if (p.memory) flags.push(`--mem ${Math.round(p.memory / 1048576)}M`)
	if (p.wall_ms) flags.push(`--time ${p.wall_ms / 1000}s`)
	if (p.stdin) return `printf %s ${shell(p.code)} > program\nprintf %s ${shell(p.stdin)} | atoll run ${flags.join(' ')} program`
	const end = fence(p.code)
	return `atoll run ${flags.join(' ')} - <<'${end}'\n${p.code}${p.code.endsWith('\n') ? '' : '\n'}${end}`
}

const curl = (p: Program, url: string) =>
	`curl -sS ${url}/v1/run -H "X-API-Key: $ATOLL_KEY" -H 'Content-Type: application/json' \\\n  -d ${shell(JSON.stringify(requestOf(p), null, 2))}`

const js = (p: Program, url: string) =>
	`const answer = await fetch("${url}/v1/run", {
  method: "POST",
  headers: { "X-API-Key": process.env.ATOLL_KEY, "Content-Type": "application/json" },
  body: JSON.stringify(${JSON.stringify(requestOf(p), null, 2).replaceAll('\n', '\n  ')}),
});
const run = await answer.json();
console.log(run.stdout, run.cause, run.exit_code);`

/** JSON's strings are Python's, but for the half of an emoji, which JSON.stringify escapes, and no other value occurs. */
const python = (p: Program, url: string) =>
	`import json, os, urllib.request

request = urllib.request.Request(
    "${url}/v1/run",
    data=json.dumps(${JSON.stringify(requestOf(p), null, 4).replaceAll('\n', '\n    ')}).encode(),
    headers={"X-API-Key": os.environ["ATOLL_KEY"], "Content-Type": "application/json"},
)
run = json.load(urllib.request.urlopen(request))
print(run["stdout"], run["cause"], run["exit_code"])`

export const spellings = (p: Program, url: string) => ({ cli: cli(p), curl: curl(p, url), js: js(p, url), python: python(p, url) })
