// main.tsx - the page begins here: theme, sign-in, routes.
import { effect } from '@preact/signals'
import { render } from 'preact'
import { onKey, Palette } from './parts/Palette'
import { NotFound } from './parts/Shell'
import { Lazy } from './parts/Lazy'
import { Home } from './pages/Home'
import { SignIn } from './pages/SignIn'
import { go, onLink, path } from './router'
import * as session from './session'
import { start, stop } from './store'
import './theme'
import { Toasts } from './toasts'

function Page() {
	const [, first, second] = path.value.split('/'), only = session.info.value?.box
	if (only && !(first === 'b' && second === only)) { go(`/b/${only}`, true); return null }
	if (!first) return <Home />
	if (first === 'runs') return <Lazy key={path.value} load={async () => (await import('./pages/Runs')).default} props={{ id: second ?? '' }} />
	if (first === 'pipelines') return <Lazy key={path.value} load={async () => (await import('./pages/Pipelines')).default} props={{ id: second ?? '' }} />
	if (first === 'batches') return <Lazy key={path.value} load={async () => (await import('./pages/Batches')).default} props={{ id: second ?? '' }} />
	if (first === 'schedules') return <Lazy key={path.value} load={async () => (await import('./pages/Schedules')).default} props={{ name: decodeURIComponent(second ?? '') }} />
	if (first === 'monitor' && !second) return <Lazy key={first} load={async () => (await import('./pages/Monitor')).default} props={{}} />
	if (first === 'monitor' && second === 'figures') return <Lazy key={path.value} load={async () => (await import('./pages/Figures')).default} props={{}} />
	if (first === 'activity' && !second) return <Lazy key={first} load={async () => (await import('./pages/Events')).default} props={{}} />
	if (first === 'settings') return <Lazy key={path.value} load={async () => (await import('./pages/Settings')).default} props={{ tab: second ?? '' }} />
	if (first === 'agents') return <Lazy key={path.value} load={async () => (await import('./pages/Agents')).default} props={{ id: second ?? '' }} />
	if (first === 'templates') return <Lazy key={path.value} load={async () => (await import('./pages/Templates')).default} props={{ name: decodeURIComponent(second ?? '') }} />
	if (first === 'b' && second) return <Lazy key={second} load={async () => (await import('./pages/Workspace')).default} props={{ id: decodeURIComponent(second) }} />
	return <NotFound />
}

function App() {
	const s = session.state.value
	if (s === 'starting') return null
	if (s === 'out') return <SignIn />
	return <><div class="root" inert={s === 'expired'}><Page /></div>{s === 'expired' && <div class="over"><SignIn /></div>}<Palette /><Toasts /></>
}

let started = false
effect(() => {
	const s = session.state.value
	if (s === 'in' && !started) {
		started = true
		start()
	} else if (s === 'out' && started) {
		started = false
		stop()
	}
})

document.addEventListener('click', onLink)
document.addEventListener('keydown', onKey)
void session.begin()
render(<App />, document.getElementById('app')!)
