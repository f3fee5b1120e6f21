/* prove.c - see prove.h. The order of one proof:
 *
 *   canaries            files, processes and sockets of the host
 *   box B               holds sockets and files of its own; another team's box
 *   box A               the probe attempts everything, then waits
 *   while both run      their processes are read from /proc, the filters of their threads evaluated
 *   effects             what arrived at the canaries and in box B
 *   box C               one bomb after the other
 *   end                 all boxes are killed; what is left */
#include "prove/prove.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "client/keeper_sync.h"
#include "prove/prove_internal.h"
#include "record/record.h"
#include "tier/tier.h"
#include "tier/wasm.h"
#include "wire/sock.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int prove_has_guest_kernel(const struct prove_run *r)
{
	return r->want->tier == WIRE_TIER_GVISOR || r->want->tier == WIRE_TIER_MICROVM;
}

int prove_is_promised(unsigned tier, const char *probe, const char *way)
{
	/* Without namespaces: what the kernel shows of the host, and limits that belong to a user namespace. Landlock hides
	 * the content of files, not that they exist. */
	static const char *const not_promised[][2] = {
		{ "processes", "namespaces" }, { "identity", "host name" },
		{ "identity", "boot id" },     { "identity", "cgroup path" },
		{ "kernel", "sysfs" },         { "kernel", "inotify instances" },
	};

	for (unsigned i = 0; tier == WIRE_TIER_PROCESS && i < ARRAY_LEN(not_promised); i++)
		if (!strcmp(probe, not_promised[i][0]) && !strcmp(way, not_promised[i][1]))
			return 0;
	return 1;
}

void prove_note(struct prove_run *r, enum prove_verdict v, const char *probe, const char *way,
		const char *attempt, const char *fmt, ...)
{
	static const char *const names[] = { "passed", "failed", "skipped", "absent" };
	char observed[240];
	json_t *row;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(observed, sizeof(observed), fmt, ap);
	va_end(ap);
	if (v == PROVE_FAILS && !prove_is_promised(r->want->tier, probe, way))
		v = PROVE_ABSENT;
	r->failed += v == PROVE_FAILS;
	r->skipped += v == PROVE_SKIPPED;
	row = json_pack("{s:s, s:s, s:s, s:o, s:s}", "probe", probe, "way", way, "attempt", attempt,
			"observed", json_stringn(observed, strlen(observed)), "verdict", names[v]);
	if (!row) /* text of a box that is not UTF-8 */
		row = json_pack("{s:s, s:s, s:s, s:s, s:s}", "probe", "output", "way", "text",
				"attempt", "", "observed", "a text that is not UTF-8", "verdict",
				names[v]);
	json_array_append_new(r->rows, row);
	if (r->want->each)
		r->want->each(r->want->ctx, row);
}

/* ---- the words of the probe ---- */

struct prove_words {
	const char *v[60];
	char text[60][160];
	unsigned n;
};

static void prove_word(struct prove_words *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void prove_word(struct prove_words *w, const char *fmt, ...)
{
	va_list ap;

	if (w->n + 1 >= ARRAY_LEN(w->v))
		return;
	va_start(ap, fmt);
	vsnprintf(w->text[w->n], sizeof(w->text[0]), fmt, ap);
	va_end(ap);
	w->v[w->n] = w->text[w->n];
	w->v[++w->n] = NULL;
}

/* Addresses of the host, at most four, without those that only its own links know. */
static void prove_words_addresses(struct prove_words *w)
{
	struct ifaddrs *list = NULL;
	unsigned n = 0;

	if (getifaddrs(&list) < 0)
		return;
	for (struct ifaddrs *i = list; i && n < 4; i = i->ifa_next) {
		char text[INET6_ADDRSTRLEN] = "";

		if (!i->ifa_addr)
			continue;
		if (i->ifa_addr->sa_family == AF_INET)
			inet_ntop(AF_INET, &((struct sockaddr_in *)i->ifa_addr)->sin_addr, text,
				  sizeof(text));
		else if (i->ifa_addr->sa_family == AF_INET6)
			inet_ntop(AF_INET6, &((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr, text,
				  sizeof(text));
		if (!*text || !strncmp(text, "127.", 4) || !strcmp(text, "::1") ||
		    !strncmp(text, "fe80", 4))
			continue;
		prove_word(w, "addr=%s", text);
		n++;
	}
	freeifaddrs(list);
}

static unsigned prove_other_port(const struct prove_run *r)
{
	return 20000 + r->canary.tcp_port % 10000;
}

static void prove_words_other(const struct prove_run *r, struct prove_words *w)
{
	prove_word(w, "hold");
	prove_word(w, "canary=%s", r->canary.other);
	prove_word(w, "tcp=%u", prove_other_port(r));
	prove_word(w, "abstract=other-%.20s", r->canary.token);
}

static void prove_words_attempts(const struct prove_run *r, struct prove_words *w)
{
	const struct prove_canary *c = &r->canary;

	prove_word(w, "attempt");
	prove_word(w, "folder=%s", c->folder);
	prove_word(w, "file=%s/canary", c->folder);
	prove_word(w, "handle=%s", c->handle);
	prove_word(w, "handle_type=%d", c->handle_type);
	prove_word(w, "pid=%d", c->process);
	prove_word(w, "token=%s", c->token);
	prove_word(w, "tcp=%u", c->tcp_port);
	prove_word(w, "udp=%u", c->udp_port);
	prove_word(w, "vsock=%u", c->vsock_port);
	prove_word(w, "abstract=%s", c->abstract_name);
	prove_word(w, "path=%s", c->socket_path);
	prove_words_addresses(w);
	prove_word(w, "other_tcp=%u", prove_other_port(r));
	prove_word(w, "other_abstract=other-%.20s", c->token);
	if (r->b.handle.about.init_pid)
		prove_word(w, "other_pid=%d", r->b.handle.about.init_pid);
}

/* ---- the proof ---- */

int prove_until(struct prove_box *x, const char *text, const char *what, struct err *e)
{
	int gone = prove_box_until(x, text, e);

	if (gone < 0)
		return -1;
	if (gone || (text && x->exited))
		return err_set(e, ERR_SYS, "%s ended early: why %u, status %d, step %.24s", what,
			       x->exit.why, x->exit.status, x->exit.step);
	return 0;
}

static int prove_attempts_in_boxes(struct prove_run *r, struct err *e)
{
	struct prove_words hold = { .n = 0 }, attempt = { .n = 0 };
	struct wire_limits usual = box_default_limits();

	prove_words_other(r, &hold);
	if (r->want->on_host) {
		prove_words_attempts(r, &attempt);
		prove_word(&attempt, "only_pid=%d", r->canary.process);
		return prove_on_host(r, hold.v, attempt.v, e);
	}
	if (prove_box_create(r, &r->b, &usual, e) < 0 ||
	    prove_box_create(r, &r->a, &usual, e) < 0 ||
	    prove_box_start(r, &r->b, hold.v, 0, 0, e) < 0 ||
	    prove_until(&r->b, "\"way\": \"listens\"", "the program of the second box", e) < 0)
		return -1;
	prove_words_attempts(r, &attempt);
	if (prove_box_start(r, &r->a, attempt.v, 0, 0, e) < 0 ||
	    prove_until(&r->a, "\"probe\": \"end\"", "the probe", e) < 0)
		return -1;
	prove_judge_processes(r);
	prove_judge_outer_box(r);
	if (prove_box_close_stdin(&r->a, e) < 0 || prove_box_close_stdin(&r->b, e) < 0 ||
	    prove_until(&r->a, NULL, "the probe", e) < 0 || prove_box_until(&r->b, NULL, e) < 0)
		return -1;
	return 0;
}

static int prove_in_boxes(struct prove_run *r, struct err *e)
{
	if (prove_attempts_in_boxes(r, e) < 0)
		return -1;
	prove_judge_attempts(r);
	prove_judge_identity(r);
	return r->want->on_host ? 0 : prove_judge_limits(r, e);
}

static int prove_all(struct prove_run *r, struct err *e)
{
	if (canary_init(&r->canary, e) < 0 ||
	    (r->want->modules ? prove_modules(r, e) : prove_in_boxes(r, e)) < 0)
		return -1;
	if (prove_box_end(r, &r->a, NULL, e) < 0 || prove_box_end(r, &r->b, NULL, e) < 0 ||
	    prove_box_end(r, &r->bomb, NULL, e) < 0)
		return -1;
	if (!r->want->on_host)
		prove_judge_remains(r);
	return 0;
}

/* Facts of the tier; a keeper of an older version has none, and makes containers only. */
static int prove_facts(struct prove_run *r, struct err *e)
{
	struct {
		struct frame head;
		struct wire_tier_facts f[16];
	} reply;
	struct frame ask = sock_head(WIRE_TIERS, 0);
	struct answer a = { .want = WIRE_TIERS_REPLY, .to = &reply, .room = sizeof(reply) };

	if (keeper_sync_info(&r->keeper, &r->info, e) < 0)
		return -1;
	if (!(r->info.head.flags & WIRE_INFO_TIERS)) {
		if (r->want->tier == WIRE_TIER_CONTAINER)
			return 0;
		return err_set(e, ERR_INVALID, "this keeper makes boxes of tier container only");
	}
	if (link_ask(&r->keeper, &ask, sizeof(ask), &a, e) < 0)
		return err_in(e, "facts of the tiers");
	for (unsigned i = 0; i < (a.len - sizeof(reply.head)) / sizeof(reply.f[0]); i++)
		if (reply.f[i].tier == r->want->tier) {
			r->facts = reply.f[i];
			if (r->facts.state != WIRE_TIER_OFFERED)
				return err_set(e, ERR_NOT_FOUND, "%s: %.200s", r->want->tier_name,
					       r->facts.reason);
			return 0;
		}
	return err_set(e, ERR_NOT_FOUND, "%s: this build has no such tier", r->want->tier_name);
}

void prove_keys_of(struct prove_keys *k, const char *tier, const char *settings,
		   const struct wire_tier_facts *f)
{
	prove_keys_here(k, tier, settings);
	snprintf(k->engine, sizeof(k->engine), "%.*s", STORE_PROOF_KEY, f->engine);
	snprintf(k->version, sizeof(k->version), "%.*s", (int)sizeof(f->version), f->version);
	snprintf(k->engine_sha256, sizeof(k->engine_sha256), "%.64s", f->sha256);
	snprintf(k->platform, sizeof(k->platform), "%.*s", (int)sizeof(f->platform), f->platform);
}

static int prove_result(struct prove_run *r, uint64_t began_ns, struct store_proof *out,
			struct err *e)
{
	struct prove_keys k;
	struct timespec now;

	prove_keys_of(&k, r->want->tier_name, r->want->settings, &r->facts);
	clock_gettime(CLOCK_REALTIME, &now);
	*out = (struct store_proof){ .at_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec,
				     .duration_us = (now_ns() - began_ns) / 1000,
				     .passed = !r->failed,
				     .failed = r->failed };
	if (id_new(out->id, e) < 0)
		return -1;
	snprintf(out->tier, sizeof(out->tier), "%s", k.tier);
	memcpy(out->kernel, k.kernel, sizeof(out->kernel));
	memcpy(out->engine, k.engine, sizeof(out->engine));
	memcpy(out->version, k.version, sizeof(out->version));
	memcpy(out->engine_sha256, k.engine_sha256, sizeof(out->engine_sha256));
	memcpy(out->platform, k.platform, sizeof(out->platform));
	memcpy(out->build, k.build, sizeof(out->build));
	memcpy(out->settings, k.settings, sizeof(out->settings));
	out->probes = json_dumps(r->rows, JSON_COMPACT);
	if (!out->probes)
		abort();
	return 0;
}

void prove_want_tier(struct prove_want *w, unsigned tier)
{
	w->tier = tier;
	w->tier_name = tier_name(tier);
	w->modules = tier == WIRE_TIER_WASM ? WASM_FOLDER : NULL;
}

int prove_run(const struct prove_want *w, struct store_proof *out, struct err *e)
{
	struct prove_run r = { .want = w, .keeper.fd = -1 };
	uint64_t began = now_ns();
	int rc;

	if (geteuid() != 0)
		return err_set(
			e, ERR_INVALID,
			"a proof examines processes of other users: run it as root (sudo atoll prove)");
	r.rows = json_array();
	rc = keeper_sync_open(&r.keeper, w->start_keeper, e);
	if (rc == 0)
		rc = prove_facts(&r, e);
	if (rc == 0)
		rc = prove_all(&r, e);
	prove_box_drop(&r, &r.a);
	prove_box_drop(&r, &r.b);
	prove_box_drop(&r, &r.bomb);
	canary_fini(&r.canary);
	keeper_sync_close(&r.keeper);
	if (rc == 0)
		rc = prove_result(&r, began, out, e);
	json_decref(r.rows);
	return rc;
}

/* ---- JSON ---- */

json_t *prove_json(const struct store_proof *p, int whole)
{
	int64_t until = p->at_ns + PROVE_DAYS * INT64_C(86400) * 1000000000;
	json_t *doc =
		json_pack("{s:s, s:s, s:b, s:i, s:f, s:o, s:o, s:s, s:s, s:s, s:s, s:s, s:s, s:s}",
			  "id", p->id, "tier", p->tier, "passed", p->passed, "failed",
			  (int)p->failed, "seconds", (double)p->duration_us / 1e6, "at",
			  json_time((uint64_t)p->at_ns), "expires", json_time((uint64_t)until),
			  "kernel", p->kernel, "engine", p->engine, "version", p->version,
			  "engine_sha256", p->engine_sha256, "platform", p->platform, "build",
			  p->build, "settings_sha256", p->settings);

	if (whole)
		json_object_set_new(doc, "probes", json_loads(p->probes, 0, NULL));
	return doc;
}

char *prove_pack(const struct store_proof *p)
{
	json_t *doc = prove_json(p, 1);
	char *text;

	json_object_set_new(doc, "at_ns", json_integer(p->at_ns));
	json_object_set_new(doc, "duration_us", json_integer((json_int_t)p->duration_us));
	text = json_dumps(doc, JSON_COMPACT);
	json_decref(doc);
	if (!text)
		abort();
	return text;
}

static void prove_read_text(const json_t *doc, const char *name, char *out, size_t size)
{
	const char *text = json_string_value(json_object_get(doc, name));

	snprintf(out, size, "%s", text ? text : "");
}

int prove_unpack(const json_t *doc, struct store_proof *out, struct err *e)
{
	json_t *probes = json_object_get(doc, "probes");

	*out = (struct store_proof){ 0 };
	prove_read_text(doc, "id", out->id, sizeof(out->id));
	prove_read_text(doc, "tier", out->tier, sizeof(out->tier));
	prove_read_text(doc, "kernel", out->kernel, sizeof(out->kernel));
	prove_read_text(doc, "engine", out->engine, sizeof(out->engine));
	prove_read_text(doc, "version", out->version, sizeof(out->version));
	prove_read_text(doc, "engine_sha256", out->engine_sha256, sizeof(out->engine_sha256));
	prove_read_text(doc, "platform", out->platform, sizeof(out->platform));
	prove_read_text(doc, "build", out->build, sizeof(out->build));
	prove_read_text(doc, "settings_sha256", out->settings, sizeof(out->settings));
	out->at_ns = json_integer_value(json_object_get(doc, "at_ns"));
	out->duration_us = (uint64_t)json_integer_value(json_object_get(doc, "duration_us"));
	out->passed = json_is_true(json_object_get(doc, "passed"));
	out->failed = (unsigned)json_integer_value(json_object_get(doc, "failed"));
	if (!id_valid(out->id) || !out->tier[0] || !json_is_array(probes) || out->at_ns <= 0 ||
	    out->passed != !out->failed)
		return err_set(e, ERR_INVALID, "this is not a proof");
	out->probes = json_dumps(probes, JSON_COMPACT);
	return 0;
}
