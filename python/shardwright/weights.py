"""The state of a step as a file that `shardwright run --load` takes: safetensors, by hand."""

import json

from .calls import Call, plain_errors
from .command import ShardwrightError, path_of
from .documents import check_inputs, dtype_of, read_json

# Names that safetensors has for the element types of sidecars.
NAMES = {"pred": "BOOL", "bf16": "BF16", "c64": "C64"}
NAMES |= {"f8e4m3fn": "F8_E4M3", "f8e5m2": "F8_E5M2", "f8e8m0fnu": "F8_E8M0"}
NAMES |= {f"f{bits}": f"F{bits}" for bits in (16, 32, 64)}
NAMES |= {f"{a}{bits}": f"{b}{bits}" for a, b in (("s", "I"), ("u", "U")) for bits in (8, 16, 32, 64)}


def save_weights(path, sidecar, step, *args, **kwargs):
    """Write the state in step(*args, **kwargs) to a file of safetensors, under the sidecar's names.

    sidecar  what `export` returned for the step, or the path of NAME.inputs.json
    """
    import numpy

    if not isinstance(sidecar, dict):
        sidecar = read_json(path_of(sidecar, "sidecar"))
    if not isinstance(sidecar, dict) or "inputs" not in sidecar:
        raise ShardwrightError("sidecar: expected what export returned, or the path of NAME.inputs.json")
    check_inputs(sidecar)
    call, inputs = Call(step, args, kwargs), sidecar["inputs"]
    if len(call.arrays) != len(inputs):
        raise ShardwrightError(f"the sidecar has {len(inputs)} inputs, and these arguments are {len(call.arrays)}")
    header, parts, at = {"__metadata__": {"format": "pt"}}, [], 0
    for entry, array in zip(inputs, call.arrays):
        if entry["role"] == "data":
            continue
        if entry["type"] not in NAMES:
            raise ShardwrightError(f"{entry['name']}: safetensors has no name for {entry['type']}")
        with plain_errors(entry["name"]):
            found = numpy.asarray(array)
        if found.dtype == object:
            raise ShardwrightError(f"{entry['name']}: expected an array, found {type(array).__name__}")
        if list(found.shape) != entry["shape"]:
            raise ShardwrightError(f"{entry['name']}: expected the shape {entry['shape']}, found {list(found.shape)}")
        data = found.astype(_dtype(entry["type"])).tobytes()
        header[entry["name"]] = {
            "dtype": NAMES[entry["type"]],
            "shape": entry["shape"],
            "data_offsets": [at, at + len(data)],
        }
        parts, at = parts + [data], at + len(data)
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    try:
        path_of(path).write_bytes(b"".join([len(head).to_bytes(8, "little"), head, *parts]))
    except OSError as trouble:
        raise ShardwrightError(f"{path}: {trouble.strerror}") from None


def _dtype(word):
    import jax

    return jax.numpy.dtype(dtype_of(word))
