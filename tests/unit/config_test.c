/* config_test.c - which value is effective, its source, and the messages of errors. */
#include "daemon/config.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY "e2b_0123456789abcdef0123456789abcdef01234567"

static const char *const below[] = { "",      "/home",      "/home/atoll",
				     "/proj", "/proj/deep", "/proj/deep/er" };
static char folder[200], path[4][300];

/* An empty environment and an empty folder with home/ and work/deep/er/. */
static void begin(void)
{
	const char *tmp = getenv("TMPDIR");
	char dir[300];

	if (!*folder) {
		snprintf(folder, sizeof(folder), "%s/config-test.%d", tmp ? tmp : "/tmp",
			 (int)getpid());
		for (unsigned i = 0; i < ARRAY_LEN(below); i++) {
			snprintf(dir, sizeof(dir), "%s%s", folder, below[i]);
			mkdir(dir, 0700);
		}
	}
	snprintf(path[0], sizeof(path[0]), "%s/system.toml", folder);
	snprintf(path[1], sizeof(path[1]), "%s/home/atoll/config.toml", folder);
	snprintf(path[2], sizeof(path[2]), "%s/proj/atoll.toml", folder);
	snprintf(path[3], sizeof(path[3]), "%s/one.toml", folder);
	for (unsigned i = 0; i < 4; i++)
		unlink(path[i]);
	for (unsigned i = 0; i < CONFIG_NKEYS; i++)
		unsetenv(config_rows[i].env);
	snprintf(dir, sizeof(dir), "%s/home", folder);
	setenv("XDG_CONFIG_HOME", dir, 1);
}

__attribute__((destructor)) static void leave_nothing(void)
{
	char dir[300];

	for (unsigned i = 0; i < 4; i++)
		unlink(path[i]);
	for (unsigned i = ARRAY_LEN(below); *folder && i > 0; i--) {
		snprintf(dir, sizeof(dir), "%s%s", folder, below[i - 1]);
		rmdir(dir);
	}
}

enum { SYSTEM, USER, PROJECT, ONE };

static void put(unsigned which, const char *text)
{
	FILE *f = fopen(path[which], "w");

	fputs(text, f);
	fclose(f);
}

static struct config c;
static struct err e;
static char cwd[300];

static int load(int client)
{
	struct config_source src = { .client = client, .cwd = cwd, .system_file = path[SYSTEM] };

	snprintf(cwd, sizeof(cwd), "%s/proj/deep/er", folder);
	config_fini(&c);
	e = (struct err){ 0 };
	return config_load(&c, &src, &e);
}

static const char *complaint(const char *text) /* about a file with this text, without its path */
{
	struct config_source src = { .file = path[ONE], .no_env = 1 };
	const char *colon;

	put(ONE, text);
	config_fini(&c);
	if (config_load(&c, &src, &e) == 0)
		return "no complaint";
	colon = strstr(e.msg, "one.toml:");
	return colon ? colon + 9 : e.msg;
}

TEST(every_row_is_complete_and_its_default_is_valid)
{
	begin();
	CHECK_INT(load(0), 0);
	for (unsigned i = 0; i < CONFIG_NKEYS; i++) {
		const struct config_row *r = &config_rows[i];

		CHECK(r->name && r->env && r->help && !strncmp(r->env, "ATOLL_", 6));
		CHECK_INT(config_find(r->name), i);
		CHECK((r->flag != NULL) == (i < CONFIG_NFLAGS));
		CHECK(!r->flag || r->metavar);
		CHECK(r->type != CONFIG_CHOICE || r->words);
		CHECK_STR(c.values[i].where, "default");
		for (unsigned k = 0; k < i; k++)
			CHECK(strcmp(config_rows[k].env, r->env) != 0);
	}
	CHECK_STR(config_list(&c, CONFIG_LISTEN)[0], "127.0.0.1:7070");
	CHECK(!config_list(&c, CONFIG_LISTEN)[1] && !config_list(&c, CONFIG_DOMAIN)[0]);
	CHECK_INT(config_number(&c, CONFIG_DRAIN), 30000);
	CHECK_INT(config_number(&c, CONFIG_MAX_BODY), 64 << 20);
	CHECK_INT(config_number(&c, CONFIG_DEFAULT_IDLE), 0);
	CHECK_INT(config_number(&c, CONFIG_POOL), 4);
	CHECK(!config_bool(&c, CONFIG_METRICS_PUBLIC) && !config_text(&c, CONFIG_HOST));
}

/* The example without the # of its settings; those without a default, which are "", stay comments. */
static char *example_uncommented(void)
{
	auto_buf struct buf text = { 0 }, out = { 0 };
	char *rest = NULL;

	config_print_example(&text);
	for (char *line = strtok_r(text.p, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		const char *value = strstr(line, " = ");
		int setting = line[0] == '#' &&
			      ((line[1] >= 'a' && line[1] <= 'z' && value) || line[1] == '[');

		buf_printf(&out, "%s\n",
			   setting && (!value || strcmp(value, " = \"\"") != 0) ? line + 1 : line);
	}
	return buf_steal(&out);
}

TEST(the_example_has_every_setting_with_its_default)
{
	struct config_source src = { .file = path[ONE], .no_env = 1 };
	auto_free char *text = NULL;
	auto_buf struct buf example = { 0 };
	struct config defaults = { 0 };

	begin();
	config_print_example(&example);
	put(ONE, buf_str(&example));
	CHECK_INT(config_load(&defaults, &src, &e), 0);
	text = example_uncommented();
	put(ONE, text);
	config_fini(&c);
	CHECK_INT(config_load(&c, &src, &e), 0);
	CHECK_INT(defaults.nplans, 0);
	CHECK_INT(c.nplans, 1);
	CHECK_STR(c.plans[0].name, "free");
	CHECK_INT(c.plans[0].executions_per_day, 50);
	CHECK_INT(c.plans[0].compute_seconds_per_month, 2 * 3600);
	CHECK_INT(c.plans[0].output_bytes_per_day, 100 << 20);
	CHECK_INT(c.plans[0].budget_action, PLAN_REFUSE);
	for (unsigned i = 0; i < CONFIG_NKEYS; i++) {
		const struct config_row *r = &config_rows[i];
		const char *dot = strrchr(r->name, '.');
		char line[80];

		snprintf(line, sizeof(line), "\n#%s = ", dot ? dot + 1 : r->name);
		CHECK(strstr(buf_str(&example), line));
		CHECK_INT(defaults.values[i].from, FROM_DEFAULT);
		CHECK_INT(c.values[i].from,
			  r->otherwise || r->type == CONFIG_LIST ? FROM_FILE : FROM_DEFAULT);
		if (r->otherwise && *r->otherwise != '$')
			CHECK_STR(c.values[i].text, defaults.values[i].text);
	}
	CHECK_STR(config_text(&c, CONFIG_STATE), "/var/lib/atoll");
	CHECK_STR(config_text(&c, CONFIG_SOCKET), "/run/atoll/atoll.sock");
	config_fini(&defaults);
}

TEST(no_line_of_the_example_is_longer_than_a_screen)
{
	auto_buf struct buf text = { 0 };

	config_print_example(&text);
	for (const char *line = buf_str(&text); *line; line += strcspn(line, "\n") + 1)
		CHECK(strcspn(line, "\n") <= 110);
}

TEST(flags_override_environment_which_overrides_near_and_far_files)
{
	static const struct config_given given[] = { { CONFIG_DRAIN, "5s" } };
	struct config_source src = { .system_file = path[SYSTEM], .given = given, .ngiven = 1 };

	begin();
	put(SYSTEM, "[serve]\ndrain = '1s'\nuser = 'a'\ndomain = ['a.org']\n[box]\nmem = '1G'\n");
	put(USER, "[serve]\ndrain = '2s'\nuser = 'b'\n[box]\nmem = '2G'\ncpu = 0.5\n");
	put(PROJECT, "[box]\nmem = '3G'\n");
	setenv("ATOLL_DRAIN", "4s", 1);
	CHECK_INT(load(1), 0);
	CHECK_INT(config_number(&c, CONFIG_DRAIN), 4000);
	CHECK_STR(c.values[CONFIG_DRAIN].where, "ATOLL_DRAIN");
	CHECK_STR(config_text(&c, CONFIG_USER), "b");
	CHECK(strstr(c.values[CONFIG_USER].where, "/home/atoll/config.toml:3"));
	CHECK_STR(config_list(&c, CONFIG_DOMAIN)[0], "a.org");
	CHECK(strstr(c.values[CONFIG_DOMAIN].where, "/system.toml:4"));
	CHECK_STR(config_text(&c, CONFIG_BOX_MEM), "3G");
	CHECK(strstr(c.values[CONFIG_BOX_MEM].where, "/proj/atoll.toml:2"));
	CHECK_INT(config_number(&c, CONFIG_BOX_CPU), 500);
	CHECK_INT(c.nfiles, 3);
	/* The daemon does not read files from the folder in which it was started. */
	CHECK_INT(load(0), 0);
	CHECK_STR(config_text(&c, CONFIG_BOX_MEM), "2G");
	config_fini(&c);
	CHECK_INT(config_load(&c, &src, &e), 0);
	CHECK_INT(config_number(&c, CONFIG_DRAIN), 5000);
	CHECK_STR(c.values[CONFIG_DRAIN].where, "--drain");
}

TEST(a_file_given_by_name_is_the_only_one_read)
{
	struct config_source src = { .file = path[ONE], .system_file = path[SYSTEM] };

	begin();
	put(SYSTEM, "[serve]\nuser = 'a'\n");
	put(ONE, "[serve]\ndrain = '7s'\n");
	config_fini(&c);
	CHECK_INT(config_load(&c, &src, &e), 0);
	CHECK(!config_text(&c, CONFIG_USER));
	CHECK_INT(config_number(&c, CONFIG_DRAIN), 7000);
	unlink(path[ONE]);
	config_fini(&c);
	CHECK_INT(config_load(&c, &src, &e), -1);
	CHECK(strstr(e.msg, "No such file"));
}

TEST(an_error_in_a_file_names_line_and_suggestion)
{
	const struct {
		const char *text, *complaint;
	} rows[] = {
		{ "", "no complaint" },
		{ "[serve]\nlisen = ['a']\n",
		  "2: no setting named 'serve.lisen'; did you mean 'serve.listen'?" },
		{ "listen = ['a']\n",
		  "1: no setting named 'listen'; did you mean 'serve.listen'?" },
		{ "[limits]\ndrain = '1s'\n",
		  "2: no setting named 'limits.drain'; did you mean 'serve.drain'?" },
		{ "\n[serv]\n", "2: no section named 'serv'; did you mean 'serve'?" },
		{ "[something]\nx = 1\n", "1: no section named 'something'" },
		{ "[serve.listen]\n", "1: serve.listen needs an array of strings, not a table" },
		{ "[serve.drain.x]\n", "1: serve.drain needs a time like \"30s\", not a table" },
		{ "[[serve]]\n", "1: no setting named 'serve'" },
		{ "\"serve.drain\" = '1s'\n",
		  "1: no setting named 'serve.drain'; did you mean 'serve.drain'?" },
		{ "serve = 1\n", "1: no setting named 'serve'" },
		{ "'a\\b' = 1\n", "1: no setting named 'a\\b'" },
		{ "[serve]\ndrain = 30\n",
		  "2: serve.drain needs a time like \"30s\", not an integer" },
		{ "[serve]\ndrain = true\n",
		  "2: serve.drain needs a time like \"30s\", not a boolean" },
		{ "[serve]\ndrain = 07:32:00\n",
		  "2: serve.drain needs a time like \"30s\", not a time of day" },
		{ "[serve]\ndrain = '30'\n",
		  "2: serve.drain: time '30' has no unit; write it like 30s or 500ms" },
		{ "[serve]\ndrain = '48h'\n",
		  "2: serve.drain: '48h' is out of range: 1 ms to 24 h 0 m" },
		{ "[serve]\ndrain = 'none'\n",
		  "2: serve.drain: time 'none' is not a number; write it like 30s or 500ms" },
		{ "[serve]\nlisten = [1]\n",
		  "2: serve.listen needs an array of strings, not an array of something else" },
		{ "[serve]\nlisten = ['x']\n",
		  "2: serve.listen: address 'x' has no port, or no host before it; write it like "
		  "127.0.0.1:7070, [::1]:7070, :7070 or unix:/path" },
		{ "[serve]\nlisten = ['']\n", "2: serve.listen: is empty" },
		{ "[serve]\nstate = 'here'\n", "2: serve.state: 'here' is not an absolute path" },
		{ "[serve]\nstate = ''\n", "2: serve.state: is empty" },
		{ "[serve]\nstate = \"/a\\nb\"\n",
		  "2: serve.state: has a control character in it" },
		{ "[serve]\nstate = \"/a\\u0000b\"\n",
		  "2: serve.state needs a string with an absolute path, not a string" },
		{ "[serve]\ndomain = ['a..b']\n",
		  "2: serve.domain: 'a..b' is not a host name; write it like box.example.org or *.example.org" },
		{ "[serve]\norigins = ['https://a.org/x']\n",
		  "2: serve.origins: 'https://a.org/x' is not an origin; write it like https://app.example.org, "
		  "without a path" },
		{ "[keeper]\npool = -1\n",
		  "2: keeper.pool: count '-1' is negative; write it like 64" },
		{ "[keeper]\npool = 1001\n", "2: keeper.pool: '1001' is out of range: 0 to 1000" },
		{ "[keeper]\npool = 1.5\n", "2: keeper.pool needs an integer, not a float" },
		{ "[log]\nlevel = 'loud'\n",
		  "2: log.level: 'loud' is not one of debug, info, warn, error, none" },
		{ "[metrics]\npublic = 'true'\n",
		  "2: metrics.public needs true or false, not a string" },
		{ "[limits]\nmax_body = '1'\n",
		  "2: limits.max_body: '1' is out of range: 1 KiB to 16 TiB" },
		{ "a = ", "1:5: expected a value, saw the end of the file" },
	};

	begin();
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		CHECK_STR(complaint(rows[i].text), rows[i].complaint);
}

TEST(every_notation_allowed_in_a_file_is_accepted)
{
	begin();
	CHECK_STR(complaint("[serve]\nlisten = '127.0.0.1:1, unix:/a'\ndomain = []\n"
			    "[limits]\nmax_body = 65536\ndefault_idle = '5m'\nretention = 'none'\n"
			    "[keeper]\npool = 0\n[box]\ncpu = 2\n[metrics]\npublic = true\n"
			    "[quota]\noutput_bytes_per_day = '1.5G'\nboxes = 0\n"),
		  "no complaint");
	CHECK_STR(config_list(&c, CONFIG_LISTEN)[0], "127.0.0.1:1");
	CHECK_STR(config_list(&c, CONFIG_LISTEN)[1], "unix:/a");
	CHECK(!config_list(&c, CONFIG_LISTEN)[2] && !config_list(&c, CONFIG_DOMAIN)[0]);
	CHECK_INT(config_number(&c, CONFIG_MAX_BODY), 65536);
	CHECK_INT(config_number(&c, CONFIG_DEFAULT_IDLE), 300000);
	CHECK_INT(config_number(&c, CONFIG_RETENTION), 0);
	CHECK_INT(config_number(&c, CONFIG_POOL), 0);
	CHECK_INT(config_number(&c, CONFIG_BOX_CPU), 2000);
	CHECK(config_bool(&c, CONFIG_METRICS_PUBLIC));
	CHECK_INT(config_number(&c, CONFIG_QUOTA_OUTPUT), 1536 << 20);
}

TEST(contradicting_settings_are_rejected_with_both_sources)
{
	begin();
	CHECK(strstr(complaint("[serve]\ntls_cert = '/a'\n"),
		     "one does not work without the other"));
	CHECK(strstr(complaint("[limits]\ndefault_lifetime = '2h'\nmax_lifetime = '1h'\n"),
		     "the default is above the maximum"));
	CHECK(strstr(complaint("[auth]\noidc_issuer = 'https://a.org'\n"),
		     "tokens need the public keys of the issuer"));
	CHECK(strstr(complaint("[auth]\noidc_issuer = 'https://a.org'\noidc_jwks = '/a'\n"),
		     "tokens for other services are rejected"));
}

TEST(an_error_in_the_environment_or_a_flag_names_it)
{
	static const struct config_given given[] = { { CONFIG_LISTEN, "x" } };
	struct config_source src = { .system_file = path[SYSTEM], .given = given, .ngiven = 1 };

	begin();
	setenv("ATOLL_POOL", "many", 1);
	CHECK_INT(load(0), -1);
	CHECK_STR(e.msg, "ATOLL_POOL: count 'many' is not a number; write it like 64");
	setenv("ATOLL_POOL", "", 1);
	CHECK_INT(load(0), 0);
	config_fini(&c);
	CHECK_INT(config_load(&c, &src, &e), -1);
	CHECK(!strncmp(e.msg, "--listen: address 'x'", 21));
}

TEST(a_flag_of_a_list_may_be_repeated)
{
	static const struct config_given given[] = { { CONFIG_LISTEN, ":1" },
						     { CONFIG_LISTEN, ":2,:3" },
						     { CONFIG_POOL, "1" },
						     { CONFIG_POOL, "2" } };
	struct config_source src = { .system_file = path[SYSTEM], .given = given, .ngiven = 4 };

	begin();
	setenv("ATOLL_LISTEN", ":9", 1);
	config_fini(&c);
	CHECK_INT(config_load(&c, &src, &e), 0);
	CHECK_STR(config_text(&c, CONFIG_LISTEN), ":1,:2,:3");
	CHECK_STR(config_list(&c, CONFIG_LISTEN)[2], ":3");
	CHECK_INT(config_number(&c, CONFIG_POOL), 2);
}

TEST(a_project_file_may_not_set_host_or_key)
{
	static const char *const lines[] = { "host = 'http://127.0.0.1:1'\n", "key = '" KEY "'\n",
					     "key_file = '/a'\n", "[serve]\nstate = '/a'\n" };

	begin();
	for (unsigned i = 0; i < ARRAY_LEN(lines); i++) {
		put(PROJECT, lines[i]);
		CHECK_INT(load(1), -1);
		CHECK_INT(e.kind, ERR_DENIED);
		CHECK(strstr(e.msg, "may not be set by a project's file"));
		CHECK_INT(load(0), 0);
	}
}

TEST(a_project_file_of_another_user_is_ignored)
{
	begin();
	if (geteuid() != 0)
		SKIP("not root: files of another user cannot be created");
	put(PROJECT, "[box]\nmem = '3G'\n");
	CHECK_INT(load(1), 0);
	CHECK(config_number(&c, CONFIG_BOX_MEM) > 0);
	CHECK_INT(chown(path[PROJECT], 4711, 4711), 0);
	CHECK_INT(load(1), 0);
	CHECK_INT(config_number(&c, CONFIG_BOX_MEM), 0);
}

TEST(an_api_key_is_never_printed_completely)
{
	char shown[CONFIG_SHOWN];

	begin();
	put(USER, "key = '" KEY "'\n");
	CHECK_INT(load(1), 0);
	CHECK_STR(config_text(&c, CONFIG_KEY), KEY);
	CHECK_STR(config_shown(&c, CONFIG_KEY, shown), "e2b_0123…");
	put(USER, "key = " KEY "\n"); /* without quotes: the parser would quote it */
	CHECK_INT(load(1), -1);
	CHECK(!strstr(e.msg, "0123"));
	put(USER, "key = '" KEY "0'\n");
	CHECK_INT(load(1), -1);
	CHECK(!strstr(e.msg, "0123") && strstr(e.msg, "this one has 45 characters"));
	unlink(path[USER]);
	setenv("ATOLL_KEY", "hunter2", 1);
	CHECK_INT(load(1), -1);
	CHECK(!strstr(e.msg, "hunter2"));
}

TEST(default_folders_are_below_the_run_folder)
{
	begin();
	setenv("ATOLL_RUN", "/somewhere", 1);
	CHECK_INT(load(0), 0);
	CHECK_STR(config_text(&c, CONFIG_SOCKET), "/somewhere/atoll.sock");
	setenv("ATOLL_RUN", "not/absolute", 1);
	CHECK_INT(load(0), -1);
	unsetenv("ATOLL_RUN");
}

TEST(an_unreadable_configuration_file_is_reported)
{
	struct config_source src = { .file = folder };

	begin();
	config_fini(&c);
	CHECK_INT(config_load(&c, &src, &e), -1);
	CHECK(strstr(e.msg, "is not a file"));
	src.file = "/dev/zero";
	CHECK_INT(config_load(&c, &src, &e), -1);
	mkfifo(path[ONE], 0600);
	src.file = path[ONE];
	CHECK_INT(config_load(&c, &src, &e), -1);
	CHECK(strstr(e.msg, "is not a file"));
	begin();
}

TEST(a_plan_is_a_section_of_a_file)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "[plan]\nboxes = 3\n", "2: a plan is a section of its own: [plan.free]" },
		{ "[plan.Free]\n", "'Free' is not the name of a plan" },
		{ "[plan.free]\nboxes = 1.5\n",
		  "boxes of a plan needs a text in quotes or an integer" },
		{ "[plan.free]\nboxes = -1\n", "2: plan free: boxes: " },
		{ "[plan.free]\nbudget_per_day = \"NaN\"\n",
		  "2: plan free: budget_per_day: 'NaN'" },
		{ "[plan.free]\nbox = 1\n",
		  "2: plan free: no setting named 'box'; did you mean 'boxes'?" },
	};

	begin();
	put(SYSTEM,
	    "[plan.free]\nboxes = 3\nbudget_per_day = \"1.5\"\n[plan.pro]\nmax_lifetime = \"none\"\n");
	put(USER, "[plan.free]\nboxes = 4\n");
	CHECK_INT(load(0), 0);
	CHECK_INT(c.nplans, 2);
	CHECK_INT(plan_find(c.plans, c.nplans, "free")->boxes, 4);
	CHECK_INT(plan_find(c.plans, c.nplans, "free")->budget_per_day_nano, 1500000000);
	CHECK(plan_find(c.plans, c.nplans, "pro")->max_lifetime_ms == PLAN_NONE);
	CHECK(!plan_find(c.plans, c.nplans, "absent"));
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		begin();
		put(SYSTEM, bad[i].text);
		CHECK_INT(load(0), -1);
		CHECK(strstr(e.msg, bad[i].says));
	}
	begin();
	put(PROJECT, "[plan.free]\nboxes = 4\n");
	CHECK_INT(load(1), -1);
}

TEST(a_role_in_a_cluster_needs_its_settings)
{
	static const struct {
		const char *text, *complaint;
	} rows[] = {
		{ "role = 'alone'", "no complaint" },
		{ "role = 'slave'", "'slave'" },
		{ "role = 'node'", "write cluster.gateways = [\"gateway.example.org:7071\"]" },
		{ "role = 'node'\ngateways = ['gw.example.org:7071', '[2001:db8::1]:7071']",
		  "no complaint" },
		{ "gateways = ['gw.example.org']",
		  "it has no port; write it like gateway.example.org:7071" },
		{ "gateways = ['https://gw.example.org:7071']", "is not the address of a gateway" },
		{ "gateways = ['gw.example.org:0']", "is not the address of a gateway" },
		{ "role = 'gateway'", "needs a database; write cluster.database = " },
		{ "role = 'both'", "needs a database; write cluster.database = " },
		{ "role = 'gateway'\ndatabase = 'postgresql://a@b/c'", "no complaint" },
		{ "role = 'both'\ndatabase = 'host=/run/pg dbname=a'", "no complaint" },
		{ "database = 'db.example.org'", "is not a connection string" },
		{ "database = 'postgresql://a:pw@b/c'",
		  "the file 'database' of the folder cluster.secrets" },
		{ "database = 'host=b password=pw'",
		  "the file 'database' of the folder cluster.secrets" },
		{ "database = 'postgresql://b/c?password=pw'", "the file 'database'" },
		{ "database = 'postgresql://b:5432/c'", "no complaint" },
		{ "listen = 'unix:/a'", "is a unix socket, and nodes are other machines" },
		{ "listen = 'gw.example.org:7071'", "gw.example.org" },
		{ "name = 'Node 7'", "is not the name of a machine" },
		{ "name = '-a'", "is not the name of a machine" },
		{ "secrets = 'here'", "is not an absolute path" },
		{ "placement = 'random'", "'random'" },
		{ "labels = ['zone=eu-1', 'gpu']",
		  "'gpu' is not a label; write it like zone=eu-1" },
		{ "labels = ['=x']", "is not a label" },
		{ "objects = 'https://s3.example.org/atoll/more'", "has more than a bucket" },
		{ "etcd = ['127.0.0.1:2379']", "127.0.0.1:2379" },
		{ "forget_after = '0s'", "0s" },
	};

	begin();
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		char text[300];
		const char *got;

		snprintf(text, sizeof(text), "[cluster]\n%s\n", rows[i].text);
		got = complaint(text);
		if (!strstr(got, rows[i].complaint))
			printf("# %s: %s\n", rows[i].text, got);
		CHECK(strstr(got, rows[i].complaint));
		CHECK(!strstr(got, "pw"));
	}
}

TEST(a_rate_is_a_decimal_number_in_quotes)
{
	begin();
	put(SYSTEM, "[rates]\ncpu_second = \"0.000014\"\nnetwork_gib = 2\ncurrency = \"EUR\"\n");
	CHECK_INT(load(0), 0);
	CHECK_INT(config_number(&c, (enum config_key)(CONFIG_RATES + RATE_CPU)), 14000000);
	CHECK_INT(config_number(&c, (enum config_key)(CONFIG_RATES + RATE_NETWORK)), 2000000000000);
	put(SYSTEM, "[rates]\ncpu_second = 0.000014\n");
	CHECK_INT(load(0), -1);
	CHECK(strstr(e.msg, "2: rates.cpu_second needs a decimal number in quotes"));
	put(SYSTEM, "[rates]\ncpu_second = -1\n");
	CHECK_INT(load(0), -1);
	CHECK(strstr(e.msg, "'-1' is not a decimal number"));
}
