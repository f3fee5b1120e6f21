/* guest_counts.c - see guest_counts.h. */
#include "init/guest_counts.h"
#include "initlib/str.h"
#include "initlib/sys.h"
#include "wire/wire.h"

static int counts_dir;                 /* 0: none; variables of init have no initial values */
static uint64_t seen_kills, unclaimed; /* kills so far; those that explain the end of no exec yet */

void guest_counts_init(int take_dir)
{
	struct guest_counts now;

	counts_dir = take_dir;
	guest_counts_read(&now);
	seen_kills = now.kills;
}

/* The number after `name` at the start of a line; 0: there is none. */
static uint64_t counts_find(const char *text, const char *name)
{
	uint64_t n = 0;

	while (*text && !text_starts(text, name)) {
		while (*text && *text != '\n')
			text++;
		text += *text == '\n';
	}
	if (!*text)
		return 0;
	for (text += strlen(name); *text >= '0' && *text <= '9'; text++)
		n = n * 10 + (uint64_t)(*text - '0');
	return n;
}

static uint64_t counts_of(const char *file, const char *name)
{
	char text[256];
	long fd = sys_openat(counts_dir, file, O_RDONLY | O_CLOEXEC, 0), n;

	if (fd < 0)
		return 0;
	n = sys_read((int)fd, text, sizeof(text) - 1);
	sys_close((int)fd);
	text[n > 0 ? n : 0] = 0;
	return counts_find(text, name);
}

void guest_counts_read(struct guest_counts *out)
{
	*out = (struct guest_counts){ 0 };
	if (!counts_dir)
		return;
	out->kills = counts_of("memory.events", "oom_kill ");
	out->refused = counts_of("pids.events", "max ");
}

uint16_t guest_counts_flags(const struct guest_counts *before, int failed, int alone)
{
	struct guest_counts now;
	uint64_t kills;

	if (!counts_dir)
		return 0;
	guest_counts_read(&now);
	unclaimed += now.kills - seen_kills;
	seen_kills = now.kills;
	kills = unclaimed ? now.kills - before->kills : 0;
	if (alone)
		unclaimed = 0; /* no other exec is left that they could explain */
	else if (kills && failed)
		unclaimed--;
	return wire_exit_flags(kills, now.refused - before->refused);
}
