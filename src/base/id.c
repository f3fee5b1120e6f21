/* id.c - see id.h. */
#include "base/id.h"

#include <string.h>
#include <sys/random.h>

static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
static uint32_t own_node = ID_NODES;

int id_random(void *out, unsigned len, struct err *e)
{
	if (getrandom(out, len, 0) != (ssize_t)len)
		return err_sys(e, "getrandom of %u bytes", len);
	return 0;
}

void id_set_node(uint32_t number)
{
	own_node = number < ID_NODES ? number : ID_NODES;
}

uint32_t id_own_node(void)
{
	return own_node;
}

int id_new(char out_id[ID_MAX + 1], struct err *e)
{
	unsigned char raw[ID_LEN];
	unsigned n = 0;

	if (id_random(raw, sizeof(raw), e) < 0)
		return -1;
	if (own_node < ID_NODES)
		for (int shift = 10; shift >= 0; shift -= 5)
			out_id[n++] = alphabet[own_node >> shift & 31];
	for (unsigned i = 0; i < ID_LEN; i++)
		out_id[n++] = alphabet[raw[i] & 31];
	memset(out_id + n, 0, ID_MAX + 1 - n); /* callers copy all of it into records */
	return 0;
}

int id_valid(const char *id)
{
	size_t n = strspn(id, alphabet);

	return !id[n] && (n == ID_LEN || n == ID_MAX);
}

int id_node(const char *id)
{
	int number = 0;

	if (!id_valid(id) || !id[ID_LEN])
		return -1;
	for (unsigned i = 0; i < ID_MAX - ID_LEN; i++)
		number = number << 5 | (int)(strchr(alphabet, id[i]) - alphabet);
	return number;
}

uint32_t id_hash(const char *text)
{
	uint32_t hash = 2166136261u;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 16777619u;
	return hash;
}
