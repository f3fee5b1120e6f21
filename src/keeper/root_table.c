/* root_table.c - see root_table.h. */
#include "keeper/root_table.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/sha256.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROOT_NEW "new."

/* ---- text ---- */

size_t root_format(const struct root *r, char out[ROOT_TEXT])
{
	size_t n = 0;

	if (r->merged)
		n += (size_t)snprintf(out, ROOT_TEXT, "merged\n");
	for (uint32_t i = 0; i < r->nlayers; i++)
		n += (size_t)snprintf(out + n, ROOT_TEXT - n, "%s\n", r->layer[i]);
	n += (size_t)snprintf(out + n, ROOT_TEXT - n, "%s", r->base ? "base\n" : "");
	return n;
}

void root_set_id(struct root *r)
{
	uint8_t digest[SHA256_BYTES];
	char text[ROOT_TEXT];
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, text, root_format(r, text));
	sha256_end(&s, digest);
	hex_encode(r->id, digest, sizeof(digest));
}

static int root_parse_line(struct root *r, const char *line, size_t n, int first)
{
	if (r->base)
		return -1;
	if (first && n == 6 && memcmp(line, "merged", n) == 0) {
		r->merged = 1;
		return 0;
	}
	if (n == 4 && memcmp(line, "base", n) == 0) {
		r->base = 1;
		return 0;
	}
	if (n != TREE_ID || r->nlayers == WIRE_ROOT_LAYERS)
		return -1;
	memcpy(r->layer[r->nlayers], line, n);
	return layer_tree_id_ok(r->layer[r->nlayers++]) ? 0 : -1;
}

int root_parse(const char *text, size_t len, struct root *out)
{
	struct root r = { .nlayers = 0 };

	for (size_t at = 0; at < len;) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t n = end ? (size_t)(end - text) - at : 0;

		if (!end || root_parse_line(&r, text + at, n, at == 0) < 0)
			return -1;
		at += n + 1;
	}
	root_set_id(&r);
	*out = r;
	return 0;
}

struct root *root_copy(const struct root *r)
{
	struct root *copy = malloc(sizeof(*copy));

	if (!copy)
		abort();
	*copy = *r;
	return copy;
}

void root_merged_name(const char *id, char out[WIRE_LAYER_ID])
{
	snprintf(out, WIRE_LAYER_ID, "merged.%.64s", id);
}

/* ---- files ---- */

int root_table_open(const char *state_dir, struct err *e)
{
	auto_fd int state = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd;

	if (state < 0 || (mkdirat(state, "roots", 0700) < 0 && errno != EEXIST))
		return err_sys(e, "roots in %s", state_dir);
	fd = openat(state, "roots", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_sys(e, "roots in %s", state_dir) : fd;
}

static int root_read(int roots, const char *name, struct root *out)
{
	auto_fd int fd = openat(roots, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[ROOT_TEXT];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

	return n < 0 || n == sizeof(text) || root_parse(text, (size_t)n, out) < 0 ||
			       strcmp(out->id, name) != 0
		       ? -1
		       : 0;
}

int root_table_load(struct root_table *t, int roots, struct err *e)
{
	int fd = openat(roots, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;
	struct root r;

	*t = (struct root_table){ NULL };
	if (!d) {
		own_close_fd(&fd);
		return err_sys(e, "read the roots");
	}
	while ((de = readdir(d)) != NULL) {
		if (strncmp(de->d_name, ROOT_NEW, strlen(ROOT_NEW)) == 0)
			unlinkat(roots, de->d_name, 0);
		else if (!layer_tree_id_ok(de->d_name))
			continue;
		else if (root_read(roots, de->d_name, &r) == 0)
			root_table_add(t, &r);
		else
			fprintf(stderr,
				"atoll: keeper: root %.12s: its content does not match its name\n",
				de->d_name);
	}
	closedir(d);
	return 0;
}

int root_write(int roots, const struct root *r, struct err *e)
{
	char text[ROOT_TEXT], name[32];
	size_t n = root_format(r, text);
	auto_fd int fd = -1;

	snprintf(name, sizeof(name), ROOT_NEW "%d", (int)getpid());
	unlinkat(roots, name, 0);
	fd = openat(roots, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, n) != (ssize_t)n || fsync(fd) < 0 ||
	    renameat(roots, name, roots, r->id) < 0 || fsync(roots) < 0)
		return err_sys(e, "write root %.12s", r->id);
	return 0;
}

/* ---- the list ---- */

void root_table_fini(struct root_table *t)
{
	while (t->first) {
		struct root_entry *x = t->first;

		t->first = x->next;
		free(x);
	}
}

const struct root *root_table_find(const struct root_table *t, const char *id)
{
	for (const struct root_entry *x = t->first; x; x = x->next)
		if (strcmp(x->root.id, id) == 0)
			return &x->root;
	return NULL;
}

const struct root *root_table_user(const struct root_table *t, const char *layer)
{
	for (const struct root_entry *x = t->first; x; x = x->next)
		for (uint32_t i = 0; i < x->root.nlayers; i++)
			if (strcmp(x->root.layer[i], layer) == 0)
				return &x->root;
	return NULL;
}

void root_table_add(struct root_table *t, const struct root *r)
{
	struct root_entry *x;

	if (root_table_find(t, r->id))
		return;
	x = malloc(sizeof(*x));
	if (!x)
		abort();
	x->root = *r;
	x->next = t->first;
	t->first = x;
}

void root_table_remove(struct root_table *t, const char *id)
{
	for (struct root_entry **at = &t->first; *at; at = &(*at)->next) {
		struct root_entry *x = *at;

		if (strcmp(x->root.id, id) != 0)
			continue;
		*at = x->next;
		free(x);
		return;
	}
}
