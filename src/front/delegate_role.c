/* delegate_role: reads the request, takes over its environment and runs the agent. */
#include "front/delegate_role.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/delegate.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/value.h"
#include "front/setup.h"
#include "front/talk.h"
#include "front/verb.h"

enum { REQUEST_MAX = 16 << 20, WORDS_MAX = 8, LEVEL_TEXT = 8 };

/* The options that the words made from a request may hold (run_request). */
static const struct option_row rows[] = {
	OPTION_ROW_WORKSPACE, OPTION_ROW_CONFIG, OPTION_ROW_AGENT, OPTION_ROW_LEVEL, {0},
};

bool delegate_role_is(const char *name)
{
	return name != NULL && strcmp(name, DELEGATE_ROLE) == 0;
}

/*
 * Replace the standard descriptors, leave the caller's process group, and have the kernel
 * kill this process when its caller ends. The pidfd CALLER is checked after that:
 * when the caller ended before prctl(), the kernel sends no signal. False: the caller has
 * ended, or a descriptor could not be replaced.
 */
static bool settle(int events, int complaints, int answers, int caller)
{
	struct pollfd life = {.fd = caller, .events = POLLIN};

	if (dup2(answers, STDIN_FILENO) < 0 || dup2(events, STDOUT_FILENO) < 0 ||
	    dup2(complaints, STDERR_FILENO) < 0)
		return false;
	(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)prctl(PR_SET_NAME, DELEGATE_ROLE);
	return poll(&life, 1, 0) == 0;
}

static bool read_request(int fd, struct value **request, struct err *err)
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

static int run(struct setup *setup, const struct value *request)
{
	const char *model = setup->role.model;
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
		model = value_text(value_member(request, "model"));
	if (!talk_model(model, &setup->role, &options.model, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	options.counts_answers =
		value_integer(value_member(value_member(request, "budget"), "answers")) > 0;
	code = talk_open(&options, setup, &talk);
	if (code == CODE_DONE)
		code = talk_turn(talk, value_text(value_member(request, "task")), &outcome);
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

static bool serve(struct setup *setup, const struct value *request, struct err *err)
{
	const struct value *asked = value_member(request, "ask");
	auto_value struct value *own = value_new_array();

	for (size_t i = 0; i < setup->policy->asks.count; i++)
		value_append(own, value_new_text(setup->policy->asks.items[i]));
	for (size_t i = 0; i < value_count(asked); i++)
		value_append(own, value_copy(value_item(asked, i)));
	setup->asked = asked != NULL ? value_copy(asked) : NULL;
	return setup_serve_within(setup, value_member(request, "bounds"), err) &&
	       take_asks(setup, own, value_member(request, "asks"), err);
}

static int run_request(const struct value *request)
{
	const struct value *level = value_member(request, "level");
	const char *config = value_text(value_member(request, "config"));
	char level_text[LEVEL_TEXT];
	const char *words[WORDS_MAX + 1] = {"-C",
					    value_text(value_member(request, "workspace")),
					    "--agent",
					    value_text(value_member(request, "agent"))};
	size_t count = 4;
	struct options options;
	struct setup setup = {0};
	struct err err = {0};
	int code;

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
	if (words[1] == NULL || words[3] == NULL ||
	    value_text(value_member(request, "task")) == NULL)
		return verb_complain(CODE_USAGE,
				     "a request without workspace, agent or task");
	if (!options_parse(&options, rows, words, false, &err) ||
	    !setup_init(&setup, &options, &err) || !serve(&setup, request, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	else
		code = run(&setup, request);
	setup_fini(&setup);
	options_fini(&options);
	return code;
}

int delegate_role_run(int argc, char **argv)
{
	auto_value struct value *request = NULL;
	struct err err = {0};
	int fds[DELEGATE_ARGUMENTS - 1];

	if (argc != DELEGATE_ARGUMENTS)
		return CODE_USAGE;
	for (int i = 0; i < DELEGATE_ARGUMENTS - 1; i++) {
		fds[i] = fd_of_text(argv[i + 1]);
		if (fds[i] <= STDERR_FILENO || fcntl(fds[i], F_SETFD, FD_CLOEXEC) < 0)
			return CODE_USAGE;
	}
	if (!settle(fds[1], fds[2], fds[3], fds[4]))
		return CODE_FAILED;
	setup_hide_memory();
	if (!read_request(fds[0], &request, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	for (int i = 0; i < DELEGATE_ARGUMENTS - 1; i++)
		(void)close(fds[i]);
	take_environment(value_member(request, "environment"));
	return run_request(request);
}
