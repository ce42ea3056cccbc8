/*
 * main: the start of the program. It first enters the roles of a cell's own processes,
 * before anything else is set up. Otherwise the command line decides.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/value.h"
#include "broker/broker.h"
#include "extend/hook_run.h"
#include "front/attack_call.h"
#include "front/audit/exporter.h"
#include "front/config_file.h"
#include "front/conversation/delegated.h"
#include "front/editor.h"
#include "front/hands/shim.h"
#include "front/inside/git.h"
#include "front/inside/opener.h"
#include "front/patches.h"
#include "front/verb.h"
#include "image/unpacked.h"
#include "mcp/bridge/bridge.h"
#include "proxy/proxy.h"
#include "session/session.h"
#include "ssh/door.h"
#include "tools/tools.h"

/*
 * Open closed standard descriptors: the next file that we open would get such a number,
 * and output would be written into that file.
 */
static void open_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
			abort();
}

/*
 * Take the owner's bits out of the umask, so that we can always open our own files of a
 * session.
 */
static void keep_owner_in_modes(void)
{
	(void)umask(umask(S_IRWXG | S_IRWXO) & (S_IRWXG | S_IRWXO));
}

/*
 * Raise the soft limit of open files. The usual one is meant for programs that call
 * select(), and two descriptors for each running command exceed it. Programs in a cell
 * have limits of their own.
 */
static void open_as_many_files_as_we_may(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
}

int main(int argc, char **argv)
{
	/* The arguments of a shell are its caller's, and name none of the roles. */
	const bool is_shell = shim_is_wanted();
	struct err err = {0};
	int code;

	value_own_memory();
	if (!is_shell) {
		session_role(argc, argv, builtin_tools);
		proxy_role(argc, argv);
		broker_role(argc, argv);
		door_role(argc, argv);
		attack_call_role(argc, argv);
		hook_run_role(argc, argv);
		unpacked_role(argc, argv);
		exporter_role(argc, argv);
	}
	open_standard_descriptors();
	keep_owner_in_modes();
	open_as_many_files_as_we_may();
	/*
	 * A reader that has gone and a file that may not grow must be errors of the
	 * write, not signals.
	 */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);

	if (is_shell)
		return shim_run(argc, argv);
	if (git_credential_program(argc, argv, &code))
		return verb_printed(code, stdout);
	if (bridge_program(argc, argv, &code))
		return code;
	if (!config_file_take_ceiling(&err))
		return verb_complain(CODE_USAGE, "%s", err.text);
	if (!patches_program(argc, argv, &code) && !opener_program(argc, argv, &code) &&
	    !git_sign_program(argc, argv, &code) && !delegated_role(argc, argv, &code) &&
	    !editor_role(argc, argv, &code))
		code = verb_dispatch((const char *const *)argv + (argc > 0));
	return verb_printed(code, stdout);
}
