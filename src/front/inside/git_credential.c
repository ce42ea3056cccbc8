/* git_credential: reads git's question, and prints the answer. */

#include "front/inside/git_credential.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "front/verb.h"
#include "view/shape.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
	ARGUMENTS = 5,
	QUESTION_MAX = 64 << 10, /* git's lines are of 8 KiB, and some ten of them */
};

/* The value of NAME in QUESTION, lines "name=value"; the last one counts. */
static struct str value_of(struct str question, const char *name)
{
	struct str line, value = {0};

	while (str_next_line(&question, &line) && line.size > 0) {
		const size_t end = str_find(line, STR("="), 0);

		if (end != (size_t)-1 && str_is(str_part(line, 0, end), name))
			value = str_part(line, end + 1, line.size);
	}
	return value;
}

/* Does QUESTION ask for SERVER, "protocol://host" with the port where it is unusual? */
static bool is_for(struct str question, const char *server)
{
	const struct str protocol = value_of(question, "protocol");
	const struct str host = value_of(question, "host");
	struct buf asked;
	bool same;

	buf_init(&asked, QUESTION_MAX);
	(void)buf_addstr(&asked, protocol);
	(void)buf_adds(&asked, "://");
	(void)buf_addstr(&asked, host);
	same = asked.size == strlen(asked.data) && strcasecmp(asked.data, server) == 0;
	buf_fini(&asked);
	return same;
}

static int answer(char **argv)
{
	struct buf question;
	int code = CODE_DONE;

	buf_init(&question, QUESTION_MAX);
	if (!fd_read_all(STDIN_FILENO, &question, "git's question", NULL))
		code = CODE_FAILED;
	else if (is_for(buf_str(&question), argv[1]))
		(void)printf("username=%s\npassword=%s\n", argv[2], argv[3]);
	buf_fini(&question);
	return code;
}

bool git_credential_program(int argc, char **argv, int *code)
{
	if (argc == 0 || strcmp(path_base_name(argv[0]), SHAPE_GIT_CREDENTIAL_NAME) != 0)
		return false;
	if (argc != ARGUMENTS) {
		(void)fprintf(stderr,
			      SHAPE_GIT_CREDENTIAL_NAME ": git starts it in a cell\n");
		*code = CODE_USAGE;
	} else {
		*code = strcmp(argv[ARGUMENTS - 1], "get") == 0 ? answer(argv) : CODE_DONE;
	}
	return true;
}
