/* db.c - `atoll db`: a database server in a box of its own, with its files on a volume.
 *
 *   volume NAME ── /data ──► box NAME: the server ◄── link "db" ── the box that uses it: DATABASE_URL
 *
 * The server is a program of the distribution, from the host's /usr. Its password is generated in the
 * box, in a file on the volume, so it survives the box. */
#include "base/cleanup.h"
#include "cli/api_client.h"
#include "commands/commands.h"

#include <stdio.h>
#include <string.h>

enum { DB_LINK, DB_AS, DB_SIZE, DB_MEM, DB_NFLAGS };
enum { DB_READY_MS = 120000 };

static const struct flag flags[DB_NFLAGS] = {
	[DB_LINK] = { "link", 0, FLAG_TEXT, "BOX", "link this box to the server and set its URL" },
	[DB_AS] = { "as", 0, FLAG_TEXT, "NAME", "host name of the server in that box (db)" },
	[DB_SIZE] = { "size", 0, FLAG_SIZE, "SIZE", "size of the volume (1G)" },
	[DB_MEM] = { "mem", 'm', FLAG_SIZE, "SIZE", "memory of the box (512M)" },
};

#define DB_PASSWORD                                                                                \
	"umask 077\n"                                                                              \
	"[ -s /data/password ] || od -An -N16 -tx1 /dev/urandom | tr -d ' \\n' >/data/password\n"
#define DB_NEEDS(program, package)                                                                 \
	"command -v " program " >/dev/null || { echo " package " >&2; exit 3; }\n"
enum { DB_MISSING = 3 }; /* exit status of DB_NEEDS, which prints the package */
#define PG_BIN "$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)"

static const struct db_kind {
	const char *name, *variable;
	const char *url; /* before the password, and after it and the host */
	const char *url_end;
	const char *prepare; /* scripts, executed as the box's user */
	const char *serve;
	const char *ready; /* succeeds when clients can work; the port may open before */
} db_kinds[] = {
	/* clang-format off */
	{ "postgres", "DATABASE_URL", "postgres://postgres:", ":5432/postgres",
	  "bin=" PG_BIN "\n"
	  DB_NEEDS("\"$bin/postgres\"", "postgresql") DB_PASSWORD
	  "[ -s /data/postgres/PG_VERSION ] || \"$bin/initdb\" -D /data/postgres -U postgres -A scram-sha-256 "
	  "--pwfile=/data/password -E UTF8 >/dev/null\n"
	  "rm -f /data/postgres/postmaster.pid\n",
	  "exec " PG_BIN "/postgres -D /data/postgres -c listen_addresses=127.0.0.1 -c unix_socket_directories=/tmp",
	  PG_BIN "/pg_isready -q -h 127.0.0.1" },
	{ "mysql", "DATABASE_URL", "mysql://root:", ":3306/app",
	  DB_NEEDS("/usr/sbin/mariadbd", "mariadb-server") DB_PASSWORD
	  "[ -d /data/mysql/mysql ] || mariadb-install-db --no-defaults --datadir=/data/mysql --skip-test-db "
	  "--auth-root-authentication-method=normal >/dev/null\n"
	  /* mariadb-install-db makes accounts without a password; this file is executed before a client can connect. */
	  "printf \"DELETE FROM mysql.global_priv WHERE User = 'root' AND Host <> 'localhost';\\nFLUSH PRIVILEGES;\\n"
	  "ALTER USER root@localhost IDENTIFIED BY '%s';\\nCREATE DATABASE IF NOT EXISTS app;\\n\" "
	  "\"$(cat /data/password)\" >/data/init.sql\n",
	  "exec /usr/sbin/mariadbd --no-defaults --datadir=/data/mysql --socket=/tmp/mysql.sock "
	  "--bind-address=127.0.0.1 --init-file=/data/init.sql",
	  "(exec 3<>/dev/tcp/127.0.0.1/3306) 2>/dev/null" },
	{ "redis", "REDIS_URL", "redis://default:", ":6379/0",
	  DB_NEEDS("redis-server", "redis-server") DB_PASSWORD
	  "mkdir -p /data/redis\n"
	  "printf 'bind 127.0.0.1\\ndir /data/redis\\nappendonly yes\\nrequirepass %s\\n' \"$(cat /data/password)\" "
	  ">/data/redis.conf\n",
	  "exec redis-server /data/redis.conf",
	  "REDISCLI_AUTH=$(cat /data/password) redis-cli ping 2>/dev/null | grep -q PONG" },
	/* clang-format on */
};

/* Waits for the server; ends early if the server, whose exec holds this file locked, has exited. */
#define DB_LOCK "/tmp/atoll-db"
#define DB_WAIT                                                                                    \
	"for i in $(seq 1200); do\n"                                                               \
	"\t%s && exit 0\n"                                                                         \
	"\t[ $i -lt 99 ] || ! flock -n " DB_LOCK " true || break\n"                                \
	"\tsleep 0.1\n"                                                                            \
	"done\n"                                                                                   \
	"tail -n 5 " DB_LOCK ".log >&2\n"                                                          \
	"exit 1\n"

struct db {
	struct api_client *r;
	const struct db_kind *kind;
	const char *name;
	char box[40], password[80];
	int made_volume;
};

static const struct db_kind *db_find(const char *name)
{
	for (unsigned i = 0; i < sizeof(db_kinds) / sizeof(db_kinds[0]); i++)
		if (!strcmp(db_kinds[i].name, name))
			return &db_kinds[i];
	return NULL;
}

/* An existing volume is used again: it has the data of an earlier box. */
static int db_make_volume(struct db *d, const struct args *a)
{
	json_t *doc = json_pack("{s:s, s:I}", "name", d->name, "bytes",
				(json_int_t)args_value(a, DB_SIZE, 1 << 30));

	doc = api_client_json(d->r, "POST", "/v1/volumes", doc);
	d->made_volume = doc != NULL;
	json_decref(doc);
	return doc || d->r->http == 409 ? 0 : d->r->status;
}

static int db_make_box(struct db *d, const struct args *a)
{
	json_t *doc =
		json_pack("{s:s, s:i, s:{s:b}, s:{s:s}, s:[{s:s, s:s}]}", "name", d->name,
			  "lifetime_ms", 0, "network", "registries", 0, "metadata", "database",
			  d->kind->name, "volumes", "name", d->name, "path", "/data");

	if (args_has(a, DB_MEM))
		json_object_set_new(doc, "limits",
				    json_pack("{s:I}", "mem",
					      (json_int_t)args_value(a, DB_MEM, 0)));
	doc = api_client_json(d->r, "POST", "/v1/boxes", doc);
	if (!doc)
		return d->r->status;
	snprintf(d->box, sizeof(d->box), "%s", api_client_text(doc, "id"));
	json_decref(doc);
	return 0;
}

/* 0, or the status of the error: the script has failed. */
static int db_script(struct db *d, const char *script, int background)
{
	auto_free char *path = api_client_path("/v1/boxes/%s/execs", d->box);
	json_t *ask = json_pack("{s:[s, s, s], s:b, s:s}", "command", "bash", "-c", script,
				"background", background, "tag", "database"),
	       *end;
	char shown[SHOWN];
	int status;

	if (!background)
		json_object_set_new(ask, "timeout_ms", json_integer(DB_READY_MS));
	end = api_client_json(d->r, "POST", path, ask);
	if (!end)
		return d->r->status;
	status = (int)api_client_int(end, "status", 0);
	if (status == DB_MISSING) {
		const char *package = cli_error_shown(api_client_text(end, "stderr"), shown);

		cli_error_what(&d->r->error, "not_found", "the host has no server for %s",
			       d->kind->name);
		cli_error_hint(&d->r->error, "on the host", "apt-get install %.*s",
			       (int)strcspn(package, "\\\n"), package);
		d->r->status = STATUS_FAILED;
	} else if (status) {
		cli_error_what(&d->r->error, "failed", "%s did not start: %s", d->kind->name,
			       cli_error_shown(api_client_text(end, "stderr"), shown));
		d->r->status = STATUS_FAILED;
	}
	json_decref(end);
	return status ? d->r->status : 0;
}

static int db_start(struct db *d)
{
	char text[1024];

	if (db_script(d, d->kind->prepare, 0))
		return d->r->status;
	snprintf(text, sizeof(text), "exec >" DB_LOCK ".log 2>&1 9>" DB_LOCK "; flock 9; %s",
		 d->kind->serve);
	if (db_script(d, text, 1))
		return d->r->status;
	snprintf(text, sizeof(text), DB_WAIT, d->kind->ready);
	return db_script(d, text, 0);
}

static int db_take_password(void *ctx, const char *bytes, size_t n, struct err *e)
{
	(void)e;
	buf_add(ctx, bytes, n);
	return 0;
}

/* Removes what was created for a server that did not start; the error stays. */
static void db_undo(struct db *d)
{
	auto_free char *box = api_client_path("/v1/boxes/%s", d->box),
		       *volume = api_client_path("/v1/volumes/%s", d->name);
	struct cli_error error = d->r->error;
	int status = d->r->status;

	json_decref(api_client_json(d->r, "DELETE", box, NULL));
	if (d->made_volume)
		json_decref(api_client_json(d->r, "DELETE", volume, NULL));
	d->r->error = error;
	d->r->status = status;
}

/* By the file API: the output of a program would be in a run record. */
static int db_read_password(struct db *d)
{
	auto_free char *path = api_client_path("/v1/boxes/%s/files?path=/data/password", d->box);
	auto_buf struct buf text = { 0 };
	struct api_client_bytes x = { .method = "GET",
				      .path = path,
				      .from = -1,
				      .to = -1,
				      .sink = db_take_password,
				      .ctx = &text };

	if (api_client_bytes(d->r, &x))
		return d->r->status;
	snprintf(d->password, sizeof(d->password), "%s", buf_str(&text));
	return 0;
}

static void db_url(const struct db *d, const char *host, struct buf *out)
{
	buf_printf(out, "%s%s@%s%s", d->kind->url, d->password, host, d->kind->url_end);
}

/* For boxes that are made later: a secret of the team. */
static int db_store_url(struct db *d, const char *host)
{
	auto_free char *path = api_client_path("/v1/secrets/%s.url", d->name);
	auto_buf struct buf url = { 0 };
	json_t *doc;

	db_url(d, host, &url);
	doc = api_client_json(d->r, "PUT", path, json_pack("{s:s}", "value", buf_str(&url)));
	json_decref(doc);
	return doc ? 0 : d->r->status;
}

static int db_put_link(struct db *d, const char *box, const char *host)
{
	auto_free char *path = api_client_path("/v1/boxes/%s", box);
	json_t *doc = api_client_json(d->r, "GET", path, NULL), *links;

	if (!doc) {
		api_client_explain_box(d->r, box);
		return d->r->status;
	}
	links = json_deep_copy(json_object_get(json_object_get(doc, "network"), "links"));
	json_object_set_new(links, host, json_string(d->box));
	json_decref(doc);
	doc = api_client_json(d->r, "PATCH", path,
			      json_pack("{s:{s:o}}", "network", "links", links));
	json_decref(doc);
	return doc ? 0 : d->r->status;
}

/* Secrets are given to a box when it is made: an existing box gets a variable. */
static int db_put_url(struct db *d, const char *box, const char *host)
{
	auto_free char *path = api_client_path("/v1/boxes/%s/env", box);
	json_t *doc = api_client_json(d->r, "GET", path, NULL);
	auto_buf struct buf url = { 0 };

	if (!doc)
		return d->r->status;
	db_url(d, host, &url);
	json_object_set_new(json_object_get(doc, "env"), d->kind->variable,
			    json_string(buf_str(&url)));
	doc = api_client_json(d->r, "PUT", path, doc);
	json_decref(doc);
	return doc ? 0 : d->r->status;
}

static int db_make(struct api_client *r, const struct args *a)
{
	const char *box = args_text(a, DB_LINK, NULL), *host = args_text(a, DB_AS, "db");
	struct db d = { .r = r };
	char shown[SHOWN];

	d.kind = a->nwords ? db_find(a->words[0]) : NULL;
	if (!d.kind) {
		if (a->nwords)
			api_client_usage(r, "db: '%s' is none of postgres, mysql, redis",
					 cli_error_shown(a->words[0], shown));
		else
			api_client_usage(r, "db: missing kind of server");
		cli_error_hint(&r->error, "type",
			       "atoll db postgres|mysql|redis [NAME] [--link BOX]");
		return r->status;
	}
	d.name = a->nwords > 1 ? a->words[1] : d.kind->name;
	if (db_make_volume(&d, a) || db_make_box(&d, a))
		return r->status;
	if (db_start(&d)) {
		db_undo(&d);
		return r->status;
	}
	if (db_read_password(&d) || db_store_url(&d, host))
		return r->status;
	if (box && (db_put_link(&d, box, host) || db_put_url(&d, box, host)))
		return r->status;
	puts(d.name);
	return 0;
}

static int run_db(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, db_make);
}

static const struct example examples[] = {
	{ "atoll db postgres shop-db --link shop", "a server; programs of shop have DATABASE_URL" },
	{ "atoll exec shop -- sh -c 'psql \"$DATABASE_URL\" -c \"select 1\"'", "use it" },
	{ "atoll rm shop-db", "end the server; its volume keeps the data" },
	{ 0 },
};

const struct command command_db = {
	.name = "db",
	.group = "Boxes",
	.usage = "postgres|mysql|redis [NAME]",
	.summary = "start a database server in a box of its own",
	.notes =
		"The server is a program of the host's distribution. Its data and its password are on a volume of\n"
		"the same name, so that `atoll db` with that name continues with them. --link lets programs of a box\n"
		"reach it as `db`, and sets DATABASE_URL or REDIS_URL there. New boxes get it from the secret NAME.url:\n"
		"atoll new --link db=NAME --secret NAME.url=DATABASE_URL",
	.words = "postgres mysql redis",
	.flags = flags,
	.nflags = DB_NFLAGS,
	.max_words = 2,
	.examples = examples,
	.run = run_db,
};
