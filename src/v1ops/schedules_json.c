/* schedules_json.c - see schedules_json.h. */
#include "v1ops/schedules_json.h"
#include "record/record.h"
#include "schedule/civil.h"
#include "schedule/schedule.h"
#include "schedule/zone.h"
#include "v1ops/schedule_runs.h"

#include <stdio.h>

#define NS_S INT64_C(1000000000)

/* "2026-12-01T06:00:00+01:00" */
static json_t *schedules_local_json(const struct zone *z, int64_t at_ns)
{
	int32_t offset = zone_offset(z, at_ns / NS_S), minutes = offset / 60;
	struct civil t = civil_of(at_ns / NS_S + offset);
	char text[80];

	snprintf(text, sizeof(text), "%04d-%02u-%02uT%02u:%02u:%02u%c%02d:%02d", t.year, t.month,
		 t.day, t.hour, t.minute, t.second, minutes < 0 ? '-' : '+',
		 (minutes < 0 ? -minutes : minutes) / 60, (minutes < 0 ? -minutes : minutes) % 60);
	return json_string(text);
}

json_t *schedules_times_json(const struct zone *z, const int64_t *times, unsigned n)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(all,
				      json_pack("{s:o, s:o}", "at", json_time((uint64_t)times[i]),
						"local", schedules_local_json(z, times[i])));
	return all;
}

json_t *schedules_tick_json(const struct store_schedule *x, const struct store_tick *t)
{
	json_t *doc =
		json_pack("{s:o, s:s, s:b, s:I, s:s}", "at", json_time((uint64_t)t->at_ns), "state",
			  store_tick_state_name(t->state), "manual", t->manual, "attempt",
			  (json_int_t)t->attempt, "kind", store_schedule_kind_name(x->kind));

	if (t->started_ns) {
		int64_t late = t->started_ns - t->at_ns;

		json_object_set_new(doc, "started", json_time((uint64_t)t->started_ns));
		json_object_set_new(doc, "late",
				    json_boolean(!t->manual && late > SCHEDULE_GRACE_NS));
		json_object_set_new(doc, "late_ms", json_integer(late > 0 ? late / 1000000 : 0));
	}
	if (t->ended_ns)
		json_object_set_new(doc, "ended", json_time((uint64_t)t->ended_ns));
	/* While it starts, the id is chosen, but may not exist yet. */
	if (t->run[0] && t->state != TICK_STARTING)
		json_object_set_new(doc, "run", json_string(t->run));
	if (t->count)
		json_object_set_new(doc, "count", json_integer((json_int_t)t->count));
	if (t->detail[0])
		json_object_set_new(doc, "detail", json_string(t->detail));
	return doc;
}

static void schedules_add_times(struct api *a, const struct store_schedule *x, json_t *doc)
{
	struct schedules *engine = schedule_runs_engine(a->schedules);
	int64_t times[SCHEDULES_SHOWN], now = fleet_now_ns(), first;
	char words[CRON_WORDS] = "";
	struct zone *z = NULL;
	struct cron cron;
	unsigned n = 0;
	struct err e;

	if (cron_parse(&cron, x->expression, &e) == 0)
		cron_words(&cron, words);
	json_object_set_new(doc, "words", json_string(words));
	if (words[0] && x->state == SCHEDULE_ACTIVE && zone_load(&z, x->zone, &e) == 0) {
		first = schedules_next_ns(engine, x->id);
		n = schedule_preview(&cron, z, x->anchor_ns, first ? first - 1 : now, times,
				     SCHEDULES_SHOWN);
		json_object_set_new(doc, "next", schedules_times_json(z, times, n));
		zone_free(z);
	} else {
		json_object_set_new(doc, "next", json_array());
	}
}

/* A schedule must not stop without a warning when its key expires. */
static void schedules_add_warnings(struct api *a, const struct store_schedule *x, json_t *doc)
{
	json_t *all = json_array();
	struct store_key key;
	struct err e;
	char text[200];

	if (x->key[0] && store_key_get(a->store, x->key, &key, &e) == 0 && key.expires_ns) {
		json_t *until = json_time((uint64_t)key.expires_ns);

		snprintf(text, sizeof(text),
			 "the key that created it expires at %s and pauses it then; "
			 "PATCH it with a key that does not expire",
			 json_string_value(until));
		json_array_append_new(all, json_string(text));
		json_decref(until);
	}
	json_object_set_new(doc, "warnings", all);
}

json_t *schedules_json(struct api *a, const struct store_schedule *x, int whole)
{
	json_t *doc = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "id", x->id,
				"name", x->name, "cron", x->expression, "tz", x->zone, "state",
				store_schedule_state_name(x->state), "reason", x->reason, "kind",
				store_schedule_kind_name(x->kind), "who", x->who, "created",
				json_time((uint64_t)x->created_ns), "updated",
				json_time((uint64_t)x->updated_ns)),
	       *settings = json_loads(x->settings ? x->settings : "{}", 0, NULL);
	struct store_ticks last = { 0 };
	struct err e;

	json_object_update_missing(doc, settings);
	json_decref(settings);
	schedules_add_times(a, x, doc);
	schedules_add_warnings(a, x, doc);
	if (store_tick_list(a->store, x->id, 0, SCHEDULES_SHOWN, &last, &e) == 0) {
		json_t *all = json_array();

		for (unsigned i = 0; i < last.n; i++)
			json_array_append_new(all, schedules_tick_json(x, &last.v[i]));
		json_object_set_new(doc, "last", all);
		store_ticks_fini(&last);
	}
	if (whole)
		json_object_set_new(doc, store_schedule_kind_name(x->kind),
				    json_loads(x->request ? x->request : "{}", 0, NULL));
	return doc;
}
