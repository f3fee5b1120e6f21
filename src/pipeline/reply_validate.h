/* reply_validate.h - what an answer of a model means: files that are whole and stay in their folder, packages that are
 * packages, edits that fit. Owns: nothing. Documents in, documents out. */
#pragma once
#include "document/document.h"

/* e, always: the place in the answer and what is wrong with it, for the model to read. */
must_check int reply_validate_path(const char *path, struct err *e);
/* "rest of the code", "TODO: implement", "# ...": text instead of a program. was: the file before, or NULL: its
 * lines were not the model's. -1: e has the line. */
must_check int reply_validate_whole(const char *path, const char *text, const char *was,
				    struct err *e);

/* Each of these makes a document of an answer that has its form; NULL: e. model: its id. */
json_t *reply_validate_plan(const json_t *answer, const json_t *task, const char *model,
			    struct err *e);
json_t *reply_validate_code(const json_t *answer, const json_t *plan, const char *model,
			    struct err *e);
json_t *reply_validate_diagnosis(const json_t *answer, const json_t *artifact, const json_t *result,
				 const char *model, struct err *e);
