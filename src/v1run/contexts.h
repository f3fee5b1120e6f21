/* contexts.h - stateful interpreters: create, list, control, delete. */
#pragma once
#include "api/api.h"

extern const struct field contexts_create_fields[], contexts_input_fields[];

struct context;
struct context *contexts_of(struct call *c); /* the context that the path names; answers
					      * 404 itself */
/* The name in the table of languages, or the text itself if the table does not have it. */
const char *contexts_language(const char *name);

void contexts_create(struct call *c);
void contexts_list(struct call *c);
void contexts_show(struct call *c);
void contexts_delete(struct call *c);
void contexts_interrupt(struct call *c);
void contexts_restart(struct call *c);
void contexts_input(struct call *c);
