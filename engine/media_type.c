#include "engine/engine.h"
#include "vision/video/video.h"
#include "vision/image/image.h"

const char *engine_media_type(const uint8_t *head, size_t n)
{
    const image_format format = image_sniff(head, n);
    if (format != IMAGE_UNKNOWN) {
        return image_format_mime(format);
    }
    switch (video_sniff(head, n)) {
    case VIDEO_MP4:
        return "video/mp4";
    case VIDEO_MATROSKA:
        return "video/x-matroska";
    case VIDEO_AVI:
        return "video/x-msvideo";
    default:
        return NULL;
    }
}
