/* boxes.h - /v1/boxes: make, list, show, change, end. */
#pragma once
#include "api/api.h"
#include "fleet/berth.h"

extern const struct field box_limit_fields[], box_network_fields[];
#define BOX_LIMIT_FIELDS                                                                           \
	{ "template", FIELD_NAME, 0, 0, STORE_TEMPLATE, "base", NULL },                            \
	{ "limits", FIELD_OBJECT, 0, 0, 0, "memory, cpu, ...", box_limit_fields }

extern const struct field box_create_fields[], box_patch_fields[], box_list_query[];

/* What a request asks for. The row's texts are allocated with the call. */
must_check int box_want(struct call *c, struct berth_want *out, struct err *e);
/* May these be variables of a program? */
must_check int box_check_env(const json_t *env, struct err *e);
json_t *box_json(const struct berth *b);
json_t *box_row_json(const struct store_box *row);

void boxes_create(struct call *c);
void boxes_list(struct call *c);
void boxes_show(struct call *c);
void boxes_network(struct call *c);
void boxes_patch(struct call *c);
void boxes_delete(struct call *c);
