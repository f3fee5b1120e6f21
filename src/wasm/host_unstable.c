/* host_unstable.c - imports of WASI's first version (wasi_unstable) whose layout differs from preview 1. All others are the
 * same functions (build.c). */
#include "wasm/host_wasi.h"

#define UNSTABLE(name) Z_wasi_unstableZ_##name

uint32_t UNSTABLE(fd_seek)(void *m, uint32_t fd, uint64_t offset, uint32_t whence, uint32_t out);
uint32_t UNSTABLE(fd_filestat_get)(void *m, uint32_t fd, uint32_t at);
uint32_t UNSTABLE(path_filestat_get)(void *m, uint32_t fd, uint32_t flags, uint32_t at, uint32_t n,
				     uint32_t out);
uint32_t UNSTABLE(poll_oneoff)(void *m, uint32_t in, uint32_t out, uint32_t n, uint32_t count_at);

uint32_t UNSTABLE(fd_seek)(void *m, uint32_t fd, uint64_t offset, uint32_t whence, uint32_t out)
{
	static const uint8_t order[] = { 1, 2, 0 }; /* current position, end, beginning */

	return whence > 2 ? (uint32_t)WASI_INVAL : WASI(fd_seek)(m, fd, offset, order[whence], out);
}

/* The number of links has 32 bits and follows the type: 56 bytes instead of 64. */
static uint32_t unstable_stat(uint32_t error, uint32_t at, const uint8_t after[8])
{
	uint8_t *s = host_bytes(at, 64);

	if (error)
		return error;
	memmove(s + 20, s + 24, 4);
	memmove(s + 24, s + 32, 32);
	memcpy(s + 56, after, 8);
	return WASI_OK;
}

uint32_t UNSTABLE(fd_filestat_get)(void *m, uint32_t fd, uint32_t at)
{
	const uint8_t *s = host_bytes(at, 64);
	uint8_t after[8];

	if (!s)
		return WASI_FAULT;
	memcpy(after, s + 56, 8);
	return unstable_stat(WASI(fd_filestat_get)(m, fd, at), at, after);
}

uint32_t UNSTABLE(path_filestat_get)(void *m, uint32_t fd, uint32_t flags, uint32_t at, uint32_t n,
				     uint32_t out)
{
	const uint8_t *s = host_bytes(out, 64);
	uint8_t after[8];

	if (!s)
		return WASI_FAULT;
	memcpy(after, s + 56, 8);
	return unstable_stat(WASI(path_filestat_get)(m, fd, flags, at, n, out), out, after);
}

uint32_t UNSTABLE(poll_oneoff)(void *m, uint32_t in, uint32_t out, uint32_t n, uint32_t count_at)
{
	(void)m, (void)in, (void)out, (void)n, (void)count_at;
	return WASI_NOSYS;
}
