/* supervise.h - the parent of init in the tier process, where no pid namespace ends the processes of a box.
 * Owns: the end of every descendant of init, and the folder of the box.
 *
 *   keeper ── supervisor (this) ── init ── programs
 *
 * It is a subreaper: a process whose parent has ended becomes its child, so that no descendant can leave it. When init
 * has ended, or the keeper sends SIGTERM, it kills its children until it has none, removes the folder, and exits with
 * the status of init. Programs cannot signal it where landlock restricts signals (ABI 6), because it is outside of
 * their domain, or where they have another uid. */
#pragma once

/* argv: "supervisor", "supervise", number of init, its folder. */
_Noreturn void supervise_main(char **argv);
