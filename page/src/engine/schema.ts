// Written by tools/types.mjs from `assay schema`; do not edit.

export interface Quantity {
  value: number | null;
  unit: string;
  source?: string;
  note?: string;
  also?: (Record<string, unknown>)[];
}
export interface Interval {
  low: Quantity;
  high: Quantity;
  coverage: number;
  basis?: string;
  rows?: number;
  groups?: number;
  extrapolates?: boolean;
  extrapolates_in?: string[];
}
export interface Range {
  lower: Quantity;
  estimate: Quantity;
  upper: Quantity;
  interval?: Interval;
}
export interface Derivation {
  name: string;
  value: number | null;
  unit: string;
  formula?: string;
  source?: string;
  bound_by?: string;
  repeated?: boolean;
  from?: Derivation[];
}
export interface Fault {
  kind: "usage" | "input" | "missing" | "internal";
  where: string;
  what: string;
  hint: string;
  also?: Fault[];
}
export type Arguments = Record<string, string | number | boolean | null | string[]>;
export interface TrainResults {
  model: string;
  cluster: string;
  chips: number;
  software: string;
  software_properties?: {
    option: string;
    value: string;
    source: string;
  }[];
  batch: Quantity;
  sequences: number;
  sequence_length: number;
  strategy: {
    dp: number;
    fsdp: number;
    tp: number;
    pp: number;
    cp: number;
    ep: number;
    zero: number;
    micro_batch: number;
    microbatches: number;
    interleave: number;
    schedule: string;
    recompute: string;
    offload: string;
    sequence_parallel: boolean;
    mesh: string;
    placement?: string;
    layers_by_stage?: string;
    ep_over?: string;
  };
  step_time: Range;
  limiter: string;
  limits: {
    limit: string;
    time: Quantity;
    distance: number;
  }[];
  mfu: number;
  hfu: number;
  tokens_per_second: Quantity;
  tokens_per_second_per_chip: Quantity;
  flops_per_second_per_chip: Quantity;
  memory: {
    parameters: Quantity;
    gradients: Quantity;
    optimizer: Quantity;
    of_which_master_weights: Quantity;
    of_which_moments: Quantity;
    activations: Quantity;
    logits_and_loss: Quantity;
    communication_buffers: Quantity;
    workspace: Quantity;
    allocated: Quantity;
    allocator_overhead: Quantity;
    reserved: Quantity;
    driver_context: Quantity;
    total: Quantity;
    fullest_stage: number;
    capacity: Quantity;
    margin: string;
    budget: Quantity;
    fits: boolean;
    verdict: "fits" | "tight" | "no";
    on_the_host?: Quantity;
    host_capacity?: Quantity;
    reason?: string;
  };
  memory_over_the_step?: {
    moment: string;
    time: Quantity;
    microbatches_held: number;
    states: Quantity;
    activations: Quantity;
    logits_and_workspace: Quantity;
    communication_buffers: Quantity;
    allocated: Quantity;
  }[];
  memory_interval?: Interval;
  breakdown: {
    compute: Quantity;
    of_which_recompute: Quantity;
    of_which_uneven_stages: Quantity;
    tensor_collectives: Quantity;
    context_collectives: Quantity;
    expert_collectives: Quantity;
    weights_exposed: Quantity;
    stage_handover: Quantity;
    pipeline_bubble: Quantity;
    gradients_exposed: Quantity;
    update: Quantity;
    overhead?: Quantity;
    host_link_exposed?: Quantity;
  };
  breakdown_by_kind: {
    phase: string;
    kind: string;
    time: Quantity;
    flops: Quantity | null;
    share_of_peak: number | null;
  }[];
  bubble: number;
  thresholds: {
    compute_over_weights_traffic?: number;
    microbatch_where_weights_traffic_limits?: Quantity;
    compute_over_tensor_traffic?: number;
    largest_tensor_parallelism?: number;
    compute_over_memory_traffic: number;
    memory_left: Quantity;
    batch_where_gradients_limit?: Quantity;
  };
  alternatives: {
    strategy: string;
    step_time: Quantity;
    slower_by: number;
    why: string;
    interval?: Interval;
    memory: {
      total: Quantity;
      verdict: "fits" | "tight" | "no";
    };
    arguments: Arguments;
  }[];
  search: {
    considered: number;
    evaluated: number;
    feasible: number;
  };
  ways_out?: {
    change: string;
    step_time: Quantity;
    tokens_per_second: Quantity;
    strategy: string;
    interval?: Interval;
    memory: {
      total: Quantity;
      verdict: "fits" | "tight" | "no";
    };
    arguments: Arguments;
  }[];
  open_space?: {
    step_time: Quantity;
    gain?: number;
    strategy: string;
  };
  fewer_chips?: {
    cluster: string;
    chips: number;
    step_time: Quantity;
    gain: number;
    strategy: string;
  };
  memory_by_stage?: {
    stage: number;
    parameters: Quantity;
    gradients: Quantity;
    optimizer: Quantity;
    activations: Quantity;
    logits_and_loss: Quantity;
    buffers_and_workspace: Quantity;
    total: Quantity;
  }[];
  steps?: number;
  training_time?: Range | null;
  chip_hours?: number | null;
  cost?: Quantity | null;
  energy?: Quantity | null;
  prices?: {
    chip: string;
    usd_per_hour: number;
    provider: string;
    date: string | null;
    source: string;
  }[];
  program_totals?: {
    flops: Quantity;
    product_flops: Quantity;
    attention_flops: Quantity;
    repeated_flops: Quantity;
    memory_bytes: Quantity;
    collective_bytes: Quantity;
  };
  program?: {
    line: number | null;
    block: string;
    text: string;
    critical: boolean;
    when: string;
    resource: string;
    kind: string;
    flops: Quantity | null;
    bytes: Quantity;
    time: Quantity | null;
    exposed: Quantity | null;
    part_of: number | null;
  }[];
  trained_parameters?: number;
  sizes?: {
    cluster: string;
    chips: number;
    step_time?: Quantity;
    tokens_per_second?: Quantity;
    training_time?: Quantity;
    cost?: Quantity;
    scaling_efficiency?: number;
    meets_deadline?: boolean;
    strategy?: string;
    interval?: Interval;
    memory?: {
      total: Quantity;
      verdict: "fits" | "tight" | "no";
    };
    arguments?: Arguments;
    why_not?: string;
  }[];
  sensitivity?: {
    rate: string;
    value: Quantity;
    elasticity: number;
    lower_elasticity: number;
    step_time_if_doubled: Quantity;
    step_time_if_halved?: Quantity;
    best_if_doubled?: Quantity;
    break_even?: Quantity;
    break_even_factor?: number;
    limiter_then?: string;
    takeover?: Quantity;
    takeover_factor?: number;
    strategy_then?: string;
    fits_if_doubled?: boolean;
  }[];
  memory_sensitivity?: {
    capacity: Quantity;
    strategy_fits_down_to: Quantity;
    factor: number;
    something_fits_down_to?: Quantity;
    least_memory_strategy?: string;
    step_time_if_unlimited?: Quantity;
    unlimited_needs?: Quantity;
    unlimited_strategy?: string;
  };
  timeline?: {
    title: string;
    subtitle: string;
    lanes: {
      name: string;
      members: number;
    }[];
    classes: string[];
    bars: {
      lane: number;
      class: number;
      label: string;
      start: Quantity;
      end: Quantity;
      alone: Quantity | null;
    }[];
    marks: {
      at: Quantity;
      label: string;
    }[];
    counters: {
      name: string;
      points: {
        at: Quantity;
        value: number;
      }[];
    }[];
  };
  launch?: {
    program: string;
    version: string;
    options: {
      option: string;
      value: string;
      reason: string;
    }[];
    script: string;
    sources: Record<string, string>;
  };
  from?: {
    program: string;
    version: string;
    request: Record<string, string>;
    used: {
      option: string;
      value: string;
    }[];
    not_used: {
      option: string;
      value: string;
      why: string;
    }[];
  };
  changes?: {
    change: string;
    step_time: Quantity;
    faster_by: number;
    why: string;
    interval?: Interval;
    memory: {
      total: Quantity;
      verdict: "fits" | "tight" | "no";
    };
    arguments: Arguments;
  }[];
  pareto?: {
    cluster: string;
    chips: number;
    step_time: Quantity;
    tokens_per_second: Quantity;
    training_time?: Quantity;
    cost?: Quantity;
    strategy: string;
    interval?: Interval;
    memory: {
      total: Quantity;
      verdict: "fits" | "tight" | "no";
    };
    arguments: Arguments;
  }[];
  goodput?: {
    goodput: number;
    failures_every: Quantity;
    checkpoint_bytes: Quantity;
    checkpoint_time: Quantity;
    checkpoint_interval: Quantity;
  };
  encoder_sequence_length?: number;
  derivatives?: {
    inputs: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    figures: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    kinks: {
      result: string;
      wins: string;
      next: string;
      apart: number;
    }[];
  };
}
export interface ServeResults {
  model: string;
  cluster: string;
  chips: number;
  batch?: number;
  software?: string;
  strategy?: {
    dp: number;
    tp: number;
    pp: number;
    ep: number;
    weights_2d: number;
    cache: string;
    batch_per_replica: number;
    placement?: string;
    ep_over?: string;
    redundant_experts?: number;
    weights?: string;
  };
  prefill?: {
    time: Range;
    tokens_per_second: Quantity;
    tokens_per_second_per_chip: Quantity;
    limiter: string;
    compute_time: Quantity;
    memory_time: Quantity;
    network_time: Quantity;
    kernels_at_their_rooflines: Quantity;
    mfu: number;
    bandwidth_utilisation: number;
    attention_intensity?: Quantity;
    fresh_tokens: Quantity;
    fresh_share: number;
    cache?: string;
    time_at_mfu?: Quantity;
    prompts_at_once?: number;
  };
  decode?: {
    step_time: Range;
    tokens_per_second: Quantity;
    tokens_per_second_per_chip: Quantity;
    limiter: string;
    compute_time: Quantity;
    memory_time: Quantity;
    network_time: Quantity;
    kernels_at_their_rooflines: Quantity;
    mfu: number;
    bandwidth_utilisation: number;
    attention_intensity?: Quantity;
    cost_per_million_tokens?: Quantity;
  };
  memory?: {
    weights: Quantity;
    kv_cache: Quantity;
    workspace: Quantity;
    allocator_overhead?: Quantity;
    driver_context?: Quantity;
    communication_library?: Quantity;
    captured_graphs?: Quantity;
    prefixes?: Quantity;
    total: Quantity;
    capacity: Quantity;
    margin: string;
    budget: Quantity;
    fits: boolean;
    verdict: "fits" | "tight" | "no";
    max_batch: number;
    draft?: Quantity;
    context_in_flight?: Quantity;
    mean_kv_cache?: Quantity;
    reserved_and_not_used?: number;
    page?: Quantity;
    overflow_probability?: number;
  };
  bounds?: {
    weights: Quantity;
    weights_read: Quantity;
    kv_cache: Quantity;
    kv_cache_of_a_sequence: Quantity;
    total: Quantity;
    chips_for_total: number;
    sequences_that_outweigh_weights?: number;
    weights_time: Quantity;
    kv_cache_time: Quantity;
    memory_time: Quantity;
    compute_time: Quantity;
    step_time: Quantity;
    tokens_per_second: Quantity;
    tokens_per_second_per_chip: Quantity;
    full_memory_time: Quantity;
    full_memory_time_of_output: Quantity;
    network?: {
      axis_bandwidth: Quantity;
      hbm_over_network: number;
      intensity: Quantity;
      prefill_tp_limit: number;
      decode_tp_limit: number;
    };
  };
  critical_batch?: number;
  first_token?: {
    time: Quantity;
    interval?: Interval;
    front_end?: Quantity;
    waits?: Quantity;
    prompt: Quantity;
    delivery?: Quantity;
    of_an_idle_server: Quantity;
  };
  numbers?: {
    number: string;
    value: Quantity | number;
    of: string;
    source: string;
  }[];
  served?: {
    requests_per_second: number;
    output_tokens_per_second: Quantity;
    output_tokens_per_second_per_chip: Quantity;
    tokens_per_second: Quantity;
    time_per_token: Quantity;
    time_to_last_token: Quantity;
    mixed_step_time: Range;
    limiter: string;
    prompt_tokens_per_step: Quantity;
    share_of_steps: number;
    sequences_per_step: number;
    cost_per_million_output_tokens?: Quantity;
    cost_per_million_tokens?: Quantity;
  };
  power?: {
    chip: Quantity;
    share_of_limit: number;
    energy_of_decode_step: Quantity;
    energy_of_output_token: Quantity;
    output_tokens_per_second_per_watt: number;
  };
  batch_run?: {
    sequences_at_once: number;
    time: Quantity;
    time_per_token: Quantity;
    tokens_per_second: Quantity;
  };
  with_prefill?: {
    prefill_servers_per_decode_server: number;
    finished_per_step: number;
    cache_tokens_freed_per_step: Quantity;
    balanced_chunk: Quantity;
    disaggregated?: {
      prefill_strategy: string;
      prompts_at_once: number;
      prefill_time: Quantity;
      prompts_per_second: number;
      prefill_servers_per_decode_server: number;
      requests_per_second_per_chip: number;
      tokens_per_second_per_chip: Quantity;
      cost_per_million_tokens?: Quantity;
    };
  };
  chip_time_per_token?: Quantity;
  cost_per_million_tokens?: Quantity;
  pareto?: {
    batch: number;
    chips: number;
    latency: Quantity;
    throughput: Quantity;
    throughput_per_chip: Quantity;
    ttft: Quantity;
    strategy: string;
    limiter: string;
    cost?: Quantity;
    interval?: Interval;
    memory: {
      total: Quantity;
      verdict: "fits" | "tight" | "no";
    };
    arguments: Arguments;
  }[];
  search?: {
    strategies: number;
    placements: number;
    dropped: number;
    points: number;
  };
  prices?: {
    chip: string;
    usd_per_hour: number;
    provider: string;
    date: string | null;
    source: string;
  }[];
  prompts?: {
    at_once: number;
    requests_per_second: number;
    tokens_per_second: Quantity;
    time: Quantity;
    time_of_one: Quantity;
    memory: Quantity;
    memory_of_a_chip: Quantity;
    cost_per_million_input_tokens?: Quantity;
  };
  load?: {
    requests_per_second: number;
    policy: string;
    replicas: number;
    most_sequences: number;
    saturation_requests_per_second: number;
    utilisation: number;
    stable: boolean;
    sequences_in_flight?: number;
    requests_that_wait_for_a_place?: number;
    prefill_share?: number;
    time_to_first_token?: {
      mean: Quantity;
      p50: Quantity;
      p90: Quantity;
      p99: Quantity;
    };
    time_per_token?: {
      mean: Quantity;
      p50: Quantity;
      p90: Quantity;
      p99: Quantity;
    };
    time_to_last_token?: Quantity;
    tokens_per_second?: Quantity;
    cost_per_million_tokens?: Quantity;
    first_token?: {
      front_end?: Quantity;
      waits?: Quantity;
      prompt: Quantity;
      delivery?: Quantity;
    };
    simulated?: {
      requests: number;
      seed: number;
      stable: boolean;
      sequences_in_flight: number;
      requests_that_wait_for_a_place: number;
      prefill_share: number;
      time_to_first_token: {
        mean: Quantity;
        p50: Quantity;
        p90: Quantity;
        p99: Quantity;
      };
      time_per_token: {
        mean: Quantity;
        p50: Quantity;
        p90: Quantity;
        p99: Quantity;
      };
      time_to_last_token: Quantity;
      preemptions_per_request: number;
    };
    prefill_servers?: number;
    chips_of_a_prefill_server?: number;
    decoding_chips?: number;
    chips?: number;
    cache_transfer_time?: Quantity;
    copies_needed?: number;
    meets?: boolean;
    most_requests_per_second_that_meet?: number;
  };
  comparison?: {
    cluster: string;
    chips: number;
    formats?: string;
    meets: boolean;
    fits?: boolean;
    batch?: number;
    latency?: Quantity;
    ttft?: Quantity;
    throughput?: Quantity;
    throughput_per_chip?: Quantity;
    cost?: Quantity;
    tokens_per_dollar?: Quantity;
    load?: {
      utilisation: number;
      time_to_first_token?: Quantity;
      time_per_token?: Quantity;
      cost?: Quantity;
    };
    strategy?: string;
    why?: string;
    most_requests_per_second?: number;
    interval?: Interval;
    memory?: {
      total: Quantity;
      verdict: "fits" | "tight" | "no";
    };
    arguments?: Arguments;
  }[];
  front_of_all?: {
    cluster: string;
    chips: number;
    formats?: string;
    batch: number;
    latency: Quantity;
    ttft: Quantity;
    throughput_per_chip: Quantity;
    cost?: Quantity;
    strategy: string;
    interval?: Interval;
    memory: {
      total: Quantity;
      verdict: "fits" | "tight" | "no";
    };
    arguments: Arguments;
  }[];
  speculation?: {
    draft_length: number;
    acceptance: number;
    tokens_per_loop: Quantity;
    draft_step_time: Quantity;
    verify_step_time: Quantity;
    loop_time: Quantity;
    time_per_token: Quantity;
    tokens_per_second: Quantity;
    speedup: number;
    draft_strategy: string;
    draft_memory: Quantity;
    fits: boolean;
    lengths?: {
      draft_length: number;
      tokens_per_loop: Quantity;
      verify_step_time: Quantity;
      loop_time: Quantity;
      time_per_token: Quantity;
    }[];
  };
  would_fit_here?: {
    weights: string;
    strategy: string;
    time_per_token: Quantity;
  };
  would_fit?: {
    cluster: string;
    strategy: string;
    time_per_token: Quantity;
  };
  fits?: {
    format: string;
    weights: Quantity;
    kv_bytes_per_token: Quantity;
    kv_cache_of_a_sequence: Quantity;
    chips_for_weights: number;
    least_chips: number;
    smallest_slice?: string;
    slice_chips?: number;
    left_for_caches?: Quantity;
    caches?: number;
    slice_for_batch?: string;
    slice_for_batch_chips?: number;
    max_batch_here?: number;
  }[];
  longest_context?: Quantity;
  smallest_slice?: {
    cluster: string;
    chips: number;
    strategy: string;
    time_per_token: Quantity;
  };
  collectives?: {
    block: string;
    layers: number;
    collective: string;
    over: string;
    per_layer: number;
    bytes: Quantity;
  }[];
  decode_steps?: {
    block: string;
    layers: number;
    per_layer: number;
    step: string;
    over: string;
    flops: Quantity;
    bytes: Quantity;
    time: Quantity;
    time_of_all: Quantity;
    limiter: string;
  }[];
  prefill_steps?: {
    block: string;
    layers: number;
    per_layer: number;
    step: string;
    over: string;
    flops: Quantity;
    bytes: Quantity;
    time: Quantity;
    time_of_all: Quantity;
    limiter: string;
  }[];
  decode_experts?: Quantity;
  sweep?: {
    batch: number;
    kv_cache: Quantity;
    total: Quantity;
    bound: Quantity;
    tokens_per_second_at_bound: Quantity;
    step_time: Quantity;
    tokens_per_second: Quantity;
    served_tokens_per_second: Quantity;
    compute_time: Quantity;
    memory_time: Quantity;
    weights_time: Quantity;
    cache_time: Quantity;
    network_time: Quantity;
    limiter: string;
    fits: boolean;
    cost?: Quantity;
  }[];
  impossible?: string;
  software_properties?: {
    option: string;
    value: string;
    source: string;
  }[];
  launch?: {
    program: string;
    version: string;
    options: {
      option: string;
      value: string;
      reason: string;
    }[];
    script: string;
    sources: Record<string, string>;
  };
  from?: {
    program: string;
    version: string;
    request: Record<string, string>;
    used: {
      option: string;
      value: string;
    }[];
    not_used: {
      option: string;
      value: string;
      why: string;
    }[];
  };
  helps?: {
    change: string;
    chips: number;
    tokens_per_second: Quantity;
    output_gain: number;
    time_per_token: Quantity;
    time_gain: number;
    time_to_first_token: Quantity;
    strategy: string;
    interval?: Interval;
    memory: {
      total: Quantity;
      verdict: "fits" | "tight" | "no";
    };
    arguments?: Arguments;
  }[];
  changes?: {
    change: string;
    tokens_per_second: Quantity;
    gain: number;
    time_per_token: Quantity;
    time_to_first_token: Quantity;
    interval?: Interval;
    memory: {
      total: Quantity;
      verdict: "fits" | "tight" | "no";
    };
    arguments: Arguments;
  }[];
  without_stages?: {
    strategy: string;
    batch: number;
    tokens_per_second: Quantity;
    gain: number;
    time_per_token: Quantity;
    time_to_first_token: Quantity;
    interval?: Interval;
    memory: {
      total: Quantity;
      verdict: "fits" | "tight" | "no";
    };
    arguments: Arguments;
  };
  floors?: {
    time_to_first_token: Quantity;
    time_to_first_token_bound: Quantity;
    time_per_token: Quantity;
    time_per_token_bound: Quantity;
  };
  would_meet?: {
    cluster: string;
    strategy: string;
    batch: number;
    time_to_first_token: Quantity;
    time_per_token: Quantity;
    weights?: string;
    kv?: string;
  };
  fastest?: {
    cluster: string;
    strategy: string;
    batch: number;
    time_to_first_token: Quantity;
    time_per_token: Quantity;
  };
  prefix_cache?: {
    requests: number;
    block: Quantity;
    distinct_blocks: number;
    memory_of_all: Quantity;
    prompt_tokens: Quantity;
    hit_tokens: Quantity;
    hit_share: number;
    evicted_blocks: number;
    saved_flops: Quantity;
    requests_per_second?: number;
    memory?: Quantity;
    host?: {
      memory: Quantity;
      hit_share: number;
      loaded_tokens: Quantity;
    };
    routing?: {
      replicas: number;
      in_turn: number;
      by_prefix: number;
    };
    sizes: {
      memory: Quantity;
      hit_share: number;
    }[];
    tree: {
      tokens: Quantity;
      requests: number;
      parent?: number;
    }[];
  };
  cache_by_length?: {
    tokens: number;
    cache: Quantity;
    as_published: Quantity;
  }[];
  lengths?: {
    requests: string;
    prompt: Quantity;
    output: Quantity;
    time_to_first_token: Quantity;
  }[];
  products?: {
    block: string;
    layers: number;
    product: string;
    flops: Quantity;
    bytes: Quantity;
    intensity: Quantity;
    compute_time: Quantity;
    memory_time: Quantity;
    limiter: string;
    critical_batch: number | string;
    experts_touched?: number;
  }[];
  derivatives?: {
    inputs: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    figures: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    kinks: {
      result: string;
      wins: string;
      next: string;
      apart: number;
    }[];
  };
}
export interface ScalingResults {
  cluster: string;
  chips: number;
  model: string;
  dtype: string;
  peak: Quantity;
  layer: {
    d_model: number;
    d_ff: number;
    matrices: number;
    width_over_model: number;
    flops_per_token: Quantity;
    weight_bytes: Quantity;
    share_of_parameters?: number;
    attention_dominates_from?: Quantity;
    experts?: number;
    experts_per_token?: number;
    sparsity?: number;
    shared_experts?: number;
  };
  data_parallel?: {
    ways: number;
    links: string;
    bandwidth: Quantity;
    approximate_bandwidth: Quantity;
    intensity: Quantity;
    min_tokens_per_chip: Quantity;
    approximate_min_tokens_per_chip: Quantity;
    min_batch: Quantity;
    approximate_min_batch: Quantity;
    max_chips?: number;
    max_pods?: number;
    compute_bound?: boolean;
    ratio?: number;
    forward?: {
      flops_per_chip: Quantity;
      collective_bytes: Quantity;
      collectives: number;
      compute_time: Quantity;
      weight_time: Quantity;
      activation_time: Quantity;
      communication_time: Quantity;
      communication_in_series: Quantity;
      time: Range;
      ratio: number | null;
    };
    backward?: {
      flops_per_chip: Quantity;
      collective_bytes: Quantity;
      collectives: number;
      compute_time: Quantity;
      weight_time: Quantity;
      activation_time: Quantity;
      communication_time: Quantity;
      communication_in_series: Quantity;
      time: Range;
      ratio: number | null;
    };
    time_on_max_chips?: Quantity;
    collectives?: {
      pass: string;
      collective: string;
      tensor: string;
      over: string;
      bytes: Quantity;
      needed: boolean;
    }[];
  };
  fsdp?: {
    ways: number;
    links: string;
    bandwidth: Quantity;
    approximate_bandwidth: Quantity;
    intensity: Quantity;
    min_tokens_per_chip: Quantity;
    approximate_min_tokens_per_chip: Quantity;
    min_batch: Quantity;
    approximate_min_batch: Quantity;
    max_chips?: number;
    max_pods?: number;
    compute_bound?: boolean;
    ratio?: number;
    forward?: {
      flops_per_chip: Quantity;
      collective_bytes: Quantity;
      collectives: number;
      compute_time: Quantity;
      weight_time: Quantity;
      activation_time: Quantity;
      communication_time: Quantity;
      communication_in_series: Quantity;
      time: Range;
      ratio: number | null;
    };
    backward?: {
      flops_per_chip: Quantity;
      collective_bytes: Quantity;
      collectives: number;
      compute_time: Quantity;
      weight_time: Quantity;
      activation_time: Quantity;
      communication_time: Quantity;
      communication_in_series: Quantity;
      time: Range;
      ratio: number | null;
    };
    time_on_max_chips?: Quantity;
    collectives?: {
      pass: string;
      collective: string;
      tensor: string;
      over: string;
      bytes: Quantity;
      needed: boolean;
    }[];
  };
  tensor_parallel?: {
    links: string;
    bandwidth: Quantity;
    intensity: Quantity;
    max_ways: number;
    power_of_two_ways?: number;
    over_all_chips?: {
      ways: number;
      compute_bound: boolean;
      ratio: number;
      forward: {
        flops_per_chip: Quantity;
        collective_bytes: Quantity;
        collectives: number;
        compute_time: Quantity;
        weight_time: Quantity;
        activation_time: Quantity;
        communication_time: Quantity;
        communication_in_series: Quantity;
        time: Range;
        ratio: number | null;
      };
      backward: {
        flops_per_chip: Quantity;
        collective_bytes: Quantity;
        collectives: number;
        compute_time: Quantity;
        weight_time: Quantity;
        activation_time: Quantity;
        communication_time: Quantity;
        communication_in_series: Quantity;
        time: Range;
        ratio: number | null;
      };
      collectives?: {
        pass: string;
        collective: string;
        tensor: string;
        over: string;
        bytes: Quantity;
        needed: boolean;
      }[];
    };
    ways?: number;
    within_limit?: boolean;
    min_width?: number;
  };
  mixed?: {
    fsdp_links: string;
    tensor_links: string;
    axes_product: number;
    min_tokens_per_chip: Quantity;
    min_batch: Quantity;
    min_tokens_without_overlap: Quantity;
    min_batch_without_overlap: Quantity;
    gain_over_fsdp: number;
    fsdp?: number;
    tensor?: number;
    rounded_fsdp?: number;
    rounded_tensor?: number;
    ratio?: number;
    compute_bound?: boolean;
    margin?: number;
  };
  memory: {
    bytes_per_parameter: Quantity;
    capacity: Quantity;
    capacity_of_all: Quantity;
    largest_replicated_model: number;
    parameter_bytes?: Quantity;
    optimizer_bytes?: Quantity;
    state?: Quantity;
    total?: Quantity;
    replicated?: {
      bytes_per_chip: Quantity;
      fits: boolean;
    };
    sharded?: {
      bytes_per_chip: Quantity;
      fits: boolean;
    };
    min_chips?: number;
    min_nodes?: number;
    kept_per_layer?: string;
    kept_activations?: Quantity;
  };
  training?: {
    parameters: number;
    flops_per_token: Quantity;
    token_time_on_one_chip: Quantity;
    mfu: number;
    flops_per_second: Quantity;
    active_parameters?: number;
    tokens?: Quantity;
    flops?: Quantity;
    time?: Quantity;
    time_on_one_chip?: Quantity;
    time_on_min_chips?: Quantity;
    step_time?: Quantity;
  };
  levels?: {
    name: string;
    chips: number;
    bandwidth?: Quantity;
    min_tokens_per_chip?: Quantity;
    approximate_min_tokens_per_chip?: Quantity;
    approximate_max_tensor?: number;
    max_tensor?: number;
  }[];
  batch?: Quantity;
  tokens_per_chip?: Quantity;
  sequences?: number;
  a_sequence_for_every_chip?: boolean;
  best?: {
    fsdp: number;
    tensor: number;
    placed?: string;
    layer_time: Quantity;
  };
  splits?: {
    fsdp: number;
    tensor: number;
    compute_time: Quantity;
    weight_time: Quantity;
    activation_time: Quantity;
    ratio: number;
    backward_ratio: number;
    layer_time: Quantity;
    limiter: string;
    min_batch: Quantity | null;
  }[];
  limiter?: string;
  across_slices?: {
    slices: number;
    bandwidth_per_chip: Quantity;
    min_tokens_per_slice: Quantity;
    approximate_min_tokens_per_slice: Quantity;
    tokens_per_slice?: Quantity;
    compute_bound?: boolean;
  };
  expert_parallel?: {
    ways: number;
    experts_per_chip: number;
    nodes: number;
    ratio: number;
    compute_bound: boolean;
    min_width: number;
    wide_min_width?: number;
    compute_time?: Quantity;
    communication_time?: Quantity;
  };
  split?: {
    fsdp: number;
    tensor: number;
    pipeline: number;
    model_parallel_ways: number;
    bandwidth?: Quantity;
    min_tokens_per_chip?: Quantity;
    approximate_min_tokens_per_chip?: Quantity;
    min_batch: Quantity | null;
    compute_bound?: boolean;
    ratio?: number;
    forward?: {
      flops_per_chip: Quantity;
      collective_bytes: Quantity;
      collectives: number;
      compute_time: Quantity;
      weight_time: Quantity;
      activation_time: Quantity;
      communication_time: Quantity;
      communication_in_series: Quantity;
      time: Range;
      ratio: number | null;
    };
    backward?: {
      flops_per_chip: Quantity;
      collective_bytes: Quantity;
      collectives: number;
      compute_time: Quantity;
      weight_time: Quantity;
      activation_time: Quantity;
      communication_time: Quantity;
      communication_in_series: Quantity;
      time: Range;
      ratio: number | null;
    };
    placed?: string;
    collectives?: {
      pass: string;
      collective: string;
      tensor: string;
      over: string;
      bytes: Quantity;
      needed: boolean;
    }[];
  };
  sweep?: {
    batch?: Quantity;
    tokens_per_chip: Quantity;
    fsdp_ratio?: number;
    mixed_ratio?: number;
    fsdp: number;
    tensor: number;
    compute_time: Quantity;
    communication_time: Quantity;
    time: Quantity;
    efficiency: number;
    limiter: string;
    cluster?: string;
    chips?: number;
    weak_batch?: Quantity;
    weak_fsdp?: number;
    weak_tensor?: number;
    weak_time?: Quantity;
    weak_efficiency?: number;
    weak_limiter?: string;
    training_time?: Quantity;
  }[];
  walk?: {
    test: string;
    have: number | Quantity;
    must_be: "at least" | "at most";
    limit: number | Quantity | null;
    holds: boolean;
    so: string;
  }[];
  pipeline?: {
    stages: number;
    microbatches: number;
    bubble: number;
    bubble_over_work: number;
  };
  derivatives?: {
    inputs: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    figures: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    kinks: {
      result: string;
      wins: string;
      next: string;
      apart: number;
    }[];
  };
}
export interface RooflineResults {
  operation?: string;
  chip: string;
  chips: number;
  unit: string;
  memory: string;
  flops: Quantity;
  exact_flops?: Quantity;
  bytes: Quantity;
  peak: Quantity;
  bandwidth: Quantity;
  levels: {
    name: string;
    bandwidth: Quantity;
    critical_intensity: Quantity;
  }[];
  intensity: Quantity | null;
  critical_intensity: Quantity;
  compute_time: Quantity;
  memory_time: Quantity;
  time: Range;
  upper_over_lower: number;
  limiter: string;
  headroom: Quantity | null;
  achieved: Quantity;
  peak_share: number;
  padding?: {
    m: number;
    k: number;
    n: number;
    flops: Quantity;
    utilisation: number;
    compute_time: Quantity;
  };
  tile?: {
    smallest_square: number;
    m?: number;
    k?: number;
    n?: number;
    intensity_without_store?: Quantity;
    compute_bound?: boolean;
  };
  calibration?: {
    basis: string;
    own_measurement: boolean;
    regime: string;
    measured: string;
    arithmetic?: Quantity;
    memory: Quantity;
    launch: Quantity;
    dirty_cache?: Quantity;
    tile?: {
      m: number;
      n: number;
      split_k: number;
      waves: number;
    };
    adding?: Quantity;
    cores?: number;
    casting?: Quantity;
  };
  at?: {
    name: string;
    value: number;
  };
  critical_size?: {
    name: string;
    value: number | null;
    whole: number | null;
    approximate: number | null;
    intensity_limit: Quantity | null;
    verdict?: string;
  };
  sweep?: {
    flops: Quantity;
    bytes: Quantity;
    intensity: Quantity;
    compute_time: Quantity;
    memory_time: Quantity;
    time: Range;
    achieved: Quantity;
    limiter: string;
  }[];
  elements_per_second?: number;
  flops_per_chip?: Quantity;
  bytes_per_chip?: Quantity;
  operations?: {
    operation: string;
    intensity: Quantity;
    time: Range;
    limiter: string;
    critical_size?: {
      name: string;
      value: number | null;
      whole: number | null;
      approximate: number | null;
      intensity_limit: Quantity | null;
      verdict?: string;
    };
  }[];
  derivatives?: {
    inputs: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    figures: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    kinks: {
      result: string;
      wins: string;
      next: string;
      apart: number;
    }[];
  };
}
export interface ShardResults {
  expression: string;
  mesh: string;
  devices: number;
  propagated?: {
    result: string;
    considered: number;
    why: string;
  };
  local_shapes: Record<string, (number | string)[]>;
  bytes_per_device?: Quantity;
  tensors: {
    tensor: string;
    local_shape: (number | string)[];
    bytes_per_device?: Quantity;
    array_bytes?: Quantity;
    total_bytes?: Quantity;
    replication: number;
    share: number;
    padded?: boolean;
  }[];
  memory_time?: Quantity;
  case?: number;
  steps?: {
    text: string;
    kind: string;
    collective: boolean;
    axes: string;
    bytes: Quantity;
    critical: boolean;
    time?: Quantity;
  }[];
  collective_bytes?: Quantity;
  flops_per_device?: Quantity;
  compute_time?: Quantity;
  collective_time?: Quantity;
  time?: Range;
  limiter?: string;
  backward?: {
    text: string;
    kind: string;
    bytes: Quantity;
  }[];
  memory?: {
    total: Quantity;
    verdict: "fits" | "no";
  };
  alternatives?: {
    steps: string;
    collective_bytes: Quantity;
    time?: Quantity;
    memory?: {
      total: Quantity;
      verdict: "fits" | "no";
    };
    arguments: Arguments;
  }[];
  overlap?: {
    collective: string;
    chunks: number;
    product: Quantity;
    blocking: Quantity;
    overlapped: Quantity;
    speedup: number;
    timeline: {
      title: string;
      subtitle: string;
      lanes: {
        name: string;
        members: number;
      }[];
      classes: string[];
      bars: {
        lane: number;
        class: number;
        label: string;
        start: Quantity;
        end: Quantity;
        alone: Quantity | null;
      }[];
      marks: {
        at: Quantity;
        label: string;
      }[];
      counters: {
        name: string;
        points: {
          at: Quantity;
          value: number;
        }[];
      }[];
    };
  };
  check?: {
    max_error: number;
    bytes_moved: Quantity;
    bytes_predicted: Quantity;
    ok: boolean;
  };
  derivatives?: {
    inputs: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    figures: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    kinks: {
      result: string;
      wins: string;
      next: string;
      apart: number;
    }[];
  };
}
export interface LayerResults {
  cluster: string;
  mesh?: string;
  fits: boolean;
  shardings?: Record<string, string>;
  steps?: {
    text: string;
    kind: string;
    axes: string;
    bytes: Quantity;
    time: Quantity;
  }[];
  memory?: {
    stored: Quantity;
    working: Quantity;
    total: Quantity;
    capacity: Quantity;
    fits: boolean;
    verdict: "fits" | "no";
  };
  compute_time?: Quantity;
  memory_time?: Quantity;
  weight_read_time?: Quantity;
  collective_time?: Quantity;
  time?: Range;
  limiter?: string;
  alternatives?: {
    shardings: string;
    time: Quantity;
    collective_time: Quantity;
    memory: {
      total: Quantity;
      verdict: "fits" | "no";
    };
    why: string;
    arguments: Arguments;
  }[];
  search?: {
    considered: number;
    over_memory: number;
    equal_to_best: number;
  };
  shortfall?: Quantity;
  memory_that_fits?: Quantity;
  critical_size?: {
    name: string;
    value: number;
  };
  sweep?: {
    time: Range;
    compute_time: Quantity;
    memory_time: Quantity;
    collective_time: Quantity;
    limiter: string;
    tokens_per_second?: Quantity;
    memory: {
      total: Quantity;
      verdict: "fits" | "no";
    };
    arguments: Arguments;
  }[];
  crossover?: {
    chips: number;
    cluster: string;
  };
  splits?: {
    chips: number;
    cluster: string;
    one_direction: Quantity | null;
    one_direction_limiter: string | null;
    two_directions: Quantity | null;
    two_directions_limiter: string | null;
    faster: "one direction" | "two directions";
    memory: {
      total: Quantity;
      verdict: "fits" | "no";
    };
    arguments: Arguments;
  }[];
  derivatives?: {
    inputs: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    figures: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    kinks: {
      result: string;
      wins: string;
      next: string;
      apart: number;
    }[];
  };
}
export interface CollectiveResults {
  collective: string;
  cluster: string;
  devices: number;
  bytes: Quantity;
  bytes_per_group: Quantity;
  shard_bytes: Quantity;
  algorithm: string;
  hops: number;
  time: Range;
  bandwidth_time: Quantity;
  latency_time: Quantity;
  approximate_time: Quantity;
  limiter: string;
  bytes_per_link: Quantity;
  algorithm_bandwidth: Quantity;
  approximate_bandwidth: Quantity;
  bus_bandwidth: Quantity;
  destinations?: {
    of_a_token: number;
    share: number;
    approximate_share: number;
  };
  latency_bound_below?: Quantity;
  with_idle_axes?: {
    axes: string;
    time: Quantity;
    if: string;
  };
  bottleneck?: string;
  levels?: {
    name: string;
    groups: number;
    lanes: number;
    bandwidth: Quantity;
    collective_bandwidth: Quantity;
    bytes_into_child: Quantity;
    bytes_into_children: Quantity;
    time: Quantity;
    in_network_reduction: boolean;
  }[];
  simulated_time?: Quantity;
  simulated?: {
    time: Quantity;
    busiest_link_bytes: Quantity;
    mean_link_load: number;
    events: number;
    chunks_per_shard: number;
    algorithm: string;
  };
  without_in_network_reduction?: {
    time: Quantity;
    gain: number;
  };
  sweep?: {
    bytes: Quantity;
    time: Quantity;
    lower: Quantity;
    algorithm_bandwidth: Quantity;
    bus_bandwidth: Quantity;
    imbalance?: number;
    chips?: number;
    sharded_by?: number;
    share?: number;
    approximate_share?: number;
  }[];
  gain_of_both_ways?: number;
  over_all_gather?: number;
  blocks?: {
    hop: number;
    devices: {
      block: number;
      from: number[];
    }[][];
  }[];
  derivatives?: {
    inputs: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    figures: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    kinks: {
      result: string;
      wins: string;
      next: string;
      apart: number;
    }[];
  };
}
export interface ClustersResults {
  cluster: string;
  chip: string;
  chips: number;
  slices: number;
  hosts: number;
  chips_per_node: number;
  cores: number;
  flops_per_second: Quantity;
  flops_per_second_by_dtype: Record<string, Quantity>;
  memory: Quantity;
  memory_bandwidth: Quantity;
  twisted?: boolean;
  axes: {
    name: string;
    size: number;
    ring: boolean;
    bandwidth: Quantity;
    bandwidth_both_ways: Quantity;
  }[];
  levels: {
    name: string;
    degree: number;
    chips: number;
    units: number;
    bandwidth: Quantity;
    bandwidth_per_chip: Quantity;
    bandwidth_per_node: Quantity;
    bandwidth_per_unit: Quantity;
    switches: number | null;
    switches_per_unit: number | null;
    switch_capacity: Quantity | null;
    switch_capacity_per_unit: Quantity | null;
    links_per_switch_pair: number | null;
    in_network_reduction: boolean;
  }[];
  links?: number;
  switches?: number;
  diameter?: number;
  mean_distance?: number;
  bisection_bandwidth?: Quantity;
  bisection_bandwidth_both_ways?: Quantity;
  egress_per_chip?: Quantity;
  scale_out_per_chip?: Quantity;
  scale_out_per_host?: Quantity;
  scale_out_per_node?: Quantity;
  scale_out?: Quantity;
  price?: Quantity;
  prices?: {
    chip: string;
    usd_per_hour: number;
    provider: string;
    date: string | null;
    source: string;
  }[];
  power?: Quantity;
  derivatives?: {
    inputs: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    figures: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    kinks: {
      result: string;
      wins: string;
      next: string;
      apart: number;
    }[];
  };
}
export interface SystolicResults {
  array: string;
  double_buffered: boolean;
  tiles: number;
  cycles: {
    total: number;
    load: number;
    fill: number;
    steady: number;
    stall: number;
    drain: number;
  };
  steady_cycles_per_tile: number;
  flops_per_cycle_peak: Quantity;
  flops: Quantity;
  utilisation: number;
  padding_waste: number;
  idle_share: number;
  utilisation_limit: number;
  simulated?: {
    total: number;
    load: number;
    fill: number;
    steady: number;
    stall: number;
    drain: number;
    max_error: number;
    equals_closed_form: boolean;
  };
  clock?: Quantity;
  time?: Quantity;
  achieved?: Quantity;
  derivatives?: {
    inputs: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    figures: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    kinks: {
      result: string;
      wins: string;
      next: string;
      apart: number;
    }[];
  };
}
export interface ValidateResults {
  reported?: number;
  fitted?: number;
  unanswered?: number;
  summary?: {
    group: string;
    n: number;
    mape: number;
    median_ape: number;
    p90_ape: number;
    bias: number;
    within_10: number;
    within_20: number;
    rank_correlation: number | null;
    covered: number | null;
    rows: number | null;
    answered: number | null;
    default_mape: number | null;
    default_bias: number | null;
    groups?: number;
    mean_of_groups?: number;
  }[];
  unanswered_because?: {
    rows: number;
    why: string;
    first: string;
  }[];
  unanswered_rows?: {
    id: string;
    group: string;
    why: string;
  }[];
  cases?: {
    id: string;
    group: string;
    what: string;
    measured: Quantity;
    predicted: Quantity;
    error: number;
    covered: boolean | null;
    predicted_by_default: Quantity | null;
    error_by_default: number | null;
    interval?: Interval;
    memory?: {
      verdict: "fits" | "tight" | "no";
    };
    verb?: string;
    arguments?: Arguments;
    result?: string;
  }[];
  requests?: {
    id: string;
    predicted: Quantity;
    request: string;
    result: string;
  }[];
  mean_of_groups?: number;
  without_each?: {
    number: string;
    value: string;
    without: string;
    mean_of_groups: number;
    change: number;
  }[];
  files?: {
    file: string;
    bytes: Quantity;
  }[];
  at_bounds?: {
    file: string;
    name: string;
    value: string;
    bound: string;
  }[];
  derivatives?: {
    inputs: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    figures: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    kinks: {
      result: string;
      wins: string;
      next: string;
      apart: number;
    }[];
  };
}
export interface BookResults {
  passed?: number;
  failed?: number;
  left_out?: number;
  facts?: {
    checked: number;
    left_out: number;
    covered: number;
  };
  checks?: {
    id: string;
    ok: boolean;
    expected: Quantity | number | string;
    got: Quantity | number | boolean | string | null;
    tolerance: string;
    request: string;
    path: string;
    note?: string;
    reason?: string;
  }[];
  skipped?: {
    id: string;
    why: string;
  }[];
  figures?: {
    chapter: string;
    title: string;
    request: string;
    verb: string;
    arguments: Arguments;
    controls: {
      argument: string;
      values: string[];
    }[];
    picture?: "still" | "steps";
  }[];
  derivatives?: {
    inputs: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    figures: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    kinks: {
      result: string;
      wins: string;
      next: string;
      apart: number;
    }[];
  };
}
export interface ProfileResults {
  file: string;
  rank?: number;
  device?: number;
  device_name?: string;
  chip?: string;
  events?: number;
  total_time?: Quantity;
  busy_time?: Quantity;
  idle_time?: Quantity;
  computation_time?: Quantity;
  communication_time?: Quantity;
  exposed_communication_time?: Quantity;
  copy_time?: Quantity;
  exposed_copy_time?: Quantity;
  computation_without_fills?: Quantity;
  busy_share?: number;
  hidden_communication?: number;
  overlap_without_fills?: number;
  host_bound_time?: Quantity;
  kernel_time?: Quantity;
  products?: {
    flops: Quantity;
    achieved: Quantity;
    while_running: Quantity;
    time: Quantity;
    peak_share?: number;
    peak_share_while_running?: number;
    known_share: number;
  };
  recomputation?: {
    alone: {
      total_time: Quantity;
      busy_time: Quantity;
      idle_time: Quantity;
      computation_time: Quantity;
      communication_time: Quantity;
      exposed_communication_time: Quantity;
      copy_time: Quantity;
      exposed_copy_time: Quantity;
      computation_without_fills: Quantity;
      busy_share?: number;
      hidden_communication?: number;
      overlap_without_fills?: number;
    };
    without: {
      total_time: Quantity;
      busy_time: Quantity;
      idle_time: Quantity;
      computation_time: Quantity;
      communication_time: Quantity;
      exposed_communication_time: Quantity;
      copy_time: Quantity;
      exposed_copy_time: Quantity;
      computation_without_fills: Quantity;
      busy_share?: number;
      hidden_communication?: number;
      overlap_without_fills?: number;
    };
  };
  linked?: {
    total_time: Quantity;
    busy_time: Quantity;
    idle_time: Quantity;
    computation_time: Quantity;
    communication_time: Quantity;
    exposed_communication_time: Quantity;
    copy_time: Quantity;
    exposed_copy_time: Quantity;
    computation_without_fills: Quantity;
    busy_share?: number;
    hidden_communication?: number;
    overlap_without_fills?: number;
    recomputation?: {
      alone: {
        total_time: Quantity;
        busy_time: Quantity;
        idle_time: Quantity;
        computation_time: Quantity;
        communication_time: Quantity;
        exposed_communication_time: Quantity;
        copy_time: Quantity;
        exposed_copy_time: Quantity;
        computation_without_fills: Quantity;
        busy_share?: number;
        hidden_communication?: number;
        overlap_without_fills?: number;
      };
      without: {
        total_time: Quantity;
        busy_time: Quantity;
        idle_time: Quantity;
        computation_time: Quantity;
        communication_time: Quantity;
        exposed_communication_time: Quantity;
        copy_time: Quantity;
        exposed_copy_time: Quantity;
        computation_without_fills: Quantity;
        busy_share?: number;
        hidden_communication?: number;
        overlap_without_fills?: number;
      };
    };
  };
  step_time?: {
    count: number;
    median: Quantity;
    shortest: Quantity;
    longest: Quantity;
    spread?: number;
  };
  steps?: {
    name: string;
    time: Quantity;
    computation_time: Quantity;
    exposed_communication_time: Quantity;
    exposed_copy_time: Quantity;
    idle_time: Quantity;
  }[];
  categories?: {
    category: string;
    kind?: string;
    count: number;
    time: Quantity;
    share?: number;
  }[];
  operations?: {
    label: string;
    operation?: string;
    kernel: string;
    shapes?: string;
    category: string;
    kind?: string;
    calls: number;
    kernels: number;
    time: Quantity;
    share?: number;
    time_per_call: Quantity;
    shortest: Quantity;
    longest: Quantity;
    flops?: Quantity;
    achieved?: Quantity;
    bytes?: Quantity;
    bandwidth?: Quantity;
    dtype?: string;
    peak_share?: number;
    bandwidth_share?: number;
    bound?: "compute" | "memory" | "latency";
  }[];
  gaps?: {
    start: Quantity;
    time: Quantity;
    after: string;
    before: string;
    operation?: string;
    host_bound: boolean;
  }[];
  streams?: {
    stream: string;
    events: number;
    busy_time: Quantity;
    host_wait: Quantity;
    kernel_wait: Quantity;
    other_wait: Quantity;
  }[];
  collectives?: {
    kind: string;
    group?: string;
    devices?: number;
    calls: number;
    bytes?: Quantity;
    time: Quantity;
    moving?: Quantity;
    waiting?: Quantity;
    skew?: Quantity;
    largest_skew?: Quantity;
    bus_bandwidth?: Quantity;
    link?: Quantity;
    link_share?: number;
  }[];
  ranks?: {
    file: string;
    rank?: number;
    device: number;
    holds_up?: Quantity;
    waits?: Quantity;
    because?: string;
    total_time: Quantity;
    busy_time: Quantity;
    idle_time: Quantity;
    computation_time: Quantity;
    communication_time: Quantity;
    exposed_communication_time: Quantity;
    copy_time: Quantity;
    exposed_copy_time: Quantity;
    computation_without_fills: Quantity;
    busy_share?: number;
    hidden_communication?: number;
    overlap_without_fills?: number;
    host_bound_time?: Quantity;
    categories: {
      category: string;
      kind?: string;
      count: number;
      time: Quantity;
      share?: number;
    }[];
  }[];
  straggler?: {
    rank?: number;
    device: number;
    computation_over_median?: number;
    extra_time: Quantity;
    because: string;
    causes?: {
      cause: "computation" | "communication" | "copies" | "host" | "idle" | "unknown";
      time: Quantity;
    }[];
  };
  recovered?: {
    command: string;
    model: string;
    mesh?: string;
    batch: number;
    sequence: number;
    microbatches: number;
    layers: number;
    hidden: number;
    intermediate: number;
    heads: number;
    kv_heads: number;
    head_dim: number;
    vocabulary?: number;
    experts?: number;
    experts_per_token?: number;
    gated: boolean;
    recomputes: boolean;
    compiled: boolean;
    attention?: string;
    optimizer?: string;
    optimizer_dtype?: string;
    lacks: string[];
  };
  advice?: {
    id: string;
    change: string;
    saves: Quantity;
    saves_least: Quantity;
    saves_most: Quantity;
    share?: number;
    reason: string;
    lines?: string;
    priced_by: "engine" | "profile";
    request?: string;
  }[];
  prediction?: {
    command: string;
    step: string;
    overhead: Quantity;
    communication: Quantity;
  };
  predicted_time?: Quantity;
  measured_time?: Quantity;
  matched_by?: "step" | "class";
  matched_share?: number;
  residual?: Quantity;
  residual_share?: number;
  gap?: {
    kind: "kernels" | "around" | "missing" | "extra" | "communication" | "waiting" | "copies" | "host" | "pauses" | "gaps";
    class: string;
    step?: string;
    predicted: Quantity;
    measured: Quantity;
    difference: Quantity;
    kernels: number;
    kernel?: string;
    remedy?: string;
  }[];
  gap_steps?: {
    block: string;
    step: string;
    class: string;
    runs: number;
    ran: number;
    predicted: Quantity;
    measured: Quantity;
    around: Quantity;
    kernels: number;
    kernel?: string;
  }[];
  comparison?: {
    per: "step" | "layer" | "profile";
    before: {
      file: string;
      steps: number;
      time: Quantity;
      computation_time: Quantity;
      exposed_communication_time: Quantity;
      exposed_copy_time: Quantity;
      idle_time: Quantity;
    };
    after: {
      file: string;
      steps: number;
      time: Quantity;
      computation_time: Quantity;
      exposed_communication_time: Quantity;
      exposed_copy_time: Quantity;
      idle_time: Quantity;
    };
    change: Quantity;
    relative_change?: number;
    cause: string;
    categories: {
      label?: string;
      shapes?: string;
      category: string;
      kind?: string;
      calls_before: number;
      calls_after: number;
      before: Quantity;
      after: Quantity;
      change: Quantity;
    }[];
    operations: {
      label?: string;
      shapes?: string;
      category: string;
      kind?: string;
      calls_before: number;
      calls_after: number;
      before: Quantity;
      after: Quantity;
      change: Quantity;
    }[];
  };
  per?: "step" | "profile";
  noise?: Quantity;
  runs?: {
    file: string;
    steps: number;
    time: Quantity;
    classes: {
      class: string;
      time: Quantity;
    }[];
  }[];
  regressions?: {
    class: string;
    since: string;
    before: Quantity;
    after: Quantity;
    change: Quantity;
    noise: Quantity;
  }[];
  program?: {
    module: string;
    format: "hlo" | "stablehlo";
    devices: number;
    computations: number;
    instructions: number;
    partitioned: boolean;
    fused: boolean;
    scheduled: boolean;
    complete: boolean;
    flops: Quantity;
    element_wise_flops: Quantity;
    transcendentals: number;
    bytes: Quantity;
    counted_once: {
      flops: Quantity;
      element_wise_flops: Quantity;
      transcendentals: number;
      bytes: Quantity;
    };
    loops: {
      body: string;
      trips: number;
    }[];
    on?: string;
    bounds?: {
      compute: Quantity;
      memory: Quantity;
      network: Quantity;
      lower: Quantity;
      upper: Quantity;
    };
    estimate?: Quantity;
    computation_time?: Quantity;
    communication_time?: Quantity;
    exposed_communication_time?: Quantity;
    peak_share?: number;
    classes: {
      class: string;
      calls: number;
      flops: Quantity;
      bytes: Quantity;
      estimate?: Quantity;
      share?: number;
    }[];
    collectives: {
      kind: string;
      devices: number;
      calls: number;
      operand: Quantity;
      received: Quantity;
      becomes?: string;
      estimate?: Quantity;
    }[];
    memory: {
      arguments: Quantity;
      outputs: Quantity;
      aliased: Quantity;
      host?: Quantity;
      temporaries?: Quantity;
      peak?: Quantity;
      capacity?: Quantity;
      fits?: boolean;
      at_peak?: {
        name: string;
        shape: string;
        bytes: Quantity;
      }[];
    };
  };
  kernels?: {
    name: string;
    class: string;
    operation: string;
    shapes: string;
    result: string;
    calls: number;
    flops?: Quantity;
    exact_flops?: Quantity;
    bytes: Quantity;
    devices?: number;
    bound?: "compute" | "memory" | "network";
    lower?: Quantity;
    estimate?: Quantity;
    time?: Quantity;
    share?: number;
  }[];
  mesh?: {
    axis: string;
    size: number;
    role?: string;
  }[];
  model?: {
    hidden: number;
    feed_forward?: number;
    heads?: number;
    kv_heads?: number;
    head_dim?: number;
    layers: number;
    vocabulary?: number;
    experts?: number;
    expert_feed_forward?: number;
    experts_per_token?: number;
    tied: boolean;
    parameters: number;
    copies: number;
    weight_type?: string;
    state_type?: string;
    batch?: number;
    sequence?: number;
    recompute?: "none" | "selective" | "full";
  };
  weights?: {
    role?: string;
    name?: string;
    shape: string;
    count: number;
    sharding?: string;
  }[];
  command?: string;
  changes?: {
    before: string;
    after: string;
    rows: {
      what: string;
      before: Quantity;
      after: Quantity;
      relative_change?: number;
    }[];
  };
  layout?: {
    shape: string;
    dtype: string;
    element_bits: number;
    memory: string;
    elements: number;
    bytes: Quantity;
    padded: string;
    padded_bytes: Quantity;
    growth?: number;
    offset?: number;
    byte_offset?: Quantity;
    order?: string;
  };
  derivatives?: {
    inputs: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    figures: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    kinks: {
      result: string;
      wins: string;
      next: string;
      apart: number;
    }[];
  };
}
export interface ModelsResults {
  id?: string;
  name?: string;
  maker?: string;
  family?: string;
  parameters?: {
    total: number;
    active: number;
    embedding: number;
    attention: number;
    mlp: number;
    norm: number;
    head?: number;
    active_matrix: number;
    experts?: number;
    shared_experts?: number;
    router?: number;
    state_space?: number;
    positions?: number;
  };
  weight_bytes?: Quantity;
  weight_formats?: {
    all?: string;
    bits_per_parameter: number;
    quantised?: string;
    others?: string;
  };
  flops_per_token?: {
    forward: Quantity;
    backward: Quantity;
    train: Quantity;
    matmul: Quantity;
    attention?: Quantity;
    sequence?: number;
    mask?: string;
    exact?: {
      forward: Quantity;
      backward: Quantity;
      train: Quantity;
    };
    state_space?: Quantity;
  };
  kv_bytes_per_token?: Quantity;
  kv_bytes_per_sequence?: Quantity;
  activation_bytes_per_token?: Record<string, Quantity>;
  layers?: number;
  d_model?: number;
  heads?: number;
  kv_heads?: number;
  head_dim?: number;
  d_ff?: number;
  vocabulary?: number;
  context?: number;
  streams?: number;
  tied?: boolean;
  dtype?: string;
  layer_kinds?: {
    layers: number;
    mixer: string;
    feed_forward: string;
    parameters: number;
    active: number;
    matrix: number;
    keys_per_query?: number;
    attention_flops_per_token?: Quantity;
    stack?: string;
    weights?: string[];
    shared?: number;
  }[];
  defaults?: string[];
  published?: {
    parameters: string;
    source: string;
    agrees: boolean;
    of_these_not_counted?: number;
    not_counted?: string;
    stated_within?: number;
  };
  sources?: {
    key: string;
    title: string;
    accessed: string;
    url: string;
  }[];
  value_dim?: number;
  q_rank?: number;
  kv_rank?: number;
  rope_dim?: number;
  experts?: number;
  experts_per_token?: number;
  sparsity?: number;
  expert_width?: number;
  shared_width?: number;
  state_bytes_per_sequence?: Quantity;
  kv_cache?: Quantity;
  sweep?: {
    sequence: number;
    forward: Quantity;
    attention: Quantity;
    attention_share: number;
    kv_bytes_per_sequence: Quantity;
    prefill_intensity?: Quantity;
    decode_intensity?: Quantity;
  }[];
  models?: {
    id: string;
    layers: number;
    d_model: number;
    heads: number | null;
    kv_heads: number | null;
    parameters: number;
    active: number;
    kv_bytes_per_token: Quantity;
  }[];
  encoder_layers?: number;
  outer_weights?: string[];
  checkpoint?: {
    tensors: number;
    elements: number;
    bytes: Quantity;
    dtypes: Record<string, number>;
    weights?: number;
    difference?: number;
    groups: {
      name: string;
      tensors: number;
      elements: number;
      dtype: string;
    }[];
  };
  derivatives?: {
    inputs: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    figures: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    kinks: {
      result: string;
      wins: string;
      next: string;
      apart: number;
    }[];
  };
}
export interface ChipsResults {
  id?: string;
  name?: string;
  vendor?: string;
  family?: string;
  architecture?: string;
  peak?: Record<string, Quantity>;
  cores?: {
    kind?: string;
    count?: Quantity;
    base_clock?: Quantity;
    boost_clock?: Quantity;
    warps?: Quantity;
    registers_per_thread?: Quantity;
  };
  matrix_unit?: {
    count?: Quantity;
    rows?: Quantity;
    columns?: Quantity;
    clock?: Quantity;
    tile_m?: Quantity;
    tile_k?: Quantity;
    tile_n?: Quantity;
    flops_per_cycle?: Quantity;
    cores_per_matmul?: Quantity;
  };
  vector_unit?: {
    partitions?: Quantity;
    lanes?: Quantity;
    alus?: Quantity;
    fma?: boolean;
    clock?: Quantity;
    registers?: Quantity;
    register_loads?: Quantity;
    register_stores?: Quantity;
    latency?: Quantity;
    cross_lane_units?: Quantity;
  };
  memory?: Record<string, {
    capacity?: Quantity;
    bandwidth?: Quantity;
    per?: string;
  }>;
  network?: {
    scale_up?: {
      kind?: string;
      technology?: string;
      links?: Quantity;
      link_bandwidth?: Quantity;
      hop_latency?: Quantity;
      pod?: string;
      shapes?: string[];
      wrap_rule?: string;
      wrap_length?: Quantity;
      twisted?: boolean;
      domain?: Quantity;
      switches?: Quantity;
      switch_ports?: Quantity;
      in_network_reduction?: boolean;
    };
    scale_out?: {
      bandwidth?: Quantity;
      technology?: string;
      level?: {
        name?: string;
        bandwidth?: Quantity;
        degree?: Quantity;
        switches?: Quantity;
      }[];
      nics_per_host?: Quantity;
      nic_bandwidth?: Quantity;
      switch_ports?: Quantity;
      in_network_reduction?: boolean;
    };
  };
  host?: {
    chips?: Quantity;
    pcie?: Quantity;
    peer?: Quantity;
    memory?: Quantity;
    memory_bandwidth?: Quantity;
    shape?: string;
    trays?: Quantity;
  };
  efficiency?: {
    matrix?: Quantity;
    memory?: Quantity;
    network?: Quantity;
    latency?: Quantity;
  };
  price?: {
    value: Quantity;
    date: string;
    provider: string;
    kind: string;
    region?: string;
  }[];
  derived?: {
    matrix_unit_flops_per_cycle?: Quantity;
    matrix_unit_cells?: number;
    matrix_unit_rate?: Quantity;
    matrix_rate_from_units?: Quantity;
    flops_per_cycle_from_peak?: Quantity;
    matrix_rate_per_core?: Quantity;
    vector_alus?: number;
    vector_alus_per_core?: number;
    vector_rate?: Quantity;
    vector_rate_per_core?: Quantity;
    vector_fma_rate?: Quantity;
    lane_reduction_steps?: number;
    sublane_reduction_steps?: number;
    sublane_reduction_cycles?: number;
    matrix_over_vector?: number;
    speedup_over_bf16?: Record<string, number>;
    capacity_per_chip?: Record<string, Quantity>;
    bandwidth_over_hbm?: Record<string, number>;
    critical_intensity?: Record<string, Record<string, Quantity>>;
    link_bandwidth_both_ways?: Quantity;
    scale_up_egress?: Quantity;
    pod_chips?: number;
    chips_per_tray?: number;
    flops_per_dollar?: Quantity;
    bytes_per_dollar?: Quantity;
    memory_per_dollar?: Quantity;
    by_price?: {
      provider?: string;
      date?: string;
      flops_per_dollar?: Quantity;
      bytes_per_dollar?: Quantity;
    }[];
    vector_rate_at_base_clock?: Quantity;
    threads_per_core_at_most_registers?: number;
    switch_capacity?: Quantity;
    scale_out_switch_over_scale_up_switch?: number;
    node_egress?: Quantity;
    speedup_over_fp32?: Record<string, number>;
  };
  sources?: {
    key: string;
    title: string;
    accessed: string;
    url: string;
  }[];
  peak_sparse?: Record<string, Quantity>;
  power?: {
    chip?: Quantity;
    system?: Quantity;
  };
  chips?: {
    id: string;
    name: string;
    dtype: string;
    peak: Quantity;
    memory: Quantity;
    bandwidth: Quantity;
    critical_intensity: Quantity;
    scale_up: string;
    price: Quantity | null;
  }[];
  side_by_side?: {
    part: string;
  }[];
  derivatives?: {
    inputs: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    figures: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    kinks: {
      result: string;
      wins: string;
      next: string;
      apart: number;
    }[];
  };
}
export interface TransferResults {
  cluster: string;
  bytes: Quantity;
  hosts: number;
  bytes_per_host: Quantity;
  hops: number;
  first_byte: Quantity;
  bandwidth_time: Quantity;
  bandwidth: Quantity;
  time: Range;
  limiter: string;
  stages: {
    name: string;
    bytes?: Quantity;
    lanes?: number;
    bandwidth?: Quantity;
    hops?: number;
    time: Quantity;
  }[];
  ports?: {
    disjoint_paths: number;
    on_shortest_paths: number;
  };
  flops?: Quantity;
  stream?: {
    tiles: number;
    tile: Quantity;
    buffers: number;
    time: Quantity;
    per_tile: Quantity;
    limiter: string;
    busy: number;
  };
  residency?: {
    bytes_per_chip: Quantity;
    capacity: Quantity;
    fits: boolean;
  };
  meanwhile?: {
    time: Quantity;
    hidden: boolean;
    exposed: Quantity;
  };
  derivatives?: {
    inputs: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    figures: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    kinks: {
      result: string;
      wins: string;
      next: string;
      apart: number;
    }[];
  };
}
export interface DesignResults {
  design?: string;
  peak?: Quantity;
  clock?: Quantity;
  memory?: {
    kind: string;
    stacks: number;
    capacity: Quantity;
    bandwidth: Quantity;
  };
  link_bandwidth?: Quantity;
  area?: {
    total: Range;
    largest_die: Quantity;
    of_reticle: number;
    dies: {
      count: number;
      node: string;
      area: Range;
      logic: Quantity;
      memory: Quantity;
      stacks: Quantity;
      links: Quantity;
      other: Quantity;
      unlisted: Quantity;
      dies_per_wafer: number;
      yield: number;
      yield_without_spares: number;
      published?: Quantity;
      error?: number;
    }[];
  };
  power?: {
    total: Range;
    arithmetic: Quantity;
    memory: Quantity;
    links: Quantity;
    leakage: Quantity;
    density: Quantity;
    limit?: Quantity;
    published?: Quantity;
    error?: number;
  };
  cost?: {
    total: Range;
    dies: Quantity;
    memory: Quantity;
    package: Quantity;
    test: Quantity;
    masks_and_design?: Quantity;
  };
  owning?: {
    per_hour: Quantity;
    chip: Quantity;
    server: Quantity;
    network: Quantity;
    building: Quantity;
    energy: Quantity;
    capital: Quantity;
    power: Quantity;
    grid: string;
    co2_grams: number;
    co2_grams_of_making: number;
    chips: number;
  };
  chip?: string;
  file?: string;
  technology?: {
    nodes: string[];
    memories: string[];
    links: string[];
    packages: string[];
  };
  areas?: {
    chip: string;
    node?: string;
    published: Quantity;
    predicted: Quantity;
    error: number;
    source: string;
  }[];
  powers?: {
    chip: string;
    node?: string;
    published: Quantity;
    predicted: Quantity;
    error: number;
    source: string;
  }[];
  median_area_error?: number;
  median_power_error?: number;
  areas_within_15_percent?: number;
  powers_within_15_percent?: number;
  front?: {
    values: string;
    speed: number;
    speed_per_dollar: number;
    speed_per_watt: number;
    area: Quantity;
    power: Quantity;
    clock: Quantity;
    cost: Quantity;
    per_hour: Quantity;
    limits: string;
  }[];
  best?: {
    values: string;
    speed: number;
    speed_per_dollar: number;
    speed_per_watt: number;
    area: Quantity;
    power: Quantity;
    clock: Quantity;
    cost: Quantity;
    per_hour: Quantity;
    limits: string;
  } | {
    shape: string;
    parameters: number;
    active: number;
    tokens_per_second: Quantity;
    step_time: Quantity;
    faster: number;
    tokens?: Quantity;
    loss?: number;
    model: string;
  };
  requests?: {
    ask: string;
    measure: string;
    value: number;
    over_first: number;
    limiter?: string;
    owned_per_million_tokens?: Quantity;
  }[];
  bound_by?: {
    parameter: string;
    now: string;
    next: string;
    speed?: number;
    per_hour?: number;
    why?: string;
  }[];
  shapes?: {
    shape: string;
    parameters: number;
    active: number;
    tokens_per_second: Quantity;
    step_time: Quantity;
    faster: number;
    tokens?: Quantity;
    loss?: number;
    model: string;
  }[];
  base?: {
    shape: string;
    parameters: number;
    active: number;
    tokens_per_second: Quantity;
    step_time: Quantity;
    faster: number;
    tokens?: Quantity;
    loss?: number;
    model: string;
  };
  steps?: {
    field: string;
    now: number;
    next: number;
    faster: number;
    parameters: number;
    loss?: number;
  }[];
  law?: {
    name: string;
    source: string;
  };
  search?: {
    designs?: number;
    built?: number;
    evaluated: number;
  };
  derivatives?: {
    inputs: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    figures: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    kinks: {
      result: string;
      wins: string;
      next: string;
      apart: number;
    }[];
  };
}
export interface RunResults {
  program?: string;
  mode?: "auto" | "explicit" | "manual";
  mesh?: string;
  devices?: number;
  outputs?: {
    name: string;
    tensor: string;
    type: string;
    local_shape: number[];
    max_error: number | null;
    values: Record<string, unknown> | null;
  }[];
  gradients?: {
    name: string;
    tensor: string;
    type: string;
    local_shape: number[];
    max_error: number | null;
    values: Record<string, unknown> | null;
  }[];
  steps?: {
    pass: string;
    line: number | null;
    text: string;
    kind: string;
    axes: string;
    inserted: boolean;
    flops: Quantity;
    received: Quantity;
    time?: Quantity;
    measured?: Quantity;
  }[];
  flops_per_device?: Quantity;
  compute_time?: Quantity;
  collective_time?: Quantity;
  check?: {
    max_error: number | null;
    compared: boolean;
    disagreement?: number;
    bytes_moved?: Quantity;
    bytes_predicted?: Quantity;
    tolerance?: number;
    expected_error?: number | null;
    expected_tolerance?: number;
    results?: {
      name: string;
      max_error: number | null;
      expected_error?: number | null;
    }[];
    ok: boolean;
  };
  shown?: {
    after: string;
    tensor: string;
    devices: {
      device: string;
      values: Record<string, unknown>;
    }[];
  }[];
  run?: "train" | "serve";
  model?: string;
  parameters?: number;
  engine?: "virtual" | "mpi" | "cuda";
  device?: string;
  network?: string;
  memory?: Quantity | {
    peak: Quantity;
    given: Quantity;
    outputs: Quantity;
    temporaries: Quantity;
    capacity?: Quantity;
    fits?: boolean;
    line?: number;
    at: {
      name: string;
      array: string;
      line: number;
      bytes: Quantity;
    }[];
  };
  received?: Quantity;
  on?: string;
  exposed_time?: Quantity;
  bound?: "compute" | "memory" | "network";
  shardings?: {
    role: "input" | "product" | "result";
    name: string;
    array: string;
    line: number;
    bytes: Quantity;
  }[];
  collectives?: {
    line: number;
    kind: string;
    axes: string;
    value: string;
    devices: number;
    calls: number;
    operand: Quantity;
    received: Quantity;
    time?: Quantity;
  }[];
  pins?: {
    line: number;
    name: string;
    array: string;
    constraint: string;
    gain: Quantity;
  }[];
  against?: {
    file: string;
    collectives: {
      kind: string;
      devices: number;
      calls: number;
      their_calls: number;
      received: Quantity;
      their_received: Quantity;
      time?: Quantity;
      their_time?: Quantity;
    }[];
    ours: {
      received: Quantity;
      flops: Quantity;
      peak: Quantity;
      time?: Quantity;
    };
    theirs: {
      received: Quantity;
      flops: Quantity;
      peak: Quantity;
      time?: Quantity;
    };
  };
  text?: {
    name: string;
    bytes: number;
    tokens: number;
    vocabulary: number;
  };
  strategy?: string;
  microbatches?: number;
  first_loss?: number;
  last_loss?: number;
  time?: Quantity;
  moved?: Quantity;
  predicted_bytes?: Quantity;
  between_stages?: Quantity;
  host?: {
    to: Quantity;
    from: Quantity;
    predicted: Quantity;
  };
  in_background?: Quantity;
  waited_for?: Quantity;
  ranks?: {
    rank: number;
    computing: Quantity;
    moving: Quantity;
    waiting: Quantity;
    waiting_behind: Quantity;
    waiting_for_stages: Quantity;
  }[];
  overlap?: {
    blocking: Quantity;
    overlapped: Quantity;
    arithmetic: Quantity;
    moving: Quantity;
    hidden: Quantity;
    hidden_share: number;
    speedup: number;
    predicted?: {
      blocking: Quantity;
      overlapped: Quantity;
      moving: Quantity;
      hidden: Quantity;
    };
    timeline: {
      title: string;
      subtitle: string;
      lanes: {
        name: string;
        members: number;
      }[];
      classes: string[];
      bars: {
        lane: number;
        class: number;
        label: string;
        start: Quantity;
        end: Quantity;
        alone: Quantity | null;
      }[];
      marks: {
        at: Quantity;
        label: string;
      }[];
      counters: {
        name: string;
        points: {
          at: Quantity;
          value: number;
        }[];
      }[];
    };
  };
  updates?: {
    step: number;
    loss: number;
    gradient_norm: number;
    time: Quantity;
  }[];
  one_device?: {
    largest_difference: number;
    tolerance: number;
    equal: boolean;
  };
  compared?: {
    strategy: string;
    devices: number;
    largest_difference: number;
    time: Quantity;
    moved: Quantity;
    predicted_bytes: Quantity;
    losses: number[];
  }[];
  prediction?: {
    on: string;
    by_kind?: {
      kind: string;
      measured: Quantity;
      predicted: Quantity;
      over_predicted: number | null;
    }[];
    long_steps?: {
      kind: string;
      measured: Quantity;
      predicted: Quantity;
      over_predicted: number | null;
    }[];
    prefill?: {
      kind: string;
      measured: Quantity;
      predicted: Quantity;
      over_predicted: number | null;
    }[];
    decode?: {
      kind: string;
      measured: Quantity;
      predicted: Quantity;
      over_predicted: number | null;
    }[];
    steps?: {
      sequences: number;
      new_tokens: number;
      tokens: number;
      measured: Quantity;
      predicted: Quantity;
    }[];
  };
  trained?: boolean;
  iterations?: number;
  prefills?: number;
  decodes?: number;
  mean_batch?: number;
  generated?: number;
  prefill_time?: Quantity;
  decode_time?: Quantity;
  tokens_per_second?: Quantity;
  drafted?: number;
  accepted?: number;
  requests?: {
    prompt: string;
    answer: string;
    prompt_tokens: number;
    new_tokens: number;
    started: number;
    finished: number;
    read?: number[];
    written?: number[];
    logits?: number[][];
  }[];
  calls?: {
    iteration: number;
    call: "prefill" | "insert" | "generate";
    request?: number;
    tokens?: number;
    slot?: number;
    cache?: Quantity;
    sequences?: number;
  }[];
  work?: {
    tokens: number;
    without_cache: Quantity;
    with_cache: Quantity;
  }[];
  threads?: {
    queue: number;
    time: Quantity;
    prefill_busy: Quantity;
    generate_busy: Quantity;
    both_busy: Quantity;
    waited_for_room: Quantity;
    waited_for_prompts: Quantity;
    activities: {
      thread: "prefill" | "generate";
      call: "prefill" | "insert" | "generate";
      request?: number;
      slot?: number;
      sequences?: number;
      start: Quantity;
      end: Quantity;
    }[];
  };
  pages?: {
    page: Quantity;
    most: number;
    most_shared: number;
    copies: number;
    unused_share: number;
    moments: {
      iteration: number;
      tables: {
        request: number;
        tokens: number;
        pages: number[];
      }[];
    }[];
  };
  handed_over?: Quantity;
  predicted_cache?: Quantity;
  tokens_equal?: boolean;
  largest_shortfall?: number;
  interrupted?: boolean;
  derivatives?: {
    inputs: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    figures: {
      result: string;
      input: string;
      value: Quantity | number;
      elasticity: number;
      source: string;
    }[];
    kinks: {
      result: string;
      wins: string;
      next: string;
      apart: number;
    }[];
  };
}
export interface Results {
  train: TrainResults;
  serve: ServeResults;
  scaling: ScalingResults;
  roofline: RooflineResults;
  shard: ShardResults;
  layer: LayerResults;
  collective: CollectiveResults;
  clusters: ClustersResults;
  systolic: SystolicResults;
  validate: ValidateResults;
  book: BookResults;
  profile: ProfileResults;
  models: ModelsResults;
  chips: ChipsResults;
  transfer: TransferResults;
  design: DesignResults;
  run: RunResults;
}
export type Verb = keyof Results;
export interface Option {
  help: string;
  kind: string;
  unit?: string;
  choices?: string[];
  examples?: string[];
  standard?: string;
  placeholder?: string;
}
export const options: Record<Verb, Record<string, Option>> = {
  train: {
    "model": {"help":"id, config.json or directory","kind":"model"},
    "on": {"help":"where it runs: tpu-v5e, tpu-v5p:16x20x28, h100-sxm:1024, @file.toml","kind":"cluster","placeholder":"CLUSTER"},
    "batch": {"help":"tokens per step (4Mi), or sequences (1024seq)","kind":"text","unit":"tokens","placeholder":"TOKENS|Nseq"},
    "seq": {"help":"tokens per sequence (default: the model's context, at most 8192)","kind":"count","placeholder":"N"},
    "encoder-seq": {"help":"tokens per encoder sequence (default: as --seq, which is the decoder's)","kind":"count","placeholder":"N"},
    "tokens": {"help":"tokens of the whole run (15T): adds time, cost and energy","kind":"count","placeholder":"N"},
    "dp": {"help":"data parallelism: replicas","kind":"count","placeholder":"N"},
    "fsdp": {"help":"data parallelism with weights sharded over the devices","kind":"count","placeholder":"N"},
    "tp": {"help":"tensor parallelism","kind":"count","placeholder":"N"},
    "pp": {"help":"pipeline stages","kind":"count","placeholder":"N"},
    "cp": {"help":"context parallelism","kind":"count","placeholder":"N"},
    "ep": {"help":"expert parallelism","kind":"count","placeholder":"N"},
    "ep-over": {"help":"axes that experts are distributed over: dp (part of dp x fsdp), tp (which then does not split each expert), cp, or a list, e.g. tp,cp; data-parallel devices make up the rest of --ep","kind":"text","placeholder":"AXES"},
    "order": {"help":"order of the mesh axes on the cluster, outermost first; pp,dp,fsdp,ep,cp,tp is usual (default: searched)","kind":"text","placeholder":"AXES"},
    "zero": {"help":"what replicas shard: 1 optimizer states, 2 also gradients, 3 also weights","kind":"choice","choices":["0","0","1","1","2","2","3","3"],"placeholder":"0..3"},
    "micro-batch": {"help":"sequences per microbatch and data-parallel group","kind":"count","placeholder":"N"},
    "interleave": {"help":"chunks of layers per stage","kind":"count","placeholder":"N"},
    "schedule": {"help":"gpipe, 1f1b, interleaved, zb, zb-h1, zb-h2, zb-v or dualpipe","kind":"text","examples":["gpipe","1f1b","interleaved","zb","zb-h1","zb-h2","zb-v","dualpipe"],"placeholder":"NAME"},
    "recompute": {"help":"none, element-wise (norms and activation functions), selective (inside attention), feed-forward, full; or what is kept besides a layer's input: products, projections (those around attention), operators (attention and every second product); auto (default) searches all of these. Or a list of parts to recompute, never searched: norms, rotary, scores, attention, attention-products, ffn-products, second-products, ffn-act, router, dispatch, scans, residual, reductions, exchanges","kind":"text","examples":["none","element-wise","selective","feed-forward","full","products","projections","operators","auto"],"standard":"auto","placeholder":"POLICY"},
    "offload": {"help":"what is offloaded to the host: none, optimizer, activations, both, or auto (default) to search all","kind":"choice","choices":["none","optimizer","activations","both","auto"],"standard":"auto","placeholder":"WHAT"},
    "memory-margin": {"help":"memory of each chip that plans leave free: a share of it (10%, the default), interval for measured peaks at the upper end of the memory interval, or none. Without a plan that keeps it, one without it is shown","kind":"text","standard":"10%","placeholder":"interval|N%|none"},
    "sequence-parallel": {"help":"shard activations between tensor-parallel blocks by sequence","kind":"flag"},
    "residual": {"help":"how activations between blocks are sharded: replicated, sequence or model","kind":"choice","choices":["replicated","sequence","model"],"placeholder":"HOW"},
    "context-scheme": {"help":"context parallelism by ring or all-to-all","kind":"choice","choices":["ring","all-to-all"],"placeholder":"HOW"},
    "plain-attention": {"help":"attention with score matrices in memory, not flash attention","kind":"flag"},
    "no-overlap": {"help":"no overlap of communication with compute","kind":"flag"},
    "compute": {"help":"of matrix products in layers (default bf16)","kind":"dtype","examples":["fp64","fp32","tf32","bf16","fp16","fp8","fp6","fp4","int32","int16","int8","int4"],"standard":"bf16","placeholder":"DTYPE"},
    "params": {"help":"of weights (default bf16)","kind":"dtype","examples":["fp64","fp32","tf32","bf16","fp16","fp8","fp6","fp4","int32","int16","int8","int4"],"standard":"bf16","placeholder":"DTYPE"},
    "grads": {"help":"of gradients (default fp32)","kind":"dtype","examples":["fp64","fp32","tf32","bf16","fp16","fp8","fp6","fp4","int32","int16","int8","int4"],"standard":"fp32","placeholder":"DTYPE"},
    "moments": {"help":"of Adam's moments (default fp32)","kind":"dtype","examples":["fp64","fp32","tf32","bf16","fp16","fp8","fp6","fp4","int32","int16","int8","int4"],"standard":"fp32","placeholder":"DTYPE"},
    "optimizer": {"help":"of the master copy: fp32, none, or shared (fp32, cast as weights are gathered)","kind":"text","placeholder":"FORMAT"},
    "lora": {"help":"train only low-rank adapters of this rank, on attention, dense feed-forward blocks and shared experts","kind":"count","placeholder":"RANK"},
    "lora-on": {"help":"attention, feed-forward or all (default)","kind":"choice","choices":["attention","feed-forward","all"],"standard":"all","placeholder":"WHERE"},
    "expert-load": {"help":"load of the busiest expert over an even load (default 1)","kind":"number","standard":"1","placeholder":"F"},
    "dispatch": {"help":"send each token once per node and forward it to its experts inside (node, default), or once per expert (expert)","kind":"choice","choices":["node","expert"],"standard":"node","placeholder":"HOW"},
    "capacity": {"help":"capacity factor of each expert: empty slots are padded, tokens beyond it are dropped","kind":"number","placeholder":"F"},
    "top": {"help":"runners-up to show (default 5)","kind":"count","standard":"5","placeholder":"N"},
    "objective": {"help":"which of several clusters to pick: time (default), cost, or chips for a --deadline","kind":"choice","choices":["time","cost","chips"],"standard":"time","placeholder":"WHAT"},
    "deadline": {"help":"the run of --tokens must finish within it, e.g. 30day","kind":"quantity","unit":"s","placeholder":"TIME"},
    "mtbf": {"help":"mean time between failures of one chip: adds goodput (e.g. 50000h)","kind":"quantity","unit":"s","placeholder":"TIME"},
    "restart": {"help":"time to detect a failure and restart (default 10min)","kind":"quantity","unit":"s","standard":"10min","placeholder":"TIME"},
    "checkpoint-interval": {"help":"time between checkpoints (default: the best)","kind":"quantity","unit":"s","placeholder":"TIME"},
    "checkpoint-size": {"help":"size of a checkpoint (default: every weight and optimizer state once)","kind":"quantity","unit":"B","placeholder":"BYTES"},
    "checkpoint-bandwidth": {"help":"rate at which the cluster writes checkpoints (default 100GB/s)","kind":"quantity","unit":"B/s","standard":"100GB/s","placeholder":"RATE"},
    "software": {"help":"software whose properties to assume, and whose plans to search (`assay software` lists them; default: the usual one on such chips); other options of this command come first. any: the best that was measured, and every plan. fused, compiled, eager and xla mean --fusion","kind":"software","placeholder":"NAME[@VERSION]"},
    "fusion": {"help":"how element-wise work runs: fused (default), compiled, eager, or xla (always on TPUs)","kind":"choice","choices":["fused","compiled","eager","xla"],"standard":"fused","placeholder":"HOW"},
    "loss": {"help":"the same for logits and loss (default: as --fusion)","kind":"choice","choices":["fused","compiled","eager"],"placeholder":"HOW"},
    "attention-kernel": {"help":"auto (default), flash1, flash2, cudnn, or math: plain attention in fp32, one operation after the other","kind":"choice","choices":["auto","flash1","flash2","cudnn","math"],"standard":"auto","placeholder":"NAME"},
    "explicit-mask": {"help":"attention reads its mask from memory instead of skipping what is masked","kind":"flag"},
    "graphs": {"help":"replay kernels from captured graphs instead of launching them one by one","kind":"flag"},
    "drop-tokens": {"help":"experts have a fixed capacity, so that captured graphs include routing","kind":"flag"},
    "fused-experts": {"help":"one kernel for expert products, gating and quantisation; captured graphs include routing (MXFP8 on Blackwell)","kind":"flag"},
    "tensor-overlap": {"help":"tensor-parallel collectives that overlap matrix products: all (default), backward (only with weight-gradient products) or none","kind":"choice","choices":["all","backward","none"],"standard":"all","placeholder":"HOW"},
    "no-expert-overlap": {"help":"never overlap expert all-to-alls with compute, even if the schedule allows it","kind":"flag"},
    "contiguous-context": {"help":"context parallelism without load balance: a device's part of the sequence is one piece, and the last device meets almost all keys","kind":"flag"},
    "dropout": {"help":"with dropout, whose masks are generated and stored (as in GPT models before 2023)","kind":"flag"},
    "padded-vocabulary": {"help":"the software pads the vocabulary to whole cache lines, which avoids slow kernels","kind":"flag"},
    "unfused-update": {"help":"the optimizer runs a kernel for each of its operations instead of one for all","kind":"flag"},
    "power": {"help":"power limit of each chip, e.g. 500W (default: the catalogue's)","kind":"quantity","unit":"W","placeholder":"WATTS"},
    "var": {"help":"with --from: a variable of the environment that the script is run in, or an argument of it by its number (1=...); nothing in the script changes it","kind":"text","placeholder":"KEY=VALUE"},
    "set": {"help":"replace a number of the chip, e.g. memory.hbm.bandwidth=1.23TB/s","kind":"text","placeholder":"KEY=VALUE"},
    "price": {"help":"what an hour of a chip costs you, e.g. h100-sxm=2.50","kind":"text","placeholder":"CHIP=USD"},
    "prices": {"help":"use the list prices of this provider, e.g. AWS","kind":"text","placeholder":"PROVIDER"},
    "as": {"help":"read a configuration of an unknown architecture as one of this family, e.g. llama","kind":"text","placeholder":"FAMILY"},
    "derivatives": {"help":"how many percent the results change for one percent of each given number: exact, by the derivation","kind":"flag"},
    "without-fold": {"help":"use the numbers that were fitted without this fifth of the measurements, as `assay validate` does","kind":"choice","choices":["0","0","1","1","2","2","3","3","4","4"],"placeholder":"N"},
  },
  serve: {
    "model": {"help":"id, config.json or directory","kind":"model"},
    "on": {"help":"where it runs: tpu-v5e, tpu-v5p:16x20x28, h100-sxm:1024, @file.toml","kind":"cluster","placeholder":"CLUSTER"},
    "prompt": {"help":"tokens per prompt (default 1024)","kind":"count","standard":"1024","placeholder":"N"},
    "output": {"help":"tokens per output (default 256); 0, and every encoder: prompts alone, for embeddings and rankings; a file name writes the answer there","kind":"count","standard":"256","placeholder":"N"},
    "prompt-lengths": {"help":"lognormal:SIGMA or exponential around --prompt, uniform:A..B, p50=N,p99=N, or @FILE with a length per line","kind":"text","placeholder":"HOW"},
    "output-lengths": {"help":"the same for outputs","kind":"text","placeholder":"HOW"},
    "page": {"help":"tokens per page of the KV cache, allocated as sequences grow (default: all reserved at the start)","kind":"count","placeholder":"N"},
    "overflow": {"help":"fraction of time in which pages may run out (default 0.01); limits the batch","kind":"share","standard":"0.01","placeholder":"SHARE"},
    "batch": {"help":"sequences decoded together, over all replicas","kind":"count","placeholder":"B"},
    "most-batch": {"help":"no more sequences than these, where the batch is searched: clients, or a limit of the engine","kind":"count","placeholder":"B"},
    "prompts": {"help":"prompts that one prefill processes together, over all replicas (default: one each)","kind":"count","placeholder":"N"},
    "ttft": {"help":"limit on time to first token, unloaded; with --rate, of the 99th percentile","kind":"quantity","unit":"s","placeholder":"TIME"},
    "tpot": {"help":"limit on time per output token; with --rate, of the 99th percentile","kind":"quantity","unit":"s","placeholder":"TIME"},
    "rate": {"help":"requests per second, arriving at random: adds waits, percentiles and the saturation rate","kind":"number","unit":"requests/s","placeholder":"R"},
    "simulate": {"help":"with --rate: also simulate N requests","kind":"count","placeholder":"N"},
    "prefill-servers": {"help":"with --rate: further replicas that only run prefill, on chips of their own beside those of --on","kind":"count","placeholder":"N"},
    "weights": {"help":"of weights (default: as published, but fp32 becomes bf16); block-scaled formats (mxfp4, nvfp4, int4-g128, fp8-128x128) apply to linear layers","kind":"dtype","examples":["fp64","fp32","tf32","bf16","fp16","fp8","fp6","fp4","int32","int16","int8","int4"],"placeholder":"DTYPE"},
    "kv": {"help":"of the KV cache (default bf16); per-tensor scales take no memory","kind":"dtype","examples":["fp64","fp32","tf32","bf16","fp16","fp8","fp6","fp4","int32","int16","int8","int4"],"standard":"bf16","placeholder":"DTYPE"},
    "compute": {"help":"of matrix products (default bf16, or as published if activations are quantised and the chip supports it)","kind":"dtype","examples":["fp64","fp32","tf32","bf16","fp16","fp8","fp6","fp4","int32","int16","int8","int4"],"placeholder":"DTYPE"},
    "head-weights": {"help":"of embedding and head (default: as --weights)","kind":"dtype","examples":["fp64","fp32","tf32","bf16","fp16","fp8","fp6","fp4","int32","int16","int8","int4"],"placeholder":"DTYPE"},
    "software": {"help":"software whose properties to assume (`assay software` lists them); other options of this command come first. any: the best that was measured. fused, compiled, eager and xla mean --fusion","kind":"software","placeholder":"NAME[@VERSION]"},
    "fusion": {"help":"how kernels are generated: fused (default), compiled or eager","kind":"choice","choices":["fused","compiled","eager"],"standard":"fused","placeholder":"HOW"},
    "attention-kernel": {"help":"attention of prompts: auto (default), flash2 or cudnn","kind":"choice","choices":["auto","flash2","cudnn"],"standard":"auto","placeholder":"NAME"},
    "graphs": {"help":"decode steps are replayed from captured graphs (default, except with --fusion eager)","kind":"flag"},
    "all-reduce": {"help":"small all-reduces: one-shot (default; kernels of the engine) or library","kind":"choice","choices":["one-shot","library"],"standard":"one-shot","placeholder":"HOW"},
    "scheduler": {"help":"what the host runs between steps: loop, native (default), python, ahead (python, overlapped with the step) or ahead-native (likewise, with compiled parts)","kind":"choice","choices":["loop","native","python","ahead","ahead-native"],"standard":"native","placeholder":"WHO"},
    "front-end": {"help":"time of a request before the engine sees it: HTTP, checks, queues between processes (default: as --software says, else none)","kind":"quantity","unit":"s","placeholder":"TIME"},
    "tokenising": {"help":"time to tokenise each token of a prompt (default: as --software says, else none)","kind":"quantity","unit":"s","placeholder":"TIME"},
    "delivery": {"help":"time to detokenise and send the token of each sequence of a step (default: as --software says, else none)","kind":"quantity","unit":"s","placeholder":"TIME"},
    "nucleus": {"help":"requests draw from the likeliest tokens (top-p, top-k), as the settings of many models say; by default they take the likeliest one","kind":"flag"},
    "vocabulary-sort": {"help":"with --nucleus: chip time of each entry of the vocabulary, for engines that sort it (default: as --software says, else none)","kind":"quantity","unit":"s","placeholder":"TIME"},
    "steps-ahead": {"help":"steps that are prepared already when a request arrives, which it misses: asynchronous scheduling (default: as --software says, else 0)","kind":"choice","choices":["0","0","1","1"],"placeholder":"N"},
    "cache-kernel": {"help":"attention over the cache: on matrix units (default), on vector units, unsplit (vector units, one block per row), unsplit-matrix (the same on matrix units), or copies (keys and values repeated for every head)","kind":"choice","choices":["matrix","vector","unsplit","unsplit-matrix","copies"],"standard":"matrix","placeholder":"HOW"},
    "expert-kernel": {"help":"products of experts: kernels of a library (default), one kernel in blocks whose size does not depend on the product (blocks; the best ones where the software has a table for it), or in the best blocks (best-blocks)","kind":"choice","choices":["library","blocks","best-blocks"],"standard":"library","placeholder":"HOW"},
    "padded-vocabulary": {"help":"the engine pads the vocabulary to whole cache lines, which avoids slow kernels","kind":"flag"},
    "no-windows": {"help":"the engine caches and reads all tokens, where layers see only a window","kind":"flag"},
    "tp": {"help":"tensor parallelism","kind":"count","placeholder":"N"},
    "pp": {"help":"pipeline stages","kind":"count","placeholder":"N"},
    "ep": {"help":"expert parallelism","kind":"count","placeholder":"N"},
    "ep-over": {"help":"axis that experts are distributed over: dp (part of it) or tp (which then does not split each expert); data-parallel devices make up the rest of --ep","kind":"text","placeholder":"AXES"},
    "redundant-experts": {"help":"further copies of the busiest experts, which --ep divides with the others (default: the fewest with which it does)","kind":"count","placeholder":"N"},
    "dp": {"help":"data parallelism: replicas, or attention groups that share experts","kind":"count","placeholder":"N"},
    "weights-2d": {"help":"shards of each weight along its other dimension","kind":"count","placeholder":"N"},
    "gather-weights": {"help":"with --weights-2d: gather weights before use and split sequences instead","kind":"flag"},
    "cache": {"help":"how the KV cache is sharded within a tensor-parallel group; heads-batch and heads-sequence: by heads, and what devices would hold twice by batch or sequence","kind":"choice","choices":["heads","batch","sequence","heads-batch","heads-sequence"],"placeholder":"HOW"},
    "prefix-hit": {"help":"part of the prompt that is already cached: a share (0.5, 50%) or tokens (512)","kind":"share","placeholder":"SHARE"},
    "prefix-memory": {"help":"with --requests: memory of a replica's chips that keeps prefixes, least recently used ones are evicted (default: enough for all)","kind":"quantity","unit":"B","placeholder":"BYTES"},
    "prefix-host": {"help":"with --prefix-memory: host memory for prefixes that no longer fit there","kind":"quantity","unit":"B","placeholder":"BYTES"},
    "imbalance": {"help":"load of the busiest experts over an even load (default 1)","kind":"number","standard":"1","placeholder":"F"},
    "dispatch": {"help":"send each token once per node and forward it to its experts inside (node, default), or once per expert (expert)","kind":"choice","choices":["node","expert"],"standard":"node","placeholder":"HOW"},
    "chunk": {"help":"chunked prefill: prompt tokens added to each decode step of a replica","kind":"count","placeholder":"N"},
    "draft": {"help":"draft model for speculative decoding; mtp: one layer of the model itself","kind":"model","placeholder":"MODEL"},
    "acceptance": {"help":"share of drafted tokens that are accepted (default 0.8)","kind":"share","standard":"0.8","placeholder":"A"},
    "draft-length": {"help":"drafted tokens per verification (default: the best)","kind":"count","placeholder":"K"},
    "compare": {"help":"another cluster to compare with","kind":"cluster","placeholder":"CLUSTER"},
    "formats": {"help":"also compare these formats, e.g. fp8,int4, for weights, cache and, where the chip supports it, products","kind":"text","placeholder":"LIST"},
    "vary": {"help":"sweep the batch of the chosen strategy: a range (doubling) or a list","kind":"text","placeholder":"batch=1..512"},
    "memory-margin": {"help":"memory of each chip that plans leave free: interval (default) as much as engines leave (those of the catalogue, or --software), a share of the chip's memory (10%), or none. Without a plan that keeps it, one without it is shown","kind":"text","standard":"interval","placeholder":"interval|N%|none"},
    "memory-share": {"help":"share of a chip's memory that the server can use, or of what everything but caches leaves ('0.9 of free'); default: what --memory-margin leaves","kind":"share","placeholder":"SHARE"},
    "fits": {"help":"also show what fits in which format, the longest context and the smallest slice","kind":"flag"},
    "products": {"help":"also list the matrix products of a decode step, with the batch at which each becomes compute-bound","kind":"flag"},
    "stretch": {"help":"allow contexts longer than the model's","kind":"flag"},
    "kv-heads": {"help":"number of KV heads, instead of the model's","kind":"count","placeholder":"K"},
    "window": {"help":"what if layers saw only the last N tokens: all of them, or --local-layers","kind":"count","placeholder":"N"},
    "local-layers": {"help":"with --window: N of every M layers, the others see all tokens","kind":"text","placeholder":"N/M"},
    "share-cache": {"help":"what if N layers in a row shared the keys and values of their first","kind":"count","placeholder":"N"},
    "parameters": {"help":"number of parameters, instead of counting them","kind":"count","placeholder":"N"},
    "prefill-time": {"help":"measured prefill time, instead of the estimate","kind":"quantity","unit":"s","placeholder":"TIME"},
    "step-time": {"help":"measured time of a decode step, instead of the estimate","kind":"quantity","unit":"s","placeholder":"TIME"},
    "mfu": {"help":"MFU of prefill, instead of the estimate","kind":"share","placeholder":"SHARE"},
    "picture": {"help":"front (default), load (latencies against the rate; default with --rate), step (its parts against the batch), cost, cache (of a sequence against its length), prefixes (with --requests), or drafts (lengths of drafts; with --draft)","kind":"choice","choices":["front","load","step","cost","cache","prefixes","drafts"],"placeholder":"WHAT"},
    "var": {"help":"with --from: a variable of the environment that the script is run in, or an argument of it by its number (1=...); nothing in the script changes it","kind":"text","placeholder":"KEY=VALUE"},
    "set": {"help":"replace a number of the chip, e.g. memory.hbm.bandwidth=1.23TB/s","kind":"text","placeholder":"KEY=VALUE"},
    "price": {"help":"what an hour of a chip costs you, e.g. h100-sxm=2.50","kind":"text","placeholder":"CHIP=USD"},
    "prices": {"help":"use the list prices of this provider, e.g. AWS","kind":"text","placeholder":"PROVIDER"},
    "as": {"help":"read a configuration of an unknown architecture as one of this family, e.g. llama","kind":"text","placeholder":"FAMILY"},
    "derivatives": {"help":"how many percent the results change for one percent of each given number: exact, by the derivation","kind":"flag"},
    "without-fold": {"help":"use the numbers that were fitted without this fifth of the measurements, as `assay validate` does","kind":"choice","choices":["0","0","1","1","2","2","3","3","4","4"],"placeholder":"N"},
  },
  scaling: {
    "model": {"help":"an id, config.json or @file.toml; or --sizes","kind":"model"},
    "on": {"help":"where it runs: tpu-v5e, tpu-v5p:16x20x28, h100-sxm:1024, @file.toml","kind":"cluster","placeholder":"CLUSTER"},
    "sizes": {"help":"d_model and d_ff of an MLP instead of a model; L layers, E experts, k per token","kind":"text","placeholder":"D=..,F=.."},
    "gated": {"help":"with --sizes: the MLP has a gate, three matrices instead of two","kind":"flag"},
    "batch": {"help":"the global batch in tokens: 4Mi, 16M; or in sequences: 1024seq","kind":"text","unit":"tokens","placeholder":"TOKENS"},
    "seq": {"help":"tokens per sequence; gives the number of sequences in the batch","kind":"count","placeholder":"N"},
    "tokens": {"help":"tokens of the whole training run: 15T","kind":"count","placeholder":"N"},
    "mfu": {"help":"share of the peak that training reaches (default 1)","kind":"share","standard":"1","placeholder":"SHARE"},
    "rate": {"help":"the rate that one chip reaches, instead of --mfu: 400TFLOP/s","kind":"quantity","unit":"FLOP/s","placeholder":"FLOP/s"},
    "chip-hours": {"help":"hours that the run of --tokens took, times its chips: gives its MFU; 2.79M","kind":"count","placeholder":"N"},
    "parameters": {"help":"parameters of the model (default: counted from its configuration)","kind":"count","placeholder":"N"},
    "fsdp": {"help":"FSDP ways within a slice","kind":"count","placeholder":"X"},
    "tp": {"help":"tensor-parallel ways","kind":"count","placeholder":"Y"},
    "pp": {"help":"pipeline stages","kind":"count","placeholder":"P"},
    "ep": {"help":"expert-parallel ways","kind":"count","placeholder":"Z"},
    "micro-batches": {"help":"microbatches of the pipeline","kind":"count","placeholder":"M"},
    "interleave": {"help":"chunks of layers per stage (default 1)","kind":"count","standard":"1","placeholder":"V"},
    "axes-fsdp": {"help":"whole torus axes assumed for FSDP (default: all, or all but one)","kind":"count","placeholder":"N"},
    "axes-tp": {"help":"whole torus axes assumed for tensor parallelism (default: one)","kind":"count","placeholder":"N"},
    "dtype": {"help":"of arithmetic, weights and activations (default bf16)","kind":"dtype","examples":["fp64","fp32","tf32","bf16","fp16","fp8","fp6","fp4","int32","int16","int8","int4"],"standard":"bf16","placeholder":"DTYPE"},
    "params": {"help":"format of the parameters (default bf16)","kind":"dtype","examples":["fp64","fp32","tf32","bf16","fp16","fp8","fp6","fp4","int32","int16","int8","int4"],"standard":"bf16","placeholder":"DTYPE"},
    "grads": {"help":"format of stored gradients (default none)","kind":"dtype","examples":["fp64","fp32","tf32","bf16","fp16","fp8","fp6","fp4","int32","int16","int8","int4"],"standard":"none","placeholder":"DTYPE"},
    "master": {"help":"format of a master copy (default none)","kind":"dtype","examples":["fp64","fp32","tf32","bf16","fp16","fp8","fp6","fp4","int32","int16","int8","int4"],"standard":"none","placeholder":"DTYPE"},
    "moments": {"help":"format of the two Adam moments (default fp32)","kind":"dtype","examples":["fp64","fp32","tf32","bf16","fp16","fp8","fp6","fp4","int32","int16","int8","int4"],"standard":"fp32","placeholder":"DTYPE"},
    "keep": {"help":"elements saved per token and layer for the backward pass","kind":"text","placeholder":"D+2F"},
    "vary": {"help":"sweep batch, tp or chips: doubling, or a list","kind":"text","placeholder":"batch=1M..16M"},
    "walk": {"help":"test one scheme after the other for --batch, and say what follows","kind":"flag"},
    "picture": {"help":"ratio (arithmetic over communication) or time","kind":"choice","choices":["ratio","time"],"placeholder":"WHAT"},
    "set": {"help":"replace a number of the chip, e.g. memory.hbm.bandwidth=1.23TB/s","kind":"text","placeholder":"KEY=VALUE"},
    "as": {"help":"read a configuration of an unknown architecture as one of this family, e.g. llama","kind":"text","placeholder":"FAMILY"},
    "derivatives": {"help":"how many percent the results change for one percent of each given number: exact, by the derivation","kind":"flag"},
    "without-fold": {"help":"use the numbers that were fitted without this fifth of the measurements, as `assay validate` does","kind":"choice","choices":["0","0","1","1","2","2","3","3","4","4"],"placeholder":"N"},
  },
  roofline: {
    "op": {"help":"an operation in quotes","kind":"text"},
    "on": {"help":"where it runs: tpu-v5e, tpu-v5p:16x20x28, h100-sxm:1024, @file.toml","kind":"cluster","placeholder":"CLUSTER"},
    "memory": {"help":"hbm (default), vmem, smem, l2, pcie, ici, nvlink or dcn","kind":"text","standard":"hbm","placeholder":"LEVEL"},
    "compute": {"help":"the matrix unit's rate to use, or `vector`; default: the operands' dtype","kind":"dtype","examples":["fp64","fp32","tf32","bf16","fp16","fp8","fp6","fp4","int32","int16","int8","int4"],"placeholder":"DTYPE"},
    "sizes": {"help":"numbers for letters","kind":"text","placeholder":"B=240,..."},
    "vary": {"help":"sweep a letter: doubling, B=64..1024:64 in steps, or a list B=1,8,240","kind":"text","placeholder":"B=1..4096"},
    "dtype": {"help":"elements of dot(N), add(N), ... (default bf16)","kind":"dtype","examples":["fp64","fp32","tf32","bf16","fp16","fp8","fp6","fp4","int32","int16","int8","int4"],"standard":"bf16","placeholder":"DTYPE"},
    "flops": {"help":"raw work instead of an operation: 1e12, 2T, 3 TFLOP","kind":"quantity","unit":"FLOP","placeholder":"FLOP"},
    "bytes": {"help":"raw bytes: 80GiB, 16GB, or a tensor bf16[8,128]","kind":"quantity","unit":"B","placeholder":"BYTES"},
    "tile": {"help":"count the traffic of a tiled matmul","kind":"text","placeholder":"bm,bk,bn"},
    "pad": {"help":"count sizes padded to the matrix unit's tile","kind":"flag"},
    "roofs": {"help":"memory levels that the picture shows, e.g. hbm,vmem,pcie (default: those of the chip)","kind":"text","placeholder":"LEVELS"},
    "split": {"help":"split the contracting size over chips; partial sums cross the network","kind":"count","placeholder":"CHIPS"},
    "accumulate": {"help":"dtype of those partial sums (default: the result's)","kind":"dtype","examples":["fp64","fp32","tf32","bf16","fp16","fp8","fp6","fp4","int32","int16","int8","int4"],"placeholder":"DTYPE"},
    "measured": {"help":"how the estimated kernel is timed: flushed (default: by itself, after the cache was overwritten), cold, alone, in-a-stream (one of many back to back), or as in a table of `assay validate`, e.g. aiconfigurator","kind":"text","standard":"flushed","placeholder":"WAY"},
    "attention-kernel": {"help":"of attention: auto (default), flash2 or cudnn","kind":"choice","choices":["auto","flash2","cudnn"],"standard":"auto","placeholder":"NAME"},
    "set": {"help":"replace a number of the chip, e.g. memory.hbm.bandwidth=1.23TB/s","kind":"text","placeholder":"KEY=VALUE"},
    "derivatives": {"help":"how many percent the results change for one percent of each given number: exact, by the derivation","kind":"flag"},
    "without-fold": {"help":"use the numbers that were fitted without this fifth of the measurements, as `assay validate` does","kind":"choice","choices":["0","0","1","1","2","2","3","3","4","4"],"placeholder":"N"},
  },
  shard: {
    "expr": {"help":"an expression in quotes","kind":"text"},
    "mesh": {"help":"axes of the mesh and their sizes","kind":"text","placeholder":"X=4,Y=4"},
    "sizes": {"help":"sizes of the dimensions; without them, only what the mesh determines","kind":"text","placeholder":"I=4096,..."},
    "dtype": {"help":"of all tensors (default bf16)","kind":"dtype","examples":["fp64","fp32","tf32","bf16","fp16","fp8","fp6","fp4","int32","int16","int8","int4"],"standard":"bf16","placeholder":"DTYPE"},
    "plan": {"help":"the N-th plan by cost, instead of the cheapest (default 1)","kind":"count","standard":"1","placeholder":"N"},
    "check": {"help":"execute the plan on virtual devices and compare numbers and bytes","kind":"flag"},
    "overlap": {"help":"with --on: also the product in chunks that travel while others are multiplied","kind":"flag"},
    "on": {"help":"where it runs: tpu-v5e, tpu-v5p:16x20x28, h100-sxm:1024, @file.toml","kind":"cluster","placeholder":"CLUSTER"},
    "set": {"help":"replace a number of the chip, e.g. memory.hbm.bandwidth=1.23TB/s","kind":"text","placeholder":"KEY=VALUE"},
    "derivatives": {"help":"how many percent the results change for one percent of each given number: exact, by the derivation","kind":"flag"},
    "without-fold": {"help":"use the numbers that were fitted without this fifth of the measurements, as `assay validate` does","kind":"choice","choices":["0","0","1","1","2","2","3","3","4","4"],"placeholder":"N"},
  },
  layer: {
    "on": {"help":"where it runs: tpu-v5e, tpu-v5p:16x20x28, h100-sxm:1024, @file.toml","kind":"cluster","placeholder":"CLUSTER"},
    "sizes": {"help":"sizes of B, D and F, or with --one of I, J and K","kind":"text","placeholder":"B=128,..."},
    "vary": {"help":"sweep a size, or chips=4..256: the layer with weights split in one direction and in two on slices of so many chips","kind":"text","placeholder":"B=1..4096"},
    "memory": {"help":"memory available per device (default: the chip's)","kind":"quantity","unit":"B","placeholder":"CAP"},
    "mesh": {"help":"axes of the mesh (default: those of the slice)","kind":"text","placeholder":"X=4,Y=4"},
    "dtype": {"help":"of all tensors (default bf16)","kind":"dtype","examples":["fp64","fp32","tf32","bf16","fp16","fp8","fp6","fp4","int32","int16","int8","int4"],"standard":"bf16","placeholder":"DTYPE"},
    "fix": {"help":"a sharding to keep fixed, e.g. \"In[B_X, D]\"","kind":"text","placeholder":"TENSOR"},
    "one": {"help":"one product A[I, J] * B[J, K] -> C[I, K]","kind":"flag"},
    "result": {"help":"with --one: the sharding of C, or `any` (default: C[I, K] on every device)","kind":"text","placeholder":"TENSOR"},
    "set": {"help":"replace a number of the chip, e.g. memory.hbm.bandwidth=1.23TB/s","kind":"text","placeholder":"KEY=VALUE"},
    "derivatives": {"help":"how many percent the results change for one percent of each given number: exact, by the derivation","kind":"flag"},
    "without-fold": {"help":"use the numbers that were fitted without this fifth of the measurements, as `assay validate` does","kind":"choice","choices":["0","0","1","1","2","2","3","3","4","4"],"placeholder":"N"},
  },
  collective: {
    "kind": {"help":"all-gather, reduce-scatter, all-reduce, all-to-all, permute, broadcast, reduce, ...","kind":"text","examples":["all-gather","reduce-scatter","all-reduce","all-to-all","permute","broadcast","reduce"]},
    "on": {"help":"where it runs: tpu-v5e, tpu-v5p:16x20x28, h100-sxm:1024, @file.toml","kind":"cluster","placeholder":"CLUSTER"},
    "bytes": {"help":"the whole array (permute: what a device sends): 34MB, or a tensor bf16[2048,8192]","kind":"quantity","unit":"B","placeholder":"BYTES"},
    "axes": {"help":"torus axes or parts of them (Y=4: four neighbours, Y=4:2: every second chip), or `slices` (default: all axes)","kind":"text","placeholder":"X,Y=4"},
    "sharded-by": {"help":"the array is also sharded over these inner axes","kind":"text","placeholder":"Z=4"},
    "imbalance": {"help":"ragged-all-to-all: bytes received by the busiest device over the mean (default 1)","kind":"number","standard":"1","placeholder":"F"},
    "picks": {"help":"ragged-all-to-all: --bytes are tokens, each sent once to every device that has one of its K experts","kind":"count","placeholder":"K"},
    "one-way": {"help":"use one direction of each ring","kind":"flag"},
    "algorithm": {"help":"estimate the fastest algorithm (auto, default) or rings alone","kind":"choice","choices":["auto","ring"],"standard":"auto","placeholder":"NAME"},
    "kernel": {"help":"a kernel of serving engines in place of the library's: one-shot (all-reduce; the faster of both), or for ragged-all-to-all one of steps/collectives.toml, e.g. low-latency-dispatch","kind":"text","placeholder":"NAME"},
    "measured": {"help":"how the estimated collective is timed: in-a-stream (default), or as in a table of `assay validate`, e.g. nccl-tests-docs","kind":"text","placeholder":"WAY"},
    "vary": {"help":"sweep bytes, chips, sharded-by, or the imbalance of ragged-all-to-all: doubling, or a list","kind":"text","placeholder":"bytes=1kB..1GB"},
    "simulate": {"help":"also simulate it chunk by chunk on every link","kind":"flag"},
    "set": {"help":"replace a number of the chip, e.g. memory.hbm.bandwidth=1.23TB/s","kind":"text","placeholder":"KEY=VALUE"},
    "derivatives": {"help":"how many percent the results change for one percent of each given number: exact, by the derivation","kind":"flag"},
    "without-fold": {"help":"use the numbers that were fitted without this fifth of the measurements, as `assay validate` does","kind":"choice","choices":["0","0","1","1","2","2","3","3","4","4"],"placeholder":"N"},
  },
  clusters: {
    "cluster": {"help":"e.g. tpu-v5p:16x20x28, 4*tpu-v5e:16x16, h100-sxm:1024","kind":"cluster"},
    "set": {"help":"replace a number of the chip, e.g. memory.hbm.bandwidth=1.23TB/s","kind":"text","placeholder":"KEY=VALUE"},
    "price": {"help":"what an hour of a chip costs you, e.g. h100-sxm=2.50","kind":"text","placeholder":"CHIP=USD"},
    "prices": {"help":"use the list prices of this provider, e.g. AWS","kind":"text","placeholder":"PROVIDER"},
    "derivatives": {"help":"how many percent the results change for one percent of each given number: exact, by the derivation","kind":"flag"},
    "without-fold": {"help":"use the numbers that were fitted without this fifth of the measurements, as `assay validate` does","kind":"choice","choices":["0","0","1","1","2","2","3","3","4","4"],"placeholder":"N"},
  },
  systolic: {
    "M": {"help":"rows of X","kind":"count"},
    "K": {"help":"contracting size","kind":"count"},
    "N": {"help":"columns of W","kind":"count"},
    "array": {"help":"rows x columns (default 128x128)","kind":"text","standard":"128x128","placeholder":"RxC"},
    "on": {"help":"take the array and clock of a chip","kind":"chip","placeholder":"CHIP"},
    "single-buffered": {"help":"weights cannot load while a tile is running","kind":"flag"},
    "animate": {"help":"write an animated svg: what each cell holds, cycle by cycle; for small arrays","kind":"file","placeholder":"FILE"},
    "set": {"help":"replace a number of the chip, e.g. memory.hbm.bandwidth=1.23TB/s","kind":"text","placeholder":"KEY=VALUE"},
    "derivatives": {"help":"how many percent the results change for one percent of each given number: exact, by the derivation","kind":"flag"},
    "without-fold": {"help":"use the numbers that were fitted without this fifth of the measurements, as `assay validate` does","kind":"choice","choices":["0","0","1","1","2","2","3","3","4","4"],"placeholder":"N"},
  },
  validate: {
    "set": {"help":"a set (default: all kernel sets that can be read)","kind":"text"},
    "group": {"help":"only groups with this in their name","kind":"text","placeholder":"TEXT"},
    "by": {"help":"summarise errors by group (default), source, hardware, model family or regime; csv then holds the summaries instead of the rows","kind":"text","standard":"group","placeholder":"WHAT"},
    "leave-out": {"help":"leave all rows of the row's chip out of the fit that predicts it, not only its source (training, inference-tpot, inference-ttft and inference-throughput; fits anew, which takes minutes)","kind":"choice","choices":["hardware"],"placeholder":"WHAT"},
    "without-each": {"help":"the error of a set without the effect of each fitted number, all others as they are (of rows that fits use)","kind":"flag"},
    "fitted": {"help":"predict the rows that fits use, with the calibration that was fitted to them","kind":"flag"},
    "unanswered": {"help":"also list the rows that cannot be predicted, and why","kind":"flag"},
    "derivatives": {"help":"how many percent the results change for one percent of each given number: exact, by the derivation","kind":"flag"},
    "without-fold": {"help":"use the numbers that were fitted without this fifth of the measurements, as `assay validate` does","kind":"choice","choices":["0","0","1","1","2","2","3","3","4","4"],"placeholder":"N"},
  },
  book: {
    "chapter": {"help":"a chapter, or the id of one fact","kind":"text"},
    "left-out": {"help":"also list what is not checked, and why","kind":"flag"},
    "figures": {"help":"only list the requests that draw the figures","kind":"flag"},
    "derivatives": {"help":"how many percent the results change for one percent of each given number: exact, by the derivation","kind":"flag"},
    "without-fold": {"help":"use the numbers that were fitted without this fifth of the measurements, as `assay validate` does","kind":"choice","choices":["0","0","1","1","2","2","3","3","4","4"],"placeholder":"N"},
  },
  profile: {
    "file": {"help":"a profile, one of each rank or a folder of them, or BEFORE and AFTER","kind":"file"},
    "on": {"help":"where it runs: tpu-v5e, tpu-v5p:16x20x28, h100-sxm:1024, @file.toml (for a profile or a compiled program)","kind":"cluster","placeholder":"CLUSTER"},
    "element": {"help":"where an element lies in memory, e.g. 2,4 (for a shape)","kind":"text","placeholder":"LIST"},
    "graph": {"help":"draw the graph of the entry, or of the computation NAME (for a compiled program)","kind":"text","placeholder":"NAME"},
    "capture": {"help":"a profile of the capture of graphs that FILE replays: their kernels get its operations (for a profile)","kind":"file","placeholder":"FILE"},
    "against": {"help":"a request of train or serve, in quotes, or @FILE with one: where the profile differs from what it predicts, step by step, and what to do about it; alone: the request that the profile's own shapes imply (for a profile)","kind":"request","placeholder":"REQUEST"},
    "perfetto": {"help":"write the device's timeline, by category, for ui.perfetto.dev (for a profile)","kind":"file","placeholder":"FILE"},
    "set": {"help":"replace a number of the chip, e.g. memory.hbm.bandwidth=1.23TB/s (for a profile or a compiled program)","kind":"text","placeholder":"KEY=VALUE"},
    "derivatives": {"help":"how many percent the results change for one percent of each given number: exact, by the derivation","kind":"flag"},
    "without-fold": {"help":"use the numbers that were fitted without this fifth of the measurements, as `assay validate` does","kind":"choice","choices":["0","0","1","1","2","2","3","3","4","4"],"placeholder":"N"},
  },
  models: {
    "model": {"help":"an id, config.json, a directory, file.safetensors, file.gguf, or @file.toml","kind":"model"},
    "seq": {"help":"tokens of a sequence: counts attention, exact FLOP and the cache of a sequence","kind":"count","placeholder":"N"},
    "batch": {"help":"sequences: counts the whole cache","kind":"count","placeholder":"N"},
    "kv": {"help":"format of the cache (default bf16)","kind":"dtype","examples":["fp64","fp32","tf32","bf16","fp16","fp8","fp6","fp4","int32","int16","int8","int4"],"standard":"bf16","placeholder":"DTYPE"},
    "weights": {"help":"format of the weights (default: as published); formats with scales (mxfp4, nvfp4, int4-g128, fp8-128x128) apply to linear layers","kind":"dtype","examples":["fp64","fp32","tf32","bf16","fp16","fp8","fp6","fp4","int32","int16","int8","int4"],"placeholder":"DTYPE"},
    "attention": {"help":"keys that a query attends to: exact, half or full sequence","kind":"choice","choices":["exact","half","full"],"placeholder":"COUNT"},
    "vary": {"help":"sweep the length of sequences: attention's share of the work, its intensity, and the cache","kind":"text","placeholder":"seq=1k..128k"},
    "as": {"help":"read a configuration of an unknown architecture as one of this family, e.g. llama","kind":"text","placeholder":"FAMILY"},
    "derivatives": {"help":"how many percent the results change for one percent of each given number: exact, by the derivation","kind":"flag"},
    "without-fold": {"help":"use the numbers that were fitted without this fifth of the measurements, as `assay validate` does","kind":"choice","choices":["0","0","1","1","2","2","3","3","4","4"],"placeholder":"N"},
  },
  chips: {
    "id": {"help":"a chip id, or @file.toml","kind":"chip"},
    "compare": {"help":"another chip beside it, part by part (repeatable)","kind":"chip","placeholder":"CHIP"},
    "picture": {"help":"rates (default): rooflines, or bandwidths of several chips; parts: cores, units and memories","kind":"choice","choices":["rates","parts"],"standard":"rates","placeholder":"WHAT"},
    "set": {"help":"replace a number of the chip, e.g. memory.hbm.bandwidth=1.23TB/s","kind":"text","placeholder":"KEY=VALUE"},
    "price": {"help":"what an hour of a chip costs you, e.g. h100-sxm=2.50","kind":"text","placeholder":"CHIP=USD"},
    "prices": {"help":"use the list prices of this provider, e.g. AWS","kind":"text","placeholder":"PROVIDER"},
    "derivatives": {"help":"how many percent the results change for one percent of each given number: exact, by the derivation","kind":"flag"},
    "without-fold": {"help":"use the numbers that were fitted without this fifth of the measurements, as `assay validate` does","kind":"choice","choices":["0","0","1","1","2","2","3","3","4","4"],"placeholder":"N"},
  },
  transfer: {
    "bytes": {"help":"16GB, 80GiB, or a tensor bf16[8,128,8192]","kind":"quantity","unit":"B","placeholder":"BYTES"},
    "to": {"help":"where they go","kind":"text","placeholder":"PLACE"},
    "on": {"help":"where it runs: tpu-v5e, tpu-v5p:16x20x28, h100-sxm:1024, @file.toml","kind":"cluster","placeholder":"CLUSTER"},
    "then": {"help":"an operation at the destination that reads the bytes from HBM","kind":"text","placeholder":"OP"},
    "tile": {"help":"move and compute in tiles of this size, so that stages overlap tile by tile","kind":"quantity","unit":"B","placeholder":"BYTES"},
    "buffers": {"help":"tiles that are on their way at once (default 2)","kind":"count","standard":"2","placeholder":"N"},
    "while": {"help":"what runs meanwhile: says whether the transfer hides behind it","kind":"quantity","unit":"s","placeholder":"TIME"},
    "set": {"help":"replace a number of the chip, e.g. memory.hbm.bandwidth=1.23TB/s","kind":"text","placeholder":"KEY=VALUE"},
    "derivatives": {"help":"how many percent the results change for one percent of each given number: exact, by the derivation","kind":"flag"},
    "without-fold": {"help":"use the numbers that were fitted without this fifth of the measurements, as `assay validate` does","kind":"choice","choices":["0","0","1","1","2","2","3","3","4","4"],"placeholder":"N"},
  },
  design: {
    "file": {"help":"a design, or the id of a known chip","kind":"file"},
    "workload": {"help":"requests, what varies, and limits: searches the designs","kind":"file","placeholder":"FILE"},
    "set": {"help":"a part that differs, e.g. die.0.cores_on=120; without VALUE it is left out","kind":"text","placeholder":"KEY=VALUE"},
    "out": {"help":"where chips/ID.toml goes, for --catalogue DIR of other commands","kind":"directory","placeholder":"DIR"},
    "owning": {"help":"prices of servers, network, building and energy that differ from the catalogue's","kind":"file","placeholder":"FILE"},
    "chips": {"help":"chips of the cluster that a chip shares its network with (default 1024)","kind":"count","standard":"1024","placeholder":"N"},
    "model-shape": {"help":"the model whose shape is searched","kind":"model","placeholder":"MODEL"},
    "on": {"help":"where it runs: tpu-v5e, tpu-v5p:16x20x28, h100-sxm:1024, @file.toml","kind":"cluster","placeholder":"CLUSTER"},
    "batch": {"help":"tokens per training step (default: 4Mi), or with --latency sequences (64)","kind":"text","unit":"tokens","placeholder":"TOKENS|Nseq"},
    "seq": {"help":"tokens per sequence, or of a prompt (default 8192)","kind":"count","standard":"8192","placeholder":"N"},
    "parameters": {"help":"how many the model has (default: as it has): the fastest is searched","kind":"count","placeholder":"N"},
    "flops": {"help":"of the whole training: the lowest loss is searched","kind":"quantity","unit":"FLOP","placeholder":"FLOP"},
    "time": {"help":"of the whole training on this cluster: the lowest loss is searched","kind":"quantity","unit":"s","placeholder":"TIME"},
    "latency": {"help":"of a decode step: the lowest loss is searched","kind":"quantity","unit":"s","placeholder":"TIME"},
    "tokens": {"help":"that the model of a --latency is trained on (default 15T)","kind":"count","standard":"15T","placeholder":"N"},
    "fields": {"help":"what varies: layers, width, heads, kv-heads, head-size, feed-forward, experts, experts-per-token, expert-width, window, vocabulary","kind":"text","placeholder":"LIST"},
    "range": {"help":"how far each field moves from the model scaled as a whole (default 1.25)","kind":"number","standard":"1.25","placeholder":"F"},
    "law": {"help":"of the loss: chinchilla (the replication of 2024) or hoffmann (as published) (default chinchilla)","kind":"text","examples":["chinchilla","hoffmann"],"standard":"chinchilla","placeholder":"NAME"},
    "derivatives": {"help":"how many percent the results change for one percent of each given number: exact, by the derivation","kind":"flag"},
    "without-fold": {"help":"use the numbers that were fitted without this fifth of the measurements, as `assay validate` does","kind":"choice","choices":["0","0","1","1","2","2","3","3","4","4"],"placeholder":"N"},
  },
  run: {
    "file": {"help":"a program, FILE.assay or StableHLO (- reads standard input); or train MODEL, or serve MODEL","kind":"file"},
    "eval": {"help":"the program itself instead of a file (also -e) (for a program)","kind":"text","placeholder":"TEXT"},
    "show": {"help":"tensors, separated by commas: show what each device holds of them after each step (for a program)","kind":"text","placeholder":"LIST"},
    "animate": {"help":"write an animated svg: what each step changes, one after the other (for a program)","kind":"file","placeholder":"FILE"},
    "mesh": {"help":"of StableHLO: sizes of the mesh's axes instead of its own (for a program)","kind":"text","placeholder":"X=4,Y=4"},
    "against": {"help":"of StableHLO: the compiled program, whose collectives, time and memory stand beside the plan's (for a program)","kind":"file","placeholder":"FILE"},
    "inputs": {"help":"of StableHLO: arrays NAME0, NAME1, ... as its arguments (default: in0, in1, ...); executes the plan (for a program)","kind":"file","placeholder":"FILE.npz:NAME"},
    "expect": {"help":"of StableHLO: its results as somebody else computed them (default: out0, out1, ...); executes the plan (for a program)","kind":"file","placeholder":"FILE.npz:NAME"},
    "backward": {"help":"also compute the gradients of the last result (for a program)","kind":"flag"},
    "overlap": {"help":"with --engine mpi: also run it with blocking collectives, and compare; a picture shows both (for a program or a training run)","kind":"flag"},
    "on": {"help":"where it runs: tpu-v5e, tpu-v5p:16x20x28, h100-sxm:1024, @file.toml (for a program or a training run or a serving run)","kind":"cluster","placeholder":"CLUSTER"},
    "set": {"help":"replace a number of the chip, e.g. memory.hbm.bandwidth=1.23TB/s (for a program or a training run or a serving run)","kind":"text","placeholder":"KEY=VALUE"},
    "engine": {"help":"virtual: all devices in this process; mpi: one rank per device, started with mpirun -n N; cuda: a GPU, or one for each rank (default virtual)","kind":"choice","choices":["virtual","mpi","cuda"],"standard":"virtual","placeholder":"NAME"},
    "time-limit": {"help":"how long a rank waits for another before it gives up (default 60s)","kind":"quantity","unit":"s","standard":"60s","placeholder":"TIME"},
    "layers": {"help":"keep the model's first N layers (for a training run or a serving run)","kind":"count","placeholder":"N"},
    "hidden": {"help":"make the model this wide (d_model); heads and feed-forward blocks shrink with it (for a training run or a serving run)","kind":"count","placeholder":"N"},
    "heads": {"help":"attention heads (default: heads of 16 where --hidden is given) (for a training run or a serving run)","kind":"count","placeholder":"N"},
    "kv-heads": {"help":"key and value heads (default: as many queries share one as in the model) (for a training run or a serving run)","kind":"count","placeholder":"N"},
    "ff": {"help":"width of feed-forward blocks, or of each expert (for a training run or a serving run)","kind":"count","placeholder":"N"},
    "experts": {"help":"experts of each expert layer (for a training run or a serving run)","kind":"count","placeholder":"N"},
    "text": {"help":"text to train on, up to 1 MiB (default: a text of ours, 48 kB) (for a training run or a serving run)","kind":"file","placeholder":"FILE"},
    "vocabulary": {"help":"tokens: 256 are bytes, more are byte pairs learned from the text (default 256) (for a training run or a serving run)","kind":"count","standard":"256","placeholder":"N"},
    "as": {"help":"read a configuration of an unknown architecture as one of this family, e.g. llama (for a training run or a serving run)","kind":"text","placeholder":"FAMILY"},
    "batch": {"help":"tokens per step, or sequences (16seq) (default 16seq) (for a training run)","kind":"text","unit":"tokens","standard":"16seq","placeholder":"TOKENS|Nseq"},
    "seq": {"help":"tokens per sequence (default 32) (for a training run)","kind":"count","standard":"32","placeholder":"N"},
    "steps": {"help":"optimizer steps (default 20) (for a training run)","kind":"count","standard":"20","placeholder":"N"},
    "rate": {"help":"AdamW's learning rate (default 0.003) (for a training run)","kind":"number","standard":"0.003","placeholder":"F"},
    "compare": {"help":"also run these: \"tp=2 sequence-parallel; fsdp=2; pp=2 schedule=zb-h1\" (for a training run)","kind":"text","placeholder":"LIST"},
    "save": {"help":"write the trained weights and what continues the run, as safetensors (for a training run)","kind":"file","placeholder":"FILE"},
    "save-every": {"help":"also write it after every N steps, so that a run that dies costs at most those (for a training run)","kind":"count","placeholder":"N"},
    "resume": {"help":"continue the run that saved this; --steps counts from its start (for a training run)","kind":"file","placeholder":"FILE"},
    "seed": {"help":"of initial weights, batches and samples (default 1) (for a training run or a serving run)","kind":"count","standard":"1","placeholder":"N"},
    "check": {"help":"also run on one device, and compare the losses of every step, the tokens, or of StableHLO the results, which executes the plan on virtual devices (for a program or a training run or a serving run)","kind":"flag"},
    "load": {"help":"start from weights that a run saved (for a training run or a serving run)","kind":"file","placeholder":"FILE"},
    "dp": {"help":"data parallelism: replicas (for a training run or a serving run)","kind":"count","placeholder":"N"},
    "fsdp": {"help":"data parallelism with weights sharded over the devices (for a training run or a serving run)","kind":"count","placeholder":"N"},
    "tp": {"help":"tensor parallelism (for a training run or a serving run)","kind":"count","placeholder":"N"},
    "pp": {"help":"pipeline stages (for a training run)","kind":"count","placeholder":"N"},
    "cp": {"help":"context parallelism (for a training run or a serving run)","kind":"count","placeholder":"N"},
    "ep": {"help":"expert parallelism (for a training run or a serving run)","kind":"count","placeholder":"N"},
    "ep-over": {"help":"axes that experts are distributed over: dp (part of dp x fsdp), tp (which then does not split each expert), cp, or a list, e.g. tp,cp; data-parallel devices make up the rest of --ep (for a training run or a serving run)","kind":"text","placeholder":"AXES"},
    "zero": {"help":"what replicas shard: 1 optimizer states, 2 also gradients, 3 also weights (for a training run)","kind":"choice","choices":["0","0","1","1","2","2","3","3"],"placeholder":"0..3"},
    "micro-batch": {"help":"sequences per microbatch and data-parallel group (for a training run)","kind":"count","placeholder":"N"},
    "interleave": {"help":"chunks of layers per stage (for a training run)","kind":"count","placeholder":"N"},
    "schedule": {"help":"gpipe, 1f1b, interleaved, zb, zb-h1, zb-h2, zb-v or dualpipe (for a training run)","kind":"text","examples":["gpipe","1f1b","interleaved","zb","zb-h1","zb-h2","zb-v","dualpipe"],"placeholder":"NAME"},
    "recompute": {"help":"none, element-wise (norms and activation functions), selective (inside attention), feed-forward, full; or what is kept besides a layer's input: products, projections (those around attention), operators (attention and every second product); auto (default) searches all of these. Or a list of parts to recompute, never searched: norms, rotary, scores, attention, attention-products, ffn-products, second-products, ffn-act, router, dispatch, scans, residual, reductions, exchanges (for a training run)","kind":"text","examples":["none","element-wise","selective","feed-forward","full","products","projections","operators","auto"],"placeholder":"POLICY"},
    "offload": {"help":"what is offloaded to the host: none, optimizer, activations, both, or auto (default) to search all (for a training run)","kind":"choice","choices":["none","optimizer","activations","both","auto"],"placeholder":"WHAT"},
    "sequence-parallel": {"help":"shard activations between tensor-parallel blocks by sequence (for a training run)","kind":"flag"},
    "residual": {"help":"how activations between blocks are sharded: replicated, sequence or model (for a training run)","kind":"choice","choices":["replicated","sequence","model"],"placeholder":"HOW"},
    "context-scheme": {"help":"context parallelism by ring or all-to-all (for a training run)","kind":"choice","choices":["ring","all-to-all"],"placeholder":"HOW"},
    "prompt": {"help":"a prompt, instead of pieces of the text (for a serving run)","kind":"text","placeholder":"TEXT"},
    "tokens": {"help":"a prompt as numbers with commas, for a directory with weights (for a serving run)","kind":"text","placeholder":"LIST"},
    "logits": {"help":"add the logits that every new token was chosen from to JSON, for a directory with weights (for a serving run)","kind":"flag"},
    "prompt-length": {"help":"tokens of a prompt that is cut from the text (default 16) (for a serving run)","kind":"count","standard":"16","placeholder":"N"},
    "new-tokens": {"help":"tokens to make for a prompt (default 16) (for a serving run)","kind":"count","standard":"16","placeholder":"N"},
    "slots": {"help":"most sequences at once; the others wait (default 4) (for a serving run)","kind":"count","standard":"4","placeholder":"N"},
    "calls": {"help":"also list the calls of the engine: prefill, insert into a slot, generate (for a serving run)","kind":"flag"},
    "threads": {"help":"process prompts in a thread of their own while another one decodes, with a queue of N between them (for a serving run)","kind":"count","placeholder":"N"},
    "no-cache": {"help":"keep no cache: read all tokens again for each new one, and show what work a cache saves (for a serving run)","kind":"flag"},
    "page": {"help":"also follow a cache of pages of N tokens: tables, shared pages, copies on writing (for a serving run)","kind":"count","placeholder":"N"},
    "temperature": {"help":"0 takes the likeliest token, 1 samples as the model says (default 0) (for a serving run)","kind":"number","standard":"0","placeholder":"F"},
    "top-p": {"help":"sample among the likeliest tokens of this probability (default 1) (for a serving run)","kind":"number","standard":"1","placeholder":"F"},
    "prefill-tp": {"help":"process prompts on N other devices, which hand their caches over (for a serving run)","kind":"count","placeholder":"N"},
    "speculate": {"help":"draft N tokens with the first layers, and verify them at once (for a serving run)","kind":"count","placeholder":"N"},
    "draft-layers": {"help":"layers that draft (default 1) (for a serving run)","kind":"count","standard":"1","placeholder":"N"},
    "cache": {"help":"what the cache is split by: heads, batch or sequence (default heads) (for a serving run)","kind":"choice","choices":["heads","batch","sequence"],"standard":"heads","placeholder":"HOW"},
    "derivatives": {"help":"how many percent the results change for one percent of each given number: exact, by the derivation","kind":"flag"},
    "without-fold": {"help":"use the numbers that were fitted without this fifth of the measurements, as `assay validate` does","kind":"choice","choices":["0","0","1","1","2","2","3","3","4","4"],"placeholder":"N"},
  },
};
export interface Program {
  value: string;
  name: string;
  software?: string;
}
export const programs: Record<"train" | "serve", readonly Program[]> = {
  train: [
    {"value":"axolotl","name":"axolotl","software":"pytorch"},
    {"value":"deepspeed","name":"DeepSpeed","software":"deepspeed"},
    {"value":"maxtext","name":"MaxText","software":"maxtext"},
    {"value":"megatron-bridge","name":"Megatron-Bridge","software":"megatron-core"},
    {"value":"megatron-core","name":"Megatron-LM","software":"megatron-core"},
    {"value":"torchtitan","name":"torchtitan","software":"torchtitan"},
    {"value":"trl","name":"TRL","software":"huggingface"},
  ],
  serve: [
    {"value":"sglang","name":"SGLang","software":"sglang"},
    {"value":"tensorrt-llm","name":"TensorRT-LLM","software":"tensorrt-llm"},
    {"value":"vllm","name":"vLLM","software":"vllm"},
  ],
};
export const launchers: readonly Program[] = [
    {"value":"slurm","name":"Slurm"},
    {"value":"k8s","name":"Kubernetes"},
  ];
