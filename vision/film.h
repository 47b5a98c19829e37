/* film: a moving picture: what it is, which of its frames are shown to the model, and those frames as pictures. Prep
 * worker threads or a worker process; no state outside the film.
 *
 *     film *f; film_open(&f, &(film_source){.data = data, .bytes = n}, &limits, &detail);
 *     film_plan(film_get_info(f), &pc, &(film_request){0}, indices, times, cap, &n, &detail);
 *     film_read(f, indices, n, on_frame, ctx, &detail);   film_close(f);
 *
 * MP4/MOV, WebM/Matroska, AVI, animated GIF, PNG and WebP; H.264, HEVC, VP8, VP9, AV1, MPEG-4 and Motion JPEG. The
 * container is recognised by its first bytes; nothing is probed, and a film can neither open a file nor an address:
 * playlists and external tracks are refused. Sound and subtitles are ignored.
 *
 * Frames are chosen by presentation time: frame i of a film stands for what is seen i / fps seconds after its first
 * frame, so films of variable rate are sampled evenly in time. Opening reads the whole film once without decoding it;
 * reading decodes up to the last frame wanted and converts only the frames wanted, one at a time.
 */
#ifndef PARLEY_VISION_FILM_H
#define PARLEY_VISION_FILM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "vision/image.h"
#include "vision/processor.h"

typedef struct film film;

typedef enum film_format {
    FILM_UNKNOWN,
    FILM_MP4,
    FILM_MATROSKA,
    FILM_AVI,
    FILM_GIF,
    FILM_APNG,
    FILM_WEBP
} film_format;

/* The file: bytes in memory, or an open regular file (its offset is not used or moved). Must outlive the film. */
typedef struct film_source {
    const uint8_t *data; /* NULL: fd */
    size_t bytes;
    int fd;
} film_source;

typedef struct film_limits {
    size_t max_bytes;  /* of the file */
    size_t max_pixels; /* of one frame */
    int32_t max_side;
    double max_duration_s;
    int64_t max_packets; /* of all tracks */
    int64_t max_frames;  /* of the picture track */
    /* Decoder threads, at least 1. TRAP: with more than one, the library can wait for itself forever on a damaged
     * film (seen with frame threads), so that is for a worker process that somebody kills at a deadline. */
    int32_t n_threads;
    double max_wall_s;            /* for opening, and again for each reading; 0: none */
    size_t max_memory;            /* of a worker process, beyond what it has at its start */
    bool (*cancelled)(void *ctx); /* may be NULL; asked often, from the calling thread */
    void *ctx;
} film_limits;

typedef struct film_info {
    film_format format;
    const char *codec;     /* "H.264" */
    int32_t width, height; /* as shown, after rotation */
    int64_t n_frames;
    double fps;        /* mean rate; 0 if unknown (one frame) */
    double duration_s; /* from the first frame to the end of the last */
    bool variable_rate, has_audio;
} film_info;

/* Which frames are wanted; zero means "as the processor's configuration says". */
typedef struct film_request {
    double fps;       /* frames per second shown to the model */
    int32_t n_frames; /* that many instead */
    int32_t max_frames;
    double start_s, end_s; /* the part of the film; end 0: to its end */
} film_request;

/* The limits that a careful server uses. */
film_limits film_limits_default(void);

film_format film_sniff(const uint8_t *data, size_t bytes);
const char *film_format_name(film_format f); /* "MP4" */

/* ERR_UNSUPPORTED (unsupported_video_media_type), ERR_CORRUPT (video_parse_error; a truncated film is one), ERR_LIMIT
 * (video_too_large), ERR_TIMEOUT (video_timeout), ERR_CANCELLED, ERR_NOMEM. The caller closes *out. */
MUST_CHECK err_code film_open(film **out, const film_source *source, const film_limits *limits,
                              err_detail *detail);
void film_close(film *f); /* NULL allowed */
const film_info *film_get_info(const film *f);

/* Frame numbers [cap] and their seconds from the start of the film [cap], both ascending, count in *n. ERR_INVALID if
 * the wanted part is empty (video_range), ERR_LIMIT if more than cap are wanted (video_too_large). */
MUST_CHECK err_code film_plan(const film_info *info, const processor_config *pc, const film_request *request,
                              int32_t *indices, double *times, int32_t cap, int32_t *n, err_detail *detail);

/* Frame number i of the plan; it belongs to the film and is valid until the function returns. Another value than ERR_OK
 * ends the reading and is returned from film_read. */
typedef err_code film_frame_fn(void *ctx, int32_t i, const image *frame, err_detail *detail);

/* Calls on_frame for indices[0..n), which ascend, in order. Errors as for film_open. May be called again. */
MUST_CHECK err_code film_read(film *f, const int32_t *indices, int32_t n, film_frame_fn *on_frame, void *ctx,
                              err_detail *detail);

#endif
