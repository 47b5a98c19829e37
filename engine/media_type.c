#include "engine/engine.h"
#include "vision/film.h"
#include "vision/image.h"

const char *engine_media_type(const uint8_t *head, size_t n)
{
    const image_format picture = image_sniff(head, n);
    if (picture != IMAGE_UNKNOWN) {
        return image_format_mime(picture);
    }
    switch (film_sniff(head, n)) {
    case FILM_MP4:
        return "video/mp4";
    case FILM_MATROSKA:
        return "video/x-matroska";
    case FILM_AVI:
        return "video/x-msvideo";
    default:
        return NULL;
    }
}
