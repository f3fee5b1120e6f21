/* host_sampler.h - samples what the machine uses, and keeps a history.
 * Owns: the open files of /proc and of the state folder, and the samples.
 *
 *   seconds        of the last 15 minutes
 *   tens           every 10 s of the last 24 hours
 *
 * The server has no /proc after it is confined, so the files are opened before and read again with
 * pread(). Samples are in memory only and are lost at a restart. */
#pragma once
#include <stdint.h>

struct host_sample {
	uint64_t cpu_us; /* time that all processors worked since the machine started */
	uint64_t mem_bytes,
		mem_total; /* in use: memory that no program could allocate without swapping */
	uint64_t disk_bytes, disk_total; /* of the file system with the state folder */
	uint64_t net_in, net_out;        /* bytes of all interfaces except loopback */
	int64_t at_ns;                   /* wall clock */
	uint16_t load_centi, boxes;      /* load of the last minute, in hundredths */
	uint8_t has_cpu, has_mem, has_disk, has_net;
};

struct host_sampler;
/* Before the process is confined. A file that cannot be opened makes its figures unavailable. */
struct host_sampler *host_sampler_new(const char *folder);
void host_sampler_free(struct host_sampler *h);                 /* fine on NULL */
void host_sampler_tick(struct host_sampler *h, unsigned boxes); /* once a second */
void host_sampler_read(const struct host_sampler *h, unsigned boxes, struct host_sample *out_now);

/* Samples since then, oldest first. step_s: 1 or 10. */
void host_sampler_history(const struct host_sampler *h, int step_s, int64_t since_ns,
			  void (*each)(void *ctx, const struct host_sample *s), void *ctx);
