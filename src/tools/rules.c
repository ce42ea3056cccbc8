/* rules: reading ignore files on the way down a tree; see rules.h. */
#include "tools/rules.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/ignore.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Git's own files are a few KiB; over this one is taken for something else and not
 * read.
 */
enum { RULES_FILE_MAX = 1 << 20 };

struct rules {
	atomic_uint references;
	/* keeps alive what `ignore` is chained to; NULL at the top */
	struct rules *parent;
	struct ignore *exclude; /* info/exclude of a repository that begins here */
	struct ignore *ignore;  /* .gitignore */
};

struct rules *rules_ref(struct rules *rules)
{
	if (rules)
		atomic_fetch_add_explicit(&rules->references, 1, memory_order_relaxed);
	return rules;
}

void rules_unref(struct rules *rules)
{
	while (rules && atomic_fetch_sub_explicit(&rules->references, 1,
						  memory_order_acq_rel) == 1) {
		struct rules *parent = rules->parent;

		ignore_free(rules->ignore);
		ignore_free(rules->exclude);
		free(rules);
		rules = parent;
	}
}

static const struct ignore *rules_chain(const struct rules *rules)
{
	if (!rules)
		return NULL;
	return rules->ignore ? rules->ignore : rules->exclude;
}

/* No link on the way: git does not follow one here either. */
static struct ignore *rules_read(int folder_fd, const char *name, struct str folder,
				 const struct ignore *parent)
{
	struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	auto_close int fd = (int)syscall(SYS_openat2, folder_fd, name, &how, sizeof(how));
	struct ignore *ignore = NULL;
	struct buf text;

	if (fd < 0)
		return NULL;
	buf_init(&text, RULES_FILE_MAX);
	if (fd_read_all(fd, &text, name, NULL) && text.size > 0)
		ignore = ignore_new(buf_str(&text), folder, parent);
	buf_fini(&text);
	return ignore;
}

struct rules *rules_enter(struct rules *parent, int folder_fd, struct str folder,
			  struct rules_signs signs)
{
	struct rules *outer = signs.git ? NULL : parent;
	struct ignore *exclude = NULL;
	struct ignore *ignore = NULL;
	struct rules *rules;

	if (signs.git)
		exclude = rules_read(folder_fd, ".git/info/exclude", folder, NULL);
	if (signs.gitignore)
		ignore = rules_read(folder_fd, ".gitignore", folder,
				    exclude ? exclude : rules_chain(outer));
	if (!exclude && !ignore)
		return rules_ref(outer);
	rules = memory_alloc(sizeof(*rules));
	atomic_init(&rules->references, 1);
	rules->parent = rules_ref(outer);
	rules->exclude = exclude;
	rules->ignore = ignore;
	return rules;
}

struct rules *rules_enter_unseen(struct rules *parent, int folder_fd, struct str folder)
{
	struct rules_signs signs = {
		.git = faccessat(folder_fd, ".git", F_OK, AT_SYMLINK_NOFOLLOW) == 0,
		.gitignore = true,
	};

	return rules_enter(parent, folder_fd, folder, signs);
}

bool rules_ignore(const struct rules *rules, struct str path, bool is_folder)
{
	return rules && ignore_decide(rules_chain(rules), path, is_folder) == IGNORE_YES;
}
