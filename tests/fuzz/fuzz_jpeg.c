/* jpeg: any bytes. */
#include "tests/fuzz/picture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    picture_check(data, size);
    return 0;
}
