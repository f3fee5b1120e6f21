/* rootbox.h - image layers and roots for tests in C, written into the store of the test's keeper. */
#pragma once
#include "keeper/layer_image.h"
#include "system/wirebox.h"

#include <sys/xattr.h>

/* Makes an image layer of what a script (sh -e, in an empty folder) writes; opaque: a folder of it
 * that hides what lies below, or NULL. */
static inline int layer(const char *script, const char *opaque, char out_id[WIRE_LAYER_ID])
{
	static unsigned number;
	char dir[160], to[240], command[8192], path[300];
	struct layer_tree_sum sum;
	auto_fd int fd = -1;
	struct err e;

	snprintf(dir, sizeof(dir), "%s/layers/made.%u", state_dir, number++);
	snprintf(command, sizeof(command), "set -e; umask 022; mkdir %s; cd %s; %s", dir, dir,
		 script);
	if (system(command) != 0)
		return -1;
	snprintf(path, sizeof(path), "%s/%s", dir, opaque ? opaque : "");
	if (opaque && setxattr(path, "user.overlay.opaque", "y", 1, 0) < 0)
		return -1;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (layer_image_finalize(fd, &sum, &e) < 0) {
		printf("# %s\n", e.msg);
		return -1;
	}
	snprintf(to, sizeof(to), "%s/layers/%s", state_dir, sum.id);
	snprintf(out_id, WIRE_LAYER_ID, "%s", sum.id);
	return rename(dir, to);
}

/* The same with a shell and some programs of the host. */
static inline int image_layer(const char *script, char out_id[WIRE_LAYER_ID])
{
	static const char programs[] =
		"mkdir -p usr/bin usr/lib usr/lib64 etc srv home/user opaque; chown 1000:1000 home/user; "
		"ln -s usr/bin bin; ln -s usr/lib lib; ln -s usr/lib64 lib64; "
		"for p in sh cat ls stat id mkdir ln rm chmod chown mv touch tty sleep wc; do p=$(command -v $p); "
		"cp -L $p usr/bin/; ldd $p | grep -o '/[^ ]*' | while read l; do "
		"test -e .$l || { mkdir -p .${l%/*}; cp -L $l .$l; }; done; done; "
		"echo root:x:0:0::/root:/bin/sh >etc/passwd; echo below >etc/name; echo a >opaque/a; "
		"echo x >srv/gone; echo y >srv/kept; ";
	char all[6000];

	snprintf(all, sizeof(all), "%s %s", programs, script);
	return layer(all, NULL, out_id);
}

static inline int make_root(int keeper, unsigned flags, unsigned n, const char *const *ids,
			    char out_id[WIRE_LAYER_ID])
{
	struct wire_root_make w = { .head = sock_head(WIRE_ROOT_MAKE, 11), .nlayers = n };

	w.head.flags = (uint16_t)flags;
	for (unsigned i = 0; i < n; i++)
		snprintf(w.layer[i], sizeof(w.layer[i]), "%.71s", ids[i]);
	if (ask(keeper, &w, sizeof(w), NULL, 0) != WIRE_ROOT)
		return -1;
	memcpy(out_id, GOT(wire_root)->id, WIRE_LAYER_ID);
	return 0;
}

static inline struct wire_create with_root(const char *root)
{
	struct wire_create w = wish(0, 1);

	snprintf(w.template, sizeof(w.template), "test");
	snprintf(w.root, sizeof(w.root), "%.71s", root);
	return w;
}

static inline int box_of(int keeper, const char *root, struct made *out)
{
	struct wire_create w = with_root(root);

	return make_as(keeper, &w, out);
}

static inline int about_root(int keeper, uint8_t type, const char *id)
{
	struct wire_root w = { .head = sock_head(type, 12) };

	snprintf(w.id, sizeof(w.id), "%.71s", id);
	return ask(keeper, &w, sizeof(w), NULL, 0);
}

static inline int drop_root(int keeper, const char *id)
{
	return about_root(keeper, WIRE_ROOT_DROP, id);
}

static inline int check_root(int keeper, const char *id)
{
	return about_root(keeper, WIRE_ROOT_CHECK, id);
}

static inline int about_layer(int keeper, uint8_t type, const char *id)
{
	struct wire_layer w = { .head = sock_head(type, 13) };

	snprintf(w.id, sizeof(w.id), "%.71s", id);
	return ask(keeper, &w, sizeof(w), NULL, 0);
}

static inline int drop_layer(int keeper, const char *id)
{
	return about_layer(keeper, WIRE_LAYER_DROP, id);
}

/* Runs a script in /, with flags of START; its output is in `said`. */
static inline int run_with(const struct made *m, unsigned flags, unsigned uid, unsigned gid,
			   const char *script)
{
	static uint32_t ref = 5000;
	struct wire_start st = { .head = sock_head(WIRE_START, ref++),
				 .argc = 3,
				 .envc = 1,
				 .grace_ms = 1000,
				 .credit = { UINT64_MAX, UINT64_MAX },
				 .uid = (uint16_t)uid,
				 .gid = (uint16_t)gid };
	char tail[4096];
	size_t n = 0;
	struct err e;

	st.head.flags = (uint16_t)flags;
	st.tail_bytes =
		(uint32_t)snprintf(tail, sizeof(tail),
				   "/%c/bin/sh%c-c%c%s%cPATH=/usr/local/bin:/usr/bin:/bin%c", 0, 0,
				   0, script, 0, 0);
	said[0] = 0;
	if (sock_send(m->init, &st, sizeof(st), tail, st.tail_bytes, NULL, 0, &e) < 0)
		return -1;
	for (;;) {
		int type = receive(m->init);

		if (type == WIRE_OUTPUT)
			n += (size_t)snprintf(said + n, sizeof(said) - n, "%s",
					      bytes + sizeof(struct wire_output));
		else if (type == WIRE_EXIT && GOT(frame)->ref == st.head.ref)
			return GOT(wire_exit)->why == WIRE_WHY_EXIT ? GOT(wire_exit)->status : -1;
		else if (!type || type == WIRE_ERROR)
			return -1;
		n = n < sizeof(said) ? n : sizeof(said) - 1;
	}
}

static inline int as_root(const struct made *m, const char *script)
{
	return run_with(m, WIRE_START_ROOT, 0, 0, script);
}

static inline int as_user(const struct made *m, const char *script)
{
	return run_with(m, 0, 0, 0, script);
}
