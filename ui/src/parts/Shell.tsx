// The frame around every page: where one is, what one can do, whether the daemon is there.
import type { ComponentChildren } from 'preact'
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { Icon, type IconName } from '../icons'
import { places, placeOf } from '../places'
import { go, path } from '../router'
import * as session from '../session'
import { blocked, connection, socket } from '../socket'
import { host, newVersion, shownBoxes, titleOf } from '../store'
import { t } from '../texts'
import { nextTheme, theme } from '../theme'
import { bytes } from '../format'
import { Menu } from './basics'
import { paletteOpen } from './Palette'

function Rail() {
	const at = path.value
	const link = (to: string, icon: IconName, text: string, here: boolean) =>
		<li key={to}><a href={to} aria-current={here ? 'page' : undefined}><Icon name={icon} size={20} /><span>{text}</span></a></li>
	useEffect(() => document.querySelector('.rail [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' }), [at]) // on a phone it is wider than the screen
	return <nav class="rail" aria-label={t.nav.label}>
		<ul>
			{!session.info.value?.box && places.map((p) => link(p.path, p.icon, p.name, placeOf(at) === p))}
			{at.startsWith('/b/') && link(at, 'box', t.nav.box, true)}
		</ul>
	</nav>
}

const words = { connecting: t.conn.connecting, live: t.conn.live, lost: t.conn.lost, offline: t.conn.offline }

function Crumbs() {
	const at = path.value.split('/').filter(Boolean)
	const b = at[0] === 'b' ? shownBoxes.value.find((x) => x.id === at[1] || x.name === at[1]) : undefined
	const here = at[0] === 'b' ? (b ? titleOf(b) : decodeURIComponent(at[1] ?? '')) : at[0] === 'runs' && at[1] ? t.runs.one(at[1]) : ''
	const place = at.length && at[0] !== 'b' && !here ? placeOf(path.value) : undefined
	return <span class="crumbs"><a class="brand" href="/"><Icon name="atoll" size={20} /><strong>{t.product}</strong></a>
		{place && <><span class="slash" aria-hidden="true">/</span>{at[1] ? <><a class="here" href={place.path}>{place.name}</a><span class="slash" aria-hidden="true">/</span><span class="here">{at[1]}</span></> : <span class="here">{place.name}</span>}</>}
		{here && <><span class="slash" aria-hidden="true">/</span><span class="here">{here}</span></>}</span>
}

function TopBar() {
	const themes = { system: ['sun-moon', t.theme.system], light: ['sun', t.theme.light], dark: ['moon', t.theme.dark] } as const
	const [icon, label] = themes[theme.value], me = session.info.value
	return <header class="top">
		<Crumbs />
		<button class="search" onClick={() => { paletteOpen.value = true }}><Icon name="search" size={14} /><span>{t.palette.open}</span><kbd>Ctrl K</kbd></button>
		<span class={`conn ${connection.value}`} role="status"><span class="dot" aria-hidden="true" /><span>{words[connection.value]}</span></span>
		<button class="plain" aria-label={label} title={label} onClick={nextTheme}><Icon name={icon} /></button>
		<Menu label={me ? t.signIn.signedInAs(me.role, me.team) : t.more} items={[{ label: t.signIn.out, icon: 'log-out', run: session.signOut }]}><Icon name="key-round" /><span class="hidden">{me ? t.signIn.signedInAs(me.role, me.team) : t.more}</span></Menu>
	</header>
}

/** Not for a loss that ends before the sentence can be read. */
function Banner() {
	const shown = useSignal(false), c = connection.value
	useEffect(() => {
		if (c === 'live' || c === 'connecting') { shown.value = false; return }
		const timer = setTimeout(() => { shown.value = true }, 600)
		return () => clearTimeout(timer)
	}, [c])
	return <div class="notice" aria-live="polite">
		{shown.value && <div class="banner"><Icon name="wifi-off" /><span>{c === 'offline' ? t.conn.bannerOffline : blocked.value ? t.conn.blocked : t.conn.banner}</span>
			<button class="small" onClick={() => socket.retry()}>{t.conn.retryNow}</button></div>}
		{newVersion.value && <div class="banner calm"><span>{t.conn.updated(newVersion.value)}</span>
			<button class="small" onClick={() => location.reload()}>{t.conn.reload}</button></div>}
	</div>
}

function StatusBar() {
	const h = host.value.value, me = session.info.value
	return <footer class="status">
		<span>{t.status.boxes(shownBoxes.value.length)}</span>
		{h && <span class="wide-only">{t.status.load(h.load[0]!.toFixed(1))}</span>}
		{h && <span class="wide-only">{t.status.memory(bytes(h.memory.free), bytes(h.memory.total))}</span>}
		<span class="push">{me && t.signIn.signedInAs(me.role, me.team)}</span>
		{me?.version && <span>{t.status.version(me.version)}</span>}
	</footer>
}

export function Shell({ children, status, title }: { children: ComponentChildren, status?: ComponentChildren, title: string }) {
	useEffect(() => { document.title = title === t.product ? `${t.product}: ${t.tagline}` : `${title} · ${t.product}` }, [title])
	return <div class="shell">
		<a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById('main')!.focus() }}>{t.skip}</a>
		<TopBar />
		<Rail />
		<main id="main" tabIndex={-1}><Banner />{children}</main>
		{status ?? <StatusBar />}
	</div>
}

export function NotFound() {
	return <Shell title={t.error.notFound}><div class="page"><div class="state"><h1>{t.error.notFound}</h1><button class="primary" onClick={() => go('/')}>{t.error.goHome}</button></div></div></Shell>
}
