/*
 * shim: this program as the shell of an agent that stays outside. An agent that is told to
 * use it starts it as it would start bash; the arguments, the folder and the variables go
 * to the front of `glovebox wrap --hands` (front/hands/shells.h), which runs bash with them
 * in its cell. Input, output and exit code are those of bash there. SIGINT, SIGTERM and
 * SIGHUP end the command; a second one ends the shim at once, and then the front ends the
 * command, as it does when the shim is killed.
 *
 * The shim and the front speak frames (process/frame.h): FRAME_CALL with the descriptors of
 * the command, and FRAME_CANCEL; the answer is FRAME_RESULT, or FRAME_REFUSED with a
 * sentence. The socket lies beside the link by which the shim is started, and each end
 * looks whether the other one belongs to the same user.
 */
#pragma once

#include <stdbool.h>

/* Names of the links to this program, and of the socket, in the folder of a run. */
#define SHIM_NAME      "glovebox-bash"
#define SHIM_PATH_NAME "bash" /* for agents that look for bash in PATH */
#define SHIM_SOCKET    "socket"
/* The program that the shim stands for, found in the PATH of the cell. */
#define SHIM_PROGRAM "bash"

/* Bytes of a call: more than the kernel gives to a program, as JSON. */
enum { SHIM_CALL_MAX = 24 << 20 };

/* Was this program started by one of the links? Then it is the shell, and nothing else. */
bool shim_is_wanted(void);
/* Be the shell with these arguments. Returns its exit code. */
int shim_run(int argc, char **argv);
