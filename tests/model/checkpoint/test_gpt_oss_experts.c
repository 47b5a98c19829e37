/* The experts of GPT-OSS: MXFP4 stays packed and says what it said, whatever its nibbles' order; what
 * does not fit is refused. */
#include "tests/check.h"

#include <math.h>
#include <string.h>

#include "compute/formats/ggml_blocks.h"
#include "model/checkpoint/gpt_oss_experts.h"

enum { E = 2, ROWS = 6, COLS = 64, GROUPS = COLS / 32 };

static uint8_t blocks[E * ROWS * GROUPS * 16], scales[E * ROWS * GROUPS];

/* Number (e, row, col) by the definition of the published form. */
static float published(size_t e, size_t row, size_t col)
{
    static const float values[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    const size_t group = (e * ROWS + row) * GROUPS + col / 32, byte = group * 16 + col % 32 / 2;
    const unsigned code = col % 2 ? blocks[byte] >> 4 : blocks[byte] & 15;
    return ldexpf(code & 8 ? -values[code & 7] : values[code & 7], scales[group] - 127);
}

static void check_numbers(const tensor_table *made, const char *name, size_t rows, size_t first, size_t step)
{
    const named_tensor *t = tensor_table_find(made, name);
    CHECK(t && t->view.type == DTYPE_MXFP4 && t->view.n_dims == 3 && t->view.dims[1] == rows &&
          t->view.dims[2] == COLS && t->view.bytes == E * rows * GROUPS * 17);
    for (size_t e = 0; t && e < E; e++) {
        for (size_t r = 0; r < rows; r++) {
            ggml_span s;
            const uint8_t *from =
                (const uint8_t *)t->view.data + (e * rows + r) * ggml_row_bytes(DTYPE_MXFP4, COLS);
            ggml_unpack(&s, DTYPE_MXFP4, from, COLS);
            for (size_t c = 0; c < COLS; c++) {
                CHECK(s.scale[c / GGML_PART] * ((float)s.u[c] - 16) == published(e, first + r * step, c));
            }
        }
    }
}

static named_tensor bytes_tensor(const char *name, const void *data, size_t groups_bytes)
{
    named_tensor t = {name, name, "U8", {.type = DTYPE_OTHER, .dims = {E, ROWS, GROUPS, 16}, .data = data}};
    t.view.n_dims = groups_bytes > 1 ? 4 : 3;
    t.view.bytes = E * ROWS * GROUPS * groups_bytes;
    return t;
}

/* What becomes of all of `from`. */
static err_code adapt(tensor_table *made, tensor_table *from, arena *memory, err_detail *d)
{
    tensor_table_sort(from);
    err_code err = ERR_OK;
    for (size_t i = 0; !err && i < from->n; i++) {
        bool done = false;
        err = gpt_oss_experts_adapt(made, from, &from->items[i], memory, &done, d);
        CHECK(err || done);
    }
    tensor_table_sort(made);
    return err;
}

static void test_packed(void)
{
    tensor_table from = {0}, made = {0};
    err_detail d = {0};
    arena *memory = arena_create(1 << 20);
    const named_tensor parts[] = {
        bytes_tensor("layers.0.mlp.experts.gate_up_proj_blocks", blocks, 16),
        bytes_tensor("layers.0.mlp.experts.gate_up_proj_scales", scales, 1),
        bytes_tensor("layers.0.mlp.experts.down_proj_blocks", blocks, 16),
        bytes_tensor("layers.0.mlp.experts.down_proj_scales", scales, 1),
    };
    for (size_t i = 0; i < 4; i++) {
        CHECK(tensor_table_add(&from, &parts[i]));
    }
    CHECK_OK(adapt(&made, &from, memory, &d), d);
    CHECK_INT(made.n, 3);
    check_numbers(&made, "layers.0.mlp.experts.gate_proj", ROWS / 2, 0, 2);
    check_numbers(&made, "layers.0.mlp.experts.up_proj", ROWS / 2, 1, 2);
    check_numbers(&made, "layers.0.mlp.experts.down_proj", ROWS, 0, 1);
    tensor_table_free(&from);
    tensor_table_free(&made);
    arena_destroy(memory);
}

/* No memory for the packed rows: nothing of the tensor is there. */
static void test_no_room(void)
{
    tensor_table from = {0}, made = {0};
    err_detail d = {0};
    arena *memory = arena_create(64);
    const named_tensor b = bytes_tensor("layers.0.mlp.experts.down_proj_blocks", blocks, 16),
                       s = bytes_tensor("layers.0.mlp.experts.down_proj_scales", scales, 1);
    CHECK(tensor_table_add(&from, &b) && tensor_table_add(&from, &s));
    CHECK_INT(adapt(&made, &from, memory, &d), ERR_NOMEM);
    CHECK_STR(d.text, "no memory for tensor layers.0.mlp.experts.down_proj_blocks (0 MiB)");
    CHECK_INT(made.n, 0);
    tensor_table_free(&from);
    tensor_table_free(&made);
    arena_destroy(memory);
}

static void test_misfits(void)
{
    for (int fault = 0; fault < 3; fault++) {
        tensor_table from = {0}, made = {0};
        err_detail d = {0};
        arena *memory = arena_create(1 << 20);
        named_tensor b = bytes_tensor("layers.0.mlp.experts.down_proj_blocks", blocks, 16),
                     s = bytes_tensor("layers.0.mlp.experts.down_proj_scales", scales, 1);
        if (fault == 1) {
            s.view.dims[2] = 1;
        } else if (fault == 2) {
            b.view.dims[3] = 8;
        }
        CHECK(tensor_table_add(&from, &b));
        CHECK(fault == 0 || tensor_table_add(&from, &s));
        CHECK_INT(adapt(&made, &from, memory, &d), ERR_CORRUPT);
        CHECK(strstr(d.text, "down_proj_blocks") != NULL);
        tensor_table_free(&from);
        tensor_table_free(&made);
        arena_destroy(memory);
    }
}

/* Names of any length: the scales are found by their whole name, not by what a buffer holds of it. */
static void test_long_names(void)
{
    static const char tail[] = ".mlp.experts.down_proj_";
    for (size_t length = 505; length <= 516; length++) {
        char name[600], other[600];
        tensor_table from = {0}, made = {0};
        err_detail d = {0};
        bool done = false;
        arena *memory = arena_create(1 << 20);
        const size_t n_front = length - strlen(tail) - strlen("scales");
        memset(name, 'x', n_front);
        snprintf(name + n_front, sizeof name - n_front, "%sblocks", tail);
        memcpy(other, name, sizeof name);
        snprintf(other + n_front, sizeof other - n_front, "%sscales", tail);
        other[511] = '\0'; /* all that 512 bytes hold of a longer name */
        named_tensor b = bytes_tensor(name, blocks, 16), s = bytes_tensor(other, scales, 1);
        CHECK(tensor_table_add(&from, &b) && tensor_table_add(&from, &s));
        tensor_table_sort(&from);
        CHECK_INT(gpt_oss_experts_adapt(&made, &from, &b, memory, &done, &d),
                  length < 512 ? ERR_OK : ERR_CORRUPT);
        tensor_table_free(&from);
        tensor_table_free(&made);
        arena_destroy(memory);
    }
}

int main(void)
{
    for (size_t i = 0; i < sizeof blocks; i++) {
        blocks[i] = (uint8_t)(i * 2654435761u >> 13);
    }
    for (size_t i = 0; i < sizeof scales; i++) {
        scales[i] = (uint8_t)(110 + i % 30);
    }
    test_packed();
    test_misfits();
    test_no_room();
    test_long_names();
    CHECK_DONE();
}
