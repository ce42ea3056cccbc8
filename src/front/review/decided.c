/* decided: asks, and starts the verbs of reviews. */

#include "front/review/decided.h"

#include "base/fd.h"
#include "base/kernel.h"
#include "base/str.h"
#include "front/review/layered.h"
#include "process/program.h"
#include "view/review.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	WORDS_MAX = 80,
	OWN_WORDS = 14, /* of a command line, without those of the caller */
	ANSWER_MAX = 64,
};

/* Calling a verb. */

/*
 * Wait until PID has ended. When INTERRUPT (or -1) becomes readable, PID gets a SIGINT: Escape is
 * a signal for this process only. The terminal's Ctrl+C reaches both, and counts once.
 */
static bool wait_for(pid_t pid, int interrupt, int *status, struct err *err)
{
	auto_close int ends = kernel_pidfd_open(pid);
	struct pollfd watched[] = {{.fd = ends, .events = POLLIN},
				   {.fd = interrupt, .events = POLLIN}};

	while (ends >= 0 && interrupt >= 0) {
		if (poll(watched, 2, -1) < 0 && errno != EINTR)
			break;
		if (watched[0].revents != 0)
			break;
		if (watched[1].revents == 0)
			continue;
		(void)kill(pid, SIGINT);
		break;
	}
	while (waitpid(pid, status, 0) < 0) {
		if (errno != EINTR)
			return err_set(err, errno, "%s", strerror(errno));
	}
	return true;
}

/*
 * Run VERB with the descriptors FDS. Returns its exit code (128 and the signal when one ended
 * it), or -1 with ERR.
 */
static int call_verb(const struct setup *setup, const struct options *options,
		     const char *verb, const char *id, const char *const *words,
		     const int fds[3], int interrupt, struct err *err)
{
	const bool drops = strcmp(verb, "drop") == 0, looks = strcmp(verb, "review") == 0;
	const char *config = options_text(options, "config");
	const char *argv[WORDS_MAX + OWN_WORDS];
	struct program_start start = {
		.argv = argv,
		.environment = (const char *const *)environ,
		.fds = {fds[0], fds[1], fds[2]},
		.joins_group = true,
	};
	char level[16];
	size_t count = 0;
	int status;
	pid_t pid;

	argv[count++] = "/proc/self/exe";
	argv[count++] = verb;
	argv[count++] = "-C";
	argv[count++] = setup->workspace;
	if (!drops) {
		argv[count++] = "--agent";
		argv[count++] = setup->agent;
	}
	if (!drops && config != NULL) {
		argv[count++] = "--config";
		argv[count++] = config;
	}
	if (!drops && setup->level_is_asked) {
		(void)snprintf(level, sizeof(level), "L%u", setup->minimum_level);
		argv[count++] = "--minimum-level";
		argv[count++] = level;
	}
	if (!looks)
		argv[count++] = "--id";
	argv[count++] = id;
	for (size_t i = 0; words != NULL && words[i] != NULL; i++) {
		if (i == WORDS_MAX) {
			(void)err_set(err, E2BIG, "more than %d words", WORDS_MAX);
			return -1;
		}
		argv[count++] = words[i];
	}
	argv[count] = NULL;
	if (!program_start(&start, &pid, err))
		return -1;
	if (!wait_for(pid, interrupt, &status, err)) {
		(void)err_while(err, "glovebox %s", verb);
		return -1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : CODE_SIGNAL + WTERMSIG(status);
}

int decided_run(const struct setup *setup, const struct options *options,
		const char *verb, const char *id, const char *const *words, int interrupt,
		struct buf *out, struct err *err)
{
	auto_close int printed = -1;

	if (!fd_memory_file("printed", STR(""), &printed, err))
		return -1;
	const int code = call_verb(setup, options, verb, id, words,
				   (const int[]){-1, printed, printed}, interrupt, err);
	if (code >= 0 && (lseek(printed, 0, SEEK_SET) != 0 ||
			  !fd_read_all(printed, out, "its output", err)))
		return -1;
	return code;
}

/* The question at the end. */

/* The first letter of each word but "later", whose letter "land" has; "x": drop. */
static const char *meaning(const char *answer)
{
	static const char *const words[][2] = {{"l", "land"},
					       {"d", "diff"},
					       {"x", "drop"},
					       {"", "later"}};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasecmp(answer, words[i][0]) == 0 ||
		    strcasecmp(answer, words[i][1]) == 0)
			return words[i][1];
	}
	return NULL;
}

/* The word that the person typed; "later" at the end of the input; NULL: another word. */
static const char *read_answer(void)
{
	char answer[ANSWER_MAX] = "";
	size_t size = 0;
	char byte = 0;

	(void)fputs("land, diff, drop or later? [l/d/x/Enter] ", stderr);
	(void)fflush(stderr);
	/* Not by stdio: the verbs read the lines after this one. */
	while (byte != '\n') {
		if (read(STDIN_FILENO, &byte, 1) != 1) {
			(void)fputc('\n', stderr);
			return "later";
		}
		if (byte != '\n' && size + 1 < sizeof(answer))
			answer[size++] = byte;
	}
	answer[size] = '\0';
	while (size > 0 && strchr(" \t\r", answer[size - 1]) != NULL)
		answer[--size] = '\0';
	return meaning(answer + strspn(answer, " \t"));
}

static void ask(const struct setup *setup, const struct options *options, const char *id)
{
	static const char *const diff[] = {"--diff", NULL};
	const int terminal[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
	const struct sigaction ignored = {.sa_handler = SIG_IGN};
	const char *answer = NULL;
	struct sigaction before;
	bool over = false;
	struct err err;

	while (!over) {
		answer = read_answer();
		if (answer == NULL)
			continue;
		if (strcmp(answer, "later") == 0)
			return;
		const bool looks = strcmp(answer, "diff") == 0;
		/* Ctrl+C is meant for the verb, which takes it as always. */
		(void)sigaction(SIGINT, &ignored, &before);
		/* `land` and `drop` tell what they will do, and ask for a yes. */
		const int code = call_verb(setup, options, looks ? "review" : answer, id,
					   looks ? diff : NULL, terminal, -1, &err);

		(void)sigaction(SIGINT, &before, NULL);
		if (code < 0)
			(void)verb_complain(CODE_FAILED, "%s", err.text);
		/* Something that is never landed may stay in the review. */
		over = !looks && (code == CODE_DONE || code == CODE_DENIED || code < 0);
	}
}

void decided_end(struct setup *setup, const struct options *options, int code)
{
	char id[REVIEW_ID] = "";

	if (setup->review != NULL)
		memcpy(id, setup->review->meta.id, sizeof(id));
	if (!layered_end(setup, false, stderr) ||
	    (code > CODE_SIGNAL && code != CODE_CANCELLED) || isatty(STDIN_FILENO) == 0 ||
	    isatty(STDOUT_FILENO) == 0 || isatty(STDERR_FILENO) == 0)
		return;
	ask(setup, options, id);
}
