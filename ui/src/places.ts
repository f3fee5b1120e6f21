// The pages of the rail, in its order: address, icon, name, and the key that follows "g".
import type { IconName } from './icons'
import { t } from './texts'

export interface Place { path: string, icon: IconName, name: string, key: string, command: string }
const place = (path: string, icon: IconName, name: string, key: string): Place => ({ path, icon, name, key, command: t.palette.goTo(name) })

export const places: Place[] = [
	place('/', 'house', t.nav.home, 'b'),
	place('/runs', 'history', t.nav.runs, 'r'),
	place('/pipelines', 'workflow', t.nav.pipelines, 'p'),
	place('/batches', 'layers', t.nav.batches, 't'),
	place('/schedules', 'clock', t.nav.schedules, 'c'),
	place('/agents', 'bot', t.nav.agents, 'a'),
	place('/templates', 'package', t.nav.templates, 'l'),
	place('/monitor', 'activity', t.nav.monitor, 'm'),
	place('/activity', 'list', t.nav.events, 'e'),
	place('/settings', 'settings', t.nav.settings, 's'),
]

/** The place that an address belongs to. */
export const placeOf = (path: string) => places.find((p) => p.path === '/' ? path === '/' : path === p.path || path.startsWith(`${p.path}/`))
