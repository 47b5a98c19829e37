/* jpeg: any bytes. */
#include "tests/fuzz/image_target.h"
#include "tests/fuzz/mutate.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    return mutate_jpeg(data, size, max, seed, "jpeg");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    image_check(data, size);
    return 0;
}
