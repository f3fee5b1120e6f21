/* bounds.c - see bounds.h. */
#include "fleet/bounds.h"
#include "lang/lang.h"
#include "base/cleanup.h"
#include "base/units.h"

#include <stdio.h>

struct bound {
	const char *name, *setting;
	uint64_t want, most;
	int is_size;
};

enum { BOUNDS = 5 };

static uint64_t bounds_widen_limit(uint32_t n)
{
	return n == (uint32_t)WIRE_DEFAULT ? WIRE_DEFAULT : n;
}

static void bounds_read(const struct wire_limits *most, const struct wire_limits *want,
			struct bound out[BOUNDS])
{
	const struct bound all[BOUNDS] = {
		{ "mem", "limits.max_mem", want->mem_bytes, most->mem_bytes, 1 },
		{ "disk", "limits.max_disk", want->disk_bytes, most->disk_bytes, 1 },
		{ "files", "limits.max_files", want->disk_files, most->disk_files, 0 },
		{ "cpu_milli", "limits.max_cpu", bounds_widen_limit(want->cpu_milli),
		  most->cpu_milli, 0 },
		{ "pids", "limits.max_pids", bounds_widen_limit(want->pids), most->pids, 0 },
	};

	for (unsigned i = 0; i < BOUNDS; i++)
		out[i] = all[i];
}

static int bound_is_exceeded(const struct bound *b)
{
	return b->most && b->want != WIRE_DEFAULT && b->want > b->most;
}

int bounds_check(const struct wire_limits *most, const struct wire_limits *want, struct err *e)
{
	struct bound all[BOUNDS];

	bounds_read(most, want, all);
	for (unsigned i = 0; i < BOUNDS; i++) {
		char asked[UNITS_TEXT + 4] = "", may[UNITS_TEXT + 4] = "", text[UNITS_TEXT];

		if (!bound_is_exceeded(&all[i]))
			continue;
		if (all[i].is_size) {
			snprintf(asked, sizeof(asked), " (%s)", units_size(text, all[i].want));
			snprintf(may, sizeof(may), " (%s)", units_size(text, all[i].most));
		}
		return err_set(
			e, ERR_INVALID,
			"limits.%s: %llu%s is more than one box may have here, which is %llu%s: ask for less, "
			"or have the operator raise %s",
			all[i].name, (unsigned long long)all[i].want, asked,
			(unsigned long long)all[i].most, may, all[i].setting);
	}
	return 0;
}

void bounds_lower(const struct wire_limits *most, struct wire_limits *l)
{
	struct bound all[BOUNDS];

	bounds_read(most, l, all);
	if (bound_is_exceeded(&all[0]))
		l->mem_bytes = all[0].most;
	if (bound_is_exceeded(&all[1]))
		l->disk_bytes = all[1].most;
	if (bound_is_exceeded(&all[2]))
		l->disk_files = all[2].most;
	if (bound_is_exceeded(&all[3]))
		l->cpu_milli = (uint32_t)all[3].most;
	if (bound_is_exceeded(&all[4]))
		l->pids = (uint32_t)all[4].most;
}

void bounds_for_language(const struct lang_limits *needs, const struct wire_limits *most,
			 struct wire_limits *limits)
{
	if (needs->memory && limits->mem_bytes == WIRE_DEFAULT)
		limits->mem_bytes = needs->memory;
	if (needs->disk && limits->disk_bytes == WIRE_DEFAULT)
		limits->disk_bytes = needs->disk;
	if (needs->processes && limits->pids == (uint32_t)WIRE_DEFAULT)
		limits->pids = needs->processes;
	bounds_lower(most, limits);
}
