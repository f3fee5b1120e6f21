/* checkpoints.h - /v1/boxes/{box}/checkpoints, /v1/checkpoints, rollback and fork of a box. */
#pragma once
#include "api/api.h"
#include "checkpoint/checkpoints.h"

extern const struct field checkpoints_create_fields[], checkpoints_list_query[],
	checkpoints_patch_fields[], checkpoints_rollback_fields[], checkpoints_fork_fields[],
	checkpoints_files_query[], checkpoints_diff_query[], checkpoints_promote_fields[],
	checkpoints_merge_fields[], checkpoints_export_query[], checkpoints_import_query[];

void checkpoints_create(struct call *c);   /* POST /v1/boxes/{box}/checkpoints */
void checkpoints_list(struct call *c);     /* GET /v1/boxes/{box}/checkpoints */
void checkpoints_show(struct call *c);     /* GET /v1/checkpoints/{checkpoint} */
void checkpoints_patch(struct call *c);    /* PATCH */
void checkpoints_delete(struct call *c);   /* DELETE */
void checkpoints_rollback(struct call *c); /* POST /v1/boxes/{box}/rollback */
void checkpoints_promote(struct call *c);  /* POST /v1/boxes/{box}/promote */
void checkpoints_merge(struct call *c);    /* POST /v1/boxes/{box}/merge */
void checkpoints_fork(struct call *c);     /* POST /v1/boxes/{box}/fork */
void checkpoints_export(struct call *c);   /* GET /v1/checkpoints/{checkpoint}/export */
void checkpoints_import(struct call *c);   /* POST /v1/boxes/{box}/checkpoints/import */
void checkpoints_files(struct call *c);    /* GET /v1/checkpoints/{checkpoint}/files */
void checkpoints_diff(struct call *c);     /* GET /v1/checkpoints/{checkpoint}/diff */
/* The same for a checkpoint by id, or by name of this box. */
void checkpoints_diff_from(struct call *c, const struct box *b, const char *from);

json_t *checkpoint_json(const struct store_checkpoint *x);
/* A ready checkpoint of the caller's team by id, or by name of this box (NULL: only by id). A key that is
 * bound to a box sees only checkpoints of that box. 0: 404 was answered. */
int checkpoints_find(struct call *c, const struct box *b, const char *text,
		     struct store_checkpoint *out);
/* Whether the files of the checkpoint lie over the same root as those of the box. 0: 409 was answered. */
int checkpoints_fits(struct call *c, const struct box *b, const struct store_checkpoint *x);
/* As call_fail(), with the code not_capturable where a program cannot be captured. */
void checkpoints_fail(struct call *c, const struct err *e);
extern const struct field checkpoints_unsupported_values[];
/* Parameters of a box with the files of this checkpoint: chain, root, layers, template, and the env of its
 * box. The texts live as long as the call. */
void checkpoints_spec(struct call *c, const struct store_checkpoint *x, struct box_spec *out);
/* Parameters of a copy of this box, without its files: limits, variables, network, secrets, and the fields of a
 * fork in the body. The texts live as long as the call. 0: the error was answered. */
int checkpoints_describe_copy(struct call *c, const struct box *b, struct box_spec *out);
