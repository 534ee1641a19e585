#!/usr/bin/env python3
"""check_launch.py PROGRAM [ROOT] [--assay PATH] [--catalogue DIR] [--models ID...] [--on CLUSTER...]

Writes launch files for models on clusters and runs each through the checks of the program itself: its parser, the types
of its options and what it validates before it starts. PROGRAM is one of catalogue/launch, ROOT the directory that its
release's repository was unpacked to (the version that the catalogue names). What the program imports beside its
options (torch, jax, transformers, ...) is replaced by stand-ins, so nothing has to be installed but pydantic and
PyYAML. Without ROOT, each file is read and written again instead, and both are the same but for comments. Prints a line
for each file that does not start, and the totals; exits with 1 if one does not start."""

import argparse
import collections
import contextlib
import enum
import importlib
import importlib.util
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
import types
import warnings
from unittest.mock import MagicMock

MODELS = """llama-2-7b llama-2-70b llama-3-8b llama-3-70b llama-3.1-405b mistral-7b mixtral-8x7b mixtral-8x22b qwen2.5-7b
qwen2.5-72b qwen3-8b qwen3-32b qwen3-30b-a3b qwen3-235b-a22b deepseek-v2 deepseek-v3 gpt-oss-20b gpt-oss-120b kimi-k2
llama-4-scout llama-4-maverick gemma-2-9b gemma-2-27b gemma-3-27b gpt-3-175b gpt-neox-20b olmo-2-13b falcon-40b
command-r-plus bloom-176b phi-3-mini glm-4.5 glm-4.5-air nemotron-4-340b dbrx""".split()
GPUS = "h100-sxm:8 h100-sxm:64 h100-sxm:512 b200:64 a100-sxm-80:128".split()
TPUS = "tpu-v5p:64 tpu-v5p:512 tpu-v6e:64 tpu-v6e:256 tpu-v5p:2048".split()
SERVERS = "h100-sxm:1 h100-sxm:8 h100-sxm:16 h200-sxm:8 b200:8".split()


class AnyClass(type):
    """Of stand-ins for classes: they have every attribute, and nothing in them."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return MagicMock(name=name)

    def __iter__(cls):
        return iter(())


class Anything(metaclass=AnyClass):
    def __init__(self, *arguments, **options):
        pass

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return AnyClass(name, (Anything,), {})

    @classmethod
    def __get_pydantic_core_schema__(cls, source, handler):
        from pydantic_core import core_schema

        return core_schema.any_schema()


class StandIn(types.ModuleType):
    """A module that has a class for each name that looks like one, and something callable for every other name."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        is_class = name[0].isupper() and not name.isupper()
        value = AnyClass(name, (Anything,), {}) if is_class else MagicMock(name=f"{self.__name__}.{name}")
        setattr(self, name, value)
        return value


class Release:
    """Finds modules of a release: those that hold its options as they are, everything else as a stand-in."""

    def __init__(self, root, real, packages, never=()):
        self.root, self.real, self.packages, self.never = root, real, packages, never
        sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in self.packages:
            return None
        if name not in self.never and any(name == one or name.startswith(one + ".") for one in self.real):
            base = os.path.join(self.root, *name.split("."))
            for file, inside in ((f"{base}/__init__.py", [base]), (f"{base}.py", None)):
                if os.path.exists(file):
                    return importlib.util.spec_from_file_location(name, file, submodule_search_locations=inside)
        return importlib.util.spec_from_loader(name, self)

    def create_module(self, spec):
        module = StandIn(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module):
        pass


def words_of(script):
    """The options that a script keeps in its list."""
    words = []
    for line in re.search(r"arguments=\(\n(.*?)\n\)", script, re.S).group(1).split("\n"):
        words += shlex.split(line, comments=True)
    return words


def file_in(script):
    """The file that a script writes."""
    return re.search(r"<<'(\w+)'\n(.*?)\n\1\n", script, re.S).group(2)


def processes(script):
    count = lambda option: int((re.search(option + r" (\d+)", script) or [0, 1])[1])
    return count("--nnodes") * count("--nproc-per-node")


def parsed(parser, words):
    """Parsed options; what the parser says against them is an error."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            return parser.parse_args(words)
    except SystemExit:
        raise ValueError(said.getvalue().strip().split("\n")[-1])


class Megatron:
    request = "train MODEL --on CLUSTER --batch 512seq --seq 2048"
    clusters = GPUS

    def __init__(self, root):
        Release(root, ["megatron.training.arguments", "megatron.core.transformer.pipeline_parallel_layer_layout"],
                ["torch", "megatron", "packaging", "transformer_engine", "nvidia_resiliency_ext"])
        import megatron.core.dist_checkpointing.validation as validation
        import megatron.core.transformer.enums as enums
        import megatron.core.utils as core
        import megatron.training.utils as training
        import torch

        torch.dtype = type("dtype", (), {})
        for name in ("float", "half", "bfloat16", "float32", "float16", "uint8"):
            setattr(torch, name, torch.dtype())
        torch.cuda.get_device_capability = lambda *a: (self.generation, 0)
        core.is_te_min_version = core.is_torch_min_version = lambda *a, **k: True
        training.warn_rank_0 = training.print_rank_0 = lambda *a, **k: None
        training.get_device_arch_version = lambda: self.generation

        def update_use_dist_ckpt(args):
            args.use_dist_ckpt = args.ckpt_format != "torch"

        training.update_use_dist_ckpt = update_use_dist_ckpt
        enums.AttnBackend = enum.Enum("AttnBackend", "flash fused unfused local auto")
        validation.StrictHandling = enum.Enum(
            "StrictHandling", {"ASSUME_OK_UNEXPECTED": "assume_ok_unexpected", "LOG_UNEXPECTED": "log_unexpected"})
        import megatron.training.arguments as module

        self.module = module

    def check(self, script, model, cluster):
        self.generation = 10 if cluster.startswith(("b", "gb")) else 9
        os.environ.pop("CUDA_DEVICE_MAX_CONNECTIONS", None)
        os.environ.update(re.findall(r"^export (\w+)=(\S+)", script, re.M))
        os.environ.update(WORLD_SIZE=str(processes(script)), RANK="0")
        parser = argparse.ArgumentParser(allow_abbrev=False)
        self.module.add_megatron_arguments(parser)
        args = parsed(parser, words_of(script))
        args.rank, args.world_size = 0, processes(script)
        self.module.validate_args(args, {})
        assert not args.attention_dropout and not args.hidden_dropout, "dropout is not what is predicted"


class Torchtitan:
    request = "train MODEL --on CLUSTER --batch 512seq --seq 2048"
    clusters = GPUS

    def __init__(self, root):
        Release(root, ["torchtitan.config", "torchtitan.distributed.parallel_dims",
                       "torchtitan.distributed.pipeline_parallel"],
                ["torchtitan", "torch", "tyro"], ["torchtitan.config.configs"])
        import torch.distributed.pipelining.schedules as schedules

        class Single:
            def __init__(self, *arguments, **options):
                pass

        class Several:
            __init__ = Single.__init__

        schedules.PipelineScheduleSingle, schedules.PipelineScheduleMulti = Single, Several
        several = ("Interleaved1F1B", "InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV", "LoopedBFS")
        single = ("1F1B", "GPipe")
        one = {**{name: type(name, (Several,), {}) for name in several}, **{n: type(n, (Single,), {}) for n in single}}
        schedules.get_schedule_class = lambda name: one[name]
        import torchtitan.config.manager as manager
        import torchtitan.distributed.parallel_dims as dims
        import torchtitan.distributed.pipeline_parallel as pipeline

        self.manager, self.dims, self.pipeline, self.root = manager, dims, pipeline, root

    def check_types(self, config, where=""):
        import dataclasses

        import pydantic

        for field in dataclasses.fields(config):
            value = getattr(config, field.name)
            if dataclasses.is_dataclass(value):
                self.check_types(value, f"{where}{field.name}.")
                continue
            try:
                pydantic.TypeAdapter(field.type).validate_python(value, strict=True)
            except pydantic.ValidationError as error:
                raise ValueError(f"{where}{field.name} = {value!r}: {error.errors()[0]['msg']}")

    def check(self, script, model, cluster):
        manager = self.manager.ConfigManager.__new__(self.manager.ConfigManager)
        config = manager._dict_to_dataclass(self.manager.JobConfig, tomllib.loads(file_in(script)))
        self.check_types(config)
        p, training = config.parallelism, config.training
        dims = self.dims.ParallelDims(
            dp_replicate=p.data_parallel_replicate_degree, dp_shard=p.data_parallel_shard_degree,
            cp=p.context_parallel_degree, tp=p.tensor_parallel_degree, pp=p.pipeline_parallel_degree,
            ep=p.expert_parallel_degree, etp=p.expert_tensor_parallel_degree, world_size=processes(script))
        source = f"{self.root}/torchtitan/models/{config.model.name}"
        flavor = re.search(rf'"{config.model.flavor}": \w+\((.*?)\n    \),', open(f"{source}/__init__.py").read(), re.S)
        assert flavor, f"{config.model.name} has no flavor {config.model.flavor}"
        parallelize = open(f"{self.root}/torchtitan/models/{config.model.name}/infra/parallelize.py").read()
        # Conditions of the models' parallelize functions, and of the trainer.
        if dims.dp_replicate > 1 and dims.dp_shard * dims.cp == 1:
            assert dims.dp_replicate == dims.world_size, "DDP has not supported > 1D parallelism"
        assert training.seq_len % (dims.tp * 2 * dims.cp if dims.cp > 1 else dims.tp) == 0, "sequence does not divide"
        if "only supports SDPA attention" in parallelize and dims.cp > 1:
            assert 'attn_type="flex"' not in flavor.group(1), "Context Parallel only supports SDPA attention"
        if any("float8" in one for one in config.model.converters) and dims.tp > 1:
            assert "tensorwise TP is not tested" not in parallelize, "float8 tensorwise TP is not tested"
        groups = dims.dp_replicate * dims.dp_shard
        assert training.global_batch_size % (training.local_batch_size * groups) == 0, "global batch size"
        if dims.pp > 1:
            spec = open(f"{source}/__init__.py").read()
            assert re.search(r"pipelining_fn=pipeline_llm", spec), f"{config.model.name} does not support pipelining"
            stages = []
            self.pipeline.pipeline_module_split = lambda model, mesh, schedule, device, names: (
                stages.extend(names) or [types.SimpleNamespace(is_first=False, is_last=False)], [])
            layers = int(re.search(r"n_layers=(\d+)", flavor.group(1)).group(1))
            dims.get_mesh = lambda name: None
            self.pipeline.pipeline_llm(None, dims, config, None, types.SimpleNamespace(n_layers=layers), None, None)
            counts = [sum(name.startswith("layers.") for name in stage) for stage in stages]
            assert max(counts) - min(counts) <= 1, f"stages of {counts} layers"


class MaxText:
    request = "train MODEL --on CLUSTER --batch 512seq --seq 4096"
    clusters = TPUS

    def __init__(self, root):
        Release(f"{root}/src", ["maxtext.configs.types", "maxtext.common.common_types"],
                ["maxtext", "jax", "jinja2", "flax", "numpy", "omegaconf"])
        import jax
        import maxtext.configs.types as module
        import maxtext.utils.max_utils as utils

        self.module, self.configs = module, f"{root}/src/maxtext/configs"
        jax.devices = lambda *a: range(self.devices)
        jax.local_device_count = lambda: 4
        jax.distributed.is_initialized = lambda: True
        utils.get_num_slices = lambda keys: self.slices

    def check(self, script, model, cluster):
        import yaml

        load = lambda path: yaml.safe_load(open(path, encoding="utf-8"))
        given = yaml.safe_load(file_in(script))
        self.slices = given.get("dcn_data_parallelism", 1)
        self.devices = int(re.search(r":(\d+)", cluster).group(1))
        keys = load(f"{self.configs}/base.yml")
        keys.pop("base_config", None)
        if "model_name" in given:
            path = f"{self.configs}/models/{given['model_name']}.yml"
            assert os.path.exists(path), f"no model {given['model_name']}"
            keys.update(load(path))
            twice = set(load(path)) & set(given) - {"model_name"}
            assert not twice, f"the file of the model says {', '.join(twice)}, too"
        unknown = set(given) - set(keys) - {"base_config"}
        assert not unknown, f"unknown: {', '.join(unknown)}"
        keys.update({key: value for key, value in given.items() if key != "base_config"})
        keys = {key: None if isinstance(value, str) and value.lower() == "none" else value
                for key, value in keys.items() if key in self.module.MaxTextConfig.model_fields}
        for key in ("hf_train_files", "hf_eval_files", "hf_access_token", "hf_name", "hf_data_dir", "hf_eval_split"):
            keys[key] = keys.get(key) or None
        keys["tokenizer_path"] = "tokenizer"
        if keys.get("run_name") is None:
            keys["run_name"] = ""
        config = self.module.MaxTextConfig(**keys)
        product = 1
        for axis in ("data", "pipeline", "fsdp", "fsdp_transpose", "context", "tensor", "tensor_sequence", "expert"):
            ways = getattr(config, f"ici_{axis}_parallelism")
            assert ways > 0, f"ici_{axis}_parallelism is open"
            product *= ways
        assert product * self.slices == self.devices, f"{product} x {self.slices} is not {self.devices} devices"


class Vllm:
    request = "serve MODEL --on CLUSTER --prompt 1024 --output 256"
    clusters = SERVERS

    def __init__(self, root):
        Release(root, ["vllm.config", "vllm.engine.arg_utils", "vllm.utils.argparse_utils", "vllm.logger", "vllm.envs"],
                "vllm torch transformers huggingface_hub cbor2 msgspec psutil zmq packaging cloudpickle".split(),
                ["vllm.config.quantization"])
        import torch
        import vllm.version

        sys.modules["regex"] = re

        torch.__version__, vllm.version.__version__ = "2.9.0", "0"
        import vllm.engine.arg_utils as module

        self.module = module

    def check(self, script, model, cluster):
        parser = self.module.FlexibleArgumentParser()
        self.module.EngineArgs.add_cli_args(parser)
        known = {name for action in parser._actions for name in action.option_strings}
        words = [word for word in words_of(script)]
        for word in words:
            assert not word.startswith("--") or word.split(".")[0] in known, f"unknown: {word}"
        args = parsed(parser, words)
        chips = int((re.search(r":(\d+)", cluster) or [0, 1])[1])
        replicas = args.data_parallel_size if args.data_parallel_size else 1
        size = args.tensor_parallel_size * args.pipeline_parallel_size * replicas
        assert size <= chips, f"{size} chips, there are {chips}"
        assert args.max_num_seqs is None or args.max_num_seqs >= 1, "no sequences"
        if args.max_num_batched_tokens and args.max_model_len and args.enable_chunked_prefill is False:
            assert args.max_num_batched_tokens >= args.max_model_len, "a prompt does not fit in a step"
        if args.max_num_batched_tokens and args.max_num_seqs:
            assert args.max_num_batched_tokens >= args.max_num_seqs, (
                f"max_num_batched_tokens ({args.max_num_batched_tokens}) must be greater than or equal to "
                f"max_num_seqs ({args.max_num_seqs})")


class Sglang:
    request = "serve MODEL --on CLUSTER --prompt 1024 --output 256"
    clusters = SERVERS

    def __init__(self, root):
        Release(f"{root}/python", ["sglang.srt.arg_groups", "sglang.srt.server_args",
                                   "sglang.srt.model_executor.cuda_graph_config"],
                "sglang torch transformers huggingface_hub".split())
        import sglang.srt.server_args as module

        self.module = module

    def check(self, script, model, cluster):
        parser = argparse.ArgumentParser(allow_abbrev=False)
        self.module.ServerArgs.add_cli_args(parser)
        args = parsed(parser, words_of(script))
        chips = int((re.search(r":(\d+)", cluster) or [0, 1])[1])
        replicas = 1 if args.enable_dp_attention else args.dp_size
        size = args.tp_size * args.pp_size * replicas
        assert size <= chips, f"{size} chips, there are {chips}"
        # Of ServerArgs.check_server_args and its handlers.
        assert args.tp_size * args.pp_size % args.nnodes == 0, "tp_size must be divisible by number of nodes"
        if args.enable_dp_attention:
            assert args.tp_size % args.dp_size == 0, "tp_size must be a multiple of dp_size"
        assert args.ep_size <= args.tp_size and args.tp_size % args.ep_size == 0, "ep_size must divide tp_size"
        if args.chunked_prefill_size and args.chunked_prefill_size > 0:
            assert args.chunked_prefill_size % (args.page_size or 1) == 0, (
                "chunked_prefill_size must be divisible by page_size")
        assert not (args.dp_size > 1 and args.nnodes != 1 and not args.enable_dp_attention), (
            "multi-node data parallel is not supported unless dp attention!")


class Again:
    """Without ROOT: what is read back is written as the same script."""

    request, clusters = Megatron.request, GPUS

    def __init__(self, assay, program, where):
        self.assay, self.program, self.where = assay, program, where

    def check(self, script, model, cluster):
        with tempfile.NamedTemporaryFile("w", suffix=".sh") as file:
            file.write(script)
            file.flush()
            answer = subprocess.run([self.assay, self.request.split()[0], "--from", file.name, "--on", cluster, "--emit",
                                     self.program, *self.where], capture_output=True, text=True)
        assert answer.returncode == 0, answer.stderr
        said = lambda text: [line for line in re.sub(r"(?m)(^|\s+)# .*", "", text).split("\n") if line]
        first, again = said(script), said(answer.stdout)
        changed = [line for line in again if line not in first] + [line for line in first if line not in again]
        assert first == again, f"read and written again it differs in {changed[:4]}"


PROGRAMS = {"megatron-core": Megatron, "torchtitan": Torchtitan, "maxtext": MaxText, "vllm": Vllm, "sglang": Sglang}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("program")
    options.add_argument("root", nargs="?")
    options.add_argument("--assay", default="build/release/assay")
    options.add_argument("--catalogue")
    options.add_argument("--models", nargs="*", default=MODELS)
    options.add_argument("--on", nargs="*")
    given = options.parse_args()
    warnings.simplefilter("ignore")
    where = ["--catalogue", given.catalogue] if given.catalogue else []
    if given.root:
        program = PROGRAMS[given.program](given.root)
    else:
        program = Again(given.assay, given.program, where)
        known = PROGRAMS.get(given.program, Vllm if given.program == "tensorrt-llm" else Megatron)
        program.request, program.clusters = known.request, known.clusters
        if given.program in ("trl", "axolotl"):
            program.request += " --lora 16"
    totals, reasons = collections.Counter(), collections.Counter()
    for model in given.models:
        for cluster in given.on or program.clusters:
            words = program.request.replace("MODEL", model).replace("CLUSTER", cluster).split()
            answer = subprocess.run([given.assay, *words, "--emit", given.program, *where], capture_output=True,
                                    text=True)
            if answer.returncode == 3:
                totals["does not fit"] += 1
            elif answer.returncode != 0:
                totals["refused"] += 1
                text = " ".join(answer.stderr.split("\nhint")[0].split())
                reasons[re.sub(rf"^error: --emit {given.program}: ", "", text)] += 1
            else:
                try:
                    with contextlib.redirect_stdout(io.StringIO()):
                        program.check(answer.stdout, model, cluster)
                    totals["starts"] += 1
                except Exception as error:
                    totals["does not start"] += 1
                    print(f"{model} on {cluster}: {type(error).__name__}: {' '.join(str(error).split())[:400]}")
    for what, count in totals.most_common():
        print(f"{count:4} {what}")
    for reason, count in reasons.most_common():
        print(f"{count:4} refused: {reason}")
    return 1 if totals["does not start"] else 0


if __name__ == "__main__":
    sys.exit(main())
