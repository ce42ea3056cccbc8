/*
 * chat: the commands of a conversation, and the change to another agent, model or style in it.
 */

#include "front/chat.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/shell.h"
#include "base/text/text.h"
#include "extend/extension.h"
#include "extend/notes.h"
#include "front/conversation/about.h"
#include "front/conversation/mentions.h"
#include "front/conversation/past.h"
#include "front/conversation/stopping.h"
#include "front/extend/invoke.h"
#include "front/extend/trusting.h"
#include "front/output/transcript.h"
#include "front/review/decided.h"
#include "front/review/layered.h"
#include "front/setup.h"
#include "front/talk.h"
#include "front/verb.h"
#include "session/session.h"
#include "tools/patches/patch.h"
#include "tui/console.h"
#include "tui/keys.h"
#include "tui/lent/job.h"
#include "tui/line.h"
#include "tui/live.h"
#include "tui/paint.h"
#include "undo/plan.h"
#include "view/review.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Changes to another agent, or another model, in the same conversation. */

enum { SENTENCE_MAX = 1024 };

/* Call NAME with each agent or model that exists or that the configuration names. */
static void chat_each_agent(const struct chat *chat,
			    void (*name)(void *context, const char *name), void *context)
{
	const struct value *agents = chat->setup->agents;

	for (void *at = value_first(agents); at != NULL; at = value_next(agents, at))
		name(context, value_key(at));
}

/* Tell the record and the person of a change and, when TO_MODEL, the model as well. */
static void tell(struct chat *chat, bool to_model, const char *format, const char *what)
{
	struct buf sentence;
	struct err err = {0};

	buf_init(&sentence, SENTENCE_MAX);
	for (const char *at = format; *at != '\0'; at++) {
		if (*at == '%')
			text_add_name(&sentence, str_of(what));
		else
			(void)buf_addc(&sentence, *at);
	}
	if (!agent_notice(talk_agent(chat->talk), sentence.data, to_model, &err)) {
		chat->code = verb_complain(CODE_FAILED, "%s", err.text);
		chat->over = true;
	}
	buf_fini(&sentence);
}

static bool model_of(const struct chat *chat, const struct setup *setup,
		     struct model_options *model)
{
	struct err err = {0};
	const char *name =
		chat->model != NULL ? chat->model : options_text(chat->options, "model");

	if (talk_model(name, &setup->role, model, &err))
		return true;
	(void)verb_complain(CODE_FAILED, "%s", err.text);
	return false;
}

/* Go on with the model NAME (/model NAME). */
static void chat_change_model(struct chat *chat, const char *name)
{
	char *before = chat->model;
	struct model_options model;

	chat->model = memory_copy(name);
	if (model_of(chat, chat->setup, &model) &&
	    talk_change(chat->talk, NULL, &model) == CODE_DONE) {
		free(before);
		tell(chat, false, "The model is now %; the conversation goes on.",
		     talk_model_name(chat->talk));
		return;
	}
	free(chat->model);
	chat->model = before;
}

/* The agent NAME has worked in this conversation: it may have made steps. */
static void note_earlier(struct chat *chat, const char *name)
{
	if (chat->earlier == NULL)
		chat->earlier = value_new_array();
	if (!value_has_text(chat->earlier, name))
		value_append(chat->earlier, value_new_text(name));
}

/* Go on as the agent NAME (/agent NAME), with the rights of that agent. */
static void chat_change_agent(struct chat *chat, const char *name)
{
	struct setup *setup = memory_alloc(sizeof(*setup));
	struct model_options model = {0}, now = {0};
	auto_free char *agent = memory_copy(name); /* it may be that of the setup that goes */
	const enum policy_mode mode = chat->setup->mode;
	const struct setup_flags flags = {.agent = agent,
					  .mode = &mode,
					  .serves = true,
					  .answers = true};
	bool same_model;

	if ((chat->setup->review != NULL &&
	     verb_complain(CODE_USAGE,
			   "--review: the layer belongs to the agent %s; end the "
			   "conversation, and go on with --agent %s --review",
			   chat->setup->agent, name) != CODE_DONE) ||
	    setup_open(setup, chat->options, &flags) != CODE_DONE ||
	    !model_of(chat, setup, &model) || !model_of(chat, chat->setup, &now)) {
		setup_fini(setup);
		free(setup);
		return;
	}
	setup->publishes = true;
	mentions_stop(chat->mentions);
	same_model = model.temperature == now.temperature &&
		     str_equal(str_of(model.name), str_of(now.name));
	if (talk_change(chat->talk, setup, same_model ? NULL : &model) != CODE_DONE) {
		setup_fini(setup);
		free(setup);
		return;
	}
	note_earlier(chat, chat->setup->agent);
	setup_fini(chat->setup);
	free(chat->setup);
	chat->setup = setup;
	tell(chat, true,
	     "The person goes on with the agent %: from here on its tools and its rights hold, in "
	     "a new cell; what ran in the old one has ended.",
	     agent);
}

/*
 * Go on with hands that write into the layer ID; NULL: into a new one. The layer of before is
 * given back, and *KEPT says whether it holds anything. Returns an exit code; the complaint has
 * been printed, and nothing has changed, unless the code is CODE_DONE.
 */
static int chat_change_layer(struct chat *chat, const char *id, bool *kept)
{
	struct setup *setup = memory_alloc(sizeof(*setup));
	const enum policy_mode mode = chat->setup->mode;
	const struct setup_flags flags = {
		.agent = chat->setup->agent,
		.mode = &mode,
		.serves = true,
		.answers = true,
		.hurries = true,
	};
	struct err err = {0};
	int code = setup_open(setup, chat->options, &flags);

	setup->publishes = true;
	if (code == CODE_DONE && !layered_go_on(setup, id, true, "glovebox chat", &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	mentions_stop(chat->mentions);
	if (code == CODE_DONE)
		code = talk_change(chat->talk, setup, NULL);
	struct setup *old = code == CODE_DONE ? chat->setup : setup;
	*kept = layered_end(old, false, NULL);
	setup_fini(old);
	free(old);
	if (code == CODE_DONE)
		chat->setup = setup;
	return code;
}

/*
 * Styles: how the agent answers, in words of the person. The text of styles/NAME.md, beside the
 * configuration, joins the prompt (extend/extension.h, agent_set_style).
 */

enum { STYLE_COLUMN = 16, STYLE_CLEAN_MAX = 1024 };

static const char no_style[] = "none";

/* The styles of the person; NULL: nothing of theirs is read. */
static const struct commands *styles_of(const struct chat *chat)
{
	return chat->setup->extension != NULL ? extension_styles(chat->setup->extension)
					      : NULL;
}

static void style_row(struct buf *out, bool chosen, const char *name, const char *said)
{
	struct buf clean;

	buf_init(&clean, STYLE_CLEAN_MAX);
	text_add_name(&clean, str_of(name));
	(void)buf_addf(out, "%c %-*s ", chosen ? '*' : ' ', STYLE_COLUMN, clean.data);
	text_add_name(out, str_of(said));
	(void)buf_addc(out, '\n');
	buf_fini(&clean);
}

static void style_list(const struct chat *chat, struct buf *out)
{
	const struct commands *styles = styles_of(chat);
	const char *chosen = agent_style(talk_agent(chat->talk));

	for (size_t i = 0; styles != NULL && i < styles->count; i++) {
		const struct command *style = &styles->items[i];
		const bool is_chosen = chosen != NULL && strcmp(chosen, style->name) == 0;

		if (style->problem != NULL)
			style_row(out, false, style->name, style->problem);
		else
			style_row(out, is_chosen, style->name, style->description);
	}
	style_row(out, chosen == NULL, no_style, "no style of yours");
	(void)buf_adds(out, "/style NAME takes another one; a style is a file styles/NAME.md "
			    "beside the configuration.\n");
}

/* Take STYLE, or none (NULL). */
static void style_take(struct chat *chat, const struct command *style)
{
	struct err err = {0};

	if (agent_set_style(talk_agent(chat->talk), style != NULL ? style->name : "",
			    style != NULL ? style->body : "", &err)) {
		(void)buf_addf(&chat->paint.out, "The style is now %s.\n",
			       style != NULL ? style->name : no_style);
		return;
	}
	chat->code = verb_complain(CODE_FAILED, "%s", err.text);
	chat->over = true;
}

/* List the styles; NAME not "": take this one, or with "none" no style. */
static void style_choose(struct chat *chat, const char *name)
{
	const struct commands *styles = styles_of(chat);
	const struct command *style = styles != NULL ? commands_find(styles, name) : NULL;

	if (style != NULL || strcmp(name, no_style) == 0) {
		style_take(chat, style);
		return;
	}
	if (name[0] != '\0')
		(void)buf_addf(&chat->paint.out, "There is no style \"%.40s\".\n", name);
	style_list(chat, &chat->paint.out);
}

/* Call NAME with each style that can be chosen, and with "none". */
static void style_each(const struct chat *chat,
		       void (*name)(void *context, const char *name), void *context)
{
	const struct commands *styles = styles_of(chat);

	for (size_t i = 0; styles != NULL && i < styles->count; i++) {
		if (styles->items[i].problem == NULL)
			name(context, styles->items[i].name);
	}
	name(context, no_style);
}

/* Other modes in the same conversation. */

struct setup *chat_remake(void *context, const char *agent, enum policy_mode mode)
{
	struct chat *chat = context;
	struct setup *setup;
	const struct setup_flags flags = {
		.agent = agent != NULL ? agent : chat->setup->agent,
		.mode = &mode,
		.serves = true,
		.answers = true,
		.hurries = true,
	};
	struct err err = {0};
	int code;

	if (chat->setup->review != NULL) {
		(void)verb_complain(CODE_USAGE,
				    "--review: the layer belongs to the agent %s, and what is in "
				    "it would not be seen by another one, or in mode plan; end "
				    "the conversation, and go on in another one",
				    chat->setup->agent);
		return NULL;
	}
	mentions_stop(chat->mentions);
	setup = memory_alloc(sizeof(*setup));
	code = setup_open(setup, chat->options, &flags);
	setup->publishes = true;
	/* The mode that was left had no layer, because nothing was written. */
	if (code == CODE_DONE && setup->policy->review &&
	    !layered_go_on(setup, NULL, true, "glovebox chat", &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	if (code == CODE_DONE)
		return setup;
	setup_fini(setup);
	free(setup);
	return NULL;
}

void chat_taken(void *context, struct setup *setup, bool used)
{
	struct chat *chat = context;
	struct setup *over = used ? chat->setup : setup;

	if (used && strcmp(setup->agent, over->agent) != 0)
		note_earlier(chat, over->agent);
	(void)layered_end(over, false, NULL);
	setup_fini(over);
	free(over);
	if (used)
		chat->setup = setup;
}

void chat_pauses(void *context)
{
	struct chat *chat = context;
	const int wanted = atomic_exchange(&chat->wanted_mode, CHAT_NO_MODE);

	if (wanted != CHAT_NO_MODE && wanted != (int)chat->setup->mode) {
		/* A refusal is printed past the rows that change. */
		live_hide(console_live(chat->console));
		(void)talk_set_mode(chat->talk, (enum policy_mode)wanted);
		live_show(console_live(chat->console));
	}
	atomic_store(&chat->mode, (int)chat->setup->mode);
	about_footer(chat);
}

/*
 * Undo the step NUMBER as the agent NAME. True: this agent made the step, and RESULT has
 * the outcome.
 */
static bool undo_as(struct chat *chat, const char *name, uint32_t number,
		    struct tool_result *result)
{
	struct session_options options = {.cancel_fd = talk_interrupt_fd(chat->talk)};
	const struct undo_aim aim = {.step = number};
	struct session *session = NULL;
	const enum policy_mode mode = MODE_AUTO;
	const struct setup_flags flags = {.agent = name,
					  .mode = &mode,
					  .serves = true,
					  .answers = true};
	struct setup setup;
	bool made = setup_open(&setup, chat->options, &flags) == CODE_DONE;

	setup.undoes = &aim;
	made = made && setup_session(&setup, &options, &session) == CODE_DONE &&
	       session_made_step(session, number);
	if (made)
		session_undo(session, number, result);
	session_close(session);
	session_note_undone(talk_session(chat->talk));
	setup_fini(&setup);
	return made;
}

/*
 * Undo the step NUMBER (0: the newest) with the rights of the agent that made the step,
 * which may be an agent from earlier in this conversation. A step that no agent of this
 * conversation made is undone with the rights of the present agent. The caller has
 * initialised RESULT.
 */
static void chat_undo(struct chat *chat, uint32_t number, struct tool_result *result)
{
	struct session *session = talk_session(chat->talk);
	bool done = false;

	/* A cell of mode plan cannot write, and its agent made the step in another one. */
	if (chat->setup->mode == MODE_PLAN)
		done = undo_as(chat, chat->setup->agent, number, result);
	if (!done && !session_made_step(session, number)) {
		for (size_t i = value_count(chat->earlier); !done && i-- > 0;)
			done = undo_as(chat, value_text(value_item(chat->earlier, i)),
				       number, result);
	}
	if (!done)
		session_undo(session, number, result);
}

/* The commands of a conversation, in one table. */

enum {
	COMMAND_COLUMN = 20,
	TOOL_COLUMN = 18,
	LISTED_COLUMNS = 500,
	/* The person reads a whole change here; a longer one is for git. */
	DIFF_HEAD = 2000,
	DIFF_TAIL = 500,
	COMMAND_MAX = 4096, /* of the complaint about an unknown command */
	REVIEW_TEXT_MAX = 64 << 20,
};

struct chat_command {
	const char *name, *argument, *summary;
	void (*run)(struct chat *chat, const char *argument); /* "" when there is none */
	const char *key; /* the action of keys that does the same; or NULL */
};

static void run_help(struct chat *chat, const char *argument);

static void add_line(struct paint *paint, struct str text)
{
	paint_one_line(paint, PAINT_PLAIN, text, LISTED_COLUMNS);
	(void)buf_addc(&paint->out, '\n');
}

/* Print the composed text unchanged: its lines are not folded. */
static void flush(struct chat *chat)
{
	struct buf *out = &chat->paint.out;

	(void)live_print(console_live(chat->console), buf_str(out));
	buf_clear(out);
}

/* Print the answer of a command, folded to the lines of the terminal. */
static void show(struct chat *chat)
{
	struct buf *out = &chat->paint.out;
	struct buf lines;

	buf_init(&lines, 4 * out->max);
	paint_fold_lines(buf_str(out), chat->paint.columns, &lines);
	(void)buf_end_line(&lines);
	(void)live_print(console_live(chat->console), buf_str(&lines));
	buf_clear(out);
	buf_fini(&lines);
}

static void add_name(void *context, const char *name)
{
	struct chat *chat = context;

	(void)buf_adds(&chat->paint.out, "  ");
	add_line(&chat->paint, str_of(name));
}

static void run_model(struct chat *chat, const char *argument)
{
	if (argument[0] != '\0') {
		chat_change_model(chat, argument);
		return;
	}
	(void)buf_adds(&chat->paint.out, "The model is ");
	add_line(&chat->paint, str_of(talk_model_name(chat->talk)));
	(void)buf_adds(&chat->paint.out,
		       "/model NAME goes on with another; glovebox models lists what can be "
		       "asked from here.\n");
	show(chat);
	about_choose_model(chat, chat_change_model);
}

static void run_agent(struct chat *chat, const char *argument)
{
	if (argument[0] != '\0') {
		chat_change_agent(chat, argument);
		return;
	}
	(void)buf_addf(&chat->paint.out,
		       "The agent is %s. /agent NAME goes on as another, with the rights of "
		       "that one:\n",
		       chat->setup->agent);
	chat_each_agent(chat, add_name, chat);
}

/* The mode behind MODE, in the order in which a key goes round. */
static enum policy_mode mode_behind(enum policy_mode mode)
{
	return mode == MODE_PLAN ? MODE_AUTO : (enum policy_mode)(mode + 1);
}

/* The argument of /mode that goes round, for a key. */
#define NEXT_MODE "next"

static void run_mode(struct chat *chat, const char *argument)
{
	enum policy_mode mode = chat->setup->mode;

	if (strcmp(argument, NEXT_MODE) == 0) {
		(void)talk_set_mode(chat->talk, mode_behind(mode));
		return;
	}
	if (policy_mode_parse(argument, &mode)) {
		(void)talk_set_mode(chat->talk, mode);
		return;
	}
	if (argument[0] != '\0')
		(void)buf_addf(&chat->paint.out, "There is no mode \"%.40s\".\n", argument);
	for (size_t i = 0; i < MODES; i++)
		(void)buf_addf(&chat->paint.out, "%c %-6s%s\n",
			       i == chat->setup->mode ? '*' : ' ', policy_modes[i].name,
			       policy_modes[i].description);
}

static void run_plan(struct chat *chat, const char *argument)
{
	if (talk_set_mode(chat->talk, MODE_PLAN) == CODE_DONE && argument[0] != '\0')
		chat->next = memory_copy(argument);
}

static void run_tools(struct chat *chat, const char *argument)
{
	const struct tool *const *tools = session_tools(talk_session(chat->talk));
	struct paint *paint = &chat->paint;

	(void)argument;
	for (; *tools != NULL; tools++) {
		struct str description = str_of((*tools)->description);
		size_t end = str_find(description, STR(". "), 0);

		(void)buf_addf(&paint->out, "  %-*s", TOOL_COLUMN, (*tools)->name);
		if (end != SIZE_MAX)
			description = str_part(description, 0, end + 1);
		paint_one_line(paint, PAINT_DIM, description,
			       paint->columns > TOOL_COLUMN + 8
				       ? paint->columns - TOOL_COLUMN - 3
				       : LISTED_COLUMNS);
		(void)buf_addc(&paint->out, '\n');
	}
}

/* Tell the model of the undo, so that it does not go on from files that are gone. */
static void tell_of_undo(struct chat *chat, const struct tool_result *result)
{
	struct err err = {0};

	if (!talk_tell_undone(chat->talk, result, &err))
		chat->code = verb_complain(CODE_FAILED, "%s", err.text);
	const int64_t undo = value_integer(value_member(result->details, "undo"));
	if (undo > 0)
		(void)buf_addf(&chat->paint.out, "To take that back: /undo %" PRId64 "\n",
			       undo);
}

/* `/undo --mark NAME`: call the present state NAME. */
static void mark_point(struct chat *chat, const char *name)
{
	const struct setup *setup = talk_setup(chat->talk);
	struct err err = {0};
	uint32_t number;

	if (undo_aim_mark(setup->undo_folder, setup->workspace, name, &number, &err))
		(void)buf_addf(&chat->paint.out,
			       "Marked: %s. To come back here: /undo --to %s\n", name,
			       name);
	else
		(void)buf_addf(&chat->paint.out, "%s\n", err.text);
}

/* `/undo --to POINT`, with the rights of the present agent. */
static void undo_to(struct chat *chat, const char *point, struct tool_result *result)
{
	const struct setup *setup = talk_setup(chat->talk);
	struct undo_aim aim;
	struct err err = {0};

	if (undo_aim_to(&aim, setup->undo_folder, setup->workspace, point, &err))
		session_undo_aim(talk_session(chat->talk), &aim, result);
	else
		(void)tool_fail(result, "%s", err.text);
}

static void run_undo(struct chat *chat, const char *argument)
{
	static const char to[] = "--to ", mark[] = "--mark ";
	const bool is_to = strncmp(argument, to, strlen(to)) == 0;
	struct tool_result result;
	uint64_t number = 0;
	struct err err = {0};

	if (strncmp(argument, mark, strlen(mark)) == 0) {
		mark_point(chat, argument + strlen(mark));
		return;
	}
	if (!is_to && argument[0] != '\0' &&
	    (!text_parse_count(argument, UINT32_MAX, &number, &err) || number == 0)) {
		(void)buf_addf(&chat->paint.out,
			       "\"%.100s\" is no step; glovebox undo --list names them.\n",
			       argument);
		return;
	}
	tool_result_init(&result);
	if (is_to)
		undo_to(chat, argument + strlen(to), &result);
	else
		chat_undo(chat, (uint32_t)number, &result);
	if (result.status == RESULT_DONE) {
		tell_of_undo(chat, &result);
	} else {
		(void)buf_addstr(&chat->paint.out, str_trim(buf_str(&result.text)));
		(void)buf_addc(&chat->paint.out, '\n');
	}
	tool_result_fini(&result);
}

static void run_diff(struct chat *chat, const char *argument)
{
	const struct paint_excerpt patch = {
		.head = DIFF_HEAD,
		.tail = DIFF_TAIL,
		.is_diff = true,
	};
	const struct paint_excerpt sentence = {.head = DIFF_HEAD};
	struct buf text;

	(void)argument;
	buf_init(&text, PATCH_BYTES_MAX);
	const bool made = talk_diff(chat->talk, &text);
	paint_lines(&chat->paint, buf_str(&text), made ? &patch : &sentence);
	/* Print without folding: lines of files must stay whole. */
	flush(chat);
	buf_fini(&text);
}

/* `/review`, the layer of this conversation. */

enum { REVIEW_WORDS_MAX = 64 };

struct review_words {
	char *text; /* owned; the words lie in it */
	const char *words[REVIEW_WORDS_MAX + 1];
	size_t count;
};

/* Is VALUE of TOKEN the word that the person means, and not one of the shell's making? */
static bool is_plain_word(const struct shell_token *token)
{
	return token->kind == SHELL_WORD &&
	       (token->reason == SHELL_LITERAL || token->reason == SHELL_ANSI ||
		token->reason == SHELL_PATTERN || token->reason == SHELL_BRACES ||
		token->reason == SHELL_TILDE);
}

/*
 * Split ARGUMENT into words, as a shell reads their quotes. NULL, or a sentence that says why
 * it is refused: no word is ever left out, for `land` without words lands everything.
 */
static const char *split_words(const char *argument, struct review_words *split)
{
	const struct str text = str_of(argument);
	struct shell_lexer lexer;
	struct shell_token token;

	*split = (struct review_words){.text = memory_alloc(text.size + 1)};
	shell_lexer_init(&lexer, text, split->text);
	for (;;) {
		const size_t before = lexer.at;

		shell_lexer_next(&lexer, &token);
		const size_t end = token.kind == SHELL_END ? text.size : lexer.at;
		const size_t begin = end - (token.kind == SHELL_END ? 0 : token.text.size);
		/* The lexer has passed over a comment. */
		if (begin > before && memchr(argument + before, '#', begin - before) != NULL)
			return "/review: put a name that begins with # in quotes.\n";
		if (token.kind == SHELL_END)
			return NULL;
		if (token.kind == SHELL_NEWLINE)
			continue;
		if (!is_plain_word(&token))
			return "/review: put such a name in '…', and close the quote.\n";
		if (split->count == REVIEW_WORDS_MAX)
			return "/review takes fewer words.\n";
		split->words[split->count++] = token.value.data;
	}
}

/* The first of WORDS that is an option, and not among ALLOWED; NULL: there is none. */
static const char *strange_option(const char *const *words, const char *allowed)
{
	for (size_t i = 0; words[i] != NULL; i++) {
		if (words[i][0] == '-' && !str_among(allowed, str_of(words[i])))
			return words[i];
	}
	return NULL;
}

/* Run VERB on the layer ID and print what it says. Returns its exit code. */
static int decide(struct chat *chat, const char *verb, const char *id,
		  const char *const *words, bool is_diff)
{
	static const char used[] = "Somebody works in review ";
	const struct paint_excerpt excerpt = {
		.head = DIFF_HEAD,
		.tail = DIFF_TAIL,
		.is_diff = is_diff,
	};
	struct err err = {0};
	struct buf text;

	buf_init(&text, REVIEW_TEXT_MAX);
	const int code = decided_run(chat->setup, chat->options, verb, id, words,
				     talk_interrupt_fd(chat->talk), &text, &err);
	/* It was for the verb, and the conversation goes on. */
	talk_calm(chat->talk);
	struct str shown = buf_str(&text);
	/* It is this conversation that works in it. */
	if (str_starts(shown, STR(used)))
		shown = str_part(shown, str_find(shown, STR("\n"), 0) + 1, shown.size);
	if (code < 0)
		(void)buf_addf(&chat->paint.out, "%s\n", err.text);
	else if (str_trim(shown).size == 0 && code > CODE_SIGNAL)
		(void)buf_adds(&chat->paint.out,
			       "Stopped. /review shows what is in the layer and not in the "
			       "folder.\n");
	else if (str_trim(shown).size == 0)
		(void)buf_adds(&chat->paint.out, "There is nothing to show.\n");
	else
		paint_lines(&chat->paint, shown, &excerpt);
	/* Print without folding: lines of files must stay whole. */
	flush(chat);
	buf_fini(&text);
	return code;
}

static void show_layer(struct chat *chat, const struct review_words *split)
{
	const char *strange = strange_option(split->words, "--diff --stat");
	bool is_diff = false;

	for (size_t i = 0; i < split->count; i++)
		is_diff = is_diff || strcmp(split->words[i], "--diff") == 0;
	if (strange != NULL)
		(void)buf_addf(&chat->paint.out,
			       "/review takes --diff, --stat and paths, or land or drop, and "
			       "not %.100s.\n",
			       strange);
	else
		(void)decide(chat, "review", chat->setup->review->meta.id, split->words,
			     is_diff);
}

/* Was all of the layer ID landed? */
static bool is_landed(const struct chat *chat, const char *id)
{
	struct review *review = NULL;
	struct err err = {0};
	struct buf folder;

	buf_init(&folder, PATH_MAX);
	const bool landed =
		review_place(getenv("XDG_STATE_HOME"), getenv("HOME"), &folder) &&
		review_open(folder.data, chat->setup->workspace, id, &review, &err) &&
		review->meta.state == REVIEW_LANDED;
	review_close(review);
	buf_fini(&folder);
	return landed;
}

/* The outcomes of a decision of the person on the layer. */
enum decision {
	LANDED,
	LANDED_PART,
	LANDED_SOME, /* some of what the person wanted there may not be landed */
	LAND_FAILED,
	DROPPED,
	DROP_FAILED,
};

static enum decision decision_of(bool lands, bool landed, int code)
{
	if (!lands)
		return code == CODE_DONE ? DROPPED : DROP_FAILED;
	if (landed)
		return LANDED;
	return code == CODE_DONE     ? LANDED_PART
	       : code == CODE_DENIED ? LANDED_SOME
				     : LAND_FAILED;
}

/* Tell of DECISION on the layer ID, which the conversation works in AGAIN or not. */
static void tell_decision(struct chat *chat, enum decision decision, const char *id,
			  bool again)
{
	static const char *const outcomes[] = {
		[LANDED] = "The person has landed the layer: what you have written is in the "
			   "folder now.",
		[LANDED_PART] = "The person has landed a part of the layer (review %).",
		[LANDED_SOME] =
			"The person has landed a part of the layer (review %); some of "
			"it may not be landed.",
		[LAND_FAILED] =
			"The person wanted to land the layer (review %), and it was not "
			"landed as a whole.",
		[DROPPED] = "The person has thrown away the layer: the files are as they were "
			    "before you wrote.",
		[DROP_FAILED] = "The person wanted to throw away the layer (review %), which "
				"failed.",
	};
	static const char lost[] =
		" You cannot go on in it, and no longer see what you wrote there. You go on in a "
		"new, empty layer, in a new cell. The person finds the other one with: glovebox "
		"review %";
	char sentence[SENTENCE_MAX];
	const bool done = decision == LANDED || decision == DROPPED;

	(void)snprintf(sentence, sizeof(sentence), "%s%s", outcomes[decision],
		       done    ? " You go on in a new layer, in a new cell (review %)."
		       : again ? " You go on in it, in a new cell."
			       : lost);
	tell(chat, true, sentence, done ? chat->setup->review->meta.id : id);
}

/*
 * Land or drop the layer. It must not be in use then: meanwhile the conversation has the hands
 * of a new layer, which is empty and goes. After a landing of all it goes on with another new
 * one, whose files below are the landed ones from its beginning; else with the same one.
 */
static void decide_layer(struct chat *chat, const char *verb, const char *const *words)
{
	const bool lands = strcmp(verb, "land") == 0;
	char id[REVIEW_ID];
	bool kept, none, again = true;
	int code;

	if (job_writes(talk_session(chat->talk), NULL)) {
		(void)buf_adds(&chat->paint.out,
			       "A job still runs and may write: end it first.\n");
		return;
	}
	memcpy(id, chat->setup->review->meta.id, sizeof(id));
	if (chat_change_layer(chat, NULL, &kept) != CODE_DONE)
		return;
	if (!kept) {
		(void)buf_adds(&chat->paint.out, "The layer holds no change.\n");
		return;
	}
	code = decide(chat, verb, id, words, false);
	const bool landed = lands && is_landed(chat, id);
	if (lands || code != CODE_DONE)
		again = chat_change_layer(chat, landed ? NULL : id, &none) == CODE_DONE;
	tell_decision(chat, decision_of(lands, landed, code), id, again);
}

static void run_review(struct chat *chat, const char *argument)
{
	static const char *const yes_or_no[] = {"yes", "no", NULL};
	static const char *const yes[] = {"--yes", NULL};
	struct review_words split;
	const char *strange, *refused = split_words(argument, &split);

	if (refused != NULL) {
		(void)buf_adds(&chat->paint.out, refused);
	} else if (chat->setup->review == NULL) {
		(void)buf_adds(
			&chat->paint.out,
			"This conversation writes into the folder itself: /diff shows "
			"what was changed. glovebox --review begins one with a layer.\n");
	} else if (split.count > 0 && strcmp(split.words[0], "land") == 0) {
		strange = strange_option(split.words,
					 "--mine --theirs --markers --no-commits");
		split.words[0] = "--yes";
		if (strange != NULL)
			(void)buf_addf(&chat->paint.out,
				       "/review land takes --mine, --theirs, --markers, "
				       "--no-commits and paths, and not %.100s.\n",
				       strange);
		else
			decide_layer(chat, "land", split.words);
	} else if (split.count > 0 && strcmp(split.words[0], "drop") == 0) {
		if (split.count > 1)
			(void)buf_adds(&chat->paint.out,
				       "/review drop takes nothing more.\n");
		else if (console_choose(chat->console, "Throw away all that is in the layer?",
					yes_or_no, talk_interrupt_fd(chat->talk)) == 0)
			decide_layer(chat, "drop", yes);
	} else {
		show_layer(chat, &split);
	}
	free(split.text);
}

/* Run VERB with WORDS, and print what it says. */
static void run_verb(const struct verb *verb, const char *const *words)
{
	FILE *out = paint_fold_open();
	struct options options;
	struct err err = {0};

	if (options_parse(&options, verb->options, words, false, &err))
		(void)verb->run(&options, out);
	options_fini(&options);
	paint_fold_close(out);
	/*
	 * Flush: the next words of the conversation are written to the descriptor
	 * directly.
	 */
	(void)fflush(stdout);
}

static void run_theme(struct chat *chat, const char *argument)
{
	struct err err = {0};

	if (argument[0] == '\0') {
		(void)buf_addf(&chat->paint.out,
			       "The theme is %s. /theme NAME takes another; the key `theme` of "
			       "the configuration keeps it:\n",
			       chat->appearance.theme);
		appearance_each_theme(add_name, chat);
	} else if (appearance_set_theme(&chat->appearance, chat->console, argument, &err)) {
		(void)buf_addf(&chat->paint.out, "The theme is %s.\n", argument);
	} else {
		(void)buf_addf(&chat->paint.out, "%s\n", err.text);
	}
}

static void run_notify(struct chat *chat, const char *argument)
{
	struct err err = {0};

	if (argument[0] != '\0' &&
	    !appearance_set_notify(&chat->appearance, chat->console, argument, &err))
		(void)buf_addf(&chat->paint.out, "%s\n", err.text);
	else
		(void)buf_addf(&chat->paint.out,
			       "You are told by: %s, when a question waits or a turn of over %d s "
			       "is over, and the window has no focus.\n",
			       notify_name(chat->appearance.notify),
			       NOTIFY_AFTER_MS / 1000);
}

static void run_sessions(struct chat *chat, const char *argument)
{
	(void)argument;
	past_choose(chat);
}

static void run_resume(struct chat *chat, const char *argument)
{
	if (argument[0] != '\0')
		past_go_on(chat, argument);
	else
		past_choose(chat);
}

static void run_new(struct chat *chat, const char *argument)
{
	(void)argument;
	past_go_on(chat, NULL);
}

static void run_fork(struct chat *chat, const char *argument)
{
	(void)argument;
	past_fork(chat);
}

static void run_name(struct chat *chat, const char *argument)
{
	if (argument[0] != '\0')
		past_name(chat, argument);
	else
		(void)buf_adds(&chat->paint.out,
			       "/name TEXT gives this conversation a title.\n");
}

static void run_rewind(struct chat *chat, const char *argument)
{
	(void)argument;
	past_rewind(chat);
}

static void run_context(struct chat *chat, const char *argument)
{
	(void)argument;
	about_context(chat);
}

static void run_tasks(struct chat *chat, const char *argument)
{
	(void)argument;
	about_tasks(chat);
}

static void run_jobs(struct chat *chat, const char *argument)
{
	(void)argument;
	about_jobs(chat);
}

static void run_mcp(struct chat *chat, const char *argument)
{
	(void)argument;
	about_servers(chat);
}

static void run_copy(struct chat *chat, const char *argument)
{
	(void)argument;
	about_copy(chat);
}

/* Run VERB for the folder and the configuration of the conversation, with WORD or none (NULL). */
static void run_verb_here(const struct chat *chat, const struct verb *verb, const char *word)
{
	const char *config = options_text(chat->options, "config");
	const char *words[] = {"--workspace", chat->setup->workspace, NULL, NULL, NULL,
			       NULL};
	size_t count = 2;

	if (config != NULL) {
		words[count++] = "--config";
		words[count++] = config;
	}
	words[count] = word;
	run_verb(verb, words);
}

static void run_agents(struct chat *chat, const char *argument)
{
	(void)argument;
	run_verb_here(chat, &verb_agents_list, NULL);
}

/* While something runs, chat_order takes it. */
static void run_stop(struct chat *chat, const char *argument)
{
	(void)argument;
	(void)buf_adds(&chat->paint.out, "No agent is at work.\n");
}

static void run_policy(struct chat *chat, const char *argument)
{
	(void)argument;
	run_verb_here(chat, &verb_agents_show, chat->setup->agent);
}

static void run_init(struct chat *chat, const char *argument)
{
	static const char task[] =
		"Look at this project and write AGENTS.md in its root, for agents that work "
		"here later; if it exists, make it better and keep what is right in it. Say, in "
		"at most 60 lines and as this project has it: what it is, how it is built, how all tests and "
		"one test are run, how the code is laid out, the style that is kept, and what one "
		"must not do. Try the commands before you write them down. Leave out what "
		"anybody would do anyway.";

	(void)argument;
	free(chat->prompt);
	chat->prompt = memory_copy(task);
}

static void run_cost(struct chat *chat, const char *argument)
{
	const char *const words[] = {"--session", talk_session_id(chat->talk), NULL};

	(void)argument;
	run_verb(&verb_cost, words);
}

static void run_export(struct chat *chat, const char *argument)
{
	past_export(chat, argument);
}

/* The recorded conversation, in the person's pager: all of it, or its last call ALONE. */
static void show_record(struct chat *chat, bool alone)
{
	const struct screen_options look = appearance_look(&chat->appearance);
	struct transcript transcript = {.fd = -1};
	struct err err = {0};

	if (talk_session_id(chat->talk)[0] == '\0')
		(void)err_set(&err, ENOENT, "This conversation is not recorded.");
	else if (transcript_open(talk_session_id(chat->talk), &look, &transcript, &err) &&
		 (!alone || transcript_cut(&transcript, &err)))
		(void)lent_job_show(chat->console, transcript.fd, transcript.call_line,
				    talk_interrupt_fd(chat->talk), &err);
	if (err.code != 0)
		(void)buf_addf(&chat->paint.out, "%s\n", err.text);
	transcript_close(&transcript);
}

static void run_view(struct chat *chat, const char *argument)
{
	(void)argument;
	show_record(chat, false);
}

static void run_view_last(struct chat *chat, const char *argument)
{
	(void)argument;
	show_record(chat, true);
}

static void run_compact(struct chat *chat, const char *argument)
{
	(void)talk_compact(chat->talk, argument[0] != '\0' ? argument : NULL);
}

static void run_skills(struct chat *chat, const char *argument)
{
	(void)argument;
	invoke_list_skills(chat->setup, &chat->paint.out);
}

static void run_style(struct chat *chat, const char *argument)
{
	style_choose(chat, argument);
}

/* Let the person edit the notes. False: ERR says why they are as they were. */
static bool edit_notes(struct chat *chat, const struct buf *before, struct buf *after,
		       struct err *err)
{
	(void)buf_addstr(after, buf_str(before));
	return lent_job_edit(chat->console, after, talk_interrupt_fd(chat->talk), err);
}

/* Let the person edit the notes on the workspace, in their own editor; later sessions read them. */
static void run_memory(struct chat *chat, const char *argument)
{
	struct buf *out = &chat->paint.out;
	struct buf before, after;
	struct err err = {0};

	(void)argument;
	if (chat->setup->notes == NOTES_NONE) {
		(void)buf_adds(out, "There are no notes: \"memory\": true in the configuration "
				    "lets agents write them.\n");
		return;
	}
	buf_init(&before, NOTES_BYTES_MAX);
	/* A text that is too long is refused when it is written, and not cut. */
	buf_init(&after, 4 * NOTES_BYTES_MAX);
	if (!notes_read(chat->setup->workspace, &before, &err) ||
	    !edit_notes(chat, &before, &after, &err))
		(void)buf_addf(out, "%s\n", err.text);
	else if (str_equal(str_trim(buf_str(&before)), str_trim(buf_str(&after))))
		(void)buf_adds(out, "The notes are as they were.\n");
	else if (!notes_replace(chat->setup->workspace, buf_str(&before), buf_str(&after),
				&err))
		(void)buf_addf(out, "%s\n", err.text);
	else
		(void)buf_adds(out,
			       "The notes are written; the next conversation reads them.\n");
	buf_fini(&after);
	buf_fini(&before);
}

/* Things that were let in count in a new cell, in which the same agent goes on. */
static void run_trust(struct chat *chat, const char *argument)
{
	const char *const words[] = {"-C", chat->setup->workspace, NULL};
	struct err err = {0};
	bool let_in;

	(void)argument;
	run_verb(&verb_trust_list, words);
	if (!trusting_decide(chat->setup, session_policy(talk_session(chat->talk)),
			     chat->console, talk_interrupt_fd(chat->talk), &let_in, &err))
		(void)verb_complain(CODE_FAILED, "%s", err.text);
	else if (let_in)
		chat_change_agent(chat, chat->setup->agent);
}

static void run_keys(struct chat *chat, const char *argument)
{
	(void)argument;
	keys_print(console_keys(chat->console), &chat->paint.out);
	(void)buf_adds(&chat->paint.out,
		       "~/.config/glovebox/keys.json gives actions other keys: "
		       "{\"viewer\": \"ctrl+y\"}\n");
}

static void run_quit(struct chat *chat, const char *argument)
{
	(void)argument;
	chat->over = true;
}

static const struct chat_command commands[] = {
	{"help", "", "this list", run_help},
	{"model", "[NAME]", "the model; or go on with another", run_model},
	{"agent", "[NAME]", "the agent; or go on as another, with its rights", run_agent},
	{"agents", "", "the agents there are; while the agent works, those at work",
	 run_agents},
	{"stop", "NAME", "while the agent works: end the delegate NAME", run_stop},
	{"mode", "[NAME]", "the mode: auto, ask or plan; or go over to another", run_mode},
	{"plan", "[TEXT]", "go over to mode plan; TEXT: what is to be planned", run_plan},
	{"tools", "", "the tools that the agent has", run_tools},
	{"undo", "[N]",
	 "put back what the newest step, or step N, has changed; --to POINT, --mark NAME",
	 run_undo},
	{"rewind", "", "go back to before a prompt: the conversation, the files, or both",
	 run_rewind},
	{"diff", "", "what was changed since the conversation began", run_diff},
	{"review", "[PATH ...]",
	 "what the layer of --review would change; --diff, --stat; land; drop", run_review},
	{"tasks", "", "the list of the agent's tasks", run_tasks},
	{"jobs", "", "the jobs that run", run_jobs},
	{"context", "", "what takes room in the next request", run_context},
	{"cost", "", "what this conversation and its delegates have used", run_cost},
	{"compact", "[TEXT]",
	 "have the model summarise the conversation; TEXT: what it must keep", run_compact},
	{"new", "", "end this conversation, and begin a new one", run_new},
	{"sessions", "", "go on with another conversation", run_sessions},
	{"resume", "[ID]", "the same; with ID without a list", run_resume},
	{"fork", "", "go on with a copy of this conversation", run_fork},
	{"name", "TEXT", "give this conversation a title", run_name},
	{"export", "[FILE]",
	 "write this conversation into a new .md, .html or .jsonl file", run_export},
	{"copy", "", "the last answer into the clipboard", run_copy},
	{"init", "", "have AGENTS.md written for this project", run_init},
	{"policy", "", "what the agent may do", run_policy},
	{"mcp", "", "the MCP servers and their tools", run_mcp},
	{"notify", "[WAY]", "how you are told while you look elsewhere; or be told so",
	 run_notify},
	{"skills", "", "the skills there are; /skill:NAME TEXT calls one", run_skills},
	{"memory", "", "the notes of agents on this workspace, in $VISUAL or $EDITOR",
	 run_memory},
	{"trust", "", "what the workspace brings along, and what of it counts", run_trust},
	{"view", "", "the whole conversation, everything in full, in $PAGER", run_view,
	 .key = "viewer"},
	{"view-last", "", "the last call in full, in $PAGER", run_view_last},
	{"style", "[NAME]",
	 "the styles of yours; or have the agent answer in another one", run_style},
	{"theme", "[NAME]", "the colours; or take others", run_theme},
	{"keys", "", "which key does what", run_keys},
	{"quit", "", "the end", run_quit, .key = "quit"},
};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

/* Say which key does the same as COMMAND. */
static void add_key(const struct keys *keys, const struct chat_command *command,
		    struct buf *out)
{
	char sentence[64];

	if (command->key == NULL)
		return;
	(void)snprintf(sentence, sizeof(sentence), "; so does {%s|no key}", command->key);
	keys_say(keys, sentence, out);
}

static void run_help(struct chat *chat, const char *argument)
{
	const struct keys *keys = console_keys(chat->console);
	struct buf *out = &chat->paint.out;

	(void)argument;
	for (size_t i = 0; i < COMMANDS; i++) {
		char form[64];

		(void)snprintf(form, sizeof(form), "/%s %s", commands[i].name,
			       commands[i].argument);
		(void)buf_addf(out, "  %-*s%s", COMMAND_COLUMN, form, commands[i].summary);
		add_key(keys, &commands[i], out);
		(void)buf_addc(out, '\n');
	}
	keys_say(keys,
		 "\nA backslash at the end of a line, or {new-line}, begins another one. "
		 "@ names a file or folder that goes with the prompt, @file:10-40 some lines of it. ! runs a "
		 "command in the cell, and the model is told of it; of !! it is not. "
		 "{complete} completes, {search} searches what was typed before. While the "
		 "agent works, {interrupt} or {escape} stops it, {interrupt} again quits. /keys lists all "
		 "keys.\n",
		 out);
}

/* The name in "/name …", and where its argument begins. */
static struct str command_name(struct str text, size_t *end)
{
	for (*end = 1; *end < text.size; (*end)++) {
		if (strchr(" \t\n", text.data[*end]) != NULL)
			break;
	}
	return str_part(text, 1, *end - 1);
}

bool chat_is_command(struct str text)
{
	struct str name;
	size_t end;

	if (text.size == 0 || text.data[0] != '/')
		return false;
	name = command_name(text, &end);
	for (size_t i = 0; i < name.size; i++) {
		const char c = name.data[i];

		if (((c | 0x20) < 'a' || (c | 0x20) > 'z') && (c != '-' || i == 0))
			return false;
	}
	return true;
}

bool chat_has_command(struct str text)
{
	size_t i = 0, end;

	while (i < COMMANDS && text.size > 0 && text.data[0] == '/' &&
	       !str_is(command_name(text, &end), commands[i].name))
		i++;
	return i < COMMANDS && text.size > 0 && text.data[0] == '/';
}

static void refuse(struct chat *chat, const char *name)
{
	const char *names[COMMANDS + 1] = {NULL};
	const char *nearest;

	for (size_t i = 0; i < COMMANDS; i++)
		names[i] = commands[i].name;
	nearest = text_nearest(name, names);
	(void)buf_addf(&chat->paint.out, "There is no /%.40s", name);
	if (nearest != NULL)
		(void)buf_addf(&chat->paint.out, "; did you mean /%s?\n", nearest);
	else
		(void)buf_adds(&chat->paint.out, "; /help lists what there is.\n");
}

static const struct chat_command *command_of(struct str name)
{
	for (size_t i = 0; i < COMMANDS; i++) {
		if (str_is(name, commands[i].name))
			return &commands[i];
	}
	return NULL;
}

void chat_command(struct chat *chat, struct str text)
{
	struct buf *out = &chat->paint.out;
	size_t end;
	auto_free char *name = memory_copy_str(command_name(text, &end));
	auto_free char *argument =
		memory_copy_str(str_trim(str_part(text, end, text.size)));
	const struct chat_command *command = command_of(str_of(name));

	chat->paint.theme = live_theme(console_live(chat->console));
	if (!console_echoed(chat->console)) {
		(void)buf_adds(out, "> ");
		paint_one_line(&chat->paint, PAINT_BOLD, text, LISTED_COLUMNS);
		(void)buf_addc(out, '\n');
		flush(chat);
	}
	if (command == NULL)
		refuse(chat, name);
	else if (argument[0] != '\0' && command->argument[0] == '\0')
		(void)buf_addf(out, "/%s takes nothing more.\n", name);
	else
		command->run(chat, argument);
	show(chat);
}

/* The keys that are commands as well. */
static const struct {
	enum line_result action;
	const char *name, *argument;
} key_commands[] = {
	{LINE_REWIND, "rewind", ""},
	{LINE_VIEWER, "view", ""},
	{LINE_MODE, "mode", NEXT_MODE},
	{LINE_TASKS, "tasks", ""},
};

/* Want the mode behind the one that is wanted already, from the next request on. */
static void want_next_mode(struct chat *chat)
{
	const int now = atomic_load(&chat->mode), before = atomic_load(&chat->wanted_mode);
	const enum policy_mode next =
		mode_behind((enum policy_mode)(before != CHAT_NO_MODE ? before : now));
	struct buf hint;

	atomic_store(&chat->wanted_mode, (int)next);
	buf_init(&hint, SENTENCE_MAX);
	(void)buf_addf(&hint,
		       (int)next == now ? "mode %s goes on" : "mode %s after these calls",
		       policy_modes[next].name);
	line_set_hint(&chat->line, hint.data);
	atomic_store(&chat->hinted, true);
	buf_fini(&hint);
}

/*
 * ACTION while something runs, on the thread of the console, which holds the line. False: it
 * has to wait.
 */
static bool act_meanwhile(struct chat *chat, enum line_result action)
{
	bool all;

	switch (action) {
	case LINE_MODE:
		want_next_mode(chat);
		return true;
	case LINE_TASKS:
		if (screen_toggle_tasks(chat->screen, &all) == 0)
			line_set_hint(&chat->line, "the agent has noted no tasks");
		return true;
	case LINE_VIEWER:
		line_set_hint(&chat->line, screen_toggle_tail(chat->screen)
						   ? "half the window for what a call prints"
						   : "5 rows for what a call prints");
		return true;
	default:
		return false;
	}
}

bool chat_act(void *context, enum line_result action, bool runs)
{
	struct chat *chat = context;
	const char *name = NULL, *argument = "";
	size_t i = 0;

	if (!atomic_load(&chat->is_there)) {
		line_set_hint(&chat->line,
			      "this key has an effect in a moment, when the cell is there");
		return true;
	}
	if (runs)
		return act_meanwhile(chat, action);
	for (size_t at = 0; at < sizeof(key_commands) / sizeof(key_commands[0]); at++) {
		if (key_commands[at].action == action) {
			name = key_commands[at].name;
			argument = key_commands[at].argument;
		}
	}
	while (name != NULL && i < COMMANDS && strcmp(commands[i].name, name) != 0)
		i++;
	if (name == NULL || i == COMMANDS)
		return false;
	chat->paint.columns = paint_columns_of(STDOUT_FILENO);
	commands[i].run(chat, argument);
	show(chat);
	chat_pauses(chat);
	return true;
}

/* Print ROWS above those that change. */
static void print_meanwhile(const struct chat *chat, struct str text, struct str rows)
{
	struct buf out;

	buf_init(&out, PAINT_MAX);
	(void)buf_adds(&out, "> ");
	(void)buf_addstr(&out, text);
	(void)buf_addc(&out, '\n');
	(void)buf_addstr(&out, rows);
	(void)live_print(console_live(chat->console), buf_str(&out));
	buf_fini(&out);
}

/* Have the delegate NAME end, and say so in OUT. */
static void stop_agent(const struct chat *chat, struct str name, struct buf *out)
{
	struct buf call, why;

	buf_init(&call, SENTENCE_MAX);
	buf_init(&why, SENTENCE_MAX);
	if (name.size == 0) {
		(void)buf_adds(out,
			       "/stop NAME ends a delegate; /agents names those at work.\n");
	} else if (screen_find_agent(chat->screen, name, &call)) {
		(void)buf_adds(&why, "The person has ended this delegate, ");
		text_add_name(&why, name);
		(void)buf_adds(&why, "; its task is not done. Ask, or go on without it.");
		stopping_ask(chat->stopping, call.data, why.data);
		text_add_name(out, name);
		(void)buf_adds(out, " ends.\n");
	} else {
		(void)buf_adds(out, "No agent ");
		text_add_name(out, name);
		(void)buf_adds(out, " is at work.\n");
	}
	buf_fini(&why);
	buf_fini(&call);
}

bool chat_order(void *context, struct str text)
{
	const struct chat *chat = context;
	struct str name;
	struct buf out, clean;
	size_t end;

	if (!chat_is_command(text) || !atomic_load(&chat->is_there))
		return false;
	name = command_name(text, &end);
	if (!str_is(name, "agents") && !str_is(name, "stop"))
		return false;
	buf_init(&out, PAINT_MAX);
	buf_init(&clean, PAINT_MAX);
	if (str_is(name, "stop"))
		stop_agent(chat, str_trim(str_part(text, end, text.size)), &out);
	else
		screen_print_agents(chat->screen, &out);
	if (out.size == 0)
		(void)buf_adds(&out, "No agent is at work.\n");
	paint_clean(text, &clean);
	print_meanwhile(chat, buf_str(&clean), buf_str(&out));
	buf_fini(&clean);
	buf_fini(&out);
	return true;
}

static void chat_each_way(void (*name)(void *context, const char *name), void *context)
{
	for (enum notify_way way = NOTIFY_AUTO; way <= NOTIFY_COMMAND; way++)
		name(context, notify_name(way));
}

static const char *const review_next[] = {"--diff", "--stat", "drop", "land"};

struct candidates {
	struct str begun;
	const char *prefix;
	struct buf *words;
};

static void add_described(struct candidates *candidates, const char *name, const char *detail)
{
	if (str_starts(str_of(name), candidates->begun))
		(void)buf_addf(candidates->words, "%s%s%s%s\n", candidates->prefix, name,
			       detail[0] != '\0' ? "\t" : "", detail);
}

static void add_candidate(void *context, const char *name)
{
	add_described(context, name, "");
}

static void add_invoked(void *context, const char *name, const char *description)
{
	/* It is foreign: the menu takes a line of it, and shows it exact. */
	auto_free char *line =
		memory_copy_str(str_part(str_of(description), 0,
					 str_find(str_of(description), STR("\n"), 0)));

	add_described(context, name, line);
}

void chat_complete(void *context, struct str before, size_t *from, struct buf *words)
{
	const struct chat *chat = context;
	struct candidates candidates = {.prefix = "", .words = words};
	const bool is_there = atomic_load(&chat->is_there);
	struct str name;
	size_t end;

	if (!chat_is_command(before)) {
		if (is_there && mentions_complete(chat->mentions, before, from, words) &&
		    chat->may_list)
			mentions_refresh(chat->mentions);
		return;
	}
	name = command_name(before, &end);
	if (end == before.size) {
		*from = 0;
		candidates.begun = name;
		candidates.prefix = "/";
		for (size_t i = 0; i < COMMANDS; i++)
			add_described(&candidates, commands[i].name, commands[i].summary);
		if (is_there)
			invoke_each(chat->setup, add_invoked, &candidates);
		return;
	}
	if (!is_there)
		return;
	while (end < before.size && before.data[end] == ' ')
		end++;
	*from = end;
	candidates.begun = str_part(before, end, before.size);
	if (str_is(name, "agent"))
		chat_each_agent(chat, add_candidate, &candidates);
	else if (str_is(name, "mode")) {
		for (size_t i = 0; i < MODES; i++)
			add_candidate(&candidates, policy_modes[i].name);
	} else if (str_is(name, "notify"))
		chat_each_way(add_candidate, &candidates);
	else if (str_is(name, "style"))
		style_each(chat, add_candidate, &candidates);
	else if (str_is(name, "theme"))
		appearance_each_theme(add_candidate, &candidates);
	else if (str_is(name, "model"))
		setup_each_model(chat->setup, add_candidate, &candidates);
	else if (str_is(name, "review")) {
		for (size_t i = 0; i < sizeof(review_next) / sizeof(review_next[0]); i++)
			add_candidate(&candidates, review_next[i]);
	}
}

void chat_hint(void *context, struct str before, struct buf *out)
{
	const struct chat_command *command;
	size_t end;

	(void)context;
	if (!chat_is_command(before))
		return;
	command = command_of(command_name(before, &end));
	if (command == NULL || command->argument[0] == '\0' || end + 1 < before.size)
		return;
	(void)buf_addf(out, "%s%s", end == before.size ? " " : "", command->argument);
}

void chat_joins(void *context, struct str text)
{
	struct chat *chat = context;

	mentions_attach(chat->mentions, text, NULL);
}
