/* envd.h - port 49983 of a box: programs and files, as E2B's daemon envd offers them. */
#pragma once
#include "e2b/e2b.h"

/* envd_http.c; programs are in process.h */
void envd_metrics(struct call *c);
void envd_envs(struct call *c);

/* filesystem.c, files.c */
