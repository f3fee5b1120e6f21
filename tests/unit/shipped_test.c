/* shipped_test.c - the templates that come with the server: every one has a valid definition and a test. */
#include "template/shipped.h"
#include "template/definition.h"

#include "tap.h"

TEST(every_shipped_template_has_a_valid_definition)
{
	unsigned n = 0;

	for (const struct shipped_template *t = shipped_templates; t < shipped_templates_end; t++) {
		json_t *definition = NULL;
		struct err e = { 0 };
		int good = shipped_template_definition(t, &definition, &e) == 0 &&
			   definition_check(definition, &e) == 0;

		CHECK_STR(good ? "" : e.msg, "");
		CHECK(json_object_get(definition, "test") != NULL);
		CHECK(*json_string_value(json_object_get(definition, "description")));
		CHECK(shipped_template_find(t->name) == t);
		json_decref(definition);
		n++;
	}
	CHECK(n >= 14);
	CHECK(shipped_template_find("nosuch") == NULL);
}

TEST(what_a_build_needs_and_the_daemon_lacks_is_named)
{
	struct install_conf none = { 0 }, npm = { .source[PM_NPM] = "https://registry.example" };
	json_t *missing = shipped_template_missing(shipped_template_find("vue-developer"), &none);

	CHECK_STR(json_string_value(json_array_get(missing, 0)),
		  "npm packages: packages.npm_registry is not set");
	json_decref(missing);
	missing = shipped_template_missing(shipped_template_find("vue-developer"), &npm);
	CHECK(json_array_size(missing) == 0);
	json_decref(missing);
	missing = shipped_template_missing(shipped_template_find("streamlit-developer"), &npm);
	CHECK_STR(json_string_value(json_array_get(missing, 0)),
		  "pip packages: packages.pip_index is not set");
	json_decref(missing);
	missing = shipped_template_missing(shipped_template_find("node-18"), &none);
	CHECK_STR(json_string_value(json_array_get(missing, 0)),
		  "npm packages: packages.npm_registry is not set");
	json_decref(missing);
	missing = shipped_template_missing(shipped_template_find("desktop"), &none);
	CHECK_STR(json_string_value(json_array_get(missing, 0)),
		  "apt packages: packages.apt_mirrors is not set");
	json_decref(missing);
	missing = shipped_template_missing(shipped_template_find("go-1-23"), &none);
	CHECK_STR(json_string_value(json_array_get(missing, 0)),
		  "apt packages: packages.apt_mirrors is not set");
	json_decref(missing);
	missing = shipped_template_missing(shipped_template_find("go"), &none);
	CHECK(json_array_size(missing) == 0);
	json_decref(missing);
}
