/* schema.c - see schema.h. STRICT: a number that is too large for 64 bits is rejected, not
 * turned into a fraction. Random ids are ordinary keys and not the tables' order, so that a new
 * row is written to the page of the last one. */
#include "store/schema.h"
#include "base/cleanup.h"
#include "store/sql.h"

#include <stdio.h>

static const char first[] =
	"CREATE TABLE teams ("
	" name TEXT PRIMARY KEY,"
	" created_ns INTEGER NOT NULL,"
	" boxes INTEGER NOT NULL,"
	" executions_per_day INTEGER NOT NULL,"
	" compute_ms_per_month INTEGER NOT NULL,"
	" output_bytes_per_day INTEGER NOT NULL,"
	" requests_per_second INTEGER NOT NULL"
	") STRICT;"
	"INSERT INTO teams VALUES ('default', 0, 0, 0, 0, 0, 0);"

	"CREATE TABLE usage ("
	" team TEXT NOT NULL REFERENCES teams ON DELETE CASCADE,"
	" day INTEGER NOT NULL,"
	" executions INTEGER NOT NULL,"
	" compute_ms INTEGER NOT NULL,"
	" output_bytes INTEGER NOT NULL,"
	" boxes_created INTEGER NOT NULL,"
	" PRIMARY KEY (team, day)"
	") STRICT, WITHOUT ROWID;"

	"CREATE TABLE keys ("
	" id TEXT PRIMARY KEY,"
	" name TEXT NOT NULL,"
	" team TEXT NOT NULL REFERENCES teams,"
	" role TEXT NOT NULL CONSTRAINT \"role is known\""
	"  CHECK (role IN ('viewer', 'editor', 'owner')),"
	" box TEXT NOT NULL,"
	" hash BLOB NOT NULL UNIQUE,"
	" shown TEXT NOT NULL,"
	" created_ns INTEGER NOT NULL,"
	" used_ns INTEGER NOT NULL,"
	" expires_ns INTEGER NOT NULL,"
	" revoked INTEGER NOT NULL"
	") STRICT;"
	/* A revoked key stays in lists, and its name can be used for a new key. */
	"CREATE UNIQUE INDEX keys_name ON keys (team, name) WHERE name <> '' AND NOT revoked;"
	"CREATE INDEX keys_team ON keys (team, created_ns, id);"

	"CREATE TABLE boxes ("
	" id TEXT PRIMARY KEY,"
	" team TEXT NOT NULL,"
	" name TEXT NOT NULL,"
	" session TEXT NOT NULL,"
	" template TEXT NOT NULL,"
	" boot TEXT NOT NULL,"
	" state TEXT NOT NULL CONSTRAINT \"state is known\""
	"  CHECK (state IN ('running', 'kept', 'gone')),"
	" on_timeout TEXT NOT NULL CONSTRAINT \"on_timeout is known\""
	"  CHECK (on_timeout IN ('kill', 'keep')),"
	" created_ns INTEGER NOT NULL,"
	" ends_ns INTEGER NOT NULL,"
	" idle_since_ns INTEGER NOT NULL,"
	" kept_until_ns INTEGER NOT NULL,"
	" ended_ns INTEGER NOT NULL,"
	" cause TEXT NOT NULL,"
	" lifetime_ms INTEGER NOT NULL,"
	" idle_ms INTEGER NOT NULL,"
	" retention_ms INTEGER NOT NULL,"
	" layers INTEGER NOT NULL,"
	" mem_bytes INTEGER NOT NULL,"
	" disk_bytes INTEGER NOT NULL,"
	" disk_files INTEGER NOT NULL,"
	" cpu_ms INTEGER NOT NULL,"
	" cpu_milli INTEGER NOT NULL,"
	" pids INTEGER NOT NULL,"
	" metadata TEXT NOT NULL CONSTRAINT \"metadata is a JSON object\""
	"  CHECK (json_valid(metadata) AND json_type(metadata) = 'object'),"
	" env TEXT NOT NULL CONSTRAINT \"env is a JSON object\""
	"  CHECK (json_valid(env) AND json_type(env) = 'object'),"
	" volumes TEXT NOT NULL CONSTRAINT \"volumes are a JSON array\""
	"  CHECK (json_valid(volumes) AND json_type(volumes) = 'array')"
	") STRICT;"
	"CREATE UNIQUE INDEX boxes_name ON boxes (team, name) WHERE name <> '' AND state <> 'gone';"
	"CREATE UNIQUE INDEX boxes_session ON boxes (team, session, template)"
	" WHERE session <> '' AND state <> 'gone';"
	"CREATE INDEX boxes_team ON boxes (team, created_ns, id);"
	/* Few boxes run and many are gone: a list of the running ones must not read the others. */
	"CREATE INDEX boxes_live ON boxes (team, created_ns, id) WHERE state <> 'gone';"
	"CREATE INDEX boxes_gone ON boxes (ended_ns) WHERE state = 'gone';"

	"CREATE TABLE runs ("
	" id TEXT PRIMARY KEY,"
	" box TEXT NOT NULL,"
	" team TEXT NOT NULL,"
	" ref INTEGER NOT NULL,"
	" kind TEXT NOT NULL CONSTRAINT \"kind is known\" CHECK (kind IN ('exec', 'pty', 'run')),"
	" tag TEXT NOT NULL,"
	" started_ns INTEGER NOT NULL,"
	" ended_ns INTEGER NOT NULL,"
	" cause TEXT NOT NULL,"
	" status INTEGER NOT NULL,"
	" output_bytes INTEGER NOT NULL,"
	" command TEXT NOT NULL,"
	" record TEXT NOT NULL"
	") STRICT;"
	"CREATE INDEX runs_team ON runs (team, started_ns, id);"
	"CREATE INDEX runs_box ON runs (box, started_ns, id);"
	"CREATE INDEX runs_running ON runs (box, started_ns, id) WHERE ended_ns = 0;"
	"CREATE INDEX runs_ended ON runs (ended_ns) WHERE ended_ns > 0;"
	/* Nearly all execs end with 'exit', and for those the index runs_team is enough. */
	"CREATE INDEX runs_cause ON runs (team, cause, started_ns, id)"
	" WHERE cause NOT IN ('', 'exit');"
	"CREATE INDEX runs_tag ON runs (team, tag, started_ns, id) WHERE tag <> '';"

	"CREATE TABLE audit ("
	" seq INTEGER PRIMARY KEY AUTOINCREMENT,"
	" at_ns INTEGER NOT NULL,"
	" who TEXT NOT NULL,"
	" team TEXT NOT NULL,"
	" action TEXT NOT NULL,"
	" subject TEXT NOT NULL,"
	" result TEXT NOT NULL,"
	" detail TEXT NOT NULL"
	") STRICT;"
	"CREATE INDEX audit_team ON audit (team, seq);"
	/* Rows older than the line may be deleted; the line only moves forward. */
	"CREATE TABLE audit_line (one INTEGER PRIMARY KEY CHECK (one = 1), before_ns INTEGER NOT NULL)"
	" STRICT;"
	"INSERT INTO audit_line VALUES (1, 0);"
	"CREATE TRIGGER audit_stays BEFORE DELETE ON audit"
	" WHEN OLD.at_ns >= (SELECT before_ns FROM audit_line)"
	" BEGIN SELECT RAISE(ABORT, 'audit rows stay until they are retired'); END;"
	"CREATE TRIGGER audit_as_written BEFORE UPDATE ON audit"
	" BEGIN SELECT RAISE(ABORT, 'audit rows do not change'); END;"
	"CREATE TRIGGER audit_line_stays BEFORE DELETE ON audit_line"
	" BEGIN SELECT RAISE(ABORT, 'the line only moves forward'); END;"
	"CREATE TRIGGER audit_line_forward BEFORE UPDATE ON audit_line"
	" WHEN NEW.before_ns < OLD.before_ns"
	" BEGIN SELECT RAISE(ABORT, 'the line only moves forward'); END;"

	"CREATE TABLE events ("
	" seq INTEGER PRIMARY KEY AUTOINCREMENT,"
	" at_ns INTEGER NOT NULL,"
	" team TEXT NOT NULL,"
	" box TEXT NOT NULL,"
	" type TEXT NOT NULL,"
	" data TEXT NOT NULL"
	") STRICT;"
	"CREATE INDEX events_team ON events (team, seq);"
	"CREATE INDEX events_box ON events (box, seq);"

	"CREATE TABLE volumes ("
	" id TEXT PRIMARY KEY,"
	" team TEXT NOT NULL REFERENCES teams,"
	" name TEXT NOT NULL,"
	" quota_bytes INTEGER NOT NULL,"
	" created_ns INTEGER NOT NULL,"
	" UNIQUE (team, name)"
	") STRICT;"
	"CREATE TABLE attachments ("
	" volume TEXT NOT NULL REFERENCES volumes,"
	" box TEXT NOT NULL,"
	" path TEXT NOT NULL,"
	" writable INTEGER NOT NULL,"
	" PRIMARY KEY (volume, box),"
	" UNIQUE (box, path)"
	") STRICT, WITHOUT ROWID;"
	"CREATE UNIQUE INDEX attachments_writer ON attachments (volume) WHERE writable;"

	"CREATE TABLE idempotency ("
	" team TEXT NOT NULL,"
	" key TEXT NOT NULL,"
	" hash BLOB NOT NULL,"
	" created_ns INTEGER NOT NULL,"
	" subject TEXT NOT NULL,"
	" status INTEGER NOT NULL," /* 0: not answered yet */
	" type TEXT NOT NULL,"
	" body BLOB NOT NULL,"
	" PRIMARY KEY (team, key)"
	") STRICT;"
	"CREATE INDEX idempotency_age ON idempotency (created_ns);";

static const char contexts[] =
	"CREATE TABLE contexts ("
	" id TEXT PRIMARY KEY,"
	" box TEXT NOT NULL,"
	" language TEXT NOT NULL,"
	" standing INTEGER NOT NULL,"
	" created_ns INTEGER NOT NULL,"
	" cwd TEXT NOT NULL,"
	" env TEXT NOT NULL CONSTRAINT \"env is a JSON object\""
	"  CHECK (json_valid(env) AND json_type(env) = 'object'),"
	" run TEXT NOT NULL,"
	" ref INTEGER NOT NULL,"
	" cell INTEGER NOT NULL,"
	" status TEXT NOT NULL,"
	" from_stdout INTEGER NOT NULL,"
	" from_stderr INTEGER NOT NULL,"
	" from_channel INTEGER NOT NULL,"
	" answers INTEGER NOT NULL,"
	" said INTEGER NOT NULL,"
	" began_ns INTEGER NOT NULL,"
	" deadline_ns INTEGER NOT NULL,"
	" max_output INTEGER NOT NULL"
	") STRICT;"
	"CREATE INDEX contexts_box ON contexts (box, created_ns, id);"
	"CREATE UNIQUE INDEX contexts_standing ON contexts (box, language) WHERE standing;";

static const char batches[] =
	"CREATE TABLE batches ("
	" id TEXT PRIMARY KEY,"
	" team TEXT NOT NULL,"
	" who TEXT NOT NULL,"
	" state TEXT NOT NULL CONSTRAINT \"state is known\""
	"  CHECK (state IN ('receiving', 'running', 'over', 'cancelled')),"
	" created_ns INTEGER NOT NULL,"
	" ended_ns INTEGER NOT NULL,"
	" items INTEGER NOT NULL,"
	" passed INTEGER NOT NULL,"
	" failed INTEGER NOT NULL,"
	" errors INTEGER NOT NULL,"
	" bytes INTEGER NOT NULL,"
	" whole INTEGER NOT NULL,"
	" options TEXT NOT NULL CONSTRAINT \"options are a JSON object\""
	"  CHECK (json_valid(options) AND json_type(options) = 'object')"
	") STRICT;"
	"CREATE INDEX batches_team ON batches (team, created_ns, id);"
	"CREATE INDEX batches_live ON batches (created_ns, id) WHERE ended_ns = 0;"
	"CREATE INDEX batches_ended ON batches (ended_ns) WHERE ended_ns > 0;";

static const char network[] =
	"ALTER TABLE boxes ADD COLUMN network TEXT NOT NULL DEFAULT '[]' CONSTRAINT"
	" \"network is a JSON array\""
	" CHECK (json_valid(network) AND json_type(network) = 'array');";

static const char surfaces[] =
	"ALTER TABLE boxes ADD COLUMN door TEXT NOT NULL DEFAULT '{}' CONSTRAINT"
	" \"door is a JSON object\""
	" CHECK (json_valid(door) AND json_type(door) = 'object');";

static const char package_sets[] = "CREATE TABLE package_sets ("
				   " key TEXT PRIMARY KEY,"
				   " manager TEXT NOT NULL,"
				   " runtime TEXT NOT NULL,"
				   " packages TEXT NOT NULL,"
				   " layer TEXT NOT NULL,"
				   " bytes INTEGER NOT NULL,"
				   " files INTEGER NOT NULL,"
				   " install_ms INTEGER NOT NULL,"
				   " uses INTEGER NOT NULL,"
				   " created_ns INTEGER NOT NULL,"
				   " used_ns INTEGER NOT NULL"
				   ") STRICT;"
				   "CREATE INDEX package_sets_layer ON package_sets (layer);";

/* A client waits for the first write of an exec, but not for the second. So while an exec runs
 * only the index for running ones contains it; it enters the indices of the lists when it ends.
 * (And a CHECK with IN builds a table of the values each time; one with OR does not.) */
static const char cheaper_runs[] =
	"CREATE TABLE new_runs ("
	" id TEXT PRIMARY KEY,"
	" box TEXT NOT NULL,"
	" team TEXT NOT NULL,"
	" ref INTEGER NOT NULL,"
	" kind TEXT NOT NULL CONSTRAINT \"kind is known\""
	"  CHECK (kind = 'exec' OR kind = 'pty' OR kind = 'run'),"
	" tag TEXT NOT NULL,"
	" started_ns INTEGER NOT NULL,"
	" ended_ns INTEGER NOT NULL,"
	" cause TEXT NOT NULL,"
	" status INTEGER NOT NULL,"
	" output_bytes INTEGER NOT NULL,"
	" command TEXT NOT NULL,"
	" record TEXT NOT NULL"
	") STRICT;"
	"INSERT INTO new_runs SELECT id, box, team, ref, kind, tag, started_ns, ended_ns, cause, status,"
	" output_bytes, command, record FROM runs ORDER BY rowid;"
	"DROP TABLE runs;"
	"ALTER TABLE new_runs RENAME TO runs;"
	"CREATE INDEX runs_running ON runs (box, started_ns, id) WHERE ended_ns = 0;"
	"CREATE INDEX runs_team ON runs (team, started_ns, id) WHERE ended_ns > 0;"
	"CREATE INDEX runs_box ON runs (box, started_ns, id) WHERE ended_ns > 0;"
	"CREATE INDEX runs_ended ON runs (ended_ns) WHERE ended_ns > 0;"
	/* Nearly all execs end with 'exit', and for those the index runs_team is enough. */
	"CREATE INDEX runs_cause ON runs (team, cause, started_ns, id)"
	" WHERE cause NOT IN ('', 'exit');"
	"CREATE INDEX runs_tag ON runs (team, tag, started_ns, id) WHERE ended_ns > 0 AND tag <> '';";

/* Adds the state of paused boxes, and started_ns: when a box was created or resumed last. */
static const char pauses[] =
	"CREATE TABLE new_boxes ("
	" id TEXT PRIMARY KEY,"
	" team TEXT NOT NULL,"
	" name TEXT NOT NULL,"
	" session TEXT NOT NULL,"
	" template TEXT NOT NULL,"
	" boot TEXT NOT NULL,"
	" state TEXT NOT NULL CONSTRAINT \"state is known\""
	"  CHECK (state IN ('running', 'kept', 'paused', 'gone')),"
	" on_timeout TEXT NOT NULL CONSTRAINT \"on_timeout is known\""
	"  CHECK (on_timeout IN ('kill', 'keep', 'pause')),"
	" created_ns INTEGER NOT NULL,"
	" ends_ns INTEGER NOT NULL,"
	" idle_since_ns INTEGER NOT NULL,"
	" kept_until_ns INTEGER NOT NULL,"
	" ended_ns INTEGER NOT NULL,"
	" cause TEXT NOT NULL,"
	" lifetime_ms INTEGER NOT NULL,"
	" idle_ms INTEGER NOT NULL,"
	" retention_ms INTEGER NOT NULL,"
	" layers INTEGER NOT NULL,"
	" mem_bytes INTEGER NOT NULL,"
	" disk_bytes INTEGER NOT NULL,"
	" disk_files INTEGER NOT NULL,"
	" cpu_ms INTEGER NOT NULL,"
	" cpu_milli INTEGER NOT NULL,"
	" pids INTEGER NOT NULL,"
	" metadata TEXT NOT NULL CONSTRAINT \"metadata is a JSON object\""
	"  CHECK (json_valid(metadata) AND json_type(metadata) = 'object'),"
	" env TEXT NOT NULL CONSTRAINT \"env is a JSON object\""
	"  CHECK (json_valid(env) AND json_type(env) = 'object'),"
	" volumes TEXT NOT NULL CONSTRAINT \"volumes are a JSON array\""
	"  CHECK (json_valid(volumes) AND json_type(volumes) = 'array'),"
	" network TEXT NOT NULL CONSTRAINT \"network is a JSON array\""
	"  CHECK (json_valid(network) AND json_type(network) = 'array'),"
	" door TEXT NOT NULL CONSTRAINT \"door is a JSON object\""
	"  CHECK (json_valid(door) AND json_type(door) = 'object'),"
	" started_ns INTEGER NOT NULL"
	") STRICT;"
	"INSERT INTO new_boxes SELECT id, team, name, session, template, boot, state, on_timeout,"
	" created_ns, ends_ns, idle_since_ns, kept_until_ns, ended_ns, cause, lifetime_ms, idle_ms,"
	" retention_ms, layers, mem_bytes, disk_bytes, disk_files, cpu_ms, cpu_milli, pids, metadata,"
	" env, volumes, network, door, created_ns FROM boxes ORDER BY rowid;"
	"DROP TABLE boxes;"
	"ALTER TABLE new_boxes RENAME TO boxes;"
	"CREATE UNIQUE INDEX boxes_name ON boxes (team, name) WHERE name <> '' AND state <> 'gone';"
	"CREATE UNIQUE INDEX boxes_session ON boxes (team, session, template)"
	" WHERE session <> '' AND state <> 'gone';"
	"CREATE INDEX boxes_team ON boxes (team, created_ns, id);"
	/* Few boxes run and many are gone: a list of the running ones must not read the others. */
	"CREATE INDEX boxes_live ON boxes (team, created_ns, id) WHERE state <> 'gone';"
	"CREATE INDEX boxes_gone ON boxes (ended_ns) WHERE state = 'gone';";

static const char snapshots[] =
	"CREATE TABLE snapshots ("
	" id TEXT PRIMARY KEY,"
	" team TEXT NOT NULL REFERENCES teams,"
	" name TEXT NOT NULL," /* "" or one of the team's */
	" tag TEXT NOT NULL,"
	" box TEXT NOT NULL," /* it was taken of */
	" template TEXT NOT NULL,"
	" bytes INTEGER NOT NULL," /* of its file */
	" created_ns INTEGER NOT NULL"
	") STRICT;"
	"CREATE INDEX snapshots_team ON snapshots (team, created_ns, id);"
	"CREATE INDEX snapshots_name ON snapshots (team, name, tag, created_ns) WHERE name <> '';";

static const char pipelines[] =
	"CREATE TABLE pipelines ("
	" id TEXT PRIMARY KEY,"
	" team TEXT NOT NULL,"
	" who TEXT NOT NULL,"
	" state TEXT NOT NULL CONSTRAINT \"state is known\""
	"  CHECK (state IN ('running', 'waiting', 'over')),"
	" title TEXT NOT NULL,"
	" created_ns INTEGER NOT NULL,"
	" ended_ns INTEGER NOT NULL,"
	" outcome TEXT NOT NULL," /* "" until it has ended */
	" category TEXT NOT NULL,"
	" attempts INTEGER NOT NULL,"
	" plan_us INTEGER NOT NULL,"
	" code_us INTEGER NOT NULL,"
	" execute_us INTEGER NOT NULL,"
	" debug_us INTEGER NOT NULL,"
	" calls INTEGER NOT NULL,"
	" tokens_in INTEGER NOT NULL,"
	" tokens_out INTEGER NOT NULL,"
	" cache_read INTEGER NOT NULL,"
	" cost_micro INTEGER NOT NULL," /* millionths */
	" overfit INTEGER NOT NULL"
	") STRICT;"
	"CREATE INDEX pipelines_team ON pipelines (team, created_ns, id);"
	"CREATE INDEX pipelines_live ON pipelines (created_ns) WHERE ended_ns = 0;"
	"CREATE INDEX pipelines_old ON pipelines (ended_ns) WHERE ended_ns > 0;"
	"CREATE TABLE pipeline_docs ("
	" run TEXT NOT NULL,"
	" seq INTEGER NOT NULL,"
	" kind TEXT NOT NULL,"
	" attempt INTEGER NOT NULL,"
	" created_ns INTEGER NOT NULL,"
	" json TEXT NOT NULL,"
	" PRIMARY KEY (run, seq)"
	") STRICT, WITHOUT ROWID;"
	"CREATE TABLE pipeline_events ("
	" run TEXT NOT NULL,"
	" seq INTEGER NOT NULL,"
	" json TEXT NOT NULL,"
	" PRIMARY KEY (run, seq)"
	") STRICT, WITHOUT ROWID;"
	/* Solutions that helped before; a search with the words of a task finds similar tasks. */
	"CREATE VIRTUAL TABLE pipeline_memory USING fts5("
	" task, category, fix, team UNINDEXED, run UNINDEXED);";

/* The settings of a team for its pipelines; a team without a row has the defaults. */
static const char policies_and_agents[] =
	"CREATE TABLE pipeline_policies ("
	" team TEXT PRIMARY KEY REFERENCES teams ON DELETE CASCADE,"
	" scan TEXT NOT NULL CONSTRAINT \"scan is known\""
	"  CHECK (scan IN ('', 'off', 'warn', 'block')),"
	" forgetful INTEGER NOT NULL"
	") STRICT;"
	/* Agents that had a box of their own. */
	"CREATE TABLE errands ("
	" id TEXT PRIMARY KEY,"
	" team TEXT NOT NULL,"
	" who TEXT NOT NULL,"
	" title TEXT NOT NULL,"
	" created_ns INTEGER NOT NULL,"
	" ended_ns INTEGER NOT NULL," /* 0: not yet */
	" outcome TEXT NOT NULL,"
	" report TEXT NOT NULL" /* JSON; "" until it has ended, or where it has none */
	") STRICT;"
	"CREATE INDEX errands_team ON errands (team, created_ns, id);"
	"CREATE INDEX errands_ended ON errands (ended_ns);";

/* How the wall clock stood to the time since boot: clocks.h. */
static const char clocks[] =
	"CREATE TABLE clock (one INTEGER PRIMARY KEY CHECK (one = 1), boot TEXT NOT NULL,"
	" offset_ns INTEGER NOT NULL) STRICT;";

/* What rows of the history take, for store/history.c: read from indices alone, newest first, and
 * computed only when a row enters or leaves them. 256 is about what a row and its index entries take
 * besides their texts. */
#define BYTES_OF(column) "length(CAST(" column " AS BLOB))"
static const char history[] =
	"ALTER TABLE runs ADD COLUMN bytes INTEGER NOT NULL GENERATED ALWAYS AS"
	" (256 + " BYTES_OF("command") " + " BYTES_OF(
		"record") ") VIRTUAL;"
			  "DROP INDEX runs_ended;"
			  "CREATE INDEX runs_history ON runs (team, ended_ns, bytes) WHERE ended_ns <> 0;"
			  "ALTER TABLE boxes ADD COLUMN bytes INTEGER NOT NULL GENERATED ALWAYS AS"
			  " (256 + " BYTES_OF("metadata") " + " BYTES_OF("env") " + " BYTES_OF("volumes") " + " BYTES_OF(
				  "network") " + " BYTES_OF("door") ") VIRTUAL;"
								    "DROP INDEX boxes_gone;"
								    "CREATE INDEX boxes_history ON boxes (team, ended_ns, bytes) WHERE NOT state <> 'gone';"
								    "ALTER TABLE idempotency ADD COLUMN bytes INTEGER NOT NULL GENERATED ALWAYS AS"
								    " (256 + length(body)) VIRTUAL;"
								    "DROP INDEX idempotency_age;"
								    "CREATE INDEX idempotency_history ON idempotency (team, created_ns, bytes);";

/* Sessions of MCP's older versions: mcp_sessions.h. The index: which of a team are unused for
 * the longest. */
static const char mcp_sessions[] =
	"CREATE TABLE mcp_sessions ("
	" id TEXT PRIMARY KEY,"
	" team TEXT NOT NULL,"
	" key TEXT NOT NULL,"
	" level INTEGER NOT NULL,"
	" can INTEGER NOT NULL,"
	" used_ns INTEGER NOT NULL"
	") STRICT;"
	"CREATE INDEX mcp_sessions_used ON mcp_sessions (team, used_ns);";

/* One-time links to the web UI: ui_links.h. */
static const char ui_links[] = "CREATE TABLE ui_links ("
			       " hash BLOB PRIMARY KEY,"
			       " team TEXT NOT NULL,"
			       " who TEXT NOT NULL,"
			       " role INTEGER NOT NULL,"
			       " expires_ns INTEGER NOT NULL"
			       ") STRICT;"
			       "CREATE INDEX ui_links_team ON ui_links (team, expires_ns);";

/* Secrets of teams (secrets.h), and what a box was given of them: names, placeholders, its CA with an
 * encrypted key; no value. */
static const char secrets[] =
	"CREATE TABLE secrets ("
	" team TEXT NOT NULL REFERENCES teams ON DELETE CASCADE,"
	" name TEXT NOT NULL,"
	" key TEXT NOT NULL,"
	" hosts TEXT NOT NULL CONSTRAINT \"hosts are a JSON array\""
	"  CHECK (json_valid(hosts) AND json_type(hosts) = 'array'),"
	" sealed BLOB NOT NULL,"
	" version INTEGER NOT NULL,"
	" created_ns INTEGER NOT NULL,"
	" updated_ns INTEGER NOT NULL,"
	" PRIMARY KEY (team, name)"
	") STRICT;"
	"ALTER TABLE boxes ADD COLUMN secrets TEXT NOT NULL DEFAULT '{}' CONSTRAINT"
	" \"secrets are a JSON object\""
	" CHECK (json_valid(secrets) AND json_type(secrets) = 'object');";

/* Network rules of teams, and what boxes have used of their budget: network.h. */
static const char network_rules[] = "CREATE TABLE network_rules ("
				    " team TEXT PRIMARY KEY REFERENCES teams ON DELETE CASCADE,"
				    " rules TEXT NOT NULL CONSTRAINT \"rules are a JSON array\""
				    "  CHECK (json_valid(rules) AND json_type(rules) = 'array')"
				    ") STRICT;"
				    "CREATE TABLE network_usage ("
				    " box TEXT PRIMARY KEY REFERENCES boxes ON DELETE CASCADE,"
				    " bytes_in INTEGER NOT NULL,"
				    " bytes_out INTEGER NOT NULL,"
				    " dns_queries INTEGER NOT NULL"
				    ") STRICT;";

/* Templates (templates.h), their builds, and what builds made (builds.h). A box remembers the root of
 * its template: the rows of a template may be removed while boxes use it. */
static const char templates[] =
	"CREATE TABLE templates ("
	" id TEXT PRIMARY KEY,"
	" team TEXT NOT NULL REFERENCES teams,"
	" name TEXT NOT NULL,"
	" public INTEGER NOT NULL,"
	" description TEXT NOT NULL,"
	" pool INTEGER NOT NULL,"
	" created_ns INTEGER NOT NULL,"
	" updated_ns INTEGER NOT NULL,"
	" spawns INTEGER NOT NULL,"
	" spawned_ns INTEGER NOT NULL,"
	" UNIQUE (team, name)"
	") STRICT;"
	"CREATE INDEX templates_name ON templates (name);"
	"CREATE TABLE template_aliases ("
	" team TEXT NOT NULL,"
	" name TEXT NOT NULL,"
	" template TEXT NOT NULL REFERENCES templates ON DELETE CASCADE,"
	" PRIMARY KEY (team, name)"
	") STRICT, WITHOUT ROWID;"
	"CREATE INDEX template_aliases_template ON template_aliases (template);"
	"CREATE INDEX template_aliases_name ON template_aliases (name);"
	"CREATE TABLE builds ("
	" id TEXT PRIMARY KEY,"
	" template TEXT NOT NULL REFERENCES templates ON DELETE CASCADE,"
	" team TEXT NOT NULL,"
	" created_ns INTEGER NOT NULL,"
	" state TEXT NOT NULL CONSTRAINT \"state is known\""
	"  CHECK (state IN ('waiting', 'building', 'ready', 'error', 'cancelled')),"
	" definition TEXT NOT NULL CHECK (json_valid(definition)),"
	" tags TEXT NOT NULL CHECK (json_valid(tags)),"
	" progress TEXT NOT NULL CHECK (json_valid(progress)),"
	" settings TEXT NOT NULL CHECK (json_valid(settings)),"
	" reason TEXT NOT NULL CHECK (json_valid(reason)),"
	" root TEXT NOT NULL,"
	" bytes INTEGER NOT NULL,"
	" cpu_milli INTEGER NOT NULL,"
	" mem_bytes INTEGER NOT NULL,"
	" disk_bytes INTEGER NOT NULL,"
	" started_ns INTEGER NOT NULL,"
	" ended_ns INTEGER NOT NULL"
	") STRICT;"
	"CREATE INDEX builds_team ON builds (team, created_ns, id);"
	"CREATE INDEX builds_template ON builds (template, created_ns, id);"
	"CREATE INDEX builds_root ON builds (root);"
	"CREATE INDEX builds_live ON builds (created_ns, id)"
	" WHERE state IN ('waiting', 'building');"
	"CREATE TABLE template_tags ("
	" template TEXT NOT NULL REFERENCES templates ON DELETE CASCADE,"
	" tag TEXT NOT NULL,"
	" build TEXT NOT NULL REFERENCES builds ON DELETE CASCADE,"
	" created_ns INTEGER NOT NULL,"
	" PRIMARY KEY (template, tag)"
	") STRICT, WITHOUT ROWID;"
	"CREATE INDEX template_tags_build ON template_tags (build);"
	"CREATE TABLE template_layers ("
	" id TEXT PRIMARY KEY,"
	" is_root INTEGER NOT NULL,"
	" bytes INTEGER NOT NULL,"
	" used_ns INTEGER NOT NULL"
	") STRICT;"
	"CREATE TABLE build_cache ("
	" team TEXT NOT NULL,"
	" key TEXT NOT NULL,"
	" layer TEXT NOT NULL,"
	" state TEXT NOT NULL,"
	" used_ns INTEGER NOT NULL,"
	" PRIMARY KEY (team, key)"
	") STRICT;"
	"CREATE INDEX build_cache_layer ON build_cache (layer, used_ns);"
	"CREATE TABLE build_uploads ("
	" team TEXT NOT NULL,"
	" hash TEXT NOT NULL,"
	" file TEXT NOT NULL UNIQUE,"
	" bytes INTEGER NOT NULL,"
	" used_ns INTEGER NOT NULL,"
	" PRIMARY KEY (team, hash)"
	") STRICT;"
	"ALTER TABLE boxes ADD COLUMN root TEXT NOT NULL DEFAULT '{}' CONSTRAINT"
	" \"root is a JSON object\" CHECK (json_valid(root) AND json_type(root) = 'object');";

/* What teams use and what it costs (usage.h), by day and by box, batch and pipeline; the plan of a team; the
 * key that started a run or created a box; which notices about budgets were sent. */
#define USAGE_COUNTS                                                                               \
	" runs INTEGER NOT NULL,"                                                                  \
	" cpu_us INTEGER NOT NULL,"                                                                \
	" memory_mib_ms INTEGER NOT NULL,"                                                         \
	" disk_mib_s INTEGER NOT NULL,"                                                            \
	" network_bytes INTEGER NOT NULL,"                                                         \
	" gpu_us INTEGER NOT NULL,"                                                                \
	" tokens_in INTEGER NOT NULL,"                                                             \
	" tokens_out INTEGER NOT NULL,"                                                            \
	" output_bytes INTEGER NOT NULL,"                                                          \
	" cost_nano INTEGER NOT NULL,"
static const char usage[] =
	"CREATE TABLE usage_days ("
	" day INTEGER NOT NULL,"
	" team TEXT NOT NULL,"
	" tag TEXT NOT NULL,"
	" key TEXT NOT NULL,"
	" template TEXT NOT NULL,"
	" runtime TEXT NOT NULL,"
	" currency TEXT NOT NULL," USAGE_COUNTS
	" PRIMARY KEY (day, team, tag, key, template, runtime, currency)"
	") STRICT, WITHOUT ROWID;"
	"CREATE TABLE usage_totals ("
	" subject TEXT NOT NULL," /* id of a box, batch or pipeline */
	" currency TEXT NOT NULL," USAGE_COUNTS " PRIMARY KEY (subject, currency)"
	") STRICT, WITHOUT ROWID;"
	"CREATE TRIGGER usage_of_box AFTER DELETE ON boxes"
	" BEGIN DELETE FROM usage_totals WHERE subject = OLD.id; END;"
	"CREATE TRIGGER usage_of_batch AFTER DELETE ON batches"
	" BEGIN DELETE FROM usage_totals WHERE subject = OLD.id; END;"
	"CREATE TRIGGER usage_of_pipeline AFTER DELETE ON pipelines"
	" BEGIN DELETE FROM usage_totals WHERE subject = OLD.id; END;"
	"CREATE TABLE budget_notices ("
	" team TEXT NOT NULL REFERENCES teams ON DELETE CASCADE,"
	" period TEXT NOT NULL,"   /* day, month */
	" since INTEGER NOT NULL," /* its first day */
	" percent INTEGER NOT NULL,"
	" PRIMARY KEY (team, period)"
	") STRICT, WITHOUT ROWID;"
	"ALTER TABLE teams ADD COLUMN plan TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE boxes ADD COLUMN key TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE runs ADD COLUMN key TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE runs ADD COLUMN runtime TEXT NOT NULL DEFAULT '';";

/* series.h describes the rows. A sequence number is never used again, so that what was folded stays
 * folded. */
static const char series[] = "CREATE TABLE series_minutes ("
			     " seq INTEGER PRIMARY KEY AUTOINCREMENT,"
			     " at_s INTEGER NOT NULL,"
			     " data BLOB NOT NULL"
			     ") STRICT;"
			     "CREATE INDEX series_minutes_at ON series_minutes (at_s);"
			     "CREATE TABLE series_folded ("
			     " one INTEGER PRIMARY KEY CHECK (one = 1),"
			     " seq INTEGER NOT NULL"
			     ") STRICT;"
			     "CREATE TABLE series_days ("
			     " metric TEXT NOT NULL,"
			     " day_s INTEGER NOT NULL,"
			     " bytes INTEGER NOT NULL,"
			     " data BLOB NOT NULL,"
			     " PRIMARY KEY (metric, day_s)"
			     ") STRICT;"
			     "CREATE INDEX series_days_bytes ON series_days (day_s, bytes);";

/* Receipts of runs (receipts.h), answers of hermetic runs that are used again (memo.h), links that show one run
 * (run_shares.h). A run has the number of its receipt, so that receipts need no second index. */
static const char receipts[] = "CREATE TABLE receipts ("
			       " number INTEGER PRIMARY KEY,"
			       " run TEXT NOT NULL,"
			       " team TEXT NOT NULL,"
			       " at_ns INTEGER NOT NULL,"
			       " hash BLOB NOT NULL,"
			       " body TEXT NOT NULL"
			       ") STRICT;"
			       "ALTER TABLE runs ADD COLUMN receipt INTEGER NOT NULL DEFAULT 0;"
			       "CREATE TABLE memo ("
			       " team TEXT NOT NULL,"
			       " key BLOB NOT NULL,"
			       " run TEXT NOT NULL,"
			       " receipt INTEGER NOT NULL,"
			       " created_ns INTEGER NOT NULL,"
			       " used_ns INTEGER NOT NULL,"
			       " bytes INTEGER NOT NULL,"
			       " answer TEXT NOT NULL,"
			       " PRIMARY KEY (team, key)"
			       ") STRICT;"
			       "CREATE INDEX memo_age ON memo (team, used_ns, bytes);"
			       "CREATE TABLE run_shares ("
			       " id TEXT PRIMARY KEY,"
			       " hash BLOB NOT NULL UNIQUE,"
			       " run TEXT NOT NULL,"
			       " team TEXT NOT NULL,"
			       " who TEXT NOT NULL,"
			       " created_ns INTEGER NOT NULL,"
			       " expires_ns INTEGER NOT NULL"
			       ") STRICT;"
			       "CREATE INDEX run_shares_run ON run_shares (run, created_ns);";

/* Schedules and their ticks: schedules.h. A tick is one time of a schedule; its row is written before
 * anything is started for it. */
static const char schedules[] =
	"CREATE TABLE schedules ("
	" id TEXT PRIMARY KEY,"
	" team TEXT NOT NULL,"
	" name TEXT NOT NULL,"
	" who TEXT NOT NULL,"
	" key TEXT NOT NULL,"
	" role TEXT NOT NULL,"
	" created_ns INTEGER NOT NULL,"
	" updated_ns INTEGER NOT NULL,"
	" expression TEXT NOT NULL,"
	" zone TEXT NOT NULL,"
	" anchor_ns INTEGER NOT NULL,"
	" kind TEXT NOT NULL CONSTRAINT \"kind is known\""
	"  CHECK (kind IN ('run', 'batch', 'pipeline')),"
	" request TEXT NOT NULL CHECK (json_valid(request)),"
	" settings TEXT NOT NULL CHECK (json_valid(settings)),"
	" state TEXT NOT NULL CONSTRAINT \"state is known\""
	"  CHECK (state IN ('active', 'paused', 'ended')),"
	" reason TEXT NOT NULL,"
	" decided_ns INTEGER NOT NULL,"
	" forgotten_ns INTEGER NOT NULL,"
	" UNIQUE (team, name)"
	") STRICT;"
	"CREATE INDEX schedules_team ON schedules (team, created_ns, id);"
	"CREATE TABLE ticks ("
	" schedule TEXT NOT NULL REFERENCES schedules ON DELETE CASCADE,"
	" at_ns INTEGER NOT NULL,"
	" state TEXT NOT NULL CONSTRAINT \"state is known\""
	"  CHECK (state IN ('waiting', 'starting', 'running', 'succeeded', 'failed', 'skipped',"
	"  'missed', 'replaced')),"
	" manual INTEGER NOT NULL,"
	" due_ns INTEGER NOT NULL,"
	" attempt INTEGER NOT NULL,"
	" started_ns INTEGER NOT NULL,"
	" ended_ns INTEGER NOT NULL,"
	" run TEXT NOT NULL,"
	" count INTEGER NOT NULL,"
	" detail TEXT NOT NULL,"
	" PRIMARY KEY (schedule, at_ns)"
	") STRICT, WITHOUT ROWID;"
	"CREATE INDEX ticks_live ON ticks (schedule, at_ns)"
	" WHERE state IN ('waiting', 'starting', 'running');";

/* Webhooks and their deliveries (webhooks.h); alerts, changed rules and notices (alerts.h). */
static const char notifications[] =
	"CREATE TABLE webhooks ("
	" id TEXT PRIMARY KEY,"
	" team TEXT NOT NULL REFERENCES teams ON DELETE CASCADE,"
	" name TEXT NOT NULL,"
	" url TEXT NOT NULL,"
	" events TEXT NOT NULL CONSTRAINT \"events are a JSON array\""
	"  CHECK (json_valid(events) AND json_type(events) = 'array'),"
	" format TEXT NOT NULL,"
	" sealed BLOB NOT NULL,"
	" enabled INTEGER NOT NULL,"
	" created_ns INTEGER NOT NULL,"
	" seq INTEGER NOT NULL,"
	" lost INTEGER NOT NULL,"
	" delivered INTEGER NOT NULL,"
	" delivered_ns INTEGER NOT NULL,"
	" error TEXT NOT NULL,"
	" UNIQUE (team, name)"
	") STRICT;"
	"CREATE TABLE webhook_deliveries ("
	" webhook TEXT NOT NULL REFERENCES webhooks ON DELETE CASCADE,"
	" seq INTEGER NOT NULL,"
	" box TEXT NOT NULL,"
	" type TEXT NOT NULL,"
	" body TEXT NOT NULL,"
	" failed INTEGER NOT NULL," /* 0: waiting; 1: the last attempt was made */
	" attempts INTEGER NOT NULL,"
	" queued_ns INTEGER NOT NULL,"
	" next_ns INTEGER NOT NULL,"
	" status INTEGER NOT NULL,"
	" error TEXT NOT NULL,"
	" PRIMARY KEY (webhook, seq)"
	") STRICT, WITHOUT ROWID;"
	"CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook, failed, next_ns, seq);"
	"CREATE INDEX webhook_deliveries_box ON webhook_deliveries (webhook, failed, box, seq);"
	"CREATE TABLE alerts ("
	" id INTEGER PRIMARY KEY AUTOINCREMENT,"
	" rule TEXT NOT NULL,"
	" subject TEXT NOT NULL,"
	" state TEXT NOT NULL,"
	" value REAL NOT NULL,"
	" threshold REAL NOT NULL,"
	" summary TEXT NOT NULL,"
	" pending_ns INTEGER NOT NULL,"
	" fired_ns INTEGER NOT NULL,"
	" resolved_ns INTEGER NOT NULL"
	") STRICT;"
	"CREATE INDEX alerts_rule ON alerts (rule, subject, id);"
	"CREATE INDEX alerts_open ON alerts (id) WHERE state != 'resolved';"
	"CREATE TABLE alert_rules ("
	" name TEXT PRIMARY KEY,"
	" rule TEXT NOT NULL CONSTRAINT \"a rule is a JSON object\""
	"  CHECK (json_valid(rule) AND json_type(rule) = 'object'),"
	" changed_ns INTEGER NOT NULL"
	") STRICT;"
	"CREATE TABLE alert_notices ("
	" id INTEGER PRIMARY KEY AUTOINCREMENT,"
	" alert INTEGER NOT NULL,"
	" channel TEXT NOT NULL,"
	" body TEXT NOT NULL,"
	" attempts INTEGER NOT NULL,"
	" queued_ns INTEGER NOT NULL,"
	" next_ns INTEGER NOT NULL,"
	" error TEXT NOT NULL"
	") STRICT;"
	"CREATE INDEX alert_notices_due ON alert_notices (next_ns);";

/* Sums of a day in one dimension each, instead of one row for each combination of all of them: their number is
 * the sum of the numbers of keys, tags, templates and runtimes, not the product. */
static const char usage_sums[] = "CREATE TABLE usage_sums ("
				 " dimension INTEGER NOT NULL," /* usage.c */
				 " day INTEGER NOT NULL,"
				 " team TEXT NOT NULL,"
				 " value TEXT NOT NULL,"
				 " currency TEXT NOT NULL," USAGE_COUNTS
				 " PRIMARY KEY (dimension, day, team, value, currency)"
				 ") STRICT, WITHOUT ROWID;"
				 "DROP TABLE usage_days;";

/* Until when the disk space of snapshots was charged: usage.h. */
static const char usage_disk[] =
	"CREATE TABLE usage_disk (one INTEGER PRIMARY KEY CHECK (one = 1), until_ns INTEGER NOT NULL)"
	" STRICT;";

/* The tier of a box and how it was chosen; the minimum tier of a team and of a key, "": none; the tier of the box
 * of a snapshot, "": container. */
static const char isolation[] =
	"ALTER TABLE boxes ADD COLUMN isolation TEXT NOT NULL DEFAULT '{}' CONSTRAINT"
	" \"isolation is a JSON object\""
	" CHECK (json_valid(isolation) AND json_type(isolation) = 'object');"
	"ALTER TABLE teams ADD COLUMN isolation TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE keys ADD COLUMN isolation TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE snapshots ADD COLUMN tier TEXT NOT NULL DEFAULT '';";

/* Proofs of isolation tiers: proofs.h. */
static const char proofs[] = "CREATE TABLE proofs ("
			     " id TEXT PRIMARY KEY,"
			     " tier TEXT NOT NULL,"
			     " at_ns INTEGER NOT NULL,"
			     " duration_us INTEGER NOT NULL,"
			     " passed INTEGER NOT NULL,"
			     " failed INTEGER NOT NULL," /* probes */
			     " kernel TEXT NOT NULL,"
			     " engine TEXT NOT NULL,"
			     " version TEXT NOT NULL,"
			     " engine_sha256 TEXT NOT NULL,"
			     " platform TEXT NOT NULL,"
			     " build TEXT NOT NULL,"
			     " settings TEXT NOT NULL,"
			     " probes TEXT NOT NULL CHECK (json_type(probes) = 'array')"
			     ") STRICT;"
			     "CREATE INDEX proofs_tier ON proofs (tier, at_ns);";

/* Ends of runs by language and outcome, counted in the transaction of each end: runs.h. */
static const char run_counts[] = "CREATE TABLE run_counts ("
				 " language TEXT NOT NULL,"
				 " outcome TEXT NOT NULL,"
				 " n INTEGER NOT NULL,"
				 " PRIMARY KEY (language, outcome)"
				 ") STRICT, WITHOUT ROWID;";

/* When a box was stopped or paused last; its disk is charged from then on. For one that is stopped or paused now, that
 * is not known. */
static const char stored_boxes[] =
	"ALTER TABLE boxes ADD COLUMN stored_ns INTEGER NOT NULL DEFAULT 0;"
	"UPDATE boxes SET stored_ns = strftime('%s', 'now') * 1000000000"
	" WHERE state IN ('kept', 'paused');";

/* What a node of a cluster does with a box when the node is lost, and the epoch of the node in which the box was started.
 * The last epoch of the node. */
static const char leases[] =
	"ALTER TABLE boxes ADD COLUMN on_loss TEXT NOT NULL DEFAULT 'keep';"
	"ALTER TABLE boxes ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;"
	"CREATE TABLE node_epoch (one INTEGER PRIMARY KEY CHECK (one = 1), epoch INTEGER NOT NULL);";

/* Changes of keys and teams, for the other gateways of a cluster: account_changes.h. `gateway` marks keys that
 * store_key_mirror() wrote. What exists already is sent if the cluster does not have it. */
#define ACCOUNT_CHANGED(kind, id)                                                                  \
	" BEGIN INSERT INTO account_changes VALUES ('" kind "', " id ", 0, 1)"                     \
	" ON CONFLICT (kind, id) DO UPDATE SET verify = 0, version = version + 1; END;"
static const char account_changes[] =
	"CREATE TABLE account_changes ("
	" kind TEXT NOT NULL,"
	" id TEXT NOT NULL,"
	" verify INTEGER NOT NULL,"
	" version INTEGER NOT NULL,"
	" PRIMARY KEY (kind, id)"
	") STRICT, WITHOUT ROWID;"
	"INSERT INTO account_changes SELECT 'team', name, 1, 1 FROM teams;"
	"INSERT INTO account_changes SELECT 'key', id, 1, 1 FROM keys WHERE shown <> 'gateway';"
	/* clang-format off */
	"CREATE TRIGGER key_added AFTER INSERT ON keys"
	" WHEN NEW.shown <> 'gateway'" ACCOUNT_CHANGED("key", "NEW.id")
	"CREATE TRIGGER key_changed AFTER UPDATE OF name, team, role, box, hash, shown, expires_ns,"
	" revoked, isolation ON keys WHEN NEW.shown <> 'gateway'" ACCOUNT_CHANGED("key", "NEW.id")
	"CREATE TRIGGER key_removed AFTER DELETE ON keys"
	" WHEN OLD.shown <> 'gateway'" ACCOUNT_CHANGED("key", "OLD.id")
	"CREATE TRIGGER team_added AFTER INSERT ON teams" ACCOUNT_CHANGED("team", "NEW.name")
	"CREATE TRIGGER team_changed AFTER UPDATE ON teams" ACCOUNT_CHANGED("team", "NEW.name")
	"CREATE TRIGGER team_removed AFTER DELETE ON teams" ACCOUNT_CHANGED("team", "OLD.name");
/* clang-format on */

/* Rows that the directory of a cluster must get: directory.h makes the triggers that fill it. */
static const char directory_rows[] = "CREATE TABLE directory_rows ("
				     " rev INTEGER PRIMARY KEY AUTOINCREMENT,"
				     " kind TEXT NOT NULL,"
				     " id TEXT NOT NULL,"
				     " UNIQUE (kind, id)"
				     ") STRICT;";

/* Checkpoints: checkpoints.h. The id of a box at the keeper, and the checkpoints of its files: boxes.h. */
static const char checkpoints[] =
	"ALTER TABLE boxes ADD COLUMN keeper TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE boxes ADD COLUMN generation INTEGER NOT NULL DEFAULT 1;"
	"ALTER TABLE boxes ADD COLUMN cpu_before_us INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE boxes ADD COLUMN origin TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE boxes ADD COLUMN head TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE boxes ADD COLUMN made TEXT NOT NULL DEFAULT '{}'"
	" CHECK (json_valid(made) AND json_type(made) = 'object');"
	"UPDATE boxes SET made = '{\"unknown\":true}' WHERE state <> 'gone';"
	"ALTER TABLE boxes ADD COLUMN checkpoints TEXT NOT NULL DEFAULT '{}'"
	" CHECK (json_valid(checkpoints) AND json_type(checkpoints) = 'object');"
	"CREATE TABLE replaced_boxes (keeper TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;"
	"CREATE TABLE checkpoints ("
	" id TEXT PRIMARY KEY,"
	" team TEXT NOT NULL REFERENCES teams (name),"
	" box TEXT NOT NULL,"
	" generation INTEGER NOT NULL,"
	" parent TEXT NOT NULL,"
	" origin TEXT NOT NULL,"
	" same_as TEXT NOT NULL,"
	" chain TEXT NOT NULL CHECK (json_valid(chain) AND json_type(chain) = 'array'),"
	" name TEXT NOT NULL,"
	" note TEXT NOT NULL,"
	" author TEXT NOT NULL,"
	" reason TEXT NOT NULL,"
	" created_ns INTEGER NOT NULL,"
	" expires_ns INTEGER NOT NULL,"
	" bytes INTEGER NOT NULL,"
	" files INTEGER NOT NULL,"
	" deleted INTEGER NOT NULL,"
	" frozen_us INTEGER NOT NULL,"
	" took_us INTEGER NOT NULL,"
	" state TEXT NOT NULL CHECK (state IN ('writing', 'ready', 'failed', 'deleted')),"
	" durable INTEGER NOT NULL,"
	" pinned INTEGER NOT NULL,"
	" template TEXT NOT NULL,"
	" tier TEXT NOT NULL,"
	" spec TEXT NOT NULL CHECK (json_valid(spec) AND json_type(spec) = 'object')"
	") STRICT;"
	"CREATE UNIQUE INDEX checkpoints_name ON checkpoints (box, name)"
	" WHERE name <> '' AND state IN ('writing', 'ready');"
	"CREATE INDEX checkpoints_box ON checkpoints (box, created_ns);"
	"CREATE INDEX checkpoints_team ON checkpoints (team, created_ns);"
	"CREATE INDEX checkpoints_parent ON checkpoints (parent);"
	"CREATE INDEX checkpoints_expires ON checkpoints (expires_ns) WHERE expires_ns > 0;"
	"CREATE TABLE checkpoint_layers ("
	" id TEXT PRIMARY KEY,"
	" team TEXT NOT NULL,"
	" bytes INTEGER NOT NULL,"
	" created_ns INTEGER NOT NULL"
	") STRICT;"
	"CREATE INDEX checkpoint_layers_team ON checkpoint_layers (team);";

/* Files of boxes of other nodes of the cluster: copies.h. */
static const char copies[] = "CREATE TABLE copies ("
			     " id TEXT PRIMARY KEY,"
			     " box TEXT NOT NULL,"
			     " team TEXT NOT NULL,"
			     " definition TEXT NOT NULL CHECK (json_valid(definition)),"
			     " sha256 TEXT NOT NULL,"
			     " bytes INTEGER NOT NULL,"
			     " created_ns INTEGER NOT NULL"
			     ") STRICT, WITHOUT ROWID;"
			     "CREATE INDEX copies_box ON copies (box, created_ns);"
			     "CREATE INDEX boxes_restart ON boxes (id) WHERE on_loss = 'restart';";

/* A snapshot is a packed file, or a checkpoint that stays while the row exists. */
static const char snapshot_checkpoints[] =
	"ALTER TABLE snapshots ADD COLUMN checkpoint TEXT NOT NULL DEFAULT '';"
	"CREATE INDEX snapshots_checkpoint ON snapshots (checkpoint) WHERE checkpoint <> '';";

/* Process images in files: process_images.h. The checkpoint from which a box continues that is paused on the disk: boxes.h. */
static const char process_images[] =
	"ALTER TABLE boxes ADD COLUMN image TEXT NOT NULL DEFAULT '';"
	"CREATE INDEX boxes_image ON boxes (image) WHERE image <> '';"
	"CREATE TABLE process_images ("
	" id TEXT PRIMARY KEY,"
	" bytes INTEGER NOT NULL,"
	" doc TEXT NOT NULL CHECK (json_valid(doc))"
	") STRICT, WITHOUT ROWID;"
	"CREATE TRIGGER checkpoints_process_images AFTER DELETE ON checkpoints BEGIN"
	" DELETE FROM process_images WHERE id = OLD.id; END;";

/* Rows that are the same on all machines of a cluster, and on a node those that came from a gateway: shared_rows.h. */
#define SHARED_CHANGED(table, kind, of, new_id, old_id)                                            \
	"CREATE TRIGGER " table "_added AFTER INSERT ON " table ACCOUNT_CHANGED(                   \
		kind, new_id) "CREATE TRIGGER " table "_changed AFTER UPDATE" of " ON " table      \
	ACCOUNT_CHANGED(kind, new_id) "CREATE TRIGGER " table "_removed AFTER DELETE ON " table    \
	ACCOUNT_CHANGED(kind, old_id)
/* clang-format off */
static const char shared_rows[] =
	"CREATE TABLE shared_rows ("
	" kind TEXT NOT NULL,"
	" id TEXT NOT NULL,"
	" at_ns INTEGER NOT NULL,"
	" PRIMARY KEY (kind, id)"
	") STRICT, WITHOUT ROWID;"
	"INSERT INTO account_changes SELECT 'network', team, 1, 1 FROM network_rules;"
	"INSERT INTO account_changes SELECT 'policy', team, 1, 1 FROM pipeline_policies;"
	"INSERT INTO account_changes SELECT 'webhook', id, 1, 1 FROM webhooks;"
	"INSERT INTO account_changes SELECT 'secret', team || '/' || name, 1, 1 FROM secrets;"
	SHARED_CHANGED("network_rules", "network", "", "NEW.team", "OLD.team")
	SHARED_CHANGED("pipeline_policies", "policy", "", "NEW.team", "OLD.team")
	SHARED_CHANGED("webhooks", "webhook", " OF name, url, events, sealed, enabled", "NEW.id", "OLD.id")
	SHARED_CHANGED("secrets", "secret", "", "NEW.team || '/' || NEW.name", "OLD.team || '/' || OLD.name");
/* clang-format on */

/* What a team may use on this node of a cluster: grants.h. */
static const char grants[] = "CREATE TABLE grants ("
			     " team TEXT NOT NULL,"
			     " resource INTEGER NOT NULL,"
			     " most INTEGER NOT NULL,"
			     " period INTEGER NOT NULL,"
			     " amount INTEGER NOT NULL,"
			     " version INTEGER NOT NULL,"
			     " PRIMARY KEY (team, resource)"
			     ") STRICT, WITHOUT ROWID;"
			     "CREATE TRIGGER grants_team AFTER DELETE ON teams BEGIN"
			     " DELETE FROM grants WHERE team = OLD.name; END;";

const char *const schema_steps[] = {
	first,
	contexts,
	batches,
	network,
	package_sets,
	cheaper_runs,
	surfaces,
	pauses,
	snapshots,
	pipelines,
	policies_and_agents,
	clocks,
	history,
	mcp_sessions,
	ui_links,
	secrets,
	network_rules,
	templates,
	usage,
	series,
	receipts,
	schedules,
	notifications,
	usage_sums,
	usage_disk,
	isolation,
	proofs,
	run_counts,
	stored_boxes,
	leases,
	account_changes,
	directory_rows,
	checkpoints,
	copies,
	snapshot_checkpoints,
	process_images,
	shared_rows,
	grants,
};
const int schema_newest = ARRAY_LEN(schema_steps);

enum { APPLICATION = 0x41746f6c }; /* "Atol", in the header of the file: `file` shows it */

int schema_number(sqlite3 *db, const char *query, int *out, struct err *e)
{
	sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(db, query, -1, &stmt, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW)
		*out = sqlite3_column_int(stmt, 0);
	else
		sql_fail(db, rc, e);
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW ? 0 : -1;
}

static int schema_execute(sqlite3 *db, const char *text, struct err *e)
{
	int rc = sqlite3_exec(db, text, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : sql_fail(db, rc, e);
}

static int schema_judge(sqlite3 *db, int newest, struct err *e)
{
	int application, version, tables;

	if (schema_number(db, "PRAGMA application_id", &application, e) < 0 ||
	    schema_number(db, "PRAGMA user_version", &version, e) < 0 ||
	    schema_number(db, "SELECT count(*) FROM sqlite_schema", &tables, e) < 0)
		return -1;
	if (application != APPLICATION && (application || version || tables))
		return err_set(e, ERR_INVALID, "the database of another program");
	if (version > newest)
		return err_set(e, ERR_INVALID,
			       "written by a newer version: its schema is %d, this one supports %d",
			       version, newest);
	if (version < 0)
		return err_set(e, ERR_INVALID, "schema %d is not a known version", version);
	return 0;
}

int schema_accept(sqlite3 *db, int newest, struct err *e)
{
	int rc;

	/* In one transaction: between two queries another process may have made the tables. */
	if (schema_execute(db, "SAVEPOINT look", e) < 0)
		return -1;
	rc = schema_judge(db, newest, e);
	sqlite3_exec(db, "RELEASE look", NULL, NULL, NULL);
	return rc;
}

/* In a transaction. 1: it did something. */
static int schema_step(sqlite3 *db, const char *const *steps, int newest, struct err *e)
{
	char stamp[96];
	int version;

	/* Read again: another process may have been faster. */
	if (schema_accept(db, newest, e) < 0 ||
	    schema_number(db, "PRAGMA user_version", &version, e) < 0)
		return -1;
	if (version == newest)
		return 0;
	snprintf(stamp, sizeof(stamp), "PRAGMA application_id = %d; PRAGMA user_version = %d",
		 APPLICATION, version + 1);
	if (schema_execute(db, steps[version], e) < 0 || schema_execute(db, stamp, e) < 0)
		return err_in(e, "from schema %d to %d", version, version + 1);
	return 1;
}

int schema_migrate(sqlite3 *db, const char *const *steps, int newest, struct err *e)
{
	int version, did;

	if (schema_number(db, "PRAGMA user_version", &version, e) < 0)
		return -1;
	/* Usually the file is up to date, and then a full disk must not prevent opening it. */
	while (version < newest) {
		if (schema_execute(db, "BEGIN IMMEDIATE", e) < 0)
			return -1;
		did = schema_step(db, steps, newest, e);
		if (did < 0 || schema_execute(db, "COMMIT", e) < 0) {
			if (!sqlite3_get_autocommit(db))
				sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
			return -1;
		}
		version = did ? version + 1 : newest;
	}
	return 0;
}
