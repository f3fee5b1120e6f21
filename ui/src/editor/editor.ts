// The code editor: CodeMirror with what one expects of an editor, coloured by our own tokens. Loaded when it is first shown.
import { EditorState, Compartment, type Extension, Prec } from '@codemirror/state'
import {
	EditorView, crosshairCursor, drawSelection, dropCursor, highlightActiveLine, highlightActiveLineGutter,
	highlightSpecialChars, keymap, lineNumbers, rectangularSelection,
} from '@codemirror/view'
import { defaultKeymap, history, historyKeymap, indentWithTab, temporarilySetTabFocusMode } from '@codemirror/commands'
import { bracketMatching, foldGutter, foldKeymap, indentOnInput, syntaxHighlighting, indentUnit, HighlightStyle } from '@codemirror/language'
import { tags as g } from '@lezer/highlight'
import { languageFor } from './languages'

export interface EditorOptions {
	doc: string, language: string, label: string, readOnly?: boolean
	onChange?: (doc: string) => void, onRun?: () => void, onSave?: () => void, onCursor?: (line: number, column: number) => void
	keys?: { key: string, run: () => void }[] // before those of the editor
	small?: boolean // as high as its text: the cell of a notebook
}

const style = HighlightStyle.define([
	{ tag: [g.keyword, g.modifier, g.controlKeyword, g.operatorKeyword, g.definitionKeyword, g.moduleKeyword], color: 'var(--s-keyword)' },
	{ tag: [g.string, g.special(g.string), g.regexp, g.character], color: 'var(--s-string)' },
	{ tag: [g.number, g.bool, g.null, g.atom, g.unit], color: 'var(--s-number)' },
	{ tag: [g.comment, g.meta], color: 'var(--s-comment)' },
	{ tag: [g.function(g.variableName), g.function(g.propertyName), g.macroName], color: 'var(--s-function)' },
	{ tag: [g.typeName, g.className, g.namespace, g.tagName], color: 'var(--s-type)' },
	{ tag: [g.propertyName, g.attributeName, g.labelName], color: 'var(--s-name)' },
	{ tag: [g.heading, g.strong], fontWeight: '600' },
	{ tag: g.emphasis, fontStyle: 'italic' },
	{ tag: [g.link, g.url], color: 'var(--s-string)', textDecoration: 'underline' },
	{ tag: g.invalid, color: 'var(--bad)' },
])

const look = EditorView.theme({
	'&': { height: '100%', fontSize: '13px', backgroundColor: 'transparent', color: 'var(--fg)' },
	'&.cm-focused': { outline: 'none' },
	'.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.55', overflow: 'auto' },
	'.cm-content': { padding: '8px 0', caretColor: 'var(--fg)' },
	'.cm-gutters': { backgroundColor: 'transparent', color: 'var(--fg3)', border: 'none', paddingLeft: '4px' },
	'.cm-lineNumbers .cm-gutterElement': { minWidth: '28px' },
	'.cm-activeLine': { backgroundColor: 'var(--line-active)' },
	'.cm-activeLineGutter': { backgroundColor: 'transparent', color: 'var(--fg)' },
	'&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground, ::selection': { backgroundColor: 'var(--selection) !important' },
	'.cm-cursor': { borderLeftColor: 'var(--fg)', borderLeftWidth: '2px' },
	'.cm-matchingBracket, &.cm-focused .cm-matchingBracket': { backgroundColor: 'var(--bg4)', outline: '1px solid var(--line2)' },
	'.cm-panels': { backgroundColor: 'var(--bg2)', color: 'var(--fg)', borderColor: 'var(--line)' },
	'.cm-searchMatch': { backgroundColor: 'var(--warn-bg)' },
	'.cm-foldPlaceholder': { backgroundColor: 'var(--bg3)', border: 'none', color: 'var(--fg2)', padding: '0 6px' },
	'.cm-tooltip': { backgroundColor: 'var(--bg2)', border: '1px solid var(--line)', borderRadius: '6px' },
})

const alone = [history(), keymap.of(historyKeymap)]
const indents: Record<string, string> = { python: '    ', go: '\t', c: '    ', 'c++': '    ', java: '    ', rust: '    ', php: '    ' }

export class Editor {
	readonly view: EditorView
	private language = new Compartment()
	private locked = new Compartment()
	private together = new Compartment() // the undo history of one person, or what several people need
	private shared: Extension | null = null
	private turn = 0
	private quiet = false

	constructor(parent: HTMLElement, private o: EditorOptions) {
		this.view = new EditorView({ parent, state: this.makeState(o.doc) })
		void this.setLanguage(o.language)
	}

	private makeState(doc: string): EditorState {
		const o = this.o
		const run = (f?: () => void) => () => { if (!f) return false; f(); return true }
		return EditorState.create({
			doc,
			extensions: [
				Prec.highest(keymap.of([
					...(o.keys ?? []).map((k) => ({ key: k.key, run: run(k.run), preventDefault: true })),
					{ key: 'Mod-Enter', run: run(o.onRun) },
					{ key: 'Mod-s', run: run(o.onSave), preventDefault: true },
					{ key: 'Escape', run: temporarilySetTabFocusMode }, // then Tab leaves the editor
				])),
				lineNumbers(), highlightSpecialChars(), this.together.of(this.shared ?? alone), o.small ? [] : [highlightActiveLineGutter(), foldGutter(), highlightActiveLine()], drawSelection(), dropCursor(),
				EditorState.allowMultipleSelections.of(true), indentOnInput(), syntaxHighlighting(style), bracketMatching(),
				rectangularSelection(), crosshairCursor(),
				keymap.of([...defaultKeymap.filter((k) => k.key !== 'Mod-Enter'), ...foldKeymap, indentWithTab]),
				this.language.of([]), this.locked.of(this.lock(o.readOnly ?? false)), look,
				EditorView.contentAttributes.of({ 'aria-label': o.label, tabindex: '0', autocapitalize: 'off', autocorrect: 'off', spellcheck: 'false' }),
				EditorView.updateListener.of((u) => {
					if (u.docChanged && !this.quiet) o.onChange?.(u.state.doc.toString())
					if (u.selectionSet || u.docChanged) {
						const at = u.state.selection.main.head, line = u.state.doc.lineAt(at)
						o.onCursor?.(line.number, at - line.from + 1)
					}
				}),
			],
		})
	}

	private lock(on: boolean): Extension { return [EditorState.readOnly.of(on), EditorView.editable.of(!on)] }
	setReadOnly(on: boolean) { this.view.dispatch({ effects: this.locked.reconfigure(this.lock(on)) }) }

	/** Edited by several people, with this extension whose text is doc; null: by one. */
	share(shared: Extension | null, doc: string) {
		this.view.dispatch({ effects: this.together.reconfigure([]) })
		this.replaceDoc(doc)
		this.shared = shared
		this.view.dispatch({ effects: this.together.reconfigure(shared ?? alone) })
	}

	async setLanguage(name: string) {
		const turn = ++this.turn
		const support = await languageFor(name).catch(() => null)
		if (turn === this.turn)
			this.view.dispatch({ effects: this.language.reconfigure([support ?? [], indentUnit.of(indents[name] ?? '  ')]) })
	}

	get doc() { return this.view.state.doc.toString() }

	/** Another text. The undo history is that of one text; the caller is not told of its own change. */
	setDoc(doc: string) {
		this.quiet = true
		this.view.setState(this.makeState(doc))
		this.quiet = false
		void this.setLanguage(this.o.language)
	}

	/** The same file with another content: what did not change keeps its cursor. */
	replaceDoc(doc: string) {
		const old = this.doc
		if (old === doc) return
		let from = 0, end = 0
		while (from < old.length && from < doc.length && old[from] === doc[from]) from++
		while (end < old.length - from && end < doc.length - from && old[old.length - 1 - end] === doc[doc.length - 1 - end]) end++
		this.quiet = true
		this.view.dispatch({ changes: { from, to: old.length - end, insert: doc.slice(from, doc.length - end) } })
		this.quiet = false
	}

	/** Another file: its own state if it was shown before, with cursor and history. */
	show(state: unknown, doc: string, language: string, shared: Extension | null = null) {
		this.o = { ...this.o, language }
		this.shared = shared
		if (!(state instanceof EditorState) || state.doc.toString() !== doc) { this.setDoc(doc); return }
		this.quiet = true
		this.view.setState(state)
		this.quiet = false
	}

	async open(doc: string, language: string) {
		this.o = { ...this.o, language }
		this.setDoc(doc)
	}

	goto(line: number, column = 1) {
		const l = this.view.state.doc.line(Math.max(1, Math.min(line, this.view.state.doc.lines)))
		const at = Math.min(l.from + Math.max(0, column - 1), l.to)
		this.view.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: 'center' }) })
		this.view.focus()
	}

	focus() { this.view.focus() }
	destroy() { this.view.destroy() }
}
