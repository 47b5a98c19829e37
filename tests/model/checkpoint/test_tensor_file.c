/* tensor_file: what a safetensors file may look like, and one damaged file of each kind. */
#include "tests/check.h"

#include <stdint.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "model/checkpoint/tensor_file.h"
#include "tests/folder.h"

static char folder[FOLDER_NAME];

static const char *path_of(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_bytes(const char *name, const void *data, size_t n)
{
    FILE *f = fopen(path_of(name), "wb");
    CHECK(f && fwrite(data, 1, n, f) == n);
    CHECK(f && fclose(f) == 0);
}

/* A file with this header text and n_data bytes 0, 1, 2, ... If no header length is stated (0), it
 * is the true one, after a blank where that makes it even: otherwise all data would lie at odd
 * positions. */
static void write_tensors(const char *name, const char *header, uint64_t stated, size_t n_data)
{
    bytes b;
    bool pad = stated == 0 && strlen(header) % 2 != 0;
    uint64_t n = stated ? stated : strlen(header) + pad;
    bytes_init(&b, 1 << 20);
    for (int i = 0; i < 8; i++) {
        bytes_append_char(&b, (char)(n >> (8 * i) & 0xff));
    }
    bytes_append_str(&b, header);
    bytes_append_str(&b, pad ? " " : "");
    for (size_t i = 0; i < n_data; i++) {
        bytes_append_char(&b, (char)i);
    }
    write_bytes(name, b.data, b.len);
    bytes_deinit(&b);
}

static void test_good_file(void)
{
    tensor_file *f = NULL;
    tensor t;
    err_detail d = {0};
    /* blanks behind the header; an empty tensor; a scalar; a type we do not compute with */
    write_tensors("good",
                  "{\"__metadata__\":{\"format\":\"pt\"},"
                  "\"b\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[8,20]},"
                  "\"a\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]},"
                  "\"none\":{\"dtype\":\"F32\",\"shape\":[0,4],\"data_offsets\":[8,8]},"
                  "\"one\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[20,24]}}   ",
                  0, 24);
    CHECK_OK(tensor_file_open(&f, path_of("good"), &d), d);
    if (!f) {
        return;
    }
    CHECK_INT(tensor_file_tensors(f)->n, 4);
    CHECK(tensor_table_get(tensor_file_tensors(f), "b", &t));
    CHECK_INT(t.type, DTYPE_BF16);
    CHECK_INT(t.n_dims, 2);
    CHECK_INT(t.dims[1], 3);
    CHECK_INT(t.bytes, 12);
    CHECK_INT(((const unsigned char *)t.data)[0], 8);
    CHECK(tensor_table_get(tensor_file_tensors(f), "one", &t));
    CHECK_INT(t.n_dims, 0);
    CHECK_INT(t.bytes, 4);
    CHECK(!tensor_table_get(tensor_file_tensors(f), "c", &t));
    CHECK(!tensor_table_get(tensor_file_tensors(f), "", &t));
    const named_tensor *first = &tensor_file_tensors(f)->items[0];
    CHECK_STR(first->name, "a");
    CHECK_STR(first->type_name, "I64");
    t = first->view;
    CHECK_INT(t.type, DTYPE_OTHER);
    CHECK_INT(t.bytes, 8);
    tensor_file_close(f);
    tensor_file_close(NULL);
}

static void test_damaged_files(void)
{
#define A "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"
    static const struct {
        const char *header;
        uint64_t stated;
        size_t n_data;
        const char *named; /* what the message must hold */
    } cases[] = {
        {"{" A "}", 0, 4, "tensor a"},                           /* truncated data */
        {"{" A "}", 0, 9, "after the last tensor"},              /* rest */
        {"{" A "}", 1000, 8, "header should be 1000"},           /* truncated header */
        {"{" A "}", UINT64_MAX, 8, "header should be"},          /* absurd length */
        {"{" A "}", (uint64_t)101 << 20, 8, "header should be"}, /* over the limit */
        {"{" A "}", 30, 8, "header"},                            /* cut JSON */
        {"[1]", 0, 0, "not a JSON object"},
        {"{" A ",}", 0, 8, "header"},
        {"{\"a\":5}", 0, 0, "tensor a"},
        {"{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 0, 8, "dtype"},
        {"{\"a\":{\"dtype\":\"Q4\",\"shape\":[2],\"data_offsets\":[0,8]}}", 0, 8, "dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 0, 8, "shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 0, 8, "shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,8]}}", 0, 8, "shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[\"2\"],\"data_offsets\":[0,8]}}", 0, 8, "shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,2],\"data_offsets\":[0,8]}}", 0, 8, "dimensions"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,2],\"data_offsets\":[0,8]}}", 0, 8,
         "shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2305843009213693952],\"data_offsets\":[0,8]}}", 0, 8, "shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 0, 8, "need 12 bytes"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 0, 8, "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", 0, 8, "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[-8,0]}}", 0, 8, "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 0, 8, "ends before"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", 0, 12, "gap"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[9007199254740984,9007199254740992]}}", 0,
         8, "truncated"},
        {"{" A ",\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", 0, 12,
         "overlaps tensor a"},
        {"{" A ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[12,16]}}", 0, 16,
         "tensor b: there is a gap"},
        {"{" A ",\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}", 0, 12, "twice"},
        {"{" A "} ", 55, 8, "odd position"},
    };
#undef A
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        tensor_file *f = NULL;
        err_detail d = {0};
        write_tensors("bad", cases[i].header, cases[i].stated, cases[i].n_data);
        CHECK_INT(tensor_file_open(&f, path_of("bad"), &d), ERR_CORRUPT);
        CHECK(f == NULL);
        CHECK(strstr(d.text, "/bad") != NULL);
        if (!strstr(d.text, cases[i].named)) {
            fprintf(stderr, "  case %zu: \"%s\" does not hold \"%s\"\n", i, d.text, cases[i].named);
            CHECK(!"message");
        }
    }
}

static void test_tiny_files(void)
{
    tensor_file *f = NULL;
    err_detail d = {0};
    write_bytes("bad", "", 0);
    CHECK_INT(tensor_file_open(&f, path_of("bad"), &d), ERR_CORRUPT);
    write_bytes("bad", "\0\0\0\0\0\0\0", 7);
    CHECK_INT(tensor_file_open(&f, path_of("bad"), &d), ERR_CORRUPT);
    write_bytes("bad", "\0\0\0\0\0\0\0\0", 8); /* a header of no length is not JSON */
    CHECK_INT(tensor_file_open(&f, path_of("bad"), &d), ERR_CORRUPT);
    CHECK_INT(tensor_file_open(&f, path_of("absent"), &d), ERR_NOT_FOUND);
    CHECK_INT(tensor_file_open(&f, folder, &d), ERR_INVALID);
}

#define ONE "{\"%s\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}"

static void write_one(const char *file, const char *name)
{
    char header[256];
    snprintf(header, sizeof header, ONE, name);
    write_tensors(file, header, 0, 4);
}

static void test_sets(void)
{
    tensor_set *set = NULL;
    tensor t;
    err_detail d = {0};
    CHECK_INT(tensor_set_open(&set, folder, &d), ERR_NOT_FOUND);
    CHECK(strstr(d.text, "model.safetensors") != NULL);

    write_one("model.safetensors", "x");
    write_one("model-mtp.safetensors", "mtp.fc.weight");
    CHECK_OK(tensor_set_open(&set, folder, &d), d);
    CHECK_INT(tensor_set_tensors(set)->n, 2);
    tensor_source source = tensor_table_source(tensor_set_tensors(set));
    CHECK(source.find(source.ctx, "mtp.fc.weight", &t));
    CHECK(source.find(source.ctx, "x", &t));
    CHECK(!source.find(source.ctx, "y", &t));
    tensor_set_close(set);

    write_one("model-mtp.safetensors", "x");
    CHECK_INT(tensor_set_open(&set, folder, &d), ERR_CORRUPT);
    CHECK(strstr(d.text, "two files") != NULL);
    CHECK_INT(unlink(path_of("model-mtp.safetensors")), 0);

    write_one("part 1", "p");
    write_one("part 2", "q");
    static const char good[] = "{\"weight_map\":{\"q\":\"part 2\",\"p\":\"part 1\"}}";
    write_bytes("model.safetensors.index.json", good, strlen(good));
    CHECK_OK(tensor_set_open(&set, folder, &d), d);
    CHECK_INT(tensor_set_tensors(set)->n, 2);
    CHECK(tensor_table_get(tensor_set_tensors(set), "q", &t));
    CHECK(!tensor_table_get(tensor_set_tensors(set), "x", &t));
    tensor_set_close(set);

    static const struct {
        const char *text, *named;
        err_code err;
    } bad[] = {
        {"{}", "weight_map", ERR_CORRUPT},
        {"{\"weight_map\":{}}", "weight_map", ERR_CORRUPT},
        {"{\"weight_map\":{\"q\":\"part 1\"}}", "tensor q", ERR_CORRUPT},
        {"{\"weight_map\":{\"q\":5}}", "tensor q", ERR_CORRUPT},
        {"{\"weight_map\":{\"q\":\"../part 2\"}}", "tensor q", ERR_CORRUPT},
        {"{\"weight_map\":{\"q\":\"/etc/passwd\"}}", "tensor q", ERR_CORRUPT},
        {"{\"weight_map\":{\"q\":\"part 3\"}}", "part 3", ERR_NOT_FOUND},
        {"{\"weight_map\":", "index.json", ERR_INVALID},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        write_bytes("model.safetensors.index.json", bad[i].text, strlen(bad[i].text));
        CHECK_INT(tensor_set_open(&set, folder, &d), bad[i].err);
        CHECK(strstr(d.text, bad[i].named) != NULL);
    }
}

/* A draft head that was published by itself, in each of the places for it, gets the names of its part. */
static void test_draft_head(void)
{
    static const char *const SIDES[] = {"model-mtp.safetensors", "mtp/weights.safetensors",
                                        "mtp/model.safetensors"},
                             *const NAMES[] = {"mtp.a", "mtp.fc.weight", "mtp.norm.weight", "x"};
    CHECK_INT(unlink(path_of("model.safetensors.index.json")), 0);
    CHECK_INT(mkdir(path_of("mtp"), 0700), 0);
    for (size_t i = 0; i < ARRAY_LEN(SIDES); i++) {
        tensor_set *set = NULL;
        err_detail d = {0};
        write_tensors(SIDES[i],
                      "{\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                      "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]},"
                      "\"norm.weight\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}",
                      0, 12);
        CHECK_OK(tensor_set_open(&set, folder, &d), d);
        const tensor_table *all = set ? tensor_set_tensors(set) : NULL;
        CHECK_INT(all ? all->n : 0, ARRAY_LEN(NAMES));
        for (size_t k = 0; all && k < all->n; k++) {
            tensor t;
            CHECK_STR(all->items[k].name, NAMES[k]);
            CHECK_STR(all->items[k].stored, NAMES[k]);
            CHECK(tensor_table_get(all, NAMES[k], &t) && t.bytes == 4);
        }
        tensor_set_close(set);
        CHECK_INT(unlink(path_of(SIDES[i])), 0);
    }
}

/* A model is in 4096 files at most: here one file under as many names. */
static void test_many_files(void)
{
    enum { MOST = 4096, BITS = 13 };
    for (int more = 0; more <= 1; more++) {
        tensor_set *set = NULL;
        err_detail d = {0};
        bytes index = bytes_empty(1 << 20);
        for (int i = 0; i < MOST + more; i++) {
            bytes_printf(&index, "%s\"t%d\":\"", i ? "," : "{\"weight_map\":{", i);
            for (int bit = 0; bit < BITS; bit++) {
                bytes_append_str(&index, i >> bit & 1 ? ".//" : "./");
            }
            bytes_append_str(&index, "part 1\"");
        }
        bytes_append_str(&index, "}}");
        write_bytes("model.safetensors.index.json", index.data, index.len);
        CHECK_INT(tensor_set_open(&set, folder, &d), more ? ERR_LIMIT : ERR_CORRUPT);
        CHECK(strstr(d.text, more ? "more than 4096 files" : "tensor t0 is not in ./"));
        bytes_deinit(&index);
    }
}

int main(void)
{
    folder_make(folder);
    test_good_file();
    test_damaged_files();
    test_tiny_files();
    test_sets();
    test_draft_head();
    test_many_files();
    CHECK_DONE();
}
