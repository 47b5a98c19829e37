/* JPEG through libjpeg-turbo: baseline, progressive and arithmetic; grey, YCbCr, RGB, CMYK and
 * YCCK.
 *
 * The settings are the library's defaults (accurate integer DCT, smooth chroma upsampling), which
 * PIL and with it the checkpoints' processors use. CMYK is read by Adobe's convention, inverted, as
 * every common viewer does, and turned into RGB with PIL's formula. libjpeg goes on after damage
 * and only warns; here the first warning refuses the file.
 */
#include "vision/image/image_codec.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jerror.h>
#include <jpeglib.h>

enum { SCANS_MAX = 100, BLOCK_MEMORY_MAX = 448 << 20 };

typedef struct jpeg_job {
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    struct jpeg_decompress_struct cinfo;
    jmp_buf escape;
    err_code failure; /* why the escape was taken */
    uint8_t *row;     /* one row as RGB or inverted CMYK */
} jpeg_job;

static err_code failure_of(int msg_code)
{
    switch (msg_code) {
    case JERR_OUT_OF_MEMORY:
        return ERR_NOMEM;
    case JERR_NO_BACKING_STORE: /* more than BLOCK_MEMORY_MAX would be needed */
        return ERR_LIMIT;
    case JERR_BAD_PRECISION:
    case JERR_ARITH_NOTIMPL:
    case JERR_NOT_COMPILED:
    case JERR_SOF_UNSUPPORTED:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
        return ERR_UNSUPPORTED;
    default:
        return ERR_CORRUPT;
    }
}

static _Noreturn void on_error(j_common_ptr cinfo)
{
    jpeg_job *job = cinfo->client_data;
    job->failure = failure_of(cinfo->err->msg_code);
    longjmp(job->escape, 1);
}

/* Level -1 is a warning: the data is damaged or ends early. Higher levels are traces. */
static void on_message(j_common_ptr cinfo, int level)
{
    if (level < 0) {
        jpeg_job *job = cinfo->client_data;
        job->failure = ERR_CORRUPT;
        longjmp(job->escape, 1);
    }
}

static void on_output(j_common_ptr cinfo)
{
    (void)cinfo;
}

/* A small file can ask for thousands of passes over a large image. */
static void on_progress(j_common_ptr cinfo)
{
    jpeg_job *job = cinfo->client_data;
    if (job->cinfo.input_scan_number > SCANS_MAX) {
        job->failure = ERR_CORRUPT;
        longjmp(job->escape, 1);
    }
}

/* a * b / 255, rounded as PIL does. */
static unsigned mul255(unsigned a, unsigned b)
{
    unsigned t = a * b + 128;
    return ((t >> 8) + t) >> 8;
}

/* In place: n pixels of inverted CMYK (255 = no ink) to RGB. */
static void cmyk_to_rgb(uint8_t *row, size_t n)
{
    const uint8_t *from = row;
    uint8_t *to = row;
    for (size_t i = 0; i < n; i++, from += 4, to += 3) {
        unsigned light = from[3];
        uint8_t rgb[3];
        for (int c = 0; c < 3; c++) {
            rgb[c] = (uint8_t)(light - mul255(255u - from[c], light));
        }
        to[0] = rgb[0];
        to[1] = rgb[1];
        to[2] = rgb[2];
    }
}

static err_code fail(const jpeg_job *job, const image_header *h, err_detail *detail)
{
    switch (job->failure) {
    case ERR_NOMEM:
        return image_err_memory(detail);
    case ERR_UNSUPPORTED:
        return image_err_unsupported(detail, IMAGE_JPEG);
    case ERR_LIMIT:
        return err_set_param(
            detail, ERR_LIMIT, NULL, "image_too_large",
            "the image is %lld x %lld pixels in progressive form, which would need too much memory",
            (long long)h->width, (long long)h->height);
    default:
        return image_err_corrupt(detail, IMAGE_JPEG);
    }
}

/* Everything that may jump out. No local variable here lives across the jump. */
static err_code decode(jpeg_job *job, image_sink *sink, image *out, const image_header *h,
                       const uint8_t *data, size_t bytes, err_detail *detail)
{
    struct jpeg_decompress_struct *cinfo = &job->cinfo;
    if (setjmp(job->escape)) {
        return fail(job, h, detail);
    }
    jpeg_create_decompress(cinfo);
    cinfo->mem->max_memory_to_use = BLOCK_MEMORY_MAX;
    cinfo->progress = &job->progress;
    jpeg_mem_src(cinfo, data, (unsigned long)bytes);
    (void)jpeg_read_header(cinfo, TRUE);
    if (cinfo->image_width != (JDIMENSION)h->width || cinfo->image_height != (JDIMENSION)h->height) {
        return image_err_corrupt(detail, IMAGE_JPEG);
    }
    bool cmyk = cinfo->num_components == 4;
    cinfo->out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
    job->row = malloc((size_t)h->width * 4);
    if (!job->row) {
        return image_err_memory(detail);
    }
    err_code err = image_sink_init(sink, out, h, detail);
    if (err) {
        return err;
    }
    (void)jpeg_start_decompress(cinfo);
    while (cinfo->output_scanline < cinfo->output_height) {
        JSAMPROW rows[1] = {job->row};
        size_t y = cinfo->output_scanline;
        (void)jpeg_read_scanlines(cinfo, rows, 1);
        if (cmyk) {
            cmyk_to_rgb(job->row, (size_t)h->width);
        }
        image_sink_put(sink, y, 0, 1, (size_t)h->width, job->row, 3);
    }
    (void)jpeg_finish_decompress(cinfo); /* reads on to the end mark, so a missing one is found */
    return ERR_OK;
}

static void listen_for_errors(jpeg_job *job)
{
    job->cinfo.err = jpeg_std_error(&job->errors);
    job->cinfo.client_data = job;
    job->errors.error_exit = on_error;
    job->errors.emit_message = on_message;
    job->errors.output_message = on_output;
    job->progress.progress_monitor = on_progress;
}

/* A function of its own, so that its caller's jump finds no variable changed. */
static size_t sum_coefficients(struct jpeg_decompress_struct *cinfo)
{
    size_t n = 0;
    for (int i = 0; i < cinfo->num_components; i++) {
        /* Rounded up to whole groups of blocks, of at most four each way. */
        const jpeg_component_info *c = &cinfo->comp_info[i];
        n += (c->width_in_blocks + (size_t)4) * (c->height_in_blocks + (size_t)4) * sizeof(JBLOCK);
    }
    return n;
}

static size_t coefficient_bytes(jpeg_job *job, const uint8_t *data, size_t bytes)
{
    struct jpeg_decompress_struct *cinfo = &job->cinfo;
    if (setjmp(job->escape)) {
        return 0;
    }
    jpeg_create_decompress(cinfo);
    jpeg_mem_src(cinfo, data, (unsigned long)bytes);
    (void)jpeg_read_header(cinfo, TRUE);
    return jpeg_has_multiple_scans(cinfo) ? sum_coefficients(cinfo) : 0;
}

size_t image_jpeg_scratch(const uint8_t *data, size_t bytes)
{
    jpeg_job *job = calloc(1, sizeof *job);
    if (!job) {
        return 0;
    }
    listen_for_errors(job);
    const size_t n = coefficient_bytes(job, data, bytes);
    jpeg_destroy_decompress(&job->cinfo);
    free(job);
    return n;
}

err_code image_jpeg_decode(image *out, const image_header *h, const uint8_t *data, size_t bytes,
                           err_detail *detail)
{
    jpeg_job *job = calloc(1, sizeof *job);
    image_sink sink = {0};
    if (!job) {
        return image_err_memory(detail);
    }
    listen_for_errors(job);
    err_code err = decode(job, &sink, out, h, data, bytes, detail);
    jpeg_destroy_decompress(&job->cinfo);
    free(job->row);
    free(job);
    return err;
}
