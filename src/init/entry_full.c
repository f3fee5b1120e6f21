/* entry_full.c - an entry with all attributes: the target of a link, the names of its owner and
 * group, the attributes that META has set; see worker.h.
 * None of it is trusted: programs of the box can change /etc/passwd, links and attributes. */
#include "init/conn.h"
#include "initlib/sys.h"
#include "initlib/str.h"
#include "init/worker.h"

enum { TAIL_MOST = 60000, ATTRIBUTES_MOST = 32768, NAME_MOST = 64, TABLE_MOST = 65536 };

static LAZY struct known { /* the last name that was looked up */
	int valid;
	uint32_t id;
	char name[NAME_MOST];
} owner, group;
static LAZY char table[TABLE_MOST + 1]; /* /etc/passwd or /etc/group */
static LAZY char tail[TAIL_MOST], names[ATTRIBUTES_MOST];

void full_forget(void)
{
	owner.valid = group.valid = 0;
}

/* ---- names of users ---- */

static void read_table(const char *path)
{
	int fd = (int)sys_openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
	long n = 1, have = 0;

	while (fd >= 0 && n > 0 && have < TABLE_MOST) {
		n = sys_read(fd, table + have, (size_t)(TABLE_MOST - have));
		have += n > 0 ? n : 0;
	}
	table[have] = '\0';
	sys_close(fd);
}

/* The position after the next c of this line; NULL: there is none. */
static char *entry_after(char *at, char c)
{
	while (*at && *at != '\n' && *at != c)
		at++;
	return *at == c ? at + 1 : NULL;
}

/* "name:x:id:..." */
static int is_line_of(char *line, uint32_t id, struct known *out)
{
	char *password = entry_after(line, ':'),
	     *number = password ? entry_after(password, ':') : NULL, *end;
	size_t n = password ? (size_t)(password - 1 - line) : 0;
	int64_t found;
	char digits[12];

	end = number ? entry_after(number, ':') : NULL;
	if (!end || !n || n >= NAME_MOST || (size_t)(end - number) > sizeof(digits))
		return 0;
	memcpy(digits, number, (size_t)(end - 1 - number));
	digits[end - 1 - number] = '\0';
	found = text_number(digits, ~0u);
	if (found < 0 || (uint32_t)found != id)
		return 0;
	memcpy(out->name, line, n);
	out->name[n] = '\0';
	return 1;
}

static const char *name_of(struct known *k, uint32_t id, const char *path)
{
	struct text t = { .to = k->name, .room = sizeof(k->name) };
	char *line;

	if (k->valid && k->id == id)
		return k->name;
	*k = (struct known){ .valid = 1, .id = id };
	read_table(path);
	for (line = table; line && *line; line = entry_after(line, '\n'))
		if (is_line_of(line, id, k))
			return k->name;
	text_add_number(&t, id);
	return k->name;
}

/* ---- what a descriptor leads to ---- */

static void proc_path(int fd, char out[32])
{
	struct text t = { .to = out, .room = 32 };

	text_add(&t, "/proc/self/fd/");
	text_add_number(&t, (uint64_t)fd);
}

int real_path(int fd, char to[], size_t n)
{
	char link[32];
	long len;

	proc_path(fd, link);
	len = sys_readlinkat(AT_FDCWD, link, to, n - 1);
	if (len >= 0 && ((size_t)len >= n - 1 || to[0] != '/'))
		return -ENAMETOOLONG;
	if (len >= 0)
		to[len] = '\0';
	return (int)len;
}

/* ---- the tail ---- */

static size_t entry_add(size_t at, const char *s)
{
	size_t n = strlen(s) + 1;

	if (n > TAIL_MOST - at)
		return at;
	memcpy(tail + at, s, n);
	return at + n;
}

/* An attribute that does not fit, or is not text, is left out. */
static size_t add_attribute(size_t at, const char *path, const char *name)
{
	size_t key = entry_add(at, name + strlen(ATTRIBUTE));
	long n = key > at && key < TAIL_MOST
			 ? sys_getxattr(path, name, tail + key, TAIL_MOST - key - 1)
			 : -1;
	long i;

	if (n < 0)
		return at;
	for (i = 0; i < n; i++)
		if (!tail[key + (size_t)i])
			return at;
	tail[key + (size_t)n] = '\0';
	return key + (size_t)n + 1;
}

static size_t add_attributes(size_t at, int fd)
{
	char path[32];
	long n, i;

	proc_path(fd, path);
	n = sys_listxattr(path, names, sizeof(names));
	for (i = 0; i < n; i += (long)strlen(names + i) + 1)
		if (text_starts(names + i, ATTRIBUTE))
			at = add_attribute(at, path, names + i);
	return at;
}

static size_t add_real(size_t at, int fd, struct wire_entry *e)
{
	struct stat led;
	int n = -1;

	if (fd >= 0 && S_ISLNK(e->mode) && sys_fstat(fd, &led) >= 0) {
		e->target_mode = led.st_mode;
		if (at + PATH_MAX < TAIL_MOST)
			n = real_path(fd, tail + at, PATH_MAX);
	}
	return n > 0 ? at + (size_t)n + 1 : entry_add(at, "");
}

void say_full(uint32_t ref, const struct stat *st, int dir, const char *at, const char *name)
{
	struct wire_entry e = entry_from(ref, st);
	int fd = (int)sys_openat(dir, at, O_PATH | O_CLOEXEC, 0);
	size_t n = entry_add(0, name);

	n = add_real(n, fd, &e);
	n = entry_add(n, name_of(&owner, st->st_uid, "/etc/passwd"));
	n = entry_add(n, name_of(&group, st->st_gid, "/etc/group"));
	if (fd >= 0)
		n = add_attributes(n, fd);
	sys_close(fd);
	say(&e, sizeof(e), tail, n);
}
