/* boxes.h - /v1/boxes: create, list, show, change, delete. */
#pragma once
#include "v1box/box_spec.h"

extern const struct field box_list_query[];

json_t *box_json(const struct box *b);
/* As in a list, with all values; NULL: a box that no client has yet. */
json_t *boxes_listed_json(struct api *a, const struct store_box *row);
/* Variables often contain secrets: a caller with the role viewer gets their names, not their
 * values. */
void box_withhold(const struct call *c, json_t *doc);

void boxes_create(struct call *c); /* boxes_create.c */
void boxes_list(struct call *c);
void boxes_show(struct call *c);
void boxes_patch(struct call *c);
void boxes_delete(struct call *c);
