/* exec_steps.h - the names of what a child does between clone and execve, in that order.
 * In a header of its own so that tests can turn a name into a bit of wire_start.without. */
#pragma once

enum inside_row {
	ROW_SESSION,
	ROW_STDIO,
	ROW_FILE_SIZE,
	ROW_NO_NEW_PRIVS,
	ROW_BOUNDS,
	ROW_GROUPS,
	ROW_GID,
	ROW_UID,
	ROW_READ_BACK,
	ROW_CAPS,
	ROW_DIRECTORY,
	ROW_SIGNALS,
	ROW_DESCRIPTORS,
	NROWS,
};

static const char *const inside_names[NROWS] = {
	[ROW_SESSION] = "session",
	[ROW_STDIO] = "stdio",
	[ROW_FILE_SIZE] = "file size",
	[ROW_NO_NEW_PRIVS] = "no new privileges",
	[ROW_BOUNDS] = "capability bounds",
	[ROW_GROUPS] = "groups",
	[ROW_GID] = "gid",
	[ROW_UID] = "uid",
	[ROW_READ_BACK] = "read back",
	[ROW_CAPS] = "capabilities",
	[ROW_DIRECTORY] = "directory",
	[ROW_SIGNALS] = "signals",
	[ROW_DESCRIPTORS] = "descriptors",
};
