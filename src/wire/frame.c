/* frame.c - see frame.h. No libc: init links this file too. */
#include "wire/frame.h"

enum tail { NO_TAIL, TAIL };

static const struct frame_shape {
	const char *name;
	uint16_t body;
	uint8_t tail;
} shapes[] = {
	[WIRE_CREATE] = { "CREATE", sizeof(struct wire_create), TAIL },
	[WIRE_OPEN] = { "OPEN", sizeof(struct wire_id), NO_TAIL },
	[WIRE_KILL] = { "KILL", sizeof(struct wire_id), NO_TAIL },
	[WIRE_COUNTERS] = { "COUNTERS", sizeof(struct wire_id), NO_TAIL },
	[WIRE_BOXES] = { "BOXES", sizeof(struct wire_id), NO_TAIL },
	[WIRE_INFO] = { "INFO", sizeof(struct frame), NO_TAIL },
	[WIRE_POOL_SIZE] = { "POOL_SIZE", sizeof(struct wire_pool_size), NO_TAIL },
	[WIRE_LIMIT] = { "LIMIT", sizeof(struct wire_limit), NO_TAIL },
	[WIRE_VOLUME_MAKE] = { "VOLUME_MAKE", sizeof(struct wire_volume), NO_TAIL },
	[WIRE_VOLUME_DROP] = { "VOLUME_DROP", sizeof(struct wire_volume), NO_TAIL },
	[WIRE_LAYER_MAKE] = { "LAYER_MAKE", sizeof(struct wire_layer_make), NO_TAIL },
	[WIRE_LAYER_CHECK] = { "LAYER_CHECK", sizeof(struct wire_layer), NO_TAIL },
	[WIRE_LAYER_DROP] = { "LAYER_DROP", sizeof(struct wire_layer), NO_TAIL },
	[WIRE_FREEZE] = { "FREEZE", sizeof(struct wire_id), NO_TAIL },
	[WIRE_DEADLINE] = { "DEADLINE", sizeof(struct wire_deadline), NO_TAIL },
	[WIRE_BOX] = { "BOX", sizeof(struct wire_box), NO_TAIL },
	[WIRE_DESTROYED] = { "DESTROYED", sizeof(struct wire_counters), NO_TAIL },
	[WIRE_COUNTERS_REPLY] = { "COUNTERS_REPLY", sizeof(struct wire_counters), NO_TAIL },
	[WIRE_LISTED] = { "LISTED", sizeof(struct frame), TAIL },
	[WIRE_INFO_REPLY] = { "INFO_REPLY", sizeof(struct wire_info), NO_TAIL },
	[WIRE_ERROR] = { "ERROR", sizeof(struct wire_error), NO_TAIL },
	[WIRE_LAYER] = { "LAYER", sizeof(struct wire_layer), NO_TAIL },
	[WIRE_ROOT] = { "ROOT", sizeof(struct wire_root), NO_TAIL },
	[WIRE_CAPTURE] = { "CAPTURE", sizeof(struct wire_id), NO_TAIL },
	[WIRE_LAYER_UNPACK] = { "LAYER_UNPACK", sizeof(struct wire_layer_unpack), NO_TAIL },
	[WIRE_LAYER_EXPORT] = { "LAYER_EXPORT", sizeof(struct wire_layer), NO_TAIL },
	[WIRE_ROOT_MAKE] = { "ROOT_MAKE", sizeof(struct wire_root_make), NO_TAIL },
	[WIRE_ROOT_DROP] = { "ROOT_DROP", sizeof(struct wire_root), NO_TAIL },
	[WIRE_ROOT_CHECK] = { "ROOT_CHECK", sizeof(struct wire_root), NO_TAIL },
	[WIRE_POOL_ROOT] = { "POOL_ROOT", sizeof(struct wire_pool_root), NO_TAIL },
	[WIRE_LAYER_LIST] = { "LAYER_LIST", sizeof(struct wire_layer), NO_TAIL },
	[WIRE_JOIN_CGROUPS] = { "JOIN_CGROUPS", sizeof(struct frame), NO_TAIL },
	[WIRE_PERSIST] = { "PERSIST", sizeof(struct frame), NO_TAIL },
	[WIRE_ZYGOTE] = { "ZYGOTE", sizeof(struct wire_zygote), TAIL },
	[WIRE_TIERS] = { "TIERS", sizeof(struct frame), NO_TAIL },
	[WIRE_TIERS_REPLY] = { "TIERS_REPLY", sizeof(struct frame), TAIL },
	[WIRE_NODE_NUMBER] = { "NODE_NUMBER", sizeof(struct wire_node_number), NO_TAIL },
	[WIRE_START] = { "START", sizeof(struct wire_start), TAIL },
	[WIRE_SIGNAL] = { "SIGNAL", sizeof(struct wire_signal), NO_TAIL },
	[WIRE_RESIZE] = { "RESIZE", sizeof(struct wire_resize), NO_TAIL },
	[WIRE_STDIN] = { "STDIN", sizeof(struct frame), TAIL },
	[WIRE_OUTPUT_WINDOW] = { "OUTPUT_WINDOW", sizeof(struct wire_output_window), NO_TAIL },
	[WIRE_ATTACH] = { "ATTACH", sizeof(struct wire_output_window), NO_TAIL },
	[WIRE_FORGET] = { "FORGET", sizeof(struct frame), NO_TAIL },
	[WIRE_EXECS] = { "EXECS", sizeof(struct frame), NO_TAIL },
	[WIRE_FILES] = { "FILES", sizeof(struct frame), NO_TAIL },
	[WIRE_CONNECT] = { "CONNECT", sizeof(struct wire_connect), NO_TAIL },
	[WIRE_KILL_ON_CLOSE] = { "KILL_ON_CLOSE", sizeof(struct frame), NO_TAIL },
	[WIRE_STAT] = { "STAT", sizeof(struct frame), NO_TAIL },
	[WIRE_STOP] = { "STOP", sizeof(struct frame), NO_TAIL },
	[WIRE_DETACH] = { "DETACH", sizeof(struct frame), NO_TAIL },
	[WIRE_PUT_EARLY] = { "PUT_EARLY", sizeof(struct wire_put), TAIL },
	[WIRE_LISTEN] = { "LISTEN", sizeof(struct wire_connect), NO_TAIL },
	[WIRE_LEASE] = { "LEASE", sizeof(struct wire_lease), NO_TAIL },
	[WIRE_STARTED] = { "STARTED", sizeof(struct wire_started), NO_TAIL },
	[WIRE_OUTPUT] = { "OUTPUT", sizeof(struct wire_output), TAIL },
	[WIRE_ATTACHED] = { "ATTACHED", sizeof(struct wire_attached), NO_TAIL },
	[WIRE_STDIN_WINDOW] = { "STDIN_WINDOW", sizeof(struct wire_stdin_window), NO_TAIL },
	[WIRE_EXIT] = { "EXIT", sizeof(struct wire_exit), NO_TAIL },
	[WIRE_EXEC] = { "EXEC", sizeof(struct wire_exec), NO_TAIL },
	[WIRE_DONE] = { "DONE", sizeof(struct frame), NO_TAIL },
	[WIRE_FD] = { "FD", sizeof(struct frame), NO_TAIL },
	[WIRE_STATUS] = { "STATUS", sizeof(struct wire_status), NO_TAIL },
	[WIRE_PUT] = { "PUT", sizeof(struct wire_put), TAIL },
	[WIRE_GET] = { "GET", sizeof(struct wire_get), TAIL },
	[WIRE_MKDIR] = { "MKDIR", sizeof(struct wire_put), TAIL },
	[WIRE_REMOVE] = { "REMOVE", sizeof(struct frame), TAIL },
	[WIRE_MOVE] = { "MOVE", sizeof(struct frame), TAIL },
	[WIRE_LINK] = { "LINK", sizeof(struct frame), TAIL },
	[WIRE_ENTRY_OF] = { "ENTRY_OF", sizeof(struct frame), TAIL },
	[WIRE_LIST] = { "LIST", sizeof(struct wire_list), TAIL },
	[WIRE_CHANGES] = { "CHANGES", sizeof(struct wire_changes), NO_TAIL },
	[WIRE_CHMOD] = { "CHMOD", sizeof(struct wire_put), TAIL },
	[WIRE_COPY] = { "COPY", sizeof(struct frame), TAIL },
	[WIRE_WATCH] = { "WATCH", sizeof(struct frame), TAIL },
	[WIRE_SEARCH] = { "SEARCH", sizeof(struct wire_search), TAIL },
	[WIRE_META] = { "META", sizeof(struct frame), TAIL },
	[WIRE_APPEND] = { "APPEND", sizeof(struct frame), TAIL },
	[WIRE_SYNC] = { "SYNC", sizeof(struct frame), NO_TAIL },
	[WIRE_DATA] = { "DATA", sizeof(struct frame), TAIL },
	[WIRE_ENTRY] = { "ENTRY", sizeof(struct wire_entry), TAIL },
	[WIRE_EVENT] = { "EVENT", sizeof(struct wire_event), TAIL },
	[WIRE_CHOWN] = { "CHOWN", sizeof(struct wire_chown), TAIL },
	[WIRE_HIT] = { "HIT", sizeof(struct wire_hit), TAIL },
	[WIRE_SOCKETS] = { "SOCKETS", sizeof(struct frame), NO_TAIL },
	[WIRE_SOCKET] = { "SOCKET", sizeof(struct wire_socket), TAIL },
	[WIRE_EGRESS_CONNECT] = { "EGRESS_CONNECT", sizeof(struct frame), NO_TAIL },
	[WIRE_EGRESS_OPEN] = { "EGRESS_OPEN", sizeof(struct wire_egress_open), TAIL },
	[WIRE_EGRESS_CLOSE] = { "EGRESS_CLOSE", sizeof(struct wire_id), NO_TAIL },
	[WIRE_EGRESS_LIST] = { "EGRESS_LIST", sizeof(struct wire_egress_list), NO_TAIL },
	[WIRE_EGRESS_REPORT] = { "EGRESS_REPORT", sizeof(struct wire_egress_report), TAIL },
	[WIRE_LLM_CONNECT] = { "LLM_CONNECT", sizeof(struct frame), NO_TAIL },
	[WIRE_DOCTOR] = { "DOCTOR", sizeof(struct frame), NO_TAIL },
	[WIRE_ALERT_COMMAND] = { "ALERT_COMMAND", sizeof(struct frame), NO_TAIL },
	[WIRE_PROVE] = { "PROVE", sizeof(struct frame), NO_TAIL },
	[WIRE_CLUSTER_ENGINES] = { "CLUSTER_ENGINES", sizeof(struct frame), NO_TAIL },
	[WIRE_CHECKPOINT] = { "CHECKPOINT", sizeof(struct wire_checkpoint), NO_TAIL },
	[WIRE_CHECKPOINT_OPEN] = { "CHECKPOINT_OPEN", sizeof(struct wire_checkpoint_file),
				   NO_TAIL },
	[WIRE_CHECKPOINT_SYNC] = { "CHECKPOINT_SYNC", sizeof(struct wire_id), NO_TAIL },
	[WIRE_CHECKPOINT_DROP] = { "CHECKPOINT_DROP", sizeof(struct wire_id), NO_TAIL },
	[WIRE_CHECKPOINT_MERGE] = { "CHECKPOINT_MERGE", sizeof(struct wire_checkpoint_merge),
				    NO_TAIL },
	[WIRE_CHECKPOINT_LIST] = { "CHECKPOINT_LIST", sizeof(struct wire_id), NO_TAIL },
	[WIRE_CHECKPOINT_EXPORT] = { "CHECKPOINT_EXPORT", sizeof(struct wire_checkpoint_merge),
				     NO_TAIL },
	[WIRE_CHECKPOINT_IMPORT] = { "CHECKPOINT_IMPORT", sizeof(struct wire_checkpoint), NO_TAIL },
	[WIRE_CHECKPOINTED] = { "CHECKPOINTED", sizeof(struct wire_checkpointed), NO_TAIL },
	[WIRE_IMAGE_TAKE] = { "IMAGE_TAKE", sizeof(struct wire_image), NO_TAIL },
	[WIRE_IMAGE_WAIT] = { "IMAGE_WAIT", sizeof(struct wire_image), NO_TAIL },
	[WIRE_IMAGE_START] = { "IMAGE_START", sizeof(struct wire_image), NO_TAIL },
	[WIRE_IMAGE_DROP] = { "IMAGE_DROP", sizeof(struct wire_image), NO_TAIL },
	[WIRE_IMAGE_SAVE] = { "IMAGE_SAVE", sizeof(struct wire_image_file), NO_TAIL },
	[WIRE_IMAGE_LOAD] = { "IMAGE_LOAD", sizeof(struct wire_image_file), NO_TAIL },
	[WIRE_IMAGE] = { "IMAGE", sizeof(struct wire_image_about), TAIL },
	[WIRE_HOLD] = { "HOLD", sizeof(struct frame), NO_TAIL },
	[WIRE_EXPORT] = { "EXPORT", sizeof(struct frame), NO_TAIL },
	[WIRE_EXEC_STATE] = { "EXEC_STATE", sizeof(struct wire_exec_state), NO_TAIL },
	[WIRE_TERMINAL] = { "TERMINAL", sizeof(struct wire_terminal), NO_TAIL },
	[WIRE_CLUSTER_CONNECT] = { "CLUSTER_CONNECT", sizeof(struct frame), NO_TAIL },
	[WIRE_CLUSTER_DIAL] = { "CLUSTER_DIAL", sizeof(struct frame), TAIL },
	[WIRE_OUTBOUND_CONNECT] = { "OUTBOUND_CONNECT", sizeof(struct frame), NO_TAIL },
	[WIRE_EGRESS_SECRETS] = { "EGRESS_SECRETS", sizeof(struct wire_id), TAIL },
	[WIRE_EGRESS_LINK] = { "EGRESS_LINK", sizeof(struct wire_egress_link), TAIL },
	[WIRE_EGRESS_LINKED] = { "EGRESS_LINKED", sizeof(struct frame), NO_TAIL },
	[WIRE_EGRESS_REQUEST] = { "EGRESS_REQUEST", sizeof(struct wire_egress_request), TAIL },
	[WIRE_EGRESS_DECIDE] = { "EGRESS_DECIDE", sizeof(struct wire_egress_decide), NO_TAIL },
	[WIRE_EGRESS_CAPTURE] = { "EGRESS_CAPTURE", sizeof(struct wire_id), NO_TAIL },
};

static const struct frame_shape *shape_of(uint8_t type)
{
	if (type >= sizeof(shapes) / sizeof(shapes[0]) || !shapes[type].body)
		return 0;
	return &shapes[type];
}

int frame_check(const void *bytes, uint32_t len)
{
	const struct frame *f = bytes;
	const struct frame_shape *s;

	if (len < sizeof(*f) || len > WIRE_MAX || f->version != WIRE_VERSION)
		return -1;
	s = shape_of(f->type);
	if (!s || len < s->body || (len > s->body && s->tail == NO_TAIL))
		return -1;
	return 0;
}

const char *frame_name(uint8_t type)
{
	const struct frame_shape *s = shape_of(type);

	return s ? s->name : "?";
}

uint32_t frame_body(uint8_t type)
{
	const struct frame_shape *s = shape_of(type);

	return s ? s->body : 0;
}

const char *wire_tier_name(unsigned tier)
{
	static const char *const names[WIRE_TIER_COUNT] = {
		[WIRE_TIER_CONTAINER] = "container", [WIRE_TIER_PLAIN] = "plain",
		[WIRE_TIER_PROCESS] = "process",     [WIRE_TIER_GVISOR] = "gvisor",
		[WIRE_TIER_MICROVM] = "microvm",     [WIRE_TIER_WASM] = "wasm",
	};

	return tier < WIRE_TIER_COUNT ? names[tier] : "?";
}
