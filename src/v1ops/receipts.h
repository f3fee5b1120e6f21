/* receipts.h - /v1/receipts: the chain of receipts of this node, the receipt of one run, the public key. */
#pragma once
#include "api/api.h"

extern const struct field receipts_key_query[], receipts_list_query[];

void v1_receipts_of_run(struct call *c);
void v1_receipts_list(struct call *c);
void v1_receipts_key(struct call *c);
