/* cleanup.h - ownership that ends with the scope. auto_fd closes, auto_free frees, on every path;
 * steal_fd() and steal() transfer ownership on success. */
#pragma once
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static inline void own_close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static inline void own_free(void *p)
{
	free(*(void **)p);
}

#define auto_fd __attribute__((cleanup(own_close_fd)))
#define auto_free __attribute__((cleanup(own_free)))

static inline int steal_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

#define steal(pp)                                                                                  \
	({                                                                                         \
		__typeof__(*(pp)) taken_ = *(pp);                                                  \
		*(pp) = NULL;                                                                      \
		taken_;                                                                            \
	})
