/* build_image.c - FROM an image of a registry. See build_internal.h. */
#include "template/build_internal.h"

void build_from_image(struct build *b, const char *reference, const json_t *auth)
{
	(void)auth;
	build_fail(b, "FROM %.200s: images cannot be pulled yet; use base or template:NAME",
		   reference);
}

void build_pull_free(struct build_pull *p)
{
	(void)p;
}
