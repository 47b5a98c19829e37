/* hub_listing: what a hub says of a repository is read or refused with a reason, and no path leads
 * out of the repository. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/hub/hub_listing.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/say.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_file(const hub_listing *l, const hub_file *f)
{
    char path[HUB_PATH_MAX + 2];
    snprintf(path, sizeof path, "/%s/", f->path);
    must(f->path[0] && f->path[0] != '/' && !strstr(path, "/../") && !strstr(path, "/./") &&
         !strstr(path, "//"));
    must(f->size >= 0 && strlen(f->key) == strspn(f->key, "0123456789abcdef"));
    const hub_file *found = hub_listing_find(l, f->path);
    must(found && strcmp(found->path, f->path) == 0);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    return mutate_json(data, size, max, seed, "hub_listing");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hub_listing l;
    err_detail d = {0};
    const err_code err = hub_listing_read(&l, (const char *)data, size, &d);
    if (err != ERR_OK) {
        say_error(err, &d);
        must(d.text[0] != '\0');
        return 0;
    }
    say("%zu files of %s", l.n, l.commit);
    for (size_t i = 0; i < l.n; i++) {
        const hub_file *f = &l.files[i];
        say("%s: %lld, %s, large %d", f->path, (long long)f->size, f->key, f->is_large);
        check_file(&l, &l.files[i]);
    }
    hub_listing_deinit(&l);
    return 0;
}
