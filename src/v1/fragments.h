/* fragments.h - /api/sandbox: the routes that chat front ends bring along.
 * A front end sends a *fragment*, what a model wrote: a template, code or files, perhaps packages to
 * install and a port. It is translated into a request of ours and done by flow.c; its box is the one
 * of its session and template, made when there is none, with ten minutes to live from each request.
 * Fields that only describe (title, commentary, ...) are taken and ignored. */
#pragma once
#include "api/api.h"

extern const struct field seeds_tree_query[], seeds_read_query[], seeds_write_fields[];

void fragments_run(struct call *c);
void fragments_tree(struct call *c);
void fragments_read(struct call *c);
void fragments_write(struct call *c);
