/* build_copy.c - COPY and ADD. See build_internal.h. */
#include "template/build_internal.h"

void build_copy_begin(struct build *b)
{
	build_fail(b, "COPY is not supported yet");
}

void build_copy_free(struct build_copy *c)
{
	(void)c;
}
