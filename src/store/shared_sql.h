/* shared_sql.h - the rows of shared_rows.h as expressions of SQL. For shared_rows.c and account_changes.c.
 * Owns: nothing. Each is a subquery: null if there is no such row. */
#pragma once

#define SHARED_IS_SECRET(table, id)                                                                \
	" " table ".team = substr(" id ", 1, instr(" id ", '/') - 1) AND " table                   \
	".name = substr(" id ", instr(" id ", '/') + 1)"

#define SHARED_NETWORK(id)                                                                         \
	"(SELECT json_object('team', n.team, 'rules', json(n.rules)) FROM network_rules n"         \
	" WHERE n.team = " id ")"
#define SHARED_POLICY(id)                                                                          \
	"(SELECT json_object('team', p.team, 'scan', p.scan, 'forgetful', p.forgetful)"            \
	" FROM pipeline_policies p WHERE p.team = " id ")"
#define SHARED_WEBHOOK(id)                                                                         \
	"(SELECT json_object('team', w.team, 'name', w.name, 'url', w.url,"                        \
	" 'events', json(w.events), 'format', w.format, 'sealed', lower(hex(w.sealed)),"           \
	" 'enabled', w.enabled, 'created_ns', w.created_ns) FROM webhooks w WHERE w.id = " id ")"
#define SHARED_SECRET(id)                                                                          \
	"(SELECT json_object('team', x.team, 'name', x.name, 'key', x.key,"                        \
	" 'hosts', json(x.hosts), 'sealed', lower(hex(x.sealed)), 'version', x.version,"           \
	" 'created_ns', x.created_ns, 'updated_ns', x.updated_ns) FROM secrets x"                  \
	" WHERE" SHARED_IS_SECRET("x", id) ")"
