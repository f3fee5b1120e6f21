/* box_spec.h - the parameters of a request that creates or changes a box: limits, timeouts, allowed
 * hosts, metadata.
 * Owns: nothing; results live as long as the call. */
#pragma once
#include "api/api.h"
#include "api/isolation.h"
#include "fleet/box.h"
#include "v1box/network.h"

extern const struct field box_limit_fields[];
#define BOX_LIMIT_FIELDS                                                                           \
	{                                                                                          \
		"template", FIELD_TEXT, 0, 0, STORE_TEMPLATE, "a template: name, name:tag or id",  \
		NULL                                                                               \
	},                                                                                         \
		{ "limits", FIELD_OBJECT, 0, 0, 0, "memory, cpu, ...", box_limit_fields },         \
		ISOLATION_FIELDS

extern const struct field box_create_fields[], box_patch_fields[];

/* The template that the reference names, for a new box: row.template, root, row.root, and as defaults
 * row.env (allocated with the call) and the limits. Called before limits and env of the request are
 * read. ERR_NOT_FOUND, ERR_CONFLICT: as template_resolve(). */
must_check int box_spec_template(struct call *c, const char *reference, struct box_spec *out,
				 struct err *e);
/* The variables of the request over those of the template: JSON text, allocated with the call. */
char *box_spec_env(struct call *c, const char *template_env, const json_t *env);

int box_spec_has_base(const struct box_spec *want); /* 1: it has the host's /usr */
/* The warm interpreter for a program that would have `name` in a box of base; NULL: none. */
const char *box_spec_warm(const struct box_spec *want, const char *name, const json_t *env);
/* 0: the box has a root without the host's /usr, and packages for the host's interpreters cannot be
 * added; 422 was answered. */
int box_spec_packages(struct call *c, const struct box_spec *want);

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
