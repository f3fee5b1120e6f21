/* command_table.h - all commands, in the order of the overview: CLIENT(name) for one that the small
 * executable `atoll` has, too, DAEMON(name) for one that only atolld has. */
#pragma once
#include "commands/commands.h"

/* clang-format off */
#define COMMAND_TABLE(CLIENT, DAEMON) \
	CLIENT(run) CLIENT(batch) CLIENT(pipeline) CLIENT(schedule) CLIENT(agent) CLIENT(exec) CLIENT(shell) CLIENT(repl) \
	CLIENT(attach) CLIENT(ps) CLIENT(kill) CLIENT(wait) \
	CLIENT(new) CLIENT(ls) CLIENT(show) CLIENT(rename) CLIENT(set) CLIENT(env) CLIENT(link) CLIENT(db) CLIENT(port) CLIENT(open) CLIENT(forward) CLIENT(rm) \
	CLIENT(prune) CLIENT(pause) CLIENT(resume) CLIENT(checkpoint) CLIENT(checkpoints) CLIENT(rollback) CLIENT(fork) CLIENT(promote) CLIENT(merge) CLIENT(race) CLIENT(snapshot) CLIENT(volume) CLIENT(secret) CLIENT(net) CLIENT(packages) DAEMON(template) \
	CLIENT(cp) CLIENT(cat) CLIENT(put) CLIENT(diff) \
	CLIENT(logs) CLIENT(top) CLIENT(stats) CLIENT(usage) CLIENT(runs) DAEMON(receipt) CLIENT(events) CLIENT(webhook) CLIENT(alerts) \
	DAEMON(key) DAEMON(serve) DAEMON(stop) DAEMON(upgrade) DAEMON(backup) DAEMON(restore) DAEMON(support_bundle) DAEMON(doctor) DAEMON(prove) DAEMON(tier) DAEMON(config) DAEMON(cluster) DAEMON(node) \
	CLIENT(api) CLIENT(ui) CLIENT(mcp) CLIENT(model) \
	DAEMON(policy) DAEMON(bench) DAEMON(cert) CLIENT(lang) DAEMON(completion) CLIENT(version) DAEMON(help)
/* clang-format on */
#define COMMAND_ROW(name) &command_##name,
#define COMMAND_LEFT_OUT(name)
