/* charge.c - see charge.h. */
#include "fleet/charge.h"
#include "base/units.h"
#include "lang/lang.h"
#include "record/record.h"
#include "store/teams.h"

#include <stdio.h>
#include <string.h>

/* A sample of memory counts for at most this time: after a restart the last one is unknown. */
enum { SAMPLE_MOST_MS = 60000 };

void charge_price(struct fleet *f, struct store_charge *c, json_t *record)
{
	const struct fleet_accounts *a = &f->accounts;

	c->day = store_day(fleet_now_ns());
	if (a->price)
		a->price(a->ctx, &c->use, record);
}

void charge_written(struct fleet *f, const struct store_charge *c)
{
	const struct fleet_accounts *a = &f->accounts;

	f->figures.cost_nano += c->use.cost_nano;
	if (a->charged)
		a->charged(a->ctx, c->team, &c->use);
}

int charge_write(struct fleet *f, const struct store_charge *c, struct err *e)
{
	if (store_usage_charge(f->store, c, e) < 0)
		return -1;
	charge_written(f, c);
	return 0;
}

static struct store_charge charge_for(const struct box *b, const char *key)
{
	struct store_charge c = { 0 };

	snprintf(c.team, sizeof(c.team), "%s", b->row.team);
	snprintf(c.key, sizeof(c.key), "%s", key);
	snprintf(c.template, sizeof(c.template), "%s", b->row.template);
	snprintf(c.subject, sizeof(c.subject), "%s", b->row.id);
	return c;
}

struct store_charge charge_exec(struct exec *r, const struct exit_info *end)
{
	struct box *b = r->box;
	struct store_charge c = charge_for(b, r->key);
	const json_t *peak = json_object_get(r->record, "mem_peak");
	uint64_t cpu_us = cause_cpu_us(end);

	/* Texts in parentheses are the daemon's: store/usage.h. */
	snprintf(c.tag, sizeof(c.tag), "%s", r->tag[0] == '(' ? STORE_TAG_OTHER : r->tag);
	snprintf(c.runtime, sizeof(c.runtime), "%s", r->runtime);
	c.use.runs = 1;
	c.use.cpu_us = cpu_us == UINT64_MAX ? 0 : cpu_us;
	if (json_is_integer(peak))
		c.use.memory_mib_ms = units_mib_ms((uint64_t)json_integer_value(peak), end->run_us);
	c.use.output_bytes = r->exited ? r->exit.bytes[0] + r->exit.bytes[1] : 0;
	b->charged.cpu_us += c.use.cpu_us;
	charge_price(b->fleet, &c, r->record);
	return c;
}

/* 0: what the box was charged for is not known now. */
static int charge_known(struct box *b)
{
	struct store_use all;
	struct err e;

	if (b->charged.known)
		return 1;
	run_writer_flush(&b->fleet->run_writer);
	if (store_usage_total(b->fleet->store, b->row.id, "", &all, &e) < 0)
		return 0;
	b->charged.cpu_us = all.cpu_us;
	b->charged.network_bytes = all.network_bytes;
	b->charged.known = 1;
	return 1;
}

static uint64_t charge_grown(uint64_t now, uint64_t *before)
{
	uint64_t more = now > *before ? now - *before : 0;

	*before += more;
	return more;
}

static uint64_t charge_memory(struct box *b, const struct wire_counters *now)
{
	uint64_t ms = loop_now_ms(), since = b->charged.sampled_ms;

	b->charged.sampled_ms = ms;
	if (!since || ms - since > SAMPLE_MOST_MS || now->mem_now == UINT64_MAX)
		return 0;
	return units_mib_ms(now->mem_now, (ms - since) * 1000);
}

void charge_box(struct box *b, const struct wire_counters *now)
{
	struct store_charge c = charge_for(b, b->row.key);

	/* Beside another server neither knows what the other one has charged. */
	if (!b->fleet->alone) {
		b->charged.known = 0;
		b->charged.sampled_ms = 0;
		return;
	}
	if (!b->row.id[0] || !charge_known(b))
		return;
	/* A program that runs is charged when it ends. */
	if (now && !b->nruns && now->cpu_us != UINT64_MAX)
		c.use.cpu_us = charge_grown(b->row.cpu_before_us + now->cpu_us, &b->charged.cpu_us);
	if (now && !b->nruns)
		c.use.memory_mib_ms = charge_memory(b, now);
	c.use.network_bytes = charge_grown(b->way.bytes_out, &b->charged.network_bytes);
	if (!c.use.cpu_us && !c.use.memory_mib_ms && !c.use.network_bytes)
		return;
	snprintf(c.tag, sizeof(c.tag), "%s", STORE_TAG_BOX);
	charge_price(b->fleet, &c, NULL);
	run_writer_charge(&b->fleet->run_writer, &c);
}

void charge_stored(struct box *b)
{
	struct store_charge c = charge_for(b, b->row.key);
	struct err e;

	/* An error leaves 0. */
	(void)!store_usage_disk_rest(b->fleet->store, b->row.limits.disk_bytes, b->row.stored_ns,
				     fleet_now_ns(), &c.use.disk_mib_s, &e);
	if (!b->fleet->alone || !c.use.disk_mib_s)
		return;
	snprintf(c.tag, sizeof(c.tag), "%s", STORE_TAG_BOX);
	charge_price(b->fleet, &c, NULL);
	run_writer_charge(&b->fleet->run_writer, &c);
}

void charge_other(struct fleet *f, struct store_charge *c)
{
	charge_price(f, c, NULL);
	run_writer_charge(&f->run_writer, c);
}

static uint64_t charge_member(const json_t *usage, const char *name)
{
	json_int_t n = json_integer_value(json_object_get(usage, name));

	return n > 0 ? (uint64_t)n : 0;
}

void charge_tokens(struct fleet *f, const char *team, const char *key, const char *subject,
		   const json_t *usage)
{
	struct store_charge c = { .tag = STORE_TAG_MODEL,
				  .use = { .tokens_in = charge_member(usage, "in"),
					   .tokens_out = charge_member(usage, "out") } };

	if (!c.use.tokens_in && !c.use.tokens_out)
		return;
	snprintf(c.team, sizeof(c.team), "%s", team);
	snprintf(c.key, sizeof(c.key), "%s", key);
	snprintf(c.subject, sizeof(c.subject), "%s", subject);
	charge_other(f, &c);
}
