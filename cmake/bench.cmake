# Programs that measure: bench/ops.c and bench/ways.c know compute/ alone, bench/text.c the engine, bench/grammar.c structured output, bench/video.c
# the reading of videos; bench/random_model.c makes the
# checkpoints of real shapes that they run on.
add_executable(bench_ops ${CMAKE_SOURCE_DIR}/bench/ops.c)
target_link_libraries(bench_ops PRIVATE parley_compute)
add_executable(bench_ways ${CMAKE_SOURCE_DIR}/bench/ways.c)
target_link_libraries(bench_ways PRIVATE parley_compute)
add_executable(random_model ${CMAKE_SOURCE_DIR}/bench/random_model.c)
target_compile_definitions(random_model PRIVATE PARLEY_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
target_link_libraries(random_model PRIVATE parley_flags)
if(EXISTS ${CMAKE_SOURCE_DIR}/bench/text.c)
    add_executable(bench_text ${CMAKE_SOURCE_DIR}/bench/text.c ${CMAKE_SOURCE_DIR}/bench/blocks.c
        ${CMAKE_SOURCE_DIR}/bench/copy.c ${CMAKE_SOURCE_DIR}/bench/turns.c)
    target_link_libraries(bench_text PRIVATE parley_engine)
    add_executable(bench_cache_type ${CMAKE_SOURCE_DIR}/bench/cache_type.c)
    target_compile_definitions(bench_cache_type PRIVATE PARLEY_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    target_link_libraries(bench_cache_type PRIVATE parley_engine)
endif()
add_executable(bench_grammar ${CMAKE_SOURCE_DIR}/bench/grammar.c)
target_link_libraries(bench_grammar PRIVATE parley_engine)
add_executable(bench_sparse ${CMAKE_SOURCE_DIR}/bench/sparse.c)
target_link_libraries(bench_sparse PRIVATE parley_engine)
add_executable(bench_video ${CMAKE_SOURCE_DIR}/bench/video.c)
target_link_libraries(bench_video PRIVATE parley_vision)
