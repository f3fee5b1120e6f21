/* boot_id.c - see boot_id.h. A failure leaves the id as it was; programs run all the same. */
#include "initlib/boot_id.h"
#include "initlib/str.h"
#include "initlib/sys.h"

enum { TEXT = 37 }; /* with the newline */

static int file; /* boot_init() comes first */
static int written;
static char present[40]; /* what was written; the file cannot be read */

void boot_init(int fd)
{
	file = fd;
}

void boot_again(void)
{
	written = 0;
}

/* A random UUID (version 4), as the kernel writes its own. */
static void write_id(void)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char id[16];
	char *text = present;
	int i, at = 0;

	if (sys_random(id, sizeof(id)) != (long)sizeof(id))
		return;
	id[6] = (unsigned char)((id[6] & 0x0f) | 0x40);
	id[8] = (unsigned char)((id[8] & 0x3f) | 0x80);
	for (i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			text[at++] = '-';
		text[at++] = digits[id[i] >> 4];
		text[at++] = digits[id[i] & 15];
	}
	text[at++] = '\n';
	(void)sys_pwrite(file, text, TEXT, 0);
}

/* The file takes a page: an idle box in which nothing ever ran does not need it. */
void boot_due(void)
{
	if (written)
		return;
	written = 1;
	write_id();
}

void boot_read(char out[40])
{
	memcpy(out, present, 40);
	out[TEXT - 1] = 0;
}

static int boot_is_id(const char *id)
{
	for (int i = 0; i < TEXT - 1; i++) {
		int dash = i == 8 || i == 13 || i == 18 || i == 23;
		int digit = (id[i] >= '0' && id[i] <= '9') || (id[i] >= 'a' && id[i] <= 'f');

		if (dash ? id[i] != '-' : !digit)
			return 0;
	}
	return !id[TEXT - 1];
}

void boot_take(const char id[40])
{
	if (!boot_is_id(id))
		return;
	memcpy(present, id, TEXT - 1);
	present[TEXT - 1] = '\n';
	written = sys_pwrite(file, present, TEXT, 0) == TEXT;
}
