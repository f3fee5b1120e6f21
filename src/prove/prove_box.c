/* prove_box.c - the boxes of a proof, by the same client library as every other box. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "client/files.h"
#include "prove/prove_internal.h"
#include "wire/sock.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define PROVE_PROGRAM "atoll-probe"

extern const char prove_probe_image[], prove_probe_image_end[]; /* probe_image.S */

static uint64_t prove_wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int prove_box_put(struct prove_box *x, struct err *e)
{
	struct files f;
	int done;

	if (files_open(&f, &x->handle, e) < 0)
		return -1;
	done = files_put_bytes(&f, prove_probe_image,
			       (size_t)(prove_probe_image_end - prove_probe_image), PROVE_PROGRAM,
			       0755, e);
	files_close(&f);
	return done;
}

/* Tier process: its processes are in the namespace of the host, below its supervisor. */
static int prove_box_find_process(const struct prove_box *x, struct err *e)
{
	const struct wire_box *about = &x->handle.about;
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo", about->init_pid);
	if (stat(path, &st) < 0 || !about->uid_base)
		return err_set(
			e, ERR_SYS,
			"box %s: process %d is not its first process, or the keeper has no root",
			about->id, about->init_pid);
	return 0;
}

/* Its first process as this process sees it; a keeper in another pid namespace has other numbers. */
static int prove_box_find(struct prove_box *x, struct err *e)
{
	const struct wire_box *about = &x->handle.about;
	unsigned inside = 1, outside = 0;
	char path[64];
	ssize_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/uid_map", about->init_pid);
	f = fopen(path, "re");
	if (f && fscanf(f, "%u %u", &inside, &outside) != 2)
		inside = 1;
	if (f)
		fclose(f);
	snprintf(path, sizeof(path), "/proc/%d/ns/pid", about->init_pid);
	n = readlink(path, x->pid_namespace, sizeof(x->pid_namespace) - 1);
	x->pid_namespace[n > 0 ? n : 0] = 0;
	if (inside || outside != about->uid_base || n <= 0)
		return err_set(
			e, ERR_SYS,
			"box %s: process %d is not its first process; run this in the pid namespace of the keeper",
			about->id, about->init_pid);
	return 0;
}

int prove_box_create(struct prove_run *r, struct prove_box *x, const struct wire_limits *limits,
		     struct err *e)
{
	unsigned tier = r->want->modules ? WIRE_TIER_CONTAINER : r->want->tier;
	struct wire_create want = { .head.flags = wire_tier_flags(tier),
				    .template = "base",
				    .limits = *limits,
				    .without = r->want->without_launch };

	if (want.without)
		want.head.flags |= WIRE_CREATE_COLD; /* a pooled box has all steps */
	if (boxh_create(&r->keeper, &x->handle, &want, e) < 0)
		return -1;
	x->open = 1;
	if (x->handle.about.tier != tier)
		return err_set(e, ERR_SYS, "the keeper made a box of tier %u instead of %u",
			       x->handle.about.tier, tier);
	/* Whatever ends this process ends the box. */
	if (boxh_kill_on_close(&x->handle, e) < 0 ||
	    (r->want->tier == WIRE_TIER_PROCESS ? prove_box_find_process(x, e)
						: prove_box_find(x, e)) < 0)
		return -1;
	return r->want->modules ? 0 : prove_box_put(x, e);
}

int prove_box_command(struct prove_run *r, struct prove_box *x, const char *const *argv,
		      const char *const *env, struct err *e)
{
	struct box_command cmd = { .argv = argv,
				   .env = env,
				   .flags = WIRE_START_STDIN,
				   .without = r->want->without_init,
				   .credit = UINT64_MAX };

	buf_cut(&x->out, 0);
	x->exited = 0;
	x->started_ns = prove_wall_ns();
	return boxh_start(&x->handle, &cmd, &x->ref, e);
}

int prove_box_start(struct prove_run *r, struct prove_box *x, const char *const *words,
		    uint32_t wall_ms, int unread, struct err *e)
{
	const char *argv[64] = { BOX_HOME "/" PROVE_PROGRAM };
	struct box_command cmd = { .argv = argv,
				   .wall_ms = wall_ms,
				   .flags = WIRE_START_STDIN,
				   .without = r->want->without_init,
				   .credit = unread ? 0 : UINT64_MAX };

	for (unsigned i = 0; words[i] && i + 2 < ARRAY_LEN(argv); i++)
		argv[i + 1] = words[i];
	buf_cut(&x->out, 0);
	x->exited = 0;
	x->started_ns = prove_wall_ns();
	return boxh_start(&x->handle, &cmd, &x->ref, e);
}

static int prove_box_frame(struct prove_box *x, const char *frame, size_t n, struct err *e)
{
	const struct frame *f = (const struct frame *)frame;

	if (f->ref != x->ref)
		return 0;
	if (f->type == WIRE_ERROR)
		return wire_error_read((const struct wire_error *)frame, e);
	if (f->type == WIRE_EXIT) {
		memcpy(&x->exit, frame, sizeof(x->exit));
		x->exited = 1;
	} else if (f->type == WIRE_OUTPUT) {
		if (x->out.len + n > PROVE_OUTPUT)
			return err_set(e, ERR_LIMIT, "the probe wrote more than %d KiB",
				       PROVE_OUTPUT >> 10);
		buf_add(&x->out, frame + sizeof(struct wire_output),
			n - sizeof(struct wire_output));
		x->last_ns = prove_wall_ns();
	}
	return 0;
}

int prove_box_until(struct prove_box *x, const char *text, struct err *e)
{
	uint64_t end = now_ns() + PROVE_WAIT_MS * UINT64_C(1000000);
	char frame[WIRE_MAX];

	while (!(text && strstr(buf_str(&x->out), text)) && !x->exited) {
		struct pollfd p = { .fd = x->handle.init, .events = POLLIN };
		uint64_t now = now_ns();
		unsigned nfds = 0;
		int n;

		if (now >= end)
			return err_set(e, ERR_SYS, "box %s: the probe did not finish within %d s",
				       x->handle.about.id, PROVE_WAIT_MS / 1000);
		n = poll(&p, 1, (int)((end - now) / 1000000) + 1);
		if (n < 0 && errno != EINTR)
			return err_sys(e, "poll");
		if (n <= 0)
			continue;
		n = sock_recv(x->handle.init, frame, NULL, &nfds, e);
		if (n == 0 || (n < 0 && (e->sys == ECONNRESET || e->sys == EPIPE)))
			return 1;
		if (n < 0 || prove_box_frame(x, frame, (size_t)n, e) < 0)
			return err_in(e, "box %s", x->handle.about.id);
	}
	return 0;
}

int prove_box_close_stdin(struct prove_box *x, struct err *e)
{
	return boxh_stdin(&x->handle, x->ref, NULL, 0, e);
}

int prove_box_detach(struct prove_box *x, struct err *e)
{
	struct frame f = sock_head(WIRE_DETACH, x->ref);

	return sock_send(x->handle.init, &f, sizeof(f), NULL, 0, NULL, 0, e);
}

int prove_box_end(struct prove_run *r, struct prove_box *x, struct wire_counters *out,
		  struct err *e)
{
	struct err gone;

	if (!x->open)
		return 0;
	x->open = 0;
	boxh_close(&x->handle);
	if (boxh_kill(&r->keeper, x->handle.about.id, out, &gone) < 0 &&
	    gone.kind != ERR_NOT_FOUND) {
		*e = gone;
		return -1;
	}
	return 0;
}

void prove_box_drop(struct prove_run *r, struct prove_box *x)
{
	struct err ignored;

	(void)!prove_box_end(r, x, NULL, &ignored);
	buf_fini(&x->out);
}

void prove_box_fact(const struct prove_box *x, const char *what, char *out, size_t size)
{
	char line[160], *end;
	const char *at;

	snprintf(line, sizeof(line),
		 "{\"probe\": \"identity\", \"way\": \"%s\", \"result\": \"ok\", \"got\": \"",
		 what);
	at = strstr(buf_str(&x->out), line);
	out[0] = 0;
	if (!at)
		return;
	snprintf(out, size, "%s", at + strlen(line));
	end = strstr(out, "\"}");
	if (end)
		*end = 0;
}
