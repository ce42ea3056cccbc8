/* answers: collects lines of input and gives each to the session as an answer. */
#include "front/answers.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/memory.h"
#include "front/verb.h"

struct answers {
	struct session *session;
	struct watch watch;
	struct buf line; /* the part of a line that has come so far */
	bool skipping;   /* the rest of a line that is too long */
};

static void complain(const char *why)
{
	(void)verb_complain(CODE_FAILED, "an answer on standard input is none: %s", why);
}

static void take_line(struct answers *answers, struct str line)
{
	auto_value struct value *answer = NULL;
	struct err err = {0};
	const char *call;

	if (str_trim(line).size == 0)
		return;
	if (!value_parse(line, 0, &answer, &err)) {
		complain(err.text);
		return;
	}
	call = value_text(value_member(answer, "call"));
	if (call == NULL || value_kind(value_member(answer, "id")) != VALUE_INTEGER)
		complain("it needs \"call\" and \"id\", as the question had them");
	else if (!session_answer(answers->session, call,
				 value_integer(value_member(answer, "id")), answer, &err))
		complain(err.text);
}

static void take_bytes(struct answers *answers, struct str bytes)
{
	while (bytes.size > 0) {
		const size_t end = str_find(bytes, STR("\n"), 0);
		const struct str piece = str_part(bytes, 0, end);

		if (!answers->skipping && !buf_addstr(&answers->line, piece)) {
			answers->skipping = true;
			complain("the line is too long");
		}
		if (end == (size_t)-1)
			return;
		if (!answers->skipping)
			take_line(answers, buf_str(&answers->line));
		buf_clear(&answers->line);
		answers->skipping = false;
		bytes = str_part(bytes, end + 1, bytes.size);
	}
}

static void input_ready(struct watch *watch, short events)
{
	struct answers *answers = watch->context;
	char bytes[4096];
	ssize_t n = read(watch->fd, bytes, sizeof(bytes));

	(void)events;
	if (n > 0)
		take_bytes(answers, (struct str){bytes, (size_t)n});
	if (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)))
		return;
	loop_remove(watch);
	session_hear_nobody(answers->session);
}

struct answers *answers_open(int fd, struct session *session)
{
	struct answers *answers = memory_alloc(sizeof(*answers));

	answers->session = session;
	buf_init(&answers->line, ANSWERS_LINE_MAX);
	answers->watch = (struct watch){.fd = fd,
					.events = POLLIN,
					.ready = input_ready,
					.context = answers};
	loop_add(session_loop(session), &answers->watch);
	return answers;
}

void answers_close(struct answers *answers)
{
	if (answers == NULL)
		return;
	loop_remove(&answers->watch);
	buf_fini(&answers->line);
	free(answers);
}
