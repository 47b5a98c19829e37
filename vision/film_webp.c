#include "vision/film_webp.h"

#include <stdlib.h>

#include <webp/demux.h>

#include "vision/film_header.h"

enum { SHORTEST_MS = 11, USUAL_MS = 100 }; /* browsers show frames of at most 10 ms for a tenth of a second */

struct film_webp {
    uint8_t *data;
    WebPData file; /* the same */
    WebPDemuxer *demuxer;
    WebPAnimDecoder *decoder; /* NULL before the first rewind */
};

err_code film_webp_open(film_webp **out, const film_source *source)
{
    film_webp *w = calloc(1, sizeof *w);
    err_code err = ERR_NOMEM;
    *out = NULL;
    if (!w || !(w->data = malloc(source->bytes))) {
        goto out;
    }
    w->file = (WebPData){w->data, source->bytes};
    if (!film_read_at(source, 0, w->data, source->bytes) || !(w->demuxer = WebPDemux(&w->file)) ||
        film_webp_count(w) < 1) {
        err = ERR_CORRUPT;
        goto out;
    }
    *out = w;
    return ERR_OK;
out:
    film_webp_close(w);
    return err;
}

void film_webp_close(film_webp *w)
{
    if (w) {
        WebPAnimDecoderDelete(w->decoder);
        WebPDemuxDelete(w->demuxer);
        free(w->data);
        free(w);
    }
}

void film_webp_size(const film_webp *w, int32_t *width, int32_t *height)
{
    *width = (int32_t)WebPDemuxGetI(w->demuxer, WEBP_FF_CANVAS_WIDTH);
    *height = (int32_t)WebPDemuxGetI(w->demuxer, WEBP_FF_CANVAS_HEIGHT);
}

int64_t film_webp_count(const film_webp *w)
{
    return WebPDemuxGetI(w->demuxer, WEBP_FF_FRAME_COUNT);
}

int32_t film_webp_duration(const film_webp *w, int64_t i)
{
    WebPIterator it;
    int32_t ms = USUAL_MS;
    if (WebPDemuxGetFrame(w->demuxer, (int)i + 1, &it)) {
        ms = it.duration < SHORTEST_MS ? USUAL_MS : it.duration;
        WebPDemuxReleaseIterator(&it);
    }
    return ms;
}

err_code film_webp_rewind(film_webp *w)
{
    if (w->decoder) {
        WebPAnimDecoderReset(w->decoder);
        return ERR_OK;
    }
    w->decoder = WebPAnimDecoderNew(&w->file, NULL);
    return w->decoder ? ERR_OK : ERR_NOMEM;
}

bool film_webp_next(film_webp *w, const uint8_t **rgba)
{
    uint8_t *canvas = NULL;
    int end_ms = 0;
    bool ok =
        WebPAnimDecoderHasMoreFrames(w->decoder) && WebPAnimDecoderGetNext(w->decoder, &canvas, &end_ms);
    *rgba = canvas;
    return ok;
}
