/* video_header: what a video file's first bytes say of its container, and whether all of it is there,
 * before a demuxer sees it. Any thread; nothing is allocated.
 *
 *     bool whole = video_is_complete(&source, video_sniff(head, sizeof head));
 */
#ifndef PARLEY_VISION_VIDEO_VIDEO_HEADER_H
#define PARLEY_VISION_VIDEO_VIDEO_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum video_format {
    VIDEO_UNKNOWN,
    VIDEO_MP4,
    VIDEO_MATROSKA,
    VIDEO_AVI,
    VIDEO_GIF,
    VIDEO_APNG,
    VIDEO_WEBP
} video_format;

/* The file: bytes in memory, or an open regular file (its offset is not used or moved). Must
 * outlive the video. */
typedef struct video_source {
    const uint8_t *data; /* NULL: fd */
    size_t bytes;
    int fd;
} video_source;

/* The container by its first bytes, 256 of them are enough. */
video_format video_sniff(const uint8_t *data, size_t bytes);

/* Copies bytes at .. at+n-1 of the file; false if they are not all there. */
bool video_read_at(const video_source *source, size_t at, uint8_t *to, size_t n);

/* True if the container's own sizes fit the file: nothing was cut off at the end. */
bool video_is_complete(const video_source *source, video_format format);

#endif
