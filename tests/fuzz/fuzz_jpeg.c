/* jpeg: any bytes. */
#include "tests/fuzz/image_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    image_check(data, size);
    return 0;
}
