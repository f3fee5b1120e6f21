// The panel "Network" of a box: what waits for an approval, the rules, the last connections.
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { clock } from '../clock'
import { ago, bytes } from '../format'
import { Icon } from '../icons'
import { Empty, View, failed } from '../parts/basics'
import { useEvery } from '../parts/paged'
import * as session from '../session'
import { t } from '../texts'
import type { Connection, Decision, Network, Rules, Waiting } from './network'

const x = t.network

function Requests({ list, decide, may }: { list: Waiting[], decide: (id: string, d: Decision) => void, may: boolean }) {
	return <section aria-label={x.waiting}><ul class="net-waiting">{list.map((r) => <li key={r.id}>
		<span class="mark"><Icon name="triangle-alert" size={14} /><span>{x.wants(`${r.host}:${r.port}`)}</span></span>
		<span class="row push">
			<button class="small" disabled={!may} onClick={() => decide(r.id, { decision: 'once' })}>{x.once}</button>
			<button class="small" disabled={!may} onClick={() => decide(r.id, { decision: 'for', seconds: 3600 })}>{x.hour}</button>
			<button class="small" disabled={!may} onClick={() => decide(r.id, { decision: 'always' })}>{x.always}</button>
			<button class="small danger" disabled={!may} onClick={() => decide(r.id, { decision: 'deny' })}>{x.refuse}</button>
		</span></li>)}</ul></section>
}

function RuleList({ rules, change, may }: { rules: Rules, change: (to: { allow?: string[], deny?: string[], ask?: boolean }) => Promise<boolean>, may: boolean }) {
	const text = useSignal(''), kind = useSignal<'allow' | 'deny'>('allow')
	const add = async (e: Event) => {
		e.preventDefault()
		const rule = text.value.trim()
		if (rule && await change(kind.value === 'allow' ? { allow: [...rules.allow, rule] } : { deny: [...rules.deny, rule] })) text.value = ''
	}
	const row = (rule: string, verdict: string, remove?: () => void) => <li key={`${verdict} ${rule}`}><span class={verdict === x.denied ? 'bad' : ''}>{verdict}</span><code>{rule}</code>
		{remove && <button class="plain push" disabled={!may} aria-label={x.remove(rule)} title={x.remove(rule)} onClick={remove}><Icon name="x" size={13} /></button>}</li>
	return <section class="net-rules" aria-label={x.rules}>
		<form onSubmit={(e) => void add(e)}>
			<select aria-label={x.kind} value={kind.value} disabled={!may} onChange={(e) => { kind.value = e.currentTarget.value as 'allow' | 'deny' }}><option value="allow">{x.allow}</option><option value="deny">{x.deny}</option></select>
			<input aria-label={x.rule} placeholder={x.placeholder} value={text.value} disabled={!may} spellcheck={false} autocapitalize="off" onInput={(e) => { text.value = e.currentTarget.value }} />
			<button class="small" disabled={!may || !text.value.trim()}>{x.add}</button>
		</form>
		<label class="row"><input type="checkbox" checked={rules.ask} disabled={!may} onChange={(e) => void change({ ask: e.currentTarget.checked })} /><span>{x.ask}</span></label>
		<ul>
			{rules.deny.map((r) => row(r, x.denied, () => void change({ deny: rules.deny.filter((y) => y !== r) })))}
			{rules.allow.map((r) => row(r, x.allowed, () => void change({ allow: rules.allow.filter((y) => y !== r) })))}
			{rules.allow_until.map((r) => row(r.rule, x.until(new Date(r.until).toLocaleTimeString())))}
			{rules.registries.map((r) => row(r, x.registry))}
		</ul>
	</section>
}

function Log({ list }: { list: Connection[] }) {
	if (!list.length) return <Empty text={x.none} />
	return <table class="samples"><caption class="hidden">{x.log}</caption><thead><tr><th scope="col">{x.when}</th><th scope="col">{x.destination}</th><th scope="col">{x.verdict}</th><th scope="col">{t.monitor.received}</th><th scope="col">{t.monitor.sent}</th></tr></thead>
		<tbody>{list.slice().reverse().map((c) => <tr key={c.seq}><td>{ago(c.began, clock.value)}</td><th scope="row">{c.host ? `${c.host}:${c.port}` : '–'}</th>
			<td>{c.verdict === 'ok' ? <span>{x.ok}</span> : <span class="bad" title={c.hint || undefined}>{c.why || c.verdict}</span>}</td><td>{bytes(c.bytes_in)}</td><td>{bytes(c.bytes_out)}</td></tr>)}</tbody></table>
}

export default function NetworkPanel({ network, shown, alive }: { network: Network, shown: boolean, alive: boolean }) {
	const may = session.mayEdit.value && alive
	useEffect(() => { if (shown) void network.rules.load() }, [shown, network])
	useEvery(3000, async () => { if (shown && alive) await network.rules.load() })
	const tried = async (f: () => Promise<void>): Promise<boolean> => { try { await f(); return true } catch (e) { failed(e); return false } }
	return <div class="net scroll" tabIndex={0} role="group" aria-label={x.title}><View of={network.rules} title={x.error}>{(r) => <>
		{r.why && <p class="pad bad" role="status">{r.why}</p>}
		{r.requests.length > 0 && <Requests list={r.requests} may={may} decide={(id, d) => void tried(() => network.decide(id, d))} />}
		<RuleList rules={r} may={may} change={(to) => tried(() => network.change(to))} />
		<p class="pad dim">{x.totals(r.connections, r.refused, bytes(r.bytes_in), bytes(r.bytes_out))}</p>
		<Log list={r.recent} />
	</>}</View></div>
}
