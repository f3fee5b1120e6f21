/* artifact_packages.c - see artifact_packages.h. */
#include "execute/artifact_packages.h"
#include "document/document.h"

#include <stdio.h>
#include <string.h>

static void need_said(struct packages_wait *w, unsigned stream, const char *bytes, size_t len)
{
	struct artifact_packages *n = loop_owner(w, struct need, wait)->all;

	n->said(n, stream, bytes, len);
}

static void need_done(struct packages_wait *w, const char *layer, uint64_t ms,
		      const struct packages_failure *f)
{
	struct need *need = loop_owner(w, struct need, wait);
	struct artifact_packages *n = need->all;

	if (f) {
		n->done(n, ms, f);
		return;
	}
	snprintf(need->layer, sizeof(need->layer), "%s", layer);
	if (--n->missing == 0)
		n->done(n, ms, NULL);
}

static struct need *need_of(struct artifact_packages *n, int manager, struct err *e)
{
	for (unsigned i = 0; i < n->count; i++)
		if ((int)n->list[i].set.manager == manager)
			return &n->list[i];
	if (n->count == WIRE_LAYERS) {
		err_set(e, ERR_LIMIT, "packages of %d managers at most", WIRE_LAYERS);
		return NULL;
	}
	n->list[n->count] = (struct need){ .all = n,
					   .set.manager = (enum package_manager)manager,
					   .wait = { .said = need_said, .done = need_done } };
	return &n->list[n->count++];
}

static int add_package(struct artifact_packages *n, const json_t *one, const char *language,
		       struct err *e)
{
	const char *name = doc_text(one, "name"), *version = doc_text(one, "version"),
		   *manager = doc_text(one, "manager");
	int m = *manager ? package_manager_named(manager) : package_manager_of(language);
	char spec[2 * PACKAGE_TEXT];
	struct need *need;

	if (m < 0)
		return err_set(e, ERR_INVALID, "packages: there is no manager '%.20s'", manager);
	need = need_of(n, m, e);
	if (!need)
		return -1;
	if (!*version)
		snprintf(spec, sizeof(spec), "%.*s", PACKAGE_TEXT, name);
	else if (m == PM_PIP)
		snprintf(spec, sizeof(spec), "%.120s%s%.80s", name,
			 strchr("<>=~!", *version) ? "" : "==", version);
	else
		snprintf(spec, sizeof(spec), "%.120s%s%.80s", name, m == PM_APT ? "=" : "@",
			 version);
	return packages_add(&need->set, spec, e);
}

int artifact_packages_begin(struct artifact_packages *n, const json_t *artifact, const char *team,
			    struct err *e)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(artifact, "packages"), i, one)
	{
		if (add_package(n, one, doc_text(artifact, "language"), e) < 0)
			return -1;
	}
	for (unsigned k = 0; k < n->count; k++) {
		struct need *need = &n->list[k];
		char layer[STORE_HASH + 1];
		int known = packages_get(n->fleet, &need->set, team, &need->wait, layer, e);

		if (known < 0)
			return -1;
		if (known)
			snprintf(need->layer, sizeof(need->layer), "%s", layer);
		n->missing += !known;
	}
	return n->missing == 0;
}

void artifact_packages_put(const struct artifact_packages *n, struct batch_item *item)
{
	item->nlayers = n->count;
	for (unsigned i = 0; i < n->count; i++)
		memcpy(item->layers[i], n->list[i].layer, sizeof(item->layers[i]));
}

void artifact_packages_env(const struct artifact_packages *n, json_t *env)
{
	for (unsigned k = 0; k < n->count; k++) {
		const char *const *var = install_box_env(n->list[k].set.manager);
		char name[64];

		for (unsigned i = 0; i < INSTALL_ENV && var[i]; i++) {
			snprintf(name, sizeof(name), "%.*s", (int)strcspn(var[i], "="), var[i]);
			if (!json_object_get(env, name))
				json_object_set_new(env, name,
						    json_string(strchr(var[i], '=') + 1));
		}
	}
}

void artifact_packages_lost(struct artifact_packages *n)
{
	for (unsigned i = 0; i < n->count; i++)
		packages_forget(n->fleet, n->list[i].layer);
	artifact_packages_fini(n);
}

void artifact_packages_fini(struct artifact_packages *n)
{
	for (unsigned i = 0; i < n->count; i++) {
		packages_wait_cancel(&n->list[i].wait);
		packages_fini(&n->list[i].set);
	}
	memset(n->list, 0, sizeof(n->list));
	n->count = n->missing = 0;
}
