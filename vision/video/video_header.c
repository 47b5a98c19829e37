/* What the first bytes of a video say, and whether all of it is there: a demuxer would show the
 * readable part of a truncated file without a word. */
#include "vision/video/video_header.h"

#include <string.h>
#include <unistd.h>

#include "base/byte_order.h"

bool video_read_at(const video_source *source, size_t at, uint8_t *to, size_t n)
{
    if (at > source->bytes || n > source->bytes - at) {
        return false;
    }
    if (source->data) {
        memcpy(to, source->data + at, n);
        return true;
    }
    return pread(source->fd, to, n, (off_t)at) == (ssize_t)n;
}

video_format video_sniff(const uint8_t *data, size_t bytes)
{
    static const char *const MP4_BOXES[] = {"ftyp", "moov", "mdat", "wide", "free", "skip"};
    if (bytes < 12) {
        return VIDEO_UNKNOWN;
    }
    if (memcmp(data, "\x1a\x45\xdf\xa3", 4) == 0) {
        return VIDEO_MATROSKA;
    }
    if (memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, "AVI ", 4) == 0) {
        return VIDEO_AVI;
    }
    if (memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, "WEBP", 4) == 0) {
        return VIDEO_WEBP;
    }
    if (memcmp(data, "GIF87a", 6) == 0 || memcmp(data, "GIF89a", 6) == 0) {
        return VIDEO_GIF;
    }
    if (memcmp(data, "\x89PNG\r\n\x1a\n", 8) == 0) {
        return VIDEO_APNG;
    }
    for (size_t i = 0; i < sizeof MP4_BOXES / sizeof MP4_BOXES[0]; i++) {
        if (memcmp(data + 4, MP4_BOXES[i], 4) == 0) {
            return VIDEO_MP4;
        }
    }
    return VIDEO_UNKNOWN;
}

/* All top-level boxes end inside the file. */
static bool mp4_is_complete(const video_source *source)
{
    uint8_t head[16];
    for (size_t at = 0; at < source->bytes;) {
        if (!video_read_at(source, at, head, 8)) {
            return false;
        }
        uint64_t n = big_endian(head, 4);
        if (n == 0) { /* up to the end of the file */
            return true;
        }
        if (n == 1) {
            if (!video_read_at(source, at, head, 16)) {
                return false;
            }
            n = big_endian(head + 8, 8);
        }
        if (n < 8 || n > source->bytes - at) {
            return false;
        }
        at += (size_t)n;
    }
    return true;
}

/* An EBML number with its length marker removed; 0 bytes used if it is damaged. */
static size_t ebml_size(const uint8_t p[8], uint64_t *value, bool *unknown)
{
    size_t len = 1;
    if (p[0] == 0) {
        return 0;
    }
    while (!(p[0] & (0x80 >> (len - 1)))) {
        len++;
    }
    uint64_t mask = ((uint64_t)1 << (7 * len)) - 1;
    *value = big_endian(p, len) & mask;
    *unknown = *value == mask;
    return len;
}

/* The Segment behind the EBML header ends inside the file; a live recording does not say where it
 * ends. */
static bool matroska_is_complete(const video_source *source)
{
    uint8_t head[12] = {0};
    uint64_t n = 0;
    bool unknown = false;
    size_t used;
    if (!video_read_at(source, 0, head, 12) || !(used = ebml_size(head + 4, &n, &unknown)) || unknown) {
        return false;
    }
    size_t at = 4 + used + (size_t)n;
    if (!video_read_at(source, at, head, 12) || memcmp(head, "\x18\x53\x80\x67", 4) != 0 ||
        !(used = ebml_size(head + 4, &n, &unknown))) {
        return false;
    }
    return unknown || n <= source->bytes - at - 4 - used;
}

static bool riff_is_complete(const video_source *source)
{
    uint8_t head[8];
    if (!video_read_at(source, 0, head, 8)) {
        return false;
    }
    return little_endian(head + 4, 4) <= source->bytes - 8;
}

/* Moves *at past a list of sub-blocks; false if the file ends within it. */
static bool skip_sub_blocks(const video_source *source, size_t *at)
{
    uint8_t n = 1;
    while (n > 0) {
        if (!video_read_at(source, *at, &n, 1)) {
            return false;
        }
        *at += (size_t)n + 1;
    }
    return true;
}

/* The trailer behind the last block is there. */
static bool gif_is_complete(const video_source *source)
{
    uint8_t b[10];
    if (!video_read_at(source, 10, b, 1)) {
        return false;
    }
    size_t at = 13 + (b[0] & 0x80 ? (size_t)3 << ((b[0] & 7) + 1) : 0);
    while (video_read_at(source, at, b, 1)) {
        if (b[0] == 0x3b) {
            return true;
        }
        if (b[0] == 0x2c && video_read_at(source, at, b, 10)) {
            at += 11 + (b[9] & 0x80 ? (size_t)3 << ((b[9] & 7) + 1) : 0);
        } else if (b[0] == 0x21) {
            at += 2;
        } else {
            return false;
        }
        if (!skip_sub_blocks(source, &at)) {
            return false;
        }
    }
    return false;
}

static bool png_is_complete(const video_source *source)
{
    uint8_t head[8];
    for (size_t at = 8; video_read_at(source, at, head, 8);) {
        uint64_t n = big_endian(head, 4) + 12;
        if (n > source->bytes - at) {
            return false;
        }
        if (memcmp(head + 4, "IEND", 4) == 0) {
            return true;
        }
        at += (size_t)n;
    }
    return false;
}

bool video_is_complete(const video_source *source, video_format format)
{
    static bool (*const CHECKS[])(const video_source *source) = {
        [VIDEO_MP4] = mp4_is_complete,  [VIDEO_MATROSKA] = matroska_is_complete,
        [VIDEO_AVI] = riff_is_complete, [VIDEO_WEBP] = riff_is_complete,
        [VIDEO_GIF] = gif_is_complete,  [VIDEO_APNG] = png_is_complete,
    };
    return format != VIDEO_UNKNOWN && CHECKS[format](source);
}
