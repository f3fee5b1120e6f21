/* args.c - see args.h. */
#include "init/args.h"
#include "init/params.h"
#include "initlib/sys.h"
#include "initlib/str.h"

enum { FEW = 128 }; /* pointers that need no mapping: nearly every exec */

/* In one page with the slot of the first exec, which is linked right after it. */
static LAZY char *few[FEW] __attribute__((aligned(4096)));

static int args_load(int memfd, char *to, size_t n)
{
	size_t done = 0;

	while (done < n) {
		long r = sys_pread(memfd, to + done, n - done, done);

		if (r <= 0)
			return -EINVAL;
		done += (size_t)r;
	}
	return 0;
}

/* Puts the next n strings before `end` into v, then NULL. Returns where they stop, NULL if too
 * few. */
static char *args_cut(char **v, uint32_t n, char *at, const char *end)
{
	for (; n; n--) {
		if (at == end)
			return NULL;
		*v++ = at;
		at += strlen(at) + 1;
	}
	*v = NULL;
	return at;
}

/* Tier process: programs may not write to /tmp. There is room for one more. */
static void args_add_tmpdir(char **env)
{
	static LAZY char tmpdir[sizeof("TMPDIR=" HOME)];
	struct text t = { .to = tmpdir, .room = sizeof(tmpdir) };

	for (; *env; env++)
		if (text_starts(*env, "TMPDIR="))
			return;
	text_add(&t, "TMPDIR=");
	text_add(&t, self.home);
	*env++ = tmpdir;
	*env = NULL;
}

static int cut_all(struct exec_args *a, const struct wire_start *st, char *at)
{
	char *end = at + st->tail_bytes;

	if (end[-1] != '\0') /* so that strlen() stops before `end`, always */
		return -EINVAL;
	a->cwd = at;
	at = args_cut(a->argv, st->argc, at + strlen(at) + 1, end);
	if (at)
		at = args_cut(a->env, st->envc, at, end);
	if (at && self.children >= 0)
		args_add_tmpdir(a->env);
	return at == end ? 0 : -EINVAL;
}

int args_init(struct exec_args *a, const struct wire_start *st, char *tail, size_t tail_len,
	      int memfd)
{
	size_t words = (size_t)st->argc + st->envc;
	size_t pointers = words + 2 + (self.children >= 0); /* two NULLs, TMPDIR */
	size_t text = memfd < 0 ? 0 : (st->tail_bytes + 7ul) & ~7ul;

	*a = (struct exec_args){ 0 };
	if (memfd >= 0 && st->tail_bytes > ARGS_MOST)
		return -E2BIG;
	/* Every string has at least a NUL: this bounds the pointers before memory is allocated. */
	if (!st->argc || words + 1 > st->tail_bytes)
		return -EINVAL;
	if (tail_len != (memfd < 0 ? st->tail_bytes : 0))
		return -EINVAL;

	a->map_bytes = text + (pointers > FEW ? pointers * sizeof(char *) : 0);
	if (a->map_bytes) {
		a->map = sys_map(a->map_bytes);
		if (!a->map)
			return -ENOMEM;
	}
	a->argv = pointers > FEW ? (char **)(void *)((char *)a->map + text) : few;
	a->env = a->argv + st->argc + 1;
	if (memfd >= 0) {
		tail = a->map;
		if (args_load(memfd, tail, st->tail_bytes) < 0)
			return -EINVAL;
	}
	params_place_home(tail, st->tail_bytes);
	return cut_all(a, st, tail);
}

void args_fini(struct exec_args *a)
{
	sys_unmap(a->map, a->map_bytes);
	a->map = NULL;
}
