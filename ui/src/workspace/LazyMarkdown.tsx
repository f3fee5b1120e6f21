// Markdown whose renderer is loaded when it is first needed; its source until then.
import { useEffect, useState } from 'preact/hooks'
import type { MarkdownProps } from './Markdown'

let Loaded: typeof import('./Markdown').default | null = null

export function Markdown(props: MarkdownProps) {
	const [, again] = useState(0)
	useEffect(() => { if (!Loaded) void import('./Markdown').then((x) => { Loaded = x.default; again(1) }, () => {}) }, [])
	return Loaded ? <Loaded {...props} /> : <pre class="markdown-wait">{props.text}</pre>
}
