/* verbs.h - the commands of this folder. main.c puts them into one table. */
#pragma once
#include "cli/args.h"

extern const struct command verb_run;
extern const struct command verb_shell;
extern const struct command verb_ps;
extern const struct command verb_kill;
extern const struct command verb_bench;
extern const struct command verb_completion;
extern const struct command verb_lang;
extern const struct command verb_cert;
extern const struct command verb_version;
extern const struct command verb_help;

/* Those that speak with the daemon. */
extern const struct command verb_exec;
extern const struct command verb_attach;
extern const struct command verb_repl;
extern const struct command verb_wait;
extern const struct command verb_new;
extern const struct command verb_ls;
extern const struct command verb_show;
extern const struct command verb_rename;
extern const struct command verb_set;
extern const struct command verb_env;
extern const struct command verb_port;
extern const struct command verb_rm;
extern const struct command verb_prune;
extern const struct command verb_pause;
extern const struct command verb_resume;
extern const struct command verb_snapshot;
extern const struct command verb_cp;
extern const struct command verb_cat;
extern const struct command verb_put;
extern const struct command verb_diff;
extern const struct command verb_logs;
extern const struct command verb_top;
extern const struct command verb_stats;
extern const struct command verb_runs;
extern const struct command verb_events;
extern const struct command verb_api;
extern const struct command verb_ui;
extern const struct command verb_mcp;
extern const struct command verb_volume;
extern const struct command verb_batch;
extern const struct command verb_pipeline;
extern const struct command verb_packages;
extern const struct command verb_model;
extern const struct command verb_agent;
