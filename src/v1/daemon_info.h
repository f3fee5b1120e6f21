/* daemon_info.h - what is asked about the daemon itself. */
#pragma once
#include "api/api.h"

void ops_page(struct call *c); /* what this is, for somebody with a browser */
void ops_health(struct call *c);
void ops_info(struct call *c);
void ops_who(struct call *c);
void ops_metrics(struct call *c);
