/* site.c - see site.h. */
#include "base/site.h"
#include "base/cleanup.h"

#include <string.h>
#include <strings.h>

size_t site_host_len(const char *host)
{
	return *host == '[' ? strcspn(host, "]") + (strchr(host, ']') != NULL) : strcspn(host, ":");
}

/* The label that ends before `end`. */
static const char *site_label(const char *name, const char *end)
{
	while (end > name && end[-1] != '.')
		end--;
	return end;
}

static int site_is_second_level(const char *label, size_t n)
{
	static const char *const known[] = { "ac",  "co", "com", "edu", "go",
					     "gov", "ne", "net", "or",  "org" };

	for (unsigned i = 0; i < ARRAY_LEN(known); i++)
		if (strlen(known[i]) == n && strncasecmp(label, known[i], n) == 0)
			return 1;
	return 0;
}

/* The registrable domain; NULL: the name has none, it is a suffix itself or an address. */
static const char *site_of(const char *name, size_t n, size_t *out_n)
{
	const char *end = name + n, *last = site_label(name, end), *second, *third;

	if (*name == '[' || strspn(name, "0123456789.") >= n || last == name)
		return NULL;
	second = site_label(name, last - 1);
	*out_n = (size_t)(end - second);
	if (end - last != 2 || !site_is_second_level(second, (size_t)(last - 1 - second)))
		return second;
	if (second == name)
		return NULL;
	third = site_label(name, second - 1);
	*out_n = (size_t)(end - third);
	return third;
}

int site_is_shared(const char *host, size_t n, const char *domain)
{
	const char *below = strncmp(domain, "*.", 2) == 0 ? domain + 2 : domain, *a, *b;
	size_t an = 0, bn = 0;

	a = site_of(host, n, &an);
	b = site_of(below, strlen(below), &bn);
	return a && b && an == bn && strncasecmp(a, b, an) == 0;
}
