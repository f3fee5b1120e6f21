// Servers of a box, and the addresses under which they can be opened.
import { api, box as boxPath, type ApiError } from '../api'
import { Empty, ErrorState, Line, Loading, failed } from '../parts/basics'
import { Icon } from '../icons'
import * as session from '../session'
import { t } from '../texts'
import { isLoopback, type Ports } from './ports'

export function PortList({ box, ports, onOpen }: { box: string, ports: Ports, onOpen: (port: number) => void }) {
	const all = ports.list.value
	if (!all && ports.failed.value) return <ErrorState title={t.ports.error} error={ports.failed.value as ApiError} retry={() => void ports.load()} />
	if (!all) return <Loading lines={3} />
	if (!all.length) return <Empty text={t.ports.none}><Line text="python3 -m http.server 3000" /></Empty>
	return <div class="ports" tabIndex={0} role="group" aria-label={t.ports.title}><table class="samples"><caption class="hidden">{t.ports.title}</caption><thead><tr><th scope="col">{t.preview.port}</th><th scope="col">{t.ports.state}</th><th scope="col">{t.ports.address}</th><th scope="col">{t.boxes.actions}</th></tr></thead>
		<tbody>{all.map((p) => <tr key={p.port}><th scope="row">{p.port}</th><td><span class="badge running"><span class={`dot ${p.listening ? '' : 'off'}`} aria-hidden="true" />{p.listening ? isLoopback(p.address) ? t.ports.loopback : t.ports.listening : t.ports.nothing}</span>{p.process && <span class="dim"> {p.process}</span>}</td>
			<td>{p.open && p.link ? <><a href={p.link} target="_blank" rel="noopener noreferrer">{p.link.split('?')[0]}</a> <span class="dim">{p.public ? t.ports.everyone : t.ports.token}</span></> : <span class="dim">{p.open ? t.ports.token : t.ports.private}</span>}</td>
			<td><span class="row"><button class="small" disabled={!session.mayEdit.value} onClick={() => onOpen(p.port)}><Icon name="external-link" size={13} /><span>{t.ports.preview}</span></button>
				{p.open && <button class="small" disabled={!session.mayEdit.value} onClick={() => void api(`${boxPath(box)}/ports/${p.port}`, { method: 'DELETE' }).then(() => ports.load(), failed)}>{t.preview.shut}</button>}</span></td></tr>)}</tbody></table></div>
}
