# Instruction-set flags of the kernel files; on other processors those files give no table.
# Loops begin at lines of 64 bytes: where the tile of bf16 happened to begin elsewhere, prompts took 2 to 3 % more time.
# TRAP: the block kernels count on -O3 to unroll their small loops. Under a sanitizer that would take minutes a file, so they
# get -O2 there, and no checks for undefined behaviour, which the generic kernels, their specification, are under; with -O1
# they compile a little faster and run 1.4 times as long.
set(sanitized -O2 -fno-sanitize=undefined)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    set(level -O3 -falign-functions=64 -falign-loops=64)
    if(PARLEY_SANITIZE)
        set(level ${sanitized})
    endif()
    set(avx2 -mavx2 -mfma -mf16c)
    set(avx512 ${avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl)
    set_source_files_properties(${CMAKE_SOURCE_DIR}/compute/kernels/ops_avx2.c ${CMAKE_SOURCE_DIR}/compute/kernels/ops_q_avx2.c
        ${CMAKE_SOURCE_DIR}/compute/kernels/ops_ggml_avx2.c PROPERTIES COMPILE_OPTIONS "${avx2};${level}")
    set_source_files_properties(${CMAKE_SOURCE_DIR}/compute/kernels/ops_avx512.c
        PROPERTIES COMPILE_OPTIONS "${avx512};${level}")
    set_source_files_properties(${CMAKE_SOURCE_DIR}/compute/kernels/ops_ggml_vnni.c ${CMAKE_SOURCE_DIR}/compute/kernels/ops_q_vnni.c
        ${CMAKE_SOURCE_DIR}/compute/kernels/ops_kv_vnni.c ${CMAKE_SOURCE_DIR}/compute/kernels/ops_q_tile_vnni.c
        PROPERTIES COMPILE_OPTIONS "${avx512};-mavx512vnni;${level}")
    if(CMAKE_C_COMPILER_ID STREQUAL GNU AND PARLEY_SANITIZE MATCHES address)
        # A check is a call in its unrolled functions, which take 10 s to compile so, and 69 without. TRAP: with all kernels so,
        # tests of the engine run four times as long.
        set_property(SOURCE ${CMAKE_SOURCE_DIR}/compute/kernels/ops_q_tile_vnni.c APPEND PROPERTY COMPILE_OPTIONS
            --param=asan-instrumentation-with-call-threshold=500)
    endif()
    set_source_files_properties(${CMAKE_SOURCE_DIR}/compute/kernels/ops_avx512_bf16.c
        PROPERTIES COMPILE_OPTIONS "${avx512};-mavx512bf16;${level}")
    set_source_files_properties(${CMAKE_SOURCE_DIR}/compute/kernels/ops_amx.c
        PROPERTIES COMPILE_OPTIONS "${avx512};-mamx-tile;-mamx-int8;-mamx-bf16;${level}")
    set_source_files_properties(${CMAKE_SOURCE_DIR}/vision/image/resize_avx2.c PROPERTIES COMPILE_OPTIONS "-mavx2;-O3")
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(level -O3)
    if(PARLEY_SANITIZE)
        set(level ${sanitized})
    endif()
    set_source_files_properties(${CMAKE_SOURCE_DIR}/compute/kernels/ops_neon.c PROPERTIES COMPILE_OPTIONS "${level}")
    set_source_files_properties(${CMAKE_SOURCE_DIR}/compute/kernels/ops_neon_dotprod.c
        PROPERTIES COMPILE_OPTIONS "-march=armv8.2-a+dotprod;${level}")
    set_source_files_properties(${CMAKE_SOURCE_DIR}/compute/kernels/ops_neon_i8mm.c
        PROPERTIES COMPILE_OPTIONS "-march=armv8.2-a+dotprod+i8mm;${level}")
endif()
