// The view of a file that is more than its text: a notebook, a table, a tree, a page.
import { useEffect, useMemo, useState } from 'preact/hooks'
import { Loading } from '../parts/basics'
import type { Document } from './documents'
import type { Notebook as Model } from './cells'

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

export default function Viewer(props: Props) {
	return <NotebookPane {...props} />
}
