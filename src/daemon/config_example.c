/* config_example.c - `atoll config example`: a settings file with every row of the table as a comment. The packages install it
 * as /etc/atoll/config.toml. */
#include "daemon/config.h"
#include "base/buf.h"

#include <string.h>

enum { EXAMPLE_WIDTH = 100 };

static const char example_head[] =
	"# Settings of Atoll on this machine, in TOML. Every setting is here with its default, as a comment:\n"
	"# remove the # in front of a line to change its value. \"none\" means no limit, \"\" that there is no default.\n"
	"# A variable of the environment overrides this file, and a flag of `atoll serve` overrides both.\n"
	"#\n"
	"#	atoll config check       is every file valid?\n"
	"#	atoll config show        the values in effect; --origin: and the source of each\n"
	"#	systemctl reload atoll   apply changes; settings marked (restart) need systemctl restart atoll\n"
	"#\n"
	"# Boxes keep running in both cases. Under systemd the addresses are those of atoll.socket, and\n"
	"# serve.listen and serve.socket have no effect: systemctl edit atoll.socket.\n"
	"# The manual explains each setting: man atoll, SETTINGS.\n";

/* Words of a text in comment lines of at most EXAMPLE_WIDTH bytes. */
static void example_comment(struct buf *out, const char *text)
{
	size_t column = 1;

	buf_putc(out, '#');
	while (*text) {
		size_t n = strcspn(text, " ");

		if (column > 1 && column + 1 + n > EXAMPLE_WIDTH) {
			buf_puts(out, "\n#");
			column = 1;
		}
		buf_putc(out, ' ');
		buf_add(out, text, n);
		column += n + 1;
		text += n;
		text += strspn(text, " ");
	}
	buf_putc(out, '\n');
}

/* A default with the folders of root, for which this file is. */
static void example_default(struct buf *out, const char *text)
{
	static const char run[] = "$run", state[] = "$state", secrets[] = "$secrets";

	if (strncmp(text, run, strlen(run)) == 0)
		buf_printf(out, "/run/atoll%s", text + strlen(run));
	else if (strncmp(text, state, strlen(state)) == 0)
		buf_printf(out, "/var/lib/atoll%s", text + strlen(state));
	else if (strcmp(text, secrets) == 0)
		buf_puts(out, "/etc/atoll/cluster");
	else
		buf_puts(out, text);
}

static void example_list(struct buf *out, const char *text)
{
	buf_putc(out, '[');
	while (text) {
		size_t n = strcspn(text, ",");

		buf_printf(out, "\"%.*s\"%s", (int)n, text, text[n] ? ", " : "");
		text = text[n] ? text + n + 1 : NULL;
	}
	buf_putc(out, ']');
}

static void example_value(struct buf *out, const struct config_row *r)
{
	const char *text = r->otherwise;
	int bare = r->type == CONFIG_BOOL || ((r->type == CONFIG_COUNT || r->type == CONFIG_CPUS) &&
					      text && text[strspn(text, "0123456789.")] == 0);

	if (r->type == CONFIG_LIST) {
		example_list(out, text);
		return;
	}
	buf_puts(out, bare ? "" : "\"");
	example_default(out, text ? text : "");
	buf_puts(out, bare ? "" : "\"");
}

static void example_row(struct buf *out, const struct config_row *r, const char *name)
{
	auto_buf struct buf about = { 0 };

	buf_printf(&about, "%s (%s%s%s%s)", r->help, r->env, r->flag ? ", --" : "",
		   r->flag ? r->flag : "", r->reload || name == r->name ? "" : ", restart");
	buf_putc(out, '\n');
	example_comment(out, buf_str(&about));
	buf_printf(out, "#%s = ", name);
	example_value(out, r);
	buf_putc(out, '\n');
}

/* The rows of one section, which may be apart in the table; "": those without a section, which a file has before the first
 * heading. */
static void example_section(struct buf *out, const char *section, size_t n)
{
	if (n)
		buf_printf(out, "\n[%.*s]\n", (int)n, section);
	for (unsigned i = 0; i < CONFIG_NKEYS; i++) {
		const char *name = config_rows[i].name;
		const char *dot = strrchr(name, '.');

		if (n ? dot && (size_t)(dot - name) == n && strncmp(name, section, n) == 0 : !dot)
			example_row(out, &config_rows[i], dot ? dot + 1 : name);
	}
}

static int example_is_first(unsigned key, size_t n)
{
	for (unsigned i = 0; i < key; i++)
		if (strncmp(config_rows[i].name, config_rows[key].name, n + 1) == 0)
			return 0;
	return 1;
}

/* Plans have no defaults, so this is an example of one. */
static const char example_plan[] =
	"\n# A plan is a named set of quotas, upper limits, retention and budgets:\n"
	"#	atoll api PUT /v1/teams/NAME '{\"plan\": \"free\"}'\n"
	"# What a plan does not set comes from quota.* and limits.*; quotas of the team itself come before both.\n"
	"#\n"
	"#[plan.free]\n"
	"#executions_per_day = 50\n"
	"#compute_seconds_per_month = 7200\n"
	"#output_bytes_per_day = \"100M\"\n"
	"#boxes = 3\n"
	"#requests_per_second = 10\n"
	"#max_run_time = \"1m\"          # of one run\n"
	"#max_lifetime = \"1h\"          # of a box\n"
	"#retention_boxes = \"24h\"      # of the files of a box after its timeout\n"
	"#retention_records = \"168h\"   # of finished runs and deleted boxes\n"
	"#retention_outputs = \"24h\"    # of results of batches and of finished pipelines\n"
	"#budget_per_day = \"1.50\"      # in rates.currency\n"
	"#budget_per_month = \"20\"\n"
	"#budget_action = \"refuse\"     # new runs at 100 %; or \"warn\"\n";

void config_print_example(struct buf *out)
{
	buf_puts(out, example_head);
	example_section(out, "", 0);
	for (unsigned i = 0; i < CONFIG_NKEYS; i++) {
		const char *name = config_rows[i].name, *dot = strrchr(name, '.');
		size_t n = dot ? (size_t)(dot - name) : 0;

		if (n && example_is_first(i, n))
			example_section(out, name, n);
	}
	buf_puts(out, example_plan);
}
