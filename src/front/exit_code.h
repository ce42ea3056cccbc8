/* exit_code: the meanings of the program's exit status, the same for every verb. */
#pragma once

enum exit_code {
	CODE_DONE = 0,
	CODE_FAILED = 1,
	CODE_USAGE = 2,
	CODE_LIMIT = 3,
	CODE_DENIED = 4,
	CODE_NO_CELL = 5,
	CODE_TIMED_OUT = 124,
	/*
	 * Only `exec` returns the next three, because its program may use 1 to 5 itself.
	 * env(1) and timeout(1) do the same.
	 */
	CODE_EXEC_NO_CELL = 125,
	CODE_EXEC_NOT_EXECUTABLE = 126,
	CODE_EXEC_NOT_FOUND = 127,
	CODE_SIGNAL = 128, /* plus the signal's number */
	CODE_CANCELLED = 130,
};
