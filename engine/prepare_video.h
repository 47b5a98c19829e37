/* prepare_video: a video of a chat: its patches, and where it goes in the rendered prompt. Prep
 * threads; private to engine/.
 */
#ifndef PARLEY_ENGINE_PREPARE_VIDEO_H
#define PARLEY_ENGINE_PREPARE_VIDEO_H

#include "engine/engine_private.h"
#include "vision/video/image_reader.h"

/* Callbacks of the request that a video belongs to. */
typedef struct video_hooks {
    void (*planned)(void *ctx, int32_t n_frames); /* how many frames will be shown */
    void (*shown)(void *ctx);                     /* one more was */
    bool (*cancelled)(void *ctx);
    void *ctx;
    /* Whether the prompt has room for the video of that grid; asked before memory is taken for
     * it. */
    err_code (*fits)(void *fits_ctx, const patches *p, err_detail *detail);
    void *fits_ctx;
} video_hooks;

/* Identifies a video: its file or files, how they are sampled and how large they are shown. */
void prepare_video_hash(uint8_t out[HASH_BYTES], const chat_part *part);

/* Reads the video, or the list of images, of `part` into m->patches, whose memory is reserved in
 * r->memory; on error they are empty. */
MUST_CHECK err_code prepare_video(const engine *e, gen_request *r, gen_media *m, const chat_part *part,
                                  const video_hooks *hooks, err_detail *detail);

/* The processor's settings, with what the part says of its size. */
processor_config prepare_processor(const engine *e, const chat_part *part);

/* What an image of a request is read with; cancelling is the caller's. */
image_read_job prepare_image_job(const media_settings *m, const uint8_t *data, size_t n,
                                 const image_limits *limits);
/* Bytes that the process that reads a video may take beyond its start, and all that is to be
 * reserved for it. */
size_t prepare_video_memory(const media_settings *m, size_t *reserve);

/* Appends the prompt with each video's placeholder written out as its frames: the time of each, and
 * a placeholder of its own, unless the model takes videos whole; where templates give placeholders alone, each, those of images too, gets
 * the tokens around it. Placeholders without a medium stay as they are. */
void prompt_place_media(bytes *out, const engine *e, const char *text, size_t len, const gen_media *media,
                        size_t n_media);

#endif
