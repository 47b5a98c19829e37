/* fp8: blocks of 8-bit floats with their scales, sizes that are no whole number of blocks; nothing beside them is read. */
#include "model/checkpoint/fp8.h"

#include "compute/formats/half.h"
#include "tests/check.h"
#include "tests/guard.h"

enum { ROWS = 130, COLUMNS = 200, ROOM = 1 << 20 };

/* Every row of blocks and every column of them has a scale of its own; the data end where memory does. */
static void test_blocks(void)
{
    static uint8_t bits[ROWS * COLUMNS];
    static const float scales[4] = {1.0f, 2.0f, 4.0f, 0.5f};
    for (size_t i = 0; i < sizeof bits; i++) {
        bits[i] = (uint8_t)(0x38 + 8 * (i % 3)); /* 1, 2, 4 */
    }
    uint8_t *data = guard_copy(bits, sizeof bits);
    tensor_table all = {0};
    const named_tensor weight = {.name = "w.weight",
                                 .stored = "w.weight",
                                 .type_name = "F8_E4M3",
                                 .view = {DTYPE_OTHER, 2, {ROWS, COLUMNS}, data, sizeof bits}};
    const named_tensor scale = {.name = "w.weight_scale_inv",
                                .stored = "w.weight_scale_inv",
                                .type_name = "F32",
                                .view = {DTYPE_F32, 2, {2, 2}, scales, sizeof scales}};
    CHECK(tensor_table_add(&all, &weight) && tensor_table_add(&all, &scale));
    tensor_table_sort(&all);
    arena *memory = arena_create(ROOM);
    named_tensor t = weight;
    bool skip = true;
    err_detail d = {0};
    CHECK_OK(fp8_adapt(&all, &t, memory, &skip, &d), d);
    CHECK(!skip && t.view.type == DTYPE_BF16);
    CHECK_INT(t.view.bytes, 2 * sizeof bits);
    const uint16_t *out = t.view.data;
    size_t wrong = 0;
    for (size_t r = 0; r < ROWS; r++) {
        for (size_t c = 0; c < COLUMNS; c++) {
            const float value = (float)(1 << (r * COLUMNS + c) % 3) * scales[r / 128 * 2 + c / 128];
            wrong += out[r * COLUMNS + c] != bf16_from_f32(value);
        }
    }
    CHECK_INT(wrong, 0);
    t = scale;
    CHECK_OK(fp8_adapt(&all, &t, memory, &skip, &d), d);
    CHECK(skip); /* it belongs to a weight */
    arena_destroy(memory);
    tensor_table_free(&all);
    guard_free(data);
}

/* Another kind of 8-bit floats, scales that are missing or of another shape, and no memory: what is said, and of which tensor. */
static void test_refusals(void)
{
    static const uint8_t bits[ROWS * COLUMNS];
    static const float numbers[6];
    static const char SUPPORTED[] =
        "tensor w.weight: of 8-bit floats only F8_E4M3 with weight_scale_inv (a scale "
        "for each block of 128 x 128) is supported",
                      FITTING[] =
                          "tensor w.weight_scale_inv does not hold one number for each block of 128 x 128";
    static const struct {
        const char *type, *scales;
        int32_t n_dims, scale_dims;
        size_t rows, columns;
        dtype kind;
        size_t room;
        err_code code;
        const char *text;
    } CASES[] = {
        {"F8_E5M2", "w.weight_scale_inv", 2, 2, 2, 2, DTYPE_F32, ROOM, ERR_UNSUPPORTED, SUPPORTED},
        {"F8_E4M3", "v.weight_scale_inv", 2, 2, 2, 2, DTYPE_F32, ROOM, ERR_UNSUPPORTED, SUPPORTED},
        {"F8_E4M3", "w.weight_scale_inv", 2, 2, 3, 2, DTYPE_F32, ROOM, ERR_CORRUPT, FITTING},
        {"F8_E4M3", "w.weight_scale_inv", 2, 2, 2, 1, DTYPE_F32, ROOM, ERR_CORRUPT, FITTING},
        {"F8_E4M3", "w.weight_scale_inv", 3, 2, 2, 2, DTYPE_F32, ROOM, ERR_CORRUPT, FITTING},
        {"F8_E4M3", "w.weight_scale_inv", 2, 1, 2, 2, DTYPE_F32, ROOM, ERR_CORRUPT, FITTING},
        {"F8_E4M3", "w.weight_scale_inv", 2, 2, 2, 2, DTYPE_OTHER, ROOM, ERR_CORRUPT, FITTING},
        {"F8_E4M3", "w.weight_scale_inv", 2, 2, 2, 2, DTYPE_F32, 1024, ERR_NOMEM,
         "no memory for tensor w.weight"},
        {"U8", "v.weight_scale_inv", 2, 2, 2, 2, DTYPE_F32, ROOM, ERR_OK, ""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        tensor_table all = {0};
        const named_tensor weight = {
            .name = "w.weight",
            .stored = "w.weight",
            .type_name = CASES[i].type,
            .view = {DTYPE_OTHER, CASES[i].n_dims, {ROWS, COLUMNS, 1}, bits, sizeof bits}};
        const named_tensor scale = {.name = CASES[i].scales,
                                    .stored = CASES[i].scales,
                                    .type_name = "F32",
                                    .view = {CASES[i].kind,
                                             CASES[i].scale_dims,
                                             {CASES[i].rows, CASES[i].columns},
                                             numbers,
                                             sizeof numbers}};
        CHECK(tensor_table_add(&all, &weight) && tensor_table_add(&all, &scale));
        tensor_table_sort(&all);
        arena *memory = arena_create(CASES[i].room);
        named_tensor t = weight;
        bool skip = true;
        err_detail d = {0};
        CHECK_INT(fp8_adapt(&all, &t, memory, &skip, &d), CASES[i].code);
        CHECK_STR(d.text, CASES[i].text);
        CHECK(!skip && t.view.data == bits && t.view.type == DTYPE_OTHER);
        t = scale;
        CHECK_INT(fp8_adapt(&all, &t, memory, &skip, &d), ERR_OK);
        CHECK_INT(skip, scale.stored[0] == 'w');
        arena_destroy(memory);
        tensor_table_free(&all);
    }
}

int main(void)
{
    test_refusals();
    test_blocks();
    CHECK_DONE();
}
