"""What the golden-data generators share.

Nothing in here computes a golden number: it only builds inputs, writes files
and keeps the runs deterministic. Every golden value comes from mlx, mlx-lm,
mlx-vlm or dflash, as named in each generator and in README.md.
"""
import json
import os
import re
import struct

import mlx.core as mx
import numpy as np

mx.set_default_device(mx.cpu)

_ST_NAME = {
    mx.float32: "F32", mx.float16: "F16", mx.bfloat16: "BF16",
    mx.uint32: "U32", mx.uint8: "U8", mx.int32: "I32",
}


def _raw(a):
    """(safetensors dtype, shape, little-endian bytes) of an mx or numpy array."""
    if isinstance(a, np.ndarray):
        name = {"float32": "F32", "float16": "F16", "uint32": "U32", "uint8": "U8",
                "int32": "I32", "float64": "F64", "uint16": "U16", "int64": "I64"}[a.dtype.name]
        return name, list(a.shape), np.ascontiguousarray(a).tobytes()
    mx.eval(a)
    name = _ST_NAME[a.dtype]
    shape = list(a.shape)
    if a.dtype == mx.bfloat16:
        a = mx.contiguous(a).view(mx.uint16)
    return name, shape, np.ascontiguousarray(np.array(a)).tobytes()


def save_tensors(path, tensors, meta=None, sort=True):
    """Write a safetensors file with a reproducible byte layout (names in sorted order)."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    header, blobs, off = {}, [], 0
    if meta:
        header["__metadata__"] = {k: str(v) for k, v in sorted(meta.items())}
    for k in (sorted(tensors) if sort else tensors):
        dt, shape, raw = _raw(tensors[k])
        header[k] = {"dtype": dt, "shape": shape, "data_offsets": [off, off + len(raw)]}
        blobs.append(raw)
        off += len(raw)
    h = json.dumps(header, separators=(",", ":")).encode()
    h += b" " * (-(8 + len(h)) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(h)))
        f.write(h)
        for b in blobs:
            f.write(b)


def save_json(path, obj):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    text = json.dumps(obj, indent=1)
    # one line per innermost list or record of scalars
    text = re.sub(r"([\[{])([^\[\]{}]*)([\]}])", lambda m: m[1] + re.sub(r"\s*\n\s*", " ", m[2]).strip() + m[3], text)
    with open(path, "w") as f:
        f.write(text + "\n")


def f32(a):
    return a.astype(mx.float32)


def versions():
    from importlib.metadata import version
    out = {}
    for p in ("mlx", "mlx-lm", "mlx-vlm", "dflash", "numpy", "tokenizers"):
        try:
            out[p] = version(p)
        except Exception:
            out[p] = None
    return out


def dtype_name(a):
    return str(a.dtype).split(".")[-1]
