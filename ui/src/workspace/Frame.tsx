// HTML of a box: results of cells, .html files. Its scripts run with an opaque origin and without network (the policy of
// /frame.html, and the sandbox here): they reach neither this page nor the API nor the browser's storage.
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { dark } from '../theme'

const HEIGHT_MOST = 600

/** whole: a document that fills its place; else a part of one, as high as its content. */
export function Frame({ html, title, whole }: { html: string, title: string, whole?: boolean }) {
	const frame = useRef<HTMLIFrameElement>(null), [height, setHeight] = useState(40), d = dark.value, turn = useRef(0), before = useRef('')
	if (before.current !== html + d) { before.current = html + d; turn.current++ } // another text is another document
	useLayoutEffect(() => {
		let sent = false // once: a page that the HTML leads the frame to gets nothing
		const listen = (e: MessageEvent) => {
			if (e.source !== frame.current?.contentWindow) return
			if (e.data?.ready === true && !sent) { sent = true; frame.current!.contentWindow!.postMessage({ html, dark: d, whole: !!whole }, '*') }
			else if (typeof e.data?.height === 'number' && !whole) setHeight(Math.max(20, Math.min(HEIGHT_MOST, e.data.height)))
		}
		addEventListener('message', listen)
		return () => removeEventListener('message', listen)
	}, [html, d])
	return <iframe key={turn.current} ref={frame} class={whole ? 'html-frame whole' : 'html-frame'} src="/frame.html" loading="lazy" sandbox="allow-scripts" referrerpolicy="no-referrer" allow="" title={title} style={whole ? undefined : { height: `${height}px` }} />
}
