/* bash: the wrapper, the folder that carries over, the bounds of the answer, refusals. */
#include "hand.h"

#include "base/memory.h"
#include "tools/bash.h"
#include "tools/tools.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void prints_output_then_one_closing_line(void **state)
{
	struct hand *hand = *state;

	hand_run(hand, &bash_tool, "{\"command\": \"echo hello\"}");
	hand_assert_status(hand, RESULT_DONE);
	assert_int_equal(hand->result.exit_code, 0);
	hand_assert_says(hand, "hello\n[exit code 0, ");
	hand_assert_says(hand, "; in .]\n");
	hand_assert_says_not(hand, "STDERR");
}

static void keeps_both_streams_apart_and_says_when_there_is_none(void **state)
{
	struct hand *hand = *state;

	hand_run(hand, &bash_tool, "{\"command\": \"echo out; echo err >&2; exit 7\"}");
	hand_assert_says(hand, "out\nSTDERR:\nerr\n[exit code 7, ");
	assert_int_equal(hand->result.exit_code, 7);
	hand_assert_status(hand, RESULT_DONE);
	hand_run(hand, &bash_tool, "{\"command\": \"true\"}");
	hand_assert_says(hand, "(command completed with no output)\n[exit code 0");
}

static void explains_exit_code_1_where_it_is_no_failure(void **state)
{
	struct hand *hand = *state;

	hand_puts(hand, "a", "x\n");
	hand_puts(hand, "b", "y\n");
	hand_run(hand, &bash_tool, "{\"command\": \"grep nothing a\"}");
	hand_assert_says(hand, "exit code 1 (no match)");
	hand_run(hand, &bash_tool, "{\"command\": \"diff -q a b\"}");
	hand_assert_says(hand, "exit code 1 (the files differ)");
	hand_run(hand, &bash_tool, "{\"command\": \"test -e missing\"}");
	hand_assert_says(hand, "exit code 1 (false)");
	hand_run(hand, &bash_tool, "{\"command\": \"false\"}");
	hand_assert_says(hand, "exit code 1,");
}

static void the_folder_carries_over_inside_the_roots_only(void **state)
{
	struct hand *hand = *state;

	hand_puts(hand, "src/deep/file", "x");
	hand_run(hand, &bash_tool, "{\"command\": \"cd src/deep\"}");
	hand_assert_says(hand, "in .; the next command starts in src/deep]");
	hand_run(hand, &bash_tool, "{\"command\": \"ls\"}");
	hand_assert_says(hand, "file\n");
	hand_assert_says(hand, "in src/deep]");
	hand_run(hand, &bash_tool, "{\"command\": \"cd /usr\"}");
	hand_assert_says_not(hand, "next command");
	hand_run(hand, &bash_tool, "{\"command\": \"pwd\"}");
	hand_assert_says(hand, "/src/deep\n");
	hand_run(hand, &bash_tool, "{\"command\": \"pwd\", \"workdir\": \"src\"}");
	hand_assert_says(hand, "/ws/src\n");
	hand_run(hand, &bash_tool,
		 "{\"command\": \"echo /etc >&230; cat missing; exit 3\"}");
	hand_assert_says_not(hand, "next command");
}

static void a_folder_that_is_gone_gives_way_to_the_workspace(void **state)
{
	struct hand *hand = *state;

	hand_run(hand, &bash_tool, "{\"command\": \"mkdir tmp && cd tmp\"}");
	hand_run(hand, &bash_tool, "{\"command\": \"rmdir ../tmp\"}");
	hand_run(hand, &bash_tool, "{\"command\": \"pwd\"}");
	hand_assert_says(hand, "the folder of the last command is gone");
	hand_run(hand, &bash_tool, "{\"command\": \"pwd\", \"workdir\": \"nowhere\"}");
	hand_assert_status(hand, RESULT_FAILED);
	hand_assert_says(hand, "nowhere does not exist");
}

static void its_own_environment_keeps_programs_quiet(void **state)
{
	struct hand *hand = *state;

	hand_run(hand, &bash_tool, "{\"command\": \"env | sort\"}");
	hand_assert_says(hand, "GLOVEBOX=1\n");
	hand_assert_says(hand, "NO_COLOR=1\n");
	hand_assert_says(hand, "PAGER=cat\n");
	hand_assert_says(hand, "SYSTEMD_PAGER=\n");
	hand_assert_says(hand, "TERM=dumb\n");
	hand_assert_says(hand, "HOME=/tmp\n");
	hand_assert_says_not(hand, "GLOVEBOX_TEXT");
	hand_run(hand, &bash_tool, "{\"command\": \"export X=1; echo $SECONDS\"}");
	hand_assert_says(hand, "0\n");
	hand_run(hand, &bash_tool, "{\"command\": \"echo \\\"[$X]\\\"\"}");
	hand_assert_says(hand, "[]\n");
}

static void texts_longer_than_any_argument_work(void **state)
{
	struct hand *hand = *state;
	struct buf json;

	buf_init(&json, 4 << 20);
	buf_adds(&json, "{\"command\": \"x='");
	for (int i = 0; i < 400000; i++)
		buf_addc(&json, 'a');
	buf_adds(&json, "'; echo ${#x}\"}");
	hand_run_for(hand, &bash_tool, 30000, json.data);
	hand_assert_says(hand, "400000\n[exit code 0");
	buf_fini(&json);
}

static void input_is_empty_and_nothing_waits_for_it(void **state)
{
	struct hand *hand = *state;

	hand_run(hand, &bash_tool, "{\"command\": \"cat; read x; echo $?\"}");
	hand_assert_says(hand, "1\n[exit code 0");
}

static void a_deadline_keeps_what_was_printed(void **state)
{
	struct hand *hand = *state;

	hand_run_for(hand, &bash_tool, 3000,
		     "{\"command\": \"echo before; (trap '' TERM; sleep 600) & "
		     "sleep 600\"}");
	hand_assert_status(hand, RESULT_TIMED_OUT);
	hand_assert_says(hand, "before\n[timed out after ");
	hand_assert_says(hand, "at most 600");
}

static void what_is_left_running_is_ended_and_told(void **state)
{
	struct hand *hand = *state;

	hand_run(hand, &bash_tool, "{\"command\": \"setsid sleep 60 & echo started\"}");
	hand_assert_status(hand, RESULT_DONE);
	hand_assert_says(hand, "1 process it left running was ended");
}

static void long_output_is_cut_and_its_rest_is_kept(void **state)
{
	struct hand *hand = *state;
	const char *spill;
	size_t size;
	auto_free char *kept = NULL;

	hand_run(hand, &bash_tool, "{\"command\": \"seq 1 50000\"}");
	hand_assert_status(hand, RESULT_DONE);
	assert_true(hand->result.text.size < 8500);
	assert_true(hand->result.left_out_bytes > 200000);
	hand_assert_says(hand, "1\n2\n3\n");
	hand_assert_says(hand, "49999\n50000\n[exit code 0");
	hand_assert_says(hand, "bytes left out …]");
	hand_assert_says(hand, "read_file {\"path\": \"");
	spill = value_text(value_member(hand->result.details, "spill"));
	assert_non_null(spill);
	assert_true(strstr(spill, "/glovebox/1.log") != NULL);
	kept = hand_read(hand, "glovebox/1.log", &size);
	assert_int_equal(size, 288894);
	assert_int_equal(strncmp(kept, "1\n2\n", 4), 0);
}

static void short_output_leaves_no_file(void **state)
{
	struct hand *hand = *state;
	size_t size;
	auto_free char *kept = NULL;

	hand_run(hand, &bash_tool, "{\"command\": \"seq 1 100\"}");
	kept = hand_read(hand, "glovebox/1.log", &size);
	assert_null(kept);
}

static void the_newest_sixteen_spills_stay(void **state)
{
	struct hand *hand = *state;
	size_t size;

	for (int i = 0; i < 18; i++) {
		hand_run(hand, &bash_tool, "{\"command\": \"yes | head -c 40000\"}");
		hand_assert_status(hand, RESULT_DONE);
	}
	auto_free char *second = hand_read(hand, "glovebox/2.log", &size);
	auto_free char *third = hand_read(hand, "glovebox/3.log", &size);

	assert_null(second);
	assert_non_null(third);
}

static void a_long_line_and_colours_do_not_reach_the_model(void **state)
{
	struct hand *hand = *state;

	hand_run(hand, &bash_tool,
		 "{\"command\": \"head -c 5000 /dev/zero | tr '\\\\0' x; echo; "
		 "printf '\\\\033[31mred\\\\033[0m\\\\n'; printf '10%%%%\\\\r100%%%%\\\\n'\"}");
	hand_assert_says(hand, "\nred\n");
	hand_assert_says(hand, "\n100%\n");
	hand_assert_says_not(hand, "10%\r");
	assert_true(hand->result.text.size < 2500);
}

static void both_streams_share_the_room(void **state)
{
	struct hand *hand = *state;

	hand_run(hand, &bash_tool, "{\"command\": \"seq 1 20000; seq 1 20000 >&2\"}");
	assert_true(hand->result.text.size < 8500);
	hand_assert_says(hand, "20000\nSTDERR:\n1\n2\n");
	hand_assert_says(hand, "\n20000\n[exit code 0");
}

static void signals_are_told_by_name(void **state)
{
	struct hand *hand = *state;

	hand_run(hand, &bash_tool, "{\"command\": \"kill -SEGV $$\"}");
	hand_assert_says(hand, "[ended by signal 11 (SIGSEGV)");
	assert_int_equal(hand->result.signal, 11);
	assert_int_equal(hand->result.exit_code, -1);
}

static void a_nul_byte_is_refused(void **state)
{
	struct hand *hand = *state;

	hand_run(hand, &bash_tool, "{\"command\": \"echo \\u0000\"}");
	hand_assert_status(hand, RESULT_FAILED);
	hand_assert_says(hand, "NUL byte");
}

static void interactive_programs_are_refused_with_a_remedy(void **state)
{
	static const char *const refused[] = {
		"vim a.c",
		"less a",
		"git log | less",
		"top",
		"sudo nano /etc/hosts",
		"cd src && vi x",
		"FOO=1 vim x",
		"/usr/bin/vim x",
		"python3",
		"node; echo",
		"watch ls",
		"ssh host uptime",
		"if true; then vim; fi",
		"(top)",
		"\\vim x",
		"env -i vim",
		"python3 2>/dev/null",
		"true || htop",
		"time top",
		"exec less x",
	};
	static const char *const taken[] = {
		"vim --version",
		"top -bn1 | head",
		"top -b -n 1",
		"python3 -c 'print(1)'",
		"python3 <<EOF\ntop\nEOF\n",
		"echo 1 | python3",
		"cat > n.txt <<E\nvim x\nE",
		"command -v vim",
		"which vim less top",
		"echo vim",
		"grep -r 'vim;less' .",
		"case $x in\n top) echo a;;\nesac",
		"ssh -o BatchMode=yes h ls",
		"# vim\ntrue",
		"top() { :; }",
		"echo \"$(vim)\"",
		"python3 < file",
		"apt install vim",
		"ex -s x",
		"vim -es +q",
		"cat vim",
		"man ls",
		"echo a;echo 'x\nvim y'",
		"a=vim; echo $a",
		"emacs --batch -l x",
		"echo '",
		"x=$((1)",
		"\\",
	};
	struct buf sentence;

	(void)state;
	buf_init(&sentence, 4096);
	for (size_t i = 0; i < COUNT(refused); i++) {
		buf_clear(&sentence);
		if (!bash_hints_interactive_refuses(str_of(refused[i]), true, &sentence))
			fail_msg("taken: %s", refused[i]);
	}
	for (size_t i = 0; i < COUNT(taken); i++) {
		buf_clear(&sentence);
		if (bash_hints_interactive_refuses(str_of(taken[i]), true, &sentence))
			fail_msg("refused: %s: %s", taken[i], sentence.data);
	}
	buf_fini(&sentence);
}

/* Texts whose exit code and standard output must be what `bash -c` gives. */
static const char *const compared[] = {
	"echo a; echo b",
	"exit 3",
	"false",
	"(exit 4)",
	"set -e; false; echo no",
	"set -u; echo $nothing; echo no",
	"set -e\nx=1\n[ $x = 2 ] || echo fine\nfalse",
	"set -x; echo traced",
	"set -v\necho verbose",
	"set -n\necho nothing",
	"trap 'echo bye' EXIT; echo hi",
	"trap 'echo bye; exit 9' EXIT; false",
	"trap 'echo term' TERM; kill -TERM $$; echo after",
	"exec echo replaced",
	"exec false",
	"cat <<EOF\nhere $((1+2))\nEOF",
	"cat <<'EOF'\nraw $x\nEOF",
	"cat <<-EOF\n\ttabs\n\tEOF\n",
	"return 3",
	"echo a; return; echo b",
	"exit",
	"kill -KILL $$",
	"kill -SEGV $$",
	"kill -ABRT $$",
	"sh -c 'kill -TERM $$'; echo $?",
	"shopt -s expand_aliases\nalias x='echo alias'\nx",
	"alias x=ls\nx 2>/dev/null; echo $?",
	"echo $LINENO\necho $LINENO",
	"echo $0",
	"echo $-",
	"echo $#",
	"echo \"$@\"",
	"echo $$ >/dev/null",
	"if true; then",
	"echo 'unclosed",
	"echo )",
	"f() { return 5; }; f",
	"f() { local x=1; echo $x; }; f",
	"while read l; do echo \"<$l>\"; done <<< $'a\\nb'",
	"echo {1..3}",
	"x=(1 2 3); echo ${#x[@]}",
	"printf '%s\\n' \"a b\" c",
	"echo -n no newline",
	"true | false",
	"set -o pipefail; false | true",
	"! true",
	"cd /; pwd",
	"((1 == 2))",
	"[[ a == b ]]",
	"nosuchcommand 2>/dev/null",
	"/etc/passwd 2>/dev/null",
	"coproc cat; echo $?",
	"echo a\\\nb",
	"# only a comment",
	"",
	"umask",
	"let x=0",
	"wait",
	"echo ${BASH_SUBSHELL} $SHLVL",
	"eval 'echo $LINENO'",
	"set -- a b; echo $2",
	"exec 3>&1; echo three >&3",
	"diff <(echo a) <(echo a)",
	"type cd",
	"declare -p | grep -c GLOVEBOX_NOTHING",
	"read x; echo $?",
	"echo 'é' | wc -c",
};

/* What bash -c itself gives: exit code (128 + signal) and standard output. */
static char *plain_bash(struct hand *hand, const char *text, int *code)
{
	int ends[2];
	struct buf out;
	pid_t pid;
	int status;
	ssize_t got;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);
		const char *const environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin",
						   "HOME=/tmp", "LC_ALL=C.UTF-8",
						   "TERM=dumb", NULL};

		(void)dup2(null, 0);
		(void)dup2(ends[1], 1);
		(void)dup2(null, 2);
		if (chdir(hand->workspace) < 0)
			_exit(99);
		(void)execle("/bin/bash", "bash", "--noprofile", "--norc", "-c", text,
			     (char *)NULL, environment);
		_exit(99);
	}
	(void)close(ends[1]);
	buf_init(&out, 1 << 20);
	do {
		char *room = buf_reserve(&out, 4096);

		got = read(ends[0], room, 4096);
		if (got > 0)
			buf_commit(&out, (size_t)got);
	} while (got > 0);
	(void)close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	*code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	return buf_take(&out);
}

static void the_wrapper_behaves_as_bash_c(void **state)
{
	struct hand *hand = *state;

	for (size_t i = 0; i < COUNT(compared); i++) {
		struct buf json;
		int code;
		int ours;
		auto_free char *expected = plain_bash(hand, compared[i], &code);
		const char *cut;
		size_t size;

		buf_init(&json, 1 << 16);
		buf_adds(&json, "{\"command\": ");
		assert_true(value_quote(str_of(compared[i]), &json));
		buf_adds(&json, "}");
		hand_run_for(hand, &bash_tool, 30000, json.data);
		buf_fini(&json);
		ours = hand->result.signal ? 128 + hand->result.signal
					   : hand->result.exit_code;
		if (ours != code)
			fail_msg("%s: exit %d, bash -c %d: %s", compared[i], ours, code,
				 hand->result.text.data);
		cut = strstr(hand->result.text.data, "STDERR:\n");
		if (!cut)
			cut = strstr(hand->result.text.data, "(command completed");
		if (!cut)
			cut = strrchr(hand->result.text.data, '[');
		assert_non_null(cut);
		size = (size_t)(cut - hand->result.text.data);
		/* The answer ends a last line that had no end. */
		if (size == strlen(expected) + 1)
			size--;
		if (size != strlen(expected) ||
		    strncmp(hand->result.text.data, expected, size) != 0)
			fail_msg("%s: \"%s\" instead of \"%s\"", compared[i],
				 hand->result.text.data, expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, hand_set_up, hand_tear_down)
		TEST(prints_output_then_one_closing_line),
		TEST(keeps_both_streams_apart_and_says_when_there_is_none),
		TEST(explains_exit_code_1_where_it_is_no_failure),
		TEST(the_folder_carries_over_inside_the_roots_only),
		TEST(a_folder_that_is_gone_gives_way_to_the_workspace),
		TEST(its_own_environment_keeps_programs_quiet),
		TEST(texts_longer_than_any_argument_work),
		TEST(input_is_empty_and_nothing_waits_for_it),
		TEST(a_deadline_keeps_what_was_printed),
		TEST(what_is_left_running_is_ended_and_told),
		TEST(long_output_is_cut_and_its_rest_is_kept),
		TEST(short_output_leaves_no_file),
		TEST(the_newest_sixteen_spills_stay),
		TEST(a_long_line_and_colours_do_not_reach_the_model),
		TEST(both_streams_share_the_room),
		TEST(signals_are_told_by_name),
		TEST(a_nul_byte_is_refused),
		TEST(interactive_programs_are_refused_with_a_remedy),
		TEST(the_wrapper_behaves_as_bash_c),
	};

	return cmocka_run_group_tests_name("tools-bash", tests, NULL, NULL);
}
