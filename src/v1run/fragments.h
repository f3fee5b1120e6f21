/* fragments.h - /api/sandbox: the routes that chat front ends use. A front end sends a *fragment*,
 * which a model has written: a template, code or files, optionally packages to install and a port.
 * It is translated into a request of /v1 and executed by run_request.c. Its box is the one of its
 * session and template, created if it does not exist, with a lifetime of ten minutes from each
 * request. Fields that only describe (title, commentary, ...) are accepted and ignored. */
#pragma once
#include "api/api.h"

extern const struct field fragments_tree_query[], fragments_read_query[], fragments_write_fields[];

void fragments_run(struct call *c);
void fragments_tree(struct call *c);
void fragments_read(struct call *c);
void fragments_write(struct call *c);
