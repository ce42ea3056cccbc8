/*
 * bash_shell: a text gives the same in a shell that was started ahead, in one started for it,
 * and in a plain `bash -c`.
 */
#include "hand.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/path.h"
#include "process/follow.h"
#include "tools/shell.h"
#include "tools/tools.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { OUTPUT_MAX = 1 << 20, LONG_TEXT = 300 << 10 };

enum way { PLAIN, COLD, READY };

/* What may differ from `bash -c` on standard error. */
enum difference {
	SAME,
	PREFIX, /* of a syntax error: "bash: eval: line 2" for "bash: -c: line 2" */
	ERRORS, /* named in the row */
	/* the last command, that -c becomes, is a child: its signal is told as 128 + n, in words */
	ENDING,
};

struct outcome {
	struct buf out, error;
	int exit_code, signal;
	char folder[256]; /* that the shell told last; "" when it told none */
};

static const struct {
	const char *text;
	enum difference difference;
} texts[] = {
	{"echo hello"},
	{"echo out; echo err >&2"},
	{"exit 7"},
	{"false"},
	{"true; (exit 3)"},
	{"printf '%s\\n' a b | tr a-z A-Z"},
	{"set -e; echo a; false; echo b"},
	{"set -u; echo a; echo $missing; echo b"},
	{"set -o pipefail; false | true; echo $?"},
	{"set -n; echo never"},
	{"set -x; echo traced", ERRORS},    /* one more + */
	{"echo a\nset -v\necho b", ERRORS}, /* the trap's own line */
	{"echo $0 $# \"$@\""},
	{"echo $-"},
	{"echo $LINENO\necho $LINENO"},
	{"echo a\nno-such-command-here\necho b"},
	{"echo a\n\n\ncd /no/such/folder"},
	{"if true; then echo a", PREFIX},
	{"echo a\necho $((1 +))\necho b"},
	{"echo a; )", PREFIX},
	{"; ls", PREFIX},
	{"echo 'unterminated", PREFIX},
	{"echo $(echo inner; exit 4); echo $?"},
	{"cat <<END\nline $((1 + 1))\nEND"},
	{"cat <<'END'\n$no\nEND\necho after"},
	{"cat <<END\nnever ended", ERRORS}, /* the warning names the line otherwise */
	{"trap 'echo trapped' EXIT; echo body"},
	{"trap 'echo $?' ERR; false; true"},
	{"trap 'echo got' USR1; kill -USR1 $$; echo on"},
	{"trap '' TERM; kill -TERM $$; echo alive"},
	{"kill -TERM $$"},
	{"kill -KILL $$"},
	{"kill -SEGV $$"},
	{"kill -PIPE $$; echo on"},
	/* One program, which the shell becomes. */
	{"bash -c 'kill -KILL $$'"},
	{"printenv _"},
	{"ls -d / /no/such/file 'a b' ~"},
	{"/bin/echo [a-c]* {x,y}  # no such names"},
	{"sh -c 'exit 9'\n"},
	{"cat /dev/stdin"},
	/* And one that it does not: assignments are nobody's argument. */
	{"x=1 bash -c 'kill -KILL $$'", ENDING},
	{"(bash -c 'kill -KILL $$'); echo $?", ERRORS}, /* the number of the process */
	{"exec echo replaced"},
	{"exec 3>&1; echo three >&3"},
	{"exec >/dev/null; echo gone"},
	{"return 5"},
	{"f() { return 6; }; f; echo $?; return 2; echo on"},
	{"alias x='echo alias'\nx"},
	{"shopt -s expand_aliases\nalias x='echo alias'\nx"},
	{"sleep 0 & wait; echo $?"},
	{"(echo sub; exit 9); echo $?"},
	{"echo a; exit 300"},
	{"read line; echo \"$? [$line]\""},
	{"echo ${x:?is missing}; echo on"},
	{"a=(1 2 3); echo ${a[@]:1} ${#a[@]}"},
	{"echo {1..3} ~+ \"$PWD\""},
	{"echo \"[$OLDPWD]\"; declare -p OLDPWD"},
	{"declare -p PWD SHLVL; echo $BASH_SUBSHELL"},
	{"set -- a b; shift; echo $1"},
	{"mkdir -p d; cd d; pwd; echo $OLDPWD | tail -c 2"},
	{"cd /; pwd"},
	{"umask; ulimit -c"},
	{"ps -o pgid= -p $$ | tr -d ' ' | grep -qx $$ && echo own group"},
	{"jobs; echo $?"},
	{"shopt | sort | head -40; set -o"},
	{"export A=1; env | grep ^A="},
	{"env | sort | grep -v '^_='"},
	/* A second may begin between the shell's start and its words. */
	{"echo $((SECONDS < 30)) $RANDOM$RANDOM | cut -d' ' -f1"},
	{"echo $? [$!] [$REPLY] [$OPTIND]"},
	{"# only a comment"},
	{""},
	{"\n\n"},
	{"echo a \\\n b"},
	{"[ a = b ]"},
	{"set -e; trap 'echo end' EXIT; false"},
	{"exit"},
	{"false; exit"},
	{"source /dev/null; echo $?"},
	{"eval 'echo x; false'; echo $?"},
	{"printf 'no line end'"},
	{"printf '\\377\\200' | od -An -tx1"},
	{"echo \xc3\xa9t\xc3\xa9 | wc -m"},
	{"[[ abc =~ ^a(.)c ]] && echo ${BASH_REMATCH[1]}"},
	{"type -t cd; command -v echo"},
	{"cat < /dev/stdin; echo $?"},
};

static void outcome_fini(struct outcome *outcome)
{
	buf_fini(&outcome->out);
	buf_fini(&outcome->error);
}

static void follow(struct program_run *run, struct outcome *outcome)
{
	struct err err;

	assert_true(follow_program(run, &err));
	buf_init(&outcome->out, OUTPUT_MAX);
	buf_init(&outcome->error, OUTPUT_MAX);
	program_output_text(&run->out, &outcome->out);
	program_output_text(&run->error, &outcome->error);
	outcome->exit_code = run->exit_code;
	outcome->signal = run->signal;
	outcome->folder[0] = '\0';
}

/* The environment that a bash of ours has, for a plain one beside it. */
static const char **environment_of(const struct call *call)
{
	struct bash_shell shell;
	const char **list;
	struct err err;

	bash_shell_init(&shell);
	assert_true(bash_shell_start(&shell, call, call->workspace, -1, &err));
	list = shell.environment;
	shell.environment = NULL;
	bash_shell_fini(&shell);
	return list;
}

static void run_plain(const struct call *call, const char *text, struct outcome *outcome)
{
	auto_free const char **environment = environment_of(call);
	const char *const argv[] = {"bash", "--noprofile", "--norc", "-c", text, NULL};
	struct program_run run;

	program_run_init(&run);
	run.start.argv = argv;
	run.start.environment = environment;
	run.start.folder = call->workspace;
	follow(&run, outcome);
	program_run_fini(&run);
}

static void run_shell(struct bash_shell *shell, const struct bash_text *text,
		      struct outcome *outcome)
{
	struct program_run run;
	struct err err;
	ssize_t size;

	assert_true(bash_shell_go(shell, text, &err));
	program_run_init(&run);
	run.ahead = bash_shell_take_program(shell);
	follow(&run, outcome);
	size = read(shell->folder_fd, outcome->folder, sizeof(outcome->folder) - 1);
	outcome->folder[size > 0 ? size - 1 : 0] = '\0';
	program_run_fini(&run);
}

/* Until PID sleeps in a read: it has done all it does ahead. */
static void wait_until_ready(pid_t pid)
{
	char path[64], state[256] = "";

	(void)snprintf(path, sizeof(path), "/proc/%d/wchan", (int)pid);
	while (strstr(state, "pipe_read") == NULL) {
		FILE *file = fopen(path, "r");
		assert_non_null(file);
		if (fgets(state, sizeof(state), file) == NULL)
			state[0] = '\0';
		(void)fclose(file);
		/* A kernel that shows no names there shows this. */
		if (strcmp(state, "0") == 0)
			return;
	}
}

/* As a worker prepares: in the workspace. */
static bool start_ahead(struct bash_shell *ready, const struct call *call)
{
	struct call here = *call;
	struct err err;

	if (here.folder == NULL)
		here.folder = here.workspace;
	return bash_shell_start_ahead(ready, &here, &err);
}

static void run_way(enum way way, const struct call *call, const struct bash_text *text,
		    struct outcome *outcome)
{
	struct bash_shell shell, ready;
	struct err err;

	bash_shell_init(&shell);
	bash_shell_init(&ready);
	if (way == COLD) {
		assert_true(bash_shell_start(&shell, call, text->folder, -1, &err));
	} else {
		assert_true(start_ahead(&ready, call));
		wait_until_ready(ready.program.pid);
		assert_true(bash_shell_take(&ready, &shell, text));
	}
	run_shell(&shell, text, outcome);
	bash_shell_fini(&shell);
	bash_shell_fini(&ready);
}

static struct bash_text text_of(const struct hand *hand, const char *text)
{
	return (struct bash_text){
		.text = str_of(text),
		.folder = hand->workspace,
		.environment = hand->call.environment,
	};
}

/* "bash: eval: line 2: …" as "bash: -c: line 2: …". */
static void plain_prefix(const struct buf *error, struct buf *plain)
{
	struct str rest = buf_str(error);

	for (;;) {
		size_t at = str_find(rest, STR("bash: eval: line"), 0);
		if (at == (size_t)-1)
			break;
		(void)buf_addstr(plain, str_part(rest, 0, at));
		(void)buf_adds(plain, "bash: -c: line");
		rest = str_part(rest, at + strlen("bash: eval: line"), rest.size);
	}
	(void)buf_addstr(plain, rest);
}

static bool is_same(const char *text, enum difference difference,
		    const struct outcome *plain, const struct outcome *ours)
{
	struct buf error;

	bool same;

	buf_init(&error, OUTPUT_MAX);
	plain_prefix(&ours->error, &error);
	same = strcmp(plain->out.data, ours->out.data) == 0 &&
	       (difference == ENDING ? ours->exit_code == 128 + plain->signal
				     : plain->exit_code == ours->exit_code &&
					       plain->signal == ours->signal) &&
	       (difference != SAME || strcmp(plain->error.data, ours->error.data) == 0) &&
	       (difference != PREFIX || strcmp(plain->error.data, error.data) == 0);
	if (!same)
		print_error("--- %s\n-c: code %d signal %d\n%s%sours: code %d signal %d\n%s%s",
			    text, plain->exit_code, plain->signal, plain->out.data,
			    plain->error.data, ours->exit_code, ours->signal,
			    ours->out.data, ours->error.data);
	buf_fini(&error);
	return same;
}

static void every_text_is_as_with_c(void **state)
{
	struct hand *hand = *state;
	size_t different = 0;

	for (size_t i = 0; i < COUNT(texts); i++) {
		const struct bash_text text = text_of(hand, texts[i].text);
		struct outcome plain, cold, ready;

		run_plain(&hand->call, texts[i].text, &plain);
		run_way(COLD, &hand->call, &text, &cold);
		run_way(READY, &hand->call, &text, &ready);
		different += !is_same(texts[i].text, texts[i].difference, &plain, &cold) ||
			     !is_same(texts[i].text, texts[i].difference, &plain, &ready);
		/* And the two of ours differ in nothing at all. */
		if (texts[i].difference == SAME || texts[i].difference == PREFIX)
			assert_string_equal(cold.error.data, ready.error.data);
		assert_string_equal(cold.folder, ready.folder);
		outcome_fini(&plain);
		outcome_fini(&cold);
		outcome_fini(&ready);
	}
	assert_int_equal(different, 0);
}

static void a_text_longer_than_an_argument_runs(void **state)
{
	struct hand *hand = *state;
	struct outcome outcome;
	struct buf long_text;

	buf_init(&long_text, LONG_TEXT + 64);
	(void)buf_adds(&long_text, "x='");
	while (long_text.size < LONG_TEXT)
		(void)buf_adds(&long_text, "0123456789abcdef");
	(void)buf_adds(&long_text, "'\necho ${#x}");
	const struct bash_text text = text_of(hand, long_text.data);
	for (enum way way = COLD; way <= READY; way++) {
		run_way(way, &hand->call, &text, &outcome);
		assert_int_equal(strtol(outcome.out.data, NULL, 10),
				 (LONG_TEXT - 3 + 15) / 16 * 16);
		outcome_fini(&outcome);
	}
	buf_fini(&long_text);
}

static void a_ready_shell_takes_another_folder(void **state)
{
	struct hand *hand = *state;
	struct bash_text text =
		text_of(hand, "pwd; echo \"$PWD\"; declare -p OLDPWD; cd ..");
	struct outcome cold, ready;
	char folder[128];

	(void)snprintf(folder, sizeof(folder), "%s/it's a folder", hand->workspace);
	assert_int_equal(mkdir(folder, 0755), 0);
	text.folder = folder;
	run_way(COLD, &hand->call, &text, &cold);
	run_way(READY, &hand->call, &text, &ready);
	assert_string_equal(cold.out.data, ready.out.data);
	assert_true(strncmp(ready.out.data, folder, strlen(folder)) == 0);
	assert_string_equal(ready.folder, hand->workspace);
	outcome_fini(&cold);
	outcome_fini(&ready);
}

static void a_folder_made_anew_is_entered_anew(void **state)
{
	struct hand *hand = *state;
	struct bash_shell shell, ready;
	struct outcome outcome;
	char folder[128];
	struct call call = hand->call;

	(void)snprintf(folder, sizeof(folder), "%s/again", hand->workspace);
	assert_int_equal(mkdir(folder, 0755), 0);
	call.folder = folder;
	bash_shell_init(&shell);
	bash_shell_init(&ready);
	assert_true(start_ahead(&ready, &call));
	wait_until_ready(ready.program.pid);
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(mkdir(folder, 0755), 0);
	struct bash_text text = text_of(hand, "touch here && ls");
	text.folder = folder;
	assert_true(bash_shell_take(&ready, &shell, &text));
	run_shell(&shell, &text, &outcome);
	assert_string_equal(outcome.out.data, "here\n");
	outcome_fini(&outcome);
	bash_shell_fini(&shell);
}

static void a_ready_shell_takes_a_changed_environment(void **state)
{
	struct hand *hand = *state;
	static const char *const now[] = {"PATH=/usr/bin:/bin",
					  "TOKEN=it's $HOME \"new\"", "TMPDIR=/tmp", NULL};
	struct bash_text text =
		text_of(hand, "env | sort | grep -v ^_=; echo \"[$HOME]\"; ${X:+echo X}");
	struct outcome cold, ready;
	struct call changed = hand->call;

	changed.environment = now;
	text.environment = now;
	run_way(COLD, &changed, &text, &cold);
	run_way(READY, &hand->call, &text, &ready);
	assert_non_null(strstr(ready.out.data, "TOKEN=it's $HOME \"new\"\n"));
	assert_string_equal(cold.out.data, ready.out.data);
	outcome_fini(&cold);
	outcome_fini(&ready);
}

static void what_only_a_new_shell_obeys_is_left_to_one(void **state)
{
	struct hand *hand = *state;
	static const char *const now[] = {"PATH=/usr/bin:/bin", "BASH_ENV=/dev/null", NULL};
	struct bash_shell shell, ready;
	struct bash_text text = text_of(hand, "true");
	struct call changed = hand->call;

	changed.environment = now;
	bash_shell_init(&shell);
	bash_shell_init(&ready);
	assert_false(start_ahead(&ready, &changed));
	text.environment = now;
	assert_true(start_ahead(&ready, &hand->call));
	assert_false(bash_shell_take(&ready, &shell, &text));
	assert_int_equal(ready.program.pid, 0);
}

static void a_shell_that_was_killed_is_not_taken(void **state)
{
	struct hand *hand = *state;
	const struct bash_text text = text_of(hand, "true");
	struct bash_shell shell, ready;
	siginfo_t info;

	bash_shell_init(&shell);
	bash_shell_init(&ready);
	assert_true(start_ahead(&ready, &hand->call));
	(void)kill(ready.program.pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)ready.program.pid, &info, WEXITED | WNOWAIT),
			 0);
	assert_false(bash_shell_take(&ready, &shell, &text));
	assert_int_equal(ready.text_fd, -1);
}

static void one_nobody_wants_leaves_nothing(void **state)
{
	struct hand *hand = *state;
	struct bash_shell ready;
	pid_t pid;

	bash_shell_init(&ready);
	assert_true(start_ahead(&ready, &hand->call));
	pid = ready.program.pid;
	bash_shell_fini(&ready);
	assert_int_equal(kill(pid, 0), -1);
}

/* The call of a hand is filled in by its first run. */
static int set_up(void **state)
{
	int code = hand_set_up(state);

	if (code == 0)
		hand_run(*state, &bash_tool, "{\"command\": \"true\"}");
	return code;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, hand_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(every_text_is_as_with_c),
		TEST(a_text_longer_than_an_argument_runs),
		TEST(a_ready_shell_takes_another_folder),
		TEST(a_folder_made_anew_is_entered_anew),
		TEST(a_ready_shell_takes_a_changed_environment),
		TEST(what_only_a_new_shell_obeys_is_left_to_one),
		TEST(a_shell_that_was_killed_is_not_taken),
		TEST(one_nobody_wants_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
