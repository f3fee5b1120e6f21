/* search.c - SEARCH: files by name, by content, or both; see worker.h.
 *
 * Literal text, no expressions: a user can only make the number of bytes expensive, and those
 * are bounded per file and read once. A file is searched in pieces; a line longer than a piece
 * is searched in all of them, with enough of the piece before that a match across two pieces is
 * found. */
#include "init/conn.h"
#include "initlib/sys.h"
#include "initlib/str.h"
#include "init/tree.h"
#include "init/worker.h"
#include <linux/poll.h>

enum {
	PIECE = 131072,
	SHOWN = 400,
	BEFORE = 100
};                            /* bytes of a line: read, sent, before the hit */
enum { LOOKS_BINARY = 4096 }; /* the first bytes, which are searched for a NUL */
enum { PATH_ROOM = WIRE_MAX - sizeof(struct wire_hit) - SHOWN - 1 };
#define FILE_BYTES (16ull << 20) /* default of the client's limit */
enum { HITS = 1000 };

static LAZY struct search {
	uint32_t ref, left, fold;
	uint64_t file_bytes;
	uint16_t flags; /* of DONE */
	size_t path_len, text_len;
	char name[NAME_MAX + 1], text[1024];
	char path[PATH_ROOM + 1 + SHOWN + 1]; /* and the answer for a line */
} s;
static LAZY char piece[PIECE];

/* ---- matching ---- */

static char search_folded(char c)
{
	return s.fold && c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Where the text is in these bytes, or n. */
static size_t search_find(const char *at, size_t n, const char *text, size_t len)
{
	size_t i, k;

	for (i = 0; i + len <= n; i++) {
		for (k = 0; k < len && search_folded(at[i + k]) == text[k]; k++)
			;
		if (k == len)
			return i;
	}
	return n;
}

/* [abc], [a-z], [!a-z]: one character. *p is at the bracket, and after the set afterwards. */
static int in_set(const char **p, char c)
{
	const char *at = *p + 1;
	int no = *at == '!' || *at == '^', found = 0, first = 1;

	for (at += no; *at && (*at != ']' || first); at++, first = 0) {
		if (at[1] == '-' && at[2] && at[2] != ']') {
			found |= (unsigned char)at[0] <= (unsigned char)c &&
				 (unsigned char)c <= (unsigned char)at[2];
			at += 2;
		} else {
			found |= *at == c;
		}
	}
	if (!*at)
		return -1; /* never closed: an ordinary bracket */
	*p = at + 1;
	return found != no;
}

/* One step of the pattern against one character; 0: it does not match. */
static int search_fits(const char **p, char c)
{
	int set;

	if (**p == '[' && (set = in_set(p, c)) >= 0)
		return set;
	if (**p == '\\' && (*p)[1])
		(*p)++;
	else if (**p == '?')
		c = '?';
	if (**p != c)
		return 0;
	(*p)++;
	return 1;
}

/* Without recursion: after a mismatch only the last star may take one more. */
static int search_glob(const char *p, const char *name)
{
	const char *star = NULL, *resume = NULL;

	while (*name) {
		if (*p == '*') {
			star = ++p;
			resume = name;
		} else if (*p && search_fits(&p, search_folded(*name))) {
			name++;
		} else if (star) {
			p = star;
			name = ++resume;
		} else {
			return 0;
		}
	}
	while (*p == '*')
		p++;
	return !*p;
}

static int is_glob(const char *p)
{
	for (; *p; p++)
		if (*p == '*' || *p == '?' || *p == '[')
			return 1;
	return 0;
}

static int name_fits(const char *name)
{
	size_t n = strlen(name);

	if (!*s.name)
		return 1;
	return is_glob(s.name) ? search_glob(s.name, name)
			       : search_find(name, n, s.name, strlen(s.name)) < n;
}

/* ---- telling ---- */

/* A search without hits would not notice that its client has disconnected. */
static void look_for_client(void)
{
	struct pollfd p = { .fd = SOCK };

	if (sys_ppoll(&p, 1, 0) > 0)
		sys_exit(0);
}

/* 0: that was one too many. */
static int search_tell(const struct stat *st, uint32_t line, const char *text, size_t n, size_t at)
{
	struct wire_hit h = { .head = conn_head(WIRE_HIT, s.ref),
			      .mode = st->st_mode,
			      .line = line,
			      .size = (uint64_t)st->st_size,
			      .mtime_ns = mtime_ns(st) };
	size_t from = n > SHOWN && at > BEFORE ? at - BEFORE : 0, most = SHOWN;

	if (!s.left--) {
		s.flags |= WIRE_DONE_TRUNCATED;
		return 0;
	}
	if (!line) {
		say(&h, sizeof(h), s.path, s.path_len);
		return 1;
	}
	most = n - from < most ? n - from : most;
	h.at = (uint32_t)(at - from);
	h.cut = from > 0 || from + most < n;
	s.path[s.path_len] = '\0';
	memcpy(s.path + s.path_len + 1, text + from,
	       most); /* PATH_ROOM leaves room for it in a frame */
	say(&h, sizeof(h), s.path, s.path_len + 1 + most);
	return 1;
}

/* ---- one file ---- */

struct search_lines { /* where in the file we are */
	uint32_t line;
	uint8_t told; /* this line was reported; the rest of it is skipped */
};

static size_t init_conn_box_ended(const char *at, size_t n)
{
	size_t i;

	for (i = 0; i < n && at[i] != '\n'; i++)
		;
	return i;
}

/* Whole lines in piece[0..n), or all of it if `last`. Returns how many bytes are finished, -1:
 * stop. */
static long search_piece(struct search_lines *l, const struct stat *st, size_t n, int last)
{
	size_t at = 0;

	while (at < n) {
		size_t len = init_conn_box_ended(piece + at, n - at), hit;
		int whole = at + len < n || last;

		if (!whole && at)
			break; /* more of it must be read, and there is room for that */
		hit = l->told ? len : search_find(piece + at, len, s.text, s.text_len);
		if (hit < len && !search_tell(st, l->line, piece + at, len, hit))
			return -1;
		if (hit < len)
			l->told = 1;
		if (!whole) /* one line fills the piece: its end is kept, because the text may start there */
			return n < PIECE ? 0 : (long)(n - (s.text_len - 1));
		at += len + 1;
		l->line++;
		l->told = 0;
	}
	return (long)(at < n ? at : n);
}

static int is_binary(size_t n)
{
	size_t i;

	for (i = 0; i < n && i < LOOKS_BINARY; i++)
		if (!piece[i])
			return 1;
	return 0;
}

/* 0: the limit of hits is reached. */
static int search_bytes(int fd, const struct stat *st)
{
	struct search_lines l = { .line = 1 };
	uint64_t read = 0;
	size_t have = 0;

	for (;;) {
		long n = sys_read(fd, piece + have, PIECE - have), done;

		if (n < 0)
			s.flags |= WIRE_DONE_SKIPPED;
		n = n < 0 ? 0 : n;
		read += (uint64_t)n;
		have += (size_t)n;
		if (read == (uint64_t)n && is_binary(have))
			return 1;
		done = search_piece(&l, st, have, !n || read > s.file_bytes);
		if (done < 0)
			return 0;
		if (!n || read > s.file_bytes) /* it grows while it is read: stop */
			return 1;
		have -= (size_t)done;
		memmove(piece, piece + done, have);
		look_for_client();
	}
}

static int search_file(int dir, const char *name, struct stat *st)
{
	int fd, more = 1;

	if (!S_ISREG(st->st_mode))
		return 1;
	if ((uint64_t)st->st_size > s.file_bytes) {
		s.flags |= WIRE_DONE_SKIPPED;
		return 1;
	}
	fd = (int)sys_openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
			     0);
	if (fd < 0)
		s.flags |= WIRE_DONE_SKIPPED;
	else if (sys_fstat(fd, st) >= 0 && S_ISREG(st->st_mode))
		more = search_bytes(fd, st);
	sys_close(fd);
	return more;
}

/* ---- the tree ---- */

/* 1: a folder to enter, the path ends with its name then; 0; -1: the limit of hits is reached. */
static int search_visit(int dir, const struct dirent64 *d)
{
	size_t was = s.path_len, n = strlen(d->d_name);
	struct stat st;
	int more = 1;

	if (was + 1 + n > PATH_ROOM || sys_fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		s.flags |= WIRE_DONE_SKIPPED;
		return 0;
	}
	if (was)
		s.path[s.path_len++] = '/';
	memcpy(s.path + s.path_len, d->d_name, n + 1);
	s.path_len += n;
	if (name_fits(d->d_name))
		more = s.text_len ? search_file(dir, d->d_name, &st)
				  : search_tell(&st, 0, NULL, 0, 0);
	if (more && S_ISDIR(st.st_mode))
		return 1;
	s.path_len = was;
	return more ? 0 : -1;
}

static void search_shorten(void)
{
	while (s.path_len && s.path[--s.path_len] != '/')
		;
}

static void search_walk(struct tree *t)
{
	unsigned seen = 0;

	for (;;) {
		const struct dirent64 *d = tree_next(t);
		int entered = d ? search_visit(t->dir, d) : 0;

		if (!(++seen % 64))
			look_for_client();
		if (entered < 0)
			return;
		if (entered && tree_enter(t, d->d_name) < 0) {
			s.flags |= WIRE_DONE_SKIPPED;
			search_shorten();
		}
		if (d)
			continue;
		if (t->err < 0)
			s.flags |= WIRE_DONE_SKIPPED;
		if (!t->depth)
			return;
		search_shorten();
		if (tree_leave(t) < 0) {
			s.flags |= WIRE_DONE_SKIPPED;
			return;
		}
	}
}

static void fold_into(char *to, const char *from)
{
	do
		*to++ = search_folded(*from);
	while (*from++);
}

int search(const struct job *j)
{
	struct tree t;
	int err;

	if (strlen(j->part[1]) >= sizeof(s.name) || strlen(j->part[2]) >= sizeof(s.text))
		return -EINVAL;
	s.ref = j->head->ref;
	s.fold = j->head->flags & WIRE_SEARCH_FOLD;
	s.left = j->search->max ? j->search->max : HITS;
	s.file_bytes = j->search->file_bytes ? j->search->file_bytes : FILE_BYTES;
	s.flags = 0;
	s.path_len = 0;
	fold_into(s.name, j->part[1]);
	fold_into(s.text, j->part[2]);
	s.text_len = strlen(s.text);
	if (!*s.name && !s.text_len)
		return -EINVAL;
	err = (int)sys_openat(AT_FDCWD, j->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (err < 0)
		return err;
	err = tree_init(&t, err);
	t.cross = 1;
	if (!err)
		search_walk(&t);
	tree_fini(&t);
	if (err < 0)
		return err;
	say_head(WIRE_DONE, s.ref, s.flags);
	return ANSWERED;
}
