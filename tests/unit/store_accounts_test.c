/* Keys and teams of several stores: what is pending, and rows of other stores. */
#include "store/account_changes.h"
#include "store/keys.h"
#include "store/network.h"
#include "store/pipelines.h"
#include "store/secrets.h"
#include "store/teams.h"
#include "store/webhooks.h"
#include "store_dir.h"
#include "tap.h"

static struct store_key key_of(const char *name, uint8_t byte, int64_t created)
{
	struct store_key k = {
		.team = "default", .role = ROLE_EDITOR, .shown = "e2b_0123", .created_ns = created
	};

	snprintf(k.name, sizeof(k.name), "%s", name);
	memset(k.hash, byte, sizeof(k.hash));
	return k;
}

/* Sends what is pending in one store to the other, as the database of a cluster does. Returns how many; -1: it failed. */
static int exchange(struct store *from, struct store *to)
{
	struct store_accounts l = { 0 };
	int n, rc = store_account_pending(from, 100, &l, &err);

	for (unsigned i = 0; rc >= 0 && i < l.n; i++) {
		if (!l.v[i].verify)
			rc = store_account_apply(to, l.v[i].kind, l.v[i].id, l.v[i].row, &err);
		if (rc >= 0)
			rc = store_account_sent(from, &l.v[i], &err);
	}
	n = (int)l.n;
	store_accounts_fini(&l);
	return rc < 0 ? -1 : n;
}

TEST(a_key_and_its_end_reach_the_other_store)
{
	struct store_key k = key_of("ci", 7, 11), got;
	struct store_team t = { .name = "blue", .boxes = 9, .requests_per_second = 3 }, team;

	STORE(a, dir_a);
	STORE(b, dir_b);
	exchange(a, b); /* the team that every store has: verified, not sent */
	CHECK_OK(store_team_put(a, &t, &err));
	snprintf(k.team, sizeof(k.team), "blue");
	CHECK_OK(store_key_add(a, &k, &err));
	CHECK_INT(exchange(a, b), 2);
	CHECK_INT(exchange(a, b), 0);
	CHECK_INT(exchange(b, a), 1); /* the first team of b; nothing that came from a */
	CHECK_OK(store_key_find(b, k.hash, &got, &err));
	CHECK_STR(got.id, k.id);
	CHECK_STR(got.team, "blue");
	CHECK_INT(got.role, ROLE_EDITOR);
	CHECK_OK(store_team_get(b, "blue", &team, &err));
	CHECK_INT(team.boxes, 9);
	CHECK_OK(store_key_touch(b, &got, INT64_C(99000000000000), &err)); /* stays there */
	CHECK_INT(exchange(b, a), 0);
	CHECK_OK(store_key_remove(b, "blue", "ci", &err));
	CHECK_INT(exchange(b, a), 1);
	CHECK(store_key_find(a, k.hash, &got, &err) < 0);
}

TEST(a_change_that_was_not_sent_is_not_overwritten)
{
	struct store_key k = key_of("ci", 7, 11), got;
	struct store_accounts l = { 0 };

	STORE(a, dir_a);
	STORE(b, dir_b);
	CHECK_OK(store_key_add(a, &k, &err));
	exchange(a, b);
	CHECK_OK(store_key_revoke(a, "default", "ci", &err));
	CHECK_OK(store_account_pending(a, 100, &l, &err));
	CHECK_INT(l.n, 1);
	CHECK_INT(store_account_apply(a, "key", k.id, NULL, &err), 0);
	CHECK_OK(store_key_get(a, k.id, &got, &err));
	/* It changes again while it is sent: it stays pending. */
	CHECK_OK(store_key_remove(a, "default", k.id, &err));
	CHECK_OK(store_account_sent(a, &l.v[0], &err));
	store_accounts_fini(&l);
	CHECK_OK(store_account_pending(a, 100, &l, &err));
	CHECK_INT(l.n, 1);
	CHECK(l.v[0].row == NULL);
	store_accounts_fini(&l);
}

TEST(of_two_keys_with_one_name_the_younger_one_is_renamed_in_both_stores)
{
	struct store_key old = key_of("ci", 7, 11), young = key_of("ci", 8, 12), in_a, in_b;

	STORE(a, dir_a);
	STORE(b, dir_b);
	CHECK_OK(store_key_add(a, &young, &err));
	CHECK_OK(store_key_add(b, &old, &err));
	for (unsigned i = 0; i < 3; i++) {
		exchange(a, b);
		exchange(b, a);
	}
	CHECK_OK(store_key_named(a, "default", "ci", &in_a, &err));
	CHECK_OK(store_key_named(b, "default", "ci", &in_b, &err));
	CHECK_STR(in_a.id, old.id);
	CHECK_STR(in_b.id, old.id);
	CHECK_OK(store_key_find(a, young.hash, &in_a, &err));
	CHECK_OK(store_key_find(b, young.hash, &in_b, &err));
	CHECK_STR(in_a.name, in_b.name);
	CHECK(strncmp(in_a.name, "ci-", 3) == 0);
}

TEST(rows_that_are_no_keys_change_nothing)
{
	static const char *const wrong[] = {
		"",
		"{",
		"[]",
		"{}",
		"{\"id\":\"aaaaaaaaaaaa\"}",
		"{\"id\":\"aaaaaaaaaaaa\",\"name\":\"x\",\"team\":\"none\",\"role\":\"owner\",\"box\":\"\","
		"\"hash\":\"0707070707070707070707070707070707070707070707070707070707070707\","
		"\"shown\":\"\",\"created_ns\":1,\"expires_ns\":0,\"revoked\":0,\"isolation\":\"\"}",
		"{\"id\":\"aaaaaaaaaaaa\",\"name\":\"x\",\"team\":\"default\",\"role\":\"king\",\"box\":\"\","
		"\"hash\":\"0707070707070707070707070707070707070707070707070707070707070707\","
		"\"shown\":\"\",\"created_ns\":1,\"expires_ns\":0,\"revoked\":0,\"isolation\":\"\"}",
	};
	struct store_keys keys;

	STORE(s, dir);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK_INT(store_account_apply(s, "key", "aaaaaaaaaaaa", wrong[i], &err), -1);
	CHECK_INT(store_account_apply(s, "box", "aaaaaaaaaaaa", "{}", &err), -1);
	CHECK_OK(store_key_list(s, NULL, NULL, 10, &keys, &err));
	CHECK_INT(keys.n, 0);
	store_keys_fini(&keys);
}

TEST(a_mirrored_key_or_team_of_a_node_is_not_sent)
{
	struct store_key k = key_of("", 7, 11);

	STORE(a, dir_a);
	STORE(b, dir_b);
	exchange(a, b);
	CHECK_OK(store_team_mirror(a, "blue", "microvm", 5, &err));
	CHECK_OK(id_new(k.id, &err));
	CHECK_OK(store_key_mirror(a, &k, &err));
	CHECK_INT(exchange(a, b), 0);
	CHECK_OK(store_account_verify_all(a, &err));
	CHECK_INT(exchange(a, b), 2); /* two teams, to verify; no key */
}

TEST(what_a_team_sets_reaches_the_other_store)
{
	struct store_secret secret = { .team = "default",
				       .name = "TOKEN",
				       .key = "0123456789abcdef",
				       .sealed = (void *)"\0sealed\xff",
				       .sealed_n = 8,
				       .updated_ns = 5 },
			    got = { 0 };
	struct store_webhook hook = { .team = "default",
				      .name = "all",
				      .format = "atoll",
				      .url = "http://127.0.0.1/",
				      .events = "[\"box.*\"]",
				      .sealed = (void *)"x",
				      .sealed_n = 1,
				      .enabled = 1,
				      .created_ns = 7 },
			     other = { 0 };
	struct store_policy policy = { .scan = "warn", .forgetful = 1 }, read;
	char *rules = NULL;

	STORE(a, dir_a);
	STORE(b, dir_b);
	exchange(a, b);
	exchange(b, a);
	CHECK_OK(id_new(hook.id, &err));
	CHECK_OK(store_secret_put(a, &secret, &err));
	CHECK_OK(store_webhook_add(a, &hook, 10, &err));
	CHECK_OK(store_policy_put(a, "default", &policy, &err));
	CHECK_OK(store_network_rules_put(a, "default", "[\"example.org\"]", &err));
	CHECK_INT(exchange(a, b), 4);
	CHECK_INT(exchange(b, a), 0); /* nothing that came from a */
	CHECK_OK(store_secret_find(b, "default", "TOKEN", &got, &err));
	CHECK_INT(got.version, 1);
	CHECK_INT(got.sealed_n, 8);
	CHECK(memcmp(got.sealed, secret.sealed, 8) == 0);
	CHECK_STR(got.hosts, "[]");
	store_secret_fini(&got);
	CHECK_OK(store_webhook_find(b, "default", "all", &other, &err));
	CHECK_STR(other.id, hook.id);
	CHECK_STR(other.events, hook.events);
	store_webhook_fini(&other);
	CHECK_OK(store_policy_get(b, "default", &read, &err));
	CHECK_STR(read.scan, "warn");
	CHECK_OK(store_network_rules_get(b, "default", &rules, &err));
	CHECK_STR(rules, "[\"example.org\"]");
	free(rules);
	/* The figures of a webhook are those of each machine. */
	CHECK_OK(store_webhook_find(b, "default", "all", &other, &err));
	CHECK_INT(store_webhook_arrived(b, hook.id, other.seq, other.seq + 3, 3, 9, &err), 1);
	store_webhook_fini(&other);
	CHECK_INT(exchange(b, a), 0);
	CHECK_OK(store_secret_remove(b, "default", "TOKEN", &err));
	CHECK_OK(store_network_rules_put(b, "default", NULL, &err));
	CHECK_INT(exchange(b, a), 2);
	CHECK(store_secret_find(a, "default", "TOKEN", &got, &err) < 0);
	CHECK_OK(store_network_rules_get(a, "default", &rules, &err));
	CHECK(!rules);
	/* A secret can be made again; rows of other forms change nothing. */
	CHECK_OK(store_secret_put(a, &secret, &err));
	CHECK_INT(exchange(a, b), 1);
	CHECK(store_account_apply(b, "secret", "default/TOKEN", "{\"team\": \"default\"}", &err) <
	      0);
	CHECK(store_account_apply(b, "secret", "default/OTHER",
				  "{\"team\": \"default\", \"name\": \"X\", \"sealed\": \"zz\"}",
				  &err) < 0);
	CHECK(store_account_apply(b, "network", "unknown", "{\"rules\": []}", &err) < 0);
}

TEST(a_node_removes_secrets_that_nothing_names)
{
	struct store_secret x = { .team = "default",
				  .name = "TOKEN",
				  .key = "0123456789abcdef",
				  .sealed = (void *)"sealed",
				  .sealed_n = 6 };
	struct store_shared_rows l = { 0 };

	STORE(s, dir);
	CHECK_OK(store_secret_put(s, &x, &err));
	snprintf(x.name, sizeof(x.name), "OWN"); /* not from a gateway */
	CHECK_OK(store_secret_put(s, &x, &err));
	CHECK_OK(store_shared_mark(s, "secret", "default/TOKEN", 100, &err));
	CHECK_OK(store_shared_prune(s, 100, &err));
	CHECK_OK(store_shared_marked(s, 1, &l, &err));
	CHECK_INT(l.n, 1);
	CHECK_STR(l.v[0].id, "default/TOKEN");
	store_shared_rows_fini(&l);
	CHECK_OK(store_shared_prune(s, 101, &err));
	CHECK_OK(store_shared_marked(s, 1, &l, &err));
	CHECK_INT(l.n, 0);
	store_shared_rows_fini(&l);
	CHECK(store_secret_find(s, "default", "TOKEN", &x, &err) < 0);
	x = (struct store_secret){ 0 };
	CHECK_OK(store_secret_find(s, "default", "OWN", &x, &err));
	store_secret_fini(&x);
}
