/* untar.c - see untar.h. ustar, GNU's long names and pax headers; all other entries are skipped. */
#include "cli/untar.h"
#include "base/cleanup.h"
#include "cli/below.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { BLOCK = 512, TEXT_MAX = 1 << 20, NAME_MAX_BYTES = 4096 };

void untar_init(struct untar *u, int root)
{
	*u = (struct untar){ .root = root, .fd = -1 };
}

void untar_fini(struct untar *u)
{
	own_close_fd(&u->fd);
	buf_fini(&u->name);
	buf_fini(&u->link);
	buf_fini(&u->text);
}

/* ---- entries ---- */

static int untar_fail(const struct untar *u, const char *what, struct err *e)
{
	return err_sys(e, "%s %.120s", what, buf_str(&u->name));
}

static int make_file(struct untar *u, mode_t mode, struct err *e)
{
	u->fd = below_create(u->root, u->name.p, mode);
	if (u->fd < 0)
		return untar_fail(u, "write", e);
	u->kind = 'f';
	u->files++;
	return 0;
}

static int make_folder(struct untar *u, mode_t mode, struct err *e)
{
	const char *last;
	auto_fd int dir = below_folder_of(u->root, u->name.p, &last), there = -1;

	if (dir < 0)
		return untar_fail(u, "make the folder", e);
	if (mkdirat(dir, last, (mode & 0777) | 0700) == 0)
		return 0;
	there = errno == EEXIST ? below_open(dir, last, O_PATH | O_DIRECTORY, 0) : -1;
	return there < 0 ? untar_fail(u, "make the folder", e) : 0;
}

static int make_link(struct untar *u, struct err *e)
{
	const char *last;
	auto_fd int dir = below_folder_of(u->root, u->name.p, &last);

	if (dir < 0 || (unlinkat(dir, last, 0) < 0 && errno != ENOENT) ||
	    symlinkat(buf_str(&u->link), dir, last) < 0)
		return untar_fail(u, "make the link", e);
	u->files++;
	return 0;
}

/* A hard link to an earlier entry becomes a copy: no file of this machine gets another name. */
static int make_copy(struct untar *u, struct err *e)
{
	auto_fd int from = -1;
	char piece[65536];
	struct stat st;
	ssize_t n;

	if (!u->link.len || below_tidy(u->link.p) < 0) {
		u->skipped++;
		return 0;
	}
	from = below_open(u->root, u->link.p, O_RDONLY | O_NONBLOCK, 0);
	if (from < 0 || fstat(from, &st) < 0 || !S_ISREG(st.st_mode)) {
		u->skipped++;
		return 0;
	}
	if (make_file(u, st.st_mode, e) < 0)
		return -1;
	while ((n = read(from, piece, sizeof(piece))) > 0)
		if (write(u->fd, piece, (size_t)n) != n)
			return untar_fail(u, "write", e);
	own_close_fd(&u->fd);
	u->kind = 0;
	return n < 0 ? untar_fail(u, "read", e) : 0;
}

/* ---- headers ---- */

static int untar_octal(const unsigned char *field, unsigned n, uint64_t *out)
{
	unsigned i = 0;

	*out = 0;
	if (field[0] & 0x80) { /* GNU: base 256 */
		*out = field[0] & 0x3f;
		for (i = 1; i < n; i++) {
			if (*out >> 54)
				return -1;
			*out = *out << 8 | field[i];
		}
		return field[0] & 0x40 ? -1 : 0;
	}
	while (i < n && field[i] == ' ')
		i++;
	for (; i < n && field[i] >= '0' && field[i] <= '7'; i++)
		*out = *out << 3 | (uint64_t)(field[i] - '0');
	return i < n && field[i] != ' ' && field[i] != 0 ? -1 : 0;
}

static int sum_fits(const unsigned char *b)
{
	uint64_t said;
	unsigned sum = 0;

	for (unsigned i = 0; i < BLOCK; i++)
		sum += i >= 148 && i < 156 ? ' ' : b[i];
	return untar_octal(b + 148, 8, &said) == 0 && said == sum;
}

static void take_name(struct untar *u, const unsigned char *b)
{
	if (u->name.len) /* an earlier header has set it */
		return;
	if (!memcmp(b + 257, "ustar", 6) && b[345])
		buf_printf(&u->name, "%.155s/", (const char *)b + 345);
	buf_printf(&u->name, "%.100s", (const char *)b);
}

static int untar_make(struct untar *u, char type, mode_t mode, struct err *e)
{
	if (!strcmp(buf_str(&u->name), "./") || !strcmp(buf_str(&u->name), "."))
		return 0; /* the folder itself */
	if (u->name.len >= NAME_MAX_BYTES || !u->name.len || strlen(u->name.p) != u->name.len ||
	    below_tidy(u->name.p) < 0) {
		u->skipped++;
		return 0;
	}
	switch (type) {
	case 0:
	case '0':
	case '7':
		return make_file(u, mode, e);
	case '1':
		return make_copy(u, e);
	case '2':
		return make_link(u, e);
	case '5':
		return make_folder(u, mode, e);
	default:
		u->skipped++;
		return 0;
	}
}

static int take_header(struct untar *u, struct err *e)
{
	const unsigned char *b = u->block;
	char type = (char)b[156];
	uint64_t size, mode;
	int rc = 0;

	for (unsigned i = 0; i < BLOCK; i++)
		if (b[i]) {
			u->zeros = 0;
			break;
		} else if (i == BLOCK - 1) {
			u->zeros++;
			return 0;
		}
	if (!sum_fits(b) || untar_octal(b + 124, 12, &size) < 0 ||
	    untar_octal(b + 100, 8, &mode) < 0)
		return err_set(e, ERR_INVALID, "the box did not send a tar archive");
	u->left = size;
	u->pad = (BLOCK - size % BLOCK) % BLOCK;
	u->kind = 's';
	if (type == 'x' || type == 'L' || type == 'K') {
		if (size > TEXT_MAX)
			return err_set(e, ERR_LIMIT, "a name of %llu bytes in the archive",
				       (unsigned long long)size);
		u->kind = 'x';
		u->head = type;
		buf_cut(&u->text, 0);
		return 0;
	}
	if (type == 'g')
		return 0;
	take_name(u, b);
	if (!u->link.len)
		buf_printf(&u->link, "%.100s", (const char *)b + 157);
	rc = untar_make(u, type, (mode_t)mode, e);
	/* Only files have content, even if the header announces some. */
	if (type == '1' || type == '2' || type == '5')
		u->left = u->pad = 0;
	buf_cut(&u->name, 0);
	buf_cut(&u->link, 0);
	return rc;
}

/* "LENGTH KEY=VALUE\n" ... */
static void take_pax(struct untar *u)
{
	const char *p = buf_str(&u->text), *end = p + u->text.len;

	while (p < end) {
		char *key;
		unsigned long n = strtoul(p, &key, 10);
		const char *eq, *stop;

		if (n == 0 || n > (size_t)(end - p))
			return;
		stop = p + n;
		if (*key != ' ' || ++key >= stop)
			return;
		eq = memchr(key, '=', (size_t)(stop - key));
		if (!eq || stop - eq < 2) /* the length counts the newline, too */
			return;
		if (!strncmp(key, "path=", 5) || !strncmp(key, "linkpath=", 9)) {
			struct buf *to = *key == 'p' ? &u->name : &u->link;

			buf_cut(to, 0);
			buf_add(to, eq + 1, (size_t)(stop - eq - 2));
		}
		p = stop;
	}
}

static void content_over(struct untar *u)
{
	own_close_fd(&u->fd);
	if (u->kind == 'x' && u->head == 'x')
		take_pax(u);
	else if (u->kind == 'x') {
		struct buf *to = u->head == 'L' ? &u->name : &u->link;

		buf_cut(to, 0);
		buf_puts(to, buf_str(&u->text)); /* ends with a NUL */
	}
	u->kind = 0;
}

static int take_content(struct untar *u, const char *bytes, size_t n, struct err *e)
{
	if (u->kind == 'x')
		buf_add(&u->text, bytes, n);
	while (u->kind == 'f' && n) {
		ssize_t k = write(u->fd, bytes, n);

		if (k < 0 && errno != EINTR)
			return err_sys(e, "write");
		bytes += k > 0 ? k : 0;
		n -= k > 0 ? (size_t)k : 0;
	}
	return 0;
}

int untar_take(struct untar *u, const char *bytes, size_t n, struct err *e)
{
	while (n) {
		size_t k;

		if (u->left) {
			k = n < u->left ? n : (size_t)u->left;
			if (take_content(u, bytes, k, e) < 0)
				return -1;
			u->left -= k;
		} else if (u->kind) {
			content_over(u);
			continue;
		} else if (u->pad) {
			k = n < u->pad ? n : (size_t)u->pad;
			u->pad -= k;
		} else {
			k = n < BLOCK - u->have ? n : BLOCK - u->have;
			memcpy(u->block + u->have, bytes, k);
			u->have += (unsigned)k;
			if (u->have == BLOCK) {
				u->have = 0;
				if (take_header(u, e) < 0)
					return -1;
			}
		}
		bytes += k;
		n -= k;
	}
	if (!u->left && u->kind)
		content_over(u);
	return 0;
}

int untar_end(struct untar *u, struct err *e)
{
	if (u->left || u->have || (!u->zeros && u->pad))
		return err_set(e, ERR_INVALID, "the archive ended too early");
	return 0;
}
