/* plain.c - the tier of tests: a container box in which mux starts the guest stub as its child.
 * There is no engine, so that every suite can run through the channel at the speed of containers. */
#include "tier/tier.h"
#include "tier/plain.h"

int plain_outer_box(const struct tier_host *h, const struct wire_tier_facts *f,
		    const struct wire_box *about, struct spec *sp, struct jail_engine *out,
		    struct err *e)
{
	(void)f;
	(void)about;
	(void)sp;
	if (h->mux_exe < 0)
		return err_set(e, ERR_DENIED, "this build of Atoll has no mux");
	out->fds[out->nfds++] = h->init_exe; /* the guest stub executes it */
	return 0;
}
