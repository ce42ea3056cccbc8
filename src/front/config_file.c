/*
 * config_file: finds the files, checks their owner and mode, and reads and writes them.
 */

#include "front/config_file.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "policy/ceiling.h"
#include "policy/network.h"
#include "session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Reads the ceiling of this machine. It binds only when nobody but root could have
 * written it, so anything else about it is an error.
 */

/* Does the kernel show every unknown owner by the number UID? */
static bool is_nobodys(uid_t uid)
{
	unsigned long first, outside, count;
	FILE *map = fopen("/proc/self/uid_map", "re");
	bool mapped = map == NULL;

	while (!mapped && fscanf(map, "%lu %lu %lu", &first, &outside, &count) == 3)
		mapped = uid >= first && uid - first < count;
	if (map != NULL)
		(void)fclose(map);
	return !mapped;
}

/*
 * In a user namespace without root, as in a cell, root's files belong to nobody whom the
 * namespace knows.
 */
static bool is_roots(int fd, const char *path, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	if (st.st_uid != 0 && !is_nobodys(st.st_uid))
		return err_set(err, EPERM,
			       "%s: belongs to user %u; what binds all users must be root's: "
			       "chown root %s",
			       path, (unsigned)st.st_uid, path);
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return err_set(err, EPERM, "%s: others may write to it: chmod go-w %s",
			       path, path);
	return true;
}

static bool real_path(const char *path, char *real)
{
	return realpath(path, real) != NULL;
}

static bool ceiling_load(struct ceiling **ceiling, struct err *err)
{
	auto_close int fd =
		open(CEILING_FILE, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	auto_close int folder = -1;
	auto_free char *above = memory_copy(CEILING_FILE);
	struct buf text;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return true;
	if (fd < 0)
		return err_set(err, errno, "%s: %s", CEILING_FILE, strerror(errno));
	*strrchr(above, '/') = '\0';
	folder = open(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
	buf_init(&text, CONFIG_TEXT_MAX);
	const bool fine = is_roots(folder, above, err) && is_roots(fd, CEILING_FILE, err) &&
			  fd_read_all(fd, &text, CEILING_FILE, err) &&
			  ceiling_parse(buf_str(&text), real_path, ceiling, err);
	buf_fini(&text);
	return fine;
}

bool config_file_take_ceiling(struct err *err)
{
	struct ceiling *ceiling = NULL;

	if (!ceiling_load(&ceiling, err))
		return false;
	session_bound(ceiling);
	return true;
}

/* Finds the configuration, checks its owner and mode, and reads it. */

const char *config_file_variable(const char *name)
{
	const char *value = name != NULL ? getenv(name) : NULL;

	return value != NULL && value[0] != '\0' ? value : NULL;
}

bool config_file_beside(const char *name, struct buf *path)
{
	char inside[NAME_MAX + 1];
	int size = snprintf(inside, sizeof(inside), "glovebox/%s", name);

	return size > 0 && (size_t)size < sizeof(inside) &&
	       path_xdg(getenv("XDG_CONFIG_HOME"), getenv("HOME"), ".config", inside, path);
}

static bool check_owner(const char *path, const struct stat *st, struct err *err)
{
	if (!S_ISREG(st->st_mode))
		return err_set(err, EINVAL, "%s: is not a regular file", path);
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return err_set(err, EPERM,
			       "%s: belongs to another user (uid %u), who could change what agents may "
			       "do; copy it, or chown it to yourself",
			       path, (unsigned)st->st_uid);
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return err_set(err, EPERM, "%s: %s may write to it; chmod go-w %s", path,
			       st->st_mode & S_IWOTH ? "anyone" : "its group", path);
	return true;
}

bool config_file_read(const char *path, struct buf *buf, struct err *err)
{
	/* Without O_NONBLOCK, opening a FIFO of that name would block the program. */
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	if (!check_owner(path, &st, err) || !fd_read_all(fd, buf, path, err))
		return false;
	/* Editors of other systems put a byte order mark there, which is no part of JSON. */
	if (str_starts(buf_str(buf), STR("\xef\xbb\xbf")))
		buf_remove(buf, 0, 3);
	return true;
}

bool config_file_load(const char *path, struct config **config, struct err *err)
{
	struct buf place;
	struct buf text;
	struct err why = {0};
	bool fine = true;

	buf_init(&place, PATH_MAX - 1);
	buf_init(&text, CONFIG_TEXT_MAX);
	if (path || config_file_beside("config.json", &place)) {
		const char *name = path ? path : place.data;

		fine = config_file_read(name, &text, &why) ||
		       (!path && (why.code == ENOENT || why.code == ENOTDIR));
		fine = fine && config_parse(buf_str(&text), name, config, &why);
		if (!fine)
			(void)err_set(err, CONFIG_WRONG, "%s", why.text);
	} else {
		*config = config_new();
	}
	buf_fini(&text);
	buf_fini(&place);
	return fine;
}

bool config_file_load_policy(const char *path, struct value **entry, struct err *err)
{
	struct buf text;
	bool fine;

	buf_init(&text, CONFIG_TEXT_MAX);
	fine = config_file_read(path, &text, err) &&
	       config_parse_policy(buf_str(&text), path, entry, err);
	buf_fini(&text);
	return fine;
}

/* The rules that a person has answered `always` to. */

static const char file_name[] = "rules.json";

static bool read_file(const char *path, struct rules *rules, struct err *err)
{
	struct buf text;
	struct err why = {0};
	bool fine;

	*rules = (struct rules){0};
	buf_init(&text, RULES_TEXT_MAX);
	fine = config_file_read(path, &text, &why);
	if (fine)
		fine = rules_parse(buf_str(&text), path, rules, err);
	else
		fine = why.code == ENOENT || why.code == ENOTDIR ||
		       err_set(err, why.code, "%s", why.text);
	buf_fini(&text);
	return fine;
}

bool config_file_rules_read(struct rules *rules, struct err *err)
{
	struct buf path;
	bool fine = true;

	*rules = (struct rules){0};
	buf_init(&path, PATH_MAX);
	if (config_file_beside(file_name, &path))
		fine = read_file(path.data, rules, err);
	buf_fini(&path);
	return fine;
}

static bool change_file(const char *path,
			bool (*change)(void *context, struct rules *rules, struct err *err),
			void *context, struct err *err)
{
	auto_close int lock = fd_lock_beside(path, err);
	struct rules rules = {0};
	struct buf text;
	bool fine;

	if (lock < 0)
		return false;
	buf_init(&text, RULES_TEXT_MAX);
	fine = read_file(path, &rules, err) && change(context, &rules, err);
	if (fine && !rules_print(&rules, &text))
		fine = err_set(err, EFBIG, "%s: the rules are too long together", path);
	fine = fine && fd_replace_file(path, buf_str(&text), err);
	buf_fini(&text);
	rules_fini(&rules);
	return fine;
}

bool config_file_rules_change(bool (*change)(void *context, struct rules *rules,
					     struct err *err),
			      void *context, struct err *err)
{
	struct buf path;
	bool fine;

	buf_init(&path, PATH_MAX);
	fine = config_file_beside(file_name, &path)
		       ? change_file(path.data, change, context, err)
		       : err_set(err, ENOENT, "there is no home to keep rules in");
	buf_fini(&path);
	return fine;
}

static bool add_rule(void *context, struct rules *rules, struct err *err)
{
	const struct rule *rule = context;

	return rules_check(rule->kind, str_of(rule->rule), err) &&
	       (rules_add(rules, rule) ||
		err_set(err, E2BIG,
			"there are %d rules already: glovebox policy rules remove N removes one",
			RULES_MAX));
}

bool config_file_rules_keep(const char *agent, const char *folder, enum rule_kind kind,
			    const char *rule, struct err *err)
{
	char day[CLOCK_DAY];
	struct rule made = {
		.agent = (char *)(uintptr_t)agent,
		.folder = (char *)(uintptr_t)folder,
		.rule = (char *)(uintptr_t)rule,
		.since = day,
		.kind = kind,
	};

	clock_text_day(clock_wall_ms(), day);
	return config_file_rules_change(add_rule, &made, err);
}

/* May any cell of this machine reach HOST, without a person to look? */
static bool host_is_fine(const char *host)
{
	struct network_entry entry = {0};

	return network_parse_entry(str_of(host), &entry, NULL) &&
	       network_hands_over(&entry) == NULL &&
	       ceiling_of_host(session_ceiling(), &entry) == NULL;
}

/* Is PATH a folder now, by its own name and not by a link, which nobody was shown? */
static bool folder_is_fine(const char *path, bool writes)
{
	auto_close int fd = open(path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	struct buf real;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode))
		return false;
	buf_init(&real, PATH_MAX);
	const bool same = fd_real_path(fd, &real) && strcmp(real.data, path) == 0;
	buf_fini(&real);
	return same && ceiling_of_path(session_ceiling(), path, writes) == NULL;
}

static bool apply(struct policy *policy, const struct rule *rule, struct err *err)
{
	switch (rule->kind) {
	case RULE_COMMAND:
		policy_add_always(policy, rule->rule);
		return true;
	case RULE_HOST:
		return !host_is_fine(rule->rule) ||
		       policy_add_network(policy, rule->rule, file_name, err);
	case RULE_READ:
	case RULE_WRITE:
		break;
	}
	if (folder_is_fine(rule->rule, rule->kind == RULE_WRITE))
		policy_add_folder(policy, rule->rule, rule->kind == RULE_WRITE);
	return true;
}

bool config_file_rules_apply(struct policy *policy, const char *agent, const char *folder,
			     struct err *err)
{
	struct rules rules;
	bool fine = config_file_rules_read(&rules, err);

	for (size_t i = 0; fine && i < rules.count; i++) {
		const struct rule *rule = &rules.items[i];

		if (strcmp(rule->agent, agent) == 0 && strcmp(rule->folder, folder) == 0)
			fine = apply(policy, rule, err);
	}
	rules_fini(&rules);
	return fine;
}
