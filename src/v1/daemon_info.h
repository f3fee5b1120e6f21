/* daemon_info.h - what is asked about the daemon itself. */
#pragma once
#include "api/api.h"

void info_page(struct call *c); /* what this is, for somebody with a browser */
void info_health(struct call *c);
void info_daemon(struct call *c);
void info_principal(struct call *c);
void info_metrics(struct call *c);
