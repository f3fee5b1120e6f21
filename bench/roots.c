/* roots.c - a new box of an image, compared with one of base.
 *
 * atoll-bench-roots ARCHIVE [ROUNDS]
 *
 * The archive is an image with /bin/true. Interleaved rounds of: a box of base; a box of a root of
 * that image, merged; each pooled, and created on demand. Twice: from the request to the box, and to
 * the exit of /bin/true in it. bench/roots makes the archive, and starts the keeper at ATOLL_RUN. */
#include "base/clock.h"
#include "base/cleanup.h"
#include "client/box_handle.h"
#include "sample.h"
#include "wire/sock.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS_MOST = 2000, SETTLE_US = 60000 };
#define GOAL 1.2 /* of pooled boxes */

static struct keeper_sync keeper = { .fd = -1 };
static _Alignas(8) char bytes[WIRE_MAX];

static int ask(const void *request, size_t len, int fd, uint8_t want, struct err *e)
{
	const struct wire_error *told = (const void *)bytes;
	unsigned nfds = 0;

	if (sock_send(keeper.fd, request, len, NULL, 0, &fd, fd >= 0, e) < 0)
		return -1;
	if (sock_recv(keeper.fd, bytes, NULL, &nfds, e) <= 0)
		return err_set(e, ERR_SYS, "no answer of the keeper");
	return told->head.type == want ? 0 : err_set(e, ERR_SYS, "%.200s", told->msg);
}

static int make_root(const char *archive, char out[WIRE_LAYER_ID], struct err *e)
{
	struct wire_layer_unpack unpack = { .head = sock_head(WIRE_LAYER_UNPACK, 1),
					    .bytes_most = 1ull << 32,
					    .files_most = 1000000 };
	struct wire_root_make root = { .head = sock_head(WIRE_ROOT_MAKE, 2), .nlayers = 1 };
	auto_fd int fd = open(archive, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, "open %s", archive);
	if (ask(&unpack, sizeof(unpack), fd, WIRE_LAYER, e) < 0)
		return -1;
	memcpy(root.layer[0], ((const struct wire_layer *)(const void *)bytes)->id, WIRE_LAYER_ID);
	root.head.flags = WIRE_ROOT_MERGE;
	if (ask(&root, sizeof(root), -1, WIRE_ROOT, e) < 0)
		return -1;
	memcpy(out, ((const struct wire_root *)(const void *)bytes)->id, WIRE_LAYER_ID);
	return 0;
}

static int fill_pool(const char *root, struct err *e)
{
	struct wire_pool_root w = { .head = sock_head(WIRE_POOL_ROOT, 3),
				    .limits = box_default_limits(),
				    .depth = 4 };

	memcpy(w.root, root, sizeof(w.root));
	return ask(&w, sizeof(w), -1, WIRE_DONE, e);
}

static int await_exit(struct box_handle *b, struct err *e)
{
	const struct wire_exit *x = (const void *)bytes;
	unsigned nfds = 0;

	if (sock_recv(b->init, bytes, NULL, &nfds, e) <= 0 || x->head.type != WIRE_EXIT ||
	    x->why != WIRE_WHY_EXIT || x->status != 0)
		return err_set(e, ERR_SYS, "/bin/true has not succeeded");
	return 0;
}

struct subject {
	struct samples created, ran;
};

static int measure(const char *root, uint16_t flags, struct subject *out, struct err *e)
{
	const char *const argv[] = { "/bin/true", NULL };
	struct box_command cmd = { .argv = argv, .cwd = "/", .credit = 65536 };
	struct wire_create want = { .head.flags = flags,
				    .template = "base",
				    .limits = box_default_limits() };
	uint64_t began = now_ns();
	struct box_handle b;
	uint32_t ref;
	int done;

	snprintf(want.root, sizeof(want.root), "%s", root);
	if (boxh_create(&keeper, &b, &want, e) < 0)
		return -1;
	samples_add(&out->created, now_ns() - began);
	done = boxh_start(&b, &cmd, &ref, e) < 0 || await_exit(&b, e) < 0 ? -1 : 0;
	samples_add(&out->ran, now_ns() - began);
	boxh_close(&b);
	return boxh_kill(&keeper, b.about.id, NULL, e) < 0 ? -1 : done;
}

/* goal: 0: none. Returns 1 if it is missed. */
static int report(const char *what, struct samples *base, struct samples *root, double goal)
{
	double a = samples_ms(base, 0.5), b = samples_ms(root, 0.5);

	printf("%-26s base %6.3f ms | image %6.3f ms, x base %.3f", what, a, b, b / a);
	if (goal > 0)
		printf(" (goal %.1f) %s", goal, b / a <= goal ? "met" : "missed");
	printf("\n");
	return goal > 0 && b / a > goal;
}

static int rounds_of(unsigned rounds, const char *root, struct err *e)
{
	static struct subject base[2], image[2];
	static const uint16_t flags[2] = { 0, WIRE_CREATE_COLD };

	for (unsigned i = 0; i < rounds; i++)
		for (unsigned j = 0; j < 2; j++) {
			usleep(SETTLE_US); /* the pools are refilled */
			if (measure("", flags[j], &base[j], e) < 0)
				return -1;
			usleep(SETTLE_US);
			if (measure(root, flags[j], &image[j], e) < 0)
				return -1;
		}
	return report("pooled: box", &base[0].created, &image[0].created, GOAL) +
	       report("pooled: box, /bin/true", &base[0].ran, &image[0].ran, GOAL) +
	       report("on demand: box", &base[1].created, &image[1].created, 0) +
	       report("on demand: box, /bin/true", &base[1].ran, &image[1].ran, 0);
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 200;
	char root[WIRE_LAYER_ID];
	struct err e = { 0 };
	int missed;

	if (argc < 2 || rounds < 1 || rounds > ROUNDS_MOST) {
		fprintf(stderr, "usage: atoll-bench-roots ARCHIVE [ROUNDS]\n");
		return 2;
	}
	if (keeper_sync_open(&keeper, 0, &e) < 0 || make_root(argv[1], root, &e) < 0 ||
	    fill_pool(root, &e) < 0 || (missed = rounds_of(rounds, root, &e)) < 0) {
		fprintf(stderr, "atoll-bench-roots: %s\n", e.msg);
		return 1;
	}
	keeper_sync_close(&keeper);
	return missed > 0;
}
