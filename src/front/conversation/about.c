/* about: small reports on a conversation, the facts of its footer, and the list of models. */

#include "front/conversation/about.h"

#include "agent/agent.h"
#include "agent/tools/todo.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "extend/extension.h"
#include "front/chat.h"
#include "front/embedded/embedded.h"
#include "front/login/logins.h"
#include "front/setup.h"
#include "front/talk.h"
#include "model/catalogue.h"
#include "model/http.h"
#include "model/provider.h"
#include "policy/config.h"
#include "policy/policy.h"
#include "sandbox/sandbox.h"
#include "session/session.h"
#include "tui/choose/list.h"
#include "tui/console.h"
#include "tui/live.h"
#include "tui/paint.h"
#include "tui/region/footer.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	TEXT_MAX = 64 << 10,
	CLIPBOARD_MAX = 100 << 10, /* terminals take no more, and some less */
	MODEL_NAME_MAX = 512,
};

static void add_row(struct buf *out, const char *what, uint64_t tokens, uint64_t of)
{
	(void)buf_addf(out, "  %-34s %9" PRIu64, what, tokens);
	if (of > 0)
		(void)buf_addf(out, "  %3u %%", (unsigned)(tokens * 100 / of));
	(void)buf_addc(out, '\n');
}

void about_context(struct chat *chat)
{
	struct buf *out = &chat->paint.out;
	struct agent_tokens tokens;

	agent_count_tokens(talk_agent(chat->talk), &tokens);
	(void)buf_adds(out, "Tokens of the next request, as far as they are known:\n");
	add_row(out, "role, instructions and tools", tokens.fixed, tokens.context);
	add_row(out, "the conversation", tokens.said, tokens.context);
	add_row(out, "together", tokens.fixed + tokens.said, tokens.context);
	if (tokens.context > 0)
		(void)buf_addf(out, "The model takes %" PRIu64 ". /compact makes room.\n",
			       tokens.context);
	else
		(void)buf_adds(out, "It is not known how many the model takes.\n");
}

void about_tasks(struct chat *chat)
{
	const struct value *tasks = agent_tasks(talk_agent(chat->talk));
	struct buf text;

	buf_init(&text, TEXT_MAX);
	if (value_count(tasks) == 0)
		(void)buf_adds(&text, "The agent has noted no tasks.\n");
	else
		todo_print(tasks, &text);
	paint_clean(buf_str(&text), &chat->paint.out);
	buf_fini(&text);
}

void about_jobs(struct chat *chat)
{
	struct buf text;

	buf_init(&text, TEXT_MAX);
	session_jobs_running(talk_session(chat->talk), &text);
	if (text.size == 0)
		(void)buf_adds(&text, "No job runs.\n");
	paint_clean(buf_str(&text), &chat->paint.out);
	buf_fini(&text);
}

/* Append the tools of the server NAME: those that begin with its name. */
static void add_tools(struct chat *chat, const char *name)
{
	const struct tool *const *tools = session_tools(talk_session(chat->talk));
	const size_t size = strlen(name);
	size_t count = 0;

	for (; *tools != NULL; tools++) {
		if (strncmp((*tools)->name, name, size) != 0 || (*tools)->name[size] != '_')
			continue;
		(void)buf_adds(&chat->paint.out, count++ == 0 ? ": " : ", ");
		text_add_name(&chat->paint.out, str_of((*tools)->name + size + 1));
	}
	if (count == 0)
		(void)buf_adds(&chat->paint.out, ": no tools for this agent");
}

/* Add the servers of the workspace that do not count, and why. */
static void add_left_out(struct chat *chat)
{
	const struct value *servers =
		chat->setup->extension != NULL
			? extension_servers_left_out(chat->setup->extension)
			: NULL;
	struct buf *out = &chat->paint.out;

	for (void *at = servers != NULL ? value_first(servers) : NULL; at != NULL;
	     at = value_next(servers, at)) {
		(void)buf_adds(out, "  ");
		text_add_name(out, str_of(value_key(at)));
		(void)buf_adds(out, ", of .mcp.json, is left out: ");
		text_add_name(out, value_str(value_at(at)));
		(void)buf_addc(out, '\n');
	}
}

void about_servers(struct chat *chat)
{
	const struct front_servers *servers = &chat->setup->servers;
	const struct value *problems =
		servers->remotes != NULL ? remotes_problems(servers->remotes) : NULL;
	struct buf *out = &chat->paint.out;

	if (value_count(servers->settings) == 0)
		(void)buf_adds(out, "The configuration has no MCP servers (mcpServers).\n");
	for (void *at = value_first(servers->settings); at != NULL;
	     at = value_next(servers->settings, at)) {
		(void)buf_adds(out, "  ");
		text_add_name(out, str_of(value_key(at)));
		add_tools(chat, value_key(at));
		(void)buf_addc(out, '\n');
	}
	for (size_t i = 0; i < value_count(problems); i++) {
		(void)buf_adds(out, "  ");
		text_add_name(out, value_str(value_item(problems, i)));
		(void)buf_addc(out, '\n');
	}
	add_left_out(chat);
}

void about_copy(struct chat *chat)
{
	struct buf text, sequence;

	buf_init(&text, CLIPBOARD_MAX);
	buf_init(&sequence, 2 * CLIPBOARD_MAX);
	agent_last_words(talk_agent(chat->talk), &text);
	if (text.overflowed) {
		(void)buf_adds(&chat->paint.out,
			       "The last answer is too long for a clipboard; /export writes "
			       "it.\n");
	} else if (text.size == 0) {
		(void)buf_adds(&chat->paint.out, "There is no answer to copy yet.\n");
	} else if (!chat->moves_cursor) {
		(void)buf_adds(&chat->paint.out, "This terminal has no clipboard.\n");
	} else {
		(void)buf_adds(&sequence, "\x1b]52;c;");
		(void)buf_base64_add(buf_str(&text), &sequence);
		(void)buf_adds(&sequence, "\x07");
		(void)fd_write_all(STDOUT_FILENO, sequence.data, sequence.size, NULL);
		(void)buf_addf(&chat->paint.out,
			       "The last answer (%zu bytes) is in the clipboard, where this "
			       "terminal takes one (OSC 52).\n",
			       text.size);
	}
	buf_fini(&sequence);
	buf_fini(&text);
}

/* The models that can be asked from here. */

struct models {
	struct list list;
	struct catalogue *catalogue;
	const struct provider *provider; /* whose models are added; NULL: named ones */
	char **names;
	size_t count;
};

static bool is_listed(const struct models *models, const char *name)
{
	for (size_t i = 0; i < models->count; i++) {
		if (strcmp(models->names[i], name) == 0)
			return true;
	}
	return false;
}

static void add_model(struct models *models, const char *name,
		      const struct catalogue_model *model)
{
	struct buf detail;

	if (is_listed(models, name))
		return;
	buf_init(&detail, MODEL_NAME_MAX);
	if (model->context > 0)
		(void)buf_addf(&detail, "%" PRIu64 "k context", model->context / 1000);
	if (model->prices.input >= 0 && model->prices.output >= 0)
		(void)buf_addf(&detail, "%s$%.5g in, $%.5g out for a million",
			       detail.size > 0 ? ", " : "", model->prices.input,
			       model->prices.output);
	list_add(&models->list, str_of(name), buf_str(&detail));
	models->names =
		memory_grow(models->names, models->count + 1, sizeof(*models->names));
	models->names[models->count++] = memory_copy(name);
	buf_fini(&detail);
}

/* A model that the configuration or an agent names. */
static void add_named(void *context, const char *name)
{
	struct models *models = context;
	const struct catalogue_model model = catalogue_find(models->catalogue, name, true);

	add_model(models, name, &model);
}

static void add_known(void *context, const char *name)
{
	struct models *models = context;
	const struct catalogue_model model = catalogue_find(models->catalogue, name, true);
	struct buf full;

	if (model.provider == NULL || strcmp(model.provider, models->provider->name) != 0)
		return;
	buf_init(&full, MODEL_NAME_MAX);
	if (buf_addf(&full, "%s:%s", models->provider->name, name))
		add_model(models, full.data, &model);
	buf_fini(&full);
}

static bool has_key(const struct provider *provider)
{
	const char *key = provider->key_name != NULL ? getenv(provider->key_name) : NULL;

	return !http_is_here(provider->base_url) &&
	       ((key != NULL && key[0] != '\0') || logins_have(provider->base_url));
}

void about_choose_model(struct chat *chat,
			void (*change)(struct chat *chat, const char *name))
{
	struct models models = {0};
	struct err err = {0};
	size_t at = SIZE_MAX;

	list_init(&models.list, "Models");
	if (!catalogue_open(embedded_text(EMBEDDED_CATALOGUE), chat->setup->models,
			    &models.catalogue, &err))
		(void)buf_addf(&chat->paint.out, "%s\n", err.text);
	setup_each_model(chat->setup, add_named, &models);
	for (size_t i = 0; models.catalogue != NULL && providers[i] != NULL; i++) {
		models.provider = providers[i];
		if (has_key(providers[i]))
			catalogue_each(models.catalogue, add_known, &models);
	}
	if (models.count > 0)
		at = console_pick(chat->console, &models.list,
				  talk_interrupt_fd(chat->talk));
	if (at < models.count)
		change(chat, models.names[at]);
	for (size_t i = 0; i < models.count; i++)
		free(models.names[i]);
	free(models.names);
	list_fini(&models.list);
	catalogue_close(models.catalogue);
}

/* The footer: a table of its parts, and how each is found. */

enum {
	FACT_MAX = 1 << 10,
	/* Of the context: then it is time to think of /compact, and then it is late. */
	CONTEXT_WARNS = 70,
	CONTEXT_IS_LATE = 85,
	THOUSAND = 1000,
	MILLION = 1000 * 1000,
};

/* Append the fact to OUT; nothing when it is not known. Returns its style. */
typedef enum paint_style fact_tell(const struct chat *chat, struct buf *out);

static enum paint_style tell_agent(const struct chat *chat, struct buf *out)
{
	(void)buf_adds(out, chat->setup->agent);
	return PAINT_DIM;
}

static enum paint_style tell_mode(const struct chat *chat, struct buf *out)
{
	(void)buf_adds(out, policy_modes[chat->setup->mode].name);
	return PAINT_DIM;
}

static enum paint_style tell_model(const struct chat *chat, struct buf *out)
{
	(void)buf_adds(out, talk_model_name(chat->talk));
	return PAINT_DIM;
}

/* "34 % of 128k" */
static enum paint_style tell_context(const struct chat *chat, struct buf *out)
{
	struct agent_tokens tokens;

	agent_count_tokens(talk_agent(chat->talk), &tokens);
	if (tokens.context == 0)
		return PAINT_DIM;
	const uint64_t used = (tokens.fixed + tokens.said) * 100 / tokens.context;

	(void)buf_addf(out, "%" PRIu64 " %% of ", used);
	if (tokens.context >= MILLION)
		(void)buf_addf(out, "%.3gM", (double)tokens.context / MILLION);
	else if (tokens.context >= THOUSAND)
		(void)buf_addf(out, "%" PRIu64 "k", tokens.context / THOUSAND);
	else
		(void)buf_addf(out, "%" PRIu64, tokens.context);
	return used >= CONTEXT_IS_LATE ? PAINT_ERROR
	       : used >= CONTEXT_WARNS ? PAINT_WARNING
				       : PAINT_DIM;
}

static enum paint_style tell_money(const struct chat *chat, struct buf *out)
{
	const double money = talk_money(chat->talk);

	/* Less than a cent would be shown as nothing. */
	if (money >= 0.005)
		(void)buf_addf(out, "$%.2f", money);
	return PAINT_DIM;
}

static enum paint_style tell_level(const struct chat *chat, struct buf *out)
{
	(void)buf_addf(out, "L%d", (int)session_strength(talk_session(chat->talk)).level);
	return PAINT_DIM;
}

/* The files that the conversation has changed, by its last checkpoint. */
static enum paint_style tell_changes(const struct chat *chat, struct buf *out)
{
	const char *const *changed = session_changed(talk_session(chat->talk));
	size_t count = 0;

	while (changed[count] != NULL)
		count++;
	if (count > 0)
		(void)buf_addf(out, "%zu changed", count);
	return PAINT_DIM;
}

/* Those of CONFIG_FOOTER_PARTS. */
static const struct {
	const char *name;
	fact_tell *tell;
} facts[] = {
	{"agent", tell_agent},     {"mode", tell_mode},   {"model", tell_model},
	{"context", tell_context}, {"money", tell_money}, {"level", tell_level},
	{"changes", tell_changes},
};

static void add(const struct chat *chat, struct str name, struct footer *footer)
{
	struct buf text;

	buf_init(&text, FACT_MAX);
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		if (str_is(name, facts[i].name)) {
			const enum paint_style style = facts[i].tell(chat, &text);

			footer_add(footer, style, buf_str(&text));
		}
	}
	buf_fini(&text);
}

void about_footer(const struct chat *chat)
{
	const struct value *wanted = chat->appearance.footer;
	struct str rest = STR(CONFIG_FOOTER_PARTS), name;
	struct footer footer = {0};

	if (wanted == NULL) {
		while (str_next_word(&rest, &name))
			add(chat, name, &footer);
	}
	for (size_t i = 0; i < value_count(wanted); i++)
		add(chat, value_str(value_item(wanted, i)), &footer);
	live_set_footer(console_live(chat->console), &footer);
}
