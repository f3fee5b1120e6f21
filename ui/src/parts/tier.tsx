// The isolation tier of a box or a run, and the tiers that the daemon offers.
import { api, type Isolation, type Page, type Tier } from '../api'
import { Resource } from '../resource'
import { t } from '../texts'

export const tiers = new Resource(async () => (await api<Page<Tier>>('/v1/tiers')).items)

/** Nothing for a daemon that does not report it. brief: nothing without an engine, which is what most boxes of a list are. */
export function TierBadge({ of, brief }: { of: { tier?: string, isolation?: Isolation }, brief?: boolean }) {
	const x = of.isolation
	if (!of.tier || (brief && !x?.engine)) return null
	return <span class="tag tier" title={[t.boxes.tier, x?.engine, x?.version, x?.platform, x?.emulated ? t.boxes.emulated : ''].filter(Boolean).join(' · ')}>{of.tier}</span>
}
