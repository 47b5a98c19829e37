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

int main(void)
{
    test_blocks();
    CHECK_DONE();
}
