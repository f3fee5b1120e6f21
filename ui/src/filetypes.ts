// What a file is, by its name.
const endings: Record<string, string> = {
	py: 'python', pyi: 'python', js: 'node', mjs: 'node', cjs: 'node', jsx: 'node', ts: 'typescript', tsx: 'typescript', sh: 'bash', bash: 'bash',
	c: 'c', h: 'c', cc: 'c++', cpp: 'c++', cxx: 'c++', hpp: 'c++', go: 'go', rs: 'rust', java: 'java', rb: 'ruby', php: 'php', r: 'r', R: 'r',
	jl: 'julia', pl: 'perl', lua: 'lua', json: 'json', ipynb: 'json', geojson: 'json', jsonl: 'json', ndjson: 'json', md: 'markdown', markdown: 'markdown', html: 'html', htm: 'html', svg: 'html', xml: 'html', css: 'css',
	toml: 'toml', ini: 'toml', yml: 'yaml', yaml: 'yaml', diff: 'diff', patch: 'diff', sql: 'sql',
}
export function languageOf(path: string): string {
	const name = path.split('/').pop()!
	if (name === 'Dockerfile') return 'dockerfile'
	return endings[name.split('.').pop()!] ?? 'text'
}
