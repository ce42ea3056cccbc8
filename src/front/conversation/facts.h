/* facts: what the footer of a conversation tells (tui/region/footer.h), as it is now. */
#pragma once

struct chat;

/*
 * Show the parts that the person wants, so far as they are known. On the thread of the
 * conversation, between turns or requests.
 */
void facts_show(const struct chat *chat);
