// The view of a file that is more than its text: a notebook, a table, a tree, a page.
import { useEffect, useMemo, useState } from 'preact/hooks'
import { Icon } from '../icons'
import { Loading } from '../parts/basics'
import { t } from '../texts'
import type { Notebook as Model } from './cells'
import type { Document } from './documents'
import { nameOf, parentOf, shown } from './files'
import { Frame } from './Frame'
import { Json } from './Json'
import { Markdown } from './LazyMarkdown'
import { Table } from './Table'
import { parseJson, parseLines } from './parse'

interface Props { box: string, d: Document, notebooks: Map<Document, Model>, onPlace: (file: string, line: number, column: number) => void }

function NotebookPane({ box, d, notebooks, onPlace }: Props) {
	const [code, setCode] = useState<{ V: typeof import('./Notebook').default, M: typeof import('./cells').Notebook } | null>(null)
	useEffect(() => { void Promise.all([import('./Notebook'), import('./cells')]).then(([v, m]) => setCode({ V: v.default, M: m.Notebook })) }, [])
	const nb = useMemo(() => {
		if (!code) return null
		const n = notebooks.get(d) ?? new code.M(box, d)
		notebooks.set(d, n)
		return n
	}, [code, d])
	return code && nb ? <code.V nb={nb} onPlace={onPlace} /> : <Loading lines={5} />
}

function Unreadable({ d, why, line, onPlace }: { d: Document, why: string, line?: number } & Pick<Props, 'onPlace'>) {
	return <div class="state" role="alert"><Icon name="triangle-alert" size={20} /><p><strong>{t.view.notJson(shown(nameOf(d.path)))}</strong></p><p>{why}</p>
		<button class="small" onClick={() => { d.preview.value = false; if (line) onPlace(d.path, line, 1) }}>{line ? t.view.showLine(line) : t.view.showSource}</button></div>
}

function JsonPane({ d, onPlace }: Props) {
	const revision = d.revision.value, read = useMemo(() => /\.(jsonl|ndjson)$/i.test(d.path) ? parseLines(d.text) : parseJson(d.text), [d, revision])
	if ('error' in read) return <Unreadable d={d} why={read.error} line={read.line} onPlace={onPlace} />
	return <div class="view-scroll" tabIndex={0} role="group" aria-label={t.view.tree}><Json value={read.value} /></div>
}

function MarkdownPane({ d, onPlace }: Props) {
	void d.revision.value
	const dir = parentOf(d.path), absolute = (path: string) => path.startsWith('/') ? path : new URL(path, `file://${dir === '/' ? '' : dir}/`).pathname
	return <div class="view-scroll page-like" tabIndex={0} role="group" aria-label={t.view.preview}><Markdown text={d.text} onFile={(path) => onPlace(decodeURIComponent(absolute(path)), 0, 0)}
		image={async (path) => { const { bytes, type } = await d.files.read(decodeURIComponent(absolute(path))); return URL.createObjectURL(new Blob([bytes as BlobPart], { type: /\.svg$/i.test(path) ? 'image/svg+xml' : type })) }} /></div>
}

export default function Viewer(props: Props) {
	const { d } = props
	if (d.viewer === 'notebook') return <NotebookPane {...props} />
	if (d.viewer === 'json') return <JsonPane {...props} />
	if (d.viewer === 'markdown') return <MarkdownPane {...props} />
	void d.revision.value
	if (d.viewer === 'html') return <><p class="note view-note">{t.view.htmlNote}</p><Frame html={d.text} title={shown(nameOf(d.path))} whole /></>
	return <Table text={d.text} tabs={/\.tsv$/i.test(d.path)} name={shown(nameOf(d.path))} />
}
