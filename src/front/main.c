/*
 * main: the program. The cell's own processes are entered before anything else is set
 * up; then the command line decides.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/value.h"
#include "front/delegate_role.h"
#include "front/exit_code.h"
#include "front/patch_program.h"
#include "front/verb.h"
#include "proxy/proxy.h"
#include "runtime/session.h"
#include "tools/tools.h"

/*
 * A closed standard descriptor would be taken by the next file we open, and written to.
 */
static void open_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
			abort();
}

int main(int argc, char **argv)
{
	int code;

	value_own_memory();
	session_role(argc, argv, builtin_tools);
	proxy_role(argc, argv);
	open_standard_descriptors();
	/* A reader that goes away is an error of the write, said where it happens. */
	(void)signal(SIGPIPE, SIG_IGN);

	if (patch_program_is(argc > 0 ? argv[0] : NULL))
		code = patch_program_run(argc, argv);
	else if (delegate_role_is(argc > 0 ? argv[0] : NULL))
		code = delegate_role_run(argc, argv);
	else
		code = verb_dispatch((const char *const *)argv + (argc > 0));
	if (fflush(stdout) != 0 && errno != EPIPE && code == CODE_DONE) {
		perror("glovebox: standard output");
		code = CODE_FAILED;
	}
	return code;
}
