/* video_confine: sandboxes the calling process, so that a video that exploits a decoder gains
 * nothing: no new files, no network, no other processes, bounded memory and processor time. Called
 * once, by a video worker before it reads the video; cannot be undone.
 *
 *     video_confine(LIMIT_VIDEO_MEMORY, LIMIT_VIDEO_WALL_S);
 */
#ifndef PARLEY_VISION_VIDEO_VIDEO_CONFINE_H
#define PARLEY_VISION_VIDEO_VIDEO_CONFINE_H

#include <stdbool.h>
#include <stddef.h>

/* Closes every descriptor above 2 and limits the process. `memory_bytes` come on top of what is
 * mapped now. Other system calls than those for memory, threads, time and open descriptors fail
 * with EPERM. False if the system refused a part of it: the caller must not continue. */
bool video_confine(size_t memory_bytes, int cpu_s);

#endif
