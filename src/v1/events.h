/* events.h - /v1/events: events of boxes after a given number, as a list or as a stream. */
#pragma once
#include "api/api.h"

extern const struct field events_query[], events_box_query[];

void events_list(struct call *c);
void events_box(struct call *c); /* events of the box in the path */
