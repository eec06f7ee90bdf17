"""Reads a PyTorch checkpoint (the zip format) into numpy arrays, without PyTorch.

A checkpoint is a pickle, and a pickle can run code. This reader knows the five names that a plain dictionary of
tensors needs and refuses every other one, so a tampered file ends in an error instead of in execution.
"""

import collections
import io
import pickle
import zipfile

import numpy as np

_STORAGES = {"FloatStorage": np.dtype("<f4"), "LongStorage": np.dtype("<i8")}


class _Storage:
    """Stands for a storage class in the pickle: it only says which element type the raw bytes have."""

    def __init__(self, dtype):
        self.dtype = dtype


class _Reader(pickle.Unpickler):
    def __init__(self, archive: zipfile.ZipFile, root: str):
        super().__init__(io.BytesIO(archive.read(root + "data.pkl")))
        self._archive, self._root, self._storages = archive, root, {}

    def find_class(self, module, name):
        if module == "torch" and name in _STORAGES:
            return _Storage(_STORAGES[name])
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuild_tensor
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        raise pickle.UnpicklingError(f"the checkpoint asks for {module}.{name}, which a dictionary of tensors does not need")

    def persistent_load(self, pid):
        _, storage, key, _, _ = pid
        if key not in self._storages:
            self._storages[key] = np.frombuffer(self._archive.read(f"{self._root}data/{key}"), storage.dtype)
        return self._storages[key]


def _rebuild_tensor(storage, offset, size, stride, *_):
    if not size:
        return np.array(storage[offset])
    strides = [step * storage.itemsize for step in stride]
    return np.ascontiguousarray(np.lib.stride_tricks.as_strided(storage[offset:], size, strides))


def load(path: str) -> dict:
    """The state dictionary of a checkpoint: parameter name to numpy array."""
    with zipfile.ZipFile(path) as archive:
        index = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
        return dict(_Reader(archive, index[: -len("data.pkl")]).load())
