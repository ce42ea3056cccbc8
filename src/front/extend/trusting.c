/* trusting: prints items and what has changed in them, and asks about them. */

#include "front/extend/trusting.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "extend/extension.h"
#include "front/agents.h"
#include "front/config_file.h"
#include "front/setup.h"
#include "front/verb.h"
#include "mcp/client/remotes.h"
#include "policy/policy.h"
#include "tui/console.h"
#include "tui/live.h"
#include "tui/paint.h"

#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { DIFF_MAX = 1 << 20, SHOWN_DIGITS = 12, QUESTION_MAX = 1024 };

static void print_visible(struct str text, FILE *out)
{
	struct str line;

	while (str_next_line(&text, &line)) {
		struct buf shown;

		buf_init(&shown, 4 * line.size + 1); /* \xHH for every byte */
		text_add_name(&shown, line);
		(void)fprintf(out, "%s\n", shown.data);
		buf_fini(&shown);
	}
}

void trusting_show(const struct trust *trust, const struct brought *item, FILE *out)
{
	struct buf diff;

	buf_init(&diff, DIFF_MAX);
	if (trust != NULL && trust_of(trust, item) == TRUST_CHANGED &&
	    trust_diff(trust, item, &diff)) {
		(void)fprintf(out, "What has changed since you let it in:\n\n");
		print_visible(buf_str(&diff), out);
		(void)fprintf(out, "\nAll of it:\n\n");
	}
	print_visible(str_of(item->text), out);
	(void)fprintf(out, "\nThis is ");
	verb_print_name(item->file, 0, out);
	(void)fprintf(out, " (%.*s).", SHOWN_DIGITS, item->hash);
	buf_fini(&diff);
}

/* Asks at the start of a session. */

/*
 * The items that the person has not decided on: new ones, and changed ones; with PUT_OFF those too
 * that were put off.
 */
static const struct brought **find_open(const struct brought_list *list,
					const struct trust *trust, bool put_off,
					size_t *count)
{
	const struct brought **items = memory_array(list->count + 1, sizeof(*items));

	*count = 0;
	for (size_t i = 0; i < list->count; i++) {
		const enum trust_state state = trust_of(trust, &list->items[i]);

		if (list->items[i].problem == NULL &&
		    (state == TRUST_NONE || state == TRUST_CHANGED ||
		     (put_off && state == TRUST_LATER)))
			items[(*count)++] = &list->items[i];
	}
	return items;
}

static void show_all(const struct trust *trust, const struct brought *const *items,
		     size_t count)
{
	for (size_t i = 0; i < count; i++) {
		(void)fprintf(stdout, "%s ", brought_kind_name(items[i]->kind));
		verb_print_name(items[i]->name, 0, stdout);
		(void)fprintf(stdout, "\n\n");
		trusting_show(trust, items[i], stdout);
		(void)fprintf(stdout, "\n\n");
	}
	(void)fflush(stdout);
}

/*
 * Let the person decide about ITEMS, which were read before: what they let in are these bytes,
 * whatever stands in the files by now.
 */
static bool ask(const char *workspace, const struct trust *trust,
		const struct brought *const *items, size_t count, struct console *console,
		int wake_fd, bool *let_in, struct err *err)
{
	static const char *const first[] = {"view", "trust these", "not now", NULL};
	static const char *const second[] = {"trust these", "not now", NULL};
	struct pollfd interrupt = {.fd = wake_fd, .events = POLLIN};
	struct buf question;
	bool trusts;

	/* All of it is printed past the rows that change. */
	live_hide(console_live(console));
	buf_init(&question, QUESTION_MAX);
	(void)buf_adds(&question, "This project brings ");
	brought_count(items, count, &question);
	(void)buf_adds(&question, ".");
	const size_t choice = console_choose(console, question.data, first, wake_fd);
	if (choice == 0) {
		show_all(trust, items, count);
		trusts = console_choose(console, question.data, second, wake_fd) == 0;
	} else {
		trusts = choice == 1;
	}
	buf_fini(&question);
	live_show(console_live(console));
	*let_in = trusts;
	/* A signal has ended the question, and is no answer. */
	if (!trusts && poll(&interrupt, 1, 0) > 0)
		return true;
	return trust_record(workspace, items, count, !trusts, err);
}

static void tell(const struct brought *const *items, size_t count)
{
	struct buf text;

	buf_init(&text, QUESTION_MAX);
	(void)buf_adds(&text, "this project brings ");
	brought_count(items, count, &text);
	(void)verb_complain(CODE_DONE,
			    "%s; none of it counts before you let it in: glovebox trust add",
			    text.data);
	buf_fini(&text);
}

static void tell_clash(const char *kind, const char *name, const char *problem)
{
	(void)verb_complain(CODE_DONE, "the %s %s of this project is left out: %s", kind,
			    name, problem);
}

/* Tell which things of the workspace are left out for things of the person. */
static void tell_clashes(const struct extension *extension)
{
	const struct skills *skills = extension_skills(extension);
	const struct commands *commands = extension_commands(extension);

	for (size_t i = 0; i < skills->count; i++) {
		if (skills->items[i].shadowed)
			tell_clash("skill", skills->items[i].name, skills->items[i].problem);
	}
	for (size_t i = 0; i < commands->count; i++) {
		if (commands->items[i].shadowed)
			tell_clash("command", commands->items[i].name,
				   commands->items[i].problem);
	}
}

/* Read LIST and TRUST, and have the person decide about what is open. */
static bool read_workspace(struct setup *setup, struct console *console, int wake_fd,
			   bool quiet, struct brought_list *list, struct trust *trust,
			   struct err *err)
{
	size_t count;

	if (!brought_is_any(setup->workspace))
		return true;
	if (!brought_read(setup->policy, BROUGHT_KINDS, NULL, setup_least_level(setup),
			  list, err) ||
	    !trust_read(setup->workspace, trust, err))
		return false;
	const struct brought **items = find_open(list, trust, false, &count);
	bool fine = true, let_in;
	if (count > 0 && console != NULL) {
		fine = ask(setup->workspace, trust, items, count, console, wake_fd,
			   &let_in, err);
		trust_fini(trust);
		fine = fine && trust_read(setup->workspace, trust, err);
	} else if (count > 0 && !quiet) {
		tell(items, count);
	}
	free(items);
	return fine;
}

bool trusting_open(struct setup *setup, struct console *console, int wake_fd, bool quiet,
		   struct err *err)
{
	struct brought_list list = {0};
	struct trust trust = {0};
	struct buf config;
	bool fine;

	/* The demo has nothing of the person. */
	if (setup->extension != NULL || setup->config == NULL)
		return true;
	buf_init(&config, PATH_MAX);
	if (!config_file_beside("config.json", &config))
		buf_clear(&config);
	fine = read_workspace(setup, console, wake_fd, quiet, &list, &trust, err);
	if (fine) {
		char *slash = strrchr(config.data, '/');

		if (slash != NULL)
			buf_truncate(&config, (size_t)(slash - config.data));
		setup->extension = extension_open(&(struct extension_options){
			.workspace = setup->workspace,
			.config = config.size > 0 ? config.data : NULL,
			.home = getenv("HOME"),
			.brought = &list,
			.trust = &trust,
			.notes = setup->notes,
			.shown = setup->shown != NULL            ? setup->shown
				 : setup->plugins.loaded != NULL ? setup->plugins.loaded->shown
								 : NULL,
		});
		if (!quiet)
			tell_clashes(setup->extension);
	}
	buf_fini(&config);
	trust_fini(&trust);
	brought_fini(&list);
	return fine;
}

bool trusting_decide(const struct setup *setup, const struct policy *policy,
		     struct console *console, int wake_fd, bool *let_in, struct err *err)
{
	struct brought_list list = {0};
	struct trust trust = {0};
	const bool read = !brought_is_any(setup->workspace) ||
			  (brought_read(policy, BROUGHT_KINDS, NULL,
					setup_least_level(setup), &list, err) &&
			   trust_read(setup->workspace, &trust, err));
	bool fine = read;
	size_t count = 0;

	*let_in = false;
	agents_workspace_mark(&list);
	if (read) {
		const struct brought **items = find_open(&list, &trust, true, &count);

		if (count > 0)
			fine = ask(setup->workspace, &trust, items, count, console,
				   wake_fd, let_in, err);
		free(items);
	}
	trust_fini(&trust);
	brought_fini(&list);
	return fine;
}

/* Servers of the workspace. */

static bool is_any_server(const struct trust *trust)
{
	for (size_t i = 0; i < trust->count; i++) {
		if (trust->entries[i].kind == BROUGHT_SERVER &&
		    trust->entries[i].hash[0] != '\0')
			return true;
	}
	return false;
}

static void take_server(const struct brought *item, struct value *servers)
{
	auto_value struct value *alone = value_new_object();
	auto_value struct value *entry = NULL;
	struct err err = {0};

	if (value_parse(str_of(item->text), 0, &entry, &err)) {
		value_set(alone, item->name, value_ref(entry));
		if (remotes_check(alone, &err)) {
			if (value_member(servers, item->name) == NULL)
				value_set(servers, item->name, value_copy(entry));
			return;
		}
	}
	(void)verb_complain(CODE_DONE, "a server of %s is left out: %s", item->file,
			    err.text);
}

/* Read the servers with the rights of SETUP's policy, whose tools are not settled yet. */
static bool read_servers(const struct setup *setup, struct brought_list *list,
			 struct err *err)
{
	struct policy *policy = setup->policy;
	const bool given = policy->tools.given;
	bool fine;

	/* The tools of servers are not known, and reading needs none. */
	policy->tools.given = true;
	fine = policy_paths_normal(policy, setup->workspace, err) &&
	       brought_read(policy, BROUGHT_SERVER, NULL, setup_least_level(setup), list,
			    err);
	policy->tools.given = given;
	return fine;
}

bool trusting_servers(const struct setup *setup, struct value *servers, struct err *err)
{
	struct brought_list list = {0};
	struct trust trust = {0};
	bool fine;

	if (!brought_is_any(setup->workspace))
		return true;
	fine = trust_read(setup->workspace, &trust, err);
	if (fine && is_any_server(&trust))
		fine = read_servers(setup, &list, err);
	for (size_t i = 0; fine && i < list.count; i++) {
		if (trust_of(&trust, &list.items[i]) == TRUST_GIVEN)
			take_server(&list.items[i], servers);
	}
	trust_fini(&trust);
	brought_fini(&list);
	return fine;
}
