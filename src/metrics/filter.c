/* filter.c - conditions for the labels of a figure: see metrics.h. */
#include "metrics/metrics.h"

#include <stdio.h>
#include <string.h>

static int filter_unknown_label(const struct metric_def *d, const char *label, struct err *e)
{
	const char *first = d->labels[0].name, *second = d->labels[1].name;

	if (!first)
		return err_set(e, ERR_INVALID, "%s has no labels, so not '%.40s'", d->name, label);
	return err_set(e, ERR_INVALID, "%s has no label '%.40s'; its labels: %s%s%s", d->name,
		       label, first, second ? ", " : "", second ? second : "");
}

/* One condition: label=value or label!=value. */
static int filter_parse_one(struct metrics_filter *f, const struct metric_def *d, const char *text,
			    size_t len, struct err *e)
{
	const char *equal = memchr(text, '=', len);
	size_t name = equal ? (size_t)(equal - text) : 0, value;
	char label[64];

	if (!equal)
		return err_set(e, ERR_INVALID, "'%.*s' is not label=value or label!=value",
			       (int)(len < 60 ? len : 60), text);
	if (f->n == sizeof(f->v) / sizeof(f->v[0]))
		return err_set(e, ERR_INVALID, "more than %u conditions for labels", f->n);
	value = len - name - 1;
	f->v[f->n].negated = name && text[name - 1] == '!';
	name -= (size_t)f->v[f->n].negated;
	snprintf(label, sizeof(label), "%.*s", (int)(name < 60 ? name : 60), text);
	f->v[f->n].label = metric_label_index(d, label);
	if (f->v[f->n].label < 0)
		return filter_unknown_label(d, label, e);
	if (value > METRIC_LABEL)
		return err_set(e, ERR_INVALID, "the value of label %s has %zu bytes; at most %d",
			       label, value, METRIC_LABEL);
	snprintf(f->v[f->n].value, sizeof(f->v[f->n].value), "%.*s", (int)value, equal + 1);
	if (strcmp(f->v[f->n].value, "other") != 0 &&
	    !metric_label_has(&d->labels[f->v[f->n].label], f->v[f->n].value))
		return err_set(e, ERR_INVALID, "label %s of %s is never '%.60s'", label, d->name,
			       f->v[f->n].value);
	f->n++;
	return 0;
}

int metrics_filter_parse(struct metrics_filter *f, const struct metric_def *d, const char *text,
			 struct err *e)
{
	*f = (struct metrics_filter){ 0 };
	while (*text) {
		size_t len = strcspn(text, ",");

		if (filter_parse_one(f, d, text, len, e) < 0)
			return -1;
		text += len + (text[len] == ',');
	}
	return 0;
}

int metrics_filter_match(const struct metrics_filter *f, const char *const *labels)
{
	for (unsigned i = 0; f && i < f->n; i++)
		if ((strcmp(labels[f->v[i].label], f->v[i].value) == 0) == f->v[i].negated)
			return 0;
	return 1;
}
