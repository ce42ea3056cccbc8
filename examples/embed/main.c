/*
 * embed: what another program needs of libglovebox, in forty lines. It opens a session
 * on a folder that may only be read, except for out/, and makes one call.
 *
 *	cc main.c -o embed $(pkg-config --cflags --libs glovebox)
 *	./embed FOLDER bash '{"command": "ls; date > out/now"}'
 */
#include <glovebox.h>
#include <stdio.h>
#include <stdlib.h>

static void show(void *context, const char *tool, int stream, const char *bytes, size_t size)
{
	(void)context, (void)tool, (void)stream; /* 1: its output, 2: its errors */
	fwrite(bytes, 1, size, stderr);
}

int main(int argc, char **argv)
{
	struct glovebox_options options = GLOVEBOX_OPTIONS;
	char error[GLOVEBOX_ERROR_MAX];

	options.workspace = argc > 1 ? argv[1] : ".";
	options.policy = "{\"write\": [\"out\"]}";
	options.program = getenv("GLOVEBOX_PROGRAM"); /* NULL: where it was installed */
	options.output = show;
	struct glovebox_session *session = glovebox_open(&options, error, sizeof(error));
	if (session == NULL) {
		fprintf(stderr, "embed: %s\n", error);
		return 1;
	}
	const struct glovebox_tool *tool;
	for (size_t i = 0; argc < 4 && (tool = glovebox_tool(session, i)) != NULL; i++)
		printf("%s: %s\n", tool->name, tool->description);
	if (argc >= 4) {
		struct glovebox_result *result = glovebox_call(session, argv[2], argv[3]);
		printf("%s\n%s at level L%d in %.2f s\n", result->text,
		       glovebox_status_name(result->status), result->level,
		       result->seconds);
		glovebox_result_free(result);
	}
	glovebox_close(session);
	return 0;
}
