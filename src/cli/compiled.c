/* compiled.c - see compiled.h. */
#include "cli/compiled.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { COMPILED_MOST = 32 << 20, SOURCE_MOST = 4 << 20 };

/* A folder of this user: with sudo, HOME may belong to another user, and root's files must not
 * be there. */
static int compiled_folder(char *out, size_t size)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int given = cache && *cache == '/';
	struct stat st;
	size_t n;

	if (!given && (!home || *home != '/' || stat(home, &st) < 0 || st.st_uid != geteuid()))
		return -1;
	n = (size_t)snprintf(out, size, "%s%s", given ? cache : home, given ? "" : "/.cache");
	if (n + sizeof("/atoll") > size || (mkdir(out, 0700) < 0 && errno != EEXIST))
		return -1;
	strcpy(out + n, "/atoll");
	if (mkdir(out, 0700) < 0 && errno != EEXIST)
		return -1;
	return stat(out, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & 022) ? 0 : -1;
}

static int compiled_source(const struct run_inputs *in, struct buf *out)
{
	auto_fd int fd = -1;
	ssize_t n = 1;

	if (in->from_stdin) {
		buf_add(out, buf_str(&in->code), in->code.len);
		return in->nfiles == 0 ? 0 : -1;
	}
	fd = in->nfiles == 1 ? open(in->files[0].from, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
			     : -1;
	while (fd >= 0 && n > 0 && out->len <= SOURCE_MOST) {
		n = read(fd, buf_space(out, 65536), 65536);
		if (n > 0)
			buf_grew(out, (size_t)n);
	}
	return fd >= 0 && n == 0 ? 0 : -1;
}

void compiled_init(struct compiled *c, const struct local_run *s, const struct run_inputs *in,
		   const char *const *argv)
{
	const struct options *o = s->opt;
	auto_buf struct buf source = { 0 };
	struct compile_inputs of = { .surface = "run",
				     .argv = argv,
				     .env = o->env,
				     .cwd = BOX_HOME,
				     .source = in->program.source,
				     .support = in->program.lang->support,
				     .program = argv[0] };
	char folder[4096];
	struct err e;

	*c = (struct compiled){ .cache.folder = -1 };
	/* A folder, packages, another user or missing isolation: the key would not contain all
	 * inputs of the compiler. */
	if (in->workdir >= 0 || o->nlayers || o->root || o->without_launch || o->without_init ||
	    o->create_flags & WIRE_CREATE_COLD || compiled_source(in, &source) < 0)
		return;
	of.code = buf_str(&source);
	of.code_len = source.len;
	if (compile_cache_uses_time(&of) || compiled_folder(folder, sizeof(folder)) < 0 ||
	    compile_caches_open(&c->cache, folder, &e) < 0)
		return;
	c->cache.most = COMPILED_MOST;
	compile_cache_key(&of, &c->key);
}

int compiled_take(struct compiled *c, struct local_run *s, const struct run_inputs *in,
		  struct err *e)
{
	auto_buf struct buf program = { 0 };

	if (c->cache.folder < 0 || !compile_cache_get(&c->cache, &c->key, &program))
		return 0;
	if (local_run_files(s, e) < 0 ||
	    files_put_bytes(&s->files, program.p, program.len, in->program.binary, 0700, e) < 0)
		return err_in(e, "copy the compiled program in");
	if (s->cli->verbose)
		fprintf(stderr, "atoll: compiled before: %zu bytes from the cache\n", program.len);
	return 1;
}

void compiled_keep(struct compiled *c, struct local_run *s, const struct run_inputs *in)
{
	auto_fd int fd = c->cache.folder < 0 ? -1 : memfd_create("compiled", MFD_CLOEXEC);
	uint64_t bytes = 0;
	struct files f;
	struct err e;
	void *map;

	if (fd < 0 || files_open(&f, &s->box, &e) < 0)
		return;
	if (files_get(&f, in->program.binary, fd, COMPILED_MOST, &bytes, &e) == 0 && bytes) {
		map = mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, fd, 0);
		if (map != MAP_FAILED) {
			compile_cache_put(&c->cache, &c->key, map, (size_t)bytes);
			munmap(map, (size_t)bytes);
		}
	}
	files_close(&f);
}

void compiled_fini(struct compiled *c)
{
	compile_caches_close(&c->cache);
}
