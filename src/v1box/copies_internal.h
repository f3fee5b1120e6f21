/* copies_internal.h - for copies.c, copies_objects.c, copies_restart.c and copies_leave.c. */
#pragma once
#include "fleet/box.h"
#include "v1box/copies.h"

void copies_restart(struct call *c);
void copies_leave(struct call *c);
void copies_left(struct call *c);
void copies_put_object(struct call *c);
void copies_get_object(struct call *c);
void copies_delete_object(struct call *c);
int copies_may_leave(const struct box *b); /* now */
extern const struct field copies_restart_fields[], copies_leave_fields[], copies_left_fields[],
	copies_put_object_fields[], copies_get_object_fields[], copies_delete_object_fields[];
