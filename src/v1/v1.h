/* v1.h - the native API: its route table, and start and end of state that its handlers share. */
#pragma once
#include "api/api.h"

extern const struct api_route v1_routes[];
extern const unsigned v1_nroutes;

must_check int v1_init(struct api *a,
		       struct err *e); /* calls api_init(); loop, store, fleet and conf are set */
void v1_fini(struct api *a);
