# Tests that are no C program of their own: lint, its self-test, the scripts, the format check.
find_program(PYTHON3 python3)
if(PYTHON3)
    add_test(NAME lint COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/tools/lint.py)
    add_test(NAME lint_self_test COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/tools/lint.py --self-test)
    add_test(NAME usage COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/tests/scripts/usage_test.py ${CMAKE_SOURCE_DIR}
        ${CMAKE_C_COMPILER})
    set_tests_properties(lint lint_self_test PROPERTIES LABELS lint TIMEOUT 60)
    set_tests_properties(usage PROPERTIES LABELS lint TIMEOUT 300)
endif()

add_test(NAME scripts/install_test COMMAND ${CMAKE_SOURCE_DIR}/tests/scripts/install_test)
set_tests_properties(scripts/install_test PROPERTIES LABELS lint TIMEOUT 60)

# What a sanitizer does not see: the kernels of another processor family (the longest test, so it begins early), packages.
if(NOT PARLEY_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
    add_test(NAME scripts/aarch64_test COMMAND ${CMAKE_SOURCE_DIR}/tests/scripts/aarch64_test)
    set_tests_properties(scripts/aarch64_test PROPERTIES LABELS compute SKIP_RETURN_CODE 77 TIMEOUT 600 COST 60)
    add_test(NAME scripts/packaging_test COMMAND ${CMAKE_SOURCE_DIR}/tests/scripts/packaging_test ${CMAKE_BINARY_DIR})
    set_tests_properties(scripts/packaging_test PROPERTIES LABELS server TIMEOUT 120)
endif()


option(PARLEY_FORMAT_CHECK "Fail the test `format` where clang-format 14 would change a file" ON)
find_program(CLANG_FORMAT NAMES clang-format-14 clang-format)
if(PARLEY_FORMAT_CHECK AND CLANG_FORMAT)
    add_test(NAME format COMMAND sh -c
        "git ls-files '*.c' '*.h' | xargs ${CLANG_FORMAT} --dry-run -Werror" WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(format PROPERTIES LABELS lint TIMEOUT 120)
endif()

# Writes checkpoint folders as GGUF files; model/test_checkpoint_gguf runs it.
add_executable(make_gguf ${CMAKE_SOURCE_DIR}/tests/model/checkpoint/make_gguf.c)
target_compile_definitions(make_gguf PRIVATE PARLEY_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
target_link_libraries(make_gguf PRIVATE parley_engine)

# tests/fuzz/fuzz_NAME.c: a libFuzzer program in the preset fuzz; elsewhere the test fuzz/replay_NAME.
# Mutators that keep the form of an input, with the words of tests/fuzz/dictionaries, are for both.
add_library(fuzz_mutate STATIC ${CMAKE_SOURCE_DIR}/tests/fuzz/mutate.c ${CMAKE_SOURCE_DIR}/tests/fuzz/mutate_files.c
    ${CMAKE_SOURCE_DIR}/tests/fuzz/say.c)
target_compile_definitions(fuzz_mutate PRIVATE PARLEY_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
target_link_libraries(fuzz_mutate PRIVATE parley_engine)
file(GLOB fuzz_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/fuzz_*.c)
foreach(source ${fuzz_sources})
    get_filename_component(program ${source} NAME_WE)
    string(REGEX REPLACE "^fuzz_" "" name ${program})
    add_executable(${program} ${source})
    target_compile_definitions(${program} PRIVATE PARLEY_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    target_link_libraries(${program} PRIVATE fuzz_mutate)
    if(TARGET parley_server)
        target_link_libraries(${program} PRIVATE parley_server)
    else()
        target_link_libraries(${program} PRIVATE parley_engine)
    endif()
    if(PARLEY_SANITIZE MATCHES fuzzer)
        target_link_options(${program} PRIVATE -fsanitize=fuzzer)
    else()
        target_sources(${program} PRIVATE ${CMAKE_SOURCE_DIR}/tests/fuzz/replay.c
            ${CMAKE_SOURCE_DIR}/tests/fuzz/outcomes.c)
        add_test(NAME fuzz/replay_${name} COMMAND ${program} ${CMAKE_SOURCE_DIR}/tests/fuzz/seeds/${name})
        set_tests_properties(fuzz/replay_${name} PROPERTIES LABELS fuzz TIMEOUT 300)
    endif()
endforeach()

# tests/text/grammar/schemas: what grammars let through against a validator of another make.
add_executable(schema_walks ${CMAKE_SOURCE_DIR}/tests/text/grammar/schema_walks.c)
target_link_libraries(schema_walks PRIVATE parley_engine)
add_test(NAME text/schemas COMMAND ${CMAKE_SOURCE_DIR}/tests/text/grammar/schemas/run $<TARGET_FILE:schema_walks>)
set_tests_properties(text/schemas PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 300 LABELS text)

# The kernels for AMX over an emulated tile unit, those for BF16 over emulated instructions.
set(emulated ${CMAKE_SOURCE_DIR}/tests/compute/kernels/amx_emulated.c ${CMAKE_SOURCE_DIR}/tests/compute/kernels/bf16_emulated.c)
target_sources(test_ops PRIVATE ${emulated})
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    set_source_files_properties(${emulated} PROPERTIES COMPILE_OPTIONS "${avx512};${level}")
endif()

# The conversations that bench_text measures are also tested.
target_sources(test_turns PRIVATE ${CMAKE_SOURCE_DIR}/bench/turns.c)

# Programs that let allocations fail. Without a sanitizer alloc_fail.c takes malloc's place for every library;
# a sanitizer has its own malloc, so there only the calls of our own code are caught, by the linker; always where
# libraries crash when their own allocations fail, or make too many.
set(only_ours test_alloc_fail_checkpoint test_alloc_fail_engine test_alloc_fail_vision test_chat_client test_chat_command test_chat_line
    test_file_store test_folder_changed test_gguf_changed test_history_queue test_hub_bounds test_id_table test_limits test_mcp_wait test_reader_memory test_serve_calls
    test_serve_answers test_serve_choices test_serve_heads test_serve_prepare test_serve_responses
    test_serve_tools test_unicode test_uploads)
foreach(program test_alloc_fail test_alloc_fail_image test_alloc_fail_model test_alloc_fail_text test_chat_talk
        test_data_uri test_engine_commands test_hub test_left_behind test_mcp_catalog test_mcp_config test_mcp_result
        test_reply_memory test_request_memory test_response_store test_tool_plan test_upstream_config test_upstream_memory
        test_upstream_reply test_warm ${only_ours})
    if(TARGET ${program})
        target_sources(${program} PRIVATE ${CMAKE_SOURCE_DIR}/tests/alloc_fail.c)
        if(PARLEY_SANITIZE OR program IN_LIST only_ours)
            target_compile_definitions(${program} PRIVATE ALLOC_FAIL_WRAPPED)
            foreach(call malloc calloc realloc aligned_alloc posix_memalign free)
                target_link_options(${program} PRIVATE -Wl,--wrap=${call})
            endforeach()
        endif()
    endif()
endforeach()

# The terminal: `parley chat` behind a pseudo-terminal.
if(PYTHON3)
    add_test(NAME server/terminal_test COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/tests/server/chat/terminal_test.py
        $<TARGET_FILE:parley>)
    set_tests_properties(server/terminal_test PROPERTIES LABELS server TIMEOUT 600 COST 30)
endif()

# One failing call after the other under the whole program; a few of them, picked by the date, are a test.
if(PYTHON3 AND NOT PARLEY_SANITIZE)
    add_library(torture_shim MODULE ${CMAKE_SOURCE_DIR}/tests/torture/shim.c)
    set_target_properties(torture_shim PROPERTIES PREFIX "")
    target_compile_options(torture_shim PRIVATE -Wall -Wextra)
    target_link_libraries(torture_shim PRIVATE ${CMAKE_DL_LIBS})
    add_test(NAME server/torture COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/tests/torture/torture.py ${CMAKE_BINARY_DIR} --points 40)
    set_tests_properties(server/torture PROPERTIES LABELS server TIMEOUT 600 COST 70)
endif()

# Preloaded: what real_sandbox.mjs lets a server do that was taken over, and a log of calls on files.
if(NOT PARLEY_SANITIZE)
    foreach(library server/cli/escape server/cli/old_blas torture/disk_log)
        get_filename_component(name ${library} NAME)
        add_library(${name} MODULE ${CMAKE_SOURCE_DIR}/tests/${library}.c)
        set_target_properties(${name} PROPERTIES PREFIX "")
        target_compile_options(${name} PRIVATE -Wall -Wextra)
        target_link_libraries(${name} PRIVATE ${CMAKE_DL_LIBS})
    endforeach()
endif()

if(NOT PARLEY_SANITIZE AND CMAKE_BUILD_TYPE STREQUAL Release)
    add_test(NAME scripts/hardened_test COMMAND ${CMAKE_SOURCE_DIR}/tests/scripts/hardened_test $<TARGET_FILE:parley>)
    set_tests_properties(scripts/hardened_test PROPERTIES LABELS lint SKIP_RETURN_CODE 77 TIMEOUT 60)
endif()

# The server with the double of the engine in one process.
target_sources(test_transcripts PRIVATE ${fake_sources})
target_link_options(test_transcripts PRIVATE -Wl,--wrap=pthread_create,--wrap=pthread_join,--wrap=engine_open,--wrap=engine_close)
target_sources(test_short_memory PRIVATE ${fake_sources})
target_sources(test_life PRIVATE ${fake_sources})
target_sources(test_prep PRIVATE ${fake_sources})
target_link_options(test_prep PRIVATE -Wl,--wrap=pthread_create,--wrap=clock_ms)
# A job whose worker is the test.
set(failing pthread_create pthread_join mailbox_pop clock_ms prep_turns_enter prep_turns_hook prep_turns_pause prep_turns_resume
    prep_turns_is_evicted prep_turns_leave prep_turns_make_room engine_get_info engine_get_status engine_tokenize engine_admit
    engine_start gen_request_get_info gen_request_next gen_request_set_name gen_request_free upstreams_is_named
    upstreams_is_local_only upstreams_route upstreams_find upstreams_prepare upstream_request_append upstream_request_free
    upstream_request_info remote_media_wanted remote_media_fetch foreign_fields_check text_query_run preview_run
    context_fit_prepare)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_prep_steps PRIVATE ${failing})
# Turns on one thread, in time that is made up.
set(failing calloc clock_ms clock_gettime pthread_condattr_init pthread_mutex_init pthread_mutex_lock pthread_mutex_unlock pthread_cond_init
    pthread_cond_broadcast pthread_cond_timedwait pthread_condattr_setclock)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_prep_waits PRIVATE ${failing})
target_sources(test_prep_calls PRIVATE ${fake_sources})
set(failing loop_message_create engine_tokenize upstreams_is_named upstreams_is_local_only upstreams_route upstreams_find
    upstreams_prepare upstream_request_append upstream_request_free upstream_request_info remote_media_wanted
    remote_media_fetch preview_run)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_prep_calls PRIVATE ${failing})
target_link_options(test_serve_calls PRIVATE -Wl,--wrap=nanosleep,--wrap=pthread_create,--wrap=net_wake,--wrap=net_want_write
    -Wl,--wrap=engine_close,--wrap=engine_get_info,--wrap=serve_stop_answer,--wrap=clock_ms)
set(failing clock_ms serve_status_changed serve_stop_answer serve_handle_message serve_fail_answer serve_queue_frame notify_send
    prep_get_status prep_submit)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_serve_looks PRIVATE ${failing})
set(failing malloc calloc realloc pthread_create pthread_join)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_short_memory PRIVATE ${failing})
# The memory and the steps of a grammar end.
set(failing arena_alloc arena_calloc arena_strdup work_do)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_schema_room PRIVATE ${failing})
target_link_options(test_jinja_memory PRIVATE -Wl,--wrap=jinja_work)
target_link_options(test_rendered PRIVATE -Wl,--wrap=arena_alloc,--wrap=arena_calloc,--wrap=arena_strdup)
target_link_options(test_router PRIVATE -Wl,--wrap=calloc,--wrap=realloc,--wrap=fopen,--wrap=getrusage,--wrap=inflateInit2_)
# Tokens that the test makes up.
target_link_options(test_answer PRIVATE -Wl,--wrap=engine_token_bytes)
# Threads that speak with other servers run as the test's own.
target_link_options(test_upstream_loop PRIVATE -Wl,--wrap=pthread_create,--wrap=pthread_cond_timedwait
    -Wl,--wrap=pthread_cond_signal,--wrap=curl_easy_init,--wrap=curl_easy_cleanup)
set(failing pthread_create pthread_join pthread_mutex_lock pthread_mutex_unlock pthread_cond_timedwait pthread_cond_signal nanosleep
    calloc clock_ms clock_deadline http_client_create http_client_destroy http_client_start http_client_stop http_client_poll
    http_client_wake)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_upstream_thread PRIVATE ${failing})
target_link_options(test_upstream_memory PRIVATE -Wl,--wrap=pthread_create,--wrap=pthread_join)
set(failing calloc realloc strdup nanosleep read)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_mcp_talk PRIVATE ${failing})
set(failing pthread_create pthread_join pthread_mutex_lock pthread_mutex_unlock nanosleep calloc clock_ms http_client_create
    http_client_destroy http_client_start http_client_stop http_client_poll http_client_poll_with http_client_wake
    http_client_is_idle mcp_pipe_open mcp_pipe_close mcp_pipe_send mcp_pipe_ready mcp_worker_start mcp_worker_cancel
    mcp_worker_collect)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_mcp_thread PRIVATE ${failing})
target_link_options(test_mcp_loop PRIVATE -Wl,--wrap=pthread_create,--wrap=pthread_join)
target_link_options(test_history_limits PRIVATE -Wl,--wrap=database_set_max_bytes)
# Calls of the system and of SQLite that fail once.
set(failing open mkdir flock fsync rename unlink unlinkat ftruncate posix_fallocate stat fstat fstatvfs opendir pread write
    malloc calloc realloc clock_gettime hash_random_id sqlite3_open_v2 sqlite3_prepare_v3 sqlite3_step sqlite3_exec
    sqlite3_bind_int64 sqlite3_bind_text64 sqlite3_bind_blob64 sqlite3_wal_checkpoint_v2 sqlite3_errmsg
    history_check_room)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_history_failures PRIVATE ${failing})
set(failing open openat mkdir mkdirat flock fsync rename renameat symlinkat unlink unlinkat ftruncate stat lstat fstat statvfs
    opendir readdir closedir nftw readlink readlinkat remove close pread read write pwrite malloc calloc realloc hash_stream_create
    hash_stream_create_git)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_hub_pull PRIVATE ${failing})
set(failing calloc socketpair fork pipe2 send sendmsg recvmsg read)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_hub_jobs PRIVATE ${failing})
# Kernels of other processors.
set(tables avx512_amx avx512_bf16 avx512_vnni avx512 avx2 neon_i8mm neon_dotprod neon)
list(TRANSFORM tables PREPEND -Wl,--wrap=ops_)
target_link_options(test_ops_choice PRIVATE ${tables})
# Calls of the system that fail once.
set(failing open fstat read mmap stat access opendir fopen mkdir fwrite fclose msync posix_fallocate rename arena_alloc
    arena_calloc arena_strdup)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_model_calls PRIVATE ${failing})
# Files of images and frames that the test makes up.
target_link_options(test_upstream_media PRIVATE -Wl,--wrap=media_copy)
# Prompts that are computed by the double of the engine.
target_sources(test_warm PRIVATE ${fake_sources})
set(failing socket bind listen connect setsockopt getsockopt getsockname accept4 lstat unlink open fcntl)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_listen PRIVATE ${failing})
set(failing malloc calloc realloc send sendmsg sendfile ledger_try listeners_accept lws_create_context lws_create_vhost
    lws_write fcntl lws_adopt_descriptor_vhost lws_adopt_descriptor_vhost_via_info lws_adopt_socket_vhost_readbuf)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_net_failures PRIVATE ${failing})
set(failing malloc calloc curl_easy_init curl_easy_setopt curl_multi_init curl_multi_wakeup curl_multi_add_handle
    curl_slist_append curl_url curl_url_set)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_http_client PRIVATE ${failing})
target_link_options(test_mcp_wire PRIVATE -Wl,--wrap=pthread_create,--wrap=pthread_join)
target_link_options(test_mcp_streams PRIVATE -Wl,--wrap=pthread_create,--wrap=pthread_join,--wrap=mcp_spawner_start)
target_link_options(test_mcp_fetch PRIVATE -Wl,--wrap=fetch_get)
set(failing setsockopt getsockopt getsockname getpeername fopen opendir send)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_local_server PRIVATE ${failing})
set(failing clock_ms serve_tick_answers serve_tick_switch serve_tick_uploads serve_tick_hub serve_watchdog_prep
    serve_watchdog_engine serve_status_changed serve_refuse_held serve_end_answers serve_advance_switch serve_on_written
    prep_is_idle net_set_timer net_want_write net_stop_listening net_is_sending net_close_socket write_queue_is_busy
    engine_get_status notify_tick notify_send access_init pthread_create)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_serve_timer PRIVATE ${failing})
set(failing upstream_request_next upstream_request_detach upstream_request_info upstream_request_free gen_request_next
    gen_request_get_info gen_request_set_id gen_request_free upstreams_submit engine_submit engine_end_thinking
    serve_stop_answer serve_stop_one answer_begin answer_take_prompt)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_serve_choices PRIVATE ${failing})
set(failing clock_ms serve_name_of access_key_of prep_submit serve_named_turn serve_hold_answer serve_fail_answer
    serve_fail_answer_from serve_make_choices serve_submit_choices serve_begin_choices serve_end_thinking answer_begin
    serve_begin_streams serve_emit_lists serve_wake_followers serve_is_ready responses_reply_queued responses_reply_write
    serve_attach_replay serve_socket_error serve_cancel_answer serve_stop_answer net_want_write serve_send_body
    serve_send_json serve_socket_count serve_drop_answer serve_run_allowed upstream_request_server gen_request_free
    upstream_request_free tool_plan_destroy tool_set_destroy)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_serve_prepare PRIVATE ${failing})
set(failing clock_ms hash_random_id net_want_write net_begin_stream serve_drop_choices serve_stop_choices serve_model_turn
    serve_named_turn serve_prepare_answer serve_reserve_body serve_hold_answer metrics_request metrics_answer serve_send_error
    serve_send_json serve_socket_error serve_break_chain serve_extend_chain gen_request_free upstream_request_free
    serve_keep_answer serve_try_lanes serve_try_held response_store_put serve_take_runs serve_check_stream
    serve_extend_conversation serve_share_prompt serve_schedule serve_begin_round engine_cancel upstreams_cancel mcp_cancel
    serve_stop_rounds prep_ticket_cancel serve_begin_answer serve_on_accepted serve_on_prepared serve_on_other_model
    serve_on_tools serve_on_result serve_on_replied serve_on_mcp_reply serve_end_rounds serve_expire_answers
    responses_reply_in_progress responses_reply_finish responses_reply_deinit answer_take_event log_write)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_serve_answers PRIVATE ${failing})
target_link_options(test_serve_events PRIVATE ${failing})
set(failing clock_ms hash_random_id serve_emit_item mcp_call mcp_cancel mcp_retry mcp_take_catalog serve_end_answer
    serve_prepare_answer prep_ticket_cancel serve_schedule serve_new_message serve_post serve_send_fault serve_send_body
    responses_reply_in_progress responses_reply_deinit mcp_result_create log_write)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_serve_tools PRIVATE ${failing})
set(failing clock_ms serve_begin_follow serve_cancel_answer serve_end_answer serve_compose_kept serve_send_body
    serve_send_json serve_send_error serve_send_fault responses_reply_write responses_reply_deinit response_store_remove
    response_store_get_input response_items_list history_talk_remove talk_run history_job_create serve_submit_history
    history_submit history_call history_talk_get history_talk_item history_talk_put history_talk_add)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_serve_responses PRIVATE ${failing})
set(failing ledger_create write_queue_create file_store_create file_store_get_options uploads_init file_writer_create
    catalog_open catalog_find catalog_unknown mailbox_create fetch_start fetch_stop shares_init response_store_create
    prep_create access_init access_set_admin history_create prep_set_stores net_is_local net_wake media_copier_create
    upstreams_create mcp_create serve_begin_ready serve_load_first loop_message_create serve_post nanosleep net_open
    mailbox_close pthread_join prep_end mailbox_try_pop serve_drop_message answer_destroy id_table_deinit shares_deinit
    serve_close_previews serve_close_residents uploads_deinit access_deinit mailbox_destroy file_writer_destroy upstreams_stop
    mcp_destroy prep_destroy history_destroy upstreams_destroy media_copier_destroy engine_close warm_destroy write_queue_end
    net_close write_queue_destroy file_store_destroy response_store_destroy ledger_destroy catalog_close _exit log_write)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_serve_parts PRIVATE ${failing})
set(failing clock_ms net_send_reply engine_get_status prep_get_status file_store_usage_of file_store_get_options
    metrics_resident_bytes memory_available upstreams_write_status serve_write_residents response_store_bytes
    serve_cancel_answer serve_end_thinking engine_clear_cache engine_check_name engine_list_cache engine_find_named)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_serve_status PRIVATE ${failing})
set(failing serve_on_loading serve_on_loaded serve_on_preview serve_on_upstreams serve_on_history_reply serve_handle_message
    serve_on_written serve_advance_switch prep_is_idle warm_on_event net_wake)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_serve_inbox PRIVATE ${failing})
set(failing clock_ms clock_unix_s memory_share_heaps load_bar_begin notify_open notify_close net_port net_set_timer net_poll
    signal sigaction serve_open_parts serve_close_parts pthread_create pthread_join pthread_mutex_init pthread_mutex_lock
    pthread_mutex_unlock pthread_cond_init pthread_cond_signal pthread_cond_wait)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_serve_run PRIVATE ${failing})
set(failing serve_on_tags serve_on_version serve_on_slots serve_on_response serve_on_input_items serve_on_models serve_on_status
    serve_on_cancel serve_on_cache serve_on_cache_entry serve_on_mcp serve_on_hub serve_finish_form serve_on_files serve_on_show
    serve_on_load_model serve_on_unload_model serve_on_hub_order serve_on_control serve_on_mcp_order serve_on_conversations
    serve_on_uploads serve_on_history serve_end_chain serve_start_answer serve_memory_status serve_write_video serve_drop_form
    serve_abandon_answers serve_drop_previews serve_socket_pull serve_take_stream serve_take_news clock_ms metrics_request
    metrics_write net_want_write net_connections net_send_reply assets_find asset_reply_deinit engine_get_status
    file_store_usage upstreams_write_metrics mcp_cancel responses_reply_catch_up event_log_read)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_serve_routes PRIVATE ${failing})
set(failing file_store_list file_store_get file_store_delete file_store_open metrics_request net_send_reply)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_serve_files PRIVATE ${failing})
set(failing clock_ms clock_unix_s hash_random_id hash_random_u64 net_want_write net_abort net_close_socket metrics_request
    engine_get_status file_store_get_options upstreams_write_rules serve_take_ack serve_socket_upload serve_start_answer
    serve_cancel_answer serve_control_answer serve_find_response serve_no_response response_store_put response_store_remove
    responses_reply_catch_up responses_reply_progress responses_reply_stats)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
foreach(program test_serve_socket test_serve_messages)
    target_link_options(${program} PRIVATE ${failing})
endforeach()
set(failing clock_ms log_write serve_find_follower serve_drop_answer answer_bytes shares_is_over shares_add shares_note_gone
    shares_is_gone ledger_get_status response_store_bytes response_store_tick)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_serve_kept PRIVATE ${failing})
set(failing log_write net_want_write serve_add_reader serve_socket_error serve_send_error serve_begin_stream serve_send_whole
    serve_drop_answer serve_is_repeat_gone serve_fail_answer serve_stop_answer)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_serve_idempotency PRIVATE ${failing})
set(failing serve_queue_frame serve_tell_completed net_want_write serve_pace serve_begin_upload serve_step_upload uploads_find
    uploads_find_handle uploads_drop upload_written uploads_finish upload_chunk file_sink_error)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_serve_socket_uploads PRIVATE ${failing})
set(failing clock_unix_s serve_send_body serve_send_error serve_write_file file_store_get_options file_store_link
    file_store_expire uploads_begin uploads_find uploads_assemble uploads_drop uploads_expire uploads_step serve_tell_ended
    serve_form_waiting file_sink_waiting file_sink_poll net_pause write_queue_has_news serve_chunks_written serve_form_written
    serve_ack_all serve_tick_previews)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_serve_uploads PRIVATE ${failing})
set(failing clock_ms log_write engine_get_info engine_close catalog_count catalog_at catalog_find catalog_refresh)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
foreach(program test_serve_switch test_serve_turns test_serve_models test_serve_residents)
    target_link_options(${program} PRIVATE ${failing})
endforeach()
set(failing serve_status_changed engine_get_status engine_open serve_open_beside serve_close_lent serve_on_unloaded
    serve_tick_residents serve_unload serve_end_previews net_set_timer net_port net_send_reply load_bar_show load_bar_end
    catalog_set_error catalog_hide_folder upstreams_is_named access_scope_of_key memory_available realpath
    loop_message_create calloc serve_new_answer warm_create warm_run pthread_create pthread_join notify_send serve_post
    serve_fail_answer serve_fail_answer_from serve_drop_answer serve_prepare_answer)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_serve_switch PRIVATE ${failing})
target_link_options(test_serve_turns PRIVATE ${failing})
set(failing net_send_reply serve_started_at upstreams_write_models upstreams_write_model realloc json_parse hub_jobs_place
    hub_jobs_write hub_jobs_start hub_jobs_cancel hub_jobs_look hub_cache_find hub_cache_list catalog_offer catalog_withdraw
    catalog_open)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_serve_models PRIVATE ${failing})
set(failing serve_status_changed serve_start_loader engine_open ledger_get_status ledger_set_limit)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_serve_residents PRIVATE ${failing})
target_link_options(test_serve_heads PRIVATE -Wl,--wrap=serve_begin_form,--wrap=clock_ms)
set(failing calloc file_store_get_options uploads_find uploads_open_file file_sink_open file_sink_add file_sink_queued
    file_sink_waiting file_sink_poll file_sink_is_idle file_sink_error file_sink_take file_sink_drop upload_part_begin
    upload_part_add upload_part_end upload_part_abort file_store_reserve file_store_release file_store_add net_stream_body
    net_pause net_send_reply clock_unix_s)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_serve_forms PRIVATE ${failing})
target_link_options(test_serve_history PRIVATE -Wl,--wrap=history_submit,--wrap=history_job_create,--wrap=net_send_reply
    -Wl,--wrap=serve_queue_frame,--wrap=serve_on_extended)
target_link_options(test_chat_screen PRIVATE -Wl,--wrap=isatty)
target_link_options(test_serve_dialects PRIVATE -Wl,--wrap=engine_find_named,--wrap=clock_unix_s,--wrap=hash_random_id
    -Wl,--wrap=clock_ms)
target_link_options(test_load_bar PRIVATE -Wl,--wrap=isatty,--wrap=clock_ms)
target_link_options(test_net_replies PRIVATE -Wl,--wrap=lws_rx_flow_control,--wrap=sendmsg,--wrap=sendfile)
target_link_options(test_net_unread PRIVATE -Wl,--wrap=ioctl,--wrap=getsockopt)
target_link_options(test_sandbox PRIVATE -Wl,--wrap=syscall,--wrap=prctl)
# What processes of hub_jobs ask of the system, and the hub they ask.
set(failing clock_ms fork _exit socketpair pipe2 close close_range fcntl open dup2 signal prctl waitpid pthread_create poll recv
    send sendmsg recvmsg write read hub_place_find hub_pull hub_cache_remove hub_cache_find)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_hub_jobs_calls PRIVATE ${failing})
set(failing clock_ms http_client_create http_client_destroy http_client_start http_client_stop http_client_poll hub_blob_open
    hub_blob_close hub_blob_check_some hub_blob_add hub_blob_restart hub_blob_finish)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_hub_client_calls PRIVATE ${failing})
set(failing open close flock fstat lstat pread pwrite ftruncate fsync rename hash_stream_create hash_stream_create_git
    hash_stream_add hash_stream_end hash_stream_destroy)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_hub_blob_calls PRIVATE ${failing})
target_link_options(test_hub_client PRIVATE -Wl,--wrap=http_client_poll)
target_link_options(test_preview PRIVATE -Wl,--wrap=file_store_open,--wrap=engine_get_info,--wrap=engine_preview
    -Wl,--wrap=media_copier_preview)
target_link_options(test_remote_ends PRIVATE -Wl,--wrap=remote_get)
target_link_options(test_remote_get PRIVATE -Wl,--wrap=fetch_get)
target_link_options(test_mcp_wait PRIVATE -Wl,--wrap=pthread_create,--wrap=pthread_join,--wrap=pthread_cond_timedwait,--wrap=clock_ms,--wrap=strdup)
target_link_options(test_mcp_pages PRIVATE -Wl,--wrap=iconv_open)
set(failing malloc realloc strdup fdopendir fstat openat __openat_2 read readdir closedir fstatat clock_ms mcp_decode)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_mcp_folder PRIVATE ${failing})
# What keepers of programs do; calls that fail.
set(failing nanosleep poll clock_ms kill opendir fork pipe2 socketpair calloc send sendmsg recvmsg)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_mcp_spawner PRIVATE ${failing})
set(failing memfd_create socketpair fcntl write posix_spawn_file_actions_init posix_spawnattr_init
    posix_spawn_file_actions_adddup2 posix_spawn_file_actions_addopen posix_spawnattr_setsigmask posix_spawnattr_setsigdefault
    posix_spawnattr_setflags posix_spawn clock_getcpuclockid send recv poll waitpid clock_ms clock_gettime)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_video_worker PRIVATE ${failing})
set(failing posix_spawn_file_actions_adddup2 posix_spawn_file_actions_addopen posix_spawn)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_worker_start PRIVATE ${failing})
set(failing getrlimit setrlimit mmap munmap prctl syscall)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_video_confine PRIVATE ${failing})
target_link_options(test_reader_memory PRIVATE -Wl,--wrap=mmap)
target_link_options(test_image_reader PRIVATE -Wl,--wrap=recv)
target_link_options(test_video_header PRIVATE -Wl,--wrap=pread)
set(failing pread av_packet_alloc av_new_packet av_frame_alloc av_malloc av_strdup avformat_alloc_context avio_alloc_context
    avcodec_parameters_alloc avcodec_parameters_copy avcodec_parameters_to_context avcodec_alloc_context3 avcodec_open2
    avcodec_send_packet avcodec_receive_frame av_read_frame sws_alloc_context sws_init_context
    WebPAnimDecoderNewInternal av_find_input_format avcodec_find_decoder_by_name)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_left_behind PRIVATE ${failing})
target_link_options(test_remote_media PRIVATE -Wl,--wrap=pread,--wrap=fstat)
target_link_options(test_file PRIVATE -Wl,--wrap=write,--wrap=read)
set(failing getrandom EVP_MD_CTX_new EVP_DigestInit_ex EVP_DigestUpdate EVP_DigestFinal_ex EVP_Digest)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_hash PRIVATE ${failing})
target_link_options(test_ledger PRIVATE -Wl,--wrap=clock_ms)
target_link_options(test_disk_open PRIVATE -Wl,--wrap=pthread_create,--wrap=fsync)
target_link_options(test_disk_calls PRIVATE -Wl,--wrap=hash_stream_create,--wrap=pthread_cond_wait)
target_link_options(test_prepared PRIVATE -Wl,--wrap=grammar_cursor_failure,--wrap=clock_ms)
foreach(program test_prepared test_media_copy)
    target_link_options(${program} PRIVATE -Wl,--wrap=video_worker_read,--wrap=image_reader_measure,--wrap=image_reader_read)
endforeach()
target_link_options(test_loading PRIVATE -Wl,--wrap=pthread_create,--wrap=mlockall)
target_link_options(test_video PRIVATE -Wl,--wrap=avcodec_send_packet,--wrap=avcodec_receive_frame)
target_link_options(test_image_files PRIVATE -Wl,--wrap=av_packet_alloc,--wrap=avcodec_parameters_alloc)
# What the engine of a transcript calls, and its cache on disk (tests/engine/transcript_calls.h).
set(failing decoder_begin decoder_forward mtp_forward drafter_note drafter_flush drafter_prompt vit_encode sampler_create
    constrain_start constrain_check seq_state_restore_prefix seq_state_restore seq_state_snapshot seq_snapshot_begin seq_snapshot_alloc lookahead_begin
    lookahead_next lexical_score disk_run_save disk_serve_loads disk_cache_save disk_cache_load disk_cache_load_given
    inbox_wake prefix_cache_make_room disk_load_finish decoder_next)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_engine_transcripts PRIVATE ${failing})
target_link_options(test_numa PRIVATE -Wl,--wrap=calloc,--wrap=pthread_create,--wrap=pthread_setaffinity_np)
# The editor of a line, the history and the terminal behind them.
set(failing isatty ioctl eventfd open close sigaction setlocale write poll read el_init el_end el_resize el_set el_get
    el_insertstr el_gets history_init history_end history)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_chat_line_calls PRIVATE ${failing})
target_link_options(test_chat_line PRIVATE -Wl,--wrap=read,--wrap=eventfd,--wrap=el_insertstr,--wrap=el_init,--wrap=history_init)
target_link_options(test_options PRIVATE -Wl,--wrap=arena_create,--wrap=arena_alloc,--wrap=arena_calloc,--wrap=arena_strdup
    -Wl,--wrap=access,--wrap=file_read)
target_link_options(test_start_again PRIVATE -Wl,--wrap=opendir,--wrap=readlink,--wrap=execv,--wrap=engine_wanted_blas)
target_link_options(test_pull_bars PRIVATE -Wl,--wrap=calloc)
target_link_options(test_commands PRIVATE -Wl,--wrap=lstat)
target_link_options(test_history_queue PRIVATE -Wl,--wrap=pthread_create)
target_link_options(test_chat_command PRIVATE -Wl,--wrap=fetch_start,--wrap=chat_talk_set_system)
target_link_options(test_chat_talk PRIVATE -Wl,--wrap=fsync)
set(failing isatty arena_strdup readlink fork mkdtemp hub_place_find hub_cache_find hub_pull hub_cache_list pull_bars_begin
    pull_bars_tick pull_bars_end command_print local_server_get local_server_process pidfd_open pidfd_send_signal poll)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_command_calls PRIVATE ${failing})
set(failing mkdtemp rmdir unlink fork getpid getppid setsid prctl signal open close dup2 unsetenv _exit command_serve waitpid kill
    local_server_get local_reply_deinit)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_own_server PRIVATE ${failing})
target_link_options(test_context_fit PRIVATE -Wl,--wrap=arena_calloc,--wrap=engine_get_info,--wrap=gen_request_get_info
    -Wl,--wrap=gen_request_free)
set(failing calloc malloc write pthread_create open fcntl pread)
list(TRANSFORM failing PREPEND -Wl,--wrap=)
target_link_options(test_write_queue PRIVATE ${failing})
target_link_options(test_opened PRIVATE -Wl,--wrap=open,--wrap=openat,--wrap=__openat_2,--wrap=fcntl)
