/* video_header: checks on a video's container before a demuxer sees it; for video.c. Any thread;
 * nothing is allocated.
 *
 *     if (!video_is_complete(&source, format)) { ... the file was cut off ... }
 */
#ifndef PARLEY_VISION_VIDEO_HEADER_H
#define PARLEY_VISION_VIDEO_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vision/video.h"

/* Copies bytes at .. at+n-1 of the file; false if they are not all there. */
bool video_read_at(const video_source *source, size_t at, uint8_t *to, size_t n);

/* True if the container's own sizes fit the file: nothing was cut off at the end. */
bool video_is_complete(const video_source *source, video_format format);

#endif
