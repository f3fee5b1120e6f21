// A graph over time with one line, a cursor that all graphs share, and markers for what happened.
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { dark } from '../theme'

export interface Marker { at: number, kind: 'memory' | 'run' }
const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

const powers = Array.from({ length: 50 }, (_, i) => 2 ** i)

/** A program that started: a short line at the bottom. The end of memory: a line over the whole height. */
function drawMarkers(u: uPlot, markers: Marker[]) {
	const { ctx, bbox } = u, bottom = bbox.top + bbox.height
	ctx.save()
	ctx.lineWidth = devicePixelRatio
	for (const m of markers) {
		const x = u.valToPos(m.at, 'x', true), run = m.kind === 'run'
		if (x < bbox.left || x > bbox.left + bbox.width) continue
		ctx.strokeStyle = ctx.fillStyle = css(run ? '--fg2' : '--bad')
		ctx.setLineDash(run ? [] : [4 * devicePixelRatio, 3 * devicePixelRatio])
		if (run) {
			ctx.beginPath()
			ctx.moveTo(x, bottom)
			ctx.lineTo(x, bottom - 8 * devicePixelRatio)
			ctx.stroke()
			continue
		}
		ctx.beginPath()
		ctx.moveTo(x, bbox.top)
		ctx.lineTo(x, bottom)
		ctx.stroke()
		ctx.beginPath()
		ctx.arc(x, bbox.top + 4 * devicePixelRatio, 3 * devicePixelRatio, 0, 7)
		ctx.fill()
	}
	ctx.restore()
}

/** Seconds within five minutes, days beyond two. */
function axisTimes(times: number[], span: number): string[] {
	if (span > 2 * 86400) return times.map((n) => new Date(n * 1000).toLocaleDateString([], { day: 'numeric', month: 'short' }))
	return times.map((n) => new Date(n * 1000).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', hour12: false, ...(span <= 300 && { second: '2-digit' }) }))
}

export function Graph({ title, time, values, version, unit, most, markers, from, binary }: {
	title: string, time: number[], values: (number | null)[], version: number, unit: (n: number) => string, most?: number, markers?: Marker[], from?: number, binary?: boolean
}) {
	const place = useRef<HTMLDivElement>(null), plot = useRef<uPlot | null>(null), d = dark.value
	const now = useRef({ markers, from })
	now.current = { markers, from }
	useEffect(() => {
		const axis = { stroke: css('--fg2'), grid: { stroke: css('--line'), width: 1 }, ticks: { stroke: css('--line'), width: 1 }, font: '11px system-ui' }
		const p = plot.current = new uPlot({
			width: 300, height: 150, cursor: { sync: { key: 'atoll' }, drag: { x: true, y: false } }, legend: { show: false },
			scales: { x: { time: true, range: (_u, min, max) => [Math.min(min ?? 0, now.current.from ?? Infinity), max ?? 1] }, y: { range: (_u, _min, max) => [0, Math.max(max ?? 0, most ?? 1) * 1.05] } },
			axes: [{ ...axis, size: 28, values: (u, v) => axisTimes(v, (u.scales.x!.max ?? 0) - (u.scales.x!.min ?? 0)) }, { ...axis, size: 62, ...(binary && { incrs: powers }), values: (_u, v) => v.map((n) => n == null ? '' : unit(n)) }],
			series: [{}, { stroke: css('--acc'), width: 1.5, fill: css('--acc-bg'), points: { show: false }, spanGaps: false }],
			hooks: { draw: [(u) => drawMarkers(u, now.current.markers ?? [])] },
		}, [time, values] as uPlot.AlignedData, place.current!)
		const size = new ResizeObserver(() => p.setSize({ width: Math.max(120, place.current!.clientWidth), height: Math.max(90, place.current!.clientHeight) }))
		size.observe(place.current!)
		return () => { size.disconnect(); p.destroy() }
	}, [d, most])
	useEffect(() => { plot.current?.setData([time, values] as uPlot.AlignedData) }, [version])
	const last = values[values.length - 1]
	return <figure class="graph"><figcaption><span>{title}</span><strong>{last == null ? '–' : unit(last)}</strong></figcaption><div class="plot" ref={place} aria-hidden="true" /></figure>
}
