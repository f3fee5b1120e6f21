/* candidate_box.c - see candidate_box.h. */
#include "repair/candidate_box.h"
#include "execute/artifact_packages.h"
#include "lang/lang.h"

#include <stdio.h>
#include <string.h>

int candidate_box_init(struct candidate_box *s, struct fleet *f, const char *team,
		       const json_t *artifact, struct err *e)
{
	struct artifact_packages needs = { .fleet = f };
	int there = artifact_packages_begin(&needs, artifact, team, e);

	*s = (struct candidate_box){ .fleet = f, .artifact = artifact };
	snprintf(s->team, sizeof(s->team), "%s", team);
	for (unsigned i = 0; there > 0 && i < needs.count; i++)
		memcpy(s->layers[s->nlayers++], needs.list[i].layer, WIRE_LAYER_ID);
	artifact_packages_fini(&needs);
	if (there == 0)
		return err_set(e, ERR_NOT_FOUND, "its packages are no longer installed");
	return there < 0 ? -1 : 0;
}

/* A candidate is compiled to be run once, so optimization and warnings are disabled. */
static json_t *quick_env(const struct candidate_box *s)
{
	const json_t *artifact = s->artifact;
	const struct lang *l = lang_named(doc_text(artifact, "language"));
	json_t *env = json_object();

	if (s->owner && s->owner->env)
		json_object_update(env, (json_t *)s->owner->env);
	if (json_is_object(json_object_get(artifact, "env")))
		json_object_update(env, json_object_get(artifact, "env"));
	if (l && (!strcmp(l->name, "c") || !strcmp(l->name, "c++")))
		json_object_set_new(env, "CFLAGS",
				    json_sprintf("%s -O0 -w", doc_text(env, "CFLAGS")));
	return env;
}

json_t *candidate_box_item(const struct candidate_box *s, uint32_t run_ms)
{
	const json_t *memory = json_object_get(json_object_get(s->artifact, "limits"), "memory");
	json_t *item = json_pack("{s:i}", "timeout_ms", (int)run_ms), *files = json_object(), *env;

	env = quick_env(s);
	json_object_update(files, json_object_get(s->artifact, "files"));
	json_object_del(files, doc_text(s->artifact, "entry"));
	json_object_set_new(item, "files", files);
	if (json_is_integer(memory))
		json_object_set_new(item, "limits", json_pack("{s:O}", "mem", memory));
	if (json_object_size(env))
		json_object_set(item, "env", env);
	json_decref(env);
	return item;
}

static int candidate_box_add_files(const struct candidate_box *s, struct batch_item *item,
				   struct err *e)
{
	struct batch_files files = { 0 };

	if (!s->owner || !s->owner->files)
		return 0;
	return s->owner->files(s->owner, &files, e) < 0 ? -1
							: batch_item_begin_with(item, &files, e);
}

int candidate_box_start(const struct candidate_box *s, struct batch_job *j, json_t *take_item,
			uint32_t max_output, struct err *e)
{
	struct batch_item_defaults d = { .max_output = max_output,
					 .limits = s->fleet->conf.limits,
					 .most = s->fleet->conf.most };
	const struct fleet_accounts *a = &s->fleet->accounts;

	j->warm_team = s->team;
	if (batch_item_make(&j->item, take_item, &d, e) < 0 ||
	    (a->may_run && !a->may_run(a->ctx, s->team, e))) {
		batch_item_fini(&j->item);
		return -1;
	}
	j->item.nlayers = s->nlayers;
	memcpy(j->item.layers, s->layers, sizeof(s->layers));
	if (candidate_box_add_files(s, &j->item, e) < 0 ||
	    batch_job_choose(j, s->fleet, s->key, &s->isolation, 0, e) < 0) {
		batch_item_fini(&j->item);
		return -1;
	}
	batch_job_start(j, s->fleet);
	return 0;
}

void candidate_box_ended(const struct candidate_box *s, const struct batch_job *j,
			 const struct batch_job_end *end)
{
	const struct fleet_accounts *a = &s->fleet->accounts;

	if (end->verdict == VERDICT_ERROR)
		return;
	if (a->used)
		a->used(a->ctx, s->team, end->cpu_us, j->seen[0] + j->seen[1]);
	batch_job_charge_pipeline(j, end, s->team, s->key, s->pipeline);
}

unsigned candidate_box_boxes(const struct candidate_box *s, unsigned wanted)
{
	const struct fleet_accounts *a = &s->fleet->accounts;
	unsigned may = a->may_have ? a->may_have(a->ctx, s->team) : wanted;

	may = may < wanted ? may : wanted;
	return may ? may : 1;
}
