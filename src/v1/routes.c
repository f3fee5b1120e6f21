/* routes.c - every path of the native API: dispatch, validation, /openapi.json and `atoll api` use
 * this table. */
#include "v1/audit.h"
#include "v1run/batch.h"
#include "v1box/boxes.h"
#include "v1box/env.h"
#include "v1agent/agents.h"
#include "v1/events.h"
#include "v1run/cells.h"
#include "v1box/changes.h"
#include "v1box/checkpoints.h"
#include "v1run/contexts.h"
#include "v1run/execs.h"
#include "v1box/files.h"
#include "v1run/run_request.h"
#include "v1run/fragment.h"
#include "v1/keys.h"
#include "v1run/languages.h"
#include "v1agent/models.h"
#include "v1/openapi.h"
#include "v1/daemon_info.h"
#include "v1agent/pipelines.h"
#include "v1box/ports.h"
#include "v1box/tunnel.h"
#include "v1box/network.h"
#include "v1box/packages.h"
#include "v1box/pause.h"
#include "v1/docs.h"
#include "v1/doctor.h"
#include "v1/nodes.h"
#include "v1/tiers.h"
#include "v1box/secrets.h"
#include "v1box/snapshots.h"
#include "v1box/templates.h"
#include "v1run/race.h"
#include "v1run/replay.h"
#include "v1run/fragments.h"
#include "v1/run_shares.h"
#include "v1/shares.h"
#include "v1/socket.h"
#include "v1box/volumes.h"
#include "v1box/series.h"
#include "v1box/stats.h"
#include "v1/teams.h"
#include "v1ops/usage.h"
#include "v1/ui_login.h"
#include "v1/v1.h"
#include "v1ops/proofs.h"
#include "v1ops/receipts.h"
#include "v1ops/alerts.h"
#include "v1ops/webhooks.h"
#include "v1ops/schedules.h"
#include "base/cleanup.h"

#define STREAM .how = HTTP_BODY_STREAM

const struct api_route v1_routes[] = {
	/* clang-format off */
	{ "GET", "/", NEED_NOTHING, info_page, "describe this server", .group = "daemon" },
	{ "GET", "/docs/{page}", NEED_NOTHING, docs_show, "get a page of the documentation, as Markdown", .group = "daemon" },
	{ "GET", "/healthz", NEED_NOTHING, info_health, "check that the server is running", .group = "daemon" },
	{ "GET", "/v1/info", NEED_VIEWER, info_daemon, "show version and limits of the daemon, and the caller's team and role", .group = "daemon", .scope = SCOPE_ANY },
	{ "GET", "/v1/doctor", NEED_OWNER, doctor_show, "check whether the machine supports boxes, as `atoll doctor` does; only for team default", .group = "daemon" },
	{ "GET", "/v1/nodes", NEED_VIEWER, nodes_list, "list the nodes of this gateway: state, version, figures of the last heartbeat", .group = "daemon" },
	{ "GET", "/v1/nodes/{node}", NEED_VIEWER, nodes_show, "show a node, by number or name; a node that is asked itself is named self", .group = "daemon" },
	{ "POST", "/v1/nodes/{node}/drain", NEED_OWNER, nodes_drain, "operators: the node takes no new boxes, also after a restart; those that it has continue, or move to other nodes", nodes_drain_fields, .group = "daemon", .action = "node.drain" },
	{ "POST", "/v1/nodes/{node}/undrain", NEED_OWNER, nodes_undrain, "operators: the node takes new boxes again", .group = "daemon", .action = "node.undrain" },
	{ "GET", "/v1/scale", NEED_VIEWER, nodes_scale, "show how many nodes take boxes and how many are needed, for autoscalers", .group = "daemon" },
	{ "GET", "/v1/tiers", NEED_VIEWER, tiers_list, "list the isolation tiers of this host, and what those that are not offered need", .group = "daemon" },
	{ "POST", "/v1/tiers/refresh", NEED_OWNER, tiers_refresh, "operators: examine the tiers of this host again", tiers_refresh_fields, .group = "daemon", .action = "tiers.refresh" },
	{ "GET", "/v1/languages", NEED_VIEWER, languages_list, "list the supported languages and their installed versions", .group = "daemon", .scope = SCOPE_ANY },
	{ "GET", "/v1/models", NEED_VIEWER, models_list, "list language models with their prices and costs so far", .group = "models" },
	{ "POST", "/v1/models/ask", NEED_EDITOR, models_ask, "send one request to a language model", models_ask_fields, .group = "models", .action = "model.ask" },
	{ "GET", "/v1/who", NEED_VIEWER, info_principal, "show the caller's id, team and role; the cheapest request that needs a key", .group = "daemon", .scope = SCOPE_ANY },
	{ "GET", "/metrics", NEED_VIEWER, info_metrics, "get metrics for Prometheus", .group = "daemon", .flags = ROUTE_METRICS },
	{ "GET", "/openapi.json", NEED_VIEWER, openapi_show, "get this document", .group = "daemon" },

	{ "POST", "/v1/boxes", NEED_EDITOR, boxes_create, "create a box, or get the existing box of a session", box_create_fields, .group = "boxes", .action = "box.create", .flags = ROUTE_NO_FLUSH },
	{ "GET", "/v1/boxes", NEED_VIEWER, boxes_list, "list boxes", .query = box_list_query, .group = "boxes" },
	{ "GET", "/v1/boxes/{box}", NEED_VIEWER, boxes_show, "show a box", .group = "boxes", .scope = SCOPE_BOX },
	{ "PATCH", "/v1/boxes/{box}", NEED_EDITOR, boxes_patch, "change limits, timeouts, network rules and metadata of a box", box_patch_fields, .group = "boxes", .action = "box.change", .scope = SCOPE_BOX },
	{ "GET", "/v1/boxes/{box}/ports", NEED_VIEWER, ports_list, "list the ports of a box: programs that listen, and open previews", .group = "boxes", .scope = SCOPE_BOX },
	{ "GET", "/v1/boxes/{box}/ports/{port}", NEED_VIEWER, ports_show, "show the address of a port, whether a program listens, and its preview", .query = ports_show_query, .group = "boxes", .scope = SCOPE_BOX },
	{ "PUT", "/v1/boxes/{box}/ports/{port}", NEED_EDITOR, ports_open, "open a port as a preview: private, with a token; or public", ports_open_fields, .group = "boxes", .action = "port.open", .scope = SCOPE_BOX },
	{ "DELETE", "/v1/boxes/{box}/ports/{port}", NEED_EDITOR, ports_close, "close a port; its token is no longer valid", .group = "boxes", .action = "port.close", .scope = SCOPE_BOX },
	{ "GET", "/v1/boxes/{box}/ports/{port}/connect", NEED_EDITOR, tunnel_connect, "connect to a port of a box, after Upgrade: tcp", .group = "boxes", .scope = SCOPE_BOX },
	{ "DELETE", "/v1/boxes/{box}", NEED_EDITOR, boxes_delete, "end a box; answers when nothing of it is left", .group = "boxes", .action = "box.delete", .scope = SCOPE_BOX, .flags = ROUTE_NO_FLUSH },
	{ "POST", "/v1/boxes/{box}/pause", NEED_EDITOR, pause_box, "freeze all processes of a box", pause_fields, .group = "boxes", .action = "box.pause", .scope = SCOPE_BOX },
	{ "POST", "/v1/boxes/{box}/resume", NEED_EDITOR, pause_resume, "resume a paused box", .group = "boxes", .action = "box.resume", .scope = SCOPE_BOX },

	{ "POST", "/v1/snapshots", NEED_EDITOR, snapshots_create, "save the files of a box as a base for new boxes", snapshots_create_fields, .group = "snapshots", .action = "snapshot.create" },
	{ "GET", "/v1/snapshots", NEED_VIEWER, snapshots_list, "list snapshots, newest first", .query = snapshots_list_query, .group = "snapshots" },
	{ "GET", "/v1/snapshots/{snapshot}", NEED_VIEWER, snapshots_show, "show a snapshot, by id or name", .group = "snapshots" },
	{ "DELETE", "/v1/snapshots/{snapshot}", NEED_EDITOR, snapshots_delete, "delete a snapshot; boxes created from it stay", .group = "snapshots", .action = "snapshot.delete" },

	{ "GET", "/v1/templates", NEED_VIEWER, v1_templates_list, "list the templates that the team may use", .group = "templates" },
	{ "GET", "/v1/templates/{template}", NEED_VIEWER, v1_templates_show, "show a template with its tags and newest builds, by name, id or alias", .group = "templates" },
	{ "POST", "/v1/templates", NEED_EDITOR, v1_templates_create, "build a template from a definition", v1_templates_create_fields, .group = "templates", .action = "template.build" },
	{ "PATCH", "/v1/templates/{template}", NEED_EDITOR, v1_templates_patch, "change name, visibility, description, pool and aliases of a template", v1_templates_patch_fields, .group = "templates", .action = "template.change" },
	{ "DELETE", "/v1/templates/{template}", NEED_EDITOR, v1_templates_delete, "delete a template with its builds; boxes of it continue", .group = "templates", .action = "template.delete" },
	{ "PUT", "/v1/templates/{template}/tags/{tag}", NEED_EDITOR, v1_templates_tag, "point a tag to a ready build", v1_templates_tag_fields, .group = "templates", .action = "template.tag" },
	{ "DELETE", "/v1/templates/{template}/tags/{tag}", NEED_EDITOR, v1_templates_untag, "delete a tag; the build stays", .group = "templates", .action = "template.tag" },
	{ "POST", "/v1/templates/{template}/check", NEED_EDITOR, v1_templates_check, "verify that the files of a template are unchanged", .group = "templates", .action = "template.check" },
	{ "GET", "/v1/templates/{template}/export", NEED_EDITOR, v1_templates_export, "get a template as one file, for another machine", .group = "templates" },
	{ "PUT", "/v1/templates/uploads/{hash}", NEED_EDITOR, v1_templates_upload, "upload an archive (tar, tar.gz) that COPY steps name by this hash", STREAM, .group = "templates", .action = "template.upload" },
	{ "GET", "/v1/builds", NEED_VIEWER, v1_builds_list, "list builds of templates, newest first", .query = v1_builds_list_query, .group = "templates" },
	{ "GET", "/v1/builds/{build}", NEED_VIEWER, v1_builds_show, "show a build: its state, and why it failed", .group = "templates" },
	{ "GET", "/v1/builds/{build}/log", NEED_VIEWER, v1_builds_log, "get the log of a build from an offset, with follow=1 until its end", .query = v1_builds_log_query, .group = "templates" },
	{ "DELETE", "/v1/builds/{build}", NEED_EDITOR, v1_builds_cancel, "cancel a build", .group = "templates", .action = "template.cancel" },

	{ "POST", "/v1/run", NEED_EDITOR, run_request_run, "run a program in a new box", run_request_fields, .group = "run", .action = "exec.start", .flags = ROUTE_NO_FLUSH },
	{ "POST", "/v1/batch", NEED_EDITOR, batch_post, "run many programs, one item per line, each in a fresh box", .query = batch_query, STREAM, .group = "batch", .action = "batch.create" },
	{ "GET", "/v1/batch", NEED_VIEWER, batch_list, "list batches, newest first", .query = batch_list_query, .group = "batch" },
	{ "GET", "/v1/batch/{batch}", NEED_VIEWER, batch_show, "show the progress of a batch", .group = "batch" },
	{ "GET", "/v1/batch/{batch}/results", NEED_VIEWER, batch_results_get, "get the results of a batch after a number, until its end", .query = batch_results_query, .group = "batch" },
	{ "DELETE", "/v1/batch/{batch}", NEED_EDITOR, batch_delete, "cancel a batch", .query = batch_delete_query, .group = "batch", .action = "batch.cancel" },

	{ "POST", "/v1/pipelines", NEED_EDITOR, pipelines_post, "plan, write and test a program for a task", pipelines_fields, .query = pipelines_post_query, .group = "pipelines", .action = "pipeline.create" },
	{ "GET", "/v1/pipelines", NEED_VIEWER, pipelines_list, "list pipelines, newest first", .query = pipelines_list_query, .group = "pipelines" },
	{ "GET", "/v1/pipelines/metrics", NEED_VIEWER, pipelines_metrics, "show success rate, attempts, failure categories, times and cost of the team's pipelines", .group = "pipelines" },
	{ "DELETE", "/v1/pipelines/memory", NEED_EDITOR, pipelines_unlearn, "delete all lessons learned from the team's pipelines", pipelines_unlearn_fields, .group = "pipelines", .action = "pipeline.unlearn" },
	{ "GET", "/v1/pipelines/policy", NEED_VIEWER, pipelines_policy, "show the team's policy for scans and lessons", .group = "pipelines" },
	{ "PUT", "/v1/pipelines/policy", NEED_OWNER, pipelines_set_policy, "change the team's policy; omitted fields stay unchanged", pipelines_policy_fields, .group = "pipelines", .action = "pipeline.policy" },
	{ "GET", "/v1/pipelines/{pipeline}", NEED_VIEWER, pipelines_show, "show a pipeline with its documents", .query = pipelines_show_query, .group = "pipelines" },
	{ "GET", "/v1/pipelines/{pipeline}/events", NEED_VIEWER, pipelines_events, "get the events of a pipeline after a number, and new events as they happen", .query = pipelines_events_query, .group = "pipelines" },
	{ "POST", "/v1/pipelines/{pipeline}/answer", NEED_EDITOR, pipelines_answer, "answer the question of a pipeline", pipelines_answer_fields, .group = "pipelines", .action = "pipeline.answer" },
	{ "POST", "/v1/pipelines/{pipeline}/cancel", NEED_EDITOR, pipelines_cancel, "cancel a pipeline", .group = "pipelines", .action = "pipeline.cancel" },
	{ "POST", "/v1/pipelines/{pipeline}/replay", NEED_EDITOR, pipelines_replay, "run an attempt again in a fresh box and compare the results", pipelines_replay_fields, .group = "pipelines", .action = "pipeline.replay" },
	{ "DELETE", "/v1/pipelines/{pipeline}", NEED_EDITOR, pipelines_delete, "delete an ended pipeline with its documents", .group = "pipelines", .action = "pipeline.delete" },

	{ "POST", "/v1/agents", NEED_EDITOR, agents_run, "run an agent that performs a task in a new box, or in an existing one", agents_fields, .group = "agents", .action = "agent.run" },
	{ "GET", "/v1/agents", NEED_VIEWER, agents_list, "list the agent sessions of the team, newest first", .query = agents_list_query, .group = "agents" },
	{ "GET", "/v1/agents/{agent}", NEED_VIEWER, agents_show, "show an agent session with its report", .group = "agents" },
	{ "POST", "/v1/boxes/{box}/execs", NEED_EDITOR, execs_start, "run a program in a box", run_request_exec_fields, .group = "execs", .action = "exec.start", .scope = SCOPE_BOX, .flags = ROUTE_NO_FLUSH },
	{ "GET", "/v1/boxes/{box}/execs", NEED_VIEWER, execs_list, "list the execs of a box, newest first", .query = execs_list_query, .group = "execs", .scope = SCOPE_BOX },
	{ "GET", "/v1/boxes/{box}/execs/{exec}", NEED_VIEWER, execs_show, "show an exec, or its run record", .group = "execs", .scope = SCOPE_BOX },
	{ "GET", "/v1/boxes/{box}/execs/{exec}/wait", NEED_VIEWER, execs_wait, "wait until an exec has exited and get its run record", .query = execs_wait_query, .group = "execs", .scope = SCOPE_BOX },
	{ "GET", "/v1/boxes/{box}/execs/{exec}/output", NEED_VIEWER, execs_output, "get the output of an exec from an offset, until its end", .query = execs_output_query, .group = "execs", .scope = SCOPE_BOX },
	{ "POST", "/v1/boxes/{box}/execs/{exec}/stdin", NEED_EDITOR, execs_stdin, "write bytes to the stdin of an exec", .query = execs_stdin_query, STREAM, .group = "execs", .action = "exec.stdin", .scope = SCOPE_BOX },
	{ "POST", "/v1/boxes/{box}/execs/{exec}/signal", NEED_EDITOR, execs_signal, "send a signal to an exec", execs_signal_fields, .group = "execs", .action = "exec.signal", .scope = SCOPE_BOX },
	{ "POST", "/v1/boxes/{box}/execs/{exec}/resize", NEED_EDITOR, execs_resize, "set the terminal size of an exec", execs_resize_fields, .group = "execs", .action = "exec.resize", .scope = SCOPE_BOX },
	{ "DELETE", "/v1/boxes/{box}/execs/{exec}", NEED_EDITOR, execs_kill, "kill an exec; answers with its run record", .group = "execs", .action = "exec.kill", .scope = SCOPE_BOX },

	{ "POST", "/v1/boxes/{box}/cells", NEED_EDITOR, cells_run_standing, "run a cell in the default context of a language, which is created for its first cell", cells_standing_fields, .group = "cells", .action = "cell.run", .scope = SCOPE_BOX },
	{ "POST", "/v1/boxes/{box}/contexts", NEED_EDITOR, contexts_create, "create a context: an interpreter that keeps its state", contexts_create_fields, .group = "cells", .action = "context.create", .scope = SCOPE_BOX },
	{ "GET", "/v1/boxes/{box}/contexts", NEED_VIEWER, contexts_list, "list the contexts of a box", .group = "cells", .scope = SCOPE_BOX },
	{ "GET", "/v1/boxes/{box}/contexts/{context}", NEED_VIEWER, contexts_show, "show a context", .group = "cells", .scope = SCOPE_BOX },
	{ "DELETE", "/v1/boxes/{box}/contexts/{context}", NEED_EDITOR, contexts_delete, "end a context and its running cell", .group = "cells", .action = "context.delete", .scope = SCOPE_BOX },
	{ "POST", "/v1/boxes/{box}/contexts/{context}/cells", NEED_EDITOR, cells_run, "run a cell; returns events as they happen, or one document at its end", cells_fields, .group = "cells", .action = "cell.run", .scope = SCOPE_BOX },
	{ "GET", "/v1/boxes/{box}/contexts/{context}/cells/{cell}/events", NEED_VIEWER, cells_events, "get the events of a cell after a position, until its end", .query = cells_events_query, .group = "cells", .scope = SCOPE_BOX },
	{ "POST", "/v1/boxes/{box}/contexts/{context}/interrupt", NEED_EDITOR, contexts_interrupt, "interrupt the running cell, like Ctrl-C", .group = "cells", .action = "context.interrupt", .scope = SCOPE_BOX },
	{ "POST", "/v1/boxes/{box}/contexts/{context}/restart", NEED_EDITOR, contexts_restart, "start a new interpreter with the same context id", .group = "cells", .action = "context.restart", .scope = SCOPE_BOX },
	{ "POST", "/v1/boxes/{box}/contexts/{context}/input", NEED_EDITOR, contexts_input, "send the input line that a cell waits for", contexts_input_fields, .group = "cells", .action = "context.input", .scope = SCOPE_BOX },

	{ "POST", "/v1/volumes", NEED_EDITOR, volumes_create, "create a volume: a disk that outlives boxes", volumes_create_fields, .group = "volumes", .action = "volume.create" },
	{ "GET", "/v1/volumes", NEED_VIEWER, volumes_list, "list volumes", .query = volumes_list_query, .group = "volumes" },
	{ "GET", "/v1/volumes/{volume}", NEED_VIEWER, volumes_show, "show a volume and the boxes that use it", .group = "volumes" },
	{ "DELETE", "/v1/volumes/{volume}", NEED_EDITOR, volumes_delete, "delete a volume with its content; rejected while a box uses it", .group = "volumes", .action = "volume.delete" },

	{ "GET", "/v1/secrets", NEED_VIEWER, secrets_list, "list secrets, without their values", .query = secrets_list_query, .group = "secrets" },
	{ "GET", "/v1/secrets/{secret}", NEED_VIEWER, secrets_show, "show a secret, without its value", .group = "secrets" },
	{ "PUT", "/v1/secrets/{secret}", NEED_EDITOR, secrets_set, "set a secret: programs in boxes use its value, and no request returns it", secrets_set_fields, .group = "secrets", .action = "secret.set" },
	{ "DELETE", "/v1/secrets/{secret}", NEED_EDITOR, secrets_delete, "delete a secret; new programs get no value", .group = "secrets", .action = "secret.delete" },

	{ "POST", "/v1/packages", NEED_EDITOR, packages_add_set, "install a set of packages, so that new boxes have it at once", packages_add_fields, .group = "packages", .action = "packages.add" },
	{ "POST", "/v1/boxes/{box}/checkpoints", NEED_EDITOR, checkpoints_create, "take a checkpoint of the files of a box; its programs continue", checkpoints_create_fields, .group = "checkpoints", .action = "checkpoint.create", .scope = SCOPE_BOX },
	{ "GET", "/v1/boxes/{box}/checkpoints", NEED_VIEWER, checkpoints_list, "list the checkpoints of a box, newest first, or as trees", .query = checkpoints_list_query, .group = "checkpoints", .scope = SCOPE_BOX },
	{ "POST", "/v1/boxes/{box}/checkpoints/import", NEED_EDITOR, checkpoints_import, "add a checkpoint with the files of a tar archive, as an export has them; the box stays as it is", STREAM, .query = checkpoints_import_query, .group = "checkpoints", .action = "checkpoint.import", .scope = SCOPE_BOX },
	{ "POST", "/v1/boxes/{box}/rollback", NEED_EDITOR, checkpoints_rollback, "replace the files of a box by those of a checkpoint; its programs end, its id stays", checkpoints_rollback_fields, .group = "checkpoints", .action = "box.rollback", .scope = SCOPE_BOX },
	{ "POST", "/v1/boxes/{box}/promote", NEED_EDITOR, checkpoints_promote, "replace the files of a box by those of its fork; its programs end, its id stays", checkpoints_promote_fields, .group = "checkpoints", .action = "box.promote", .scope = SCOPE_BOX },
	{ "POST", "/v1/boxes/{box}/merge", NEED_EDITOR, checkpoints_merge, "merge the changes of another box, or of a checkpoint, into the files of a box; its programs end, its id stays", checkpoints_merge_fields, .group = "checkpoints", .action = "box.merge", .scope = SCOPE_BOX },
	{ "POST", "/v1/boxes/{box}/fork", NEED_EDITOR, checkpoints_fork, "create boxes with the files of a box or of its checkpoint", checkpoints_fork_fields, .group = "checkpoints", .action = "box.fork", .scope = SCOPE_BOX },
	{ "POST", "/v1/boxes/{box}/race", NEED_EDITOR, race_start, "run several attempts in copies of a box at the same time, check each, and keep the files of the winner", race_fields, .group = "checkpoints", .action = "box.race", .scope = SCOPE_BOX },
	{ "GET", "/v1/checkpoints/{checkpoint}", NEED_VIEWER, checkpoints_show, "show a checkpoint", .group = "checkpoints" },
	{ "PATCH", "/v1/checkpoints/{checkpoint}", NEED_EDITOR, checkpoints_patch, "change name, note or pin of a checkpoint", checkpoints_patch_fields, .group = "checkpoints", .action = "checkpoint.change" },
	{ "DELETE", "/v1/checkpoints/{checkpoint}", NEED_EDITOR, checkpoints_delete, "delete a checkpoint; its children become children of its parent", .group = "checkpoints", .action = "checkpoint.delete" },
	{ "GET", "/v1/checkpoints/{checkpoint}/diff", NEED_VIEWER, checkpoints_diff, "list what differs between the files of two checkpoints, or of a checkpoint and now", .query = checkpoints_diff_query, .group = "checkpoints" },
	{ "GET", "/v1/checkpoints/{checkpoint}/export", NEED_VIEWER, checkpoints_export, "get the files of a checkpoint as a tar archive: a layer of an OCI image", .query = checkpoints_export_query, .group = "checkpoints" },
	{ "GET", "/v1/checkpoints/{checkpoint}/files", NEED_VIEWER, checkpoints_files, "read a file of a checkpoint", .query = checkpoints_files_query, .group = "checkpoints" },

	{ "GET", "/v1/packages", NEED_OWNER, packages_list, "operators: list installed package sets, the most used first", .query = packages_list_query, .group = "packages" },
	{ "GET", "/v1/packages/{set}", NEED_OWNER, packages_show, "operators: show a package set", .group = "packages" },
	{ "DELETE", "/v1/packages/{set}", NEED_OWNER, packages_delete, "operators: delete the layer of a package set; rejected while a box uses it", .group = "packages", .action = "packages.delete" },
	{ "POST", "/v1/packages/{set}/check", NEED_OWNER, packages_check, "operators: verify that the layer of a package set is unchanged", .group = "packages", .action = "packages.check" },

	{ "GET", "/v1/socket", NEED_VIEWER, socket_open, "open a WebSocket: many streams over one connection", .group = "streams", .scope = SCOPE_ANY },
	{ "GET", "/v1/boxes/{box}/files", NEED_VIEWER, boxfiles_get, "read a file, or a range of it", .query = boxfiles_path_query, .group = "files", .scope = SCOPE_BOX },
	{ "PUT", "/v1/boxes/{box}/files", NEED_EDITOR, boxfiles_put, "write a file; the whole file is replaced, or nothing", .query = boxfiles_put_query, STREAM, .group = "files", .action = "file.write", .scope = SCOPE_BOX },
	{ "DELETE", "/v1/boxes/{box}/files", NEED_EDITOR, boxfiles_delete, "delete a file or folder", .query = boxfiles_delete_query, .group = "files", .action = "file.remove", .scope = SCOPE_BOX },
	{ "GET", "/v1/boxes/{box}/files/stat", NEED_VIEWER, boxfiles_stat, "show type, size and times of a path", .query = boxfiles_path_query, .group = "files", .scope = SCOPE_BOX },
	{ "GET", "/v1/boxes/{box}/files/list", NEED_VIEWER, boxfiles_list, "list a folder, sorted by name", .query = boxfiles_list_query, .group = "files", .scope = SCOPE_BOX },
	{ "POST", "/v1/boxes/{box}/files/mkdir", NEED_EDITOR, boxfiles_mkdir, "create a folder", boxfiles_mkdir_fields, .group = "files", .action = "file.mkdir", .scope = SCOPE_BOX },
	{ "POST", "/v1/boxes/{box}/files/move", NEED_EDITOR, boxfiles_move, "rename or move a file or folder", boxfiles_move_fields, .group = "files", .action = "file.move", .scope = SCOPE_BOX },
	{ "POST", "/v1/boxes/{box}/files/copy", NEED_EDITOR, boxfiles_copy, "copy a file, or a folder with its content", boxfiles_move_fields, .group = "files", .action = "file.copy", .scope = SCOPE_BOX },
	{ "POST", "/v1/boxes/{box}/files/chmod", NEED_EDITOR, boxfiles_chmod, "set the permissions of a path", boxfiles_chmod_fields, .group = "files", .action = "file.chmod", .scope = SCOPE_BOX },
	{ "GET", "/v1/boxes/{box}/files/archive", NEED_VIEWER, boxfiles_pack, "download a folder as tar, tar.gz or zip", .query = boxfiles_archive_query, .group = "files", .scope = SCOPE_BOX },
	{ "PUT", "/v1/boxes/{box}/files/archive", NEED_EDITOR, boxfiles_unpack, "unpack an archive into a folder", .query = boxfiles_archive_query, STREAM, .group = "files", .action = "file.unpack", .scope = SCOPE_BOX },
	{ "GET", "/v1/boxes/{box}/files/search", NEED_VIEWER, boxfiles_search, "search files by name and content", .query = boxfiles_search_query, .group = "files", .scope = SCOPE_BOX },
	{ "GET", "/v1/boxes/{box}/files/watch", NEED_VIEWER, boxfiles_watch, "stream the changes of a folder as they happen", .query = boxfiles_watch_query, .group = "files", .scope = SCOPE_BOX },
	{ "GET", "/v1/boxes/{box}/changes", NEED_VIEWER, changes_list, "list files that differ from the start of the box", .query = changes_query, .group = "files", .scope = SCOPE_BOX },
	{ "GET", "/v1/boxes/{box}/network", NEED_VIEWER, network_show, "show the network rules and recent connections of a box", .group = "network", .scope = SCOPE_BOX },
	{ "GET", "/v1/boxes/{box}/network/requests", NEED_VIEWER, network_requests, "list the destinations of a box that wait for an approval", .group = "network", .scope = SCOPE_BOX },
	{ "POST", "/v1/boxes/{box}/network/requests/{request}", NEED_EDITOR, network_decide, "let waiting connections of a box continue, or refuse them", network_decide_fields, .group = "network", .action = "network.decide", .scope = SCOPE_BOX },
	{ "GET", "/v1/boxes/{box}/env", NEED_VIEWER, env_show, "show the environment variables of all programs in a box", .group = "boxes", .scope = SCOPE_BOX },
	{ "PUT", "/v1/boxes/{box}/env", NEED_EDITOR, env_set, "replace the environment variables of a box", env_fields, .group = "boxes", .action = "box.change", .scope = SCOPE_BOX },

	{ "GET", "/v1/runs", NEED_VIEWER, runs_list, "list the run records of the team, newest first", .query = runs_list_query, .group = "runs" },
	{ "GET", "/v1/runs/{run}", NEED_VIEWER, runs_show, "show a run record", .group = "runs" },
	{ "GET", "/v1/runs/{run}/shares", NEED_OWNER, run_shares_list, "list the links that show a run, newest first", .group = "runs" },
	{ "POST", "/v1/runs/{run}/shares", NEED_OWNER, run_shares_create, "create a link that shows the record of this run without a key; only this answer contains it", run_shares_create_fields, .group = "runs", .action = "share.create" },
	{ "DELETE", "/v1/runs/{run}/shares/{share}", NEED_OWNER, run_shares_delete, "withdraw a link that shows a run", .group = "runs", .action = "share.delete" },
	{ "GET", "/v1/shared/runs/{token}", NEED_NOTHING, run_shares_open, "show the run of a link", .group = "runs" },
	{ "GET", "/v1/runs/{run}/receipt", NEED_VIEWER, v1_receipts_of_run, "get the signed receipt of a run", .group = "runs" },
	{ "GET", "/v1/receipts", NEED_VIEWER, v1_receipts_list, "get the chain of receipts of this node, by number; of other teams only the links", .query = receipts_list_query, .group = "runs" },
	{ "GET", "/v1/proofs", NEED_VIEWER, v1_proofs_list, "list proofs of isolation tiers, newest first", .query = proofs_list_query, .group = "daemon" },
	{ "GET", "/v1/proofs/{proof}", NEED_VIEWER, v1_proofs_show, "get a proof with every attempt and observation", .group = "daemon" },
	{ "GET", "/v1/receipts/key", NEED_VIEWER, v1_receipts_key, "get the public key that verifies receipts", .query = receipts_key_query, .group = "runs" },
	{ "GET", "/v1/alerts", NEED_OWNER, v1_alerts_list, "operators: list alerts, newest first", .query = v1_alerts_query, .group = "alerts" },
	{ "GET", "/v1/alerts/rules", NEED_OWNER, v1_alerts_rules, "operators: list the rules of alerts with their values", .group = "alerts" },
	{ "PUT", "/v1/alerts/rules/{rule}", NEED_OWNER, v1_alerts_set_rule, "operators: change a rule, or add one", v1_alert_rule_fields, .group = "alerts", .action = "alert.rule" },
	{ "DELETE", "/v1/alerts/rules/{rule}", NEED_OWNER, v1_alerts_reset_rule, "operators: delete a rule, or undo the changes of a shipped one", .group = "alerts", .action = "alert.rule" },
	{ "GET", "/v1/alerts/notices", NEED_OWNER, v1_alerts_notices, "operators: list notices that were not delivered yet", .group = "alerts" },
	{ "POST", "/v1/alerts/test", NEED_OWNER, v1_alerts_test, "operators: send a test notice to all channels", .group = "alerts", .action = "alert.test" },

	{ "GET", "/v1/webhooks", NEED_VIEWER, v1_webhooks_list, "list webhooks", .group = "webhooks" },
	{ "POST", "/v1/webhooks", NEED_EDITOR, v1_webhooks_create, "send events of the team to a URL, signed", v1_webhooks_create_fields, .group = "webhooks", .action = "webhook.create" },
	{ "GET", "/v1/webhooks/{webhook}", NEED_VIEWER, v1_webhooks_show, "show a webhook, by id or name", .group = "webhooks" },
	{ "PATCH", "/v1/webhooks/{webhook}", NEED_EDITOR, v1_webhooks_change, "change a webhook", v1_webhooks_change_fields, .group = "webhooks", .action = "webhook.change" },
	{ "DELETE", "/v1/webhooks/{webhook}", NEED_EDITOR, v1_webhooks_delete, "delete a webhook with its deliveries", .group = "webhooks", .action = "webhook.delete" },
	{ "POST", "/v1/webhooks/{webhook}/test", NEED_EDITOR, v1_webhooks_test, "send an event webhook.test now, and show the answer", .group = "webhooks", .action = "webhook.test" },
	{ "GET", "/v1/webhooks/{webhook}/failed", NEED_EDITOR, v1_webhooks_failed, "list deliveries that failed for a day", .query = v1_webhooks_failed_query, .group = "webhooks" },
	{ "POST", "/v1/webhooks/{webhook}/replay", NEED_EDITOR, v1_webhooks_replay, "deliver failed events again", v1_webhooks_replay_fields, .group = "webhooks", .action = "webhook.replay" },

	{ "POST", "/v1/runs/{run}/replay", NEED_EDITOR, replay_run, "repeat a run in a fresh box", .group = "runs", .action = "run.replay" },

	{ "POST", "/api/sandbox", NEED_EDITOR, fragments_run, "run a fragment in the box of its session", fragment_request_fields, .group = "front ends", .action = "exec.start", .flags = ROUTE_NO_FLUSH },
	{ "GET", "/api/sandbox/{box}/files", NEED_VIEWER, fragments_tree, "list the files of a box as a tree", .query = fragments_tree_query, .group = "front ends", .scope = SCOPE_BOX },
	{ "GET", "/api/sandbox/{box}/files/content", NEED_VIEWER, fragments_read, "read a file", .query = fragments_read_query, .group = "front ends", .scope = SCOPE_BOX },
	{ "POST", "/api/sandbox/{box}/files/content", NEED_EDITOR, fragments_write, "write a file", fragments_write_fields, .group = "front ends", .action = "file.write", .scope = SCOPE_BOX },

	{ "GET", "/v1/events", NEED_VIEWER, events_list, "get the events of all boxes, as a page or a stream", .query = events_query, .group = "events" },
	{ "GET", "/v1/boxes/{box}/events", NEED_VIEWER, events_box, "get the events of one box, as a page or a stream", .query = events_box_query, .group = "events", .scope = SCOPE_BOX },

	{ "POST", "/v1/schedules", NEED_EDITOR, v1_schedules_create, "create a schedule: requests at fixed times", schedules_create_fields, .group = "schedules", .action = "schedule.create" },
	{ "GET", "/v1/schedules", NEED_VIEWER, v1_schedules_list, "list schedules with their next times and last ticks, newest first", .query = schedules_list_query, .group = "schedules" },
	{ "GET", "/v1/schedules/next", NEED_VIEWER, v1_schedules_next, "show the next times of a cron expression, and what it means in words", .query = schedules_next_query, .group = "schedules" },
	{ "GET", "/v1/schedules/{schedule}", NEED_VIEWER, v1_schedules_show, "show a schedule, by id or name", .group = "schedules" },
	{ "PATCH", "/v1/schedules/{schedule}", NEED_EDITOR, v1_schedules_patch, "change a schedule; it runs as the caller from then on", schedules_patch_fields, .group = "schedules", .action = "schedule.change" },
	{ "DELETE", "/v1/schedules/{schedule}", NEED_EDITOR, v1_schedules_delete, "delete a schedule with its history; what it has started continues", .group = "schedules", .action = "schedule.delete" },
	{ "POST", "/v1/schedules/{schedule}/pause", NEED_EDITOR, v1_schedules_pause, "start nothing more until it is resumed", .group = "schedules", .action = "schedule.pause" },
	{ "POST", "/v1/schedules/{schedule}/resume", NEED_EDITOR, v1_schedules_resume, "continue a paused schedule, as the caller", .group = "schedules", .action = "schedule.resume" },
	{ "POST", "/v1/schedules/{schedule}/run", NEED_EDITOR, v1_schedules_run, "start it now, besides its times", .group = "schedules", .action = "schedule.run" },
	{ "GET", "/v1/schedules/{schedule}/ticks", NEED_VIEWER, v1_schedules_ticks, "list the ticks of a schedule with what became of them, newest first", .query = schedules_ticks_query, .group = "schedules" },

	{ "GET", "/v1/boxes/{box}/stats", NEED_VIEWER, stats_show, "show the current resource usage of a box, once or every second", .query = stats_query, .group = "stats", .scope = SCOPE_BOX },
	{ "GET", "/v1/boxes/{box}/stats/history", NEED_VIEWER, stats_history, "show the resource usage of a box over time, in steps of 10 s", .query = stats_history_query, .group = "stats", .scope = SCOPE_BOX },
	{ "GET", "/v1/stats", NEED_VIEWER, stats_host, "show the figures of the machine, and with figures=true those of /metrics; only for team default", .query = stats_host_query, .group = "stats" },
	{ "GET", "/v1/stats/series", NEED_VIEWER, series_show, "show a figure over time: minutes of the last day, hours of the last year; only for team default", .query = series_query, .group = "stats" },
	{ "GET", "/v1/stats/history", NEED_VIEWER, stats_host_history, "show the figures of the machine over time; only for team default", .query = stats_host_history_query, .group = "stats" },

	{ "GET", "/v1/keys", NEED_OWNER, keys_list, "list the keys of the team, newest first", .query = keys_list_query, .group = "keys" },
	{ "POST", "/v1/keys", NEED_OWNER, keys_create, "create a key; only this answer contains its secret", keys_create_fields, .group = "keys", .action = "key.create" },
	{ "GET", "/v1/keys/{key}", NEED_OWNER, keys_show, "show a key, by id or name", .query = keys_one_query, .group = "keys" },
	{ "DELETE", "/v1/keys/{key}", NEED_OWNER, keys_delete, "revoke a key", .query = keys_one_query, .group = "keys", .action = "key.delete" },

	{ "GET", "/v1/boxes/{box}/shares", NEED_OWNER, shares_list, "list the share links of a box, newest first", .group = "keys", .scope = SCOPE_BOX },
	{ "POST", "/v1/boxes/{box}/shares", NEED_OWNER, shares_create, "create a link that opens this box in the web UI, for any number of people; only this answer contains it", shares_create_fields, .group = "keys", .action = "share.create", .scope = SCOPE_BOX },
	{ "DELETE", "/v1/boxes/{box}/shares/{share}", NEED_OWNER, shares_delete, "revoke a share link; all sessions that it opened end", .group = "keys", .action = "share.delete", .scope = SCOPE_BOX },

	{ "POST", "/v1/ui/links", NEED_OWNER, ui_login_create_link, "create a one-time link that opens the web UI signed in", ui_login_link_fields, .group = "keys", .action = "ui.link" },
	{ "POST", "/v1/ui/sessions", NEED_NOTHING, ui_login_open_session, "exchange the token of a one-time link for a key", ui_login_session_fields, .group = "keys", .action = "ui.session" },

	{ "GET", "/v1/teams", NEED_VIEWER, teams_list, "list the caller's team; operators: all teams", .query = teams_list_query, .group = "teams" },
	{ "GET", "/v1/teams/{team}", NEED_VIEWER, teams_show, "show quotas and usage of a team", .group = "teams" },
	{ "PUT", "/v1/teams/{team}", NEED_OWNER, teams_put, "operators: create a team, or set the given quotas", teams_put_fields, .group = "teams", .action = "team.put" },
	{ "DELETE", "/v1/teams/{team}", NEED_OWNER, teams_delete, "operators: delete a team that has no keys, volumes and boxes", .group = "teams", .action = "team.delete" },
	{ "GET", "/v1/teams/{team}/network", NEED_VIEWER, teams_network_show, "show the network rules of a team", .group = "teams" },
	{ "PUT", "/v1/teams/{team}/network", NEED_OWNER, teams_network_put, "operators: set the network rules of a team; they restrict all its boxes at once", teams_network_fields, .group = "teams", .action = "team.network" },
	{ "GET", "/v1/usage", NEED_VIEWER, usage_show, "show the usage of a team by day, or usage and cost by team, key, tag, template, runtime, day or month, as JSON or CSV", .query = usage_query, .group = "teams" },

	{ "GET", "/v1/audit", NEED_OWNER, audit_list, "list the audit log, newest first", .query = audit_list_query, .group = "audit" },
	/* clang-format on */
};
const unsigned v1_nroutes = ARRAY_LEN(v1_routes);
