/* code.h - the program that a plan describes. It sees the plan and nothing else. */
#pragma once
#include "document/document.h"

json_t *code_make(const json_t *plan, struct err *e); /* an artifact; NULL: the plan has none */
