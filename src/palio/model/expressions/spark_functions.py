"""Names of functions that Spark SQL has, and the table of functions has not."""

from __future__ import annotations

MANY_ROWS = frozenset(
    "any any_value approx_count_distinct approx_percentile approx_top_k array_agg avg bit_and bit_or "
    "bit_xor bool_and bool_or collect_list collect_set corr count count_if count_min_sketch covar_pop "
    "covar_samp cume_dist dense_rank every explode explode_outer first first_value grouping "
    "grouping_id histogram_numeric inline inline_outer json_tuple kurtosis lag last last_value lead "
    "listagg max max_by mean median min min_by mode nth_value ntile percent_rank percentile "
    "percentile_approx percentile_cont percentile_disc posexplode posexplode_outer rank regr_avgx "
    "regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy row_number "
    "session_window skewness some stack std stddev stddev_pop stddev_samp string_agg sum try_avg "
    "try_sum var_pop var_samp variance variant_explode variant_explode_outer window window_time ".split()
)
"""Of several rows, or making several."""
SPARK_ONLY = frozenset(
    "acosh aes_decrypt aes_encrypt aggregate array_append array_insert array_prepend array_remove "
    "array_repeat array_sort arrays_zip asinh atanh base64 binary bit_get collate collation conv "
    "convert_timezone cot csc date_format decimal decode elt encode flatten format_number "
    "format_string from_base32 from_csv from_json from_unixtime from_xml getbit hash hmac ilike "
    "is_valid_utf8 is_variant_null jaro_winkler_similarity json_object_keys levenshtein luhn_check "
    "make_dt_interval make_interval make_timestamp make_timestamp_ltz make_timestamp_ntz "
    "make_valid_utf8 make_ym_interval map map_concat map_contains_key map_entries map_filter "
    "map_from_arrays map_from_entries map_keys map_values map_zip_with mask named_struct overlay "
    "parse_json parse_url positive printf quote reduce regexp_count regexp_extract_all regexp_instr "
    "sec sentences sequence slice sort_array soundex str_to_map struct time_bucket time_diff "
    "time_trunc to_base32 to_binary to_char to_csv to_json to_number to_time to_timestamp_ltz "
    "to_timestamp_ntz to_varchar to_xml transform_keys transform_values try_aes_decrypt "
    "try_make_interval try_make_timestamp try_make_timestamp_ltz try_make_timestamp_ntz "
    "try_parse_json try_parse_url try_to_binary try_to_date try_to_number try_to_time "
    "try_to_timestamp try_url_decode try_validate_utf8 try_variant_get unbase64 unhex url_decode "
    "url_encode validate_utf8 variant_get vector_cosine_similarity vector_inner_product "
    "vector_l2_distance vector_norm width_bucket xpath xpath_boolean xpath_double xpath_float "
    "xpath_int xpath_long xpath_number xpath_short xpath_string xxhash64 zip_with ".split()
)
"""Of one row, and always the same."""
