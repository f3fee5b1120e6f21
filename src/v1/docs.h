/* docs.h - the pages of docs/, for readers without a checkout. */
#pragma once
#include "api/api.h"

void docs_show(struct call *c); /* GET /docs/{page}, without a key */
