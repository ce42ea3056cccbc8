/* rules: reads and changes rules.json, and adds its rules to a policy. */

#include "front/rules.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "front/setup.h"
#include "policy/ceiling.h"
#include "policy/network.h"
#include "session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

static const char file_name[] = "rules.json";

static bool read_file(const char *path, struct rules *rules, struct err *err)
{
	struct buf text;
	struct err why = {0};
	bool fine;

	*rules = (struct rules){0};
	buf_init(&text, RULES_TEXT_MAX);
	fine = setup_config_read(path, &text, &why);
	if (fine)
		fine = rules_parse(buf_str(&text), path, rules, err);
	else
		fine = why.code == ENOENT || why.code == ENOTDIR ||
		       err_set(err, why.code, "%s", why.text);
	buf_fini(&text);
	return fine;
}

bool front_rules_read(struct rules *rules, struct err *err)
{
	struct buf path;
	bool fine = true;

	*rules = (struct rules){0};
	buf_init(&path, PATH_MAX);
	if (setup_config_beside(file_name, &path))
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

bool front_rules_change(bool (*change)(void *context, struct rules *rules, struct err *err),
			void *context, struct err *err)
{
	struct buf path;
	bool fine;

	buf_init(&path, PATH_MAX);
	fine = setup_config_beside(file_name, &path)
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

bool front_rules_keep(const char *agent, const char *folder, enum rule_kind kind,
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
	return front_rules_change(add_rule, &made, err);
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

bool front_rules_apply(struct policy *policy, const char *agent, const char *folder,
		       struct err *err)
{
	struct rules rules;
	bool fine = front_rules_read(&rules, err);

	for (size_t i = 0; fine && i < rules.count; i++) {
		const struct rule *rule = &rules.items[i];

		if (strcmp(rule->agent, agent) == 0 && strcmp(rule->folder, folder) == 0)
			fine = apply(policy, rule, err);
	}
	rules_fini(&rules);
	return fine;
}
