/* open_below: opens what lies below a folder, and nothing else, whatever changes meanwhile. Any thread; no
 * state.
 *
 *     int fd = open_below("/srv/notes", "2026/may.txt", false);      // -1: errno says why
 *
 * The way is walked step by step, each from the folder that is already open, so that no link is followed
 * and no step leads up: neither "..", nor a link that takes the place of a folder between two looks.
 */
#ifndef PARLEY_SERVER_MEDIA_OPEN_BELOW_H
#define PARLEY_SERVER_MEDIA_OPEN_BELOW_H

#include <stdbool.h>

#include "base/compiler.h"

/* path: steps with one slash between them, "" for the folder itself. wants_folder: the end must be a
 * folder; else it may be anything, and opening it waits for nobody. -1: EACCES for a step that is "", "."
 * or "..", ELOOP or ENOTDIR for a link, ENAMETOOLONG, and what open says. */
MUST_CHECK int open_below(const char *folder, const char *path, bool wants_folder);

#endif
