/* str.c - see str.h. */
#include "initlib/str.h"
#include "base/err.h"
#include "initlib/sys.h"

/* A compiler that recognises memset in a loop would have memset call itself. */
#define NOT_AN_IDIOM() __asm__ volatile("")

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	char *t = to;
	const char *f = from;

	while (n--) {
		*t++ = *f++;
		NOT_AN_IDIOM();
	}
	return to;
}

void *memmove(void *to, const void *from, size_t n)
{
	char *t = to;
	const char *f = from;

	if (t <= f)
		return memcpy(to, from, n);
	while (n--) {
		t[n] = f[n];
		NOT_AN_IDIOM();
	}
	return to;
}

void *memset(void *to, int byte, size_t n)
{
	char *t = to;

	while (n--) {
		*t++ = (char)byte;
		NOT_AN_IDIOM();
	}
	return to;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const unsigned char *x = a, *y = b;

	for (; n--; x++, y++)
		if (*x != *y)
			return *x - *y;
	return 0;
}

size_t strlen(const char *s)
{
	size_t n = 0;

	while (s[n]) {
		n++;
		NOT_AN_IDIOM();
	}
	return n;
}

int text_compare(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return (unsigned char)*a - (unsigned char)*b;
}

int text_starts(const char *s, const char *with)
{
	while (*with && *s == *with) {
		s++;
		with++;
	}
	return !*with;
}

void text_add(struct text *t, const char *s)
{
	while (*s && t->len + 1 < t->room)
		t->to[t->len++] = *s++;
	t->to[t->len] = '\0';
}

void text_add_number(struct text *t, uint64_t n)
{
	char digits[21];
	char *at = digits + sizeof(digits) - 1;

	*at = '\0';
	do {
		*--at = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	text_add(t, at);
}

int64_t text_number(const char *s, uint64_t max)
{
	uint64_t n = 0;

	if (!*s)
		return -1;
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return -1;
		n = n * 10 + (uint64_t)(*s - '0');
		if (n > max)
			return -1;
	}
	return (int64_t)n;
}

static const struct str_refusal {
	uint8_t err, kind;
	const char *text;
} refusals[] = {
	{ ENOENT, ERR_NOT_FOUND, "No such file or directory" },
	{ ENOTDIR, ERR_NOT_FOUND, "Not a directory" },
	{ ECONNREFUSED, ERR_NOT_FOUND, "Connection refused" },
	{ EEXIST, ERR_CONFLICT, "File exists" },
	{ ENOTEMPTY, ERR_CONFLICT, "Directory not empty" },
	{ ESTALE, ERR_CONFLICT, "Changed since it was last looked at" },
	{ EBUSY, ERR_CONFLICT, "Device or resource busy" },
	{ ETXTBSY, ERR_CONFLICT, "Text file busy" },
	{ EACCES, ERR_DENIED, "Permission denied" },
	{ EPERM, ERR_DENIED, "Operation not permitted" },
	{ EROFS, ERR_DENIED, "Read-only file system" },
	{ ENOSPC, ERR_LIMIT, "No space left on device" },
	{ EDQUOT, ERR_LIMIT, "Disk quota exceeded" },
	{ EFBIG, ERR_LIMIT, "File too large" },
	{ ENOMEM, ERR_LIMIT, "Cannot allocate memory" },
	{ EMFILE, ERR_LIMIT, "Too many open files" },
	{ EAGAIN, ERR_LIMIT, "Resource temporarily unavailable" },
	{ EINVAL, ERR_INVALID, "Invalid argument" },
	{ EISDIR, ERR_INVALID, "Is a directory" },
	{ ELOOP, ERR_INVALID, "Too many levels of symbolic links" },
	{ ENAMETOOLONG, ERR_INVALID, "File name too long" },
	{ EXDEV, ERR_INVALID, "Invalid cross-device link" },
	{ ETIMEDOUT, ERR_SYS, "Connection timed out" },
	{ EIO, ERR_SYS, "Input/output error" },
};

const char *text_errno(int err, uint32_t *out_kind)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(refusals); i++) {
		if (refusals[i].err == err) {
			*out_kind = refusals[i].kind;
			return refusals[i].text;
		}
	}
	*out_kind = ERR_SYS;
	return "refused by the kernel";
}
