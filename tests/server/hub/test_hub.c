/* Models of a hub without a hub: names, lists of files, which of them are needed, and the cache. */
#include "server/hub/hub_cache.h"

#include <errno.h>
#include <unistd.h>

#include "server/hub/hub_place.h"
#include "tests/alloc_fail.h"
#include "tests/check.h"
#include "tests/folder.h"
#include "tests/said.h"

enum { PATH = 1024 };

#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define OTHER  "fedcba9876543210fedcba9876543210fedcba98"

/* ---- names ---- */

static void test_names(void)
{
    static const struct {
        const char *text, *repo, *quant, *revision;
    } GOOD[] = {
        {"org/name", "org/name", "", "main"},
        {"o/n:Q4_K_M", "o/n", "Q4_K_M", "main"},
        {"o/n@v1/b", "o/n", "", "v1/b"},
        {"A-b_c.d/1:UD-Q4.x@abc", "A-b_c.d/1", "UD-Q4.x", "abc"},
    };
    static const char *const BAD[] = {
        "",        "o",      "/n",       "o/",     "o/n/m",   "o//n",  "-o/n",   "o-/n",
        ".o/n",    "o/n.",   "o--p/n",   "o..p/n", "o/n:",    "o/n@",  "o/n:Q@", "o/n:a b",
        "o/n:a/b", "o/n@..", "o/n@a//b", "o/n@/a", "o/n@a:b", "o n/m", "o/n\\m", "o/\xc3\xa9",
    };
    hub_name name;
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++) {
        CHECK(hub_name_parse(&name, GOOD[i].text));
        CHECK_STR(name.repo, GOOD[i].repo);
        CHECK_STR(name.quant, GOOD[i].quant);
        CHECK_STR(name.revision, GOOD[i].revision);
    }
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        if (hub_name_parse(&name, BAD[i])) {
            fprintf(stderr, "taken: %s\n", BAD[i]);
            CHECK(false);
        }
    }
    char text[512];
    for (int n = 95; n <= 97; n++) { /* a part has at most 96 bytes */
        snprintf(text, sizeof text, "o/%.*s", n,
                 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                 "aaaaaaaaaaaa");
        CHECK_INT(hub_name_parse(&name, text), n <= 96);
    }
    for (int n = HUB_QUANT_MAX - 1; n <= HUB_QUANT_MAX; n++) {
        snprintf(text, sizeof text, "o/n:%0*d", n, 0);
        CHECK_INT(hub_name_parse(&name, text), n < HUB_QUANT_MAX);
    }
}

static void test_folders_and_paths(void)
{
    char folder[HUB_REPO_MAX + 16], repo[HUB_REPO_MAX];
    hub_name_folder(folder, "org/name-1");
    CHECK_STR(folder, "models--org--name-1");
    CHECK(hub_name_of_folder(repo, folder));
    CHECK_STR(repo, "org/name-1");
    static const char *const NONE[] = {
        "", "models--", "models--org", "models--org--", "datasets--o--n", "models----n", "models--o--n--m"};
    for (size_t i = 0; i < sizeof NONE / sizeof *NONE; i++) {
        CHECK(!hub_name_of_folder(repo, NONE[i]));
    }
    char long_folder[600];
    for (int n = 90; n <= 500; n++) {
        snprintf(long_folder, sizeof long_folder, "models--%0*d--%096d", n, 0, 0);
        CHECK_INT(hub_name_of_folder(repo, long_folder), n <= 96);
    }
    static const char *const SAFE[] = {"a", "a/b.c", "..a", "a/...", ".git", ".g", "g.", "ab"};
    static const char *const UNSAFE[] = {"",      ".",      "..",   "/a",   "a/",    "a//b",
                                         "a/./b", "a/../b", "a\\b", "a\tb", "a\x7f", "\xff"};
    for (size_t i = 0; i < sizeof SAFE / sizeof *SAFE; i++) {
        CHECK(hub_path_is_safe(SAFE[i]));
    }
    for (size_t i = 0; i < sizeof UNSAFE / sizeof *UNSAFE; i++) {
        CHECK(!hub_path_is_safe(UNSAFE[i]));
    }
    char path[HUB_PATH_MAX + 1];
    memset(path, 'a', sizeof path);
    path[255] = '\0';
    CHECK(hub_path_is_safe(path));
    path[255] = 'a';
    path[256] = '\0';
    CHECK(!hub_path_is_safe(path)); /* longer than a name may be */
    path[200] = '/';
    path[256] = 'a';
    path[400] = '/';
    path[HUB_PATH_MAX - 1] = '\0';
    CHECK(hub_path_is_safe(path));
    path[HUB_PATH_MAX - 1] = 'a';
    path[HUB_PATH_MAX] = '\0';
    CHECK(!hub_path_is_safe(path));
    CHECK(hub_is_hex("abc0123", 7) && !hub_is_hex("abc012", 7) && !hub_is_hex("ABC0123", 7) &&
          !hub_is_hex("abc0123g", 7));
    char hex[66];
    memset(hex, 'f', sizeof hex);
    hex[64] = '\0';
    CHECK(hub_is_hex(hex, 7));
    hex[64] = 'f';
    hex[65] = '\0';
    CHECK(!hub_is_hex(hex, 7));
}

/* ---- lists of files ---- */

#define SHA  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define BLOB "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static err_code read_list(hub_listing *l, const char *files, err_detail *d)
{
    char text[4096];
    snprintf(text, sizeof text, "{\"sha\":\"%s\",\"siblings\":[%s]}", COMMIT, files);
    return hub_listing_read(l, text, strlen(text), d);
}

static void test_listing(void)
{
    hub_listing l;
    err_detail d = {0};
    CHECK_OK(read_list(&l,
                       "{\"rfilename\":\"z\",\"blobId\":\"" BLOB "\",\"size\":3},"
                       "{\"rfilename\":\"a/b\",\"blobId\":\"x\",\"lfs\":{\"sha256\":\"" SHA
                       "\",\"size\":5},\"size\":9},"
                       "{\"rfilename\":\"m\",\"lfs\":{\"oid\":\"sha256:" SHA "\",\"size\":0}}",
                       &d),
             d);
    CHECK_INT(l.n, 3);
    CHECK_STR(l.commit, COMMIT);
    const hub_file *z = hub_listing_find(&l, "z"), *b = hub_listing_find(&l, "a/b"),
                   *m = hub_listing_find(&l, "m");
    CHECK(z && b && m && b == &l.files[0] && m == &l.files[1] && z == &l.files[2]);
    if (z && b && m) {
        CHECK(!z->is_large && b->is_large && m->is_large);
        CHECK_INT(z->size, 3);
        CHECK_INT(b->size, 5);
        CHECK_STR(z->key, BLOB);
        CHECK_STR(b->key, SHA);
        CHECK_STR(m->key, SHA);
    }
    CHECK(hub_listing_find(&l, "y") == NULL);
    char longer[HUB_PATH_MAX + 1];
    memset(longer, 'z', sizeof longer);
    longer[HUB_PATH_MAX] = '\0';
    CHECK(hub_listing_find(&l, longer) == NULL);
    hub_listing_deinit(&l);
    CHECK(l.n == 0 && hub_listing_find(&l, "z") == NULL);
    static const char *const BAD[] = {
        "{\"rfilename\":\"../z\",\"blobId\":\"" BLOB "\",\"size\":3}",
        "{\"rfilename\":\"z\",\"blobId\":\"" BLOB "\"}",
        "{\"rfilename\":\"z\",\"blobId\":\"" BLOB "\",\"size\":-1}",
        "{\"rfilename\":\"z\",\"blobId\":\"bbb\",\"size\":3}",
        "{\"rfilename\":\"z\",\"blobId\":\"" SHA "\",\"size\":3}",
        "{\"rfilename\":\"z\",\"lfs\":{\"sha256\":\"" BLOB "\",\"size\":3}}",
        "{\"rfilename\":\"z\",\"lfs\":{\"sha256\":\"" SHA "\"},\"size\":3}",
        "{\"rfilename\":\"z\",\"blobId\":\"" BLOB "\",\"size\":3},{\"rfilename\":\"z\",\"blobId\":\"" BLOB
        "\",\"size\":3}",
    };
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        CHECK_INT(read_list(&l, BAD[i], &d), ERR_CORRUPT);
        CHECK(l.files == NULL);
    }
    CHECK_OK(read_list(&l, "", &d), d);
    CHECK_INT(l.n, 0);
    hub_listing_deinit(&l);
    CHECK_INT(hub_listing_read(&l, "{", 1, &d), ERR_CORRUPT);
    static const char *const NO_HUB[] = {"{}", "{\"sha\":\"" COMMIT "\",\"siblings\":{}}",
                                         "{\"sha\":\"xyz\",\"siblings\":[]}", "{\"siblings\":[]}"};
    for (size_t i = 0; i < sizeof NO_HUB / sizeof *NO_HUB; i++) {
        CHECK_INT(hub_listing_read(&l, NO_HUB[i], strlen(NO_HUB[i]), &d), ERR_CORRUPT);
    }
}

/* ---- which files are needed ---- */

/* A list of files of these paths, in order; file i has 10^i bytes. */
static hub_listing listed(const char *const *paths, hub_file *files)
{
    hub_listing l = {.files = files};
    int64_t size = 1;
    for (; paths[l.n]; l.n++, size *= 10) {
        files[l.n] = (hub_file){.size = size};
        snprintf(files[l.n].path, HUB_PATH_MAX, "%s", paths[l.n]);
    }
    return l;
}

/* The chosen files, by spaces, or "! " and the error. */
static const char *chosen(const char *const *paths, const char *quant, const char *index)
{
    static hub_file files[16];
    static char out[2048];
    const hub_listing l = listed(paths, files);
    hub_selection s;
    err_detail d = {0};
    json_doc *doc = NULL;
    if (index) {
        CHECK(json_parse(&doc, index, strlen(index), 8, NULL) == ERR_OK);
    }
    const err_code err = hub_select(&s, &l, quant, index ? json_root(doc) : NULL, &d);
    out[0] = '\0';
    for (size_t i = 0; i < s.n; i++) {
        snprintf(out + strlen(out), sizeof out - strlen(out), "%s%s%s", i ? " " : "", s.files[i]->path,
                 s.files[i] == s.vision ? "*" : "");
    }
    if (err) {
        snprintf(out, sizeof out, "! %s", d.text);
    } else {
        CHECK_INT(s.is_gguf, index == NULL && strstr(s.files[0]->path, ".gguf") != NULL);
    }
    hub_selection_deinit(&s);
    json_free(doc);
    return out;
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_quants(void)
{
    static const struct {
        const char *path, *name;
    } NAMES[] = {
        {"Qwen3-8B-Q4_K_M.gguf", "Q4_K_M"},
        {"Qwen3-8B-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"},
        {"m.IQ4_XS.GGUF", "IQ4_XS"},
        {"m-BF16.gguf", "BF16"},
        {"m-f16.gguf", "f16"},
        {"m-MXFP4_MOE.gguf", "MXFP4_MOE"},
        {"m-TQ1_0.gguf", "TQ1_0"},
        {"m-NVFP4.gguf", "NVFP4"},
        {"name.gguf", "name"},
        {"m-F16_x.gguf", "F16_x"},
        {"m-F160.gguf", "m-F160"},
        {"m-Qx.gguf", "m-Qx"},
        {"Q8/m-Q8_0-00001-of-00002.gguf", "Q8_0"},
        {"Q8_0-chat.gguf", "Q8_0-chat"},
        {"m-Q.gguf", "m-Q"},
        {"m-1-of-2-Q4_K_XS.gguf", "Q4_K_XS"},
        {"m-Q8_0-1-of-000000000.gguf", "Q8_0-1-of-000000000"},
    };
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        hub_file file;
        const hub_listing l = listed((const char *const[]){NAMES[i].path, NULL}, &file);
        hub_quant *all = NULL;
        CHECK_INT(hub_quants(&all, &l), 1);
        CHECK_STR(all[0].name, NAMES[i].name);
        free(all);
    }
    hub_file files[16];
    const hub_listing l =
        listed(LIST("a-Q4_0.gguf", "a-Q8_0-00001-of-00002.gguf", "a-Q8_0-00002-of-00002.gguf",
                    "b-Q8_0-00002-of-00002.gguf", "imatrix.gguf", "mmproj-F16.gguf", "readme"),
               files);
    hub_quant *all = NULL;
    CHECK_INT(hub_quants(&all, &l), 3);
    CHECK_INT(all[0].size, 1);
    CHECK_INT(all[1].size, 110); /* both parts */
    CHECK(all[1].first == &files[1]);
    CHECK_INT(all[2].size, 1000); /* of another model */
    free(all);
}

static void test_gguf(void)
{
    const char *const *two = LIST("m-Q4_K_M.gguf", "m-Q8_0.gguf");
    CHECK_STR(chosen(two, "", NULL), "m-Q4_K_M.gguf");
    CHECK_STR(chosen(two, "q8_0", NULL), "m-Q8_0.gguf");
    CHECK_STR(chosen(two, "Q2_K", NULL),
              "! there is no quantization Q2_K; there are: Q4_K_M (0.0 GB), Q8_0 (0.0 GB)");
    CHECK_STR(chosen(LIST("m-Q2_K.gguf", "m-Q8_0.gguf"), "", NULL), "m-Q8_0.gguf");
    CHECK_STR(chosen(LIST("m-Q2_K.gguf"), "", NULL), "m-Q2_K.gguf");
    CHECK_STR(
        chosen(LIST("m-Q2_K.gguf", "m-Q3_K.gguf"), "", NULL),
        "! name one of its quantizations, as in ORG/NAME:Q2_K; there are: Q2_K (0.0 GB), Q3_K (0.0 GB)");
    CHECK_STR(chosen(LIST("readme"), "Q4_0", NULL),
              "! there are no GGUF files in it, so there is no quantization to choose");
    CHECK(strncmp(chosen(LIST("readme"), "", NULL), "! there is no model in it", 25) == 0);
    /* The end of a name will do, if only one has it. */
    CHECK_STR(chosen(LIST("m-Q2_K.gguf", "m-UD-Q4_K_XL.gguf"), "Q4_K_XL", NULL), "m-UD-Q4_K_XL.gguf");
    CHECK_STR(chosen(LIST("m-Q4_K_XL.gguf", "m-UD-Q4_K_XL.gguf"), "Q4_K_XL", NULL), "m-Q4_K_XL.gguf");
    CHECK(chosen(LIST("m-Q2_K.gguf", "m-UD-Q4_K_XL.gguf"), "K_XL", NULL)[0] == '!');
    CHECK(chosen(LIST("m-Q2_K.gguf", "m-UD-Q4_K_XL.gguf"), "Q5_K_XL", NULL)[0] == '!');
    CHECK_STR(chosen(LIST("f", "m-UD-Q8_0.gguf", "n-UD-Q8_0.gguf"), "Q8_0", NULL),
              "! there is no quantization Q8_0; there are: UD-Q8_0 (0.0 GB), UD-Q8_0 (0.0 GB)");
    /* Parts, and the vision tower: of 16 bits, rather from the model's folder. */
    CHECK_STR(
        chosen(LIST("m-Q8_0-00001-of-00002.gguf", "m-Q8_0-00002-of-00002.gguf", "n-Q4_0.gguf"), "Q8_0", NULL),
        "m-Q8_0-00001-of-00002.gguf m-Q8_0-00002-of-00002.gguf");
    CHECK_STR(chosen(LIST("m-Q8_0.gguf", "mmproj-F32.gguf", "mmproj-f16.gguf", "mmproj-x.gguf"), "", NULL),
              "m-Q8_0.gguf mmproj-f16.gguf*");
    CHECK_STR(chosen(LIST("m-Q8_0.gguf", "mmproj-BF16.gguf", "mmproj-F16.gguf"), "", NULL),
              "m-Q8_0.gguf mmproj-BF16.gguf*");
    CHECK_STR(chosen(LIST("m-Q8_0.gguf", "mmproj-Q8.gguf"), "", NULL), "m-Q8_0.gguf mmproj-Q8.gguf*");
    CHECK_STR(
        chosen(LIST("a/m-Q8_0.gguf", "a/mmproj-x.gguf", "b/mmproj-F16.gguf", "mmproj-F16.gguf"), "", NULL),
        "a/m-Q8_0.gguf a/mmproj-x.gguf*");
    CHECK_STR(chosen(LIST("a/m-Q8_0.gguf", "b/mmproj-F16.gguf", "mmproj-F16.gguf"), "", NULL),
              "a/m-Q8_0.gguf mmproj-F16.gguf*");
    CHECK_STR(chosen(LIST("m-Q8_0.gguf", "b/mmproj-F16.gguf", "mmproj-F16.bin"), "", NULL), "m-Q8_0.gguf");
}

static void test_checkpoints(void)
{
    CHECK_STR(chosen(LIST("README.md", "chat_template.jinja", "config.json", "model-mtp.safetensors",
                          "model.safetensors", "tokenizer.json"),
                     "", NULL),
              "config.json tokenizer.json chat_template.jinja model.safetensors model-mtp.safetensors");
    const char *const *parts = LIST("a.safetensors", "b.safetensors", "config.json", "model.safetensors",
                                    "model.safetensors.index.json", "other.safetensors", "tokenizer.json");
    CHECK_STR(
        chosen(parts, "",
               "{\"weight_map\":{\"x\":\"b.safetensors\",\"y\":\"a.safetensors\",\"z\":\"b.safetensors\"}}"),
        "config.json tokenizer.json model.safetensors.index.json b.safetensors a.safetensors");
    CHECK_STR(chosen(parts, "", "{\"weight_map\":{\"x\":\"c.safetensors\"}}"),
              "! its index names c.safetensors, which is not there");
    CHECK_STR(chosen(LIST("config.json", "model.safetensors"), "", NULL),
              "! it has no tokenizer.json, which Parley needs");
    /* Beside GGUF files: the checkpoint, unless a quantization is named. */
    const char *const *both = LIST("config.json", "m-Q8_0.gguf", "model.safetensors", "tokenizer.json");
    CHECK_STR(chosen(both, "", NULL), "config.json tokenizer.json model.safetensors");
    CHECK_STR(chosen(both, "Q8_0", NULL), "m-Q8_0.gguf");
    CHECK_STR(chosen(LIST("config.json", "m-Q8_0.gguf", "tokenizer.json"), "", NULL), "m-Q8_0.gguf");
}

/* ---- the cache ---- */

static void put(const char *dir, const char *name, size_t n)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        CHECK(mkdir(path, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *f = fopen(path, "w");
    CHECK(f != NULL);
    for (size_t i = 0; f && i < n; i++) {
        fputc('x', f);
    }
    if (f) {
        fclose(f);
    }
}

/* A file of a model: its blob and a link to it. */
static void keep(const char *repo_dir, const char *commit, const char *name, const char *key, size_t n)
{
    char path[PATH], target[PATH];
    snprintf(path, sizeof path, "blobs/%s", key);
    put(repo_dir, path, n);
    snprintf(path, sizeof path, "snapshots/%s/%s", commit, name);
    put(repo_dir, path, 0); /* the folders */
    snprintf(path, sizeof path, "%s/snapshots/%s/%s", repo_dir, commit, name);
    snprintf(target, sizeof target, "../../blobs/%s", key);
    CHECK(unlink(path) == 0 && symlink(target, path) == 0);
}

static void set_main(const char *repo_dir, const char *commit)
{
    char path[PATH];
    put(repo_dir, "refs/main", 0);
    snprintf(path, sizeof path, "%s/refs/main", repo_dir);
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(commit, f) >= 0 && fclose(f) == 0);
}

static bool exists(const char *dir, const char *name)
{
    char path[PATH];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return lstat(path, &st) == 0;
}

/* What the cache lists, as "NAME BYTES[?];". */
static const char *kept(const char *cache)
{
    static char out[2048];
    hub_kept *all = NULL;
    size_t n = 0;
    err_detail d = {0};
    out[0] = '\0';
    CHECK_OK(hub_cache_list(&all, &n, cache, &d), d);
    for (size_t i = 0; i < n; i++) {
        snprintf(out + strlen(out), sizeof out - strlen(out), "%s %lld%s;", all[i].name,
                 (long long)all[i].n_bytes, all[i].is_whole ? "" : "?");
        CHECK(access(all[i].path, R_OK) == 0);
    }
    free(all);
    return out;
}

static err_code remove_model(const char *cache, const char *text, int64_t *n, err_detail *d)
{
    hub_name name;
    memset(d, 0, sizeof *d);
    CHECK(hub_name_parse(&name, text));
    return hub_cache_remove(cache, &name, n, d);
}

static void test_cache(void)
{
    char cache[FOLDER_NAME], dir[PATH], gguf[PATH], old[PATH], part[PATH];
    err_detail d = {0};
    int64_t n = 7;
    folder_make(cache);
    snprintf(dir, sizeof dir, "%s/models--o--whole", cache);
    snprintf(gguf, sizeof gguf, "%s/models--o--gguf", cache);
    snprintf(old, sizeof old, "%s/models--o--old", cache);
    snprintf(part, sizeof part, "%s/models--o--part", cache);
    CHECK_STR(kept(cache), "");
    keep(dir, COMMIT, "config.json", "k1", 10);
    keep(dir, COMMIT, "model.safetensors", "k2", 200);
    keep(dir, COMMIT, "tokenizer.json", "k3", 3000);
    set_main(dir, COMMIT);
    keep(gguf, COMMIT, "m-Q4_0.gguf", "g1", 40);
    keep(gguf, COMMIT, "m-Q8_0.gguf", "g2", 80);
    keep(gguf, COMMIT, "mmproj-F16.gguf", "g3", 5);
    set_main(gguf, COMMIT);
    keep(old, OTHER, "m-Q4_0.gguf", "o1", 7); /* no branch means it */
    put(part, "blobs/p1.incomplete", 9);
    put(cache, "datasets--o--n/blobs/x", 1);
    CHECK_STR(kept(cache), "o/gguf:Q4_0 40;o/gguf:Q8_0 80;o/old:Q4_0@" OTHER " 7;o/part 9?;o/whole 3210;");

    /* Found as a folder, or as a file with its vision tower. */
    hub_name name;
    hub_found found;
    CHECK(hub_name_parse(&name, "o/whole"));
    CHECK_OK(hub_cache_find(&found, cache, &name, &d), d);
    CHECK(strstr(found.path, "/models--o--whole/snapshots/" COMMIT) && !found.mmproj[0]);
    CHECK(hub_name_parse(&name, "o/gguf:Q8_0"));
    CHECK_OK(hub_cache_find(&found, cache, &name, &d), d);
    CHECK(strstr(found.path, "/m-Q8_0.gguf") && strstr(found.mmproj, "/mmproj-F16.gguf"));
    memset(&d, 0, sizeof d);
    CHECK(hub_name_parse(&name, "o/gguf:Q2_K"));
    CHECK_INT(hub_cache_find(&found, cache, &name, &d), ERR_NOT_FOUND);
    CHECK(d.text[0]);
    memset(&d, 0, sizeof d);
    CHECK(hub_name_parse(&name, "o/nothing"));
    CHECK_INT(hub_cache_find(&found, cache, &name, &d), ERR_NOT_FOUND);
    CHECK_STR(d.text, "");

    /* One quantization goes with what is its own; the last one with all there is. */
    CHECK_OK(remove_model(cache, "o/gguf:Q4_0", &n, &d), d);
    CHECK_INT(n, 40);
    CHECK(!exists(gguf, "blobs/g1") && exists(gguf, "blobs/g2") && exists(gguf, "blobs/g3"));
    CHECK(exists(gguf, "snapshots/" COMMIT "/mmproj-F16.gguf"));
    CHECK_INT(remove_model(cache, "o/gguf:Q4_0", &n, &d), ERR_NOT_FOUND);
    CHECK_OK(remove_model(cache, "o/gguf:Q8_0", &n, &d), d);
    CHECK_INT(n, 85);
    CHECK(!exists(cache, "models--o--gguf"));
    put(cache, ".locks/models--o--whole/k1.lock", 0);
    CHECK_OK(remove_model(cache, "o/whole", &n, &d), d);
    CHECK_INT(n, 3210);
    CHECK(!exists(cache, "models--o--whole") && !exists(cache, ".locks/models--o--whole"));
    CHECK_INT(remove_model(cache, "o/whole", &n, &d), ERR_NOT_FOUND);
    CHECK_INT(n, 0);
    CHECK_STR(kept(cache), "o/old:Q4_0@" OTHER " 7;o/part 9?;");
    CHECK_STR(kept("/nowhere/at/all"), "");
    hub_kept *all = NULL;
    size_t n_all = 0;
    char file[PATH];
    put(cache, "file", 1);
    snprintf(file, sizeof file, "%s/file", cache);
    CHECK_INT(hub_cache_list(&all, &n_all, file, &d), ERR_IO);
}

/* As many models and files as make lists longer than they began, folders that are too deep, and what is no file. */
static void test_large_cache(void)
{
    enum { MODELS = 40, FILES = 40 };
    char cache[FOLDER_NAME], dir[2 * FOLDER_NAME], name[PATH], expected[2048] = "";
    hub_listing l;
    err_detail d = {0};
    folder_make(cache);
    for (int i = 0; i < MODELS; i++) {
        snprintf(dir, sizeof dir, "%s/models--o--n%02d", cache, i);
        keep(dir, COMMIT, "m-Q8_0.gguf", "k", (size_t)i);
        set_main(dir, COMMIT);
        snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "o/n%02d:Q8_0 %d;", i, i);
    }
    CHECK_STR(kept(cache), expected);
    snprintf(dir, sizeof dir, "%s/files", cache);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "f%02d", i);
        put(dir, name, (size_t)i);
    }
    put(dir, "1/2/3/4/5/6/7/8/file", 1);
    put(dir, "1/2/3/4/5/6/7/8/9/deeper", 1);
    snprintf(name, sizeof name, "%s/to-folder", dir);
    CHECK(symlink("1", name) == 0);
    snprintf(name, sizeof name, "%s/to-nothing", dir);
    CHECK(symlink("nothing", name) == 0);
    snprintf(name, sizeof name, "%s/to-file", dir);
    CHECK(symlink("f39", name) == 0);
    snprintf(name, sizeof name, "%s/pipe", dir);
    CHECK(mkfifo(name, 0600) == 0);
    snprintf(name, sizeof name, "%0200d/%0200d/%0109d", 0, 0, 1); /* as long as a path may be; a byte more */
    put(dir, name, 1);
    name[0] = '1';
    snprintf(name + strlen(name), sizeof name - strlen(name), "2");
    put(dir, name, 1);
    CHECK_OK(hub_listing_of_folder(&l, dir, &d), d);
    CHECK_INT(l.n, FILES + 3);
    CHECK(hub_listing_find(&l, "1/2/3/4/5/6/7/8/file") && hub_listing_find(&l, "f39"));
    const hub_file *link = hub_listing_find(&l, "to-file");
    CHECK(link && link->size == 39);
    hub_listing_deinit(&l);
    snprintf(name, sizeof name, "%s/f01", dir);
    CHECK_INT(hub_listing_of_folder(&l, name, &d), ERR_NOT_FOUND);
    CHECK_HAS(d.text, "/files/f01: there is no such folder");
}

/* Which links are made: to files that are there, for a branch that then means them. */
static void test_link(void)
{
    char cache[FOLDER_NAME], repo[HUB_FULL_PATH_MAX], locks[HUB_FULL_PATH_MAX];
    err_detail d = {0};
    folder_make(cache);
    CHECK_OK(hub_cache_prepare(repo, locks, cache, "o/n", &d), d);
    CHECK(exists(repo, "blobs") && strstr(repo, "/models--o--n") && strstr(locks, "/.locks/models--o--n"));
    hub_file files[4];
    hub_listing l = listed(LIST("config.json", "model.safetensors", "sub/x", "tokenizer.json"), files);
    snprintf(l.commit, sizeof l.commit, "%s", COMMIT);
    const char *const keys[] = {"k0", "k1", "k2", "k3"};
    for (size_t i = 0; i < 4; i++) {
        char blob[64];
        snprintf(files[i].key, sizeof files[i].key, "%s", keys[i]);
        snprintf(blob, sizeof blob, "blobs/%s", keys[i]);
        put(repo, blob, (size_t)files[i].size);
    }
    hub_selection s;
    CHECK_OK(hub_select(&s, &l, "", NULL, &d), d);
    CHECK_OK(hub_cache_link(repo, &l, &s, "main", &d), d);
    hub_selection_deinit(&s);
    hub_name name;
    hub_found found;
    CHECK(hub_name_parse(&name, "o/n"));
    CHECK_OK(hub_cache_find(&found, cache, &name, &d), d);
    CHECK(exists(found.path, "config.json") && exists(found.path, "model.safetensors") &&
          exists(found.path, "tokenizer.json") && !exists(found.path, "sub"));
    char target[PATH] = "", path[2 * PATH];
    snprintf(path, sizeof path, "%.1000s/model.safetensors", found.path);
    CHECK(readlink(path, target, sizeof target - 1) > 0);
    CHECK_STR(target, "../../blobs/k1");
    CHECK(exists(repo, "refs/main"));
    CHECK_STR(kept(cache), "o/n 1011;");
}

/* Blobs go that no link of any snapshot leads to, however deep; files that lie there and links to nowhere lead to none. */
static void test_used(void)
{
    char cache[FOLDER_NAME], dir[FOLDER_NAME + 32], path[PATH];
    err_detail d = {0};
    int64_t n = 0;
    folder_make(cache);
    snprintf(dir, sizeof dir, "%s/models--o--used", cache);
    keep(dir, COMMIT, "m-Q4_0.gguf", "g1", 40);
    keep(dir, COMMIT, "m-Q8_0.gguf", "g2", 80);
    keep(dir, OTHER, "m-Q5_0.gguf", "g3", 5);
    keep(dir, COMMIT, "deep/er/notes.txt", "g4", 6);
    put(dir, "snapshots/" COMMIT "/g5", 1);
    put(dir, "blobs/g5", 300);
    put(dir, "blobs/g6", 7000);
    snprintf(path, sizeof path, "%s/snapshots/" COMMIT "/bare.txt", dir);
    CHECK_INT(symlink("g6", path), 0);
    set_main(dir, COMMIT);
    CHECK_OK(remove_model(cache, "o/used:Q4_0", &n, &d), d);
    CHECK_INT(n, 7340);
    for (int i = 1; i <= 6; i++) {
        const char blob[] = {'b', 'l', 'o', 'b', 's', '/', 'g', (char)('0' + i), '\0'};
        CHECK_INT(exists(dir, blob), i >= 2 && i <= 4);
    }
}

/* Without memory the cache is not said to hold less than it does, and what was removed of it stays a whole. */
static err_code find_and_list(void *cache)
{
    hub_name name;
    hub_found found;
    hub_kept *all = NULL;
    size_t n = 0;
    err_detail d = {0};
    CHECK(hub_name_parse(&name, "o/n:Q8_0"));
    err_code err = hub_cache_find(&found, cache, &name, &d);
    err = err ? err : hub_cache_list(&all, &n, cache, &d);
    CHECK((err == ERR_OK) == (d.text[0] == '\0'));
    CHECK_INT(err ? 3 : n, 3);
    free(all);
    return err;
}

static err_code list_one(void *cache)
{
    hub_kept *all = NULL;
    size_t n = 0;
    err_detail d = {0};
    const err_code err = hub_cache_list(&all, &n, cache, &d);
    CHECK((err == ERR_OK) == (d.text[0] == '\0'));
    CHECK_INT(n, err ? 0 : 1);
    free(all);
    return err;
}

/* Two models that share nothing, and one in a folder. */
static void fill(const char *cache)
{
    char dir[FOLDER_NAME + 32], whole[FOLDER_NAME + 32];
    snprintf(dir, sizeof dir, "%.64s/models--o--n", cache);
    snprintf(whole, sizeof whole, "%.64s/models--o--whole", cache);
    keep(dir, COMMIT, "m-Q8_0.gguf", "k8", 8);
    keep(dir, COMMIT, "m-Q4_K_M.gguf", "k4", 4);
    set_main(dir, COMMIT);
    keep(whole, OTHER, "config.json", "kc", 2);
    keep(whole, OTHER, "model.safetensors", "km", 3);
    keep(whole, OTHER, "tokenizer.json", "kt", 1);
    set_main(whole, OTHER);
}

static void test_short_memory(void)
{
    char cache[FOLDER_NAME], dir[FOLDER_NAME + 32];
    folder_make(cache);
    fill(cache);
    CHECK(alloc_fail_each(find_and_list, cache, 1000) > 4);
    char one[FOLDER_NAME];
    folder_make(one); /* a folder alone, then what was broken off alone, then what no branch means */
    for (int i = 0; i < 3; i++) {
        snprintf(dir, sizeof dir, "%s/models--o--one", one);
        if (i == 1) {
            put(dir, "blobs/p.incomplete", 3);
        } else {
            keep(dir, COMMIT, "config.json", "kc", 2);
            keep(dir, COMMIT, "model.safetensors", "km", 3);
        }
        if (i == 0) {
            set_main(dir, COMMIT);
        }
        CHECK(alloc_fail_each(list_one, one, 1000) >= 1);
        folder_remove(dir);
    }
    snprintf(dir, sizeof dir, "%s/models--o--n", cache);
    int64_t n = 0;
    size_t at = 0;
    while (n == 0 && at < 1000) {
        hub_name name;
        err_detail d = {0};
        CHECK(hub_name_parse(&name, "o/n:Q8_0"));
        fill(cache);
        alloc_fail_at(++at);
        const err_code err = hub_cache_remove(cache, &name, &n, &d);
        alloc_fail_at(0);
        CHECK((err == ERR_OK && d.text[0] == '\0') || (err == ERR_NOMEM && d.text[0]));
        CHECK(exists(dir, "blobs/k4") && exists(dir, "snapshots/" COMMIT "/m-Q4_K_M.gguf"));
        CHECK_INT(n, exists(dir, "blobs/k8") ? 0 : 8);
    }
    CHECK(at > 3 && at < 1000);
}

/* ---- where it is ---- */

static void test_place(void)
{
    static const char *const VARIABLES[] = {
        "HF_ENDPOINT",           "HF_TOKEN", "HF_TOKEN_PATH",  "HF_HUB_CACHE",
        "HUGGINGFACE_HUB_CACHE", "HF_HOME",  "XDG_CACHE_HOME", "HF_HUB_OFFLINE"};
    char home[FOLDER_NAME], expected[PATH];
    hub_place p;
    err_detail d = {0};
    folder_make(home);
    for (size_t i = 0; i < sizeof VARIABLES / sizeof *VARIABLES; i++) {
        unsetenv(VARIABLES[i]);
    }
    setenv("HOME", home, 1);
    CHECK_OK(hub_place_find(&p, &d), d);
    snprintf(expected, sizeof expected, "%s/.cache/huggingface/hub", home);
    CHECK_STR(p.cache, expected);
    CHECK(!p.is_offline && !p.key[0] && strncmp(p.endpoint, "https://", 8) == 0);
    setenv("XDG_CACHE_HOME", "/x", 1);
    CHECK_OK(hub_place_find(&p, &d), d);
    CHECK_STR(p.cache, "/x/huggingface/hub");
    setenv("HF_HOME", home, 1);
    put(home, "token", 4);
    CHECK_OK(hub_place_find(&p, &d), d);
    snprintf(expected, sizeof expected, "%s/hub", home);
    CHECK_STR(p.cache, expected);
    CHECK_STR(p.key, "xxxx");
    setenv("HF_TOKEN", "mine", 1);
    setenv("HF_HUB_CACHE", "/c", 1);
    setenv("HF_ENDPOINT", "http://h:1/", 1);
    CHECK_OK(hub_place_find(&p, &d), d);
    CHECK_STR(p.cache, "/c");
    CHECK_STR(p.key, "mine");
    CHECK_STR(p.endpoint, "http://h:1");
    setenv("HF_HUB_OFFLINE", "1", 1);
    CHECK_OK(hub_place_find(&p, &d), d);
    CHECK(p.is_offline);
    setenv("HF_HUB_OFFLINE", "0", 1);
    CHECK_OK(hub_place_find(&p, &d), d);
    CHECK(!p.is_offline);
    setenv("HF_TOKEN", "a b", 1);
    CHECK_INT(hub_place_find(&p, &d), ERR_INVALID);
    CHECK(strstr(d.text, "HF_TOKEN") != NULL);
    unsetenv("HF_TOKEN");
    put(home, "other", 2);
    snprintf(expected, sizeof expected, "%s/other", home);
    FILE *f = fopen(expected, "a");
    CHECK(f && fputs(" \n", f) >= 0 && fclose(f) == 0);
    setenv("HF_TOKEN_PATH", expected, 1);
    CHECK_OK(hub_place_find(&p, &d), d);
    CHECK_STR(p.key, "xx"); /* without the blanks at its end */
    setenv("HF_HUB_CACHE", "below", 1);
    CHECK_OK(hub_place_find(&p, &d), d);
    CHECK(p.cache[0] == '/' && strcmp(strrchr(p.cache, '/'), "/below") == 0);
    static const char *const BAD[] = {"ftp://h", "http://h?x", "http://h#x", "h"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        setenv("HF_ENDPOINT", BAD[i], 1);
        CHECK_INT(hub_place_find(&p, &d), ERR_INVALID);
        CHECK(strstr(d.text, "HF_ENDPOINT") != NULL);
    }
    unsetenv("HF_ENDPOINT");
    char longer[HUB_CACHE_MAX + 1];
    memset(longer, 'a', sizeof longer);
    longer[0] = '/';
    longer[HUB_CACHE_MAX] = '\0';
    setenv("HF_HUB_CACHE", longer, 1);
    CHECK_INT(hub_place_find(&p, &d), ERR_INVALID);
    longer[HUB_CACHE_MAX - 1] = '\0';
    setenv("HF_HUB_CACHE", longer, 1);
    CHECK_OK(hub_place_find(&p, &d), d);
    CHECK_STR(p.cache, longer);
}

int main(void)
{
    test_names();
    test_folders_and_paths();
    test_listing();
    test_quants();
    test_gguf();
    test_checkpoints();
    test_cache();
    test_used();
    test_large_cache();
    test_link();
    test_short_memory();
    test_place();
    CHECK_DONE();
}
