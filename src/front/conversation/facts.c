/* facts: a table of the parts, and how each is found. */

#include "front/conversation/facts.h"

#include "agent/agent.h"
#include "base/buf.h"
#include "base/str.h"
#include "base/value.h"
#include "front/chat.h"
#include "front/setup.h"
#include "front/talk.h"
#include "policy/config.h"
#include "policy/policy.h"
#include "sandbox/sandbox.h"
#include "session/session.h"
#include "tui/console.h"
#include "tui/live.h"
#include "tui/region/footer.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>

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

void facts_show(const struct chat *chat)
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
