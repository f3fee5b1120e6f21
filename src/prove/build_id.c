/* build_id.c - see build_id.h. */
#include "prove/build_id.h"
#include "base/hex.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { BUILD_ID_BYTES = 20 };

struct build_id {
	const uint8_t *bytes;
	size_t n;
};

static size_t build_id_padded(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

static void build_id_in_notes(const uint8_t *p, size_t size, struct build_id *out)
{
	while (size >= sizeof(ElfW(Nhdr))) {
		ElfW(Nhdr) h;
		size_t name, all;

		memcpy(&h, p, sizeof(h));
		name = build_id_padded(h.n_namesz);
		all = sizeof(h) + name + build_id_padded(h.n_descsz);
		if (all > size)
			return;
		if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 &&
		    !memcmp(p + sizeof(h), "GNU", 4)) {
			out->bytes = p + sizeof(h) + name;
			out->n = h.n_descsz;
			return;
		}
		p += all;
		size -= all;
	}
}

/* The first object is the executable itself. */
static int build_id_of_object(struct dl_phdr_info *o, size_t size, void *out)
{
	(void)size;
	for (unsigned i = 0; i < o->dlpi_phnum; i++)
		if (o->dlpi_phdr[i].p_type == PT_NOTE)
			build_id_in_notes((const uint8_t *)o->dlpi_addr + o->dlpi_phdr[i].p_vaddr,
					  o->dlpi_phdr[i].p_memsz, out);
	return 1;
}

void build_id_text(char out[STORE_PROOF_KEY + 1])
{
	char hex[2 * BUILD_ID_BYTES + 1] = "";
	struct build_id id = { 0 };

	dl_iterate_phdr(build_id_of_object, &id);
	if (id.n)
		hex_encode(hex, id.bytes, id.n < BUILD_ID_BYTES ? id.n : BUILD_ID_BYTES);
	snprintf(out, STORE_PROOF_KEY + 1, "%s%s%s", ATOLL_VERSION, *hex ? " " : "", hex);
}
