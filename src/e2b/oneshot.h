/* oneshot.h - an execution in a language that keeps no state (C, Go, Rust, ...): compiled and
 * run by itself, and sent as the lines of port 49999, all at its end. */
#pragma once
#include "e2b/e2b.h"

void oneshot_exec(struct call *c, const char *language); /* c->body: of /execute */
