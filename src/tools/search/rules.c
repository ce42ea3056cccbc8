/* rules: reading ignore files on the way down a tree; see rules.h. */
#include "tools/search/rules.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text/pattern.h"
#include "tools/search/rules_git.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

struct rules {
	atomic_uint references;
	/* keeps alive what `ignore` is chained to; NULL at the top */
	struct rules *parent;
	unsigned flags; /* PATTERN_IGNORE_CASE: the repository says so */
	/* of a repository that begins here: core.excludesFile, then info/exclude before it */
	struct ignore *user, *exclude;
	struct ignore *ignore; /* .gitignore */
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
		ignore_free(rules->user);
		free(rules);
		rules = parent;
	}
}

static const struct ignore *rules_chain(const struct rules *rules)
{
	if (!rules)
		return NULL;
	return rules->ignore    ? rules->ignore
	       : rules->exclude ? rules->exclude
				: rules->user;
}

/* No link on the way: git does not follow one here either. */
static struct ignore *rules_read(int folder_fd, const char *name, struct str folder,
				 const struct ignore *parent, unsigned flags)
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
		ignore = ignore_new(buf_str(&text), folder, parent, flags);
	buf_fini(&text);
	return ignore;
}

static struct rules *rules_new(struct rules *parent, unsigned flags)
{
	struct rules *rules = memory_alloc(sizeof(*rules));

	atomic_init(&rules->references, 1);
	rules->parent = rules_ref(parent);
	rules->flags = flags;
	return rules;
}

static struct ignore *ignore_of(const struct buf *text, struct str folder,
				const struct ignore *parent, unsigned flags)
{
	return text->size > 0 ? ignore_new(buf_str(text), folder, parent, flags) : NULL;
}

/* The rules of a repository besides its ignore files; NULL: there are none. */
static struct rules *rules_of_repository(const struct rules_place *place, struct str folder)
{
	struct rules_git git;
	struct rules *rules = NULL;

	rules_git_read(place, folder, &git);
	if (git.ignores_case || git.user.size > 0 || git.exclude.size > 0) {
		rules = rules_new(NULL, git.ignores_case ? PATTERN_IGNORE_CASE : 0);
		rules->user = ignore_of(&git.user, folder, NULL, rules->flags);
		rules->exclude = ignore_of(&git.exclude, folder, rules->user, rules->flags);
	}
	rules_git_fini(&git);
	return rules;
}

struct rules *rules_enter(struct rules *parent, const struct rules_place *place,
			  int folder_fd, struct str folder, struct rules_signs signs)
{
	struct rules *outer =
		signs.git ? rules_of_repository(place, folder) : rules_ref(parent);
	const unsigned flags = outer != NULL ? outer->flags : 0;
	struct ignore *ignore = NULL;
	struct rules *rules;

	if (signs.gitignore)
		ignore = rules_read(folder_fd, ".gitignore", folder, rules_chain(outer),
				    flags);
	if (ignore == NULL)
		return outer;
	rules = rules_new(outer, flags);
	rules->ignore = ignore;
	rules_unref(outer);
	return rules;
}

struct rules *rules_enter_unseen(struct rules *parent, const struct rules_place *place,
				 int folder_fd, struct str folder)
{
	struct rules_signs signs = {
		.git = faccessat(folder_fd, ".git", F_OK, AT_SYMLINK_NOFOLLOW) == 0,
		.gitignore = true,
	};

	return rules_enter(parent, place, folder_fd, folder, signs);
}

bool rules_ignore(const struct rules *rules, struct str path, bool is_folder)
{
	return rules && ignore_decide(rules_chain(rules), path, is_folder) == IGNORE_YES;
}
