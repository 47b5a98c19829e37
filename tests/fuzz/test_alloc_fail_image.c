/* Every allocation of image decoding fails once, those of the decoding libraries included. */
#include "base/file.h"
#include "tests/alloc_fail.h"
#include "tests/check.h"
#include "vision/image/image.h"

enum { MAX_POINTS = 3000 };

static size_t n_corrupt; /* images called damaged for want of memory */

static err_code decode(void *context)
{
    static const image_limits limits = {.max_pixels = 1 << 20, .max_side = 4096};
    const file_map *file = context;
    image img = {0};
    err_code err = image_decode(&img, file->data, file->bytes, &limits, NULL);
    CHECK((img.rgb != NULL) == (err == ERR_OK));
    image_deinit(&img);
    n_corrupt += err == ERR_CORRUPT;
    /* At some places a library without memory says that the file is damaged or ends there. */
    return err == ERR_CORRUPT ? ERR_NOMEM : err;
}

int main(void)
{
    static const char *const seeds[] = {
        "png/rgba8_interlaced.png",
        "png/palette2_trns.png",
        "png/rgb16.png",
        "png/exif_turned.png",
        "jpeg/exif_turned.jpg",
        "jpeg/progressive.jpg",
        "jpeg/cmyk.jpg",
        "still/a.avif",
#ifdef ALLOC_FAIL_WRAPPED
        /* TRAP: libavcodec's WebP decoder itself crashes when its own allocations fail, so for
         * these formats only ours do. */
        "still/a.bmp",
        "still/lzw.tiff",
        "still/a.webp",
#endif
    };
    for (size_t i = 0; i < ARRAY_LEN(seeds); i++) {
        char path[1024];
        file_map file;
        err_detail d = {0};
        CHECK(file_join(path, sizeof path, PARLEY_SOURCE_DIR "/tests/fuzz/seeds", seeds[i]));
        CHECK_OK(file_map_open(&file, path, &d), d);
        CHECK_INT(decode(&file), ERR_OK); /* also lets the libraries make what they keep */
        n_corrupt = 0;
        size_t n = alloc_fail_each(decode, &file, MAX_POINTS);
        printf("%s: %zu allocations, damaged for want of memory: %zu\n", seeds[i], n, n_corrupt);
        CHECK(n > 0 && n_corrupt * 10 < n); /* each point is tried twice */
        file_map_close(&file);
    }
    CHECK_DONE();
}
