/*
 * main: the program. The cell's own processes are entered before anything else is set
 * up; then the command line decides.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/value.h"
#include "front/attack_call.h"
#include "front/delegate_role.h"
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

/* What we keep of a session is ours to open, whatever the caller's umask. */
static void keep_owner_in_modes(void)
{
	(void)umask(umask(S_IRWXG | S_IRWXO) & (S_IRWXG | S_IRWXO));
}

int main(int argc, char **argv)
{
	int code;

	value_own_memory();
	session_role(argc, argv, builtin_tools);
	proxy_role(argc, argv);
	if (attack_call_is(argc, argv))
		attack_call_run(argv + 2);
	open_standard_descriptors();
	keep_owner_in_modes();
	/* A reader that goes away and a file that may not grow are errors of the write. */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);

	if (patch_program_is(argc > 0 ? argv[0] : NULL))
		code = patch_program_run(argc, argv);
	else if (delegate_role_is(argc > 0 ? argv[0] : NULL))
		code = delegate_role_run(argc, argv);
	else
		code = verb_dispatch((const char *const *)argv + (argc > 0));
	return verb_printed(code);
}
