// Highlighting per language, each loaded when it is first needed. What is not here is shown as plain text.
import type { Extension } from '@codemirror/state'
import { StreamLanguage } from '@codemirror/language'

const loaders: Record<string, () => Promise<Extension>> = {
	python: async () => (await import('@codemirror/lang-python')).python(),
	node: async () => (await import('@codemirror/lang-javascript')).javascript({ jsx: true }),
	typescript: async () => (await import('@codemirror/lang-javascript')).javascript({ jsx: true, typescript: true }),
	c: async () => (await import('@codemirror/lang-cpp')).cpp(),
	'c++': async () => (await import('@codemirror/lang-cpp')).cpp(),
	go: async () => (await import('@codemirror/lang-go')).go(),
	rust: async () => (await import('@codemirror/lang-rust')).rust(),
	java: async () => (await import('@codemirror/lang-java')).java(),
	php: async () => (await import('@codemirror/lang-php')).php({ plain: false }),
	json: async () => (await import('@codemirror/lang-json')).json(),
	markdown: async () => (await import('@codemirror/lang-markdown')).markdown(),
	html: async () => (await import('@codemirror/lang-html')).html(),
	css: async () => (await import('@codemirror/lang-css')).css(),
	bash: async () => StreamLanguage.define((await import('@codemirror/legacy-modes/mode/shell')).shell),
	ruby: async () => StreamLanguage.define((await import('@codemirror/legacy-modes/mode/ruby')).ruby),
	r: async () => StreamLanguage.define((await import('@codemirror/legacy-modes/mode/r')).r),
	julia: async () => StreamLanguage.define((await import('@codemirror/legacy-modes/mode/julia')).julia),
	perl: async () => StreamLanguage.define((await import('@codemirror/legacy-modes/mode/perl')).perl),
	lua: async () => StreamLanguage.define((await import('@codemirror/legacy-modes/mode/lua')).lua),
	toml: async () => StreamLanguage.define((await import('@codemirror/legacy-modes/mode/toml')).toml),
	yaml: async () => StreamLanguage.define((await import('@codemirror/legacy-modes/mode/yaml')).yaml),
	dockerfile: async () => StreamLanguage.define((await import('@codemirror/legacy-modes/mode/dockerfile')).dockerFile),
	diff: async () => StreamLanguage.define((await import('@codemirror/legacy-modes/mode/diff')).diff),
	sql: async () => StreamLanguage.define((await import('@codemirror/legacy-modes/mode/sql')).standardSQL),
}

export async function languageFor(name: string): Promise<Extension | null> {
	return await loaders[name]?.() ?? null
}
