/* daemon_info.h - requests about the daemon itself: version, health, metrics. */
#pragma once
#include "api/api.h"

void info_page(struct call *c); /* a text page for browsers */
void info_health(struct call *c);
void info_daemon(struct call *c);
void info_principal(struct call *c);
void info_metrics(struct call *c);
