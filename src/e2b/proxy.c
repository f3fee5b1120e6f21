/* proxy.c - any other port of a box. */
#include "e2b/e2b.h"

void e2b_proxy(struct call *c, struct berth *b, uint16_t port)
{
	e2b_no_box(c, 502, b->row.id, port, "The sandbox is running but port is not open");
}
