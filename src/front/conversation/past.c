/* past: lists recorded conversations and the prompts of this one, and goes on from the chosen place. */

#include "front/conversation/past.h"

#include "agent/agent.h"
#include "agent/history.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/value.h"
#include "front/chat.h"
#include "front/conversation/mentions.h"
#include "front/review/layered.h"
#include "front/setup.h"
#include "front/talk.h"
#include "front/verb.h"
#include "session/session.h"
#include "store/costs.h"
#include "store/journal.h"
#include "tool/event.h"
#include "tool/tool.h"
#include "tui/choose/list.h"
#include "tui/console.h"
#include "tui/line.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	PAST_AGE = 16,
	LISTED_MAX = 200, /* conversations; older ones go on with their id */
	DETAIL_MAX = PATH_MAX + 64,
};

/* How long ago WALL_MS was: "3 h", "2 d". */
static void past_age(int64_t wall_ms, char age[PAST_AGE])
{
	const int64_t minutes = (clock_wall_ms() - wall_ms) / 60000;

	if (minutes < 1)
		(void)snprintf(age, PAST_AGE, "now");
	else if (minutes < 60)
		(void)snprintf(age, PAST_AGE, "%d min", (int)minutes);
	else if (minutes < 48 * 60)
		(void)snprintf(age, PAST_AGE, "%d h", (int)(minutes / 60));
	else
		(void)snprintf(age, PAST_AGE, "%d d", (int)(minutes / (24 * 60) % 100000));
}

struct listing {
	struct list list;
	char ids[LISTED_MAX][JOURNAL_ID + 1];
	size_t count;
	const char *except;  /* the id of this conversation */
	struct value *money; /* id -> US dollars */
};

static bool add_money(void *context, const struct cost_answer *answer)
{
	struct value *money = context;
	auto_free char *id = memory_copy_str(answer->session);

	if (answer->money > 0)
		value_set_real(money, id,
			       value_number(value_member(money, id)) + answer->money);
	return true;
}

static bool add_session(void *context, const struct journal_session *session)
{
	struct listing *listing = context;
	const double money = value_number(value_member(listing->money, session->id));
	const struct str title = session->title.size > 0 ? session->title : session->prompt;
	const char *folder;
	char age[PAST_AGE];
	struct buf detail;

	/* A delegate's is part of another one, and one without a prompt has nothing in it. */
	if (session->parent.size > 0 || title.size == 0 ||
	    strcmp(session->id, listing->except) == 0)
		return true;
	buf_init(&detail, DETAIL_MAX);
	past_age(session->last_wall_ms, age);
	folder = memrchr(session->workspace.data, '/', session->workspace.size);
	(void)buf_addstr(&detail,
			 folder != NULL
				 ? str_part(session->workspace,
					    (size_t)(folder + 1 - session->workspace.data),
					    session->workspace.size)
				 : session->workspace);
	(void)buf_addf(&detail, ", %s", age);
	if (money > 0)
		(void)buf_addf(&detail, ", $%.2f", money);
	list_add(&listing->list, title, buf_str(&detail));
	memcpy(listing->ids[listing->count++], session->id, sizeof(session->id));
	buf_fini(&detail);
	return listing->count < LISTED_MAX;
}

void past_choose(struct chat *chat)
{
	struct journal *journal = recorder_journal(talk_recorder(chat->talk));
	struct listing *listing = memory_alloc(sizeof(*listing));
	struct err err = {0};
	size_t at = SIZE_MAX;

	list_init(&listing->list, "Conversations");
	listing->except = talk_session_id(chat->talk);
	listing->money = value_new_object();
	if (!costs_read(journal, 0, NULL, add_money, listing->money, &err) ||
	    !journal_list(journal, SIZE_MAX, add_session, listing, &err))
		(void)buf_addf(&chat->paint.out, "%s\n", err.text);
	else if (listing->count == 0)
		(void)buf_adds(&chat->paint.out, "There is no other conversation yet.\n");
	else
		at = console_pick(chat->console, &listing->list,
				  talk_interrupt_fd(chat->talk));
	if (at < listing->count)
		past_go_on(chat, listing->ids[at]);
	list_fini(&listing->list);
	value_free(listing->money);
	free(listing);
}

/*
 * Fill OPTIONS with those with which the conversation ID goes on; NULL: with which a new one
 * begins. FOUND owns their texts.
 */
static bool fill_options(const struct chat *chat, const char *id, struct options *options,
			 struct journal_found *found, struct err *err)
{
	struct options bare = *chat->options;

	*found = (struct journal_found){0};
	if (id == NULL) {
		*options = bare;
		found->workspace = memory_copy(chat->setup->workspace);
		found->agent = memory_copy(chat->setup->agent);
		options_set(options, "workspace", found->workspace);
		options_set(options, "agent", found->agent);
		return true;
	}
	/* The conversation has its own. */
	options_set(&bare, "workspace", NULL);
	options_set(&bare, "agent", NULL);
	options_set(&bare, "model", NULL);
	options_set(&bare, "mode", NULL);
	if (!setup_resume(&bare, id, options, found, err))
		return false;
	return strcmp(found->id, talk_session_id(chat->talk)) != 0 ||
	       err_set(err, EBUSY, "That is this conversation.");
}

/* Open the hands of OPTIONS, and have the conversation ID, or a new one, go on with them. */
static bool open_hands(struct chat *chat, const char *id, const struct options *options,
		       struct setup **opened)
{
	const struct setup_flags flags = {.serves = true, .answers = true};
	struct setup *setup = memory_alloc(sizeof(*setup));
	struct model_options model;
	struct err err = {0};
	const char *name = id == NULL && chat->model != NULL
				   ? chat->model
				   : options_text(options, "model");
	int code = setup_open(setup, options, &flags);

	*opened = setup;
	setup->publishes = true;
	if (code == CODE_DONE)
		code = layered_take(setup, options, "glovebox chat");
	if (code == CODE_DONE && !talk_model(name, &setup->role, &model, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	mentions_stop(chat->mentions);
	return code == CODE_DONE &&
	       talk_begin_again(chat->talk, setup, &model, id) == CODE_DONE;
}

void past_go_on(struct chat *chat, const char *id)
{
	struct journal_found found;
	struct options options;
	struct setup *setup = NULL;
	struct err err = {0};

	if (chat->setup->review != NULL) {
		(void)buf_adds(&chat->paint.out,
			       "The layer of --review belongs to this conversation: end it "
			       "first.\n");
		return;
	}
	if (!fill_options(chat, id, &options, &found, &err)) {
		(void)buf_addf(&chat->paint.out, "%s\n", err.text);
		journal_found_fini(&found);
		return;
	}
	if (open_hands(chat, id, &options, &setup)) {
		struct setup *old = chat->setup;

		chat->setup = setup;
		setup = old;
		chat->went_on = options;
		chat->options = &chat->went_on;
		journal_found_fini(&chat->found);
		chat->found = found;
		found = (struct journal_found){0};
		value_free(chat->earlier);
		chat->earlier = NULL;
		if (id != NULL) {
			free(chat->model);
			chat->model = NULL;
		}
	}
	setup_fini(setup);
	free(setup);
	journal_found_fini(&found);
}

void past_fork(struct chat *chat)
{
	char id[JOURNAL_ID + 1];
	struct journal *journal = NULL;
	struct err err = {0};
	bool forked;

	/* The copy is claimed by this journal until it is closed. */
	forked = journal_open_default(&journal, &err) &&
		 journal_fork(journal, talk_session_id(chat->talk), id, &err);
	journal_close(journal);
	if (forked)
		past_go_on(chat, id);
	else
		(void)buf_addf(&chat->paint.out, "%s\n", err.text);
}

void past_name(struct chat *chat, const char *name)
{
	struct err err = {0};

	if (!agent_name(talk_agent(chat->talk), name, &err))
		chat->code = verb_complain(CODE_FAILED, "%s", err.text);
	else
		(void)buf_addf(&chat->paint.out, "This conversation is called %s.\n", name);
}

/*
 * Make the new file NAME. No part of it may be a link: what works in the folder could have made
 * one that leads elsewhere. -1 with ERR.
 */
static int make_file(const char *name, struct err *err)
{
	auto_free char *here = realpath(".", NULL);
	auto_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct buf path;
	int fd = -1;

	buf_init(&path, 2 * PATH_MAX);
	if (name[0] != '/')
		(void)buf_addf(&path, "%s/", here != NULL ? here : "");
	(void)buf_adds(&path, name);
	if (root >= 0)
		fd = fd_open_beneath(root, path.data + strspn(path.data, "/"),
				     O_WRONLY | O_CREAT | O_EXCL);
	/* The mode comes after: nobody else can open a file of mode 0. */
	if (fd < 0 || fchmod(fd, 0600) < 0)
		(void)err_set(err, errno, "%.500s: %s%s", name, strerror(errno),
			      errno == EEXIST ? "; give another name" : "");
	buf_fini(&path);
	return fd;
}

/* The option of `sessions export` for a file of this name. */
static const char *form_of(struct str name)
{
	if (str_ends(name, STR(".html")))
		return "--html";
	return str_ends(name, STR(".jsonl")) || str_ends(name, STR(".json"))
		       ? NULL
		       : "--markdown";
}

void past_export(struct chat *chat, const char *name)
{
	char own[JOURNAL_ID + 16];
	const char *words[] = {talk_session_id(chat->talk), NULL, NULL};
	struct options options;
	struct err err = {0};
	FILE *out = NULL;
	int fd, code = CODE_FAILED;

	(void)snprintf(own, sizeof(own), "session-%s.md", talk_session_id(chat->talk));
	if (name[0] == '\0')
		name = own;
	words[1] = form_of(str_of(name));
	fd = make_file(name, &err);
	if (fd >= 0)
		out = fdopen(fd, "w");
	if (out == NULL) {
		(void)buf_addf(&chat->paint.out, "%s\n", err.text);
		fd_close(&fd);
		return;
	}
	if (options_parse(&options, verb_sessions_export.options, words, false, &err))
		code = verb_sessions_export.run(&options, out);
	options_fini(&options);
	if (fclose(out) != 0 || code != CODE_DONE)
		(void)buf_addf(&chat->paint.out, "%s is not whole.\n", name);
	else
		(void)buf_addf(&chat->paint.out, "Written: %s\n", name);
}

/* Going back to before a prompt. */

struct prompt {
	int64_t number, wall_ms;
	char *text;
};

struct prompts {
	struct prompt *items; /* in their order */
	size_t count;
	struct rewound rewound;
};

static bool take_prompt(void *context, int64_t number, const char *kind, int64_t wall_ms,
			struct str json)
{
	struct prompts *prompts = context;
	auto_value struct value *event = NULL;

	(void)kind;
	if (rewound_has(&prompts->rewound, number) || !value_parse(json, 0, &event, NULL))
		return true;
	prompts->items =
		memory_grow(prompts->items, prompts->count + 1, sizeof(*prompts->items));
	prompts->items[prompts->count++] = (struct prompt){
		.number = number,
		.wall_ms = wall_ms,
		.text = memory_copy_str(value_str(value_member(event, "text"))),
	};
	return true;
}

static bool read_prompts(struct chat *chat, struct prompts *prompts, struct err *err)
{
	const struct recorder *recorder = talk_recorder(chat->talk);

	return recorder_rewound(recorder, talk_session_id(chat->talk), &prompts->rewound,
				err) &&
	       journal_read(recorder_journal(recorder), talk_session_id(chat->talk),
			    event_kind_name(EVENT_TURN_BEGAN), take_prompt, prompts, err);
}

static void prompts_fini(struct prompts *prompts)
{
	for (size_t i = 0; i < prompts->count; i++)
		free(prompts->items[i].text);
	free(prompts->items);
	rewound_fini(&prompts->rewound);
}

/* The newest prompt comes first. NULL: none was chosen. */
static const struct prompt *choose_prompt(struct chat *chat, const struct prompts *prompts)
{
	const struct prompt *chosen = NULL;
	struct list list;
	size_t at;

	list_init(&list, "Go back to before");
	for (size_t i = prompts->count; i-- > 0;) {
		char age[PAST_AGE];

		past_age(prompts->items[i].wall_ms, age);
		list_add(&list, str_of(prompts->items[i].text), str_of(age));
	}
	at = console_pick(chat->console, &list, talk_interrupt_fd(chat->talk));
	if (at < prompts->count)
		chosen = &prompts->items[prompts->count - 1 - at];
	list_fini(&list);
	return chosen;
}

/* The parts that go back. */
enum back { BACK_BOTH, BACK_CONVERSATION, BACK_FILES, BACK_NOTHING };

static enum back choose_back(struct chat *chat)
{
	struct list list;
	size_t at;

	list_init(&list, "What goes back");
	list_add(&list, STR("the conversation and the files"),
		 STR("what it has changed since"));
	list_add(&list, STR("the conversation"), STR("the files stay"));
	list_add(&list, STR("the files"), STR("the conversation goes on"));
	at = console_pick(chat->console, &list, talk_interrupt_fd(chat->talk));
	list_fini(&list);
	return at < BACK_NOTHING ? (enum back)at : BACK_NOTHING;
}

/* True: the files are as they were, but for those that RESULT names. */
static void take_files_back(struct chat *chat, const struct prompt *prompt, bool to_model)
{
	struct tool_result result;
	struct err err = {0};

	tool_result_init(&result);
	session_rewind(talk_session(chat->talk), prompt->wall_ms, &result);
	if (result.status == RESULT_DONE && to_model) {
		if (!talk_tell_undone(chat->talk, &result, &err))
			chat->code = verb_complain(CODE_FAILED, "%s", err.text);
	} else {
		(void)buf_addstr(&chat->paint.out, str_trim(buf_str(&result.text)));
		(void)buf_addc(&chat->paint.out, '\n');
	}
	tool_result_fini(&result);
}

static void go_back(struct chat *chat, const struct prompt *prompt, enum back back)
{
	struct err err = {0};

	if (back != BACK_CONVERSATION)
		take_files_back(chat, prompt, back == BACK_FILES);
	if (back == BACK_FILES)
		return;
	if (!agent_rewind(talk_agent(chat->talk), prompt->number, str_of(prompt->text),
			  &err)) {
		chat->code = verb_complain(CODE_FAILED, "%s", err.text);
		chat->over = true;
		return;
	}
	(void)buf_adds(&chat->paint.out,
		       "The conversation goes on from before that prompt; the record keeps what "
		       "was said since.\n");
	line_start(&chat->line);
	line_insert(&chat->line, str_of(prompt->text));
}

void past_rewind(struct chat *chat)
{
	struct prompts prompts = {0};
	const struct prompt *prompt;
	struct err err = {0};
	enum back back;

	if (!read_prompts(chat, &prompts, &err)) {
		(void)buf_addf(&chat->paint.out, "%s\n", err.text);
	} else if (prompts.count == 0) {
		(void)buf_adds(&chat->paint.out, "There is no prompt to go back to yet.\n");
	} else {
		prompt = choose_prompt(chat, &prompts);
		back = prompt != NULL ? choose_back(chat) : BACK_NOTHING;
		if (back != BACK_NOTHING)
			go_back(chat, prompt, back);
	}
	prompts_fini(&prompts);
}
