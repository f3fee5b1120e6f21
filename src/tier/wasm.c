/* wasm.c - see wasm.h. */
#include "tier/wasm.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/sha256.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { WASM_MODULES = 32 };

/* Only root can replace it. */
static int wasm_is_trusted(const struct stat *st)
{
	return st->st_uid == 0 && !(st->st_mode & 022);
}

static void wasm_add_file(struct sha256 *s, const char *name, const struct stat *st)
{
	char line[200];
	int n = snprintf(line, sizeof(line), "%.60s %llu %llu %lld.%ld %lld.%ld\n", name,
			 (unsigned long long)st->st_size, (unsigned long long)st->st_ino,
			 (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec,
			 (long long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);

	sha256_add(s, line, (size_t)n);
}

/* A module is a link of this name to an executable; its data and its image lie beside that. -1: another user could
 * change one of them. */
static int wasm_add_module(struct sha256 *s, int folder, const char *name)
{
	static const char *const files[] = { "atoll-wasm", "data", "image" };
	char target[200], path[220];
	ssize_t n = readlinkat(folder, name, target, sizeof(target) - 1);
	struct stat st;

	target[n > 0 ? n : 0] = 0;
	if (n <= 0 || !strchr(target, '/'))
		return -1;
	*strchr(target, '/') = 0;
	for (unsigned i = 0; i < ARRAY_LEN(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", target, files[i]);
		if (fstatat(folder, path, &st, AT_SYMLINK_NOFOLLOW) < 0) {
			if (i < 2)
				return -1;
			continue; /* not every module has an image */
		}
		if (!S_ISREG(st.st_mode) || !wasm_is_trusted(&st))
			return -1;
		wasm_add_file(s, path, &st);
	}
	return 0;
}

static int wasm_by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Names of links, in order. */
static unsigned wasm_list(int folder, char names[WASM_MODULES][64])
{
	int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = again < 0 ? NULL : fdopendir(again);
	struct dirent *entry;
	unsigned n = 0;

	while (d && n < WASM_MODULES && (entry = readdir(d)))
		if (entry->d_type == DT_LNK && entry->d_name[0] != '.' &&
		    strlen(entry->d_name) < 64)
			strcpy(names[n++], entry->d_name);
	if (d)
		closedir(d);
	else if (again >= 0)
		close(again);
	qsort(names, n, sizeof(names[0]), wasm_by_name);
	return n;
}

void wasm_probe_folder(const char *folder, struct wire_tier_facts *out)
{
	auto_fd int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char names[WASM_MODULES][64];
	unsigned char digest[SHA256_BYTES];
	struct sha256 s;
	struct stat st;
	unsigned n = fd < 0 ? 0 : wasm_list(fd, names);
	size_t len = 0;

	if (!n) {
		out->state = WIRE_TIER_UNPREPARED;
		snprintf(out->reason, sizeof(out->reason),
			 "not prepared (atoll tier prepare wasm)");
		return;
	}
	sha256_init(&s);
	for (unsigned i = 0; i < n; i++) {
		sha256_add(&s, names[i], strlen(names[i]) + 1);
		if (fstat(fd, &st) < 0 || !wasm_is_trusted(&st) ||
		    wasm_add_module(&s, fd, names[i]) < 0) {
			snprintf(
				out->reason, sizeof(out->reason),
				"module %.40s is incomplete, or not only root can write to it (atoll tier prepare "
				"wasm --force)",
				names[i]);
			out->state = WIRE_TIER_UNPREPARED;
			return;
		}
		if (len < sizeof(out->version))
			len += (size_t)snprintf(out->version + len, sizeof(out->version) - len,
						"%s%s", i ? " " : "", names[i]);
	}
	sha256_end(&s, digest);
	hex_encode(out->sha256, digest, sizeof(digest));
	out->state = WIRE_TIER_OFFERED;
	snprintf(out->engine, sizeof(out->engine), "%s", folder);
	snprintf(out->platform, sizeof(out->platform), "wasm2c");
}

int wasm_probe(const struct tier_host *h, struct wire_tier_facts *out, struct err *e)
{
	(void)h;
	(void)e;
	wasm_probe_folder(WASM_FOLDER, out);
	return 0;
}

int wasm_check_program(const char *program, struct err *e)
{
	const size_t len = strlen(WASM_FOLDER "/");
	const char *name = strncmp(program, WASM_FOLDER "/", len) == 0 ? program + len : "";

	if (*name && *name != '.' && !strchr(name, '/'))
		return 0;
	return err_set(
		e, ERR_DENIED,
		"'%.60s' is not a module: a box of the isolation tier wasm executes only modules of "
		"%s",
		program, WASM_FOLDER);
}
