/* node_figures.c - see node_figures.h. */
#include "daemon/node_figures.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "store/packages.h"
#include "store/templates.h"
#include "v1box/copies.h"
#include "v1box/host_sampler.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

enum { NODE_LISTS_MS = 5000, NODE_SAMPLE_MS = 250, NODE_COPIES_MS = 1000, NODE_SETS = 256 };

struct node_figures {
	struct api *api;
	uint32_t cpus;
	char arch[16];
	char (*labels)[CONTROL_LABEL];
	unsigned nlabels;
	uint64_t *templates;
	unsigned ntemplates;
	uint64_t lists_ms, sample_ms, copies_ms; /* when they were read; 0: never */
	uint32_t copies;
	struct host_sample sample;
};

static uint32_t node_share(uint64_t used, uint64_t total)
{
	uint64_t share = total ? (uint64_t)((double)used * CONTROL_LOAD_FULL / (double)total) : 0;

	return share < CONTROL_LOAD_FULL ? (uint32_t)share : CONTROL_LOAD_FULL;
}

uint32_t node_load(uint64_t memory_used, uint64_t memory_total, unsigned load_centi, unsigned cpus,
		   unsigned boxes, unsigned boxes_most)
{
	uint32_t load = node_share(memory_used, memory_total),
		 processors = node_share(load_centi, (uint64_t)cpus * 100),
		 count = node_share(boxes, boxes_most);

	load = processors > load ? processors : load;
	return count > load ? count : load;
}

/* ---- lists ---- */

static void node_add_hash(struct node_figures *f, const char *text)
{
	if (f->ntemplates < CONTROL_TEMPLATES && text[0])
		f->templates[f->ntemplates++] = control_hash(text);
}

/* Templates by name and by id, layers of package sets by their digest. */
static void node_read_lists(struct node_figures *f)
{
	struct store_templates templates = { 0 };
	struct store_sets sets = { 0 };
	struct err e;

	f->ntemplates = 0;
	if (store_template_list(f->api->store, "default", 0, &templates, &e) < 0)
		log_warn("heartbeats without templates", LOG_E(&e));
	for (unsigned i = 0; i < templates.n; i++) {
		node_add_hash(f, templates.v[i].name);
		node_add_hash(f, templates.v[i].id);
	}
	store_templates_fini(&templates);
	if (store_set_list(f->api->store, NODE_SETS, &sets, &e) < 0)
		log_warn("heartbeats without package sets", LOG_E(&e));
	for (unsigned i = 0; i < sets.n; i++)
		node_add_hash(f, sets.v[i].layer);
	store_sets_fini(&sets);
}

static void *node_copy(const void *from, size_t n)
{
	void *copy = malloc(n + 1);

	if (!copy)
		abort();
	return memcpy(copy, from, n);
}

void node_figures_read(struct node_figures *f, struct control_figures *out)
{
	const struct fleet *fleet = &f->api->fleet;
	uint64_t now = loop_now_ms();

	if (!f->lists_ms || now - f->lists_ms >= NODE_LISTS_MS) {
		node_read_lists(f);
		f->lists_ms = now;
	}
	if (!f->sample_ms || now - f->sample_ms >= NODE_SAMPLE_MS) {
		host_sampler_read(f->api->host, fleet->count, &f->sample);
		f->sample_ms = now;
	}
	if (!f->copies_ms || now - f->copies_ms >= NODE_COPIES_MS) {
		f->copies = copies_revision(f->api);
		f->copies_ms = now;
	}
	*out = (struct control_figures){
		.cpus = f->cpus,
		.memory_total = f->sample.mem_total ? f->sample.mem_total : 1,
		.boxes = fleet->count,
		.draining = fleet->is_draining,
		.boxes_most = fleet->conf.boxes_most,
		.pool = f->api->about.pooled,
		.copies = f->copies,
		.refusals = fleet->figures.create_failed,
		.load = node_load(f->sample.mem_bytes, f->sample.mem_total, f->sample.load_centi,
				  f->cpus, fleet->count, fleet->conf.boxes_most),
		.templates = node_copy(f->templates, f->ntemplates * sizeof(uint64_t)),
		.ntemplates = f->ntemplates,
		.labels = node_copy(f->labels, (size_t)f->nlabels * CONTROL_LABEL),
		.nlabels = f->nlabels,
	};
	if (f->sample.mem_bytes < f->sample.mem_total)
		out->memory_free = f->sample.mem_total - f->sample.mem_bytes;
	memcpy(out->arch, f->arch, sizeof(out->arch));
}

struct node_figures *node_figures_new(struct api *a, const char *const *labels)
{
	struct node_figures *f = calloc(1, sizeof(*f));
	struct utsname machine;

	if (!f)
		abort();
	f->api = a;
	f->cpus = (uint32_t)get_nprocs();
	f->templates = calloc(CONTROL_TEMPLATES, sizeof(uint64_t));
	f->labels = calloc(CONTROL_LABELS, CONTROL_LABEL);
	if (!f->templates || !f->labels)
		abort();
	if (uname(&machine) == 0)
		snprintf(f->arch, sizeof(f->arch), "%.15s", machine.machine);
	for (; *labels && f->nlabels < CONTROL_LABELS; labels++)
		snprintf(f->labels[f->nlabels++], CONTROL_LABEL, "%s", *labels);
	return f;
}

void node_figures_free(struct node_figures *f)
{
	if (!f)
		return;
	free(f->templates);
	free(f->labels);
	free(f);
}
