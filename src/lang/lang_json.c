/* lang_json.c - see lang_json.h. */
#include "lang/lang_json.h"
#include "base/cleanup.h"
#include "jupyter/spec.h"

#include <string.h>
#include <unistd.h>

static json_t *lang_texts(const char *const *all)
{
	json_t *list = json_array();

	for (; *all; all++)
		json_array_append_new(list, json_string(*all));
	return list;
}

static json_t *lang_extras(const struct lang *l)
{
	json_t *list = json_array();

	for (const struct lang_extra *x = l->extras; x->name; x++)
		json_array_append_new(list, json_pack("{s:s, s:b, s:s}", "name", x->name, "here",
						      access(x->file, F_OK) == 0, "apt", x->apt));
	return list;
}

static json_t *lang_compilers(const struct lang *l)
{
	json_t *list = json_array();

	for (const struct lang_list *c = l->compilers; c->key; c++)
		if (access(c->values[0], X_OK) == 0)
			json_array_append_new(list, json_string(c->key));
	return list;
}

static json_t *number_or_null(uint64_t n)
{
	return n ? json_integer((json_int_t)n) : json_null();
}

static json_t *text_or_null(const char *s)
{
	return s && *s ? json_string(s) : json_null();
}

json_t *lang_json_lang(const struct lang *l, const char *version)
{
	auto_buf struct buf install = { 0 };
	json_t *doc = json_object();

	lang_install(l, &install);
	json_object_set_new(doc, "name", json_string(l->name));
	json_object_set_new(doc, "title", json_string(l->title));
	json_object_set_new(doc, "here", json_boolean(lang_present(l)));
	json_object_set_new(doc, "version", text_or_null(version));
	json_object_set_new(doc, "tested_since", text_or_null(l->minimum));
	json_object_set_new(doc, "aliases", lang_texts(l->aliases));
	json_object_set_new(doc, "endings", lang_texts(l->endings));
	json_object_set_new(doc, "compiled", json_boolean(l->compile[0] != NULL));
	json_object_set_new(doc, "compilers", lang_compilers(l));
	json_object_set_new(doc, "test", lang_texts(l->test));
	json_object_set_new(doc, "extras", lang_extras(l));
	json_object_set_new(doc, "packages", text_or_null(l->packages.manager));
	json_object_set_new(doc, "limits",
			    json_pack("{s:o, s:o, s:o}", "mem", number_or_null(l->limits.memory),
				      "disk", number_or_null(l->limits.disk), "pids",
				      number_or_null(l->limits.processes)));
	json_object_set_new(doc, "timeouts",
			    json_pack("{s:i, s:i, s:i}", "install_ms", (int)l->times.install,
				      "compile_ms", (int)l->times.compile, "run_ms",
				      (int)l->times.run));
	json_object_set_new(doc, "install", json_string(buf_str(&install)));
	json_object_set_new(doc, "hello", json_string(l->hello));
	json_object_set_new(doc, "selftest", json_string(l->selftest));
	return doc;
}

/* Each package is listed once, though two languages may need it. */
static void add_package(struct buf *out, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = buf_str(out); (at = strstr(at, name)) != NULL; at += n)
		if (at[-1] == ' ' && (at[n] == ' ' || !at[n]))
			return;
	buf_printf(out, "%s%s", out->len ? " " : "sudo apt-get install ", name);
}

/* A package of an installed language is installed already: nodejs for typescript, gcc for c++. */
static int about_has_package(const char *package)
{
	for (unsigned i = 0; i < lang_count(); i++)
		for (const char *const *p = lang_at(i)->apt; *p && lang_present(lang_at(i)); p++)
			if (!strcmp(*p, package))
				return 1;
	return 0;
}

void lang_json_install(struct buf *out)
{
	for (unsigned i = 0; i < lang_count(); i++) {
		const struct lang *l = lang_at(i);

		for (const char *const *p = l->apt; *p && !lang_present(l); p++)
			if (!about_has_package(*p))
				add_package(out, *p);
		for (const struct lang_extra *x = l->extras; x->name; x++)
			if (access(x->file, F_OK) < 0)
				add_package(out, x->apt);
	}
}

/* Kernels of the user of a box are not listed here. */
json_t *lang_json_kernels(void)
{
	struct spec_places places;

	spec_places(&places, NULL);
	return spec_json(&places);
}

json_t *lang_json_all(const char *(*version)(void *ctx, unsigned i), void *ctx,
		      json_t *take_kernels)
{
	auto_buf struct buf install = { 0 };
	json_t *items = json_array();

	for (unsigned i = 0; i < lang_count(); i++)
		json_array_append_new(items, lang_json_lang(lang_at(i), version(ctx, i)));
	lang_json_install(&install);
	return json_pack("{s:o, s:n, s:o, s:o}", "items", items, "next", "install",
			 text_or_null(buf_str(&install)), "kernels", take_kernels);
}
