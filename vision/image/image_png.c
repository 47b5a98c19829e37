/* PNG through libpng's row interface.
 *
 * libpng never sees the whole file: a small reader passes on only the chunks that pixels depend on
 * (IHDR, PLTE, tRNS, IDAT, IEND), so text, profiles, animation frames and their decompression bombs
 * have no effect at all. What is left of colour management is deliberate: gamma and profiles are
 * ignored, as the checkpoints' own processors do.
 *
 * 16-bit samples keep their high byte (PIL does so for colour; for 16-bit grey, where PIL clips at
 * 255 and turns nearly everything white, the high byte is what a person sees). Alpha is composited
 * over white. An animated PNG gives its default image.
 */
#include "base/byte_order.h"
#include "vision/image/image_codec.h"

#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_CACHE_MAX = 16, CHUNK_BYTES_MAX = 256 << 10 };

typedef struct png_job {
    const uint8_t *data;
    size_t bytes, at;  /* the file and the next byte to look at */
    size_t chunk_left; /* bytes of the current chunk (length, type, data, CRC) still to be passed on */
    png_structp png;
    png_infop info;
    uint8_t *row; /* one row as RGB or RGBA */
    bool no_memory;
} png_job;

static bool chunk_wanted(const uint8_t *type)
{
    /* Upper case first letter: the image cannot be understood without it; libpng refuses unknown
     * ones. */
    return !(type[0] & 0x20) || memcmp(type, "tRNS", 4) == 0;
}

/* Moves to the next chunk that libpng shall see; false at a truncated one or at the end. */
static bool next_chunk(png_job *job)
{
    while (job->bytes - job->at >= 12) {
        const uint8_t *chunk = job->data + job->at;
        size_t n = (size_t)big_endian(chunk, 4) + 12;
        if (n > job->bytes - job->at) {
            return false;
        }
        if (chunk_wanted(chunk + 4)) {
            job->chunk_left = n;
            return true;
        }
        job->at += n;
    }
    return false;
}

static void read_chunks(png_structp png, png_bytep to, png_size_t n)
{
    png_job *job = png_get_io_ptr(png);
    while (n > 0) {
        if (job->chunk_left == 0 && !next_chunk(job)) {
            png_error(png, "end of file");
        }
        size_t part = n < job->chunk_left ? n : job->chunk_left;
        memcpy(to, job->data + job->at, part);
        job->at += part;
        job->chunk_left -= part;
        to += part;
        n -= part;
    }
}

static _Noreturn void on_error(png_structp png, png_const_charp text)
{
    (void)text;
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

/* Asks for 8-bit RGB or RGBA rows whatever the file holds; returns bytes per pixel. */
static int set_transforms(png_job *job)
{
    png_set_expand(job->png); /* palette to RGB, 1/2/4-bit grey to 8, tRNS to alpha */
    png_set_strip_16(job->png);
    png_set_gray_to_rgb(job->png);
    png_read_update_info(job->png, job->info);
    return png_get_channels(job->png, job->info);
}

/* Everything that may jump out. No local variable here lives across the jump. */
static err_code decode(png_job *job, image_sink *sink, image *out, const image_header *h, err_detail *detail)
{
    if (setjmp(png_jmpbuf(job->png))) {
        return job->no_memory ? image_err_memory(detail) : image_err_corrupt(detail, IMAGE_PNG);
    }
    png_set_user_limits(job->png, (png_uint_32)h->width, (png_uint_32)h->height);
    png_set_chunk_cache_max(job->png, CHUNK_CACHE_MAX);
    png_set_chunk_malloc_max(job->png, CHUNK_BYTES_MAX);
    png_set_read_fn(job->png, job, read_chunks);
    png_set_sig_bytes(job->png, 8);
    png_read_info(job->png, job->info);

    bool interlaced = png_get_interlace_type(job->png, job->info) == PNG_INTERLACE_ADAM7;
    int channels = set_transforms(job);
    if ((channels != 3 && channels != 4) || png_get_bit_depth(job->png, job->info) != 8) {
        return image_err_unsupported(detail, IMAGE_PNG);
    }
    job->row = malloc((size_t)h->width * (size_t)channels);
    if (!job->row) {
        return image_err_memory(detail);
    }
    err_code err = image_sink_init(sink, out, h, detail);
    if (err) {
        return err;
    }
    size_t w = (size_t)h->width, ht = (size_t)h->height;
    for (int pass = 0; pass < (interlaced ? PNG_INTERLACE_ADAM7_PASSES : 1); pass++) {
        /* The rows of an interlaced pass are thinned; each pixel goes straight to its place. */
        size_t x0 = interlaced ? (size_t)PNG_PASS_START_COL(pass) : 0;
        size_t y0 = interlaced ? (size_t)PNG_PASS_START_ROW(pass) : 0;
        size_t x_step = interlaced ? (size_t)PNG_PASS_COL_OFFSET(pass) : 1;
        size_t y_step = interlaced ? (size_t)PNG_PASS_ROW_OFFSET(pass) : 1;
        if (x0 >= w) {
            continue;
        }
        for (size_t y = y0; y < ht; y += y_step) {
            png_read_row(job->png, job->row, NULL);
            image_sink_put(sink, y, x0, x_step, (w - x0 + x_step - 1) / x_step, job->row, channels);
        }
    }
    png_read_end(job->png, NULL); /* also finds a missing IEND and a wrong checksum of the pixels */
    return ERR_OK;
}

/* libpng asks for all its memory here; a failure is told apart from a damaged file. */
static png_voidp png_take(png_structp png, png_alloc_size_t n)
{
    png_job *job = png_get_mem_ptr(png);
    void *p = malloc(n);
    job->no_memory |= p == NULL;
    return p;
}

static void png_give(png_structp png, png_voidp p)
{
    (void)png;
    free(p);
}

err_code image_png_decode(image *out, const image_header *h, const uint8_t *data, size_t bytes,
                          err_detail *detail)
{
    png_job job = {.data = data, .bytes = bytes, .at = 8};
    image_sink sink = {0};
    err_code err = ERR_NOMEM;
    job.png =
        png_create_read_struct_2(PNG_LIBPNG_VER_STRING, NULL, on_error, on_warning, &job, png_take, png_give);
    job.info = job.png ? png_create_info_struct(job.png) : NULL;
    if (job.info) {
        err = decode(&job, &sink, out, h, detail);
    } else {
        err = image_err_memory(detail);
    }
    png_destroy_read_struct(&job.png, &job.info, NULL);
    free(job.row);
    return err;
}
