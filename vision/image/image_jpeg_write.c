#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include "vision/image/image_write.h"
#include "vision/image/resize.h"

enum { FULL_COLOUR = 90 };

typedef struct jpeg_writing {
    struct jpeg_error_mgr errors;
    struct jpeg_compress_struct cinfo;
    jmp_buf escape;
    unsigned char *data; /* of the library, from malloc */
    unsigned long bytes;
} jpeg_writing;

static _Noreturn void on_error(j_common_ptr cinfo)
{
    jpeg_writing *w = cinfo->client_data;
    longjmp(w->escape, 1);
}

static void on_output(j_common_ptr cinfo)
{
    (void)cinfo;
}

/* Everything that may jump out; false if out of memory. No local variable here lives across the
 * jump. */
static bool write_rows(jpeg_writing *w, const uint8_t *rgb, image_size size, int quality)
{
    struct jpeg_compress_struct *cinfo = &w->cinfo;
    if (setjmp(w->escape)) {
        return false;
    }
    jpeg_create_compress(cinfo);
    jpeg_mem_dest(cinfo, &w->data, &w->bytes);
    cinfo->image_width = (JDIMENSION)size.width;
    cinfo->image_height = (JDIMENSION)size.height;
    cinfo->input_components = 3;
    cinfo->in_color_space = JCS_RGB;
    jpeg_set_defaults(cinfo);
    jpeg_set_quality(cinfo, quality, TRUE);
    if (quality >= FULL_COLOUR) {
        cinfo->comp_info[0].h_samp_factor = cinfo->comp_info[0].v_samp_factor = 1;
    }
    jpeg_start_compress(cinfo, TRUE);
    while (cinfo->next_scanline < cinfo->image_height) {
        JSAMPROW row = (JSAMPROW)(uintptr_t)(rgb + (size_t)cinfo->next_scanline * (size_t)size.width * 3);
        (void)jpeg_write_scanlines(cinfo, &row, 1);
    }
    jpeg_finish_compress(cinfo);
    return true;
}

image_size image_fit(const image *img, int32_t side)
{
    const int32_t longer = img->width > img->height ? img->width : img->height;
    if (longer <= side) {
        return (image_size){img->width, img->height};
    }
    const int64_t w = (int64_t)img->width * side / longer, h = (int64_t)img->height * side / longer;
    return (image_size){w < 1 ? 1 : (int32_t)w, h < 1 ? 1 : (int32_t)h};
}

err_code image_write_jpeg(bytes *out, const image *img, image_size size, int quality, err_detail *detail)
{
    jpeg_writing *w = calloc(1, sizeof *w);
    uint8_t *rgb = malloc((size_t)size.width * (size_t)size.height * 3);
    err_code err = ERR_OK;
    if (!w || !rgb) {
        err = err_set(detail, ERR_NOMEM, "there is not enough memory to write an image");
        goto out;
    }
    err = resize_bicubic(rgb, size.width, size.height, img->rgb, img->width, img->height, detail);
    if (err != ERR_OK) {
        goto out;
    }
    w->cinfo.err = jpeg_std_error(&w->errors);
    w->cinfo.client_data = w;
    w->errors.error_exit = on_error;
    w->errors.output_message = on_output;
    if (write_rows(w, rgb, size, quality)) {
        bytes_append(out, w->data, w->bytes);
        err = out->failed ? err_set(detail, ERR_LIMIT, "an image is too large") : ERR_OK;
    } else {
        err = err_set(detail, ERR_NOMEM, "there is not enough memory to write an image");
    }
    jpeg_destroy_compress(&w->cinfo);
    free(w->data);
out:
    free(rgb);
    free(w);
    return err;
}
