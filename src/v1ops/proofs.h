/* proofs.h - /v1/proofs: the evidence that isolation tiers of this machine hold. */
#pragma once
#include "api/api.h"

extern const struct field proofs_list_query[];

void v1_proofs_list(struct call *c);
void v1_proofs_show(struct call *c);
