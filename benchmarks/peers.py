"""What we are measured against: NumPy, torch eager and torch compiled, on the same arrays.

A kernel's peers are short functions over the case's inputs that write into a given output. torch
sees the NumPy memory itself, without a copy. Each contestant has an output of its own. NumPy has no
erf; its peer of GELU takes SciPy's.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own pages use
from scipy import special
from threadpoolctl import threadpool_limits

from benchmarks.harness import Array, Contestant, Refused

EPSILON = 1e-5

Arrays = Sequence[Array]
Tensors = Sequence[torch.Tensor]
NumpyPeer = Callable[[Arrays, Array], object]
# Fills the output and returns None or it, or returns a fresh tensor where torch has no `out=`.
TorchPeer = Callable[[Tensors, torch.Tensor], object]


@dataclass(frozen=True, slots=True)
class Peers:
    """How each peer spells one kernel. `fused` is what torch compiles; None has nothing to fuse."""

    numpy: NumpyPeer
    eager: TorchPeer
    fused: TorchPeer | None


def use_threads(threads: int) -> None:
    """The same number of threads for torch and for the BLAS of NumPy."""
    torch.set_num_threads(threads)
    threadpool_limits(limits=threads, user_api="blas")


def contestants(kernel: str, inputs: Arrays, like: Array) -> list[Contestant | Refused]:
    """The peers of a kernel on these inputs, or why one cannot run."""
    peers = PEERS[kernel]
    return [
        numpy_contestant(peers.numpy, inputs, np.empty_like(like)),
        torch_contestant("torch eager", peers.eager, inputs, np.empty_like(like)),
        *([compiled_contestant(peers.fused, inputs, np.empty_like(like))] if peers.fused else []),
    ]


def numpy_contestant(peer: NumpyPeer, inputs: Arrays, output: Array) -> Contestant:
    return Contestant("NumPy", lambda: peer(inputs, output), output)


def torch_contestant(name: str, peer: TorchPeer, inputs: Arrays, output: Array) -> Contestant:
    tensors = [torch.from_numpy(array) for array in inputs]
    target = torch.from_numpy(output)
    return Contestant(name, lambda: peer(tensors, target), output)


def compiled_contestant(peer: TorchPeer, inputs: Arrays, output: Array) -> Contestant | Refused:
    """The fused spelling through TorchInductor, compiled here for the current thread count."""
    name = "torch compiled"
    if not any(map(shutil.which, ("g++", "clang++", "c++"))):
        return Refused(name, "cannot run: no C++ compiler on this machine")
    torch.compiler.reset()
    contestant = torch_contestant(name, torch.compile(peer, dynamic=False), inputs, output)
    try:
        contestant.run()
    except RuntimeError as failure:
        return Refused(name, f"cannot run: {str(failure).strip().splitlines()[0][:100]}")
    return contestant


def numpy_softmax(inputs: Arrays, out: Array) -> None:
    (x,) = inputs
    np.subtract(x, x.max(axis=-1, keepdims=True), out=out)
    np.exp(out, out=out)
    np.divide(out, out.sum(axis=-1, keepdims=True), out=out)


def numpy_layer_norm(inputs: Arrays, out: Array) -> None:
    x, weight, bias = inputs
    np.subtract(x, x.mean(axis=-1, keepdims=True), out=out)
    variance = np.square(out).mean(axis=-1, keepdims=True)
    np.multiply(out, 1 / np.sqrt(variance + np.float32(EPSILON)), out=out)
    np.multiply(out, weight, out=out)
    np.add(out, bias, out=out)


def numpy_rms_norm(inputs: Arrays, out: Array) -> None:
    x, weight = inputs
    square = np.square(x).mean(axis=-1, keepdims=True)
    np.multiply(x, 1 / np.sqrt(square + np.float32(EPSILON)), out=out)
    np.multiply(out, weight, out=out)


def numpy_gelu(inputs: Arrays, out: Array) -> None:
    x, residual = inputs
    np.multiply(x, np.float32(0.5**0.5), out=out)
    special.erf(out, out=out)
    np.add(out, np.float32(1), out=out)
    np.multiply(out, x, out=out)
    np.multiply(out, np.float32(0.5), out=out)
    np.add(out, residual, out=out)


def numpy_swiglu(inputs: Arrays, out: Array) -> None:
    gate, up = inputs
    np.exp(-gate, out=out)
    np.add(out, np.float32(1), out=out)
    np.divide(gate, out, out=out)
    np.multiply(out, up, out=out)


def torch_layer_norm(inputs: Tensors, out: torch.Tensor) -> None:
    x, weight, bias = inputs
    mean, deviation = torch.empty(len(x), 1), torch.empty(len(x), 1)
    torch.ops.aten.native_layer_norm.out(
        x, x.shape[-1:], weight, bias, EPSILON, out0=out, out1=mean, out2=deviation
    )


def torch_rms_norm(inputs: Tensors, out: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
    return F.rms_norm(inputs[0], inputs[0].shape[-1:], inputs[1], EPSILON)


def torch_gelu(inputs: Tensors, out: torch.Tensor) -> None:
    torch.ops.aten.gelu.out(inputs[0], out=out)
    torch.add(out, inputs[1], out=out)


def torch_swiglu(inputs: Tensors, out: torch.Tensor) -> None:
    torch.ops.aten.silu.out(inputs[0], out=out)
    torch.mul(out, inputs[1], out=out)


def fused_layer_norm(inputs: Tensors, out: torch.Tensor) -> None:
    x, weight, bias = inputs
    out.copy_(F.layer_norm(x, x.shape[-1:], weight, bias, EPSILON))


def fused_rms_norm(inputs: Tensors, out: torch.Tensor) -> None:
    x, weight = inputs
    out.copy_(F.rms_norm(x, x.shape[-1:], weight, EPSILON))


PEERS: Mapping[str, Peers] = {
    "add": Peers(
        lambda inputs, out: np.add(inputs[0], inputs[1], out=out),
        lambda inputs, out: torch.add(inputs[0], inputs[1], out=out),
        lambda inputs, out: out.copy_(inputs[0] + inputs[1]),
    ),
    "matmul": Peers(
        lambda inputs, out: np.matmul(inputs[0], inputs[1], out=out),
        lambda inputs, out: torch.mm(inputs[0], inputs[1], out=out),
        None,
    ),
    "softmax": Peers(
        numpy_softmax,
        lambda inputs, out: torch.softmax(inputs[0], -1, out=out),
        lambda inputs, out: out.copy_(torch.softmax(inputs[0], -1)),
    ),
    "layer_norm": Peers(numpy_layer_norm, torch_layer_norm, fused_layer_norm),
    "rms_norm": Peers(numpy_rms_norm, torch_rms_norm, fused_rms_norm),
    "gelu+residual": Peers(
        numpy_gelu, torch_gelu, lambda inputs, out: out.copy_(F.gelu(inputs[0]) + inputs[1])
    ),
    "swiglu": Peers(
        numpy_swiglu, torch_swiglu, lambda inputs, out: out.copy_(F.silu(inputs[0]) * inputs[1])
    ),
    "sum": Peers(
        lambda inputs, out: np.sum(inputs[0], axis=-1, out=out),
        lambda inputs, out: torch.sum(inputs[0], -1, out=out),
        lambda inputs, out: out.copy_(torch.sum(inputs[0], -1)),
    ),
    "argmax": Peers(
        lambda inputs, out: np.argmax(inputs[0], axis=-1, out=out),
        lambda inputs, out: torch.argmax(inputs[0], -1, out=out),
        lambda inputs, out: out.copy_(torch.argmax(inputs[0], -1)),
    ),
}
