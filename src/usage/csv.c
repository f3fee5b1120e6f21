/* csv.c - see csv.h. */
#include "usage/csv.h"
#include "usage/rates.h"

#include <string.h>

void csv_cell(struct buf *out, const char *text)
{
	int formula = *text && strchr("=+-@\t\r", *text) != NULL;

	if (!formula && !strpbrk(text, ",\"\r\n")) {
		buf_puts(out, text);
		return;
	}
	buf_puts(out, formula ? "\"'" : "\"");
	for (; *text; text++) {
		if (*text == '"')
			buf_putc(out, '"');
		buf_putc(out, *text);
	}
	buf_putc(out, '"');
}

void csv_usage_head(struct buf *out, const char *by)
{
	buf_printf(
		out,
		"%s,runs,cpu_us,memory_mib_ms,disk_mib_s,network_bytes,gpu_us,tokens_in,tokens_out,"
		"output_bytes,cost,currency\r\n",
		by);
}

void csv_usage_row(struct buf *out, const struct store_usage_row *r)
{
	const struct store_use *u = &r->use;
	const uint64_t counts[] = { u->runs,       u->cpu_us,        u->memory_mib_ms,
				    u->disk_mib_s, u->network_bytes, u->gpu_us,
				    u->tokens_in,  u->tokens_out,    u->output_bytes };
	char text[RATES_TEXT];

	csv_cell(out, r->value);
	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		buf_printf(out, ",%llu", (unsigned long long)counts[i]);
	buf_printf(out, ",%s,%s\r\n", rates_decimal(u->cost_nano, 9, text), u->currency);
}
