/*
 * landlock: what a cell without namespaces may do with files, as one Landlock ruleset
 * made from the view. Inside sandbox/ only. A right that Landlock grants on a folder
 * holds for everything below it, and cannot be taken away further down. To hide a
 * masked file, the rules therefore grant rights on everything beside the file instead
 * of on the folder. A file that is made in such a folder later stays closed.
 *
 * Landlock is one ruleset, loaded by each worker. A ruleset of scopes only, in the
 * anchor, would refuse every rename and link between folders, because a ruleset that
 * does not grant REFER denies it. Abstract sockets are therefore walled off by the
 * network namespace only, and commands of one cell may talk over them.
 */
#pragma once

#include "base/err.h"
#include "base/kernel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct seccomp_notif;
struct view;

/* The ABI of this kernel's Landlock, 0 when there is none. */
int landlock_abi(void);

/* From this ABI on a process cannot send signals out of its Landlock domain. */
enum { LANDLOCK_ABI_SCOPES = 6 };

/*
 * All rights that Landlock of ABI knows. A ruleset refuses them where no rule grants
 * them.
 */
struct kernel_landlock_ruleset landlock_rules_handled(int abi);

/*
 * Make a ruleset for VIEW on a kernel with ABI (1 or more). A mask below a writable
 * tree fails with EINVAL, because new files must be possible beside it.
 */
bool landlock_rules_make(const struct view *view, int abi, int *rules, struct err *err);

/*
 * Make a ruleset that removes no file right, and keeps signals and abstract sockets
 * inside. The anchor enters it, so that kill(-1) ends exactly its cell, and programs
 * enter it, so that they cannot end their worker. ABI 6 or more.
 */
bool landlock_rules_domain(int *rules, struct err *err);

/* Enter RULESET. */
bool landlock_enter(int ruleset, struct err *err);

/*
 * Load Landlock rules: write only below the NULL-ended WRITABLE paths and to files of
 * /dev and /proc, and send signals only to processes under the same rules.
 */
bool landlock_write_below(const char *const *writable, struct err *err);

/* RIGHTS over what lies below FOLDER; those that this kernel does not know are left out. */
struct landlock_grant {
	int folder;
	uint64_t rights;
};

/*
 * Load Landlock rules: no signals out, no abstract socket, and no right to any file but the COUNT
 * GRANTS.
 */
bool landlock_no_files(const struct landlock_grant *grants, size_t count, struct err *err);

/*
 * ASKED came from LISTENER. If it is a change of a mode, do it in place of the program, without the
 * set-id bits, and answer. The worker has no more rights to files than its programs. False: it is
 * another call, which is not answered.
 */
bool landlock_change_mode(int listener, const struct seccomp_notif *asked);

/*
 * Take one call from LISTENER. If the file lies at or below one of WRITABLE
 * (NULL-ended, real paths), do the call in place of the program; otherwise the program
 * gets EPERM. The file is held open while it is judged and changed, so swapping names
 * gains nothing.
 */
void landlock_answer(int listener, const char *const *writable);
