/* templates.h - /v1/templates: the registry of templates, their builds and tags. */
#pragma once
#include "api/api.h"

void v1_templates_list(struct call *c);
void v1_templates_show(struct call *c);
