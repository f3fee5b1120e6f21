/* box_user.c - the user of a sandbox: that of its template, else `user`. See e2b.h. */
#include "client/box_handle.h"
#include "e2b/e2b.h"

#include <string.h>

const char *e2b_home(const struct box *b, int root)
{
	if (root)
		return "/root";
	return b && b->user.set && b->user.home[0] ? b->user.home : BOX_HOME;
}

const char *e2b_workdir(const struct box *b, int root)
{
	if (b && b->user.set && b->user.workdir[0] && strcmp(b->user.workdir, b->user.home) != 0)
		return b->user.workdir;
	return e2b_home(b, root);
}

int e2b_is_user(const struct box *b, const char *name, size_t n)
{
	const char *own = b && b->user.set ? b->user.name : "user";

	return (n == 4 && !memcmp(name, "user", 4)) || (strlen(own) == n && !memcmp(name, own, n));
}
