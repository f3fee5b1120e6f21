/* isolation_test.c - requests for an isolation tier, minima of keys and teams, and the tier of a box. */
#include "fleet/isolation.h"
#include "fleet/fleet.h"
#include "store/keys.h"
#include "store/teams.h"
#include "store_dir.h"

#include <errno.h>
#include <string.h>

/* "": accepted; else the error. q has the request. */
static struct choose_request q;

static const char *read_request(const char *text)
{
	json_t *doc = json_loads(text, 0, NULL);

	q = (struct choose_request){ 0 };
	err.msg[0] = 0;
	if (!doc)
		return "not JSON";
	if (isolation_read(json_object_get(doc, "isolation"), json_object_get(doc, "trust"), &q,
			   &err) == 0)
		err.msg[0] = 0;
	json_decref(doc);
	return err.msg;
}

TEST(a_request_names_a_tier_or_a_minimum)
{
	CHECK_STR(read_request("{}"), "");
	CHECK(q.how == CHOOSE_AUTO && !q.has_trust);
	CHECK_STR(read_request("{\"isolation\": null, \"trust\": null}"), "");
	CHECK_STR(read_request("{\"isolation\": \"gvisor\", \"trust\": \"hostile\"}"), "");
	CHECK(q.how == CHOOSE_NAMED && q.tier == CHOOSE_GVISOR && q.has_trust &&
	      q.trust == CHOOSE_HOSTILE);
	CHECK_STR(read_request("{\"isolation\": {\"at_least\": \"microvm\"}}"), "");
	CHECK(q.how == CHOOSE_AT_LEAST && q.tier == CHOOSE_MICROVM);
}

TEST(bad_requests_are_rejected_with_the_reason)
{
	static const char *const bad[] = {
		"{\"isolation\": 3}",
		"{\"isolation\": true}",
		"{\"isolation\": []}",
		"{\"isolation\": {}}",
		"{\"isolation\": {\"at_least\": \"\"}}",
		"{\"isolation\": {\"at_least\": 3}}",
		"{\"isolation\": {\"least\": \"gvisor\"}}",
	};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK(strstr(read_request(bad[i]), "isolation: must be"));
		CHECK_INT(err.kind, ERR_INVALID);
	}
	CHECK(strstr(read_request("{\"isolation\": \"\"}"),
		     "isolation: there is no isolation tier ''"));
	CHECK(strstr(read_request("{\"isolation\": {\"at_least\": \"vm\"}}"),
		     "isolation.at_least: there is no"));
	CHECK(strstr(read_request("{\"trust\": 1}"), "trust: must be"));
	CHECK(strstr(read_request("{\"trust\": \"Hostile\"}"), "did you mean hostile?"));
}

TEST(a_stored_request_that_cannot_be_read_requires_the_strongest_tier)
{
	json_t *doc = json_pack("{s:s}", "isolation", "of-a-newer-version");

	q = isolation_stored(doc);
	CHECK(q.how == CHOOSE_AT_LEAST && q.tier == CHOOSE_MICROVM);
	json_decref(doc);
	q = isolation_stored(NULL);
	CHECK_INT(q.how, CHOOSE_AUTO);
}

TEST(metadata_can_only_raise)
{
	q = (struct choose_request){ 0 };
	CHECK_OK(isolation_read_raise("gvisor", "untrusted", &q, &err));
	CHECK(q.how == CHOOSE_AT_LEAST && q.tier == CHOOSE_GVISOR && q.trust == CHOOSE_UNTRUSTED);
	CHECK_OK(isolation_read_raise(NULL, NULL, &q, &err));
	CHECK_ERR(isolation_read_raise("process", NULL, &q, &err), ERR_INVALID);
	CHECK_ERR(isolation_read_raise(NULL, "trusted", &q, &err), ERR_INVALID);
	CHECK(strstr(err.msg, "can only raise"));
	CHECK_ERR(isolation_read_raise("vm", NULL, &q, &err), ERR_INVALID);
}

static int new_key(struct store *s, const char *team, const char *isolation, const char *by,
		   struct store_key *k)
{
	*k = (struct store_key){ .role = ROLE_OWNER };
	snprintf(k->team, sizeof(k->team), "%s", team);
	snprintf(k->isolation, sizeof(k->isolation), "%s", isolation);
	return isolation_check_key(s, k, by, 1, &err);
}

TEST(a_key_is_not_below_its_team_or_the_key_that_creates_it)
{
	struct store_team t = { .name = "blue", .isolation = "gvisor" };
	struct store_key k;

	STORE(s, dir);
	CHECK_OK(store_team_put(s, &t, &err));
	CHECK_OK(new_key(s, "blue", "", "", &k));
	CHECK_STR(k.isolation, "");
	CHECK_OK(new_key(s, "blue", "microvm", "", &k));
	CHECK_ERR(new_key(s, "blue", "container", "", &k), ERR_INVALID);
	CHECK(strstr(err.msg, "container is weaker than gvisor, which the team requires"));
	CHECK_ERR(new_key(s, "blue", "process", "", &k), ERR_INVALID);
	CHECK_OK(new_key(s, "default", "process", "", &k));
	CHECK_OK(new_key(s, "default", "", "gvisor", &k));
	CHECK_STR(k.isolation, "gvisor");
	CHECK_ERR(new_key(s, "default", "container", "gvisor", &k), ERR_INVALID);
	CHECK_OK(new_key(s, "default", "", "process", &k)); /* a permission is not inherited */
	CHECK_STR(k.isolation, "");
	CHECK_ERR(new_key(s, "default", "vm", "", &k), ERR_INVALID);
	strcpy(k.isolation, "process");
	CHECK_ERR(isolation_check_key(s, &k, "", 0, &err), ERR_DENIED);
	CHECK_ERR(isolation_check_minimum("process", 0, &err), ERR_INVALID);
}

/* ---- the choice of a fleet without facts of its keeper ---- */

static void new_fleet(struct fleet *f, struct loop *l, struct store *s)
{
	struct fleet_conf conf = { 0 };

	fleet_init(f, l, s, &conf, "test");
}

TEST(a_box_gets_its_tier_from_team_key_template_and_request)
{
	struct store_team strict = { .name = "strict", .isolation = "gvisor" };
	struct isolation_ask ask = { .team = "default" };
	struct isolation_choice got;
	static struct fleet f;
	struct loop l;
	json_t *doc;

	STORE(s, dir);
	CHECK_OK(loop_init(&l, &err));
	new_fleet(&f, &l, s);
	CHECK_OK(store_team_put(s, &strict, &err));
	CHECK_OK(isolation_choose(&f, &ask, 1, &got, &err));
	CHECK(got.tier == CHOOSE_CONTAINER && got.flags == 0 && !got.no_zygote);
	doc = json_loads(got.text, 0, NULL);
	CHECK_STR(json_string_value(json_object_get(doc, "requested")), "auto");
	CHECK_STR(json_string_value(json_object_get(json_object_get(doc, "chosen_by"), "source")),
		  "label");
	json_decref(doc);
	free(got.text);
	ask.team = "strict";
	CHECK_ERR(isolation_choose(&f, &ask, 1, &got, &err), ERR_CONFLICT);
	CHECK_INT(err.sys, ENOTSUP);
	CHECK(strstr(err.msg, "rank 3 is required by the team"));
	CHECK(isolation_lines(&f, &err) &&
	      strstr(isolation_lines(&f, &err), "gvisor: the keeper has not examined it"));
	ask.is_own = 1; /* a file worker of the server */
	CHECK_OK(isolation_choose(&f, &ask, 0, &got, &err));
	CHECK(!got.text);
	ask = (struct isolation_ask){ .team = "default", .root = "{\"isolation\": \"microvm\"}" };
	CHECK_ERR(isolation_choose(&f, &ask, 0, &got, &err), ERR_CONFLICT);
	CHECK(strstr(err.msg, "by the template"));
	ask.root = "{\"needs\": [\"gpu\"]}";
	CHECK_ERR(isolation_choose(&f, &ask, 0, &got, &err), ERR_CONFLICT);
	CHECK(strstr(isolation_lines(&f, &err), "container: does not support GPUs"));
	ask.root = "{\"needs\": [\"of-a-newer-version\"]}";
	CHECK_ERR(isolation_choose(&f, &ask, 0, &got, &err), ERR_CONFLICT);
	fleet_fini(&f);
	loop_fini(&l);
}

TEST(a_text_of_a_newer_version_is_the_strongest_minimum)
{
	struct store_team t = { .name = "new", .isolation = "quantum" };
	struct isolation_ask ask = { .team = "new" };
	struct isolation_choice got;
	static struct fleet f;
	struct loop l;

	STORE(s, dir);
	CHECK_OK(loop_init(&l, &err));
	new_fleet(&f, &l, s);
	CHECK_OK(store_team_put(s, &t, &err));
	CHECK_ERR(isolation_choose(&f, &ask, 0, &got, &err), ERR_CONFLICT);
	CHECK(strstr(err.msg, "rank 4"));
	fleet_fini(&f);
	loop_fini(&l);
}

TEST(an_existing_box_is_not_used_for_a_stronger_request)
{
	struct isolation_ask ask = { .team = "default" };
	struct store_box row = { .id = "aaaaaaaaaaab" };
	static struct fleet f;
	struct loop l;

	STORE(s, dir);
	CHECK_OK(loop_init(&l, &err));
	new_fleet(&f, &l, s);
	CHECK_OK(isolation_accepts(&f, &ask, &row, &err));
	ask.request = (struct choose_request){ .how = CHOOSE_AT_LEAST, .tier = CHOOSE_GVISOR };
	CHECK_ERR(isolation_accepts(&f, &ask, &row, &err), ERR_CONFLICT);
	row.isolation = (char *)"{\"tier\": \"gvisor\", \"rank\": 3}";
	CHECK_OK(isolation_accepts(&f, &ask, &row, &err));
	CHECK_STR(isolation_tier(&row), "gvisor");
	ask.request = (struct choose_request){ .how = CHOOSE_NAMED, .tier = CHOOSE_MICROVM };
	CHECK_ERR(isolation_accepts(&f, &ask, &row, &err), ERR_CONFLICT);
	fleet_fini(&f);
	loop_fini(&l);
}

TEST(a_box_of_an_earlier_version_is_shown_as_a_container)
{
	static const char *const names[] = { "one", "two", NULL };
	struct store_box row = { .layers = 2 };
	json_t *doc = isolation_json(&row, names);

	CHECK_STR(json_string_value(json_object_get(doc, "tier")), "container");
	CHECK(json_is_null(json_object_get(doc, "chosen_by")));
	CHECK_INT(json_array_size(json_object_get(doc, "features")), 1);
	CHECK_STR(json_string_value(json_array_get(json_object_get(doc, "features"), 0)), "two");
	json_decref(doc);
}

TEST(a_time_that_no_request_names_is_longer_in_an_emulated_box)
{
	struct store_box row = { 0 };

	CHECK_INT(isolation_usual_ms(&row, 1000), 1000);
	row.isolation = "{\"tier\":\"microvm\",\"emulated\":false}";
	CHECK_INT(isolation_usual_ms(&row, 1000), 1000);
	row.isolation = "{\"tier\":\"microvm\",\"emulated\":true}";
	CHECK_INT(isolation_usual_ms(&row, 1000), 5000);
	CHECK_INT(isolation_usual_ms(&row, 0), 0);
}
