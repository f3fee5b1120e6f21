/* template_source.h - the member `source` of POST /v1/templates: texts of build files become a definition. */
#pragma once
#include "api/api.h"
#include "template/source.h"

/* 0: *out is set. -1: an error was answered; file_missing and files_needed tell the client what to send. */
must_check int v1_template_source(struct call *c, const json_t *source, struct source *out);
