/* still: WebP, GIF, BMP, TIFF, AVIF and whatever else libavcodec is asked to read. */
#include "tests/fuzz/image_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    image_check(data, size);
    return 0;
}
