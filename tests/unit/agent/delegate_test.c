/*
 * delegate: what becomes of a process that does not do what it should. The delegates are this
 * very program, which main lets play them.
 */
#include "agent/delegate.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

#define BEGAN \
	"{\"event\":\"session_began\",\"n\":1,\"session\":\"0123456789ab\",\"agent\":\"coder\"}\n"
#define SAID                                                                                         \
	"{\"event\":\"message\",\"n\":2,\"parts\":[{\"kind\":\"text\",\"text\":\" It is done. \"}]," \
	"\"usage\":{\"input\":10,\"output\":2,\"money\":0.5,\"money_known\":true}}\n"
#define ENDED                                                                        \
	"{\"event\":\"turn_ended\",\"n\":3,\"reason\":\"stopped\",\"iterations\":1," \
	"\"usage\":{\"input\":15,\"output\":2,\"money\":0.75,\"money_known\":true}}\n"

/* What a delegate prints and how it ends, by its request. */
static _Noreturn void play(char **argv)
{
	const int request = fd_of_text(argv[1]), events = fd_of_text(argv[2]);
	const int complaints = fd_of_text(argv[3]);
	static char zeros[1 << 20];
	auto_value struct value *part = NULL;
	struct buf text;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	buf_init(&text, 4096);
	if (!fd_read_all(request, &text, "request", NULL) ||
	    !value_parse(buf_str(&text), 0, &part, NULL))
		_exit(9);
	buf_fini(&text);
	struct str print = value_str(value_member(part, "print"));
	struct str complain = value_str(value_member(part, "complain"));
	(void)fd_write_all(complaints, complain.data, complain.size, NULL);
	(void)fd_write_all(events, print.data, print.size, NULL);
	while (value_is_true(value_member(part, "floods"))) {
		memset(zeros, 'x', sizeof(zeros));
		if (!fd_write_all(events, zeros, sizeof(zeros), NULL))
			_exit(8);
	}
	if (value_is_true(value_member(part, "deaf")))
		(void)signal(SIGTERM, SIG_IGN);
	if (value_is_true(value_member(part, "hangs"))) {
		(void)fd_write_all(events, "\n", 0, NULL);
		for (;;)
			(void)pause();
	}
	if (value_is_true(value_member(part, "crashes")))
		(void)kill(getpid(), SIGKILL);
	_exit((int)value_integer(value_member(part, "code")));
}

struct seen {
	struct model_usage used;
	size_t shown, ended;
};

static void show(void *context, struct value *child)
{
	struct seen *seen = context;

	assert_non_null(value_text(value_member(child, "session")));
	assert_non_null(value_member(child, "event_of"));
	seen->shown++;
}

static void used(void *context, const struct model_usage *usage)
{
	struct seen *seen = context;

	seen->used.input += usage->input;
	seen->used.output += usage->output;
	seen->used.money += usage->money;
}

static void ended(void *context, struct delegate *delegate)
{
	struct seen *seen = context;

	(void)delegate;
	seen->ended++;
}

/* A delegate that plays PART (JSON). */
static struct delegate *start(struct loop *loop, const char *part, struct seen *seen)
{
	auto_value struct value *request = NULL;
	struct delegate *delegate = NULL;
	struct err err = {0};

	*seen = (struct seen){0};
	assert_true(value_parse(str_of(part), 0, &request, &err));
	const struct delegate_options options = {.loop = loop,
						 .request = request,
						 .show = show,
						 .used = used,
						 .ended = ended,
						 .context = seen};
	if (!delegate_start(&options, &delegate, &err))
		fail_msg("%s", err.text);
	return delegate;
}

/* PART as a request, run to its end; its fault ("" when there is none) holds WANTED. */
static void assert_fault(const char *part, const char *wanted)
{
	struct loop *loop = loop_new();
	struct seen seen;
	struct delegate *delegate = start(loop, part, &seen);
	const char *fault;

	while (seen.ended == 0)
		loop_turn(loop, clock_now_ms() + 1000);
	fault = delegate_fault(delegate);
	if (!strstr(fault ? fault : "", wanted) || (!wanted[0] && fault))
		fail_msg("the fault is \"%s\", not \"%s\"", fault ? fault : "", wanted);
	delegate_free(delegate);
	loop_free(loop);
}

/* TEXT as a member of a request. */
static char *printing(const char *text, const char *more)
{
	struct buf part;

	buf_init(&part, 1 << 16);
	(void)buf_adds(&part, "{\"print\":");
	(void)value_quote(str_of(text), &part);
	(void)buf_addf(&part, "%s}", more);
	return buf_take(&part);
}

static void a_run_becomes_a_report(void **state)
{
	auto_free char *part = printing(BEGAN SAID ENDED, "");
	struct loop *loop = loop_new();
	struct seen seen;
	struct delegate *delegate = start(loop, part, &seen);
	const struct delegate_report *report = delegate_report_of(delegate);

	(void)state;
	while (seen.ended == 0)
		loop_turn(loop, clock_now_ms() + 1000);
	assert_null(delegate_fault(delegate));
	assert_string_equal(report->session, "0123456789ab");
	assert_string_equal(report->said.data, "It is done.");
	assert_string_equal(value_text(value_member(report->ended, "reason")), "stopped");
	assert_int_equal(report->answers, 1);
	assert_int_equal(seen.shown, 3);
	/* What it used beside its answers is counted as well. */
	assert_int_equal(seen.used.input, 15);
	assert_true(seen.used.money == 0.75);
	delegate_free(delegate);
	loop_free(loop);
}

static void whatever_goes_wrong_is_said(void **state)
{
	static const char *const rows[][3] = {
		{"", ",\"code\":1,\"complain\":\"one\\nglovebox: no model\\n\"",
		 "ended with exit code 1 before it had reported: no model"},
		{BEGAN, ",\"crashes\":true", "ended by signal 9 before it had reported"},
		{BEGAN SAID ENDED, ",\"crashes\":true", "ended by signal 9"},
		{"Segmentation fault\n", ",\"code\":0", "what is no event"},
		{"{\"event\":\"surprise\"}\n", ",\"code\":0", "an event of no kind"},
		{"[]\n", ",\"code\":0", "an event of no kind"},
		{SAID, ",\"code\":0", "told of things before it began"},
		{BEGAN BEGAN, ",\"code\":0", "began a session in a way that is not ours"},
		{"{\"event\":\"session_began\",\"session\":\"../../etc/x\"}\n",
		 ",\"code\":0", "in a way that is not ours"},
		{"", ",\"floods\":true", "a line of more than 64 MiB"},
		{"garbage\n", ",\"hangs\":true,\"deaf\":true", "what is no event"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_free char *part = printing(rows[i][0], rows[i][1]);

		assert_fault(part, rows[i][2]);
	}
	auto_free char *fine = printing(BEGAN SAID ENDED, ",\"code\":3");
	assert_fault(fine, "");
}

static void one_that_hangs_is_ended_in_time(void **state)
{
	static const char *const ways[] = {",\"hangs\":true",
					   ",\"hangs\":true,\"deaf\":true"};

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		auto_free char *part = printing(BEGAN, ways[i]);
		struct loop *loop = loop_new();
		struct seen seen;
		struct delegate *delegate = start(loop, part, &seen);

		while (seen.shown == 0)
			loop_turn(loop, clock_now_ms() + 1000);
		delegate_end(delegate, clock_now_ms() + 50);
		assert_non_null(strstr(delegate_fault(delegate), "ended by signal"));
		assert_int_equal(seen.ended, 0);
		delegate_free(delegate);
		loop_free(loop);
	}
}

static void one_that_is_let_go_is_gone(void **state)
{
	auto_free char *part = printing(BEGAN, ",\"hangs\":true,\"deaf\":true");
	struct loop *loop = loop_new();
	struct seen seen;

	(void)state;
	delegate_free(start(loop, part, &seen));
	delegate_free(NULL);
	loop_free(loop);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_becomes_a_report),
		cmocka_unit_test(whatever_goes_wrong_is_said),
		cmocka_unit_test(one_that_hangs_is_ended_in_time),
		cmocka_unit_test(one_that_is_let_go_is_gone),
	};

	if (argc == DELEGATE_ARGUMENTS && strcmp(argv[0], DELEGATE_ROLE) == 0)
		play(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
