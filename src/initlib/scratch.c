/* scratch.c - see scratch.h. */
#include "initlib/scratch.h"
#include "initlib/shrink.h"
#include "initlib/sys.h"

enum { SMALL_ENOUGH = 8192 };

/* It begins where the used variables end, in their page: an idle box gets small frames only. */
LAST char scratch[WIRE_MAX] __attribute__((aligned(16)));
static size_t most;

void scratch_used(size_t n)
{
	if (n > most)
		most = n;
}

void scratch_idle(void)
{
	if (most <= SMALL_ENOUGH)
		return;
	slim_forget(scratch, sizeof(scratch));
	most = 0;
}
