/* commands.h - the commands of this folder. main.c puts them into one table. */
#pragma once
#include "cli/args.h"

extern const struct command command_run;
extern const struct command command_shell;
extern const struct command command_ps;
extern const struct command command_kill;
extern const struct command command_bench;
extern const struct command command_completion;
extern const struct command command_lang;
extern const struct command command_cert;
extern const struct command command_version;
extern const struct command command_help;

/* Commands that use the daemon. */
extern const struct command command_exec;
extern const struct command command_attach;
extern const struct command command_repl;
extern const struct command command_wait;
extern const struct command command_new;
extern const struct command command_ls;
extern const struct command command_show;
extern const struct command command_rename;
extern const struct command command_set;
extern const struct command command_link;
extern const struct command command_db;
extern const struct command command_env;
extern const struct command command_port;
extern const struct command command_open;
extern const struct command command_forward;
extern const struct command command_rm;
extern const struct command command_prune;
extern const struct command command_pause;
extern const struct command command_resume;
extern const struct command command_checkpoint;
extern const struct command command_checkpoints;
extern const struct command command_race;
extern const struct command command_rollback;
extern const struct command command_fork;
extern const struct command command_promote;
extern const struct command command_merge;
extern const struct command command_snapshot;
extern const struct command command_cp;
extern const struct command command_cat;
extern const struct command command_put;
extern const struct command command_diff;
extern const struct command command_logs;
extern const struct command command_top;
extern const struct command command_stats;
extern const struct command command_usage;
extern const struct command command_runs;
extern const struct command command_events;
extern const struct command command_api;
extern const struct command command_ui;
extern const struct command command_mcp;
extern const struct command command_volume;
extern const struct command command_secret;
extern const struct command command_webhook;
extern const struct command command_schedule;
extern const struct command command_alerts;
extern const struct command command_net;
extern const struct command command_batch;
extern const struct command command_pipeline;
extern const struct command command_packages;
extern const struct command command_template;
extern const struct command command_model;
extern const struct command command_agent;
