/* folder: taking away a folder of our own with all that is in it. */
#pragma once

/*
 * Remove PATH (NULL is fine) and everything below it, as far as the kernel lets us; links
 * are removed, never followed. For when nobody works in it any more.
 */
void folder_remove(const char *path);
