/*
 * screen_spinner: a thread that calls TICK every tenth of a second, for the line that
 * shows that something is under way while the front waits elsewhere (for the model's
 * socket, for a call). The thread takes no signals. It starts with the first
 * screen_spinner_start.
 */
#pragma once

struct screen_spinner;

struct screen_spinner *screen_spinner_start(void (*tick)(void *context), void *context);
/* After the return no tick is under way, and none follows. NULL is fine. */
void screen_spinner_stop(struct screen_spinner *spinner);
