#include "vision/video/video_webp.h"

#include <stdlib.h>

#include <webp/demux.h>

enum { SHORTEST_MS = 11, USUAL_MS = 100 }; /* browsers show frames of at most 10 ms for a tenth of a second */

struct video_webp {
    uint8_t *data;
    WebPData file; /* the same */
    WebPDemuxer *demuxer;
    WebPAnimDecoder *decoder; /* NULL before the first rewind */
};

err_code video_webp_open(video_webp **out, const video_source *source)
{
    video_webp *w = calloc(1, sizeof *w);
    err_code err = ERR_NOMEM;
    *out = NULL;
    if (!w || !(w->data = malloc(source->bytes))) {
        goto out;
    }
    w->file = (WebPData){w->data, source->bytes};
    if (!video_read_at(source, 0, w->data, source->bytes) || !(w->demuxer = WebPDemux(&w->file)) ||
        video_webp_count(w) < 1) {
        err = ERR_CORRUPT;
        goto out;
    }
    *out = w;
    return ERR_OK;
out:
    video_webp_close(w);
    return err;
}

void video_webp_close(video_webp *w)
{
    if (w) {
        WebPAnimDecoderDelete(w->decoder);
        WebPDemuxDelete(w->demuxer);
        free(w->data);
        free(w);
    }
}

void video_webp_size(const video_webp *w, int32_t *width, int32_t *height)
{
    *width = (int32_t)WebPDemuxGetI(w->demuxer, WEBP_FF_CANVAS_WIDTH);
    *height = (int32_t)WebPDemuxGetI(w->demuxer, WEBP_FF_CANVAS_HEIGHT);
}

int64_t video_webp_count(const video_webp *w)
{
    return WebPDemuxGetI(w->demuxer, WEBP_FF_FRAME_COUNT);
}

int32_t video_webp_duration(const video_webp *w, int64_t i)
{
    WebPIterator it;
    int32_t ms = USUAL_MS;
    if (WebPDemuxGetFrame(w->demuxer, (int)i + 1, &it)) {
        ms = it.duration < SHORTEST_MS ? USUAL_MS : it.duration;
        WebPDemuxReleaseIterator(&it);
    }
    return ms;
}

err_code video_webp_rewind(video_webp *w)
{
    if (w->decoder) {
        WebPAnimDecoderReset(w->decoder);
        return ERR_OK;
    }
    w->decoder = WebPAnimDecoderNew(&w->file, NULL);
    return w->decoder ? ERR_OK : ERR_NOMEM;
}

bool video_webp_next(video_webp *w, const uint8_t **rgba)
{
    uint8_t *canvas = NULL;
    int end_ms = 0;
    bool ok =
        WebPAnimDecoderHasMoreFrames(w->decoder) && WebPAnimDecoderGetNext(w->decoder, &canvas, &end_ms);
    *rgba = canvas;
    return ok;
}
