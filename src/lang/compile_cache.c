/* compile_cache.c - see compile_cache.h. */
#include "lang/compile_cache.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "lang/lang.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct head {
	char magic[8];
	struct compile_cache_key key;
	uint8_t digest[SHA256_BYTES]; /* of the bytes that follow */
	uint64_t bytes;
};
static const char magic[8] = "made 2\n";

int compile_caches_open(struct compile_caches *a, const char *state, struct err *e)
{
	auto_fd int dir = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	a->most = COMPILE_CACHE_MOST;
	if (dir < 0)
		return err_sys(e, "open %.150s", state);
	if (mkdirat(dir, "made", 0700) < 0 && errno != EEXIST)
		return err_sys(e, "make the folder of what was compiled");
	a->folder = openat(dir, "made", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return a->folder < 0 ? err_sys(e, "open the folder of what was compiled") : 0;
}

void compile_caches_close(struct compile_caches *a)
{
	own_close_fd(&a->folder);
}

/* ---- keys ---- */

/* The length comes first, so that no two lists of texts have the same encoding. */
static void compile_cache_hash_bytes(struct sha256 *s, const void *bytes, size_t n)
{
	uint64_t len = n;

	sha256_add(s, &len, sizeof(len));
	if (n)
		sha256_add(s, bytes, n);
}

static void add_text(struct sha256 *s, const char *text)
{
	compile_cache_hash_bytes(s, text ? text : "", text ? strlen(text) : 0);
}

static void add_words(struct sha256 *s, const char *const *words)
{
	uint64_t n = 0;

	while (words && words[n])
		n++;
	sha256_add(s, &n, sizeof(n));
	for (uint64_t i = 0; i < n; i++)
		add_text(s, words[i]);
}

static void add_look(struct sha256 *s, const char *path)
{
	struct stat st = { 0 };
	uint64_t look[5] = { 0 };

	if (path && stat(path, &st) == 0) {
		look[0] = st.st_ino;
		look[1] = (uint64_t)st.st_size;
		look[2] = (uint64_t)st.st_mtim.tv_sec;
		look[3] = (uint64_t)st.st_mtim.tv_nsec;
		look[4] = (uint64_t)st.st_ctim.tv_sec;
	}
	sha256_add(s, look, sizeof(look));
}

/* A compiler has hundreds of files, and a check of each would take longer than some compile. Every
 * package that is installed, removed or replaced changes one of these. */
static void add_host(struct sha256 *s, const char *compiler)
{
	static const char *const places[] = {
		"/var/lib/dpkg/status", "/usr/bin",       "/usr/lib",
		"/usr/include",         "/usr/local/bin", "/usr/local/lib",
		"/usr/local/include",   "/usr/lib/gcc",   "/usr/lib/jvm",
	};

	add_look(s, compiler);
	for (unsigned i = 0; i < ARRAY_LEN(places); i++)
		add_look(s, places[i]);
}

static void add_files(struct sha256 *s, const json_t *files)
{
	const char *path;
	json_t *v;

	json_object_foreach((json_t *)files, path, v)
	{
		const json_t *coded = json_object_get(v, "base64");

		add_text(s, path);
		add_text(s, coded ? "base64" : "text");
		v = coded ? (json_t *)coded : v;
		compile_cache_hash_bytes(s, json_string_value(v), json_string_length(v));
	}
}

/* These files belong to Atoll, and another version of Atoll may have others. */
static void add_support(struct sha256 *s, const struct lang_pair *files)
{
	uint64_t n = 0;

	while (files && files[n].key)
		n++;
	sha256_add(s, &n, sizeof(n));
	for (uint64_t i = 0; i < n; i++) {
		add_text(s, files[i].key);
		add_text(s, files[i].value);
	}
}

void compile_cache_key(const struct compile_inputs *of, struct compile_cache_key *out)
{
	struct sha256 s;

	sha256_init(&s);
	compile_cache_hash_bytes(&s, magic, sizeof(magic));
	add_text(&s, of->surface);
	add_text(&s, of->team);
	add_text(&s, of->box);
	compile_cache_hash_bytes(&s, of->state, of->state ? SHA256_BYTES : 0);
	add_host(&s, of->program);
	add_words(&s, of->argv);
	add_words(&s, of->env);
	add_text(&s, of->box_env);
	add_text(&s, of->cwd);
	sha256_add(&s, &of->nlayers,
		   sizeof(of->nlayers)); /* else a layer could be taken for a file name */
	for (unsigned i = 0; i < of->nlayers; i++)
		add_text(&s, of->layers[i]);
	add_text(&s, of->source);
	compile_cache_hash_bytes(&s, of->code, of->code_len);
	add_support(&s, of->support);
	add_files(&s, of->files);
	sha256_end(&s, out->bytes);
}

static int is_in(const char *text, size_t n, const char *word)
{
	return text && memmem(text, n, word, strlen(word)) != NULL;
}

int compile_cache_mentions(const struct compile_inputs *of, const char *word)
{
	auto_buf struct buf bytes = { 0 };
	const char *path;
	json_t *v;

	if (is_in(of->code, of->code_len, word))
		return 1;
	json_object_foreach((json_t *)of->files, path, v)
	{
		const json_t *coded = json_object_get(v, "base64");

		buf_cut(&bytes, 0);
		if (coded)
			(void)!base64_decode(&bytes, json_string_value(coded),
					     json_string_length(coded));
		if (is_in(json_string_value(v), json_string_length(v), word) ||
		    is_in(bytes.p, bytes.len, word))
			return 1;
	}
	return 0;
}

int compile_cache_uses_time(const struct compile_inputs *of)
{
	static const char *const words[] = { "__DATE__", "__TIME__", "__TIMESTAMP__" };

	for (unsigned i = 0; i < ARRAY_LEN(words); i++)
		if (compile_cache_mentions(of, words[i]))
			return 1;
	return 0;
}

/* ---- files ---- */

static void name_of(const struct compile_cache_key *key, char out[16])
{
	unsigned place = (key->bytes[0] | (unsigned)key->bytes[1] << 8) % COMPILE_CACHE_PLACES;

	snprintf(out, 16, "%03x", place);
}

static void digest_of(const void *bytes, size_t n, uint8_t out[SHA256_BYTES])
{
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, bytes, n);
	sha256_end(&s, out);
}

static int read_all(int fd, void *to, size_t n)
{
	for (size_t have = 0; have < n;) {
		ssize_t got = read(fd, (char *)to + have, n - have);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return -1;
		have += (size_t)got;
	}
	return 0;
}

/* 1: an entry of this key, and complete; 0: of another key; -1: invalid. */
static int read_whole(int fd, const struct compile_cache_key *key, size_t most, struct buf *out)
{
	uint8_t digest[SHA256_BYTES];
	struct head h;

	if (read_all(fd, &h, sizeof(h)) < 0 || memcmp(h.magic, magic, sizeof(magic)) != 0)
		return -1;
	if (memcmp(&h.key, key, sizeof(*key)) != 0)
		return 0;
	if (!h.bytes || h.bytes > most ||
	    read_all(fd, buf_space(out, (size_t)h.bytes), (size_t)h.bytes) < 0)
		return -1;
	buf_grew(out, (size_t)h.bytes);
	digest_of(out->p, out->len, digest);
	return memcmp(digest, h.digest, sizeof(digest)) == 0 ? 1 : -1;
}

int compile_cache_get(const struct compile_caches *a, const struct compile_cache_key *key,
		      struct buf *out)
{
	char name[16];
	auto_fd int fd = -1;
	int found;

	name_of(key, name);
	buf_cut(out, 0);
	fd = openat(a->folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return 0;
	found = read_whole(fd, key, a->most, out);
	if (found < 0)
		unlinkat(a->folder, name, 0);
	if (found <= 0)
		buf_cut(out, 0);
	return found > 0;
}

static int write_all(int fd, const void *bytes, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t put = write(fd, (const char *)bytes + done, n - done);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return -1;
		done += (size_t)put;
	}
	return 0;
}

void compile_cache_put(const struct compile_caches *a, const struct compile_cache_key *key,
		       const void *bytes, size_t n)
{
	struct head h = { .key = *key, .bytes = n };
	char name[16], draft[20];
	auto_fd int fd = -1;

	if (!n || n > a->most)
		return;
	memcpy(h.magic, magic, sizeof(magic));
	digest_of(bytes, n, h.digest);
	name_of(key, name);
	snprintf(draft, sizeof(draft), "%s.new", name);
	fd = openat(a->folder, draft, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	/* No fsync: an entry that a crash leaves incomplete does not match its digest. */
	if (write_all(fd, &h, sizeof(h)) < 0 || write_all(fd, bytes, n) < 0 ||
	    renameat(a->folder, draft, a->folder, name) < 0)
		unlinkat(a->folder, draft, 0);
}

/* ---- in the box ---- */

static const char **compile_cache_shell_argv(const char *script, const char *program)
{
	const char *const all[] = { "/bin/sh", "-c", script, "sh", program, COMPILE_CACHE_FILE };
	const char **argv = calloc(ARRAY_LEN(all) + 1, sizeof(*argv));

	if (!argv)
		abort();
	memcpy(argv, all, sizeof(all));
	return argv;
}

const char **compile_cache_pack(const char *program)
{
	/* -I: a failure of tar or gzip is reported. */
	return compile_cache_shell_argv(
		"exec tar -C \"${1%/*}/\" -I 'gzip -1' -cf - -- \"${1##*/}\"", program);
}

const char **compile_cache_unpack(const char *program)
{
	return compile_cache_shell_argv("tar -C \"${1%/*}/\" -xzf \"$2\" && rm -f \"$2\"", program);
}

/* A file that is stored unpacked needs no program in the box to unpack it. A file that is too large
 * may fit when packed; a much larger one is not tried. */
const char **compile_cache_give(const char *program)
{
	return compile_cache_shell_argv(
		"k=$(du -sk -- \"$1\") && [ \"${k%%[!0-9]*}\" -le 6000 ] || exit 1; "
		"if [ -f \"$1\" ] && [ ! -L \"$1\" ] && [ \"$(stat -c %s -- \"$1\")\" -lt 2000000 ]; then "
		"printf f && exec cat -- \"$1\"; fi; "
		"printf t && exec tar -C \"${1%/*}/\" -I 'gzip -1' -cf - -- \"${1##*/}\"",
		program);
}

int compile_cache_read(const struct buf *kept, struct compile_output *out)
{
	struct compile_messages head;
	const char *at = kept->p, *end;

	if (kept->len < sizeof(head))
		return -1;
	end = at + kept->len;
	memcpy(&head, at, sizeof(head));
	at += sizeof(head);
	for (unsigned i = 0; i < 2; i++) {
		if (head.bytes[i] > (size_t)(end - at))
			return -1;
		out->said[i] = at;
		out->said_len[i] = head.bytes[i];
		at += head.bytes[i];
	}
	if (end - at < 2 || (*at != 'f' && *at != 't'))
		return -1;
	out->is_file = *at == 'f';
	out->bytes = at + 1;
	out->n = (size_t)(end - at) - 1;
	return 0;
}

void compile_cache_write(struct buf *out, const struct buf said[2], const struct buf *given)
{
	struct compile_messages head = { { (uint32_t)said[0].len, (uint32_t)said[1].len } };

	buf_add(out, &head, sizeof(head));
	for (unsigned i = 0; i < 2; i++)
		buf_add(out, said[i].p, said[i].len);
	buf_add(out, given->p, given->len);
}
