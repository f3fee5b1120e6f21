/* code.h - creates the program that a plan describes, from the plan only. */
#pragma once
#include "document/document.h"

json_t *code_make(const json_t *plan, struct err *e); /* an artifact; NULL: the plan has none */
