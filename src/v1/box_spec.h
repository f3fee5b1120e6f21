/* box_spec.h - what a request wants of a box that is made or changed: limits, times, whom it may
 * reach, what it is for.
 * Owns: nothing; what is read lives as long as the call. */
#pragma once
#include "api/api.h"
#include "fleet/box.h"

extern const struct field box_limit_fields[], box_network_fields[];
#define BOX_LIMIT_FIELDS                                                                           \
	{ "template", FIELD_NAME, 0, 0, STORE_TEMPLATE, "base", NULL },                            \
	{                                                                                          \
		"limits", FIELD_OBJECT, 0, 0, 0, "memory, cpu, ...", box_limit_fields              \
	}

extern const struct field box_create_fields[], box_patch_fields[];

/* All of it. The row's texts are allocated with the call. */
must_check int box_spec_read(struct call *c, struct box_spec *out, struct err *e);

/* What is not given stays as it is. */
void box_read_limits(const json_t *l, struct wire_limits *out);
/* A timeout is honoured or refused, never shortened. */
must_check int box_read_times(struct call *c, struct store_box *row, struct err *e);
/* May these be variables of a program? */
must_check int box_check_env(const json_t *env, struct err *e);
/* had: what the box has already, or NULL. Who reads it and writes it back means no harm. */
must_check int box_check_metadata(const json_t *given, const json_t *had, struct err *e);
/* All of it is replaced, except for our own words. */
void box_take_metadata(struct store_box *row, const json_t *given, const json_t *had);
