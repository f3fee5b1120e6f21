// A page whose code is loaded when it is first opened.
import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { ApiError } from '../api'
import { t } from '../texts'
import { ErrorState, Loading } from './basics'
import { Shell } from './Shell'

export function Lazy<P extends object>({ load, props }: { load: () => Promise<ComponentType<P>>, props: P }) {
	const [page, setPage] = useState<{ Page: ComponentType<P> } | null>(null)
	const [error, setError] = useState(false)
	const begin = () => {
		setError(false)
		load().then((Page) => setPage({ Page }), () => setError(true))
	}
	useEffect(begin, [])
	if (page) return <page.Page {...props} />
	return <Shell title={t.product}><div class="page">{error ?
		<ErrorState title={t.error.offline} error={new ApiError(0, 'unreachable', t.error.offlineWhy)} retry={() => location.reload()} /> : <Loading lines={5} />}</div></Shell>
}

/** The same for a part of a page. */
export function Later<P extends object>({ load, props }: { load: () => Promise<ComponentType<P>>, props: P }) {
	const [part, setPart] = useState<{ Part: ComponentType<P> } | null>(null), [error, setError] = useState(false)
	useEffect(() => {
		let gone = false
		setPart(null)
		load().then((Part) => { if (!gone) setPart({ Part }) }, () => setError(true))
		return () => { gone = true }
	}, [load])
	if (error) return <ErrorState title={t.error.offline} error={new ApiError(0, 'unreachable', t.error.offlineWhy)} retry={() => location.reload()} />
	return part ? <part.Part {...props} /> : <Loading lines={4} />
}
