/* place - simulates placement over a fleet: many gateways, each with its own view of the nodes.
 *
 *   nodes of three sizes   --heartbeat-->   gateways   --box-->   nodes, which refuse when they are full
 *
 * Requests arrive at random gateways. Templates are requested by Zipf's law, and a node keeps the templates
 * that it used last ready (warm). The fleet starts with the load of the run, placed by the same policy. With
 * --trace FILE the requests come from a file instead: lines "seconds template memory_mib lifetime_s", by time.
 * Prints the distribution of load, warm starts, refusals and failures; --check compares with the limits. */
#include "cluster/place.h"
#include "base/cleanup.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STEP_MS = 10, STEPS = 1 << 17, WARM_MOST = 256, TEMPLATES_MOST = 10000 };
#define MIB (UINT64_C(1) << 20)

static struct settings {
	unsigned nodes, gateways, templates, warm, seconds, heartbeat_ms;
	double creates, load, zipf, lifetime_s;
	enum place_policy policy;
	const char *trace;
	int check;
} set = { .nodes = 1000,
	  .gateways = 20,
	  .templates = 200,
	  .warm = 32,
	  .seconds = 20,
	  .heartbeat_ms = 1000,
	  .creates = 10000,
	  .load = 0.7,
	  .zipf = 1.1,
	  .lifetime_s = 100 };

struct node {
	uint64_t memory, used;
	uint16_t warm[WARM_MOST]; /* the newest first */
	unsigned nwarm;
};

struct box {
	unsigned node, next; /* next in its step; 0: none */
	uint64_t memory;
};

static struct node *nodes;
static struct place **views;
static struct box *boxes;
static unsigned *ends; /* by step: the first box that ends in it */
static unsigned free_box, nboxes, room;
static double *zipf;
static struct {
	uint64_t creates, attempts, refused, failed, warm, choices;
	double choose_s;
} seen;

static uint64_t random_state = 88172645463325252u;
static double uniform(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (double)(random_state >> 11) / 9007199254740992.0;
}

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "place: %s\n", what);
	exit(2);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- nodes ---- */

/* 1: the template was ready there. It is the newest afterwards. */
static int use_template(struct node *x, unsigned template)
{
	unsigned i = 0;
	int warm;

	while (i < x->nwarm && x->warm[i] != template)
		i++;
	warm = i < x->nwarm;
	if (!warm && x->nwarm < set.warm)
		i = x->nwarm++;
	else if (!warm)
		i = x->nwarm - 1;
	memmove(x->warm + 1, x->warm, i * sizeof(x->warm[0]));
	x->warm[0] = (uint16_t) template;
	return warm;
}

static void add_box(unsigned node, uint64_t memory, unsigned end)
{
	unsigned i = free_box;

	if (i)
		free_box = boxes[i].next;
	else {
		if (++nboxes >= room) {
			room = room ? room * 2 : 1 << 20;
			boxes = realloc(boxes, room * sizeof(*boxes));
			if (!boxes)
				die("out of memory");
		}
		i = nboxes;
	}
	end %= STEPS;
	boxes[i] = (struct box){ node, ends[end], memory };
	ends[end] = i;
	nodes[node].used += memory;
}

static void end_boxes(unsigned step)
{
	unsigned *head = &ends[step % STEPS];

	while (*head) {
		unsigned i = *head;

		*head = boxes[i].next;
		nodes[boxes[i].node].used -= boxes[i].memory;
		boxes[i].next = free_box;
		free_box = i;
	}
}

static void heartbeat(unsigned node)
{
	struct place_figures f = { .memory = nodes[node].memory,
				   .memory_free = nodes[node].memory - nodes[node].used,
				   .arch = "x86_64" };
	struct err e;

	for (unsigned g = 0; g < set.gateways; g++)
		if (place_update(views[g], node, &f, &e) < 0)
			die(e.msg);
}

/* ---- requests ---- */

static unsigned draw_template(void)
{
	double u = uniform() * zipf[set.templates - 1];
	unsigned low = 0, high = set.templates - 1;

	while (low < high) {
		unsigned mid = (low + high) / 2;

		if (zipf[mid] < u)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void create(unsigned template, uint64_t memory, unsigned step, unsigned steps)
{
	struct place *view = views[(unsigned)(uniform() * set.gateways)];
	unsigned tried[PLACE_ATTEMPTS];
	struct place_request r = { .memory = memory, .node = -1, .tried = tried };
	char name[16];
	struct err e;

	snprintf(name, sizeof(name), "t%u", template);
	r.template = name;
	seen.creates++;
	for (; r.ntried < PLACE_ATTEMPTS; r.ntried++) {
		double began = seen.choices++ % 64 ? 0 : now_s();
		int n = place_choose(view, &r, (uint64_t)step * STEP_MS, &e);

		if (began > 0)
			seen.choose_s += now_s() - began;
		if (n < 0)
			break;
		seen.attempts++;
		if (nodes[n].used + memory <= nodes[n].memory) {
			seen.warm += (unsigned)use_template(&nodes[n], template);
			add_box((unsigned)n, memory, step + (steps ? steps : 1));
			return;
		}
		seen.refused++;
		tried[r.ntried] = (unsigned)n;
	}
	seen.failed++;
}

static unsigned draw_steps(void)
{
	double s = -log(1 - uniform()) * set.lifetime_s;
	double most = (double)STEPS * STEP_MS / 1000 - 1;

	return (unsigned)((s < most ? s : most) * 1000 / STEP_MS);
}

/* The boxes that would be there after a long run: lifetimes are exponential, so what is left of them is, too. */
static void fill(uint64_t memory)
{
	double live = set.creates * set.lifetime_s;

	for (unsigned i = 0; i < live; i++) {
		if (i % 1000 == 0)
			for (unsigned n = 0; n < set.nodes; n++)
				if (i / 1000 % 10 == n % 10)
					heartbeat(n);
		create(draw_template(), memory, 0, draw_steps());
	}
	memset(&seen, 0, sizeof(seen));
}

/* ---- a run ---- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double spread(double *out_mean)
{
	double *load = calloc(set.nodes, sizeof(*load)), sum = 0, p99;

	if (!load)
		die("out of memory");
	for (unsigned i = 0; i < set.nodes; i++)
		sum += load[i] = (double)nodes[i].used / (double)nodes[i].memory;
	qsort(load, set.nodes, sizeof(*load), by_value);
	p99 = load[(unsigned)(0.99 * (set.nodes - 1))];
	free(load);
	*out_mean = sum / set.nodes;
	return p99;
}

static void heartbeats(unsigned step)
{
	unsigned every = set.heartbeat_ms / STEP_MS ? set.heartbeat_ms / STEP_MS : 1;

	for (unsigned i = step % every; i < set.nodes; i += every)
		heartbeat(i);
}

static void run_synthetic(uint64_t memory)
{
	double due = 0;

	for (unsigned step = 1; step <= set.seconds * 1000 / STEP_MS; step++) {
		end_boxes(step);
		heartbeats(step);
		for (due += set.creates * STEP_MS / 1000; due >= 1; due--)
			create(draw_template(), memory, step, draw_steps());
	}
}

static void run_trace(FILE *f)
{
	double at, lifetime, mib;
	char name[64];
	unsigned step = 0, line = 0, at_step;

	for (int n; (n = fscanf(f, "%lf %63s %lf %lf", &at, name, &mib, &lifetime)) != EOF;) {
		line++;
		if (n != 4 || !(at >= 0 && at < 1e7) || !(mib > 0 && mib < 1e9) ||
		    !(lifetime >= 0) || at * 1000 / STEP_MS < step) {
			fprintf(stderr,
				"place: line %u of the trace: expected 'seconds template memory_mib lifetime_s', by time\n",
				line);
			exit(2);
		}
		at_step = (unsigned)(at * 1000 / STEP_MS);
		for (; step < at_step; step++) {
			end_boxes(step + 1);
			heartbeats(step + 1);
		}
		lifetime = lifetime * 1000 / STEP_MS;
		create((unsigned)strtoul(name + strcspn(name, "0123456789"), NULL, 10) %
			       TEMPLATES_MOST,
		       (uint64_t)(mib * (double)MIB), step,
		       (unsigned)(lifetime < STEPS - 1 ? lifetime : STEPS - 1));
	}
}

static void set_up(uint64_t memory)
{
	static const unsigned sizes[] = { 1, 2, 4 };
	double total = 0, unit;
	struct err e;

	nodes = calloc(set.nodes, sizeof(*nodes));
	views = calloc(set.gateways, sizeof(*views));
	ends = calloc(STEPS, sizeof(*ends));
	zipf = calloc(set.templates, sizeof(*zipf));
	if (!nodes || !views || !ends || !zipf)
		die("out of memory");
	for (unsigned i = 0; i < set.nodes; i++)
		total += sizes[i % 3];
	unit = set.creates * set.lifetime_s * (double)memory / set.load / total;
	for (unsigned i = 0; i < set.nodes; i++)
		nodes[i].memory = (uint64_t)(unit * sizes[i % 3]);
	for (unsigned i = 0; i < set.templates; i++)
		zipf[i] = (i ? zipf[i - 1] : 0) + pow(i + 1, -set.zipf);
	for (unsigned i = 0; i < set.gateways; i++)
		if (place_new(&views[i], set.policy, i, &e) < 0)
			die(e.msg);
	for (unsigned i = 0; i < set.nodes; i++)
		heartbeat(i);
}

static int report(void)
{
	double mean, p99 = spread(&mean);
	double warm = 100.0 * (double)seen.warm / (double)(seen.creates ? seen.creates : 1);
	double refused = 100.0 * (double)seen.refused / (double)(seen.attempts ? seen.attempts : 1);
	double failed = 100.0 * (double)seen.failed / (double)(seen.creates ? seen.creates : 1);
	int ok = warm >= 95 && refused <= 0.1 && p99 <= 1.1 * mean && seen.failed == 0;

	printf("%u nodes, %u gateways, %u templates, %llu creates, heartbeat %u ms, %s\n",
	       set.nodes, set.gateways, set.templates, (unsigned long long)seen.creates,
	       set.heartbeat_ms, set.policy == PLACE_PACK ? "pack" : "spread");
	printf("load     mean %.3f, p99 %.3f (%.2f x mean)\n", mean, p99, p99 / mean);
	printf("warm     %.1f %%\n", warm);
	printf("refused  %.3f %% of attempts; failed %.4f %% of creates\n", refused, failed);
	printf("choice   %.2f us\n", seen.choose_s / (double)((seen.choices + 63) / 64) * 1e6);
	if (!set.check)
		return 0;
	printf("%s: warm >= 95 %%, refused <= 0.1 %%, p99 <= 1.1 x mean, none failed\n",
	       ok ? "ok" : "NOT OK");
	return !ok;
}

static double number(const char *text, double least, double most)
{
	char *end;
	double v = strtod(text, &end);

	if (*end || end == text || !(v >= least && v <= most)) {
		fprintf(stderr, "place: '%s' is not a number from %g to %g\n", text, least, most);
		exit(2);
	}
	return v;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "nodes", 1, 0, 'n' },   { "gateways", 1, 0, 'g' }, { "templates", 1, 0, 't' },
		{ "warm", 1, 0, 'w' },    { "seconds", 1, 0, 's' },  { "heartbeat", 1, 0, 'b' },
		{ "creates", 1, 0, 'c' }, { "load", 1, 0, 'l' },     { "pack", 0, 0, 'p' },
		{ "trace", 1, 0, 'f' },   { "check", 0, 0, 'k' },    { 0 }
	};
	const uint64_t memory = 256 * MIB;
	FILE *f;

	for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;)
		switch (o) {
		case 'n':
			set.nodes = (unsigned)number(optarg, 1, PLACE_NODES);
			break;
		case 'g':
			set.gateways = (unsigned)number(optarg, 1, 100);
			break;
		case 't':
			set.templates = (unsigned)number(optarg, 1, TEMPLATES_MOST);
			break;
		case 'w':
			set.warm = (unsigned)number(optarg, 1, WARM_MOST);
			break;
		case 's':
			set.seconds = (unsigned)number(optarg, 1, 1000);
			break;
		case 'b':
			set.heartbeat_ms = (unsigned)number(optarg, STEP_MS, 60000);
			break;
		case 'c':
			set.creates = number(optarg, 1, 100000);
			break;
		case 'l':
			set.load = number(optarg, 0.01, 1);
			break;
		case 'p':
			set.policy = PLACE_PACK;
			break;
		case 'f':
			set.trace = optarg;
			break;
		case 'k':
			set.check = 1;
			break;
		default:
			fprintf(stderr,
				"usage: place [--nodes N] [--gateways N] [--templates N] [--warm N] "
				"[--seconds N] [--heartbeat MS] [--creates PER_S] [--load 0..1] [--pack] "
				"[--trace FILE] [--check]\n");
			return 2;
		}
	set_up(memory);
	if (!set.trace) {
		fill(memory);
		run_synthetic(memory);
		return report();
	}
	f = fopen(set.trace, "r");
	if (!f)
		die("the trace cannot be opened");
	run_trace(f);
	fclose(f);
	return report();
}
