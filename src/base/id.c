/* id.c - see id.h. */
#include "base/id.h"

#include <string.h>
#include <sys/random.h>

static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";

int id_random(void *out, unsigned len, struct err *e)
{
	if (getrandom(out, len, 0) != (ssize_t)len)
		return err_sys(e, "getrandom of %u bytes", len);
	return 0;
}

int id_new(char out_id[ID_LEN + 1], struct err *e)
{
	unsigned char raw[ID_LEN];

	if (id_random(raw, sizeof(raw), e) < 0)
		return -1;
	for (unsigned i = 0; i < ID_LEN; i++)
		out_id[i] = alphabet[raw[i] & 31];
	out_id[ID_LEN] = 0;
	return 0;
}

int id_valid(const char *id)
{
	return strlen(id) == ID_LEN && strspn(id, alphabet) == ID_LEN;
}

uint32_t id_hash(const char *text)
{
	uint32_t hash = 2166136261u;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 16777619u;
	return hash;
}
