/* package_preinstall.c - see package_preinstall.h. */
#include "packages/package_preinstall.h"
#include "base/log.h"
#include "base/cleanup.h"
#include "store/teams.h"

#include <stdio.h>
#include <string.h>

int package_preinstall_parse(const char *text, struct packages *out, struct err *e)
{
	char word[PACKAGE_TEXT + 2];
	int m = -1;

	*out = (struct packages){ 0 };
	for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
		size_t n = strcspn(text, " ");

		snprintf(word, sizeof(word), "%.*s", (int)(n < sizeof(word) ? n : sizeof(word) - 1),
			 text);
		text += n;
		if (m < 0) {
			m = package_manager_named(word);
			if (m < 0)
				return err_set(e, ERR_INVALID,
					       "'%.20s' is none of pip, npm, gem, cargo, go, apt",
					       word);
			out->manager = (enum package_manager)m;
		} else if (packages_add(out, word, e) < 0) {
			packages_fini(out);
			return -1;
		}
	}
	return out->n ? 0
		      : err_set(e, ERR_INVALID, "wanted a manager and packages, as in: pip numpy");
}

/* ---- one after another ---- */

static void preinstall_next(struct package_preinstall *p)
{
	char layer[STORE_HASH + 1];
	struct err e;

	while (p->at < p->n) {
		int known =
			packages_get(p->fleet, &p->v[p->at++], TEAM_DEFAULT, &p->wait, layer, &e);

		if (known == 0)
			return;
		if (known < 0)
			log_warn("packages were not preinstalled", LOG_E(&e));
	}
}

static void preinstall_prepared(struct packages_wait *w, const char *layer, uint64_t ms,
				const struct packages_failure *f)
{
	struct package_preinstall *p = loop_owner(w, struct package_preinstall, wait);

	if (f)
		log_warn("packages were not preinstalled", LOG_S("why", f->message));
	else
		log_info("packages prepared", LOG_S("layer", layer), LOG_U("ms", ms));
	preinstall_next(p);
}

/* ---- the list ---- */

static void preinstall_take(struct package_preinstall *p, const char *text)
{
	struct err e;

	if (p->n == PACKAGE_PREINSTALL_MOST)
		return;
	if (package_preinstall_parse(text, &p->v[p->n], &e) == 0)
		p->n++;
	else
		log_warn("packages.preinstall", LOG_E(&e));
}

/* Sets of the previous interpreter will be requested for this one. */
static void take_demand(struct package_preinstall *p)
{
	const struct install_conf *conf = &p->fleet->conf.packages.install;
	struct store_sets rows = { 0 };
	struct err e;

	if (store_set_list(p->fleet->store, PACKAGE_PREINSTALL_MOST, &rows, &e) < 0)
		return;
	for (unsigned i = 0; i < rows.n; i++) {
		const struct store_set *s = &rows.v[i];
		int m = package_manager_named(s->manager);
		auto_buf struct buf text = { 0 };

		if (m < 0 || s->uses < PACKAGE_PREINSTALL_USES || !conf->runtime[m] ||
		    !strcmp(s->runtime, conf->runtime[m]))
			continue;
		buf_printf(&text, "%s %s", s->manager, s->packages);
		preinstall_take(p, buf_str(&text));
	}
	store_sets_fini(&rows);
}

void package_preinstall_begin(struct package_preinstall *p, struct fleet *f)
{
	const char *const *text = f->conf.packages.preinstall;

	*p = (struct package_preinstall){ .fleet = f, .wait.done = preinstall_prepared };
	for (; text && *text; text++)
		preinstall_take(p, *text);
	take_demand(p);
	preinstall_next(p);
	packages_collect(f);
}

void package_preinstall_fini(struct package_preinstall *p)
{
	packages_wait_cancel(&p->wait);
	for (unsigned i = 0; i < p->n; i++)
		packages_fini(&p->v[i]);
	p->n = 0;
}
