/* templates.h - templates: names, tags and aliases of builds (builds.h). A name is unique in its team. */
#pragma once
#include "store/store.h"

enum { STORE_TEMPLATE_ID = 20, STORE_BUILD_ID = 36, STORE_TAG = 64 };

struct store_template {
	char id[STORE_TEMPLATE_ID + 1];
	char team[STORE_NAME + 1];
	char name[STORE_NAME + 1];
	int public;        /* every team may use it; only its own team may change it */
	char *description; /* "": none */
	uint32_t pool;     /* boxes of it that wait in the pool of the keeper */
	int64_t created_ns, updated_ns;
	uint64_t spawns; /* boxes that were created from it so far */
	int64_t spawned_ns;
};
void store_template_fini(struct store_template *t);
struct store_templates {
	struct store_template *v;
	unsigned n;
	int more;
};
void store_templates_fini(struct store_templates *l);

/* ERR_CONFLICT: the team has a template or an alias of that name. */
must_check int store_template_insert(struct store *s, const struct store_template *t,
				     struct err *e);
/* name, public, description, pool, updated_ns. */
must_check int store_template_update(struct store *s, const struct store_template *t,
				     struct err *e);
/* So many more boxes were created from it. */
must_check int store_template_spawned(struct store *s, const char *id, uint64_t boxes,
				      int64_t now_ns, struct err *e);
/* By id, name or alias. team: sees its own templates first, then public ones, those of team
 * "default" first. */
must_check int store_template_find(struct store *s, const char *team, const char *id_or_name,
				   struct store_template *out, struct err *e);
/* Those that the team may use, by name; limit 0: STORE_PAGE_MAX. own: only its own. */
must_check int store_template_list(struct store *s, const char *team, int own,
				   struct store_templates *out, struct err *e);
/* Of all teams, those with a pool. */
must_check int store_template_pooled(struct store *s, struct store_templates *out, struct err *e);
/* With its builds, tags and aliases. */
must_check int store_template_remove(struct store *s, const char *id, struct err *e);

struct store_tag {
	char tag[STORE_TAG + 1];
	char build[STORE_BUILD_ID + 1];
	int64_t created_ns;
};
struct store_tags {
	struct store_tag *v;
	unsigned n;
};
void store_tags_fini(struct store_tags *l);
/* Creates it or points it to another build. */
must_check int store_tag_put(struct store *s, const char *template, const struct store_tag *tag,
			     struct err *e);
must_check int store_tag_get(struct store *s, const char *template, const char *tag,
			     struct store_tag *out, struct err *e);
must_check int store_tag_remove(struct store *s, const char *template, const char *tag,
				struct err *e);
must_check int store_tag_list(struct store *s, const char *template, struct store_tags *out,
			      struct err *e);

struct store_aliases {
	char (*v)[STORE_NAME + 1];
	unsigned n;
};
void store_aliases_fini(struct store_aliases *l);
/* ERR_CONFLICT: the team has another template of that name. */
must_check int store_alias_put(struct store *s, const char *team, const char *alias,
			       const char *template, struct err *e);
must_check int store_alias_remove(struct store *s, const char *team, const char *alias,
				  struct err *e);
must_check int store_alias_list(struct store *s, const char *template, struct store_aliases *out,
				struct err *e);
