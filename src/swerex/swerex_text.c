/* swerex_text.c - see swerex.h. */
#include "swerex/swerex.h"
#include "api/event_stream.h"
#include "base/cleanup.h"
#include "base/utf8.h"

#include <string.h>
#include <strings.h>

/* ---- scripts ---- */

#define FOLDER "/tmp/.atoll-rex"

/* All of these are formats: %1$s is the session's folder. */
#define NONE "[ -r %1$s/state ] || { echo '" SWEREX_MARK "none' >&2; exit 1; }\n"

/* Options first, since functions may be written in their syntax; `set` last, since -e and -u would
 * end the rest. `command -p` does not depend on PATH. It contains no quote ', because it is also
 * the argument of a trap. */
#define SAVE                                                                                             \
	"{ { shopt -p; umask -p; declare -p; declare -f; declare -F; alias -p; "                         \
	"printf \"builtin cd -- %%q\\nOLDPWD=%%q\\n\" \"$PWD\" \"${OLDPWD-}\"; set +o; } >|%1$s/new.$$ " \
	"&& command -p mv -f %1$s/new.$$ %1$s/state; command -p rm -f %1$s/busy; } 2>/dev/null"

/* Is the process with this pid the one that wrote the file? */
#define ALIVE                                                                                      \
	"(set -- $(<%1$s/busy); [ $# = 2 ] && p=$1 s=$2 && set -- $(</proc/$p/stat) "              \
	"&& [ \"${22}\" = \"$s\" ]) 2>/dev/null"

/* A symlink is created atomically with its content. Two commands that find the same stale lock may
 * both run; then the state of the last one is kept. */
#define ENTER                                                                                      \
	"(set -- $(</proc/$$/stat); echo \"$$ ${22}\" >|%1$s/me.$$)\n"                             \
	"until ln %1$s/me.$$ %1$s/busy 2>/dev/null; do\n" NONE ALIVE                               \
	" || rm -f %1$s/busy; sleep 0.05; done\n"                                                  \
	"rm -f %1$s/me.$$\n"

static void swerex_text_quote(struct buf *out, const char *word)
{
	buf_putc(out, '\'');
	for (; *word; word++)
		if (*word == '\'')
			buf_puts(out, "'\\''");
		else
			buf_putc(out, *word);
	buf_putc(out, '\'');
}

static void folder_of(const char *name, struct buf *out)
{
	buf_printf(out, FOLDER "/%s", name);
}

void swerex_script_create(struct buf *out, const char *name, const json_t *sources)
{
	auto_buf struct buf d = { 0 };
	const json_t *one;
	size_t i;

	folder_of(name, &d);
	buf_printf(out,
		   "mkdir -p -m 700 " FOLDER "\n"
		   "mkdir %1$s 2>/dev/null || { [ -e %1$s ] && echo '" SWEREX_MARK
		   "exists' >&2 || echo '" SWEREX_MARK "failed' >&2; exit 1; }\n"
		   "unset BASH_EXECUTION_STRING; shopt -s expand_aliases\n" SAVE "\n"
		   "trap '" SAVE "' EXIT\n"
		   "exec 2>&1\n",
		   d.p);
	json_array_foreach(sources, i, one)
	{
		const char *path = json_string_value(one);
		int home = !strncmp(path, "~/", 2);

		buf_puts(out, home ? "source ~/" : "source ");
		swerex_text_quote(out, home ? path + 2 : path);
		buf_putc(out, '\n');
	}
	buf_puts(out, ":\n");
}

void swerex_script_run(struct buf *out, const char *name)
{
	auto_buf struct buf d = { 0 };

	folder_of(name, &d);
	buf_printf(out,
		   NONE
		   "bash -n -c \"$1\" || { echo '" SWEREX_MARK "syntax' >&2; exit 1; }\n" ENTER
		   "unset BASH_EXECUTION_STRING\n"
		   "trap '" SAVE "' EXIT\n"
		   "exec 2>&1\n"
		   ". %1$s/state >/dev/null 2>&1\n"
		   "eval \"set --\n$1\"\n"
		   /* A trap of the session must not run yet, nor replace the trap of the script. */
		   "{ set -- $?; trap '" SAVE "' EXIT; exit $1; } 2>/dev/null\n",
		   d.p);
}

#define KILL_IT                                                                                    \
	"read -r p s <%1$s/busy && " ALIVE                                                         \
	" && { kill -KILL -- -$p || kill -KILL $p; } 2>/dev/null\n"

void swerex_script_interrupt(struct buf *out, const char *name, unsigned tries, unsigned wait_ms)
{
	auto_buf struct buf d = { 0 };

	folder_of(name, &d);
	buf_printf(out,
		   NONE "ends() { for k in $(seq 0 $1); do " ALIVE
			" || return 0; sleep 0.05; done; return 1; }\n"
			"read -r p s 2>/dev/null <%1$s/busy || exit 0\n"
			"for i in $(seq %2$u); do\n" ALIVE " || exit 0\n"
			"{ kill -INT -- -$p || kill -INT $p; } 2>/dev/null\n"
			"ends %3$u && exit 0\ndone\n" KILL_IT "ends 40 || { echo '" SWEREX_MARK
			"stuck' >&2; exit 1; }\n",
		   d.p, tries, wait_ms / 50);
}

void swerex_script_close(struct buf *out, const char *name)
{
	auto_buf struct buf d = { 0 };

	if (name) {
		folder_of(name, &d);
		buf_printf(out, NONE KILL_IT "rm -rf %1$s\n", d.p);
	} else {
		buf_printf(out,
			   "for d in " FOLDER "/*/; do\n" KILL_IT "done 2>/dev/null\nrm -rf " FOLDER
			   "\n",
			   "\"$d\"");
	}
}

void swerex_script_unzip(struct buf *out, const char *archive)
{
	buf_printf(out,
		   "trap 'rm -f %1$s' EXIT\n"
		   "mkdir -p -- \"$1\" && cd -- \"$1\" || exit 1\n"
		   /* -I: no module of the same name that lies in the folder */
		   "if command -v python3; then python3 -I -m zipfile -e %1$s .\n"
		   "elif command -v unzip; then unzip -oqq %1$s\n"
		   "elif command -v bsdtar; then bsdtar -xf %1$s\n"
		   "else echo '" SWEREX_MARK "unpacker' >&2; exit 1\nfi >/dev/null\n",
		   archive);
}

const char *swerex_marked(const char *said, size_t *before)
{
	const char *at = said;

	while ((at = strstr(at, SWEREX_MARK))) {
		if (at == said || at[-1] == '\n') {
			*before = (size_t)(at - said);
			return at + strlen(SWEREX_MARK);
		}
		at++;
	}
	return NULL;
}

/* ---- what a terminal would take ---- */

/* The end of the escape sequence at p. An unterminated one ends with the text. */
static const char *behind_escape(const char *p, const char *end)
{
	if (++p == end)
		return p;
	if (*p == '[') { /* CSI: parameters, then one letter */
		for (p++; p < end && *p >= 0x20 && *p <= 0x3f; p++)
			;
		return p < end && *p >= 0x40 && *p <= 0x7e ? p + 1 : p;
	}
	if (*p == ']') { /* OSC: up to BEL or ESC backslash; never beyond the line */
		for (p++; p < end && *p != '\a' && *p != '\n' && *p != 0x1b; p++)
			;
		if (p < end && *p == '\a')
			return p + 1;
		return end - p >= 2 && p[0] == 0x1b && p[1] == '\\' ? p + 2 : p;
	}
	for (; p < end && *p >= 0x20 && *p <= 0x2f; p++) /* such as a choice of letters */
		;
	return p < end && *p >= 0x30 && *p <= 0x7e ? p + 1 : p;
}

void swerex_plain(const char *text, size_t n, struct buf *out)
{
	const char *p = text, *end = text + n;

	while (p < end) {
		const char *from = p;

		while (p < end && *p != 0x1b && *p != '\r')
			p++;
		buf_add(out, from, (size_t)(p - from));
		if (p == end)
			break;
		if (*p == 0x1b) {
			p = behind_escape(p, end);
		} else {
			if (!(p + 1 < end && p[1] == '\n'))
				buf_putc(out, '\r');
			p++;
		}
	}
}

/* ---- codecs ---- */

struct named {
	const char *name;
	int is;
};

static int swerex_text_find(const struct named *rows, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcasecmp(rows[i].name, name))
			return rows[i].is;
	return -1;
}

int swerex_codec(const char *name)
{
	static const struct named rows[] = {
		{ "utf-8", SWEREX_UTF8 },     { "utf8", SWEREX_UTF8 },
		{ "utf_8", SWEREX_UTF8 },     { "ascii", SWEREX_ASCII },
		{ "us-ascii", SWEREX_ASCII }, { "latin-1", SWEREX_LATIN1 },
		{ "latin1", SWEREX_LATIN1 },  { "iso-8859-1", SWEREX_LATIN1 },
	};

	return swerex_text_find(rows, ARRAY_LEN(rows), name);
}

int swerex_errors(const char *name)
{
	static const struct named rows[] = { { "strict", SWEREX_STRICT },
					     { "replace", SWEREX_REPLACE },
					     { "ignore", SWEREX_IGNORE },
					     { "backslashreplace", SWEREX_BACKSLASH } };

	return swerex_text_find(rows, ARRAY_LEN(rows), name);
}

static void put_latin1(struct buf *out, unsigned char c)
{
	if (c >= 0x80)
		buf_putc(out, (char)(0xc0 | c >> 6));
	buf_putc(out, (char)(c < 0x80 ? c : 0x80 | (c & 0x3f)));
}

/* The number of bytes of the character at p; 0: none. */
static size_t swerex_text_character(const char *p, size_t n, enum swerex_codec c)
{
	if (c == SWEREX_LATIN1 || (unsigned char)*p < 0x80)
		return 1;
	if (c == SWEREX_ASCII)
		return 0;
	return utf8_length(p, n);
}

int swerex_decode(const struct buf *bytes, enum swerex_codec c, enum swerex_errors how,
		  struct buf *out, size_t *at)
{
	for (size_t i = 0; i < bytes->len;) {
		const char *p = bytes->p + i;
		size_t n = swerex_text_character(p, bytes->len - i, c);

		if (n && c == SWEREX_LATIN1) {
			put_latin1(out, (unsigned char)*p);
		} else if (n) {
			buf_add(out, p, n);
		} else if (how == SWEREX_STRICT) {
			*at = i;
			return -1;
		} else if (how == SWEREX_REPLACE) {
			buf_puts(out, UTF8_REPLACEMENT);
		} else if (how == SWEREX_BACKSLASH) {
			buf_printf(out, "\\x%02x", (unsigned char)*p);
		}
		i += n ? n : 1;
	}
	return 0;
}
