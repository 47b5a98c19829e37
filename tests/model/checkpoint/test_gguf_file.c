/* gguf_file and gguf_set: what a file may look like, and one broken file of each kind, each refused
 * with the field named. */
#include "model/checkpoint/gguf_file.h"

#include <unistd.h>

#include "base/compiler.h"
#include "model/checkpoint/gguf_set.h"
#include "tests/model/checkpoint/gguf_maker.h"
#include "tests/folder.h"

static char folder[FOLDER_NAME];

static const char *path_of(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static const uint64_t TWO_ROWS[] = {4, 2}, BLOCK_ROW[] = {32, 1};
static const float EIGHT[] = {0, 1, 2, 3, 4, 5, 6, 7};

/* A good file of one value and two tensors, 32 + 18 bytes. */
static void make_good(gguf_maker *m)
{
    maker_init(m);
    maker_text(m, "general.architecture", "qwen35");
    maker_tensor(m, "a", 0, TWO_ROWS, 2, EIGHT, 32);
    maker_tensor(m, "b", 2, BLOCK_ROW, 2, "0123456789abcdefgh", 18);
}

static void test_good_file(void)
{
    gguf_maker m;
    gguf_file *f = NULL;
    err_detail d = {0};
    tensor t;
    const char *text = NULL;
    const uint8_t *cursor = NULL;
    uint64_t whole = 0;
    int64_t element = 0;
    size_t n = 0;
    double number = 0;
    bool truth = false;
    make_good(&m);
    maker_u32(&m, "n", 7);
    maker_f32(&m, "x", 0.5f);
    maker_bool(&m, "yes", true);
    maker_key(&m, "minus", GGUF_I8);
    put_number(&m.values, 0xff, 1);
    maker_key(&m, "large", GGUF_U64);
    put_number(&m.values, UINT64_MAX, 8);
    maker_array(&m, "list", GGUF_I32, 2);
    put_number(&m.values, 5, 4);
    put_number(&m.values, 0xfffffffe, 4);
    maker_array(&m, "texts", GGUF_TEXT, 3);
    put_text(&m.values, "one");
    put_text(&m.values, "");
    put_text(&m.values, "\xf0\x9f"); /* a piece of a character */
    maker_array(&m, "none", GGUF_F64, 0);
    maker_write(&m, path_of("good"));
    CHECK_OK(gguf_file_open(&f, path_of("good"), &d), d);
    if (!f) {
        return;
    }
    CHECK_INT(gguf_n_values(f), 9);
    CHECK_STR(gguf_value_at(f, 0)->key, "general.architecture");
    CHECK(gguf_text(gguf_find(f, "general.architecture"), &text, &n) && n == 6 &&
          memcmp(text, "qwen35", 6) == 0);
    CHECK(!gguf_text(gguf_find(f, "n"), &text, &n) && !gguf_text(NULL, &text, &n));
    CHECK(gguf_uint(gguf_find(f, "n"), &whole) && whole == 7);
    CHECK(gguf_number(gguf_find(f, "n"), &number) && number == 7);
    CHECK(gguf_number(gguf_find(f, "x"), &number) && number == 0.5);
    CHECK(!gguf_uint(gguf_find(f, "x"), &whole) && !gguf_uint(gguf_find(f, "minus"), &whole));
    CHECK(!gguf_uint(gguf_find(f, "large"), &whole) && !gguf_uint(gguf_find(f, "list"), &whole));
    CHECK(gguf_number(gguf_find(f, "minus"), &number) && number == -1);
    CHECK(gguf_bool(gguf_find(f, "yes"), &truth) && truth);
    CHECK(!gguf_bool(gguf_find(f, "n"), &truth));
    CHECK(gguf_int_at(gguf_find(f, "list"), 1, &element) && element == -2);
    CHECK(!gguf_int_at(gguf_find(f, "list"), 2, &element) &&
          !gguf_int_at(gguf_find(f, "texts"), 0, &element));
    CHECK(!gguf_number_at(gguf_find(f, "none"), 0, &number));
    const gguf_value *texts = gguf_find(f, "texts");
    CHECK(texts && texts->is_array && texts->n == 3);
    cursor = texts->data;
    gguf_next_text(&cursor, &text, &n);
    CHECK(n == 3 && memcmp(text, "one", 3) == 0);
    gguf_next_text(&cursor, &text, &n);
    CHECK_INT(n, 0);
    gguf_next_text(&cursor, &text, &n);
    CHECK(n == 2 && memcmp(text, "\xf0\x9f", 2) == 0);
    CHECK(gguf_find(f, "nothing") == NULL);
    const tensor_table *all = gguf_file_tensors(f);
    CHECK_INT(all->n, 2);
    CHECK_STR(all->items[0].name, "a");
    CHECK_STR(all->items[0].type_name, "F32");
    t = all->items[0].view;
    CHECK(t.type == DTYPE_F32 && t.n_dims == 2 && t.dims[0] == 2 && t.dims[1] == 4 && t.bytes == 32);
    CHECK(memcmp(t.data, EIGHT, sizeof EIGHT) == 0);
    CHECK_STR(all->items[1].name, "b");
    CHECK_STR(all->items[1].type_name, "Q4_0");
    t = all->items[1].view;
    CHECK(t.bytes == 18 && memcmp(t.data, "0123", 4) == 0);
    CHECK(tensor_table_find(all, "b") && !tensor_table_find(all, "c") && !tensor_table_find(all, ""));
    gguf_file_close(f);
    gguf_file_close(NULL);
}

static err_code open_bytes(gguf_maker *m, err_detail *d)
{
    gguf_file *f = NULL;
    maker_write(m, path_of("made"));
    err_code err = gguf_file_open(&f, path_of("made"), d);
    CHECK((f != NULL) == (err == ERR_OK));
    gguf_file_close(f);
    return err;
}

static void test_unusual_files(void)
{
    gguf_maker m;
    err_detail d = {0};
    maker_init(&m); /* nothing in it */
    CHECK_OK(open_bytes(&m, &d), d);
    make_good(&m);
    m.version = 2;
    CHECK_OK(open_bytes(&m, &d), d);
    make_good(&m); /* bytes behind the last tensor */
    bytes_append_str(&m.data, "rest");
    CHECK_OK(open_bytes(&m, &d), d);
    maker_init(&m);
    m.alignment = 64;
    maker_u32(&m, "general.alignment", 64);
    maker_tensor(&m, "a", 0, TWO_ROWS, 2, EIGHT, 32);
    maker_tensor(&m, "b", 0, TWO_ROWS, 2, EIGHT, 32);
    CHECK_OK(open_bytes(&m, &d), d);
    make_good(&m); /* a number without a dimension */
    maker_tensor(&m, "n", 0, NULL, 0, EIGHT, 4);
    CHECK_OK(open_bytes(&m, &d), d);
    make_good(&m); /* said by writers of whole files */
    maker_u32(&m, "split.no", 0);
    maker_u32(&m, "split.count", 0);
    CHECK_OK(open_bytes(&m, &d), d);
}

/* ---- broken files: each changes a good one ---- */

static void break_magic(gguf_maker *m)
{
    m->magic = "GGML";
}
static void break_version_0(gguf_maker *m)
{
    m->version = 0;
}
static void break_version_1(gguf_maker *m)
{
    m->version = 1;
}
static void break_version_4(gguf_maker *m)
{
    m->version = 4;
}
static void break_endian(gguf_maker *m)
{
    m->version = 3u << 24;
}
static void break_n_tensors(gguf_maker *m)
{
    m->n_tensors = UINT64_MAX / 40;
}
static void break_one_tensor_more(gguf_maker *m)
{
    m->n_tensors++;
}
static void break_n_values(gguf_maker *m)
{
    m->n_values = 1ull << 60;
}
static void break_one_value_more(gguf_maker *m)
{
    m->n_values++;
}
static void break_key_empty(gguf_maker *m)
{
    maker_u32(m, "", 1);
}
static void break_key_length(gguf_maker *m)
{
    put_number(&m->values, UINT64_MAX, 8);
    m->n_values++;
}
static void break_key_long(gguf_maker *m)
{
    static char key[70000];
    memset(key, 'k', sizeof key - 1);
    maker_u32(m, key, 1);
}
static void break_key_utf8(gguf_maker *m)
{
    maker_u32(m, "k\xff", 1);
}
static void break_key_nul(gguf_maker *m)
{
    put_number(&m->values, 3, 8);
    bytes_append(&m->values, "a\0b", 3);
    put_number(&m->values, GGUF_U8, 4);
    put_number(&m->values, 1, 1);
    m->n_values++;
}
static void break_key_twice(gguf_maker *m)
{
    maker_text(m, "general.architecture", "llama");
}
static void break_value_type(gguf_maker *m)
{
    maker_key(m, "k", GGUF_TYPES);
}
static void break_value_bool(gguf_maker *m)
{
    maker_key(m, "k", GGUF_BOOL);
    put_number(&m->values, 2, 1);
}
static void break_text_length(gguf_maker *m)
{
    maker_key(m, "k", GGUF_TEXT);
    put_number(&m->values, 1ull << 40, 8);
}
static void break_text_wraps(gguf_maker *m)
{
    maker_key(m, "k", GGUF_TEXT);
    put_number(&m->values, UINT64_MAX - 8, 8);
}
static void break_text_utf8(gguf_maker *m)
{
    maker_text(m, "k", "caf\xe9");
}
static void break_array_of_arrays(gguf_maker *m)
{
    maker_array(m, "k", GGUF_ARRAY, 1);
}
static void break_array_type(gguf_maker *m)
{
    maker_array(m, "k", 77, 1);
}
static void break_array_length(gguf_maker *m)
{
    maker_array(m, "k", GGUF_U32, (1ull << 62) + 1); /* times four: 4 */
}
static void break_array_texts(gguf_maker *m)
{
    maker_array(m, "k", GGUF_TEXT, 1ull << 61);
}
static void break_array_text(gguf_maker *m)
{
    maker_array(m, "k", GGUF_TEXT, 2);
    put_text(&m->values, "fine");
    put_number(&m->values, 1ull << 50, 8);
}
static void break_alignment_0(gguf_maker *m)
{
    maker_u32(m, "general.alignment", 0);
}
static void break_alignment_24(gguf_maker *m)
{
    maker_u32(m, "general.alignment", 24);
}
static void break_alignment_huge(gguf_maker *m)
{
    maker_u32(m, "general.alignment", 1u << 31);
}
static void break_alignment_type(gguf_maker *m)
{
    maker_f32(m, "general.alignment", 32);
}
static void break_alignment_other(gguf_maker *m)
{
    maker_u32(m, "general.alignment", 64); /* the tensors lie at multiples of 32 */
}
static void break_split_no(gguf_maker *m)
{
    maker_u32(m, "split.no", 2);
    maker_u32(m, "split.count", 2);
}
static void break_split_count(gguf_maker *m)
{
    maker_text(m, "split.count", "two");
}
static void break_name_empty(gguf_maker *m)
{
    maker_info(m, "", 0, TWO_ROWS, 2, 64);
}
static void break_name_long(gguf_maker *m)
{
    static char name[400];
    memset(name, 'n', sizeof name - 1);
    maker_info(m, name, 0, TWO_ROWS, 2, 64);
}
static void break_name_twice(gguf_maker *m)
{
    maker_tensor(m, "a", 0, TWO_ROWS, 2, EIGHT, 32);
}
static void break_dims_5(gguf_maker *m)
{
    maker_info(m, "c", 0, (uint64_t[]){1, 1, 1, 1, 1}, 5, 64);
}
static void break_dim_0(gguf_maker *m)
{
    maker_info(m, "c", 0, (uint64_t[]){4, 0}, 2, 64);
}
static void break_dim_negative(gguf_maker *m)
{
    maker_info(m, "c", 0, (uint64_t[]){(uint64_t)-4}, 1, 64);
}
static void break_dims_product(gguf_maker *m)
{
    maker_info(m, "c", 0, (uint64_t[]){1ull << 32, 1ull << 32}, 2, 64);
}
static void break_dims_bytes(gguf_maker *m)
{
    maker_info(m, "c", 0, (uint64_t[]){1ull << 62}, 1, 64);
}
static void break_type_unknown(gguf_maker *m)
{
    maker_info(m, "c", 144, TWO_ROWS, 2, 64);
}
static void break_type_withdrawn(gguf_maker *m)
{
    maker_info(m, "c", 4, TWO_ROWS, 2, 64);
}
static void break_block(gguf_maker *m)
{
    maker_info(m, "c", 12, (uint64_t[]){128, 2}, 2, 64);
}
static void break_offset_odd(gguf_maker *m)
{
    maker_info(m, "c", 0, TWO_ROWS, 2, 65);
}
static void break_offset_outside(gguf_maker *m)
{
    maker_info(m, "c", 0, TWO_ROWS, 2, 1ull << 40);
}
static void break_offset_wraps(gguf_maker *m)
{
    maker_info(m, "c", 0, TWO_ROWS, 2, UINT64_MAX - 31);
}
static void break_overlap(gguf_maker *m)
{
    maker_info(m, "c", 0, TWO_ROWS, 2, 32);
}
static void break_overlap_one(gguf_maker *m)
{
    static const float data[16] = {0};
    maker_tensor(m, "c", 0, (uint64_t[]){4, 4}, 2, data, sizeof data); /* 64 .. 128 */
    maker_info(m, "d", 0, TWO_ROWS, 2, 96);
}
static void break_gap(gguf_maker *m)
{
    maker_info(m, "c", 0, TWO_ROWS, 2, 96);
    bytes_append(&m->data, EIGHT, 32);
    bytes_append(&m->data, EIGHT, 32);
    bytes_append(&m->data, EIGHT, 32);
}
static void break_data_missing(gguf_maker *m)
{
    maker_info(m, "c", 0, TWO_ROWS, 2, 64);
}

/* What a block of each type holds and takes, as the format has it; numbers between them were withdrawn. */
static void test_types(void)
{
    static const struct {
        uint32_t number;
        const char *name;
        uint32_t columns, bytes;
    } types[] = {
        {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},      {3, "Q4_1", 32, 20},
        {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},      {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},
        {10, "Q2_K", 256, 84},    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
        {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74},
        {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},   {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},
        {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
        {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56},
        {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},   {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},
    };
    static const char data[2048];
    size_t next = 0;
    for (uint32_t number = 0; number < 44; number++) {
        const bool known = next < sizeof types / sizeof types[0] && types[next].number == number;
        const uint32_t columns = known ? types[next].columns : 256, size = known ? types[next].bytes : 256;
        /* two rows of two blocks; without the last byte; a row that is no whole number of blocks */
        for (int fault = 0; fault < 3; fault++) {
            gguf_maker m;
            gguf_file *f = NULL;
            err_detail d = {0};
            if (fault == 2 && columns == 1) {
                continue;
            }
            maker_init(&m);
            maker_text(&m, "general.architecture", "x");
            maker_tensor(&m, "a", number, (uint64_t[]){2 * columns + (fault == 2), 2}, 2, data,
                         4 * size - (fault == 1));
            maker_write(&m, path_of("typed"));
            const err_code err = gguf_file_open(&f, path_of("typed"), &d);
            if (known && fault == 0) {
                CHECK_OK(err, d);
                const tensor *t = f ? &gguf_file_tensors(f)->items[0].view : NULL;
                CHECK(t && t->bytes == 4 * size && t->n_dims == 2 && t->dims[0] == 2 &&
                      t->dims[1] == 2 * columns);
            } else {
                CHECK(err != ERR_OK);
            }
            gguf_file_close(f);
        }
        next += known;
    }
    CHECK_INT(next, sizeof types / sizeof types[0]);
}

static void test_broken_files(void)
{
    static const struct {
        void (*how)(gguf_maker *m);
        err_code err;
        const char *named; /* what the message must hold */
    } cases[] = {
        {break_magic, ERR_CORRUPT, "not a GGUF file"},
        {break_version_0, ERR_UNSUPPORTED, "version 0"},
        {break_version_1, ERR_UNSUPPORTED, "version 1"},
        {break_version_4, ERR_UNSUPPORTED, "version 4"},
        {break_endian, ERR_UNSUPPORTED, "big-endian"},
        {break_n_tensors, ERR_CORRUPT, "number of tensors"},
        {break_one_tensor_more, ERR_CORRUPT, "tensor name 2"},
        {break_n_values, ERR_CORRUPT, "number of metadata values"},
        {break_one_value_more, ERR_CORRUPT, "tensor name 0"}, /* its entry was read as a value */
        {break_key_empty, ERR_CORRUPT, "metadata key 1 is empty"},
        {break_key_length, ERR_CORRUPT, "metadata key 1"},
        {break_key_long, ERR_CORRUPT, "longer than 65535"},
        {break_key_utf8, ERR_CORRUPT, "metadata key 1"},
        {break_key_nul, ERR_CORRUPT, "metadata key 1"},
        {break_key_twice, ERR_CORRUPT, "general.architecture: the key occurs twice"},
        {break_value_type, ERR_CORRUPT, "metadata k: its type 13"},
        {break_value_bool, ERR_CORRUPT, "metadata k: a truth value"},
        {break_text_length, ERR_CORRUPT, "metadata k: its text passes"},
        {break_text_wraps, ERR_CORRUPT, "metadata k: its text passes"},
        {break_text_utf8, ERR_CORRUPT, "metadata k: its text is not UTF-8"},
        {break_array_of_arrays, ERR_UNSUPPORTED, "metadata k: arrays of arrays"},
        {break_array_type, ERR_CORRUPT, "metadata k: its type 77"},
        {break_array_length, ERR_CORRUPT, "metadata k: it passes the end"},
        {break_array_texts, ERR_CORRUPT, "metadata k: it holds more texts"},
        {break_array_text, ERR_CORRUPT, "metadata k: text 1"},
        {break_alignment_0, ERR_CORRUPT, "general.alignment"},
        {break_alignment_24, ERR_CORRUPT, "general.alignment"},
        {break_alignment_huge, ERR_CORRUPT, "general.alignment"},
        {break_alignment_type, ERR_CORRUPT, "general.alignment"},
        {break_alignment_other, ERR_CORRUPT, "tensor b: its offset 32"},
        {break_split_no, ERR_CORRUPT, "split.no"},
        {break_split_count, ERR_CORRUPT, "split.count"},
        {break_name_empty, ERR_CORRUPT, "tensor name 2"},
        {break_name_long, ERR_CORRUPT, "tensor name 2"},
        {break_name_twice, ERR_CORRUPT, "tensor a: the name occurs twice"},
        {break_dims_5, ERR_CORRUPT, "tensor c: it has 5 dimensions"},
        {break_dim_0, ERR_CORRUPT, "tensor c: its dimensions"},
        {break_dim_negative, ERR_CORRUPT, "tensor c: its dimensions"},
        {break_dims_product, ERR_CORRUPT, "tensor c: its dimensions"},
        {break_dims_bytes, ERR_CORRUPT, "tensor c: its dimensions"},
        {break_type_unknown, ERR_UNSUPPORTED, "tensor c: its type 144"},
        {break_type_withdrawn, ERR_UNSUPPORTED, "tensor c: its type 4"},
        {break_block, ERR_CORRUPT, "tensor c: its rows of 128 are not whole blocks of 256 (Q4_K)"},
        {break_offset_odd, ERR_CORRUPT, "tensor c: its offset 65"},
        {break_offset_outside, ERR_CORRUPT, "tensor c: there is a gap"},
        {break_offset_wraps, ERR_CORRUPT, "tensor c: there is a gap"},
        {break_overlap, ERR_CORRUPT, "overlaps tensor"},
        {break_overlap_one, ERR_CORRUPT, "tensor d overlaps tensor c"},
        {break_gap, ERR_CORRUPT, "tensor c: there is a gap"},
        {break_data_missing, ERR_CORRUPT, "tensor c: its 32 bytes at offset 64"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        gguf_maker m;
        err_detail d = {0};
        make_good(&m);
        cases[i].how(&m);
        CHECK_INT(open_bytes(&m, &d), cases[i].err);
        CHECK(strstr(d.text, "/made") != NULL);
        if (!strstr(d.text, cases[i].named)) {
            fprintf(stderr, "  case %zu: \"%s\" does not hold \"%s\"\n", i, d.text, cases[i].named);
            CHECK(!"message");
        }
    }
}

/* A good file cut at any byte is refused, and it is said where it ends. */
static void test_cut_files(void)
{
    static const char *const said[] = {"ends before its number of dimensions", "ends inside its dimensions",
                                       "ends inside its type and offset"};
    bool was_said[ARRAY_LEN(said)] = {false};
    gguf_maker m;
    bytes whole;
    bytes_init(&whole, 1 << 20);
    make_good(&m);
    maker_array(&m, "texts", GGUF_TEXT, 1);
    put_text(&m.values, "one");
    maker_finish(&m, &whole);
    for (size_t n = 0; n < whole.len; n++) {
        gguf_file *f = NULL;
        err_detail d = {0};
        bytes part = whole;
        part.len = n;
        maker_save(&part, path_of("cut"));
        CHECK(gguf_file_open(&f, path_of("cut"), &d) == ERR_CORRUPT && f == NULL && d.text[0] != '\0');
        for (size_t i = 0; i < ARRAY_LEN(said); i++) {
            was_said[i] = was_said[i] || strstr(d.text, said[i]);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(said); i++) {
        CHECK(was_said[i]);
    }
    bytes_deinit(&whole);
}

/* The first bytes of a good file are not wrong, and those of one that ends too early are, as soon as it shows: here with the
 * length of its last list. */
static void test_heads(void)
{
    gguf_maker m;
    bytes whole;
    maker_init(&m);
    maker_text(&m, "general.architecture", "qwen35");
    maker_array(&m, "list", GGUF_I32, 5);
    for (int i = 0; i < 5; i++) {
        put_number(&m.values, 7, 4);
    }
    bytes_init(&whole, 1 << 16);
    maker_finish(&m, &whole);
    for (size_t n = 0; n <= whole.len; n++) {
        const struct {
            size_t n_file;
            bool is_good;
        } files[] = {
            {whole.len, n >= 4}, {whole.len + 100, n >= 4}, {n, n == whole.len}, {0, n == whole.len}};
        for (size_t i = 0; i < ARRAY_LEN(files); i++) {
            gguf_file *f = NULL;
            bool is_whole = false;
            err_detail d = {0};
            const err_code err =
                gguf_file_open_head(&f, whole.data, n, files[i].n_file, "head", &is_whole, &d);
            CHECK_INT(err, files[i].is_good ? ERR_OK : ERR_CORRUPT);
            CHECK((f != NULL) == files[i].is_good);
            CHECK_INT(is_whole, !files[i].is_good || n == whole.len);
            gguf_file_close(f);
        }
        if (n + 20 >= whole.len) { /* all but the numbers of the list */
            gguf_file *f = NULL;
            bool is_whole = false;
            err_detail d = {0};
            CHECK_INT(gguf_file_open_head(&f, whole.data, n < whole.len ? n : n - 1, whole.len - 1, "head",
                                          &is_whole, &d),
                      ERR_CORRUPT);
            CHECK(is_whole && !f);
        }
    }
    bytes_deinit(&whole);
}

/* ---- models in parts ---- */

static void write_part(const char *name, const char *tensor_name, uint32_t no, uint32_t count,
                       uint32_t n_tensors)
{
    gguf_maker m;
    maker_init(&m);
    maker_u32(&m, "split.no", no);
    maker_u32(&m, "split.count", count);
    maker_u32(&m, "split.tensors.count", n_tensors);
    maker_tensor(&m, tensor_name, 0, TWO_ROWS, 2, EIGHT, 32);
    maker_write(&m, path_of(name));
}

static void refuse_set(const char *name, err_code expected, const char *named)
{
    gguf_set *set = NULL;
    err_detail d = {0};
    CHECK_INT(gguf_set_open(&set, path_of(name), &d), expected);
    CHECK(set == NULL);
    if (!strstr(d.text, named)) {
        fprintf(stderr, "  \"%s\" does not hold \"%s\"\n", d.text, named);
        CHECK(!"message");
    }
}

static void test_parts(void)
{
    gguf_set *set = NULL;
    err_detail d = {0};
    write_part("m-00001-of-00003.gguf", "x", 0, 3, 3);
    write_part("m-00002-of-00003.gguf", "y", 1, 3, 3);
    refuse_set("m-00001-of-00003.gguf", ERR_NOT_FOUND, "part 3 of 3 is missing");
    write_part("m-00003-of-00003.gguf", "z", 2, 3, 3);
    CHECK_OK(gguf_set_open(&set, path_of("m-00002-of-00003.gguf"), &d), d); /* any part */
    if (set) {
        const tensor_table *all = gguf_set_tensors(set);
        CHECK_INT(all->n, 3);
        CHECK(tensor_table_find(all, "x") && tensor_table_find(all, "z") && !tensor_table_find(all, "w"));
        CHECK_STR(all->items[2].name, "z");
        CHECK(gguf_find(gguf_set_head(set), "split.no") != NULL);
    }
    gguf_set_close(set);
    gguf_set_close(NULL);
    write_part("m-00003-of-00003.gguf", "x", 2, 3, 3);
    refuse_set("m-00001-of-00003.gguf", ERR_CORRUPT, "tensor x is in parts 1 and 3");
    write_part("m-00003-of-00003.gguf", "z", 1, 3, 3);
    refuse_set("m-00001-of-00003.gguf", ERR_CORRUPT, "say part 2 of 3");
    write_part("m-00001-of-00003.gguf", "x", 0, 3, 4);
    write_part("m-00003-of-00003.gguf", "z", 2, 3, 3);
    refuse_set("m-00001-of-00003.gguf", ERR_CORRUPT, "split.tensors.count is 4");
    write_part("alone.gguf", "x", 0, 0, 1); /* said by writers of whole files */
    CHECK_OK(gguf_set_open(&set, path_of("alone.gguf"), &d), d);
    gguf_set_close(set);
    write_part("renamed.gguf", "x", 0, 3, 3);
    refuse_set("renamed.gguf", ERR_INVALID, "cannot be found");
    refuse_set("nowhere.gguf", ERR_NOT_FOUND, "nowhere.gguf");
}

int main(void)
{
    folder_make(folder);
    test_good_file();
    test_unusual_files();
    test_types();
    test_broken_files();
    test_cut_files();
    test_heads();
    test_parts();
    CHECK_DONE();
}
