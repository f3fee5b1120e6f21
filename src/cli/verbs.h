/* verbs.h - the verbs of this folder. main.c puts them into the one table. */
#pragma once
#include "cli/args.h"

extern const struct verb verb_run;
extern const struct verb verb_shell;
extern const struct verb verb_ps;
extern const struct verb verb_kill;
extern const struct verb verb_bench;
extern const struct verb verb_completion;
extern const struct verb verb_lang;
extern const struct verb verb_cert;
extern const struct verb verb_version;
extern const struct verb verb_help;

/* Those that speak with the daemon. */
extern const struct verb verb_exec;
extern const struct verb verb_attach;
extern const struct verb verb_repl;
extern const struct verb verb_wait;
extern const struct verb verb_new;
extern const struct verb verb_ls;
extern const struct verb verb_show;
extern const struct verb verb_rename;
extern const struct verb verb_set;
extern const struct verb verb_env;
extern const struct verb verb_port;
extern const struct verb verb_rm;
extern const struct verb verb_prune;
extern const struct verb verb_pause;
extern const struct verb verb_resume;
extern const struct verb verb_snapshot;
extern const struct verb verb_cp;
extern const struct verb verb_cat;
extern const struct verb verb_put;
extern const struct verb verb_diff;
extern const struct verb verb_logs;
extern const struct verb verb_top;
extern const struct verb verb_stats;
extern const struct verb verb_runs;
extern const struct verb verb_events;
extern const struct verb verb_api;
extern const struct verb verb_ui;
extern const struct verb verb_mcp;
extern const struct verb verb_volume;
extern const struct verb verb_batch;
extern const struct verb verb_pipeline;
extern const struct verb verb_packages;
extern const struct verb verb_model;
extern const struct verb verb_agent;
