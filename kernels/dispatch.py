"""Picks the implementation of each op once a device and dtype, and records which one ran.

CUDA devices get the Triton kernels, in every dtype that they have; a CPU its own attention (cpu_attention.py) and for
the rest, as any other device for everything, the plain PyTorch of `reference.py`.
Which backend ran is recorded because a test or a benchmark that believes it measured a kernel must be able to say
so. A caller may name a backend; no environment variable has a say. Triton is imported when a CUDA device first
asks: a CPU needs none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from claimscore.kernels import cpu_attention, reference


class Backend(NamedTuple):
    """One implementation of every op of the encoder."""

    name: str
    disentangled_attention: Callable[..., Tensor]
    cls_attention: Callable[..., Tensor]
    add_layer_norm: Callable[..., Tensor]
    bias_gelu: Callable[..., Tensor]


_TORCH = Backend(
    "torch",
    reference.disentangled_attention,
    reference.cls_attention,
    reference.add_layer_norm,
    reference.bias_gelu,
)
_CPU = _TORCH._replace(name="cpu", disentangled_attention=cpu_attention.disentangled_attention)
_TRITON_DTYPES = (torch.float16, torch.bfloat16, torch.float32)
_ran: dict[str, str] = {}


@functools.cache
def _triton() -> Backend:
    # Only a CUDA device needs triton, and CPU-only builds of PyTorch come without it.
    from claimscore.kernels.add_layer_norm import add_layer_norm  # noqa: PLC0415
    from claimscore.kernels.bias_gelu import bias_gelu  # noqa: PLC0415
    from claimscore.kernels.cls_attention import cls_attention  # noqa: PLC0415
    from claimscore.kernels.disentangled_attention import disentangled_attention  # noqa: PLC0415

    return Backend("triton", disentangled_attention, cls_attention, add_layer_norm, bias_gelu)


BACKENDS: dict[str, Callable[[], Backend]] = {
    "torch": lambda: _TORCH,
    "cpu": lambda: _CPU,
    "triton": _triton,
}


def backend_for(tensor: Tensor) -> str:
    """Name of the backend that serves the device and dtype of `tensor`."""
    if tensor.is_cuda and tensor.dtype in _TRITON_DTYPES:
        return "triton"
    return "cpu" if tensor.device.type == "cpu" else "torch"


def _run(op: str, backend: str | None, first: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    chosen = BACKENDS[backend or backend_for(first)]()
    _ran[op] = chosen.name
    out: Tensor = getattr(chosen, op)(first, *args, **kwargs)
    return out


def disentangled_attention(q_THD: Tensor, *args: Any, backend: str | None = None, **kwargs: Any) -> Tensor:
    """`reference.disentangled_attention` by `backend`, or by that of the device that `q_THD` lies on."""
    return _run("disentangled_attention", backend, q_THD, *args, **kwargs)


def cls_attention(q_PHD: Tensor, *args: Any, backend: str | None = None, **kwargs: Any) -> Tensor:
    """`reference.cls_attention` by `backend`, or by that of the device that `q_PHD` lies on."""
    return _run("cls_attention", backend, q_PHD, *args, **kwargs)


def add_layer_norm(x_TE: Tensor, *args: Any, backend: str | None = None) -> Tensor:
    """`reference.add_layer_norm` by `backend`, or by that of the device that `x_TE` lies on."""
    return _run("add_layer_norm", backend, x_TE, *args)


def bias_gelu(x_TE: Tensor, *args: Any, backend: str | None = None) -> Tensor:
    """`reference.bias_gelu` by `backend`, or by that of the device that `x_TE` lies on."""
    return _run("bias_gelu", backend, x_TE, *args)


def last_backend(op: str = "disentangled_attention") -> str | None:
    """Name of the backend that ran `op` last in this process; None: it has not run."""
    return _ran.get(op)
