/* host_sampler.c - see host_sampler.h. */
#include "v1box/host_sampler.h"
#include "base/cleanup.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

enum { HOST_SECONDS = 15 * 60, HOST_TENS = 24 * 360, HOST_TEXT = 4096 };
static const int64_t HOST_STEP_NS = INT64_C(9500000000);

struct host_ring {
	struct host_sample *v;
	uint32_t room, n, first;
};

struct host_sampler {
	int stat, meminfo, net, folder; /* -1: not open */
	struct host_ring seconds, tens;
};

static void host_ring_init(struct host_ring *r, uint32_t room)
{
	r->v = calloc(room, sizeof(*r->v));
	if (!r->v)
		abort();
	r->room = room;
}

static void host_ring_add(struct host_ring *r, const struct host_sample *s)
{
	if (r->n == r->room) {
		r->first = (r->first + 1) % r->room;
		r->n--;
	}
	r->v[(r->first + r->n++) % r->room] = *s;
}

struct host_sampler *host_sampler_new(const char *folder)
{
	struct host_sampler *h = calloc(1, sizeof(*h));

	if (!h)
		abort();
	h->stat = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	h->meminfo = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	h->net = open("/proc/net/dev", O_RDONLY | O_CLOEXEC);
	h->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	host_ring_init(&h->seconds, HOST_SECONDS);
	host_ring_init(&h->tens, HOST_TENS);
	return h;
}

void host_sampler_free(struct host_sampler *h)
{
	if (!h)
		return;
	own_close_fd(&h->stat);
	own_close_fd(&h->meminfo);
	own_close_fd(&h->net);
	own_close_fd(&h->folder);
	free(h->seconds.v);
	free(h->tens.v);
	free(h);
}

/* The first bytes of a file of /proc as a text; "" if it cannot be read. */
static void host_read_text(int fd, char text[static HOST_TEXT])
{
	ssize_t n = fd < 0 ? -1 : pread(fd, text, HOST_TEXT - 1, 0);

	text[n > 0 ? n : 0] = 0;
}

static void host_read_cpu(const struct host_sampler *h, struct host_sample *s)
{
	unsigned long long user, nice, sys, idle, wait, irq, soft;
	char text[HOST_TEXT];
	long ticks = sysconf(_SC_CLK_TCK);

	host_read_text(h->stat, text);
	if (ticks <= 0 || sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &sys,
				 &idle, &wait, &irq, &soft) != 7)
		return;
	s->cpu_us = (user + nice + sys + irq + soft) * (1000000 / (unsigned long long)ticks);
	s->has_cpu = 1;
}

static int host_meminfo_row(const char *text, const char *name, uint64_t *out_bytes)
{
	const char *row = strstr(text, name);
	unsigned long long kib;

	if (!row || sscanf(row + strlen(name), " %llu", &kib) != 1)
		return -1;
	*out_bytes = kib << 10;
	return 0;
}

static void host_read_memory(const struct host_sampler *h, struct host_sample *s)
{
	char text[HOST_TEXT];
	uint64_t total, available;

	host_read_text(h->meminfo, text);
	if (host_meminfo_row(text, "MemTotal:", &total) < 0 ||
	    host_meminfo_row(text, "MemAvailable:", &available) < 0 || available > total)
		return;
	s->mem_total = total;
	s->mem_bytes = total - available;
	s->has_mem = 1;
}

static void host_read_disk(const struct host_sampler *h, struct host_sample *s)
{
	struct statvfs v;

	if (h->folder < 0 || fstatvfs(h->folder, &v) < 0 || v.f_bfree > v.f_blocks)
		return;
	s->disk_total = (uint64_t)v.f_blocks * v.f_frsize;
	s->disk_bytes = (uint64_t)(v.f_blocks - v.f_bfree) * v.f_frsize;
	s->has_disk = 1;
}

/* Lines of "  eth0: bytes 7 numbers bytes ...", after two lines of titles. A machine with so many
 * interfaces that they do not fit shows the sum of the first ones. */
static void host_read_network(const struct host_sampler *h, struct host_sample *s)
{
	char text[HOST_TEXT], *line, *rest = text;

	host_read_text(h->net, text);
	while ((line = strsep(&rest, "\n")) != NULL) {
		unsigned long long in, out;
		char name[32];

		if (sscanf(line, " %31[^: ]: %llu %*u %*u %*u %*u %*u %*u %*u %llu", name, &in,
			   &out) != 3)
			continue;
		s->has_net = 1;
		if (strcmp(name, "lo") != 0) {
			s->net_in += in;
			s->net_out += out;
		}
	}
}

void host_sampler_read(const struct host_sampler *h, unsigned boxes, struct host_sample *out_now)
{
	struct sysinfo info;
	struct timespec now;
	uint64_t load = 0;

	clock_gettime(CLOCK_REALTIME, &now);
	*out_now = (struct host_sample){
		.at_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec,
		.boxes = boxes > UINT16_MAX ? UINT16_MAX : (uint16_t)boxes,
	};
	if (sysinfo(&info) == 0)
		load = (uint64_t)info.loads[0] * 100 >> SI_LOAD_SHIFT;
	out_now->load_centi = load > UINT16_MAX ? UINT16_MAX : (uint16_t)load;
	host_read_cpu(h, out_now);
	host_read_memory(h, out_now);
	host_read_disk(h, out_now);
	host_read_network(h, out_now);
}

void host_sampler_tick(struct host_sampler *h, unsigned boxes)
{
	const struct host_ring *t = &h->tens;
	struct host_sample now;
	int64_t last;

	host_sampler_read(h, boxes, &now);
	host_ring_add(&h->seconds, &now);
	last = t->n ? t->v[(t->first + t->n - 1) % t->room].at_ns : 0;
	/* The clock may be set back; ticks are not exactly a second apart. */
	if (now.at_ns < last || now.at_ns - last >= HOST_STEP_NS)
		host_ring_add(&h->tens, &now);
}

void host_sampler_history(const struct host_sampler *h, int step_s, int64_t since_ns,
			  void (*each)(void *ctx, const struct host_sample *s), void *ctx)
{
	const struct host_ring *r = step_s == 1 ? &h->seconds : &h->tens;

	for (uint32_t i = 0; i < r->n; i++) {
		const struct host_sample *s = &r->v[(r->first + i) % r->room];

		if (s->at_ns >= since_ns)
			each(ctx, s);
	}
}
