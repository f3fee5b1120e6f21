/* events.h - /v1/events: what happens to boxes, from a number on, as a list or as it happens. */
#pragma once
#include "api/api.h"

extern const struct field events_query[], events_box_query[];

void events_list(struct call *c);
void events_box(struct call *c); /* of the box in the path */
