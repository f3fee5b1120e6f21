/* plain.h - functions of the tier plain; see tier.h. */
#pragma once
#include "tier/tier.h"

must_check int plain_outer_box(const struct tier_host *h, const struct wire_tier_facts *f,
			       const struct wire_box *about, struct spec *sp,
			       struct jail_engine *out, struct err *e);
