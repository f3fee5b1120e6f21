/* host_wasi.c - see host.h: imports without files. Pointers of the module are checked before each access; a
 * wrong one is EFAULT. */
#include "wasm/host_wasi.h"
#include <errno.h>
#include <poll.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum { WASI_SUBSCRIPTIONS = 256, WASI_RANDOM_MOST = 1 << 20 };

uint32_t wasi_error(int error)
{
	static const uint8_t table[] = {
		[EPERM] = 63,      [ENOENT] = 44,    [EINTR] = 27,   [EIO] = 29,
		[EBADF] = 8,       [EAGAIN] = 6,     [ENOMEM] = 48,  [EACCES] = 2,
		[EFAULT] = 21,     [EBUSY] = 10,     [EEXIST] = 20,  [EXDEV] = 76,
		[ENODEV] = 43,     [ENOTDIR] = 54,   [EISDIR] = 31,  [EINVAL] = 28,
		[ENFILE] = 41,     [EMFILE] = 33,    [ENOTTY] = 59,  [EFBIG] = 22,
		[ENOSPC] = 51,     [ESPIPE] = 70,    [EROFS] = 69,   [EMLINK] = 34,
		[EPIPE] = 64,      [EDOM] = 18,      [ERANGE] = 68,  [ENAMETOOLONG] = 37,
		[ENOSYS] = 52,     [ENOTEMPTY] = 55, [ELOOP] = 32,   [EOVERFLOW] = 61,
		[EOPNOTSUPP] = 58, [EDQUOT] = 19,    [ETXTBSY] = 74, [ENXIO] = 60,
	};

	return error > 0 && error < (int)sizeof table && table[error] ? table[error] : WASI_IO;
}

/* ---- arguments and environment ---- */

static uint32_t wasi_sizes(char *const *list, uint32_t count_at, uint32_t bytes_at)
{
	uint32_t n = 0, bytes = 0;

	for (; list[n]; n++)
		bytes += (uint32_t)strlen(list[n]) + 1;
	return HOST_STORE(uint32_t, count_at, n) && HOST_STORE(uint32_t, bytes_at, bytes)
		       ? WASI_OK
		       : WASI_FAULT;
}

static uint32_t wasi_list(char *const *list, uint32_t pointers, uint32_t bytes)
{
	for (; *list; list++, pointers += 4) {
		uint32_t n = (uint32_t)strlen(*list) + 1;
		char *to = host_bytes(bytes, n);

		if (!to || !HOST_STORE(uint32_t, pointers, bytes))
			return WASI_FAULT;
		memcpy(to, *list, n);
		bytes += n;
	}
	return WASI_OK;
}

uint32_t WASI(args_sizes_get)(void *m, uint32_t count, uint32_t bytes)
{
	(void)m;
	return wasi_sizes(host.argv, count, bytes);
}

uint32_t WASI(args_get)(void *m, uint32_t pointers, uint32_t bytes)
{
	(void)m;
	return wasi_list(host.argv, pointers, bytes);
}

uint32_t WASI(environ_sizes_get)(void *m, uint32_t count, uint32_t bytes)
{
	(void)m;
	return wasi_sizes(host.envp, count, bytes);
}

uint32_t WASI(environ_get)(void *m, uint32_t pointers, uint32_t bytes)
{
	(void)m;
	return wasi_list(host.envp, pointers, bytes);
}

/* ---- clock and random values: both can be supplied ---- */

static const clockid_t wasi_clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID,
					 CLOCK_THREAD_CPUTIME_ID };

/* Deterministic: every question advances the clock by a microsecond. */
uint64_t wasi_now(uint32_t clock)
{
	struct timespec t;

	if (host.deterministic)
		return clock ? (host.clock_ns += 1000) % 1000000000000000000ull
			     : (host.clock_ns += 1000);
	clock_gettime(wasi_clocks[clock & 3], &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint32_t WASI(clock_res_get)(void *m, uint32_t clock, uint32_t at)
{
	(void)m;
	if (clock > 3)
		return WASI_INVAL;
	return HOST_STORE(uint64_t, at, host.deterministic ? 1000 : 1) ? WASI_OK : WASI_FAULT;
}

uint32_t WASI(clock_time_get)(void *m, uint32_t clock, uint64_t precision, uint32_t at)
{
	(void)m;
	(void)precision;
	if (clock > 3)
		return WASI_INVAL;
	return HOST_STORE(uint64_t, at, wasi_now(clock)) ? WASI_OK : WASI_FAULT;
}

static uint64_t wasi_next_random(void) /* splitmix64 */
{
	uint64_t z = host.seed += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

uint32_t WASI(random_get)(void *m, uint32_t at, uint32_t n)
{
	uint8_t *to = host_bytes(at, n);

	(void)m;
	if (!to)
		return WASI_FAULT;
	if (n > WASI_RANDOM_MOST)
		return WASI_INVAL;
	for (uint32_t done = 0; done < n;) {
		uint64_t value;
		ssize_t k = n - done < 256 ? n - done : 256;

		if (host.deterministic) {
			value = wasi_next_random();
			k = k < 8 ? k : 8;
			memcpy(to + done, &value, (size_t)k);
		} else if ((k = getrandom(to + done, (size_t)k, 0)) < 0) {
			return WASI_IO;
		}
		done += (uint32_t)k;
	}
	return WASI_OK;
}

/* ---- waiting and ending ---- */

struct wasi_subscription {
	uint64_t user;
	uint8_t tag, pad[7]; /* 0: clock, 1: readable, 2: writable */
	uint32_t id, pad2;   /* clock or descriptor */
	uint64_t timeout, precision;
	uint16_t flags; /* 1: the timeout is a time, not a duration */
	uint8_t pad3[6];
};
struct wasi_event {
	uint64_t user;
	uint16_t error;
	uint8_t type, pad[5];
	uint64_t bytes;
	uint16_t flags;
	uint8_t pad2[6];
};
_Static_assert(sizeof(struct wasi_subscription) == 48 && sizeof(struct wasi_event) == 32, "WASI");

static uint64_t wasi_wait_ns(const struct wasi_subscription *s)
{
	uint64_t now;

	if (!(s->flags & 1))
		return s->timeout;
	now = wasi_now(s->id & 3);
	return s->timeout > now ? s->timeout - now : 0;
}

/* -1: a descriptor is not open. */
static int wasi_poll(const struct wasi_subscription *s, struct pollfd *p, uint32_t n, uint64_t *ns)
{
	*ns = UINT64_MAX;
	for (uint32_t i = 0; i < n; i++) {
		p[i] = (struct pollfd){ .fd = -1 };
		if (s[i].tag == 0) {
			uint64_t wait = wasi_wait_ns(&s[i]);

			*ns = wait < *ns ? wait : *ns;
		} else {
			p[i].fd = host_files_native(s[i].id);
			p[i].events = s[i].tag == 1 ? POLLIN : POLLOUT;
			if (p[i].fd < 0)
				return -1;
		}
	}
	return 0;
}

uint32_t WASI(poll_oneoff)(void *m, uint32_t in, uint32_t out, uint32_t n, uint32_t count_at)
{
	static struct wasi_subscription s[WASI_SUBSCRIPTIONS];
	static struct pollfd p[WASI_SUBSCRIPTIONS];
	const void *from = host_bytes(in, (uint64_t)n * sizeof *s);
	struct wasi_event *to = host_bytes(out, (uint64_t)n * sizeof *to);
	uint32_t events = 0;
	uint64_t ns;
	int ready = 0;

	(void)m;
	if (!from || !to)
		return WASI_FAULT;
	if (!n || n > WASI_SUBSCRIPTIONS)
		return WASI_INVAL;
	memcpy(s, from, n * sizeof *s);
	if (wasi_poll(s, p, n, &ns) < 0)
		return WASI_BADF;
	if (host.deterministic && ns != UINT64_MAX) {
		host.clock_ns += ns;
	} else {
		struct timespec t = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

		ready = ppoll(p, n, ns == UINT64_MAX ? NULL : &t, NULL);
		if (ready < 0 && errno != EINTR)
			return wasi_error(errno);
	}
	for (uint32_t i = 0; i < n; i++) {
		struct wasi_event e = { .user = s[i].user, .type = s[i].tag };

		if (s[i].tag == 0 ? ready > 0 || wasi_wait_ns(&s[i]) > ns : !p[i].revents)
			continue;
		e.bytes = s[i].tag ? 1 : 0;
		e.flags = p[i].revents & POLLHUP ? 1 : 0;
		memcpy(&to[events++], &e, sizeof e);
	}
	return HOST_STORE(uint32_t, count_at, events) ? WASI_OK : WASI_FAULT;
}

void WASI(proc_exit)(void *m, uint32_t status)
{
	(void)m;
	_exit((int)(status & 255));
}

uint32_t WASI(sched_yield)(void *m)
{
	(void)m;
	return WASI_OK;
}

/* There are no sockets. */
uint32_t WASI(sock_accept)(void *m, uint32_t fd, uint32_t flags, uint32_t at)
{
	(void)m, (void)fd, (void)flags, (void)at;
	return WASI_NOTSUP;
}

uint32_t WASI(sock_recv)(void *m, uint32_t fd, uint32_t v, uint32_t n, uint32_t flags, uint32_t a,
			 uint32_t b)
{
	(void)m, (void)fd, (void)v, (void)n, (void)flags, (void)a, (void)b;
	return WASI_NOTSUP;
}

uint32_t WASI(sock_send)(void *m, uint32_t fd, uint32_t v, uint32_t n, uint32_t flags, uint32_t a)
{
	(void)m, (void)fd, (void)v, (void)n, (void)flags, (void)a;
	return WASI_NOTSUP;
}

uint32_t WASI(sock_shutdown)(void *m, uint32_t fd, uint32_t how)
{
	(void)m, (void)fd, (void)how;
	return WASI_NOTSUP;
}
