/* shell: see shell.h. */
#include "shell.h"

const char *const shell_environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "WORD=yes",
					 NULL};

void shell_init(struct shell_run *shell, const char *text)
{
	program_run_init(&shell->run);
	shell->argv[0] = "sh";
	shell->argv[1] = "-c";
	shell->argv[2] = text;
	shell->argv[3] = NULL;
	shell->run.start.argv = shell->argv;
	shell->run.start.environment = shell_environment;
}

void shell_follow(struct program_run *run)
{
	struct err err = {0};

	if (!follow_program(run, &err))
		fail_msg("%s", err.text);
}

void shell_assert_output(const struct program_output *output, const char *expected)
{
	struct buf text;

	buf_init(&text, 1 << 20);
	program_output_text(output, &text);
	assert_string_equal(text.data, expected);
	buf_fini(&text);
}
