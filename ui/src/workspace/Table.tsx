// A table of a file: only rows and columns that are seen are drawn, so that a million rows are as quick as ten.
import { useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { Icon } from '../icons'
import { Empty } from '../parts/basics'
import { t } from '../texts'
import { parseTable } from './parse'

const ROW = 26, HEAD = 30, NUMBER = 56, HEIGHT_MOST = 15000000 // browsers do not draw higher elements
const isNumber = (s: string) => s !== '' && Number.isFinite(Number(s))

export function Table({ text, tabs, name }: { text: string, tabs: boolean, name: string }) {
	const scroller = useRef<HTMLDivElement>(null), top = useSignal(0), left = useSignal(0), size = useSignal({ w: 1000, h: 400 }), sort = useSignal<{ column: number, down: boolean } | null>(null), words = useSignal('')
	const data = useMemo(() => {
		const [head = [], ...rows] = parseTable(text, tabs)
		const columns = rows.slice(0, 200).reduce((n, r) => Math.max(n, r.length), head.length)
		const widths = Array.from({ length: columns }, (_, i) => Math.max(60, Math.min(360, 26 + 7.4 * rows.slice(0, 200).reduce((n, r) => Math.max(n, r[i]?.length ?? 0), (head[i]?.length ?? 0) + 2))))
		const numeric = widths.map((_, i) => { const some = rows.slice(0, 200).map((r) => r[i] ?? '').filter(Boolean); return some.length > 0 && some.every(isNumber) })
		const starts = [NUMBER]
		for (const w of widths) starts.push(starts[starts.length - 1]! + w)
		return { head, rows, widths, numeric, starts }
	}, [text, tabs])
	const order = useMemo(() => {
		const need = words.value.toLowerCase(), s = sort.value
		let list: number[] = data.rows.map((_, i) => i)
		if (need) list = list.filter((i) => data.rows[i]!.some((f) => f.toLowerCase().includes(need)))
		if (s) {
			const of = (i: number) => data.rows[i]![s.column] ?? '', by = new Intl.Collator(undefined, { numeric: true })
			list.sort(data.numeric[s.column] ? (a, b) => Number(of(a)) - Number(of(b)) : (a, b) => by.compare(of(a), of(b)))
			if (s.down) list.reverse()
		}
		return list
	}, [data, words.value, sort.value])
	useEffect(() => {
		const watch = new ResizeObserver(() => { if (scroller.current) size.value = { w: scroller.current.clientWidth, h: scroller.current.clientHeight } })
		if (scroller.current) watch.observe(scroller.current)
		return () => watch.disconnect()
	}, [data.rows.length === 0])
	if (!data.head.length) return <Empty text={t.view.noRows} />

	const { starts, widths } = data, height = Math.min(order.length * ROW, HEIGHT_MOST), scale = order.length * ROW / Math.max(1, height)
	const first = Math.max(0, Math.floor(top.value * scale / ROW) - 4), last = Math.min(order.length, first + Math.ceil(size.value.h / ROW) + 8)
	let from = 0, to = widths.length
	while (from < widths.length - 1 && starts[from + 1]! < left.value) from++
	while (to > from + 1 && starts[to - 1]! > left.value + size.value.w) to--
	const seen = widths.slice(from, to).map((_, i) => from + i)
	const at = (i: number) => ({ left: `${starts[i]}px`, width: `${widths[i]}px` })
	const turn = (i: number) => { sort.value = sort.value?.column !== i ? { column: i, down: false } : sort.value.down ? null : { column: i, down: true } }
	return <div class="table-view">
		<div class="view-bar"><input type="search" placeholder={t.view.filter} aria-label={t.view.filter} value={words.value} onInput={(e) => { words.value = e.currentTarget.value; if (scroller.current) scroller.current.scrollTop = 0 }} />
			<span class="dim" role="status">{t.view.rows(order.length, data.rows.length, widths.length)}</span></div>
		<div class="grid-scroll" ref={scroller} tabIndex={0} role="table" aria-label={name} aria-rowcount={order.length + 1} aria-colcount={widths.length + 1} onScroll={(e) => { top.value = e.currentTarget.scrollTop; left.value = e.currentTarget.scrollLeft }}>
			<div role="rowgroup" class="grid-head" style={{ width: `${starts[widths.length]}px`, height: `${HEAD}px` }}><div role="row" aria-rowindex={1}>
				<span role="columnheader" class="grid-n" aria-colindex={1}><span class="hidden">{t.view.row}</span></span>
				{seen.map((i) => <span role="columnheader" key={i} aria-colindex={i + 2} aria-sort={sort.value?.column === i ? sort.value.down ? 'descending' : 'ascending' : undefined} style={at(i)} class={data.numeric[i] ? 'num' : ''}><button onClick={() => turn(i)} title={data.head[i] ?? ''}><span>{data.head[i] ?? ''}</span>{sort.value?.column === i && <Icon name={sort.value.down ? 'chevron-down' : 'chevron-up'} size={12} />}</button></span>)}
			</div></div>
			<div role="rowgroup" class="grid-body" style={{ width: `${starts[widths.length]}px`, height: `${height}px` }}>{order.slice(first, last).map((n, i) => <div role="row" key={n} aria-rowindex={first + i + 2} class={(first + i) % 2 ? 'odd' : ''} style={{ top: `${(first + i) * ROW - (top.value * scale - top.value)}px` }}>
				<span role="rowheader" class="grid-n" aria-colindex={1}>{n + 1}</span>
				{seen.map((c) => <span role="cell" key={c} aria-colindex={c + 2} style={at(c)} class={data.numeric[c] ? 'num' : ''} title={(data.rows[n]![c]?.length ?? 0) > 40 ? data.rows[n]![c]!.slice(0, 2000) : undefined}>{(data.rows[n]![c] ?? '').slice(0, 300)}</span>)}
			</div>)}</div>
		</div>
	</div>
}
