// The editor in a page: a plain text until its code is there, so that nothing jumps and nothing is empty.
import { useEffect, useRef } from 'preact/hooks'
import type { Editor, EditorOptions } from '../editor/editor'

export interface EditorHandle { current: Editor | null }
let loading: Promise<typeof import('../editor/editor')> | undefined
export const loadEditor = () => loading ??= import('../editor/editor')

export function CodeEditor({ options, handle, focus }: { options: EditorOptions, handle: EditorHandle, focus?: boolean }) {
	const place = useRef<HTMLDivElement>(null)
	const latest = useRef(options)
	latest.current = options
	useEffect(() => {
		let gone = false
		void loadEditor().then(({ Editor }) => {
			if (gone) return
			place.current!.textContent = ''
			handle.current = new Editor(place.current!, {
				...latest.current,
				onChange: (d) => latest.current.onChange?.(d),
				onRun: latest.current.onRun && (() => latest.current.onRun?.()),
				onSave: latest.current.onSave && (() => latest.current.onSave?.()),
				onCursor: (l, c) => latest.current.onCursor?.(l, c),
			})
			if (focus && (document.activeElement === document.body || !document.activeElement)) handle.current.focus()
		})
		return () => {
			gone = true
			handle.current?.destroy()
			handle.current = null
		}
	}, [])
	return <div class="editor" ref={place}><pre class="editor-wait" aria-hidden="true">{options.doc}</pre></div>
}
