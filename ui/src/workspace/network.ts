// Outbound access of a box: its rules, what it connected to, and what waits for an approval.
import { api, box as boxPath } from '../api'
import { Resource } from '../resource'

export interface Waiting { id: string, host: string, port: number, began: string, expires: string }
export interface Connection { seq: number, host: string, port: number, rule: string, verdict: string, why: string, hint: string, bytes_in: number, bytes_out: number, ms: number, began: string }
export interface Rules {
	allow: string[], allow_until: { rule: string, until: string }[], deny: string[], ask: boolean, registries: string[], open: boolean, why: string | null
	bytes_in: number, bytes_out: number, connections: number, refused: number, requests: Waiting[], recent: Connection[]
}
export type Decision = { decision: 'once' | 'always' | 'deny' } | { decision: 'for', seconds: number }

export class Network {
	readonly rules: Resource<Rules>
	constructor(readonly box: string) {
		this.rules = new Resource(() => api<Rules>(`${boxPath(box)}/network`))
	}
	/** Members that are not given stay as they are. */
	async change(to: { allow?: string[], deny?: string[], ask?: boolean }) {
		await api(boxPath(this.box), { method: 'PATCH', body: { network: to } })
		await this.rules.load()
	}
	async decide(id: string, d: Decision) {
		await api(`${boxPath(this.box)}/network/requests/${encodeURIComponent(id)}`, { method: 'POST', body: d })
		await this.rules.load()
	}
}
