/* confine_list.c - see confine_list.h. */
#include "procimage/confine_list.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum {
	SLOT_RULES = RESTORER_OUTSIDE,
	SLOT_PATH,
	CAPS = 64,
	LAST_CAP_OF_OLD_KERNELS = CAP_AUDIT_READ
};

static int confine_has(const struct confine_spec *s, enum copy_step step)
{
	return !(s->without >> step & 1);
}

static void confine_expect(struct call_list *l, long number, uint64_t value, const uint64_t args[6])
{
	call_list_add(l, number, RESTORER_EQUAL, args)->expect = value;
}

static void confine_add_ids(const struct confine_spec *s, struct call_list *l)
{
	CALL(l, SYS_setgroups, RESTORER_SUCCEED, 0, 0);
	CALL(l, SYS_setresgid, RESTORER_SUCCEED, s->gid, s->gid, s->gid);
	CALL(l, SYS_setresuid, RESTORER_SUCCEED, s->uid, s->uid, s->uid);
	confine_expect(l, SYS_getuid, s->uid, (const uint64_t[6]){ 0 });
	confine_expect(l, SYS_getegid, s->gid, (const uint64_t[6]){ 0 });
}

/* Numbers after the last capability of the kernel fail, which changes nothing. */
static void confine_add_bounds(struct call_list *l)
{
	for (uint64_t cap = 0; cap < CAPS; cap++)
		CALL(l, SYS_prctl,
		     cap <= LAST_CAP_OF_OLD_KERNELS ? RESTORER_SUCCEED : RESTORER_IGNORE,
		     PR_CAPBSET_DROP, cap);
	confine_expect(l, SYS_prctl, 0, (const uint64_t[6]){ PR_CAPBSET_READ, CAP_SYS_ADMIN });
}

static void confine_add_caps(struct call_list *l, struct call_data *d)
{
	const struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	uint64_t at = call_data_add(d, &head, sizeof(head), 8);
	uint64_t none = call_data_add(d, NULL, 2 * sizeof(struct __user_cap_data_struct), 8);

	CALL(l, SYS_prctl, RESTORER_SUCCEED, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL);
	CALL(l, SYS_capset, RESTORER_SUCCEED, at, none);
}

static void confine_add_privileges(struct call_list *l)
{
	CALL(l, SYS_prctl, RESTORER_SUCCEED, PR_SET_NO_NEW_PRIVS, 1);
	confine_expect(l, SYS_prctl, 1, (const uint64_t[6]){ PR_GET_NO_NEW_PRIVS });
}

static void confine_add_path(const struct confine_path *p, struct call_list *l, struct call_data *d)
{
	const struct landlock_path_beneath_attr rule = { .allowed_access = p->rights };
	uint64_t at = call_data_add(d, &rule, sizeof(rule), 8);
	struct restorer_call *c;

	CALL(l, SYS_openat, RESTORER_SUCCEED, (uint64_t)AT_FDCWD,
	     call_data_add(d, p->path, strlen(p->path) + 1, 1), O_PATH | O_CLOEXEC)
		->save = SLOT_PATH + 1;
	/* The rule is read from memory, and the number of the descriptor is part of it. */
	c = CALL(l, RESTORER_STORE, RESTORER_SUCCEED,
		 at + offsetof(struct landlock_path_beneath_attr, parent_fd), SLOT_PATH);
	c->from_slot = 1 << 1;
	CALL(l, SYS_landlock_add_rule, RESTORER_SUCCEED, SLOT_RULES, LANDLOCK_RULE_PATH_BENEATH, at,
	     0)
		->from_slot = 1;
	CALL(l, SYS_close, RESTORER_SUCCEED, SLOT_PATH)->from_slot = 1;
}

static void confine_add_landlock(const struct confine_spec *s, struct call_list *l,
				 struct call_data *d)
{
	uint64_t handled = call_data_add(d, &s->landlock_handled, 8, 8);

	CALL(l, SYS_landlock_create_ruleset, RESTORER_SUCCEED, handled, 8, 0)->save =
		SLOT_RULES + 1;
	for (unsigned i = 0; i < s->npaths; i++)
		confine_add_path(&s->paths[i], l, d);
	CALL(l, SYS_landlock_restrict_self, RESTORER_SUCCEED, SLOT_RULES, 0)->from_slot = 1;
	CALL(l, SYS_close, RESTORER_SUCCEED, SLOT_RULES)->from_slot = 1;
}

static void confine_add_filter(const struct confine_spec *s, struct call_list *l,
			       struct call_data *d)
{
	struct sock_fprog program = { .len = s->filter_rows };

	program.filter = (void *)(uintptr_t)call_data_add(d, s->filter,
							  s->filter_rows * sizeof(*s->filter), 8);
	CALL(l, SYS_seccomp, RESTORER_SUCCEED, SECCOMP_SET_MODE_FILTER, 0,
	     call_data_add(d, &program, sizeof(program), 8));
}

void confine_list_add_domain(const struct confine_spec *s, struct call_list *l, struct call_data *d)
{
	l->step = STEP_CONFINE;
	if (!s->landlock_handled || !confine_has(s, COPY_STEP_landlock))
		return;
	CALL(l, SYS_prctl, RESTORER_SUCCEED, PR_SET_NO_NEW_PRIVS, 1);
	confine_add_landlock(s, l, d);
}

void confine_list_add(const struct confine_spec *s, struct call_list *l, struct call_data *d)
{
	l->step = STEP_CONFINE;
	if (confine_has(s, COPY_STEP_keyring))
		CALL(l, SYS_keyctl, RESTORER_IGNORE, KEYCTL_JOIN_SESSION_KEYRING, 0);
	if (confine_has(s, COPY_STEP_folder)) {
		CALL(l, SYS_umask, RESTORER_IGNORE, 022);
		CALL(l, SYS_chdir, RESTORER_SUCCEED, call_data_add(d, "/", 2, 1));
	}
	if (confine_has(s, COPY_STEP_bounds))
		confine_add_bounds(l);
	if (confine_has(s, COPY_STEP_identity))
		confine_add_ids(s, l);
	if (confine_has(s, COPY_STEP_caps))
		confine_add_caps(l, d);
	if (confine_has(s, COPY_STEP_privileges))
		confine_add_privileges(l);
	if (s->filter && confine_has(s, COPY_STEP_filter))
		confine_add_filter(s, l, d);
}

uint64_t confine_list_bound(const struct confine_spec *s)
{
	uint64_t bytes =
		4096 + 128 * sizeof(struct restorer_call) + s->filter_rows * sizeof(*s->filter);

	for (unsigned i = 0; i < s->npaths; i++)
		bytes += strlen(s->paths[i].path) + 64 + 8 * sizeof(struct restorer_call);
	return bytes;
}
