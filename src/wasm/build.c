/* build.c - see build.h. */
#include "wasm/build.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "wasm/split.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BUILD_PART_BYTES = 1000000, BUILD_JOBS_MOST = 64, BUILD_WORDS = 4096 };

extern char **environ;
extern const struct wasm_source {
	const char *text, *end, *name;
} wasm_sources[], wasm_sources_end[];

struct build {
	const struct wasm_module *m;
	char sha256[2 * SHA256_BYTES + 1];
	char *work, *place; /* where it is built; its final folder */
	struct wasm_split split;
};

/* ---- programs ---- */

static int build_spawn(const char *const *argv, const char *folder, pid_t *pid, struct err *e)
{
	posix_spawn_file_actions_t actions;
	int rc;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, 2, 1);
	if (folder)
		posix_spawn_file_actions_addchdir_np(&actions, folder);
	rc = posix_spawnp(pid, argv[0], &actions, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	errno = rc;
	if (rc == ENOENT)
		return err_set(e, ERR_NOT_FOUND,
			       "%s is not installed: apt install wabt gcc libc6-dev", argv[0]);
	return rc ? err_sys(e, "start %s", argv[0]) : 0;
}

static int build_wait(pid_t pid, const char *what, struct err *e)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_sys(e, "wait for %s", what);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return err_set(e, ERR_SYS, "%s failed (%s %d); its output is above", what,
			       WIFEXITED(status) ? "status" : "signal",
			       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	return 0;
}

static int build_run(const struct build *b, const char *const *argv, struct err *e)
{
	pid_t pid;

	return build_spawn(argv, b->work, &pid, e) < 0 ? -1 : build_wait(pid, argv[0], e);
}

/* ---- files ---- */

static int build_write(const struct build *b, const char *name, const char *text, size_t n,
		       struct err *e)
{
	auto_free char *path = buf_text("%s/%s", b->work, name);
	auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, text, n) != (ssize_t)n)
		return err_sys(e, "write %.150s", path);
	return 0;
}

static int build_remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void build_remove(const char *path)
{
	nftw(path, build_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int build_folder(const char *path, struct err *e)
{
	auto_free char *part = strdup(path);

	for (char *p = part + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return err_sys(e, "create %.150s", part);
		*p = '/';
	}
	return mkdir(path, 0755) < 0 && errno != EEXIST ? err_sys(e, "create %.150s", path) : 0;
}

static int build_hash(const char *path, const char *expected, char out[2 * SHA256_BYTES + 1],
		      struct err *e)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t digest[SHA256_BYTES];
	static uint8_t bytes[65536];
	struct sha256 s;
	ssize_t n = -1;

	sha256_init(&s);
	while (fd >= 0 && (n = read(fd, bytes, sizeof bytes)) > 0)
		sha256_add(&s, bytes, (size_t)n);
	if (n < 0)
		return err_sys(e, "read %.180s", path);
	sha256_end(&s, digest);
	hex_encode(out, digest, sizeof digest);
	if (expected && strcmp(expected, out) != 0)
		return err_set(
			e, ERR_INVALID,
			"%.120s is not the file that Atoll knows: its SHA-256 is %.16s..., not %.16s...",
			path, out, expected);
	return 0;
}

/* ---- imports ---- */

static const char *const build_imports[] = {
	"args_get",
	"args_sizes_get",
	"environ_get",
	"environ_sizes_get",
	"clock_res_get",
	"clock_time_get",
	"fd_advise",
	"fd_allocate",
	"fd_close",
	"fd_datasync",
	"fd_fdstat_get",
	"fd_fdstat_set_flags",
	"fd_filestat_get",
	"fd_filestat_set_size",
	"fd_filestat_set_times",
	"fd_pread",
	"fd_prestat_get",
	"fd_prestat_dir_name",
	"fd_pwrite",
	"fd_read",
	"fd_readdir",
	"fd_renumber",
	"fd_seek",
	"fd_sync",
	"fd_tell",
	"fd_write",
	"path_create_directory",
	"path_filestat_get",
	"path_filestat_set_times",
	"path_link",
	"path_open",
	"path_readlink",
	"path_remove_directory",
	"path_rename",
	"path_symlink",
	"path_unlink_file",
	"poll_oneoff",
	"proc_exit",
	"sched_yield",
	"random_get",
	"sock_accept",
	"sock_recv",
	"sock_send",
	"sock_shutdown",
};
/* Of these the layout differs in WASI's first version, wasi_unstable: host_unstable.c. */
static const char *const build_unstable[] = { "fd_seek", "fd_filestat_get", "path_filestat_get",
					      "poll_oneoff" };

static bool build_is_in(const char *const *list, unsigned n_list, const char *name, size_t n)
{
	for (unsigned i = 0; i < n_list; i++)
		if (strlen(list[i]) == n && !strncmp(list[i], name, n))
			return true;
	return false;
}

char *wasm_stubs(const char *header, struct err *e)
{
	static const char mark[] = "/* import: '", wasi[] = "wasi_snapshot_preview1' '",
			  unstable[] = "wasi_unstable' '";
	auto_buf struct buf out = { 0 };

	buf_puts(&out, "#include \"module.h\"\n");
	for (const char *at = strstr(header, mark); at; at = strstr(at, mark)) {
		const char *name, *end, *line, *semicolon;

		at += strlen(mark);
		name = !strncmp(at, wasi, strlen(wasi))           ? at + strlen(wasi)
		       : !strncmp(at, unstable, strlen(unstable)) ? at + strlen(unstable)
								  : NULL;
		if (!name) {
			err_set(e, ERR_INVALID,
				"the module imports '%.*s, which is not part of WASI preview 1",
				(int)strcspn(at, "*"), at);
			return NULL;
		}
		end = strchr(name, '\'');
		line = strchr(name, '\n');
		semicolon = line ? strchr(line, ';') : NULL;
		if (!end || !semicolon) {
			err_set(e, ERR_INVALID, "the header of the module is incomplete");
			return NULL;
		}
		if (!build_is_in(build_imports, ARRAY_LEN(build_imports), name,
				 (size_t)(end - name)))
			buf_printf(&out, "%.*s { return 52; }", (int)(semicolon - line), line);
	}
	buf_putc(&out, '\n');
	return buf_steal(&out);
}

static int build_stubs(const struct build *b, struct err *e)
{
	auto_free char *path = buf_text("%s/module.h", b->work), *text = NULL, *stubs = NULL;
	FILE *f = fopen(path, "re");
	size_t room = 0;
	ssize_t n = f ? getdelim(&text, &room, 0, f) : -1;

	if (f)
		fclose(f);
	if (n < 0)
		return err_sys(e, "read %.150s", path);
	stubs = wasm_stubs(text, e);
	return stubs ? build_write(b, "stubs.c", stubs, strlen(stubs), e) : -1;
}

/* ---- translation ---- */

static int build_split(struct build *b, struct err *e)
{
	auto_free char *path = buf_text("%s/module.c", b->work);
	auto_fd int folder = open(b->work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	FILE *f = fopen(path, "re");
	int rc;

	if (!f || folder < 0)
		return err_sys(e, "open %.150s", path);
	rc = wasm_split(f, folder, BUILD_PART_BYTES, &b->split, e);
	fclose(f);
	unlink(path);
	return rc;
}

/* Without the names of functions: wasm2c 1.0.32 fails on some of them. */
static int build_translate(struct build *b, struct err *e)
{
	auto_free char *module = realpath(b->m->file, NULL), *folder = buf_text("%s/wasm", b->work);
	const char *const copy[] = { "cp", "--", module, "module.wasm", NULL };
	static const char *const strip[] = { "wasm-strip", "module.wasm", NULL };
	static const char *const translate[] = { "wasm2c", "module.wasm", "-o", "module.c", NULL };

	if (!module || mkdir(folder, 0755) < 0)
		return err_sys(e, "prepare %.150s", module ? folder : b->m->file);
	for (const struct wasm_source *s = wasm_sources; s < wasm_sources_end; s++)
		if (build_write(b, s->name, s->text, (size_t)(s->end - s->text), e) < 0)
			return -1;
	if (build_run(b, copy, e) < 0 || build_run(b, strip, e) < 0 ||
	    build_run(b, translate, e) < 0 || build_stubs(b, e) < 0)
		return -1;
	return build_split(b, e);
}

/* ---- compilation ---- */

static const char *const build_flags[] = { "-O1",
					   "-std=gnu2x",
					   "-w",
					   "-D_GNU_SOURCE",
					   "-I.",
					   "-fno-pie",
					   "-fno-strict-aliasing",
					   "-fno-stack-protector",
					   "-fno-asynchronous-unwind-tables",
					   "-fno-unwind-tables",
					   "-frounding-math",
					   "-fsignaling-nans",
					   "-c" };

static int build_compile_start(const struct build *b, const char *file, const char *object,
			       pid_t *pid, struct err *e)
{
	const char *argv[ARRAY_LEN(build_flags) + 8] = { "gcc" };
	auto_free char *folder = buf_text("-DHOST_FOLDER=\"%s\"", b->place),
		       *tag = buf_text("-DHOST_TAG=\"%s\"", b->sha256);
	unsigned n = 1;

	for (unsigned i = 0; i < ARRAY_LEN(build_flags); i++)
		argv[n++] = build_flags[i];
	argv[n++] = folder;
	argv[n++] = tag;
	argv[n++] = file;
	argv[n++] = "-o";
	argv[n++] = object;
	return build_spawn(argv, b->work, pid, e);
}

struct build_files {
	char *source[BUILD_WORDS], *object[BUILD_WORDS];
	unsigned n;
};

static void build_add(struct build_files *f, const char *stem)
{
	if (f->n == BUILD_WORDS)
		return;
	f->source[f->n] = buf_text("%s.c", stem);
	f->object[f->n++] = buf_text("%s.o", stem);
}

/* As many compilers at a time as there are processors. */
static int build_compile_all(const struct build *b, const struct build_files *f, struct err *e)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned jobs = cpus < 1 ? 1 : cpus > BUILD_JOBS_MOST ? BUILD_JOBS_MOST : (unsigned)cpus;
	pid_t pids[BUILD_JOBS_MOST];
	unsigned running = 0, next = 0;
	int rc = 0;

	while (running || (rc == 0 && next < f->n)) {
		if (rc == 0 && next < f->n && running < jobs) {
			rc = build_compile_start(b, f->source[next], f->object[next],
						 &pids[running], e);
			running += rc == 0;
			next++;
			if (!b->m->quiet)
				fprintf(stderr, "\rcompiling %u of %u%s", next, f->n,
					next == f->n ? "\n" : "");
			continue;
		}
		if (build_wait(pids[0], "gcc", e) < 0)
			rc = -1;
		memmove(pids, pids + 1, --running * sizeof *pids);
	}
	return rc;
}

static int build_link(const struct build *b, const struct build_files *f, struct err *e)
{
	const char *argv[BUILD_WORDS + ARRAY_LEN(build_imports) + 8] = { "gcc", "-static",
									 "-no-pie", "-o",
									 "atoll-wasm" };
	char *names[ARRAY_LEN(build_imports)];
	unsigned n = 5, named = 0;
	int rc;

	for (unsigned i = 0; i < ARRAY_LEN(build_imports); i++)
		if (!build_is_in(build_unstable, ARRAY_LEN(build_unstable), build_imports[i],
				 strlen(build_imports[i])))
			argv[n++] = names[named++] = buf_text(
				"-Wl,--defsym=Z_wasi_unstableZ_%s=Z_wasi_snapshot_preview1Z_%s",
				build_imports[i], build_imports[i]);
	for (unsigned i = 0; i < f->n; i++)
		argv[n++] = f->object[i];
	argv[n++] = "-lm";
	rc = build_run(b, argv, e);
	while (named)
		free(names[--named]);
	return rc;
}

static int build_compile(const struct build *b, struct err *e)
{
	static const char *const own[] = { "wasm/host",
					   "wasm/host_main",
					   "wasm/host_image",
					   "wasm/host_wasi",
					   "wasm/host_files",
					   "wasm/host_paths",
					   "wasm/host_filter",
					   "wasm/host_unstable",
					   "stubs",
					   "main" };
	struct build_files *f = calloc(1, sizeof *f);
	int rc;

	if (!f)
		abort();
	for (unsigned i = 0; i < ARRAY_LEN(own); i++)
		build_add(f, own[i]);
	for (unsigned i = 0; i < b->split.parts; i++) {
		auto_free char *stem = buf_text("part-%u", i);

		build_add(f, stem);
	}
	rc = build_compile_all(b, f, e) < 0 ? -1 : build_link(b, f, e);
	for (unsigned i = 0; i < f->n; i++) {
		free(f->source[i]);
		free(f->object[i]);
	}
	free(f);
	return rc;
}

/* ---- result ---- */

const char *wasm_source_text(const char *name)
{
	for (const struct wasm_source *s = wasm_sources; s < wasm_sources_end; s++)
		if (!strcmp(s->name, name))
			return s->text;
	return NULL;
}

static const char *build_init_word(const char *word)
{
	const char *text = *word == '@' ? wasm_source_text(word + 1) : NULL;

	return text ? text : word;
}

/* The executable reads data and root at its final place, and so the state is saved there. */
static int build_save(const struct build *b, struct err *e)
{
	auto_free char *exe = buf_text("%s/atoll-wasm", b->place),
		       *fresh = buf_text("%s/image.new", b->place),
		       *image = buf_text("%s/image", b->place);
	const char *argv[16] = { "env", "-i", "PYTHONHASHSEED=0", exe, "--save", fresh };
	pid_t pid;

	if (!b->m->init)
		return 0;
	for (unsigned n = 6, i = 0; b->m->init[i] && n < ARRAY_LEN(argv) - 1; i++)
		argv[n++] = build_init_word(b->m->init[i]);
	if (build_spawn(argv, b->place, &pid, e) < 0 ||
	    build_wait(pid, "initialising the module", e) < 0)
		return -1;
	if (rename(fresh, image) < 0)
		return err_set(e, ERR_INVALID, "the module ended before its state could be saved");
	return 0;
}

static int build_root(const struct build *b, struct err *e)
{
	auto_free char *root = buf_text("%s/root", b->work), *tar = NULL;
	const char *argv[] = {
		"tar", "-xzf", NULL, "-C", "root", "--strip-components=3", "--no-same-owner", NULL
	};

	if (mkdir(root, 0755) < 0)
		return err_sys(e, "create %.150s", root);
	if (!b->m->root)
		return 0;
	argv[2] = tar = realpath(b->m->root, NULL);
	return tar ? build_run(b, argv, e) : err_sys(e, "open %.150s", b->m->root);
}

static int build_install(const struct build *b, struct err *e)
{
	static const char *const parts[] = { "atoll-wasm", "data", "root" };

	build_remove(b->place);
	if (mkdir(b->place, 0755) < 0)
		return err_sys(e, "create %.150s", b->place);
	for (unsigned i = 0; i < ARRAY_LEN(parts); i++) {
		auto_free char *from = buf_text("%s/%s", b->work, parts[i]),
			       *to = buf_text("%s/%s", b->place, parts[i]);

		if (rename(from, to) < 0)
			return err_sys(e, "rename %.150s", from);
	}
	return build_save(b, e);
}

static int build_name(const struct build *b, const char *into, struct err *e)
{
	auto_free char *link = buf_text("%s/%s", into, b->m->name ? b->m->name : ""),
		       *fresh = buf_text("%s.new", link),
		       *to = buf_text("%s/atoll-wasm", b->sha256);

	if (!b->m->name)
		return 0;
	unlink(fresh);
	if (symlink(to, fresh) < 0 || rename(fresh, link) < 0)
		return err_sys(e, "create %.150s", link);
	return 0;
}

static bool build_is_compiled(const struct build *b)
{
	auto_free char *data = buf_text("%s/data", b->place),
		       *exe = buf_text("%s/atoll-wasm", b->place);

	return access(data, R_OK) == 0 && access(exe, X_OK) == 0;
}

static int build_all(struct build *b, struct err *e)
{
	int rc = 0;

	build_remove(b->work);
	if (build_folder(b->work, e) < 0 || build_translate(b, e) < 0 || build_compile(b, e) < 0 ||
	    build_root(b, e) < 0 || build_install(b, e) < 0)
		rc = -1;
	build_remove(b->work);
	return rc;
}

int wasm_build(const struct wasm_module *m, const char *into, char *out, size_t out_size,
	       struct err *e)
{
	struct build b = { .m = m };
	char root_sha256[2 * SHA256_BYTES + 1];
	int rc;

	if (build_hash(m->file, m->sha256, b.sha256, e) < 0 ||
	    (m->root && build_hash(m->root, m->root_sha256, root_sha256, e) < 0) ||
	    build_folder(into, e) < 0)
		return -1;
	b.place = buf_text("%s/%s", into, b.sha256);
	b.work = buf_text("%s/new.%.16s", into, b.sha256);
	snprintf(out, out_size, "%s/atoll-wasm", b.place);
	/* The state is saved again even if nothing is compiled: it depends on this version of Atoll, too. */
	rc = m->force || !build_is_compiled(&b) ? build_all(&b, e) : build_save(&b, e);
	if (rc == 0)
		rc = build_name(&b, into, e);
	free(b.place);
	free(b.work);
	return rc;
}
