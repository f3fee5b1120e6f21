/* reply_validate.h - semantic validation of model answers: files are complete and inside their
 * folder, packages have valid names, edits match.
 * Owns: nothing. Pure: documents in, documents out. */
#pragma once
#include "document/document.h"

/* e always has the JSON path and the error, in a form for the model. */
must_check int reply_validate_path(const char *path, struct err *e);
/* Rejects "rest of the code", "TODO: implement", "# ...": text instead of a program. was: the
 * previous file, whose lines are allowed, or NULL. -1: e has the line. */
must_check int reply_validate_whole(const char *path, const char *text, const char *was,
				    struct err *e);

/* Each of these converts an answer that matches its schema to a document; NULL: e. model: its
 * id. */
json_t *reply_validate_plan(const json_t *answer, const json_t *task, const char *model,
			    struct err *e);
json_t *reply_validate_code(const json_t *answer, const json_t *plan, const char *model,
			    struct err *e);
json_t *reply_validate_diagnosis(const json_t *answer, const json_t *artifact, const json_t *result,
				 const char *model, struct err *e);
