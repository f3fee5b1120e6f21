/* endpoint.h - which daemon the command line connects to, and with which key: from the settings. */
#pragma once
#include "cli/args.h"

must_check int endpoint_find(struct endpoint *out, struct err *e);
/* The first TCP port of serve.listen; 0: none is set, any free one, or the settings cannot be read. */
unsigned endpoint_listen_port(void);
