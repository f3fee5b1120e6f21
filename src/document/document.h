/* document.h - the documents that stages hand to each other: how they are made, sealed and compared.
 * Owns: nothing. docs/pipeline.md has every member. */
#pragma once
#include "base/err.h"
#include <jansson.h>
#include <stdint.h>

#define AGENT_TASK "atoll.task/1"
#define AGENT_PLAN "atoll.plan/1"
#define AGENT_ARTIFACT "atoll.artifact/1"
#define AGENT_RESULT "atoll.result/1"
#define AGENT_DIAGNOSIS "atoll.diagnosis/1"
#define AGENT_REPORT "atoll.report/1"

enum { AGENT_ATTEMPTS = 3, AGENT_TASK_BYTES = 64 * 1024, AGENT_FILES_BYTES = 4 << 20 };

/* -1: the task is invalid; e names the member. */
must_check int task_check(const json_t *task, struct err *e);

/* Sets artifact.hash from everything that is executed. */
void artifact_set_hash(json_t *artifact);
uint64_t artifact_limit(const json_t *artifact, const char *name, uint64_t otherwise);
/* A copy with its parent and the reason of the change; the caller changes it and sets its hash. */
json_t *artifact_child(const json_t *artifact, const char *provenance, const char *because);

/* Text members without a NULL: "" where there is none. */
const char *doc_text(const json_t *doc, const char *name);
/* SHA-256 of a document, sorted and compact, as hex. */
void doc_hash(const json_t *doc, char out[65]);
