/*
 * delegated: reads the request of a delegate, takes over the environment in it and runs
 * the agent.
 */

#include "front/conversation/delegated.h"

#include "agent/agent.h"
#include "agent/delegate.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "front/agents.h"
#include "front/review/layered.h"
#include "front/review/writer.h"
#include "front/setup.h"
#include "front/talk.h"
#include "front/verb.h"
#include "view/review.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
	REQUEST_MAX = 16 << 20,
	WORDS_MAX = 8,
	LEVEL_TEXT = 8,
	/* Where descriptors stand among those of a process: these of each one … */
	OF_OUTPUT = 1,
	OF_ERRORS = 2,
	OF_INPUT = 3,
	OF_WORD = 4, /* … and a delegate's, for the word to land */
};

/* The options that the words made from a request may hold (delegate_work). */
static const struct option_row delegate_rows[] = {
	OPTION_ROW_WORKSPACE, OPTION_ROW_CONFIG, OPTION_ROW_AGENT, OPTION_ROW_LEVEL, {0},
};

/*
 * Replace the standard descriptors, leave the caller's process group, and have the kernel
 * kill this process when its caller ends. The pidfd CALLER is checked after that:
 * when the caller ended before prctl(), the kernel sends no signal. False: the caller has
 * ended, or a descriptor could not be replaced.
 */
static bool process_settle(const char *name, const int *fds, int caller)
{
	struct pollfd life = {.fd = caller, .events = POLLIN};

	if (dup2(fds[OF_INPUT], STDIN_FILENO) < 0 ||
	    dup2(fds[OF_OUTPUT], STDOUT_FILENO) < 0 ||
	    dup2(fds[OF_ERRORS], STDERR_FILENO) < 0)
		return false;
	(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)prctl(PR_SET_NAME, name);
	return poll(&life, 1, 0) == 0;
}

static bool process_read(int fd, struct value **request, struct err *err)
{
	struct buf text;
	bool read_it;

	buf_init(&text, REQUEST_MAX);
	read_it = fd_read_all(fd, &text, "the request", err) &&
		  value_parse(buf_str(&text), 0, request, err);
	explicit_bzero(text.data, text.size);
	buf_fini(&text);
	return read_it;
}

static void take_environment(const struct value *environment)
{
	(void)clearenv();
	for (void *at = value_first(environment); at != NULL;
	     at = value_next(environment, at))
		if (value_text(value_at(at)) != NULL)
			(void)setenv(value_key(at), value_text(value_at(at)), 1);
}

static uint64_t least_count(uint64_t own, const struct value *budget, const char *name)
{
	const int64_t most = value_integer(value_member(budget, name));

	return most > 0 && (own == 0 || (uint64_t)most < own) ? (uint64_t)most : own;
}

static double least_number(double own, const struct value *budget, const char *name)
{
	const double most = value_number(value_member(budget, name));

	return most > 0 && (own <= 0 || most < own) ? most : own;
}

static void take_budget(const struct value *budget, struct policy_limits *limits)
{
	limits->tokens = least_count(limits->tokens, budget, "tokens");
	limits->iterations = least_count(limits->iterations, budget, "answers");
	limits->money = least_number(limits->money, budget, "money");
	limits->run_s = least_number(limits->run_s, budget, "seconds");
}

static int delegate_turn(struct setup *setup, const struct value *request)
{
	const char *model = value_text(value_member(request, "asked_model"));
	struct talk_options options = {.json = true,
				       .kept = true,
				       .answers = value_member(request, "asks") != NULL,
				       .request = request};
	struct agent_outcome outcome;
	struct talk *talk = NULL;
	struct err err = {0};
	int code;

	take_budget(value_member(request, "budget"), &setup->policy->limits);
	if (model == NULL)
		model = setup->role.model;
	if (model == NULL)
		model = value_text(value_member(request, "model"));
	if (!talk_model(model, &setup->role, &options.model, &err) ||
	    (value_is_true(value_member(request, "named_model")) &&
	     !talk_model_is_named(&options.model, &err)))
		return verb_complain(CODE_FAILED, "%s", err.text);
	options.counts_answers =
		value_integer(value_member(value_member(request, "budget"), "answers")) > 0;
	code = talk_open(&options, setup, &talk);
	if (code == CODE_DONE)
		code = talk_turn(talk, value_text(value_member(request, "task")), NULL,
				 &outcome);
	talk_close(talk);
	return code;
}

/*
 * Let the policy ask only for kinds that stand in OWN (those of its role and those of the
 * person's --ask) and in UP (those that all agents above it let pass).
 */
static bool take_asks(struct setup *setup, const struct value *own,
		      const struct value *up, struct err *err)
{
	policy_ask_nobody(setup->policy);
	for (size_t i = 0; i < value_count(own); i++) {
		const char *what = value_text(value_item(own, i));

		if (value_has_text(up, what) &&
		    !policy_add_ask(setup->policy, what, "the request", err))
			return false;
	}
	return true;
}

static bool delegate_serve(struct setup *setup, const struct value *request, struct err *err)
{
	const struct value *asked = value_member(request, "ask");
	auto_value struct value *own = value_new_array();
	enum policy_mode mode = MODE_AUTO;

	for (size_t i = 0; i < setup->policy->asks.count; i++)
		value_append(own, value_new_text(setup->policy->asks.items[i]));
	for (size_t i = 0; i < value_count(asked); i++)
		value_append(own, value_copy(value_item(asked, i)));
	setup->asked = asked != NULL ? value_copy(asked) : NULL;
	(void)policy_mode_parse(value_text(value_member(request, "mode")), &mode);
	mode = policy_mode_stricter(mode, (enum policy_mode)setup->role.mode);
	return setup_set_mode(setup, mode, err) &&
	       setup_serve_within(setup, value_member(request, "bounds"), err) &&
	       take_asks(setup, own, value_member(request, "asks"), err);
}

/* Fill OPTIONS and SETUP, for one session of the delegate that REQUEST describes. */
static bool delegate_set_up(const struct value *request, struct options *options,
			    struct setup *setup, struct err *err)
{
	const struct value *level = value_member(request, "level");
	const char *config = value_text(value_member(request, "config"));
	char level_text[LEVEL_TEXT];
	const char *words[WORDS_MAX + 1] = {"-C",
					    value_text(value_member(request, "workspace")),
					    "--agent",
					    value_text(value_member(request, "agent"))};
	size_t count = 4;

	if (config != NULL) {
		words[count++] = "--config";
		words[count++] = config;
	}
	if (level != NULL) {
		(void)snprintf(level_text, sizeof(level_text), "L%d",
			       (int)value_integer(level) & 3);
		words[count++] = "--minimum-level";
		words[count++] = level_text;
	}
	if (!options_parse(options, delegate_rows, words, false, err) ||
	    !setup_init(setup, options, NULL, err))
		return false;
	if (value_text(value_member(request, "base")) != NULL) {
		setup_set_base(setup, value_text(value_member(request, "base")));
		setup->base_is_lent = true;
	}
	setup_set_at(setup, value_text(value_member(request, "at")));
	/* Pages of the web that agents above it have read are not known here. */
	if (setup->notes == NOTES_WRITTEN)
		setup->notes = NOTES_READ;
	/* Before those above it bound it. */
	if (value_member(request, "layer") != NULL)
		layered_write_base(setup->policy);
	return true;
}

/* Wait for the caller's word to land. False: it does not come. */
static bool wait_for_word(int word)
{
	char byte;
	ssize_t got;

	do {
		got = read(word, &byte, 1);
	} while (got < 0 && errno == EINTR);
	return got == 1;
}

/* The delegate has worked in REVIEW, and the word has come: land it. */
static void delegate_land(const struct value *request, struct review *review)
{
	struct options options = {0};
	struct setup setup = {0};
	struct err err = {0};

	if (delegate_set_up(request, &options, &setup, &err) &&
	    delegate_serve(&setup, request, &err))
		writer_land(&setup, review);
	else
		(void)verb_complain(CODE_FAILED, "%s", err.text);
	setup_fini(&setup);
	options_fini(&options);
}

/*
 * Open what the delegate works with. `review` of the agent, or of one above it, keeps its work for
 * a person: *KEPT. One above it that works in a layer itself has what it asks for. Without a
 * layer of the caller's `review` is refused: nobody would be told of a layer that this process
 * makes.
 */
static bool delegate_open(const struct value *request, struct options *options,
			  struct setup *setup, bool *kept, struct err *err)
{
	const struct value *over = value_member(request, "over");
	const bool layered = value_member(request, "layer") != NULL;

	if (!delegate_set_up(request, options, setup, err))
		return false;
	*kept = setup->policy->review;
	if (!delegate_serve(setup, request, err) ||
	    !layered_below(setup, over, WRITER_VERB, err))
		return false;
	*kept = over != NULL ? *kept : setup->policy->review;
	if (!layered && *kept && over == NULL)
		return err_set(err, EINVAL,
			       "%s works in layers (`review`) and is a delegate only where "
			       "limits.writers is more than 1, or for an agent in a layer",
			       value_text(value_member(request, "agent")));
	/* Its caller has given it no layer, because it only read then. */
	if (!layered && over != NULL && !agents_only_read(setup, setup->policy))
		return err_set(err, EPERM,
			       "%s writes now, and its caller has no layer for it: "
			       "delegate again",
			       value_text(value_member(request, "agent")));
	return !layered || writer_begin(setup, request, err);
}

static int delegate_work(const struct value *request, int word)
{
	struct options options = {0};
	struct setup setup = {0};
	struct err err = {0};
	bool kept = false;
	int code;

	if (value_text(value_member(request, "workspace")) == NULL ||
	    value_text(value_member(request, "agent")) == NULL ||
	    value_text(value_member(request, "task")) == NULL)
		return verb_complain(CODE_USAGE,
				     "a request without workspace, agent or task");
	if (delegate_open(request, &options, &setup, &kept, &err))
		code = delegate_turn(&setup, request);
	else
		code = verb_complain(CODE_FAILED, "%s", err.text);
	struct review *review = writer_end(&setup);
	setup_fini(&setup);
	options_fini(&options);
	if (review != NULL && code == CODE_DONE && !kept && wait_for_word(word)) {
		if (review->meta.over_count > 0)
			code = DELEGATE_LEFT;
		else
			delegate_land(request, review);
	}
	review_close(review);
	return code;
}

int delegated_begin(int argc, char **argv, int *fds, int count, struct value **request)
{
	struct err err = {0};

	if (argc != count + 1)
		return CODE_USAGE;
	for (int i = 0; i < count; i++) {
		fds[i] = fd_of_text(argv[i + 1]);
		if (fds[i] <= STDERR_FILENO || fcntl(fds[i], F_SETFD, FD_CLOEXEC) < 0)
			return CODE_USAGE;
	}
	if (!process_settle(argv[0], fds, fds[count - 1]))
		return CODE_FAILED;
	setup_hide_memory();
	if (!process_read(fds[0], request, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	for (int i = 0; i < count; i++) {
		if (i < OF_INPUT + 1 || i == count - 1)
			(void)close(fds[i]);
	}
	take_environment(value_member(*request, "environment"));
	return CODE_DONE;
}

static int delegate_run(int argc, char **argv)
{
	auto_value struct value *request = NULL;
	int fds[DELEGATE_ARGUMENTS - 1];
	int code = delegated_begin(argc, argv, fds, DELEGATE_ARGUMENTS - 1, &request);

	return code == CODE_DONE ? delegate_work(request, fds[OF_WORD]) : code;
}

bool delegated_role(int argc, char **argv, int *code)
{
	if (argc == 0 || strcmp(argv[0], DELEGATE_ROLE) != 0)
		return false;
	*code = delegate_run(argc, argv);
	return true;
}
