/* templates.h - Atoll's template, under the names that E2B's clients know. */
#pragma once
#include "e2b/e2b.h"

/* The template for "name", "name:default" or an id; NULL: there is none. */
const char *templates_known(const char *reference);
const char *templates_of(const struct e2b_box *x); /* of a box: never NULL */

void templates_spawned(const char *id); /* another sandbox was created from it */

void templates_list(struct call *c);
void templates_show(struct call *c);
void templates_alias(struct call *c);
void templates_tags(struct call *c);
void templates_delete(struct call *c);
