/* scratch.c - see scratch.h. */
#include "init/scratch.h"
#include "init/sys.h"

enum { PAGE = 4096, SMALL_ENOUGH = 2 * PAGE };

LAZY char scratch[WIRE_MAX] __attribute__((aligned(PAGE)));
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
	sys_madvise(scratch, sizeof(scratch), MADV_DONTNEED);
	most = 0;
}
