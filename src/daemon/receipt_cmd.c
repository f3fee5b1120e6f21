/* receipt_cmd.c - `atoll receipt`: gets receipts of runs from a daemon, and verifies them without one. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/api_client.h"
#include "daemon/commands.h"
#include "daemon/config.h"
#include "receipt/canonical.h"
#include "receipt/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECEIPT_FROM, RECEIPT_KEY, RECEIPT_NODE, RECEIPT_NFLAGS };

static const struct flag flags[RECEIPT_NFLAGS] = {
	[RECEIPT_FROM] = { "from", 0, FLAG_COUNT, "N",
			   "export: number of the first receipt (default: the oldest)" },
	[RECEIPT_KEY] = { "key", 0, FLAG_TEXT, "FILE",
			  "verify: the public key of the node (default: receipts.pub of this machine's state folder)" },
	[RECEIPT_NODE] = { "node", 0, FLAG_TEXT, "NAME",
			   "export, key: behind a gateway, the node whose receipts they are" },
};

/* ---- show, key ---- */

static int receipt_show(struct api_client *r, const struct args *a)
{
	json_t *doc = api_client_get(r, "/v1/runs/%s/receipt", a->words[1]);
	auto_buf struct buf line = { 0 };

	if (!doc)
		return r->status;
	canonical_write(&line, doc);
	puts(buf_str(&line));
	json_decref(doc);
	return 0;
}

static int receipt_show_key(struct api_client *r, const struct args *a)
{
	const char *node = args_text(a, RECEIPT_NODE, NULL);
	json_t *doc = node ? api_client_get(r, "/v1/receipts/key?node=%s", node)
			   : api_client_get(r, "/v1/receipts/key");

	if (!doc)
		return r->status;
	if (r->cli->json)
		api_client_print(doc);
	else
		fputs(api_client_text(doc, "key"), stdout);
	json_decref(doc);
	return 0;
}

/* ---- export ---- */

static int receipt_each(void *ctx, json_t *item)
{
	FILE *to = ctx;
	auto_buf struct buf line = { 0 };

	canonical_write(&line, item);
	buf_putc(&line, '\n');
	return fwrite(line.p, 1, line.len, to) != line.len;
}

static int receipt_write_failed(struct api_client *r, const char *path)
{
	cli_error_what(&r->error, "failed", "cannot write %.200s", path);
	cli_error_why(&r->error, "%s", strerror(errno));
	return r->status = STATUS_FAILED;
}

/* The file gets its name when it is complete. */
static int receipt_export(struct api_client *r, const struct args *a)
{
	unsigned from = (unsigned)args_value(a, RECEIPT_FROM, 1);
	const char *node = args_text(a, RECEIPT_NODE, NULL);
	auto_free char *path = node ? api_client_path("/v1/receipts?from=%u&node=%s", from, node)
				    : api_client_path("/v1/receipts?from=%u", from),
		       *name = a->nwords > 1 ? buf_text("%s.part", a->words[1]) : NULL;
	FILE *to = name ? fopen(name, "we") : stdout;
	int rc, bad;

	if (!to)
		return receipt_write_failed(r, name);
	rc = api_client_list(r, path, receipt_each, to);
	bad = ferror(to) || fflush(to) != 0 || (name && fsync(fileno(to)) < 0);
	if (name && fclose(to) != 0)
		bad = 1;
	if (rc == 0 && (bad || (name && rename(name, a->words[1]) < 0)))
		rc = receipt_write_failed(r, name ? a->words[1] : "stdout");
	if (rc && name)
		unlink(name);
	return rc;
}

/* ---- verify ---- */

static int receipt_failed(const struct cli *cli, const struct err *e, const char *where)
{
	struct cli_error t;

	cli_error_what(&t, err_kind_name(e->kind), "%s%s", where, e->msg);
	return cli_error_print(&t, cli->json, STATUS_FAILED);
}

static int receipt_read_key(const struct args *a, struct node_key *out, struct err *e)
{
	char path[1200], pem[4096];
	auto_fd int fd = -1;
	struct config c;
	ssize_t n;

	snprintf(path, sizeof(path), "%.1100s", args_text(a, RECEIPT_KEY, ""));
	if (!*path) {
		if (config_load(&c, &(struct config_source){ 0 }, e) < 0)
			return -1;
		snprintf(path, sizeof(path), "%.1000s/receipts.pub", config_text(&c, CONFIG_STATE));
		config_fini(&c);
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, pem, sizeof(pem));
	if (n < 0) {
		err_sys(e, "key %.150s", path);
		return args_has(a, RECEIPT_KEY)
			       ? -1
			       : err_in(e, "give the public key of the node with --key FILE");
	}
	return node_key_parse(out, pem, (size_t)n, e) < 0 ? err_in(e, "%.100s", path) : 0;
}

static void receipt_report(const struct cli *cli, const struct verify *v)
{
	if (cli->json)
		printf("{\"first\":%llu,\"last\":%llu,\"receipts\":%llu,\"withheld\":%llu}\n",
		       (unsigned long long)v->first, (unsigned long long)v->last,
		       (unsigned long long)v->count, (unsigned long long)v->withheld);
	else if (!cli->quiet && v->count == 1)
		printf("receipt %llu is valid\n", (unsigned long long)v->first);
	else if (!cli->quiet)
		printf("receipts %llu to %llu are valid and complete%s\n",
		       (unsigned long long)v->first, (unsigned long long)v->last,
		       v->withheld ? "; some are links without content" : "");
}

static int receipt_check_file(const struct cli *cli, FILE *in, struct verify *v)
{
	auto_free char *line = NULL;
	size_t room = 0;
	ssize_t n;
	struct err e;
	unsigned at = 0;
	char where[48];

	while ((n = getline(&line, &room, in)) > 0) {
		at++;
		if (line[n - 1] == '\n')
			n--;
		snprintf(where, sizeof(where), "line %u: ", at);
		if (verify_line(v, line, (size_t)n, &e) < 0)
			return receipt_failed(cli, &e, where);
	}
	if (ferror(in)) {
		err_sys(&e, "read");
		return receipt_failed(cli, &e, "");
	}
	if (!v->count) {
		err_set(&e, ERR_INVALID, "the file has no receipts");
		return receipt_failed(cli, &e, "");
	}
	receipt_report(cli, v);
	return 0;
}

static int receipt_verify(const struct cli *cli, const struct args *a)
{
	const char *name = a->words[1];
	struct node_key key = { 0 };
	struct verify v = { .key = &key };
	struct err e;
	FILE *in;
	int rc;

	if (receipt_read_key(a, &key, &e) < 0)
		return receipt_failed(cli, &e, "");
	in = strcmp(name, "-") ? fopen(name, "re") : stdin;
	if (!in) {
		err_sys(&e, "open %.150s", name);
		rc = receipt_failed(cli, &e, "");
	} else {
		rc = receipt_check_file(cli, in, &v);
		if (in != stdin)
			fclose(in);
	}
	node_key_close(&key);
	return rc;
}

static int run_receipt(const struct cli *cli, const struct args *a)
{
	const char *what = a->nwords ? a->words[0] : "";
	struct cli_error t;

	if (!strcmp(what, "show") && a->nwords == 2)
		return api_client_command(cli, a, receipt_show);
	if (!strcmp(what, "export"))
		return api_client_command(cli, a, receipt_export);
	if (!strcmp(what, "key") && a->nwords == 1)
		return api_client_command(cli, a, receipt_show_key);
	if (!strcmp(what, "verify") && a->nwords == 2)
		return receipt_verify(cli, a);
	cli_error_what(&t, "usage", "receipt: missing or unknown subcommand");
	cli_error_hint(&t, "type", "atoll receipt show RUN | export [FILE] | verify FILE | key");
	return cli_error_print(&t, cli->json, STATUS_USAGE);
}

static const struct example examples[] = {
	{ "atoll receipt show bq3tknw2c4ya > receipt.json", "the receipt of one run" },
	{ "atoll receipt export receipts.jsonl", "all receipts of the node, one per line" },
	{ "atoll receipt key > node.pem", "the public key that verifies them" },
	{ "atoll receipt verify receipts.jsonl --key node.pem",
	  "check signatures, order and completeness; needs no daemon" },
	{ 0 },
};

const struct command command_receipt = {
	/* clang-format off */
	.name = "receipt",
	.group = "Observe",
	.usage = "show RUN | export [--from N] [FILE] | verify FILE [--key FILE] | key",
	.summary = "get signed receipts of runs, and verify them",
	.notes = "Receipts of a node are numbered without gaps, and each contains the hash of the one before. verify\n"
		 "prints the number of the first receipt that was changed, is missing or is out of order.",
	.words = "show export verify key",
	.flags = flags,
	.nflags = RECEIPT_NFLAGS,
	.max_words = 2,
	.examples = examples,
	.run = run_receipt,
	/* clang-format on */
};
