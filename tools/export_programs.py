#!/usr/bin/env python3
"""Export whole training steps from JAX, as fixtures: programs, their sidecars and recordings.

    export_programs.py                  every fixture
    export_programs.py gpt-tiny mlp     these
    export_programs.py --list           what there is
    export_programs.py --papers         the programs of the papers' experiments (bench/papers), not the fixtures
    export_programs.py --measured FILE.csv --out DIR   the programs that a table of measured steps needs (bench/measured)
    export_programs.py --kernels        the programs that bench/kernels times, not the fixtures
    export_programs.py --gpu            the programs that tools/measure_on_gpu.py times, with their StableHLO, not the fixtures
    export_programs.py --check          read the files again and see that they agree with each other
    export_programs.py --opcodes        the opcodes that occur in them

For a fixture NAME it writes, into tests/programs or the folder given with --out,

    NAME.hlo.gz                   HLO text as JAX hands it to XLA, before any optimisation
    NAME.inputs.json              names, roles and recipes of the inputs, names and roles of the outputs
    NAME.recorded.safetensors.gz  one step: inputs and outputs, unless the fixture is for planning only

The formats are in docs/programs.md, the versions it runs with in tools/export_requirements.txt. With the
same versions a second run writes the same files, byte for byte.
"""

import argparse
import collections
import gzip
import json
import os
import pathlib
import re
import sys
import zlib
from dataclasses import dataclass

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

import measured_programs
from models.attention import attention
from models import layers
from models.bert import bert
from models.densenet import densenet
from models.dnabert import dnabert
from models.forward_forward import forward_forward
from models.gpt import gpt
from models.gshard import gshard
from models.inception import inception
from models.llama import llama
from models.lstm import lstm
from models.mamba import mamba
from models.mixtral import mixtral
from models.mlp import mlp
from models.recommend import dlrm, ncf
from models.resnet import resnet
from models.spec import Model
from models.t5 import t5
from models.training import Adagrad, Momentum, Optimizer, Training
from models.unet import unet
from models.vgg import vgg
from models.vit import vit

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests" / "programs"
STABLEHLO = ["mlp", "gpt-tiny", "bert-tiny", "vgg-tiny", "lstm-lm-tiny", "moe-mixtral-tiny-scan", "gpt-dropout-tiny"]
PAPERS_PROGRAMS = ROOT / "bench" / "papers" / "programs"
KERNELS_PROGRAMS = ROOT / "build" / "kernels"
GPU_PROGRAMS = ROOT / "build" / "gpu"

# --- The fixtures ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fixture:
    name: str
    model: Model
    optimizer: Optimizer | Momentum | Adagrad = Optimizer()
    recorded: bool = True
    cudnn: bool = False  # attention is cuDNN's, so that the program is one for CUDA

    def lower(self):
        with layers.use_cudnn(self.cudnn):
            return Training(self.model, self.optimizer).lower("cuda" if self.cudnn else "cpu")


MLP = dict(widths=(64, 128, 128, 16), batch=32)
MLP_AUTODDL = dict(widths=(32768, 16384, 4096, 2048, 512))  # figure 8
GPT_TINY = dict(depth=2, width=32, heads=8, vocabulary=64, length=16, batch=8)
BERT_TINY = dict(depth=2, width=32, heads=8, vocabulary=64, length=16, masked=8, batch=8)
T5_TINY = dict(
    depth=2, width=32, heads=8, feedforward=64, vocabulary=64, buckets=16, reach=16, lengths=(16, 8), batch=8
)
GPT_DEMO = dict(depth=2, width=128, heads=8, vocabulary=256, length=128, batch=16)
GPT_124M = dict(depth=12, width=768, heads=12, vocabulary=50304, length=1024, batch=8, compute=jnp.bfloat16)
GPT_175B = dict(depth=96, width=12288, heads=96, vocabulary=51200, length=2048, batch=64, compute=jnp.bfloat16)
LLAMA3_8B = dict(
    depth=32,
    width=4096,
    heads=32,
    groups=8,
    feedforward=14336,
    vocabulary=128256,
    length=8192,
    batch=16,
    compute=jnp.bfloat16,
)

RESNET_TINY = dict(depths=(2, 2), width=8, size=32, classes=10, batch=8)
RESNET50 = dict(depths=(3, 4, 6, 3), width=64, size=224, classes=1000, batch=256)
WIDE_RESNET = dict(depths=(3, 4, 6, 3), width=320, widening=2, size=224, classes=1024, batch=256)
VGG_TINY = dict(depths=(2, 2), widths=(8, 16), dense=(48, 32), size=16, classes=10, batch=8)
VGG = dict(widths=(64, 128, 256, 512, 512), dense=(4096, 4096), size=224)
UNET_TINY = dict(width=4, multipliers=(1, 2), depth=1, attended=(1,), head_size=4, groups=2, size=8, batch=8)
UNET = dict(
    width=256,
    multipliers=(1, 2, 2, 2),
    depth=3,
    attended=(1, 2),
    head_size=64,
    groups=32,
    size=32,
    batch=2048,
    compute=jnp.bfloat16,
)
VIT_TINY = dict(depth=2, width=24, heads=4, patch=4, size=16, classes=10, batch=8)
VIT_LARGE = dict(depth=24, width=1024, heads=16, patch=16, size=224, classes=1000, batch=1024, compute=jnp.bfloat16)
LLAMA_TINY = dict(depth=2, width=32, heads=4, groups=2, feedforward=64, vocabulary=64, length=16, batch=8)
GPT_ODD = dict(depth=1, width=48, heads=3, hidden=90, vocabulary=509, length=20, batch=6, tied=True)
GSHARD_TINY = dict(depth=2, width=16, heads=4, hidden=32, experts=4, capacity=6, vocabulary=64, length=16, batch=8)
GSHARD_10B = dict(
    depth=16,
    width=1536,
    heads=16,
    hidden=12288,
    experts=32,
    capacity=64,
    vocabulary=51200,
    length=1024,
    batch=256,
    compute=jnp.bfloat16,
)
MIXTRAL_TINY = dict(depth=2, width=16, heads=4, groups=2, hidden=24, experts=4, vocabulary=64, length=16, batch=8)
MIXTRAL_8X7B = dict(
    depth=32,
    width=4096,
    heads=32,
    groups=8,
    hidden=14336,
    experts=8,
    pools=32,
    capacity=640,
    vocabulary=32000,
    length=2048,
    batch=32,
    compute=jnp.bfloat16,
)
DNABERT_TINY = dict(depth=1, width=8, heads=2, length=512, batch=2)
DNABERT = dict(depth=12, width=1024, heads=16, length=4096, batch=32, compute=jnp.bfloat16)
MAMBA_TINY = dict(depth=2, width=16, states=8, vocabulary=64, length=16, batch=8)
MAMBA_130M = dict(depth=24, width=768, states=16, vocabulary=50280, length=2048, batch=32, compute=jnp.bfloat16)
NCF_TINY = dict(users=600, items=300, width=8, dense=(16, 8), batch=64)
DLRM_TINY = dict(rows=(997, 512, 100, 64, 7), width=8, features=13, bottom=(32, 16), top=(32, 16), batch=32, bag=2)
CRITEO_ROWS = (
    *(39884406, 39043, 17289, 7420, 20263, 3, 7120, 1543, 63, 38532951, 2953546, 403346, 10, 2208, 11938, 155),
    *(4, 976, 14, 39979771, 25641295, 39664984, 585935, 12972, 108, 36),
)
DLRM = dict(rows=CRITEO_ROWS, width=128, features=13, bottom=(512, 256), top=(1024, 1024, 512, 256), batch=65536)
LSTM_TINY = dict(depth=2, width=16, cells=32, vocabulary=100, length=12, batch=8)
LSTM_LM1B = dict(depth=1, width=512, cells=2048, vocabulary=793471, length=20, batch=1024)
FORWARD_FORWARD_TINY = dict(widths=(64, 64, 64, 48), batch=32)

CLIPPED = Optimizer(clip=1.0)
LARGE = Optimizer(learning_rate=3e-4, weight_decay=0.1, clip=1.0)

FIXTURES = [
    Fixture("mlp", mlp(**MLP)),
    Fixture("mlp-clip", mlp(**MLP, activation="gelu", task="classification"), CLIPPED),
    Fixture("mlp-bf16", mlp(**MLP, compute=jnp.bfloat16)),
    Fixture("mlp-128-nodes", mlp(**MLP_AUTODDL, batch=8 * 128), recorded=False),
    Fixture("mlp-4096-nodes", mlp(**MLP_AUTODDL, batch=8 * 4096), recorded=False),
    Fixture("gpt-tiny", gpt(**GPT_TINY)),
    Fixture("gpt-tiny-clip", gpt(**GPT_TINY), CLIPPED),
    Fixture("gpt-tiny-scan", gpt(**GPT_TINY, scan=True)),
    Fixture("gpt-tiny-scan-clip", gpt(**GPT_TINY, scan=True), CLIPPED),
    Fixture("bert-tiny", bert(**BERT_TINY)),
    Fixture("bert-tiny-clip", bert(**BERT_TINY), CLIPPED),
    Fixture("t5-tiny", t5(**T5_TINY)),
    Fixture("t5-tiny-clip", t5(**T5_TINY), CLIPPED),
    Fixture("gpt", gpt(**GPT_DEMO)),
    Fixture("gpt-scan", gpt(**GPT_DEMO, scan=True)),
    Fixture("resnet-tiny", resnet(**RESNET_TINY), Momentum()),
    Fixture("vgg-tiny", vgg(**VGG_TINY), Momentum()),
    Fixture("unet-tiny", unet(**UNET_TINY), CLIPPED),
    Fixture("vit-tiny", vit(**VIT_TINY), CLIPPED),
    Fixture("llama-gqa-tiny", llama(**LLAMA_TINY), CLIPPED),
    Fixture("gpt-dropout-tiny", gpt(**GPT_TINY | dict(width=16, heads=4), dropout=0.1)),
    Fixture("odd-tiny", gpt(**GPT_ODD), Momentum()),
    Fixture("moe-gshard-tiny", gshard(**GSHARD_TINY), CLIPPED),
    Fixture("moe-mixtral-tiny", mixtral(**MIXTRAL_TINY, pools=1, capacity=56), CLIPPED),
    Fixture("moe-mixtral-tiny-scan", mixtral(**MIXTRAL_TINY, pools=8, capacity=6, scan=True), CLIPPED),
    Fixture("dnabert-tiny", dnabert(**DNABERT_TINY), Momentum()),
    Fixture("mamba-tiny", mamba(**MAMBA_TINY)),
    Fixture("mamba-tiny-associative", mamba(**MAMBA_TINY, associative=True)),
    Fixture("ncf-tiny", ncf(**NCF_TINY)),
    Fixture("dlrm-tiny", dlrm(**DLRM_TINY), Adagrad()),
    Fixture("lstm-lm-tiny", lstm(**LSTM_TINY), Adagrad(learning_rate=0.2)),
    Fixture("forward-forward-tiny", forward_forward(**FORWARD_FORWARD_TINY)),
    Fixture("gpt-124m", gpt(**GPT_124M), LARGE, recorded=False),
    Fixture("gpt-124m-scan", gpt(**GPT_124M, scan=True), LARGE, recorded=False),
    Fixture("gpt-175b", gpt(**GPT_175B), LARGE, recorded=False),
    Fixture("llama3-8b", llama(**LLAMA3_8B), LARGE, recorded=False),
    Fixture("resnet50", resnet(**RESNET50), Momentum(), recorded=False),
    Fixture("wide-resnet", resnet(**WIDE_RESNET), Momentum(), recorded=False),
    Fixture("vgg13", vgg(**VGG, depths=(2, 2, 2, 2, 2), classes=1000, batch=256), Momentum(), recorded=False),
    Fixture("vgg19", vgg(**VGG, depths=(2, 2, 4, 4, 4), classes=1000000, batch=1024), Momentum(), recorded=False),
    Fixture("unet", unet(**UNET), LARGE, recorded=False),
    Fixture("vit", vit(**VIT_LARGE), LARGE, recorded=False),
    Fixture("moe-gshard", gshard(**GSHARD_10B), LARGE, recorded=False),
    Fixture("moe-mixtral", mixtral(**MIXTRAL_8X7B, scan=True), LARGE, recorded=False),
    Fixture("dnabert", dnabert(**DNABERT), LARGE, recorded=False),
    Fixture("mamba-130m", mamba(**MAMBA_130M), LARGE, recorded=False),
    Fixture("dlrm", dlrm(**DLRM), Adagrad(), recorded=False),
    Fixture("lstm-lm", lstm(**LSTM_LM1B), Adagrad(learning_rate=0.2), recorded=False),
]

# --- The papers' experiments, for planning only (docs/papers.md) ---------------------------------------------------


def paper_gpt(depth, width, heads, length, batch, compute=jnp.float32, fused=True):
    return gpt(
        depth=depth,
        width=width,
        heads=heads,
        length=length,
        batch=batch,
        vocabulary=51200,
        tied=True,
        fused=fused,
        compute=compute,
    )


def paper_fixture(name, model, optimizer=Optimizer()):
    return Fixture(name, model, optimizer, recorded=False)


def paper_vgg13(batch, compute=jnp.float32):
    return vgg(**VGG, depths=(2, 2, 2, 2, 2), classes=1000, batch=batch, compute=compute)


AUTODDL = [
    paper_fixture("attention-8192", attention(depth=4, width=8192, heads=64, vocabulary=1024, length=1024, batch=1024)),
    *(paper_fixture(f"vgg13-batch-{batch}", paper_vgg13(batch), Momentum()) for batch in (128, 256, 512)),
    *(
        paper_fixture(f"vgg13-bf16-batch-{batch}", paper_vgg13(batch, jnp.bfloat16), Momentum())
        for batch in (128, 256)
    ),
    *(paper_fixture(f"gpt-{depth}x8192", paper_gpt(depth, 8192, 64, 1024, 1024)) for depth in (8, 20, 44)),
    paper_fixture("gpt-20x8192-batch-512", paper_gpt(20, 8192, 64, 1024, 512)),
    paper_fixture("gpt-36x4096-batch-512", paper_gpt(36, 4096, 32, 1024, 512)),
    paper_fixture("gpt-36x4096", paper_gpt(36, 4096, 32, 1024, 1024)),
    paper_fixture("gpt-24x1024", paper_gpt(24, 1024, 16, 1024, 2048, jnp.bfloat16)),
    paper_fixture("gpt-28x4096", paper_gpt(28, 4096, 32, 1024, 2048, jnp.bfloat16)),
]
AXONN_GPT = {
    "5b": (24, 4096, 32),
    "10b": (32, 5120, 40),
    "20b": (32, 7168, 56),
    "40b": (38, 9216, 72),
    "80b": (42, 12288, 96),
}
AXONN = [
    *(
        paper_fixture(f"gpt-{name}", paper_gpt(*sizes, 2048, 2048, jnp.bfloat16), LARGE)
        for name, sizes in AXONN_GPT.items()
    ),
    paper_fixture("gpt-20b-batch-16", paper_gpt(*AXONN_GPT["20b"], 2048, 16, jnp.bfloat16), LARGE),
    paper_fixture("gpt-20b-4-layers", paper_gpt(4, 7168, 56, 2048, 32, jnp.bfloat16), LARGE),
    *(paper_fixture(f"unet-{width}", unet(**UNET | dict(width=width)), LARGE) for width in (416, 512, 768, 1024)),
]
RHINO_GPT = {
    "medium": (24, 1024, 16),
    "large": (24, 1536, 16),
    "xl": (24, 2048, 32),
    "2.7b": (32, 2560, 32),
    "6.7b": (32, 4096, 32),
}
RHINO_RESNET = {  # width, widening, layers of a block
    "1.3b": (320, 2, (3, 4, 6, 3)),
    "2.6b": (448, 2, (3, 4, 6, 3)),
    "6b": (640, 2, (3, 4, 6, 3)),
    "12b": (320, 5, (3, 4, 23, 3)),  # the paper has 12, which makes 82 G
}
# depth, width, hidden, experts, and the devices of section 7.2; the paper is all in full precision
RHINO_MOE = {
    "1": (8, 768, 6144, 8),
    "2": (16, 768, 6144, 8),
    "4": (16, 768, 6144, 16),
    "8": (16, 1024, 8192, 16),
    "16": (16, 1536, 12288, 32),
}


def rhino_moe(devices, batch):
    depth, width, hidden, experts = RHINO_MOE[devices]
    sizes = dict(depth=depth, width=width, hidden=hidden, experts=experts, capacity=2 * 1024 // experts, batch=batch)
    return gshard(**GSHARD_10B | sizes | dict(compute=jnp.float32))


RHINO = [
    *(paper_fixture(f"moe-{devices}-batch-256", rhino_moe(devices, 256)) for devices in RHINO_MOE),
    *(paper_fixture(f"moe-{devices}-batch-8", rhino_moe(devices, 8)) for devices in ("1", "2", "4", "8")),
    paper_fixture("unet-33m", unet(**UNET | dict(width=104, head_size=52, groups=8, batch=128, compute=jnp.float32))),
    *(paper_fixture(f"gpt-{name}", paper_gpt(*RHINO_GPT[name], 1024, 4)) for name in ("medium", "large", "xl", "2.7b")),
    *(paper_fixture(f"gpt-{name}-batch-64", paper_gpt(*sizes, 1024, 64)) for name, sizes in RHINO_GPT.items()),
    *(
        paper_fixture(
            f"wide-resnet-{name}",
            resnet(**WIDE_RESNET | dict(width=width, widening=widening, depths=depths, batch=4)),
            Momentum(),
        )
        for name, (width, widening, depths) in RHINO_RESNET.items()
    ),
    paper_fixture(
        "gpt-72x512", paper_gpt(72, 512, 8, 1024, 8, jnp.float16, fused=False), Optimizer(clip=1.0, scaled=True)
    ),
]
# 8 sequences, 32 images and 65536 clicks per device, on 8, 11 and 16; embeddings are as wide as 122 M parameters make it
BERT_LARGE = dict(depth=24, width=1024, heads=16, vocabulary=30522, length=128, masked=20)
VGG16 = VGG | dict(depths=(2, 2, 3, 3, 3), classes=1000)
NCF_122M = dict(users=138493, items=26744, width=368, dense=(256, 256, 128, 64))
RESNET101 = RESNET50 | dict(depths=(3, 4, 23, 3))
DENSENET121 = dict(depths=(6, 12, 24, 16), growth=32, width=64, size=224, classes=1000)
INCEPTION_V3 = dict(width=32, size=299, classes=1000)
AUTODIST = [
    *(paper_fixture(f"bert-large-batch-{8 * n}", bert(**BERT_LARGE, batch=8 * n)) for n in (8, 11, 16)),
    *(paper_fixture(f"vgg16-batch-{32 * n}", vgg(**VGG16, batch=32 * n), Momentum()) for n in (8, 11, 16)),
    *(paper_fixture(f"ncf-122m-batch-{65536 * n}", ncf(**NCF_122M, batch=65536 * n)) for n in (11, 16)),
    paper_fixture("resnet101-batch-512", resnet(**RESNET101 | dict(batch=512)), Momentum()),
    paper_fixture("densenet121-batch-512", densenet(**DENSENET121, batch=512), Momentum()),
    paper_fixture("inception-v3-batch-512", inception(**INCEPTION_V3, batch=512), Momentum()),
]
# No paper's: dimensions that 10,000 = 2^4 x 5^4 devices divide (bench/plan --sizes).
SIZES = [paper_fixture("gpt-40x10240", paper_gpt(40, 10240, 80, 2000, 5000, jnp.bfloat16), LARGE)]
PAPERS = AUTODDL + AXONN + RHINO + AUTODIST + SIZES

# --- Steps of 0.1 to 3 seconds on two cores, to time the executor with (bench/kernels) ----------------------------


GPT_512 = dict(depth=2, width=512, heads=8, vocabulary=8192, length=256, batch=4)
LLAMA_512 = dict(depth=2, width=512, heads=8, groups=4, feedforward=1408, vocabulary=8192, length=256, batch=4)
UNET_32 = dict(width=32, multipliers=(1, 2, 2), depth=1, attended=(1,), head_size=32, groups=8, size=32, batch=8)
VIT_384 = dict(depth=4, width=384, heads=6, patch=16, size=224, classes=1000, batch=4)
MAMBA_256 = dict(depth=2, width=256, states=16, vocabulary=4096, length=256, batch=4)
LSTM_512 = dict(depth=1, width=512, cells=1024, vocabulary=8192, length=32, batch=32)
MIXTRAL_256 = dict(depth=2, width=256, heads=8, groups=4, hidden=512, experts=8, vocabulary=4096, length=128, batch=8)
GSHARD_256 = dict(depth=2, width=256, heads=8, hidden=1024, experts=8, capacity=32, vocabulary=4096, length=128, batch=8)
DLRM_64 = dict(
    rows=(100000, 40000, 20000, 7000, 1000), width=64, features=13, bottom=(512, 256), top=(512, 256), batch=4096
)


def timed_fixture(name, model, optimizer=Optimizer(clip=1.0)):
    return Fixture(name, model, optimizer, recorded=False)


KERNELS = [
    timed_fixture("gpt", gpt(**GPT_512)),
    timed_fixture("gpt-long", gpt(**GPT_512 | dict(length=1024, batch=1))),
    timed_fixture("gpt-scan", gpt(**GPT_512, scan=True)),
    timed_fixture("gpt-bf16", gpt(**GPT_512, compute=jnp.bfloat16)),
    timed_fixture("gpt-dropout", gpt(**GPT_512, dropout=0.1)),
    timed_fixture("llama", llama(**LLAMA_512)),
    timed_fixture("llama-bf16", llama(**LLAMA_512, compute=jnp.bfloat16)),
    timed_fixture(
        "resnet", resnet(depths=(2, 2, 2, 2), width=64, size=64, classes=1000, batch=8), Momentum()
    ),
    timed_fixture("unet", unet(**UNET_32)),
    timed_fixture("vit", vit(**VIT_384)),
    timed_fixture("mamba", mamba(**MAMBA_256)),
    timed_fixture("lstm", lstm(**LSTM_512), Adagrad(learning_rate=0.2)),
    timed_fixture("moe-mixtral-scan", mixtral(**MIXTRAL_256, pools=8, capacity=48, scan=True)),
    timed_fixture("moe-gshard", gshard(**GSHARD_256)),
    timed_fixture("dlrm", dlrm(**DLRM_64), Adagrad()),
]

# --- Steps of some milliseconds on one GPU, to hold predictions against (tools/measure_on_gpu.py) -----------------

LLAMA_2048 = dict(
    depth=8,
    width=2048,
    heads=16,
    groups=8,
    feedforward=5632,
    vocabulary=32000,
    length=2048,
    batch=4,
    fused=True,
    compute=jnp.bfloat16,
)
LLAMA_4096 = dict(depth=3, width=4096, heads=32, groups=8, feedforward=14336, length=4096, batch=1)
BF16 = dict(compute=jnp.bfloat16)
BERT_768 = dict(depth=12, width=768, heads=12, vocabulary=30528, length=512, masked=80, batch=16)
T5_768 = dict(
    depth=6, width=768, heads=12, feedforward=2048, vocabulary=32128, buckets=32, reach=128, lengths=(512, 128), batch=16
)


def gpu_fixture(name, model, optimizer=LARGE, cudnn=False):
    return Fixture(name, model, optimizer, recorded=False, cudnn=cudnn)


GPU = [
    gpu_fixture("gpt-124m", gpt(**GPT_124M)),
    gpu_fixture("gpt-124m-cudnn", gpt(**GPT_124M), cudnn=True),
    gpu_fixture("llama-2048", llama(**LLAMA_2048)),
    gpu_fixture("llama-2048-cudnn", llama(**LLAMA_2048), cudnn=True),
    gpu_fixture("gpt-124m-scan", gpt(**GPT_124M, scan=True)),
    gpu_fixture("gpt-512", gpt(**GPT_512)),
    gpu_fixture("vit-base", vit(**VIT_LARGE | dict(depth=12, width=768, heads=12, batch=64))),
    gpu_fixture("resnet50", resnet(**RESNET50 | dict(batch=64)), Momentum()),
    gpu_fixture("unet", unet(**UNET | dict(width=128, depth=1, batch=64))),
    gpu_fixture("mixtral", mixtral(**MIXTRAL_256 | dict(width=1024, hidden=3584, length=1024, batch=4) | BF16, pools=4, capacity=320)),
    gpu_fixture("gshard", gshard(**GSHARD_256 | dict(width=1024, hidden=4096, length=1024, capacity=256, batch=8) | BF16)),
    gpu_fixture("gpt-350m-cudnn", gpt(**GPT_124M | dict(depth=24, width=1024, heads=16)), cudnn=True),
    gpu_fixture("llama-4096-cudnn", llama(**LLAMA_2048 | LLAMA_4096), cudnn=True),
    gpu_fixture("bert", bert(**BERT_TINY | BERT_768)),
    gpu_fixture("vgg13", vgg(**VGG, depths=(2, 2, 2, 2, 2), classes=1000, batch=64, **BF16), Momentum()),
    gpu_fixture("t5", t5(**T5_TINY | T5_768)),
    gpu_fixture("lstm", lstm(**LSTM_512), Adagrad(learning_rate=0.2)),
    gpu_fixture("dlrm", dlrm(**DLRM_64), Adagrad()),
    gpu_fixture("mamba", mamba(**MAMBA_256 | BF16)),
]

# --- Writing -----------------------------------------------------------------------------------------------------

HLO_TYPES = {"float32": "f32", "bfloat16": "bf16", "float16": "f16", "int32": "s32", "uint32": "u32", "bool": "pred"}
SAFETENSORS_TYPES = {
    "float32": "F32",
    "bfloat16": "BF16",
    "float16": "F16",
    "int32": "I32",
    "uint32": "U32",
    "bool": "BOOL",
}


def export(fixture, folder):
    training = Training(fixture.model, fixture.optimizer)
    text = fixture.lower().compiler_ir("hlo").as_hlo_text(print_large_constants=True)
    program_path, sidecar_path, recording_path = paths(folder, fixture.name)
    write_gzip(program_path, text.encode())
    sidecar_path.write_text(sidecar_text(sidecar(fixture, training)))
    recording_path.unlink(missing_ok=True)
    if fixture.recorded:
        write_gzip(recording_path, safetensors(record(fixture, training)))


def export_stablehlo(fixture, folder):
    lowered = fixture.lower()
    write_gzip(folder / f"{fixture.name}.mlir.gz", lowered.as_text().encode())
    if fixture.name == "mlp":
        generic = lowered.compiler_ir().operation.get_asm(print_generic_op_form=True)
        write_gzip(folder / f"{fixture.name}-generic.mlir.gz", generic.encode())


def export_protobuf(fixture, folder):
    """The HLO that tests/programs has as text, as a serialised HloModuleProto."""
    module = fixture.lower().compiler_ir("hlo")
    write_gzip(folder / f"{fixture.name}.pb.gz", module.as_serialized_hlo_module_proto())


def export_compiled(fixture, folder):
    """What XLA's CPU backend makes of the program of tests/programs: fusions, layouts, bitcasts."""
    compiled = fixture.lower().compile()
    (module,) = compiled.runtime_executable().hlo_modules()
    write_gzip(folder / f"{fixture.name}.pb.gz", module.as_serialized_hlo_module_proto())
    if "{...}" not in compiled.as_text():  # it leaves large constants out
        write_gzip(folder / f"{fixture.name}.hlo.gz", compiled.as_text().encode())


def sidecar(fixture, training):
    state, inputs = training.state(), training.inputs()
    document = {
        "format": "shardwright-inputs",
        "version": 1,
        "program": fixture.name,
        "learning_rate": fixture.optimizer.learning_rate,
        "inputs": [
            {
                "index": i,
                "name": value.name,
                "shape": list(value.array.shape),
                "type": HLO_TYPES[jnp.dtype(value.array.dtype).name],
                "role": value.role,
                "init": value.array.init,
                "random": value.array.random,
            }
            for i, value in enumerate(inputs)
        ],
        "outputs": [
            {"index": i, "name": value.name, "role": value.role, "input": i if i < len(state) else None}
            for i, value in enumerate(training.outputs())
        ],
    }
    if fixture.model.vocabulary is not None:
        document["tokens"] = {"input": len(state), "vocabulary": fixture.model.vocabulary}
    return document


def sidecar_text(document):
    """JSON with one line per input and output."""
    fields = []
    for key, value in document.items():
        text = json.dumps(value)
        if isinstance(value, list):
            text = "[\n" + ",\n".join("  " + json.dumps(item) for item in value) + "\n ]"
        fields.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(fields) + "\n}\n"


def record(fixture, training):
    """One step on random inputs. Every operation rounds to its own type; XLA's default may keep bf16 in f32."""
    generator = np.random.default_rng(zlib.crc32(fixture.name.encode()))
    inputs = [draw(generator, value.array) for value in training.inputs()]
    with jax.default_matmul_precision("highest"):
        step = training.lower().compile(compiler_options={"xla_allow_excess_precision": False})
    outputs = jax.tree.leaves(step(*training.arguments([jnp.asarray(a) for a in inputs])))
    tensors = {f"input.{i}": a for i, a in enumerate(inputs)}
    return tensors | {f"output.{i}": np.asarray(a) for i, a in enumerate(outputs)}


def draw(generator, array):
    """An array filled as `random` says. Reals are rounded to bf16, so that they compress."""
    recipe, shape = array.random, array.shape
    values = {
        "zeros": lambda: np.zeros(shape),
        "ones": lambda: np.ones(shape),
        "constant": lambda: np.full(shape, recipe["value"]),
        "normal": lambda: generator.normal(recipe["mean"], recipe["std"], shape),
        "uniform": lambda: generator.uniform(recipe["low"], recipe["high"], shape),
        "integers": lambda: generator.integers(recipe["low"], recipe["high"], shape),
    }[recipe["kind"]]()
    dtype = np.dtype(array.dtype)
    if jnp.issubdtype(dtype, jnp.floating):
        values = np.asarray(values).astype(ml_dtypes.bfloat16)
    return np.asarray(values).astype(dtype)


def safetensors(tensors):
    header, offset = {}, 0
    for name, array in tensors.items():
        header[name] = {
            "dtype": SAFETENSORS_TYPES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *(array.tobytes() for array in tensors.values())])


def write_gzip(path, content):
    path.write_bytes(gzip.compress(content, compresslevel=9, mtime=0))


def paths(folder, name):
    return folder / f"{name}.hlo.gz", folder / f"{name}.inputs.json", folder / f"{name}.recorded.safetensors.gz"


# --- Reading back ------------------------------------------------------------------------------------------------

INSTRUCTION = re.compile(r"^\s+(?:ROOT )?\S+ = (?:\(.*?\)|\S+) ([a-z][\w-]*)\(", re.MULTILINE)
PARAMETER = re.compile(r"^\s+\S+ = (\w+)\[([\d,]*)\]\S* parameter\((\d+)\)", re.MULTILINE)
ALIAS = re.compile(r"\{(\d+)\}: \((\d+), \{\}, (?:may|must)-alias\)")


def read_program(folder, name):
    return gzip.decompress(paths(folder, name)[0].read_bytes()).decode()


def check(fixture, folder):
    """Sentences about what is wrong with a fixture's files."""
    text = read_program(folder, fixture.name)
    document = json.loads(paths(folder, fixture.name)[1].read_text())
    faults = check_program(text, document)
    if fixture.recorded:
        faults += check_recording(gzip.decompress(paths(folder, fixture.name)[2].read_bytes()), document)
    return [f"{fixture.name}: {fault}" for fault in faults]


def check_program(text, document):
    header, entry = text.partition("\n")[0], text.partition("\nENTRY ")[2]
    parameters = {int(i): (kind, shape) for kind, shape, i in PARAMETER.findall(entry)}
    described = {v["index"]: (v["type"], ",".join(map(str, v["shape"]))) for v in document["inputs"]}
    aliases = {int(output): int(i) for output, i in ALIAS.findall(header)}
    described_aliases = {v["index"]: v["input"] for v in document["outputs"] if v["input"] is not None}
    findings = [
        (header.startswith("HloModule "), "the header is missing"),
        ("{...}" not in text, "a constant is elided"),
        ("input_output_alias=" in header, "input_output_alias is missing"),
        (parameters == described, "the program's parameters are not the sidecar's inputs"),
        (aliases == described_aliases, "the program's aliases are not the sidecar's"),
        ((document["format"], document["version"]) == ("shardwright-inputs", 1), "the sidecar's format is another"),
    ]
    return [fault for right, fault in findings if not right]


def check_recording(content, document):
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    end = max(tensor["data_offsets"][1] for tensor in header.values())
    names = [f"input.{v['index']}" for v in document["inputs"]] + [f"output.{v['index']}" for v in document["outputs"]]
    shapes_agree = all(header.get(f"input.{v['index']}", {}).get("shape") == v["shape"] for v in document["inputs"])
    loss = header[f"output.{len(document['outputs']) - 1}"]["data_offsets"]
    findings = [
        (list(header) == names, "the recording's tensors are not the sidecar's inputs and outputs"),
        (shapes_agree, "a recorded input has another shape than the sidecar says"),
        (8 + size + end == len(content), "the recording has another length than its header says"),
        (np.isfinite(np.frombuffer(content[8 + size :][slice(*loss)], "<f4")).all(), "the recorded loss is not finite"),
    ]
    return [fault for right, fault in findings if not right]


def describe(fixture, folder):
    """A line of the table: instructions, parameters of the entry, weights, and bytes of the files."""
    text = read_program(folder, fixture.name)
    instructions = len(INSTRUCTION.findall(text))
    values = json.loads(paths(folder, fixture.name)[1].read_text())["inputs"]
    weights = sum(int(np.prod(v["shape"], dtype=object)) for v in values if v["role"] == "parameter")
    sizes = [path.stat().st_size if path.exists() else 0 for path in paths(folder, fixture.name)]
    row = [instructions, len(values), weights, len(text), sizes[0], sizes[2]]
    return f"{fixture.name:20}" + "".join(f"{number:>16,}" for number in row)


def print_table(fixtures, folder):
    titles = ["instructions", "inputs", "weights", "text bytes", "text.gz bytes", "recording bytes"]
    print(f"{'program':20}" + "".join(f"{title:>16}" for title in titles))
    for fixture in fixtures:
        print(describe(fixture, folder))


def print_opcodes(fixtures, folder):
    total = collections.Counter()
    for fixture in fixtures:
        counts = collections.Counter(INSTRUCTION.findall(read_program(folder, fixture.name)))
        total += counts
        print(f"{fixture.name} ({len(counts)}): " + ", ".join(f"{op} {n}" for op, n in counts.most_common()))
    print(f"all ({len(total)}): " + ", ".join(f"{op} {n}" for op, n in total.most_common()))


# --- Command line ------------------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", metavar="NAME", nargs="*", help="fixtures; all of them if none is named")
    parser.add_argument("--papers", action="store_true", help="the programs of the papers' experiments instead")
    parser.add_argument("--measured", metavar="FILE.csv", help="the programs of this table's rows; wants --out")
    parser.add_argument("--kernels", action="store_true", help="the programs that bench/kernels times instead")
    parser.add_argument("--gpu", action="store_true", help="the programs that tools/measure_on_gpu.py times instead")
    parser.add_argument("--out", metavar="DIR", type=pathlib.Path, help="folder of the files")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--list", action="store_true", help="print the fixtures' names")
    action.add_argument("--check", action="store_true", help="check the files instead of writing them")
    action.add_argument("--stablehlo", action="store_true", help="write StableHLO text, into tests/frontend/stablehlo")
    action.add_argument("--protobuf", action="store_true", help="write serialised HLO, into --out")
    action.add_argument("--compiled", action="store_true", help="write HLO compiled for CPUs, into --out")
    action.add_argument("--opcodes", action="store_true", help="count opcodes in the files instead of writing them")
    options = parser.parse_args()
    if options.measured and not options.out:
        parser.error("--measured: in which folder should the programs go? Add --out DIR")
    shapes = measured_programs.shapes(options.measured) if options.measured else []
    measured = [Fixture(shape.name, shape.model(), shape.optimizer(), recorded=False) for shape in shapes]
    all_fixtures, folder = (
        (measured, options.out)
        if options.measured
        else (PAPERS, PAPERS_PROGRAMS)
        if options.papers
        else (KERNELS, KERNELS_PROGRAMS)
        if options.kernels
        else (GPU, GPU_PROGRAMS)
        if options.gpu
        else (FIXTURES, PROGRAMS)
    )
    options.out = options.out or folder
    known = {fixture.name: fixture for fixture in all_fixtures}
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"no such fixture: {', '.join(unknown)}")
    fixtures = [known[name] for name in options.names] or all_fixtures

    if options.list:
        print("\n".join(fixture.name + ("" if fixture.recorded else " (planning only)") for fixture in fixtures))
        return 0
    if options.stablehlo:
        for fixture in fixtures if options.names else [known[name] for name in STABLEHLO]:
            export_stablehlo(fixture, ROOT / "tests/frontend/stablehlo")
        return 0
    if options.protobuf or options.compiled:
        options.out.mkdir(parents=True, exist_ok=True)
        for fixture in fixtures:
            (export_protobuf if options.protobuf else export_compiled)(fixture, options.out)
        return 0
    if options.opcodes:
        print_opcodes(fixtures, options.out)
        return 0
    if not options.check:
        options.out.mkdir(parents=True, exist_ok=True)
        for fixture in fixtures:
            export(fixture, options.out)
            if options.gpu:
                export_stablehlo(fixture, options.out)
        if shapes:
            measured_programs.write_index(shapes, options.out / "programs.json")
    faults = [fault for fixture in fixtures for fault in check(fixture, options.out)]
    print("\n".join(faults), file=sys.stderr, end="\n" if faults else "")
    print_table(fixtures, options.out)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
