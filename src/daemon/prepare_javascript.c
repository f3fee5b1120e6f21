/* prepare_javascript.c - see prepare_javascript.h. */
#include "daemon/prepare_javascript.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "wasm/build.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define QUICKJS_FOLDER "react-native-quickjs/cpp/engine"
/* Of the files of this table, one after the other. */
#define QUICKJS_SHA256 "cb049f206030abc2c31525f62f73795204c99677d8da420c8dc734124243e7fa"

static const char *const quickjs_files[] = {
	"cutils.c",           "cutils.h",     "libbf.c",     "libbf.h",
	"libregexp-opcode.h", "libregexp.c",  "libregexp.h", "libunicode-table.h",
	"libunicode.c",       "libunicode.h", "list.h",      "quickjs-atom.h",
	"quickjs-opcode.h",   "quickjs.c",    "quickjs.h",
};

/* EMSCRIPTEN: without threads and atomics. The rounding modes do not exist in WebAssembly. */
static const char *const quickjs_flags[] = { "clang",
					     "--target=wasm32-wasi",
					     "-O2",
					     "-w",
					     "-DEMSCRIPTEN",
					     "-DCONFIG_STACK_CHECK",
					     "-DCONFIG_BIGNUM",
					     "-DCONFIG_VERSION=\"2021-03-27\"",
					     "-DFE_DOWNWARD=0",
					     "-DFE_UPWARD=0",
					     "-Wl,--stack-first",
					     "-Wl,-z,stack-size=1048576" };

static int quickjs_add_file(struct sha256 *s, const char *path, struct err *e)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t bytes[16384];
	ssize_t n = -1;

	while (fd >= 0 && (n = read(fd, bytes, sizeof(bytes))) > 0)
		sha256_add(s, bytes, (size_t)n);
	return n < 0 ? err_sys(e, "read %.180s", path) : 0;
}

int prepare_javascript_check(const char *modules, struct err *e)
{
	auto_free char *folder = buf_text("%s/" QUICKJS_FOLDER, modules);
	char found[2 * SHA256_BYTES + 1];
	uint8_t digest[SHA256_BYTES];
	struct sha256 s;

	sha256_init(&s);
	for (unsigned i = 0; i < ARRAY_LEN(quickjs_files); i++) {
		auto_free char *path = buf_text("%s/%s", folder, quickjs_files[i]);

		if (quickjs_add_file(&s, path, e) < 0)
			return -1;
	}
	sha256_end(&s, digest);
	hex_encode(found, digest, sizeof(digest));
	if (strcmp(found, QUICKJS_SHA256) != 0)
		return err_set(
			e, ERR_INVALID,
			"%.120s has not the files that Atoll knows: their SHA-256 is %.16s..., not %.16s...",
			folder, found, QUICKJS_SHA256);
	return 0;
}

static int quickjs_write(const char *path, const char *text, struct err *e)
{
	FILE *f = fopen(path, "we");
	int bad = !f || fputs(text, f) < 0;

	if (f && fclose(f) != 0)
		bad = 1;
	return bad ? err_sys(e, "write %.150s", path) : 0;
}

/* javascript.js as the text of a C program. */
static char *quickjs_literal(const char *text)
{
	auto_buf struct buf out = { 0 };

	buf_puts(&out, "static const char javascript_text[] = \"");
	for (; *text; text++) {
		if (*text == '\\' || *text == '"')
			buf_putc(&out, '\\');
		if (*text == '\n')
			buf_puts(&out, "\\n\"\n\"");
		else
			buf_putc(&out, *text);
	}
	buf_puts(&out, "\";\n");
	return buf_steal(&out);
}

static int quickjs_compile(const char *folder, const char *work, const char *module, struct err *e)
{
	const char *argv[40];
	auto_free char *ours = buf_text("-I%s", work), *theirs = buf_text("-I%s", folder),
		       *program = buf_text("%s/javascript.c", work);
	char *sources[ARRAY_LEN(quickjs_files)];
	unsigned n = 0, nsources = 0;
	int rc;

	for (; n < ARRAY_LEN(quickjs_flags); n++)
		argv[n] = quickjs_flags[n];
	argv[n++] = ours;
	argv[n++] = theirs;
	argv[n++] = "-o";
	argv[n++] = module;
	argv[n++] = program;
	for (unsigned i = 0; i < ARRAY_LEN(quickjs_files); i++)
		if (quickjs_files[i][strlen(quickjs_files[i]) - 1] == 'c')
			argv[n++] = sources[nsources++] =
				buf_text("%s/%s", folder, quickjs_files[i]);
	argv[n] = NULL;
	rc = prepare_run(argv, e);
	while (nsources)
		free(sources[--nsources]);
	if (rc < 0 && e->sys == ENOENT)
		return err_set(e, ERR_NOT_FOUND,
			       "clang is not installed: apt install " QUICKJS_APT);
	return rc < 0 ? err_in(e, "compile QuickJS (it needs " QUICKJS_APT ")") : 0;
}

int prepare_javascript(const char *modules, const char *work, char **out_module, struct err *e)
{
	auto_free char *folder = buf_text("%s/" QUICKJS_FOLDER, modules),
		       *program = buf_text("%s/javascript.c", work),
		       *header = buf_text("%s/javascript_text.h", work),
		       *literal = quickjs_literal(wasm_source_text("javascript.js")),
		       *module = buf_text("%s/javascript.wasm", work);

	if (prepare_javascript_check(modules, e) < 0 || quickjs_write(header, literal, e) < 0 ||
	    quickjs_write(program, wasm_source_text("javascript.c"), e) < 0 ||
	    quickjs_compile(folder, work, module, e) < 0)
		return -1;
	*out_module = steal(&module);
	return 0;
}
