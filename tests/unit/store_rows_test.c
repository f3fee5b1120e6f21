/* Rows one by one: keys, teams, boxes, runs. */
#include "store/clock_offset.h"
#include "store_rows.h"
#include "store/history.h"
#include "store/mcp_sessions.h"
#include "store/packages.h"
#include "store/ui_links.h"

/* Links to the web UI ---- */

static struct store_ui_link link_of(unsigned n, const char *team, int64_t expires_ns)
{
	struct store_ui_link x = { .role = ROLE_EDITOR, .expires_ns = expires_ns };

	memcpy(x.hash, &n, sizeof(n));
	snprintf(x.team, sizeof(x.team), "%s", team);
	snprintf(x.who, sizeof(x.who), "uid:0");
	return x;
}

TEST(a_login_link_is_valid_once_and_until_it_expires)
{
	struct store_ui_link x = link_of(1, "default", 100), got;

	STORE(s, dir);
	CHECK_OK(store_ui_link_insert(s, &x, 1, &err));
	x = link_of(2, "default", 100);
	CHECK_OK(store_ui_link_insert(s, &x, 1, &err));
	store_close(s);
	s = NULL;
	CHECK_OK(store_open(&s, dir, &err));
	CHECK_ERR(store_ui_link_take(s, x.hash, 100, &got, &err),
		  ERR_NOT_FOUND); /* expired at that moment */
	x = link_of(1, "default", 100);
	CHECK_OK(store_ui_link_take(s, x.hash, 99, &got, &err));
	CHECK_STR(got.team, "default");
	CHECK_STR(got.who, "uid:0");
	CHECK_INT(got.role, ROLE_EDITOR);
	CHECK_INT(got.expires_ns, 100);
	CHECK_ERR(store_ui_link_take(s, x.hash, 99, &got, &err), ERR_NOT_FOUND);
}

TEST(the_number_of_unused_login_links_of_a_team_is_bounded)
{
	struct store_ui_link x, got;

	STORE(s, dir);
	x = link_of(5000, "blue", 50);
	CHECK_OK(store_ui_link_insert(s, &x, 1, &err));
	for (unsigned i = 0; i <= UI_LINKS; i++) {
		x = link_of(i, "default", 1000 + i);
		CHECK_OK(store_ui_link_insert(s, &x, 1, &err));
	}
	x = link_of(0, "default", 0);
	CHECK_ERR(store_ui_link_take(s, x.hash, 2, &got, &err), ERR_NOT_FOUND); /* the oldest */
	x = link_of(1, "default", 0);
	CHECK_OK(store_ui_link_take(s, x.hash, 2, &got, &err));
	x = link_of(5000, "blue", 0);
	CHECK_OK(store_ui_link_take(s, x.hash, 2, &got, &err)); /* another team's */
}

/* Sessions of MCP ---- */

static struct store_mcp_session session_of(unsigned n, const char *team, const char *key,
					   int64_t used_ns)
{
	struct store_mcp_session x = { .level = -1, .can = n, .used_ns = used_ns };

	snprintf(x.id, sizeof(x.id), "%032x", n);
	snprintf(x.team, sizeof(x.team), "%s", team);
	snprintf(x.key, sizeof(x.key), "%s", key);
	return x;
}

TEST(a_session_is_found_by_its_key_after_a_restart)
{
	struct store_mcp_session x = session_of(5, "default", "k1", 1), got;
	static const char *const bad[] = { "",
					   "5",
					   "'",
					   "\xc3(",
					   "0000000000000000000000000000000A",
					   "000000000000000000000000000000005" };

	STORE(s, dir);
	CHECK_OK(store_mcp_session_insert(s, &x, &err));
	CHECK_ERR(store_mcp_session_insert(s, &x, &err), ERR_CONFLICT);
	CHECK_OK(store_mcp_session_set_level(s, x.id, 3, &err));
	store_close(s);
	s = NULL;
	CHECK_OK(store_open(&s, dir, &err));
	CHECK_OK(store_mcp_session_get(s, x.id, "default", "k1", 2, &got, &err));
	CHECK_STR(got.id, x.id);
	CHECK_INT(got.level, 3);
	CHECK_INT(got.can, 5);
	CHECK_INT(got.used_ns, 1); /* to the minute */
	CHECK_OK(store_mcp_session_get(s, x.id, "default", "k1", INT64_C(90000000000), &got, &err));
	CHECK_INT(got.used_ns, INT64_C(90000000000));
	CHECK_ERR(store_mcp_session_get(s, x.id, "default", "k2", 2, &got, &err), ERR_NOT_FOUND);
	CHECK_ERR(store_mcp_session_get(s, x.id, "blue", "k1", 2, &got, &err), ERR_NOT_FOUND);
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_ERR(store_mcp_session_get(s, bad[i], "default", "k1", 2, &got, &err),
			  ERR_NOT_FOUND);
	CHECK_OK(store_mcp_session_delete(s, x.id, &err));
	CHECK_ERR(store_mcp_session_get(s, x.id, "default", "k1", 2, &got, &err), ERR_NOT_FOUND);
	CHECK_ERR(store_mcp_session_delete(s, x.id, &err), ERR_NOT_FOUND);
	CHECK_ERR(store_mcp_session_set_level(s, x.id, 3, &err), ERR_NOT_FOUND);
}

TEST(sessions_per_team_are_bounded_and_unused_ones_removed_after_a_month)
{
	const int64_t base = MCP_SESSION_KEEP_NS * 2;
	struct store_history h = { .now_ns = base + MCP_SESSION_KEEP_NS - 1000, .team_bytes = 1 };
	struct store_mcp_session x, got;
	int rc;

	STORE(s, dir);
	x = session_of(9999, "blue", "k", base - 1);
	CHECK_OK(store_mcp_session_insert(s, &x, &err));
	for (unsigned i = 0; i <= MCP_SESSIONS; i++) {
		x = session_of(i, "default", "k", base + i);
		CHECK_OK(store_mcp_session_insert(s, &x, &err));
	}
	x = session_of(0, "default", "k", 0);
	CHECK_ERR(store_mcp_session_get(s, x.id, "default", "k", base, &got, &err), ERR_NOT_FOUND);
	x = session_of(1, "default", "k", 0);
	CHECK_OK(store_mcp_session_get(s, x.id, "default", "k", base, &got, &err));
	x = session_of(9999, "blue", "k", 0);
	CHECK_OK(
		store_mcp_session_get(s, x.id, "blue", "k", base, &got, &err)); /* another team's */
	while ((rc = store_history_step(s, &h, &err)) > 0)
		;
	CHECK_INT(rc, 0);
	CHECK_INT(h.sessions, 0);
	h = (struct store_history){ .now_ns = base + MCP_SESSION_KEEP_NS + 500, .team_bytes = 1 };
	while ((rc = store_history_step(s, &h, &err)) > 0)
		;
	CHECK_INT(h.sessions, 499 + 1); /* 1 to 499, and blue's */
	x = session_of(500, "default", "k", 0);
	CHECK_OK(store_mcp_session_get(s, x.id, "default", "k", base, &got, &err));
}

/* Keys ---- */

TEST(a_new_key_has_the_key_format_and_its_hash)
{
	char text[KEY_TEXT + 1], other[KEY_TEXT + 1];
	struct store_key k = { 0 };
	uint8_t hash[SHA256_BYTES];

	CHECK_OK(store_key_make(text, &k, &err));
	CHECK_OK(store_key_make(other, &k, &err));
	CHECK(strcmp(text, other) != 0);
	CHECK(strncmp(other, "e2b_", 4) == 0 && strlen(other) == 44);
	CHECK(strncmp(other, k.shown, 8) == 0 && strlen(k.shown) == 8);
	CHECK_INT(store_key_hash(other, hash), 0);
	CHECK(memcmp(hash, k.hash, sizeof(hash)) == 0);
}

TEST(the_hash_of_a_key_is_its_sha256)
{
	static const uint8_t want[4] = { 0x28, 0x5c, 0x79, 0xb2 };
	uint8_t hash[SHA256_BYTES];

	CHECK_INT(store_key_hash("e2b_0123456789abcdef0123456789abcdef01234567", hash), 0);
	CHECK(memcmp(hash, want, sizeof(want)) == 0);
}

TEST(text_that_is_not_a_key_has_no_hash)
{
	static const char *const bad[] = {
		"",
		"e2b_",
		"e2b_0123456789abcdef0123456789abcdef0123456",
		"e2b_0123456789abcdef0123456789abcdef012345678",
		"e2b_0123456789ABCDEF0123456789abcdef01234567",
		"E2B_0123456789abcdef0123456789abcdef01234567",
		"e2b_0123456789abcdef0123456789abcdef0123456\n",
		" e2b_0123456789abcdef0123456789abcdef0123456",
	};
	uint8_t hash[SHA256_BYTES];

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_INT(store_key_hash(bad[i], hash), -1);
}

static int add_key(struct store *s, const char *team, const char *name, struct store_key *k)
{
	char text[KEY_TEXT + 1];
	static int64_t at;

	*k = (struct store_key){ .role = ROLE_OWNER, .created_ns = ++at };
	snprintf(k->team, sizeof(k->team), "%s", team);
	snprintf(k->name, sizeof(k->name), "%s", name);
	return store_key_make(text, k, &err) < 0 ? -1 : store_key_add(s, k, &err);
}

TEST(a_key_is_found_only_by_its_exact_hash)
{
	struct store_key k, got;

	STORE(s, dir);
	CHECK_OK(add_key(s, "default", "ci", &k));
	CHECK_OK(store_key_find(s, k.hash, &got, &err));
	CHECK_STR(got.id, k.id);
	CHECK_OK(store_key_get(s, k.id, &got, &err));
	CHECK_STR(got.shown, k.shown);
	k.hash[31] ^= 1;
	CHECK_ERR(store_key_find(s, k.hash, &got, &err), ERR_NOT_FOUND);
	CHECK_ERR(store_key_get(s, "nonono", &got, &err), ERR_NOT_FOUND);
}

TEST(a_key_needs_a_team_and_a_unique_name)
{
	struct store_team t = { .name = "blue" };
	struct store_key k;

	STORE(s, dir);
	CHECK_ERR(add_key(s, "blue", "ci", &k), ERR_NOT_FOUND);
	CHECK(strstr(err.msg, "no team 'blue'"));
	CHECK_OK(store_team_put(s, &t, &err));
	CHECK_OK(add_key(s, "blue", "ci", &k));
	CHECK_ERR(add_key(s, "blue", "ci", &k), ERR_CONFLICT);
	CHECK_OK(add_key(s, "default", "ci", &k));
	CHECK_OK(add_key(s, "blue", "", &k));
	CHECK_OK(add_key(s, "blue", "", &k)); /* several keys may have no name */
}

TEST(a_revoked_key_is_kept_and_its_name_is_free)
{
	struct store_key k, next, got;

	STORE(s, dir);
	CHECK_OK(add_key(s, "default", "ci", &k));
	CHECK_OK(store_key_revoke(s, "default", "ci", &err));
	CHECK_OK(store_key_find(s, k.hash, &got, &err));
	CHECK(got.revoked);
	CHECK_ERR(store_key_revoke(s, "default", "ci", &err), ERR_NOT_FOUND);
	CHECK_OK(add_key(s, "default", "ci", &next));
	CHECK_OK(store_key_find(s, next.hash, &got, &err));
	CHECK(!got.revoked);
	CHECK_OK(store_key_revoke(s, "default", next.id, &err));
}

TEST(a_key_is_removed_by_id_before_name_and_only_in_its_team)
{
	struct store_key k, trap, got;

	STORE(s, dir);
	CHECK_OK(add_key(s, "default", "ci", &k));
	CHECK_OK(add_key(s, "default", k.id, &trap)); /* its name is the id of the other box */
	CHECK_ERR(store_key_remove(s, "blue", k.id, &err), ERR_NOT_FOUND);
	CHECK_OK(store_key_remove(s, "default", k.id, &err));
	CHECK_ERR(store_key_find(s, k.hash, &got, &err), ERR_NOT_FOUND);
	CHECK_OK(store_key_find(s, trap.hash, &got, &err));
	CHECK_OK(store_key_remove(s, "default", k.id, &err));
	CHECK_ERR(store_key_remove(s, "default", "", &err), ERR_NOT_FOUND);
}

TEST(the_last_use_of_a_key_is_stored_per_minute)
{
	static const int64_t second = INT64_C(1000000000);
	struct store_key k, got;

	STORE(s, dir);
	CHECK_OK(add_key(s, "default", "ci", &k));
	CHECK_OK(store_key_touch(s, &k, 1000 * second, &err));
	CHECK_OK(store_key_touch(s, &k, 1059 * second, &err));
	CHECK_OK(store_key_get(s, k.id, &got, &err));
	CHECK_INT(got.used_ns, 1000 * second);
	CHECK_OK(store_key_touch(s, &k, 1060 * second, &err));
	CHECK_OK(store_key_get(s, k.id, &got, &err));
	CHECK_INT(got.used_ns, 1060 * second);
	CHECK_OK(store_key_touch(s, &k, 5 * second, &err)); /* the clock was set back */
	CHECK_INT(k.used_ns, 5 * second);
	CHECK_OK(store_key_remove(s, "default", k.id, &err));
	CHECK_ERR(store_key_touch(s, &k, 500 * second, &err), ERR_NOT_FOUND);
}

TEST(roles_have_names)
{
	enum store_role r;

	for (unsigned i = 0; i < ROLE_COUNT; i++) {
		CHECK_INT(store_role_parse(store_role_name(i), &r), 0);
		CHECK_INT(r, i);
	}
	CHECK_INT(store_role_parse("root", &r), -1);
	CHECK_STR(store_role_name(ROLE_COUNT), "unknown");
}

/* Teams ---- */

TEST(the_default_team_exists_and_cannot_be_removed)
{
	struct store_team t;

	STORE(s, dir);
	CHECK_OK(store_team_get(s, TEAM_DEFAULT, &t, &err));
	CHECK_INT(t.boxes, 0);
	CHECK_ERR(store_team_remove(s, TEAM_DEFAULT, &err), ERR_INVALID);
	CHECK_ERR(store_team_get(s, "blue", &t, &err), ERR_NOT_FOUND);
	CHECK_ERR(store_team_remove(s, "blue", &err), ERR_NOT_FOUND);
	CHECK_ERR(store_team_put(s, &(struct store_team){ 0 }, &err), ERR_INVALID);
}

TEST(a_team_is_changed_by_storing_it_again)
{
	struct store_team t = { .name = "blue", .created_ns = 5, .boxes = 1 }, got;
	struct store_key k;

	STORE(s, dir);
	CHECK_OK(store_team_put(s, &t, &err));
	CHECK_OK(add_key(s, "blue", "ci", &k)); /* which the second put must not remove */
	t.boxes = 2;
	t.requests_per_second = UINT32_MAX;
	t.created_ns = 99;
	CHECK_OK(store_team_put(s, &t, &err));
	CHECK_OK(store_team_get(s, "blue", &got, &err));
	CHECK(got.boxes == 2 && got.requests_per_second == UINT32_MAX && got.created_ns == 5);
}

TEST(a_team_with_keys_volumes_or_boxes_cannot_be_removed)
{
	struct store_team t = { .name = "blue" };
	struct store_volume v = { .id = "cccccccccccc", .team = "blue", .name = "data" };
	struct store_usage u = { .executions = 1 };
	struct store_box b = box_of(1);
	struct store_key k;

	STORE(s, dir);
	CHECK_OK(store_team_put(s, &t, &err));
	CHECK_OK(store_usage_add(s, "blue", 1, &u, &err));
	CHECK_OK(add_key(s, "blue", "ci", &k));
	CHECK_ERR(store_team_remove(s, "blue", &err), ERR_CONFLICT);
	CHECK_OK(store_key_remove(s, "blue", "ci", &err));
	CHECK_OK(store_volume_insert(s, &v, &err));
	CHECK_ERR(store_team_remove(s, "blue", &err), ERR_CONFLICT);
	CHECK_OK(store_volume_remove(s, v.id, &err));
	strcpy(b.team, "blue");
	CHECK_OK(store_box_insert(s, &b, &err));
	CHECK_ERR(store_team_remove(s, "blue", &err), ERR_CONFLICT);
	CHECK_OK(store_box_set_state(s, b.id, STORE_BOX_DELETED, "operator", 9, &err));
	CHECK_OK(store_team_remove(s, "blue", &err));
	CHECK_OK(store_usage_get(s, "blue", 0, 10, &u, &err));
	CHECK_INT(u.executions, 0);
}

TEST(teams_are_listed_by_name)
{
	struct store_teams l;

	STORE(s, dir);
	CHECK_OK(store_team_put(s, &(struct store_team){ .name = "zoo" }, &err));
	CHECK_OK(store_team_put(s, &(struct store_team){ .name = "ant" }, &err));
	CHECK_OK(store_team_list(s, NULL, &l, &err));
	CHECK_INT(l.n, 3);
	CHECK_STR(l.v[0].name, "ant");
	CHECK_STR(l.v[2].name, "zoo");
	store_teams_fini(&l);
	CHECK_OK(store_team_list(s, "default", &l, &err));
	CHECK_INT(l.n, 1);
	store_teams_fini(&l);
	CHECK_OK(store_team_list(s, "zoo", &l, &err));
	CHECK_INT(l.n, 0);
	store_teams_fini(&l);
}

TEST(usage_adds_up_per_day_and_over_days)
{
	struct store_usage u = { 1, 2, 3, 4 }, got;

	STORE(s, dir);
	CHECK_OK(store_usage_add(s, "default", 10, &u, &err));
	CHECK_OK(store_usage_add(s, "default", 10, &u, &err));
	CHECK_OK(store_usage_add(s, "default", 12, &u, &err));
	CHECK_OK(store_usage_get(s, "default", 10, 10, &got, &err));
	CHECK(got.executions == 2 && got.compute_ms == 4 && got.output_bytes == 6 &&
	      got.boxes_created == 8);
	CHECK_OK(store_usage_get(s, "default", 0, 12, &got, &err));
	CHECK_INT(got.executions, 3);
	CHECK_OK(store_usage_get(s, "default", 11, 11, &got, &err));
	CHECK_INT(got.executions, 0);
	CHECK_ERR(store_usage_add(s, "missing", 10, &u, &err), ERR_NOT_FOUND);
}

TEST(a_usage_overflow_is_rejected)
{
	struct store_usage u = { .output_bytes = INT64_MAX }, got;

	STORE(s, dir);
	CHECK_OK(store_usage_add(s, "default", 10, &u, &err));
	CHECK_INT(store_usage_add(s, "default", 10, &u, &err), -1);
	CHECK_OK(store_usage_get(s, "default", 10, 10, &got, &err));
	CHECK(got.output_bytes == INT64_MAX);
}

TEST(a_usage_day_starts_at_midnight_utc)
{
	static const int64_t day = INT64_C(86400000000000);

	CHECK_INT(store_day(0), 0);
	CHECK_INT(store_day(day - 1), 0);
	CHECK_INT(store_day(day), 1);
	CHECK_INT(store_day(-1), -1);
	CHECK_INT(store_day(-day), -1);
	CHECK_INT(store_day(-day - 1), -2);
}

/* Boxes ---- */

TEST(a_box_ends_once_and_keeps_its_first_cause)
{
	struct store_box b = box_of(1), out;

	STORE(s, dir);
	CHECK_OK(store_box_insert(s, &b, &err));
	CHECK_OK(store_box_bury(s, b.id, "lifetime", 5, &err));
	CHECK_ERR(store_box_bury(s, b.id, "operator", 6, &err), ERR_NOT_FOUND);
	CHECK_OK(store_box_get(s, b.id, &out, &err));
	CHECK_STR(out.cause, "lifetime");
	CHECK_INT(out.ended_ns, 5);
	store_box_fini(&out);
}

TEST(deadlines_follow_a_clock_step_once)
{
	const int64_t second = 1000000000, hour = 3600 * second;
	struct store_box b = box_of(1), out;
	int64_t by = 1;

	STORE(s, dir);
	b.ends_ns = 5 * hour;
	b.kept_until_ns = 0;
	CHECK_OK(store_box_insert(s, &b, &err));
	CHECK_OK(store_clocks(s, "boot-1", 7 * hour, &by, &err));
	CHECK_INT(by, 0);
	CHECK_OK(store_clocks(s, "boot-1", 7 * hour + second / 2, &by, &err));
	CHECK_INT(by, 0);
	CHECK_OK(store_clocks(s, "boot-1", 8 * hour, &by, &err));
	CHECK_INT(by, hour);
	CHECK_OK(store_clocks(s, "boot-1", 8 * hour, &by,
			      &err)); /* another server notices it, too */
	CHECK_INT(by, 0);
	CHECK_OK(store_box_get(s, b.id, &out, &err));
	CHECK_INT(out.ends_ns, 6 * hour);
	CHECK_INT(out.kept_until_ns, 0);
	store_box_fini(&out);
	/* The time since another boot is not comparable with this one. */
	CHECK_OK(store_clocks(s, "boot-2", hour, &by, &err));
	CHECK_INT(by, 0);
	CHECK_OK(store_clocks(s, "boot-2", 0, &by, &err));
	CHECK_INT(by, -hour);
	CHECK_OK(store_box_get(s, b.id, &out, &err));
	CHECK_INT(out.ends_ns, 5 * hour);
	store_box_fini(&out);
}

TEST(an_unknown_box_is_not_found)
{
	struct store_box b = box_of(1), out;

	STORE(s, dir);
	CHECK_ERR(store_box_get(s, "aaaaaaaaaaaa", &out, &err), ERR_NOT_FOUND);
	CHECK_ERR(store_box_by_name(s, "default", "", &out, &err), ERR_NOT_FOUND);
	CHECK_ERR(store_box_by_session(s, "default", "", "base", &out, &err), ERR_NOT_FOUND);
	CHECK_ERR(store_box_update(s, &b, &err), ERR_NOT_FOUND);
	CHECK_ERR(store_box_set_state(s, b.id, STORE_BOX_DELETED, "x", 1, &err), ERR_NOT_FOUND);
	CHECK_ERR(store_box_set_times(s, b.id, 1, 2, 3, &err), ERR_NOT_FOUND);
	CHECK_OK(store_box_insert(s, &b, &err));
	CHECK_ERR(store_box_by_name(s, "default", "", &out, &err), ERR_NOT_FOUND);
	CHECK_ERR(store_box_by_session(s, "default", "", "base", &out, &err), ERR_NOT_FOUND);
}

TEST(names_and_sessions_are_unique_among_running_boxes_of_a_team)
{
	struct store_box a = box_of(1), b = box_of(2), out;

	STORE(s, dir);
	strcpy(a.name, "nest");
	strcpy(a.session, "s-1");
	CHECK_OK(store_box_insert(s, &a, &err));
	CHECK_ERR(store_box_insert(s, &a, &err), ERR_CONFLICT);
	strcpy(b.name, "nest");
	CHECK_ERR(store_box_insert(s, &b, &err), ERR_CONFLICT);
	CHECK(strstr(err.msg, "named 'nest'"));
	strcpy(b.name, "other");
	strcpy(b.session, "s-1");
	CHECK_ERR(store_box_insert(s, &b, &err), ERR_CONFLICT);
	CHECK(strstr(err.msg, "session 's-1'"));
	strcpy(b.template, "node"); /* the same session, another template */
	CHECK_OK(store_box_insert(s, &b, &err));
	strcpy(b.name, "nest");
	CHECK_ERR(store_box_update(s, &b, &err), ERR_CONFLICT);

	CHECK_OK(store_box_by_session(s, "default", "s-1", "node", &out, &err));
	CHECK_STR(out.id, b.id);
	store_box_fini(&out);
	CHECK_OK(store_box_set_state(s, a.id, STORE_BOX_DELETED, "idle", 77, &err));
	CHECK_ERR(store_box_by_name(s, "default", "nest", &out, &err), ERR_NOT_FOUND);
	CHECK_OK(store_box_update(s, &b, &err));
	CHECK_OK(store_box_by_name(s, "default", "nest", &out, &err));
	CHECK_STR(out.id, b.id);
	store_box_fini(&out);
	/* The first one cannot be restored. */
	CHECK_ERR(store_box_set_state(s, a.id, STORE_BOX_RUNNING, "", 0, &err), ERR_CONFLICT);
	CHECK_OK(store_box_get(s, a.id, &out, &err));
	CHECK(out.state == STORE_BOX_DELETED && out.ended_ns == 77);
	CHECK_STR(out.cause, "idle");
	store_box_fini(&out);
}

TEST(another_team_may_use_the_same_names)
{
	struct store_box a = box_of(1), b = box_of(2);

	STORE(s, dir);
	strcpy(a.name, "nest");
	b = a;
	strcpy(b.id, id_of(2));
	strcpy(b.team, "blue");
	CHECK_OK(store_box_insert(s, &a, &err));
	CHECK_OK(store_box_insert(s, &b, &err));
}

TEST(an_update_changes_all_fields_of_a_box_except_constant_ones)
{
	struct store_box b = box_of(1), want = rows_box(), out;

	STORE(s, dir);
	CHECK_OK(store_box_insert(s, &b, &err));
	CHECK_OK(store_box_get(s, b.id, &out, &err));
	CHECK_STR(out.metadata, "{}");
	CHECK_STR(out.env, "{}");
	CHECK_STR(out.volumes, "[]");
	store_box_fini(&out);
	strcpy(want.id, b.id);
	CHECK_OK(store_box_update(s, &want, &err));
	CHECK_OK(store_box_get(s, b.id, &out, &err));
	strcpy(want.team, b.team);
	want.created_ns = b.created_ns;
	rows_check_box(&out, &want);
	store_box_fini(&out);
	CHECK_OK(store_box_set_times(s, b.id, 91, 92, 93, &err));
	CHECK_OK(store_box_get(s, b.id, &out, &err));
	CHECK(out.ends_ns == 91 && out.idle_since_ns == 92 && out.kept_until_ns == 93);
	store_box_fini(&out);
}

TEST(metadata_env_and_volumes_must_be_valid_json)
{
	static const char *const bad[] = {
		"{", "[]", "1", "nonsense", "{\"a\":}", "{} {}", "\"\""
	};

	STORE(s, dir);
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		struct store_box b = box_of(1);

		b.metadata = (char *)bad[i];
		CHECK_ERR(store_box_insert(s, &b, &err), ERR_INVALID);
		CHECK(strstr(err.msg, "metadata is a JSON object"));
		b.metadata = NULL;
		b.env = (char *)bad[i];
		CHECK_ERR(store_box_insert(s, &b, &err), ERR_INVALID);
		b.env = NULL;
		b.volumes = (char *)(i == 1 ? "{}" : bad[i]);
		CHECK_ERR(store_box_insert(s, &b, &err), ERR_INVALID);
		b.volumes = NULL;
		b.network = (char *)(i == 1 ? "{}" : bad[i]);
		CHECK_ERR(store_box_insert(s, &b, &err), ERR_INVALID);
	}
}

TEST(the_allowed_hosts_of_a_box_are_stored)
{
	struct store_box b = box_of(1), out;

	STORE(s, dir);
	b.network = (char *)"[\"registry.example:443\"]";
	CHECK_OK(store_box_insert(s, &b, &err));
	CHECK_OK(store_box_get(s, b.id, &out, &err));
	CHECK_STR(out.network, b.network);
	store_box_fini(&out);
}

TEST(the_tier_of_a_box_is_stored_once_and_must_be_an_object)
{
	struct store_box b = box_of(1), out;

	STORE(s, dir);
	b.isolation = (char *)"[]";
	CHECK_ERR(store_box_insert(s, &b, &err), ERR_INVALID);
	CHECK(strstr(err.msg, "isolation is a JSON object"));
	b.isolation = (char *)"{\"tier\":\"gvisor\"}";
	CHECK_OK(store_box_insert(s, &b, &err));
	b.isolation = (char *)"{\"tier\":\"container\"}";
	CHECK_OK(store_box_update(s, &b, &err));
	CHECK_OK(store_box_get(s, b.id, &out, &err));
	CHECK_STR(out.isolation, "{\"tier\":\"gvisor\"}");
	store_box_fini(&out);
}

TEST(a_team_and_a_key_have_a_minimum_tier)
{
	struct store_team t = { .name = "blue", .isolation = "gvisor" }, team;
	struct store_key k, got;
	char text[KEY_TEXT + 1];

	STORE(s, dir);
	CHECK_OK(store_team_put(s, &t, &err));
	CHECK_OK(store_team_get(s, "blue", &team, &err));
	CHECK_STR(team.isolation, "gvisor");
	k = (struct store_key){ .team = "blue", .role = ROLE_OWNER, .isolation = "microvm" };
	CHECK_OK(store_key_make(text, &k, &err));
	CHECK_OK(store_key_add(s, &k, &err));
	CHECK_OK(store_key_get(s, k.id, &got, &err));
	CHECK_STR(got.isolation, "microvm");
	CHECK_OK(store_team_get(s, "default", &team, &err));
	CHECK_STR(team.isolation, "");
}

TEST(states_have_names)
{
	enum store_box_state st;

	for (unsigned i = 0; i < STORE_BOX_STATES; i++) {
		CHECK_INT(store_box_state_parse(store_box_state_name(i), &st), 0);
		CHECK_INT(st, i);
	}
	CHECK_INT(store_box_state_parse("", &st), -1);
	CHECK_STR(store_box_state_name(STORE_BOX_STOPPED), "stopped");
	CHECK_STR(store_box_state_name(STORE_BOX_DELETED), "deleted");
	CHECK(store_box_state_parse("kept", &st) == 0 && st == STORE_BOX_STOPPED);
	CHECK(store_box_state_parse("gone", &st) == 0 && st == STORE_BOX_DELETED);
}

/* Runs ---- */

/* A page of a hundred would be megabytes to parse. */
TEST(lists_can_exclude_states_and_never_have_internal_execs)
{
	static const struct {
		const char *record, *listed;
	} rows[] = {
		{ "{\"a\":\"x,\\\"request\\\":{\",\"b\":1,\"request\":{\"stdin\":\",\\\"request\\\":{\"}}",
		  "{\"a\":\"x,\\\"request\\\":{\",\"b\":1}" },
		{ "{\"request\":{\"stdin\":\"x\"},\"replay_of\":\"y\"}", "{}" },
		{ "{\"a\":1}", "{\"a\":1}" },
		{ "{}", "{}" },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct store_run r = rows_run(), out;
		struct store_runs l;

		STORE(s, dir);
		r.record = (char *)rows[i].record;
		CHECK_OK(store_run_begin(s, &r, &err));
		CHECK_OK(store_run_list(s, &(struct store_run_filter){ 0 }, &l, &err));
		CHECK_INT(l.n, 1);
		CHECK_STR(l.v[0].record, rows[i].listed);
		store_runs_fini(&l);
		CHECK_OK(store_run_get(s, r.id, &out, &err));
		CHECK_STR(out.record, rows[i].record);
		store_run_fini(&out);
	}
	STORE(s, dir);
	struct store_run r = rows_run();
	struct store_runs l;

	strcpy(r.tag, STORE_RUN_HELPER);
	CHECK_OK(store_run_begin(s, &r, &err));
	CHECK_OK(store_run_list(s, &(struct store_run_filter){ 0 }, &l, &err));
	CHECK_INT(l.n, 0);
	store_runs_fini(&l);
	CHECK_OK(
		store_run_list(s, &(struct store_run_filter){ .tag = STORE_RUN_HELPER }, &l, &err));
	CHECK_INT(l.n, 1);
	store_runs_fini(&l);
}

TEST(a_run_starts_and_ends_once)
{
	struct store_run r = rows_run(), out;

	STORE(s, dir);
	CHECK_ERR(store_run_end(s, &r, &err), ERR_NOT_FOUND);
	r.record = "{\"request\":1}";
	CHECK_OK(store_run_begin(s, &r, &err));
	CHECK_ERR(store_run_begin(s, &r, &err), ERR_CONFLICT);
	CHECK_OK(store_run_get(s, r.id, &out, &err));
	CHECK(out.ended_ns == 0 && out.status == 0 && out.output_bytes == 0 && !out.cause[0]);
	CHECK_STR(out.record, "{\"request\":1}");
	store_run_fini(&out);
	r.record = NULL;
	CHECK_OK(store_run_end(s, &r, &err));
	strcpy(r.cause, "memory");
	CHECK_ERR(store_run_end(s, &r, &err), ERR_CONFLICT);
	CHECK(strstr(err.msg, "signal"));
	CHECK_OK(store_run_get(s, r.id, &out, &err));
	CHECK_STR(out.cause, "signal");
	CHECK_INT(out.output_bytes, 43);
	store_run_fini(&out);
	r.ended_ns = 0;
	CHECK_ERR(store_run_end(s, &r, &err), ERR_INVALID);
	CHECK_ERR(store_run_get(s, "", &out, &err), ERR_NOT_FOUND);
}

TEST(a_record_of_a_megabyte_is_stored)
{
	struct store_run r = rows_run(), out;
	size_t n = 1 << 20;
	auto_free char *record = malloc(n + 1);

	STORE(s, dir);
	memset(record, 'x', n);
	record[0] = record[n - 1] = '"';
	record[n] = 0;
	r.record = record;
	CHECK_OK(store_run_begin(s, &r, &err));
	CHECK_OK(store_run_end(s, &r, &err));
	CHECK_OK(store_run_get(s, r.id, &out, &err));
	CHECK(strcmp(out.record, record) == 0);
	store_run_fini(&out);
}

/* Contexts ---- */

static struct store_context rows_context(void)
{
	return (struct store_context){ .id = "cccccccccccc",
				       .box = "aaaaaaaaaaaa",
				       .language = "python",
				       .standing = 1,
				       .created_ns = 51,
				       .cwd = (char *)"/tmp/" ROWS_TEXT,
				       .env = (char *)"{\"A\":\"b\"}",
				       .run = "bbbbbbbbbbbb",
				       .ref = UINT32_MAX,
				       .cell = 3,
				       .from = { 61, 62, UINT64_MAX },
				       .answers = 68,
				       .said = 64,
				       .began_ns = 65,
				       .deadline_ns = 66,
				       .max_output = 67 };
}

TEST(a_context_is_read_with_its_box)
{
	struct store_context c = rows_context();
	struct store_contexts l = { 0 };

	STORE(s, dir);
	CHECK_OK(store_context_insert(s, &c, &err));
	CHECK_ERR(store_context_insert(s, &c, &err), ERR_CONFLICT);
	CHECK_OK(store_context_list(s, "dddddddddddd", &l, &err));
	CHECK_INT(l.n, 0);
	store_contexts_fini(&l);
	CHECK_OK(store_context_list(s, c.box, &l, &err));
	CHECK_INT(l.n, 1);
	CHECK_STR(l.v[0].id, c.id);
	CHECK_STR(l.v[0].language, "python");
	CHECK_STR(l.v[0].cwd, c.cwd);
	CHECK_STR(l.v[0].env, c.env);
	CHECK_STR(l.v[0].run, c.run);
	CHECK(l.v[0].standing == 1 && l.v[0].ref == UINT32_MAX && l.v[0].cell == 3);
	CHECK(!memcmp(l.v[0].from, c.from, sizeof(c.from)) && l.v[0].said == 64 &&
	      l.v[0].answers == 68);
	CHECK(l.v[0].began_ns == 65 && l.v[0].deadline_ns == 66 && l.v[0].max_output == 67);
	store_contexts_fini(&l);
}

TEST(the_cell_number_of_a_context_never_decreases)
{
	struct store_context c = rows_context();
	struct store_contexts l = { 0 };

	STORE(s, dir);
	CHECK_OK(store_context_insert(s, &c, &err));
	strcpy(c.status, "ok");
	CHECK_OK(store_context_update(s, &c, &err));
	c.cell = 2;
	CHECK_ERR(store_context_update(s, &c, &err), ERR_NOT_FOUND);
	c.cell = 4;
	c.status[0] = 0;
	CHECK_OK(store_context_update(s, &c, &err));
	CHECK_OK(store_context_list(s, c.box, &l, &err));
	CHECK(l.v[0].cell == 4 && !l.v[0].status[0]);
	store_contexts_fini(&l);
}

TEST(a_language_has_one_default_context_per_box)
{
	struct store_context c = rows_context();
	struct store_contexts l = { 0 };

	STORE(s, dir);
	CHECK_OK(store_context_insert(s, &c, &err));
	strcpy(c.id, "cccccccccccd");
	CHECK_ERR(store_context_insert(s, &c, &err), ERR_CONFLICT);
	c.standing = 0;
	CHECK_OK(store_context_insert(s, &c, &err));
	CHECK_OK(store_context_delete(s, c.id, &err));
	CHECK_ERR(store_context_delete(s, c.id, &err), ERR_NOT_FOUND);
	CHECK_OK(store_context_drop(s, c.box, &err));
	CHECK_OK(store_context_drop(s, c.box, &err));
	CHECK_OK(store_context_list(s, c.box, &l, &err));
	CHECK_INT(l.n, 0);
}

/* Sets of packages ---- */

static struct store_set a_set(char key, char layer, int64_t at_ns)
{
	struct store_set s = {
		.packages = "numpy pandas==1.5", .bytes = 1000, .files = 7, .created_ns = at_ns
	};

	memset(s.key, key, STORE_HASH);
	memset(s.layer, layer, STORE_HASH);
	strcpy(s.manager, "pip");
	strcpy(s.runtime, "python3.11 1");
	return s;
}

TEST(a_package_set_is_found_by_its_key_and_its_uses_are_counted)
{
	struct store_set s1 = a_set('a', '1', 5), out;
	struct store_sets all;

	STORE(s, dir);
	CHECK_ERR(store_set_get(s, s1.key, &out, &err), ERR_NOT_FOUND);
	CHECK_OK(store_set_put(s, &s1, &err));
	CHECK_OK(store_set_use(s, s1.key, 9, &err));
	CHECK_OK(store_set_get(s, s1.key, &out, &err));
	CHECK_STR(out.packages, "numpy pandas==1.5");
	CHECK_STR(out.layer, s1.layer);
	CHECK(out.uses == 1 && out.used_ns == 9 && out.created_ns == 5);
	store_set_fini(&out);
	/* Installed again it is the same set, in another layer. */
	s1 = a_set('a', '2', 20);
	CHECK_OK(store_set_put(s, &s1, &err));
	CHECK_OK(store_set_list(s, 0, &all, &err));
	CHECK(all.n == 1 && all.v[0].uses == 1 && all.v[0].layer[0] == '2');
	store_sets_fini(&all);
}

TEST(layers_shared_by_sets_count_once_and_the_oldest_is_removed_first)
{
	struct store_set v[] = { a_set('a', '1', 10), a_set('b', '1', 50), a_set('c', '2', 20),
				 a_set('d', '3', 30) };
	char layer[STORE_HASH + 1];
	struct store_set out;
	uint64_t bytes;

	STORE(s, dir);
	CHECK_ERR(store_set_oldest(s, 0, layer, &err), ERR_NOT_FOUND);
	for (unsigned i = 0; i < ARRAY_LEN(v); i++)
		CHECK_OK(store_set_put(s, &v[i], &err));
	CHECK_OK(store_set_bytes(s, &bytes, &err));
	CHECK_INT(bytes, 3000);
	CHECK_OK(store_set_oldest(s, 0, layer, &err));
	CHECK_INT(layer[0], '2'); /* the first one was used by a later set */
	CHECK_OK(store_set_oldest(s, 2, layer, &err));
	CHECK_INT(layer[0], '1');
	CHECK_ERR(store_set_oldest(s, 3, layer, &err), ERR_NOT_FOUND);
	CHECK_OK(store_set_forget(s, layer, &err));
	CHECK_ERR(store_set_get(s, v[0].key, &out, &err), ERR_NOT_FOUND);
	CHECK_ERR(store_set_get(s, v[1].key, &out, &err), ERR_NOT_FOUND);
}
