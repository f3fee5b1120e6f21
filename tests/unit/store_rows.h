/* store_rows.h - one row of every table, and a check that all of them still exist. */
#pragma once
#include "store/audit.h"
#include "store/boxes.h"
#include "store/contexts.h"
#include "store/events.h"
#include "store/idempotency.h"
#include "store/keys.h"
#include "store/runs.h"
#include "store/teams.h"
#include "store/volumes.h"
#include "store_dir.h"

#define ROWS_TEXT "'; DROP TABLE boxes; -- \"%s\" \xc3\xa9\xf0\x9f\x90\x9a\t\x01"

static void rows_key(struct store_key *k)
{
	*k = (struct store_key){ .name = "ci",
				 .team = "blue",
				 .role = ROLE_EDITOR,
				 .box = "aaaaaaaaaaaa",
				 .shown = "e2b_0123",
				 .created_ns = 11,
				 .used_ns = 12,
				 .expires_ns = 13 };
	memset(k->hash, 7, sizeof(k->hash));
}

static struct store_box rows_box(void)
{
	return (struct store_box){
		.id = "aaaaaaaaaaaa",
		.team = "blue",
		.name = "nest",
		.session = "s-1",
		.template = "base",
		.boot = "boot-1",
		.state = STORE_BOX_STOPPED,
		.on_timeout = STORE_TIMEOUT_KEEP,
		.created_ns = 21,
		.ends_ns = 22,
		.idle_since_ns = 23,
		.kept_until_ns = 24,
		.stored_ns = 27,
		.lifetime_ms = 25,
		.idle_ms = 26,
		.retention_ms = STORE_FOREVER,
		.layers = UINT64_MAX - 1,
		.limits = { 31, 32, 33, 34, 35, 36 },
		.metadata = (char *)"{\"who\":\"me\"}",
		.env = (char *)"{\"A\":\"b\"}",
		.volumes = (char *)"[\"data\"]",
	};
}

__attribute__((unused)) static struct store_run rows_run(void)
{
	return (struct store_run){
		.id = "bbbbbbbbbbbb",
		.box = "aaaaaaaaaaaa",
		.team = "blue",
		.ref = UINT32_MAX,
		.kind = STORE_RUN_PTY,
		.tag = ROWS_TEXT,
		.started_ns = 41,
		.ended_ns = 42,
		.cause = "signal",
		.status = -9,
		.output_bytes = 43,
		.command = (char *)"[\"sh\"]",
		.record = (char *)"{\"x\":1}",
	};
}

/* One of each. 0, or -1 with err. */
__attribute__((unused)) static int rows_fill(struct store *s)
{
	struct store_team team = { .name = "blue",
				   .created_ns = 1,
				   .plan = "free",
				   .boxes = 2,
				   .executions_per_day = 3,
				   .compute_ms_per_month = 4,
				   .output_bytes_per_day = 5,
				   .requests_per_second = 6 };
	struct store_usage usage = { 1, 2, 3, 4 };
	struct store_box box = rows_box();
	struct store_run run = rows_run();
	struct store_audit audit = { .at_ns = 51,
				     .who = "uid:0",
				     .team = "blue",
				     .action = "box.create",
				     .subject = "aaaaaaaaaaaa",
				     .result = "ok",
				     .detail = (char *)"{\"d\":1}" };
	struct store_event event = { .at_ns = 61,
				     .team = "blue",
				     .box = "aaaaaaaaaaaa",
				     .type = "box.created",
				     .data = (char *)"{\"e\":1}" };
	struct store_volume volume = { .id = "cccccccccccc",
				       .team = "blue",
				       .name = "data",
				       .quota_bytes = 71,
				       .created_ns = 72 };
	struct store_attachment at = { "cccccccccccc", "aaaaaaaaaaaa", "/data", 1 };
	uint8_t hash[SHA256_BYTES] = { 9 };
	struct store_idem idem;
	struct store_key key;

	rows_key(&key);
	return store_team_put(s, &team, &err) < 0 ||
			       store_usage_add(s, "blue", 5, &usage, &err) < 0 ||
			       store_key_add(s, &key, &err) < 0 ||
			       store_box_insert(s, &box, &err) < 0 ||
			       store_run_begin(s, &run, &err) < 0 ||
			       store_run_end(s, &run, &err) < 0 ||
			       store_audit_add(s, &audit, &err) < 0 ||
			       store_event_add(s, &event, &err) < 0 ||
			       store_volume_insert(s, &volume, &err) < 0 ||
			       store_volume_attach(s, &at, 1, &err) < 0 ||
			       store_idem_begin(s, "blue", "k", hash, 81, &idem, &err) < 0 ||
			       store_idem_finish(s, "blue", "k", 201, "text/plain", "a\0b", 3,
						 &err) < 0
		       ? -1
		       : 0;
}

static void rows_check_people(struct store *s)
{
	struct store_team team;
	struct store_usage usage;
	struct store_key want, key;

	CHECK_OK(store_team_get(s, "blue", &team, &err));
	CHECK(team.created_ns == 1 && team.boxes == 2 && team.executions_per_day == 3 &&
	      team.compute_ms_per_month == 4 && team.output_bytes_per_day == 5 &&
	      team.requests_per_second == 6);
	CHECK_OK(store_team_get(s, TEAM_DEFAULT, &team, &err));
	CHECK_OK(store_usage_get(s, "blue", 5, 5, &usage, &err));
	CHECK(usage.executions == 1 && usage.compute_ms == 2 && usage.output_bytes == 3 &&
	      usage.boxes_created == 4);
	rows_key(&want);
	CHECK_OK(store_key_find(s, want.hash, &key, &err));
	CHECK(id_valid(key.id) && key.role == want.role && key.created_ns == want.created_ns &&
	      key.used_ns == want.used_ns && key.expires_ns == want.expires_ns && !key.revoked);
	CHECK_STR(key.name, want.name);
	CHECK_STR(key.team, want.team);
	CHECK_STR(key.box, want.box);
	CHECK_STR(key.shown, want.shown);
}

static void rows_check_box(const struct store_box *box, const struct store_box *want)
{
	CHECK_STR(box->id, want->id);
	CHECK_STR(box->team, want->team);
	CHECK_STR(box->name, want->name);
	CHECK_STR(box->session, want->session);
	CHECK_STR(box->template, want->template);
	CHECK_STR(box->boot, want->boot);
	CHECK_STR(box->cause, want->cause);
	CHECK_STR(box->metadata, want->metadata);
	CHECK_STR(box->env, want->env);
	CHECK_STR(box->volumes, want->volumes);
	CHECK_STR(box->network, want->network ? want->network : "[]");
	CHECK_STR(box->surface, want->surface ? want->surface : "{}");
	CHECK(box->state == want->state && box->on_timeout == want->on_timeout);
	CHECK(box->created_ns == want->created_ns &&
	      box->started_ns == (want->started_ns ? want->started_ns : box->started_ns) &&
	      box->ends_ns == want->ends_ns && box->idle_since_ns == want->idle_since_ns &&
	      box->kept_until_ns == want->kept_until_ns && box->ended_ns == want->ended_ns);
	CHECK(box->lifetime_ms == want->lifetime_ms && box->idle_ms == want->idle_ms &&
	      box->retention_ms == want->retention_ms && box->layers == want->layers);
	CHECK(memcmp(&box->limits, &want->limits, sizeof(box->limits)) == 0);
}

static void rows_check_work(struct store *s)
{
	struct store_box box, want = rows_box();
	struct store_run run;

	CHECK_OK(store_box_get(s, want.id, &box, &err));
	rows_check_box(&box, &want);
	store_box_fini(&box);
	CHECK_OK(store_run_get(s, "bbbbbbbbbbbb", &run, &err));
	CHECK_STR(run.tag, ROWS_TEXT);
	CHECK_STR(run.command, "[\"sh\"]");
	CHECK_STR(run.record, "{\"x\":1}");
	CHECK(run.ref == UINT32_MAX && run.kind == STORE_RUN_PTY && run.started_ns == 41 &&
	      run.ended_ns == 42 && run.status == -9 && run.output_bytes == 43);
	CHECK_STR(run.cause, "signal");
	store_run_fini(&run);
}

static void rows_check_rest(struct store *s)
{
	struct store_audits audits;
	struct store_events events;
	struct store_volume volume;
	struct store_idem idem;
	uint8_t hash[SHA256_BYTES] = { 9 };

	CHECK_OK(store_audit_list(s, &(struct store_audit_filter){ 0 }, &audits, &err));
	CHECK_INT(audits.n, 1);
	CHECK_STR(audits.v[0].detail, "{\"d\":1}");
	store_audits_fini(&audits);
	CHECK_OK(store_event_list(s, 0, "blue", NULL, 0, &events, &err));
	CHECK_INT(events.n, 1);
	CHECK_STR(events.v[0].type, "box.created");
	store_events_fini(&events);
	CHECK_OK(store_volume_find(s, "blue", "data", &volume, &err));
	CHECK_STR(volume.writer, "aaaaaaaaaaaa");
	CHECK_INT(volume.quota_bytes, 71);
	CHECK_OK(store_idem_begin(s, "blue", "k", hash, 82, &idem, &err));
	CHECK(idem.state == IDEM_DONE && idem.status == 201 && idem.len == 3 &&
	      memcmp(idem.body, "a\0b", 4) == 0);
	store_idem_fini(&idem);
}

/* Prints the failed condition, as CHECK does. */
__attribute__((unused)) static void rows_check(struct store *s)
{
	rows_check_people(s);
	if (tap_now == TAP_OK)
		rows_check_work(s);
	if (tap_now == TAP_OK)
		rows_check_rest(s);
}
