/*
 * session: calls of one session, for the tool cases: `session GLOVEBOX WORKSPACE [CONFIG
 * [AGENT [PATIENCE]]]` opens a session of the library, and for each line "TOOL JSON" on its
 * standard input prints the result on one line, as JSON. A call that takes longer than
 * PATIENCE seconds becomes a job.
 */
#include "glovebox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/value.h"

enum { TEXT_MAX = 64 << 20 };

static void print(const struct glovebox_result *result)
{
	struct buf out;

	buf_init(&out, TEXT_MAX);
	(void)buf_addf(&out,
		       "{\"status\":\"%s\",\"text\":", glovebox_status_name(result->status));
	(void)value_quote((struct str){result->text, result->text_size}, &out);
	if (result->exit_code >= 0)
		(void)buf_addf(&out, ",\"exit_code\":%d", result->exit_code);
	else
		(void)buf_adds(&out, ",\"exit_code\":null");
	if (result->signal > 0)
		(void)buf_addf(&out, ",\"signal\":%d", result->signal);
	(void)buf_addf(&out,
		       ",\"seconds\":%f,\"level\":%d,\"left_out\":{\"bytes\":%llu,"
		       "\"lines\":%llu},\"details\":%s}",
		       result->seconds, result->level,
		       (unsigned long long)result->left_out_bytes,
		       (unsigned long long)result->left_out_lines, result->details);
	(void)puts(out.data);
	(void)fflush(stdout);
	buf_fini(&out);
}

static void serve(struct glovebox_session *session)
{
	char *line = NULL;
	size_t room = 0;

	for (ssize_t size; (size = getline(&line, &room, stdin)) > 0;) {
		char *arguments = strchr(line, ' ');

		line[size - 1] = '\0';
		if (arguments != NULL)
			*arguments++ = '\0';
		struct glovebox_result *result = glovebox_call(session, line, arguments);
		print(result);
		glovebox_result_free(result);
	}
	free(line);
}

int main(int argc, char **argv)
{
	struct glovebox_options options = GLOVEBOX_OPTIONS;
	char error[GLOVEBOX_ERROR_MAX];
	struct buf config;
	struct err err;

	if (argc < 3) {
		(void)fputs("session GLOVEBOX WORKSPACE [CONFIG [AGENT [PATIENCE]]]\n",
			    stderr);
		return EXIT_FAILURE;
	}
	buf_init(&config, TEXT_MAX);
	options.program = argv[1];
	options.workspace = argv[2];
	options.policy = "{\"write\": [\".\"]}";
	if (argc > 3 && argv[3][0] != '\0') {
		if (!fd_read_file(argv[3], TEXT_MAX, &config, &err)) {
			(void)fprintf(stderr, "%s\n", err.text);
			return EXIT_FAILURE;
		}
		options.config = config.data;
		options.policy = NULL;
	}
	options.agent = argc > 4 && argv[4][0] != '\0' ? argv[4] : NULL;
	options.patience_s = argc > 5 ? strtod(argv[5], NULL) : 0;
	struct glovebox_session *session = glovebox_open(&options, error, sizeof(error));
	if (session == NULL) {
		(void)fprintf(stderr, "%s\n", error);
		return EXIT_FAILURE;
	}
	serve(session);
	glovebox_close(session);
	buf_fini(&config);
	return EXIT_SUCCESS;
}
