# SPDX-License-Identifier: Apache-2.0
"""The configuration, which result.json and config.yaml contain."""
import json
import re

from findings import MalformedFile

SETTINGS = {  # all keys of the configuration, by section
    "run":
        "name seed output deterministic audit_steps loss_steps measure_phases trace trace_steps level "
        "roofline meters evaluate_epochs repeat keep_weights keep_checkpoints checkpoint_steps "
        "checkpoint_seconds time_limit_seconds progress first_step_timeout_seconds step_timeout_seconds "
        "group_timeout_seconds",
    "submission":
        "system_name organization contact hardware operating_system communication_libraries "
        "acceleration_libraries framework parallel_mode algorithm hyper_parameters problem",
    "workload":
        "kind problem_class model classes image_size image_width channels backbone_width target_quality "
        "penalty_exponent epochs",
    "detector":
        "normalization trained_stages pyramid_channels head_features anchor_sizes "
        "anchor_ratios anchor_samples region_samples training_proposals inference_proposals "
        "score_threshold fusion_overlap",
    "search":
        "trials duration_seconds epochs parent history recorded hold_out max_flops_factor max_memory_gb "
        "plain_deepening root_blocks rate_factors weight_decays",
    "bagging":
        "M P_degree sampler subsample_fraction aggregation out_of_bag",
    "parallel":
        "mode data_degree pipeline_degree model_degree micro_batches schedule",
    "data":
        "kind path validation_path on_bad_sample max_boxes synthetic_samples "
        "synthetic_validation_samples image_path validation_image_path training_split validation_split "
        "class_names random_area_minimum flip_probability vertical_flip_probability climate_augmentation "
        "climate_precision mean standard_deviation prefetch_batches decode_threads decoded_cache_mib "
        "resident_mib decoder staging staging_directory staging_cleanup staging_pack_mib staging_reserve_mib",
    "training":
        "batch_size batch_norm_samples optimizer learning_rate learning_rate_batch schedule "
        "schedule_epochs schedule_factor schedule_power final_learning_rate warmup_epochs warmup_start "
        "momentum nesterov momentum_correction beta1 beta2 epsilon trust_coefficient weight_decay "
        "weight_decay_on_norm_and_bias label_smoothing zero_gamma batch_norm_momentum precision "
        "loss_scale fusion initial_weights",
    "communication":
        "backend algorithm precision torus_columns ranks_per_node bucket_mib overlap",
    "device":
        "kind threads layout autotune plan_cache recording",
}


def text_of(value):
    """A value as in config.yaml; strings without quotes."""
    if isinstance(value, list):
        return f"[{', '.join(json.dumps(item) if isinstance(item, str) else text_of(item) for item in value)}]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else json.dumps(value)


def flatten(sections):
    """section.key -> value, from the object in result.json."""
    config = {f"{section}.{key}": value for section, values in sections.items() for key, value in values.items()}
    check_keys(config)
    return config


def read_yaml(text):
    """section.key -> value, from sections of `key: value`."""
    config, section = {}, ""
    lines = text.split("\n")
    if lines.pop() != "":
        raise MalformedFile("config.yaml: does not end with a newline")
    for line in lines:
        if match := re.fullmatch(r"(\w+):", line):
            section = match[1]
        elif match := re.fullmatch(r"  (\w+): (.*)", line):
            key, value = f"{section}.{match[1]}", match[2]
            if key in config:
                raise MalformedFile(f"config.yaml: has {key} twice")
            config[key] = value_of(value)
        else:
            raise MalformedFile(f"config.yaml: has the line {line!r}, which the program does not write")
    return config


def value_of(text):
    """A value of config.yaml, where choices are strings without quotes."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def check_keys(config):
    keys = [f"{section}.{name}" for section, names in SETTINGS.items() for name in names.split()]
    for key in config:
        if key not in keys:
            raise MalformedFile(f"result.json: config has {key}, which is not a key")
    for key in keys:
        if key not in config:
            raise MalformedFile(f"result.json: config has no {key}")


def image_extent(config):
    """(height, width) in pixels."""
    height, width = config["workload.image_size"], config["workload.image_width"]
    return int(height), int(height if width == "auto" else width)


def has_evaluations(config):
    """Whether the model is evaluated during training."""
    return int(config["run.evaluate_epochs"]) != 0


def is_search(config):
    """Whether the run searches an architecture."""
    return config["workload.kind"] == "architecture_search"
