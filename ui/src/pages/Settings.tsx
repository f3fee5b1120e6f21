// Settings: keys, secrets, teams and quotas, models, and what this daemon is.
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useMemo } from 'preact/hooks'
import { ApiError, api, request, type Info, type Language, type Page } from '../api'
import { clock } from '../clock'
import { ago, bytes, duration } from '../format'
import { Icon } from '../icons'
import { CopyButton, Dialog, Empty, ErrorState, Line, Loading, View, failed } from '../parts/basics'
import { PagedView, usePaged } from '../parts/paged'
import { Shell } from '../parts/Shell'
import { Resource } from '../resource'
import * as session from '../session'
import { generation } from '../socket'
import { languages, shownBoxes, titleOf } from '../store'
import { t } from '../texts'
import { theme } from '../theme'
import { local } from '../storage'
import { toast } from '../toasts'

const x = t.settings

/** A resource that only some roles may read: the others get a sentence. */
function Guarded<T>({ of, error, children }: { of: Resource<T>, error: string, children: (v: T) => ComponentChildren }) {
	const e = of.error.value
	if (e?.status === 403 && of.value.value === null) return <Empty text={x.notAllowed} />
	return <View of={of} title={error} slow={t.slow}>{children}</View>
}

function useResource<T>(read: () => Promise<T>, key: unknown = ''): Resource<T> {
	const of = useMemo(() => new Resource(read), [key])
	useEffect(() => void of.load(), [of, generation.value])
	return of
}

// ---- keys ----

interface Key { id: string, name: string, team: string, role: string, box: string, shown: string, revoked: boolean, created: string, used: string | null, expires: string | null, key?: string }
const LIFETIMES = [0, 1, 7, 30, 90, 365], DAY_MS = 86400000

function NewKey({ onMade }: { onMade: (k: Key) => void }) {
	const name = useSignal(''), role = useSignal('editor'), days = useSignal(30), box = useSignal(''), busy = useSignal(false)
	const make = async () => {
		if (!name.value.trim() || busy.value) return
		busy.value = true
		try {
			onMade(await api<Key>('/v1/keys', { body: { name: name.value.trim(), role: role.value, ...(days.value && { expires_ms: days.value * DAY_MS }), ...(box.value && { box: box.value }) } }))
			name.value = ''
		} catch (e) { failed(e) }
		busy.value = false
	}
	return <form class="fields" aria-label={x.newKey} onSubmit={(e) => { e.preventDefault(); void make() }}>
		<label>{x.name}<input type="text" id="key-name" value={name.value} placeholder={x.namePlaceholder} onInput={(e) => { name.value = e.currentTarget.value }} /></label>
		<label>{x.role}<select value={role.value} onChange={(e) => { role.value = e.currentTarget.value }}>{Object.keys(x.roles).map((r) => <option value={r} key={r}>{x.roles[r]}</option>)}</select></label>
		<label>{x.scope}<select value={box.value} onChange={(e) => { box.value = e.currentTarget.value }}><option value="">{x.allBoxes}</option>{shownBoxes.value.slice(0, 200).map((b) => <option value={b.id} key={b.id}>{x.onlyBox(titleOf(b))}</option>)}</select></label>
		<label>{x.expires}<select value={days.value} onChange={(e) => { days.value = Number(e.currentTarget.value) }}>{LIFETIMES.map((d) => <option value={d} key={d}>{d ? x.days(d) : x.never}</option>)}</select></label>
		<button class="primary" type="submit" disabled={busy.value || !name.value.trim()}><Icon name="plus" size={14} /><span>{x.create}</span></button>
	</form>
}

function Secret({ k, onClose }: { k: Key, onClose: () => void }) {
	return <Dialog title={x.secretTitle(k.name)} onClose={onClose}><div class="secret">
		<p>{x.secretOnce}</p>
		<div class="cli"><code>{k.key}</code><CopyButton small text={() => k.key!} label={x.copyKey} /></div>
		<p class="dim">{x.secretScope(x.roles[k.role] ?? k.role, k.box, k.expires ? new Date(k.expires).toLocaleDateString() : '')}</p>
		<p class="row"><CopyButton text={() => k.key!} label={x.copyKey} /><button class="primary" onClick={onClose}>{x.stored}</button></p>
	</div></Dialog>
}

function Keys() {
	const list = usePaged<Key>('/v1/keys', (k) => k.id), made = useSignal<Key | null>(null), asked = useSignal<Key | null>(null), all = useSignal(false), me = session.info.value
	const revoke = async (k: Key) => {
		asked.value = null
		try { await request(`/v1/keys/${k.id}`, { method: 'DELETE' }); toast({ text: x.revoked(k.name) }); await list.first.load() } catch (e) { failed(e) }
	}
	if (list.first.error.value?.status === 403) return <Card title={x.keys}><Empty text={x.notAllowed} /></Card>
	const over = (k: Key) => k.revoked || (k.expires !== null && Date.parse(k.expires) < clock.value)
	return <Card title={x.keys} more={<label class="check push"><input type="checkbox" checked={all.value} onChange={(e) => { all.value = e.currentTarget.checked }} />{x.showOver}</label>}>
		<NewKey onMade={(k) => { made.value = k; void list.first.load() }} />
		<PagedView of={list} error={x.keysError} empty={<Empty text={x.noKeys} cli="atoll key new NAME" />}>{(keys) => <div class="scroll-x" tabIndex={0} role="group" aria-label={x.keys}><table class="rows keys-table">
			<thead><tr><th scope="col">{x.name}</th><th scope="col">{x.begins}</th><th scope="col">{x.role}</th><th scope="col">{x.scope}</th><th scope="col">{x.created}</th><th scope="col">{x.used}</th><th scope="col">{x.expires}</th><th scope="col"><span class="hidden">{t.boxes.actions}</span></th></tr></thead>
			<tbody>{keys.filter((k) => all.value || !over(k)).map((k) => <tr key={k.id} class={over(k) ? 'over-key' : ''}><td><strong>{k.name}</strong>{k.id === me?.who && <span class="tag">{x.thisSession}</span>}</td><td><code>{k.shown}…</code></td><td>{x.roles[k.role] ?? k.role}</td><td>{k.box ? <a href={`/b/${k.box}`}>{k.box}</a> : x.allBoxes}</td>
				<td>{ago(k.created, clock.value)}</td><td>{k.used ? ago(k.used, clock.value) : x.neverUsed}</td><td>{k.revoked ? <span class="mark bad">{x.isRevoked}</span> : k.expires ? over(k) ? x.expired : t.boxes.endsIn(duration(Date.parse(k.expires) - clock.value)) : x.never}</td>
				<td class="end">{!over(k) && <button class="small" onClick={() => { asked.value = k }}>{x.revoke}<span class="hidden"> {k.name}</span></button>}</td></tr>)}</tbody>
		</table></div>}</PagedView>
		{made.value && <Secret k={made.value} onClose={() => { made.value = null }} />}
		{asked.value && <Dialog title={x.revokeTitle(asked.value.name)} onClose={() => { asked.value = null }}><div class="secret"><p>{asked.value.id === me?.who ? x.revokeOwn : x.revokeWhat}</p>
			<p class="row"><button onClick={() => { asked.value = null }}>{t.cancel}</button><button class="stop" onClick={() => void revoke(asked.value!)}>{x.revoke}</button></p></div></Dialog>}
	</Card>
}

// ---- teams ----

const QUOTAS = ['boxes', 'executions_per_day', 'compute_ms_per_month', 'output_bytes_per_day', 'requests_per_second'] as const
type Quota = typeof QUOTAS[number]
interface Team { name: string, created: string | null, quotas: Record<Quota, number | null>, own: Record<Quota, number | null>, usage?: { boxes: number, executions_today: number, output_bytes_today: number, compute_ms_this_month: number } }
interface Usage extends Team { days: { day: string, executions: number, compute_ms: number, output_bytes: number, boxes_created: number }[] }
const shown = (q: Quota, n: number | null) => n === null ? x.unlimited : q === 'compute_ms_per_month' ? duration(n) : q === 'output_bytes_per_day' ? bytes(n) : n.toLocaleString()
const used = (n: string, q: Quota, u: Team) => u.quotas[q] === null ? x.usedFree(n) : x.usedOf(n, shown(q, u.quotas[q]))
const isOperator = (i: Info | null) => i?.role === 'owner' && i.team === 'default'

function Secrets() {
	const list = usePaged<{ name: string, version?: number, hosts?: string[], updated?: string }>('/v1/secrets', (s) => s.name), name = useSignal(''), value = useSignal(''), hosts = useSignal(''), busy = useSignal(false), asked = useSignal(''), may = session.mayEdit.value
	const set = async () => {
		if (!name.value.trim() || !value.value || busy.value) return
		busy.value = true
		const only = hosts.value.split(/[\s,]+/).filter(Boolean)
		try {
			await request(`/v1/secrets/${encodeURIComponent(name.value.trim())}`, { method: 'PUT', body: { value: value.value, ...(only.length && { hosts: only }) } })
			toast({ text: x.secretSet(name.value.trim()) })
			name.value = hosts.value = ''
			await list.first.load()
		} catch (e) { failed(e) }
		value.value = '' // it is not kept in the page, whatever happened
		busy.value = false
	}
	const remove = async (n: string) => {
		asked.value = ''
		try { await request(`/v1/secrets/${encodeURIComponent(n)}`, { method: 'DELETE' }); toast({ text: x.secretRemoved(n) }); await list.first.load() } catch (e) { failed(e) }
	}
	return <Card title={x.secrets}>
		<form class="fields" aria-label={x.setSecret} onSubmit={(e) => { e.preventDefault(); void set() }}>
			<label>{x.name}<input type="text" id="secret-name" autocomplete="off" value={name.value} placeholder="API_KEY" disabled={!may} onInput={(e) => { name.value = e.currentTarget.value }} /></label>
			<label>{x.value}<input type="password" id="secret-value" autocomplete="new-password" value={value.value} disabled={!may} onInput={(e) => { value.value = e.currentTarget.value }} /></label>
			<label>{x.onlyHosts}<input type="text" id="secret-hosts" autocomplete="off" value={hosts.value} placeholder="api.example.org" disabled={!may} onInput={(e) => { hosts.value = e.currentTarget.value }} /></label>
			<button class="primary" type="submit" disabled={!may || busy.value || !name.value.trim() || !value.value}><Icon name="plus" size={14} /><span>{x.setSecret}</span></button>
		</form>
		<p class="pad dim">{x.secretsLead}</p>
		<PagedView of={list} error={x.secretsError} empty={<Empty text={x.noSecrets} cli="atoll secret set API_KEY" />}>{(all) => <div class="scroll-x" tabIndex={0} role="group" aria-label={x.secrets}><table class="rows secrets-table">
			<thead><tr><th scope="col">{x.name}</th><th scope="col">{x.onlyHosts}</th><th scope="col">{x.secretVersion}</th><th scope="col">{x.changed}</th><th scope="col"><span class="hidden">{t.boxes.actions}</span></th></tr></thead>
			<tbody>{all.map((s) => <tr key={s.name}><td><strong>{s.name}</strong></td><td>{s.hosts?.length ? s.hosts.join(', ') : x.anyUse}</td><td class="n">{s.version ?? '–'}</td><td>{s.updated ? ago(s.updated, clock.value) : '–'}</td>
				<td class="end"><button class="small" disabled={!may} onClick={() => { asked.value = s.name }}>{x.remove}<span class="hidden"> {s.name}</span></button></td></tr>)}</tbody>
		</table></div>}</PagedView>
		{asked.value && <Dialog title={x.removeSecret(asked.value)} onClose={() => { asked.value = '' }}><div class="secret"><p>{x.removeSecretWhat}</p>
			<p class="row"><button onClick={() => { asked.value = '' }}>{t.cancel}</button><button class="stop" onClick={() => void remove(asked.value)}>{x.remove}</button></p></div></Dialog>}
	</Card>
}

function EditTeam({ team, onDone }: { team: Team | null, onDone: () => void }) {
	const name = useSignal(team?.name ?? ''), values = useSignal<Record<string, string>>(Object.fromEntries(QUOTAS.map((q) => [q, team?.own[q] == null ? '' : String(team.own[q])]))), busy = useSignal(false)
	const save = async () => {
		busy.value = true
		try {
			await api(`/v1/teams/${encodeURIComponent(name.value.trim())}`, { method: 'PUT', body: Object.fromEntries(QUOTAS.map((q) => [q, values.value[q] === '' ? 0 : Number(values.value[q])])) })
			toast({ text: x.saved })
			onDone()
		} catch (e) { failed(e) }
		busy.value = false
	}
	return <Dialog title={team ? x.quotasOf(team.name) : x.newTeam} onClose={onDone}><form class="secret" onSubmit={(e) => { e.preventDefault(); void save() }}>
		{!team && <label class="field">{x.name}<input type="text" id="team-name" value={name.value} onInput={(e) => { name.value = e.currentTarget.value }} /></label>}
		<p class="dim">{x.quotaHint}</p>
		{QUOTAS.map((q) => <label class="field" key={q}>{x.quotas[q]}<input type="text" pattern="-1|[0-9]*" value={values.value[q]} placeholder={x.standard} onInput={(e) => { values.value = { ...values.value, [q]: e.currentTarget.value.trim() } }} /></label>)}
		<p class="row"><button type="button" onClick={onDone}>{t.cancel}</button><button class="primary" type="submit" disabled={busy.value || !name.value.trim()}>{x.save}</button></p>
	</form></Dialog>
}

function Teams() {
	const list = useResource(async () => (await api<Page<Team>>('/v1/teams')).items), usage = useResource(() => api<Usage>('/v1/usage?days=14')), edit = useSignal<Team | null | undefined>(undefined), may = isOperator(session.info.value)
	const remove = async (team: Team) => { try { await request(`/v1/teams/${encodeURIComponent(team.name)}`, { method: 'DELETE' }); await list.load() } catch (e) { failed(e) } }
	return <>
		<Card title={x.usageTitle}><Guarded of={usage} error={x.teamsError}>{(u) => {
			const most = Math.max(1, ...u.days.map((d) => d.executions)), days = [...u.days].reverse()
			return <><dl class="facts pad">{([[x.quotas.boxes, used(String(u.usage!.boxes), 'boxes', u)], [x.quotas.executions_per_day, used(u.usage!.executions_today.toLocaleString(), 'executions_per_day', u)],
				[x.quotas.compute_ms_per_month, used(duration(u.usage!.compute_ms_this_month), 'compute_ms_per_month', u)], [x.quotas.output_bytes_per_day, used(bytes(u.usage!.output_bytes_today), 'output_bytes_per_day', u)]] as const).map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{v}</dd></div>)}</dl>
				<figure class="days"><figcaption class="dim">{x.perDay}</figcaption><ul>{days.map((d) => <li key={d.day} title={`${d.day}: ${d.executions}`}><span class="column" style={{ height: `${Math.max(2, d.executions / most * 100)}%` }} /><span class="hidden">{d.day}: {d.executions}, {duration(d.compute_ms)}</span></li>)}</ul></figure></>
		}}</Guarded></Card>
		<Card title={x.teams} more={may ? <button class="small push" onClick={() => { edit.value = null }}><Icon name="plus" size={14} /><span>{x.newTeam}</span></button> : undefined}><Guarded of={list} error={x.teamsError}>{(teams) => <div class="scroll-x" tabIndex={0} role="group" aria-label={x.teams}><table class="rows">
			<thead><tr><th scope="col">{x.team}</th>{QUOTAS.map((q) => <th scope="col" key={q}>{x.quotas[q]}</th>)}<th scope="col"><span class="hidden">{t.boxes.actions}</span></th></tr></thead>
			<tbody>{teams.map((team) => <tr key={team.name}><td><strong>{team.name}</strong></td>{QUOTAS.map((q) => <td key={q} class="n">{shown(q, team.quotas[q])}{team.own[q] === null && team.quotas[q] !== null ? <span class="dim"> {x.standardMark}</span> : ''}</td>)}
				<td class="end">{may && <span class="row tight"><button class="small" onClick={() => { edit.value = team }}>{x.edit}<span class="hidden"> {team.name}</span></button>{team.name !== 'default' && <button class="plain" aria-label={x.removeTeam(team.name)} title={x.removeTeam(team.name)} onClick={() => void remove(team)}><Icon name="trash-2" size={14} /></button>}</span>}</td></tr>)}</tbody></table></div>}</Guarded></Card>
		{edit.value !== undefined && <EditTeam team={edit.value} onDone={() => { edit.value = undefined; void list.load(); void usage.load() }} />}
	</>
}

// ---- models ----

interface Model { id: string, name: string, provider: string, dialect: string, price: { in: number, out: number, cache_read: number, cache_write: number } }
interface Models { items: Model[], roles: Record<string, string[]>, usage: Record<string, { calls: number, in: number, out: number, cost: number }> }
interface Policy { scan: string, memory: boolean }

function ModelsPage() {
	const of = useResource(() => api<Models>('/v1/models')), policy = useResource(() => api<Policy>('/v1/pipelines/policy')), owner = session.info.value?.role === 'owner'
	const set = async (p: Partial<Policy>) => { try { await api('/v1/pipelines/policy', { method: 'PUT', body: p }); toast({ text: x.saved }) } catch (e) { failed(e) } await policy.load() }
	const none = of.error.value && [404, 409, 503].includes(of.error.value.status)
	return <>
		<Card title={x.models}>{none ? <NoModels e={of.error.value!} /> : <Guarded of={of} error={x.modelsError}>{(m) => m.items.length === 0 ? <NoModels /> : <div class="scroll-x" tabIndex={0} role="group" aria-label={x.models}><table class="rows">
			<thead><tr><th scope="col">{x.name}</th><th scope="col">{x.model}</th><th scope="col">{x.provider}</th><th scope="col">{x.roleOf}</th><th scope="col">{x.priceIn}</th><th scope="col">{x.priceOut}</th><th scope="col">{x.calls}</th><th scope="col">{x.cost}</th></tr></thead>
			<tbody>{m.items.map((i) => { const u = m.usage[i.id]; return <tr key={i.id}><td><strong>{i.id}</strong></td><td><code>{i.name}</code></td><td>{i.provider} <span class="dim">({i.dialect})</span></td><td>{Object.entries(m.roles).filter(([, l]) => l.includes(i.id)).map(([r]) => r).join(', ') || '–'}</td><td class="n">${i.price.in}</td><td class="n">${i.price.out}</td><td class="n">{u?.calls ?? 0}</td><td class="n">${(u?.cost ?? 0).toFixed(4)}</td></tr> })}</tbody></table></div>}</Guarded>}</Card>
		<Card title={x.policy}><Guarded of={policy} error={x.modelsError}>{(p) => <div class="fields">
			<label>{x.scan}<select value={p.scan} disabled={!owner} onChange={(e) => void set({ scan: e.currentTarget.value })}>{Object.keys(x.scans).map((s) => <option value={s} key={s}>{x.scans[s]}</option>)}</select></label>
			<label class="check"><input type="checkbox" checked={p.memory} disabled={!owner} onChange={(e) => void set({ memory: e.currentTarget.checked })} />{x.lessons}</label>
			{!owner && <p class="dim">{x.notAllowed}</p>}</div>}</Guarded></Card>
	</>
}
const NoModels = ({ e }: { e?: ApiError }) => <Empty text={x.noModels} cli="atoll serve --models models.toml">{e?.hints[0] && <p class="hint">{e.hints[0]}</p>}</Empty>

// ---- about ----

interface DaemonInfo extends Info { started: string, templates: string[], usage: unknown }

function About() {
	const of = useResource(() => api<DaemonInfo>('/v1/info'))
	return <>
		<Card title={x.about}><Guarded of={of} error={x.aboutError}>{(i) => <dl class="facts pad">{([[x.version, i.version], [x.started, ago(i.started, clock.value)], [x.you, t.signIn.signedInAs(i.role, i.team)], [x.keyId, i.who], [x.lifetime, duration(i.limits.lifetime_ms ?? 0)], [x.maxLifetime, duration(i.limits.max_lifetime_ms ?? 0)], [x.json, bytes(i.limits.json_bytes ?? 0)], [x.upload, i.limits.upload_bytes ? bytes(i.limits.upload_bytes) : x.unlimited]] as [string, string][]).map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{v}</dd></div>)}</dl>}</Guarded></Card>
		<Card title={x.appearance}><div class="fields"><label>{t.theme.label}<select value={theme.value} onChange={(e) => { theme.value = e.currentTarget.value as typeof theme.value; local.set('theme', theme.value) }}>{(['system', 'light', 'dark'] as const).map((v) => <option value={v} key={v}>{x.themes[v]}</option>)}</select></label></div></Card>
		<Card title={x.languages}>{languages.error.value && !languages.value.value ? <ErrorState title={x.aboutError} error={languages.error.value} retry={() => void languages.load()} /> : !languages.value.value ? <Loading /> : <ul class="language-list">{languages.value.value.map((l: Language) => <li key={l.name} class={l.here ? '' : 'dim'} title={l.here ? undefined : l.install}><Icon name={l.here ? 'check' : 'x'} size={14} /><span><strong>{l.title}</strong> {l.here ? l.version ?? '' : x.notInstalled}</span></li>)}</ul>}</Card>
		<Doctor />
	</>
}

interface Finding { name: string, status: 'ok' | 'warn' | 'fail', value: string, fix: string }
const findings = { ok: ['check', 'ok'], warn: ['triangle-alert', 'warn'], fail: ['circle-x', 'bad'] } as const

function Doctor() {
	const of = useResource(() => api<{ items: Finding[] }>('/v1/doctor'))
	return <Card title={x.doctor} more={<><span class="dim">{x.doctorLead}</span><button class="small push" disabled={of.loading.value} onClick={() => void of.load()}><Icon name="refresh-cw" size={14} /><span>{x.doctorAgain}</span></button></>}>
		<Guarded of={of} error={x.doctorError}>{(d) => <div class="scroll-x" tabIndex={0} role="group" aria-label={x.doctor}><table class="rows findings">
			<thead><tr><th scope="col">{x.check}</th><th scope="col">{x.found}</th><th scope="col">{x.fix}</th></tr></thead>
			<tbody>{d.items.map((f) => <tr key={f.name}><td><span class={`mark ${findings[f.status][1]}`} title={x.statuses[f.status]}><Icon name={findings[f.status][0]} size={14} /><span class="hidden">{x.statuses[f.status]}: </span><span>{f.name}</span></span></td><td class="wrap">{f.value}</td><td class="wrap">{f.fix}</td></tr>)}</tbody></table></div>}</Guarded>
		<div class="pad doctor"><Line text="atoll doctor" /></div></Card>
}

function Card({ title, more, children }: { title: string, more?: ComponentChildren, children: ComponentChildren }) {
	const id = `card-${title.replace(/\W+/g, '-').toLowerCase()}`
	return <section class="card list" aria-labelledby={id}><header><h2 id={id}>{title}</h2>{more}</header>{children}</section>
}

const tabs: [string, string, () => ComponentChildren][] = [['keys', x.keys, Keys], ['secrets', x.secrets, Secrets], ['teams', x.teamsTab, Teams], ['models', x.models, ModelsPage], ['about', x.about, About]]

export default function Settings({ tab }: { tab: string }) {
	const [at, , Body] = tabs.find(([k]) => k === tab) ?? tabs[0]!
	return <Shell title={x.title}><div class="page">
		<h1 class="hidden">{x.title}</h1>
		<nav class="tabs-of" aria-label={x.title}>{tabs.map(([k, name]) => <a href={`/settings/${k}`} aria-current={k === at ? 'page' : undefined} key={k}>{name}</a>)}</nav>
		<Body key={at} />
	</div></Shell>
}
