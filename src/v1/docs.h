/* docs.h - the pages of docs/, served to readers who have no checkout. */
#pragma once
#include "api/api.h"

void docs_show(struct call *c); /* GET /docs/{page}, without a key */
