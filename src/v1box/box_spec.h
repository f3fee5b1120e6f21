/* box_spec.h - the parameters of a request that creates or changes a box: limits, timeouts, allowed
 * hosts, metadata.
 * Owns: nothing; results live as long as the call. */
#pragma once
#include "api/api.h"
#include "fleet/box.h"
#include "v1box/network.h"

extern const struct field box_limit_fields[];
#define BOX_LIMIT_FIELDS                                                                           \
	{ "template", FIELD_NAME, 0, 0, STORE_TEMPLATE, "base", NULL },                            \
	{                                                                                          \
		"limits", FIELD_OBJECT, 0, 0, 0, "memory, cpu, ...", box_limit_fields              \
	}

extern const struct field box_create_fields[], box_patch_fields[];

/* Reads all parameters. The texts of the row are allocated with the call. */
must_check int box_spec_read(struct call *c, struct box_spec *out, struct err *e);

/* Limits that are not given keep their value. */
void box_read_limits(const json_t *l, struct wire_limits *out);
/* A timeout is accepted or rejected, never shortened. */
must_check int box_read_times(struct call *c, struct store_box *row, struct err *e);
/* Checks names and sizes of environment variables. */
must_check int box_check_env(const json_t *env, struct err *e);
/* had: the present metadata of the box, or NULL. A client may write back reserved keys that it has
 * read. */
must_check int box_check_metadata(const json_t *given, const json_t *had, struct err *e);
/* Replaces all metadata except the reserved keys. */
void box_take_metadata(struct store_box *row, const json_t *given, const json_t *had);
