# Instruction-set flags of the kernel files; on other processors those files give no table.
# TRAP: the block kernels count on -O3 to unroll their small loops.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    set_source_files_properties(${CMAKE_SOURCE_DIR}/compute/ops_avx2.c PROPERTIES
        COMPILE_OPTIONS "-mavx2;-mfma;-mf16c;-O3")
    set_source_files_properties(${CMAKE_SOURCE_DIR}/compute/ops_avx512.c PROPERTIES
        COMPILE_OPTIONS "-mavx2;-mfma;-mf16c;-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-O3")
    set_source_files_properties(${CMAKE_SOURCE_DIR}/compute/ops_q_avx2.c PROPERTIES
        COMPILE_OPTIONS "-mavx2;-mfma;-mf16c;-O3")
    set_source_files_properties(${CMAKE_SOURCE_DIR}/compute/ops_ggml_avx2.c PROPERTIES
        COMPILE_OPTIONS "-mavx2;-mfma;-mf16c;-O3")
    set_source_files_properties(${CMAKE_SOURCE_DIR}/compute/ops_ggml_vnni.c PROPERTIES
        COMPILE_OPTIONS
        "-mavx2;-mfma;-mf16c;-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512vnni;-O3")
    set_source_files_properties(${CMAKE_SOURCE_DIR}/compute/ops_q_vnni.c PROPERTIES
        COMPILE_OPTIONS
        "-mavx2;-mfma;-mf16c;-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512vnni;-O3")
    set_source_files_properties(${CMAKE_SOURCE_DIR}/compute/ops_avx512_bf16.c PROPERTIES
        COMPILE_OPTIONS
        "-mavx2;-mfma;-mf16c;-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512bf16;-O3")
    set_source_files_properties(${CMAKE_SOURCE_DIR}/vision/resize_avx2.c PROPERTIES
        COMPILE_OPTIONS "-mavx2;-O3")
endif()
