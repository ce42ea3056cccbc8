/* Tests of extend/notes: a note is a line, whole or not at all, and the prompt has it. */
#include "../base/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "extend/extension.h"
#include "extend/notes.h"

enum { WRITERS = 8 };

static char folder[] = "/tmp/notes-test-XXXXXX";

static int make_state(void **state)
{
	(void)state;
	memcpy(folder + sizeof(folder) - 7, "XXXXXX", 6);
	return mkdtemp(folder) == NULL || setenv("XDG_STATE_HOME", folder, 1) != 0;
}

static int remove_state(void **state)
{
	(void)state;
	fd_folder_remove(folder);
	return 0;
}

static void assert_notes(const char *workspace, const char *wanted)
{
	struct buf text;

	buf_init(&text, NOTES_BYTES_MAX);
	assert_true(notes_read(workspace, &text, NULL));
	assert_string_equal(text.data, wanted);
	buf_fini(&text);
}

static void a_note_is_a_line_of_its_workspace(void **state)
{
	(void)state;
	assert_notes("/w", "");
	assert_true(notes_add("/w", STR("one"), NULL));
	assert_true(notes_add("/w", STR("two\nlines"), NULL));
	assert_true(notes_add("/v", STR("other"), NULL));
	assert_notes("/w", "- one\n- two\\x0Alines\n");
	assert_notes("/v", "- other\n");
}

static void what_does_not_fit_is_not_written(void **state)
{
	auto_free char *text = memory_alloc(NOTES_BYTES_MAX + 1);
	struct err err = {0};

	(void)state;
	memset(text, 'x', NOTES_BYTES_MAX - 10);
	assert_true(notes_add("/w", str_of(text), &err));
	assert_false(notes_add("/w", STR("more than that"), &err));
	assert_int_equal(err.code, EFBIG);
	assert_non_null(strstr(err.text, "longer than 16 KiB"));
	assert_true(notes_add("/w", STR("more"), &err));
}

static void notes_of_several_are_all_there(void **state)
{
	struct buf text;
	size_t lines = 0;

	(void)state;
	for (int i = 0; i < WRITERS; i++) {
		const pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0)
			_exit(notes_add("/w", STR("note"), NULL) ? 0 : 1);
	}
	for (int i = 0; i < WRITERS; i++) {
		int status;

		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	buf_init(&text, NOTES_BYTES_MAX);
	assert_true(notes_read("/w", &text, NULL));
	for (size_t i = 0; i < text.size; i++)
		lines += text.data[i] == '\n';
	assert_int_equal(lines, WRITERS);
	buf_fini(&text);
}

static void what_a_person_edits_keeps_what_came_meanwhile(void **state)
{
	struct err err = {0};

	(void)state;
	assert_true(notes_add("/w", STR("one"), &err));
	assert_true(notes_add("/w", STR("two"), &err));
	assert_true(notes_replace("/w", STR("- one\n"), STR("- ONE"), &err));
	assert_notes("/w", "- ONE\n- two\n");
	assert_false(notes_replace("/w", STR("- one\n"), STR(""), &err));
	assert_int_equal(err.code, EBUSY);
	assert_true(notes_replace("/w", STR("- ONE\n- two\n"), STR(""), &err));
	assert_notes("/w", "");
}

/* The prompt of a session that does USE with notes; *OFFERED: it has the tool. */
static char *prompt_with(enum notes_use use, bool *offered)
{
	static const struct tool *const rows[] = {&remember_tool, NULL};
	struct extension *extension = extension_open(&(struct extension_options){
		.workspace = "/w",
		.notes = use,
	});
	char *prompt = memory_copy(extension_prompt(extension, "Be careful."));

	*offered = extension_tools(extension, rows)[0]->keeper != NULL;
	extension_close(extension);
	return prompt;
}

static void a_session_does_what_its_person_wants(void **state)
{
	bool offered;
	char *prompt;

	(void)state;
	assert_true(notes_add("/w", STR("Run make db first."), NULL));
	prompt = prompt_with(NOTES_NONE, &offered);
	assert_string_equal(prompt, "Be careful.");
	assert_false(offered);
	free(prompt);
	prompt = prompt_with(NOTES_READ, &offered);
	assert_non_null(strstr(prompt, "not orders"));
	assert_non_null(strstr(prompt, "\n- Run make db first."));
	assert_false(offered);
	free(prompt);
	prompt = prompt_with(NOTES_WRITTEN, &offered);
	assert_non_null(strstr(prompt, "\n- Run make db first."));
	assert_true(offered);
	free(prompt);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_note_is_a_line_of_its_workspace,
						make_state, remove_state),
		cmocka_unit_test_setup_teardown(what_does_not_fit_is_not_written,
						make_state, remove_state),
		cmocka_unit_test_setup_teardown(notes_of_several_are_all_there,
						make_state, remove_state),
		cmocka_unit_test_setup_teardown(what_a_person_edits_keeps_what_came_meanwhile,
						make_state, remove_state),
		cmocka_unit_test_setup_teardown(a_session_does_what_its_person_wants,
						make_state, remove_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
