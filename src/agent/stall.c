/* stall.c - see stall.h. */
#include "agent/stall.h"
#include "fleet/packages.h"
#include "lang/package.h"

#include <stdio.h>
#include <string.h>

/* As its manager's users write it. */
static int add_package(struct packages *set, const json_t *one, struct err *e)
{
	const char *name = doc_text(one, "name"), *version = doc_text(one, "version"), *sign = "";
	char spec[2 * PACKAGE_TEXT];

	if (*version && set->manager == PM_PIP)
		sign = strchr("<>=~!", *version) ? "" : "==";
	else if (*version)
		sign = set->manager == PM_APT ? "=" : "@";
	snprintf(spec, sizeof(spec), "%.120s%s%.80s", name, sign, version);
	return packages_add(set, spec, e);
}

static int manager_of(const struct stall *s, const json_t *one)
{
	const char *manager = doc_text(one, "manager");

	return *manager ? package_manager_named(manager) :
			  package_manager_of(doc_text(s->artifact, "language"));
}

static void nobody_waits(struct packages_wait *w, const char *layer, uint64_t ms,
			 const struct packages_failure *f)
{
	(void)w;
	(void)layer;
	(void)ms;
	(void)f;
}

static int add_layer(struct stall *s, const struct packages *set, struct err *e)
{
	struct packages_wait wait = { .done = nobody_waits };
	char layer[STORE_HASH + 1];
	int known;

	if (s->nlayers == WIRE_LAYERS)
		return err_set(e, ERR_LIMIT, "packages of %d managers at most", WIRE_LAYERS);
	known = packages_get(s->fleet, set, s->team, &wait, layer, e);
	packages_wait_cancel(&wait);
	if (known < 0)
		return -1;
	if (!known)
		return err_set(e, ERR_NOT_FOUND, "its packages are not installed any more");
	snprintf(s->layers[s->nlayers++], WIRE_LAYER_ID, "%s", layer);
	return 0;
}

/* One set for each manager, in the order in which they are named. */
static int find_layers(struct stall *s, struct err *e)
{
	const json_t *all = json_object_get(s->artifact, "packages"), *one;
	uint64_t seen = 0;
	size_t i, k;

	json_array_foreach(all, i, one)
	{
		int m = manager_of(s, one), rc = 0;
		struct packages set = { .manager = (enum package_manager)m };
		const json_t *other;

		if (m < 0 || m >= 64)
			return err_set(e, ERR_INVALID, "packages: there is no such manager");
		if (seen >> m & 1)
			continue;
		seen |= 1ull << m;
		json_array_foreach(all, k, other)
		{
			if (rc == 0 && manager_of(s, other) == m)
				rc = add_package(&set, other, e);
		}
		if (rc == 0)
			rc = add_layer(s, &set, e);
		packages_fini(&set);
		if (rc < 0)
			return -1;
	}
	return 0;
}

int stall_init(struct stall *s, struct fleet *f, const char *team, const json_t *artifact,
	       struct err *e)
{
	*s = (struct stall){ .fleet = f, .artifact = artifact };
	snprintf(s->team, sizeof(s->team), "%s", team);
	return find_layers(s, e);
}

json_t *stall_item(const struct stall *s, uint32_t run_ms)
{
	const json_t *memory = json_object_get(json_object_get(s->artifact, "limits"), "memory"),
		     *env = json_object_get(s->artifact, "env");
	json_t *item = json_pack("{s:i}", "timeout_ms", (int)run_ms), *files = json_object();

	json_object_update(files, json_object_get(s->artifact, "files"));
	json_object_del(files, doc_text(s->artifact, "entry"));
	json_object_set_new(item, "files", files);
	if (json_is_integer(memory))
		json_object_set_new(item, "limits", json_pack("{s:O}", "mem", memory));
	if (json_object_size(env))
		json_object_set(item, "env", (json_t *)env);
	return item;
}

int stall_start(const struct stall *s, struct job *j, json_t *take_item, uint32_t max_output,
		struct err *e)
{
	struct item_defaults d = { .max_output = max_output, .limits = s->fleet->conf.limits };
	const struct fleet_accounts *a = &s->fleet->accounts;

	if (item_make(&j->item, take_item, &d, e) < 0 ||
	    (a->may_run && !a->may_run(a->ctx, s->team, e))) {
		item_fini(&j->item);
		return -1;
	}
	j->item.nlayers = s->nlayers;
	memcpy(j->item.layers, s->layers, sizeof(s->layers));
	job_start(j, s->fleet);
	return 0;
}

void stall_ended(const struct stall *s, const struct job *j, const struct job_end *end)
{
	const struct fleet_accounts *a = &s->fleet->accounts;

	if (a->used && end->verdict != VERDICT_ERROR)
		a->used(a->ctx, s->team, end->end.exit.user_us + end->end.exit.system_us,
			j->seen[0] + j->seen[1]);
}

unsigned stall_boxes(const struct stall *s, unsigned wanted)
{
	const struct fleet_accounts *a = &s->fleet->accounts;
	unsigned may = a->may_have ? a->may_have(a->ctx, s->team) : wanted;

	may = may < wanted ? may : wanted;
	return may ? may : 1;
}
