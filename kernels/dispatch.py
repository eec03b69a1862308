"""Picks the implementation of each op once a device, and records which one ran.

Today every device gets the plain PyTorch of `reference.py`. A kernel joins as one more entry of `_backend`,
with the signature of its oracle; nothing else changes. Which backend ran is recorded because a test or a
benchmark that believes it measured a kernel must be able to say so. No environment variable has a say.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from torch import Tensor

from claimscore.kernels import cpu_attention, reference


class Backend(NamedTuple):
    """One implementation of every op of the encoder."""

    name: str
    disentangled_attention: Callable[..., Tensor]
    cls_attention: Callable[..., Tensor]


_TORCH = Backend("torch", reference.disentangled_attention, reference.cls_attention)
_CPU = Backend("cpu", cpu_attention.disentangled_attention, reference.cls_attention)
_ran: dict[str, str] = {}


@functools.cache
def _backend(device_type: str) -> Backend:
    return _CPU if device_type == "cpu" else _TORCH


def disentangled_attention(q_THD: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`reference.disentangled_attention` by the backend of the device that `q_THD` lies on."""
    backend = _backend(q_THD.device.type)
    _ran["disentangled_attention"] = backend.name
    return backend.disentangled_attention(q_THD, *args, **kwargs)


def cls_attention(q_PHD: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`reference.cls_attention` by the backend of the device that `q_PHD` lies on."""
    backend = _backend(q_PHD.device.type)
    _ran["cls_attention"] = backend.name
    return backend.cls_attention(q_PHD, *args, **kwargs)


def last_backend(op: str = "disentangled_attention") -> str | None:
    """Name of the backend that ran `op` last in this process; None: it has not run."""
    return _ran.get(op)
