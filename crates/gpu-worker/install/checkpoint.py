"""Reads a PyTorch checkpoint (the zip format, or the older plain one) into numpy arrays, without PyTorch.

A checkpoint is a pickle, and a pickle can run code. This reader knows the five names that a plain dictionary of
tensors needs and refuses every other one, so a tampered file ends in an error instead of in execution.
"""

import collections
import io
import pickle
import struct
import zipfile

import numpy as np

_STORAGES = {"FloatStorage": np.dtype("<f4"), "LongStorage": np.dtype("<i8")}


class _Storage:
    """Stands for a storage class in the pickle: it only says which element type the raw bytes have."""

    def __init__(self, dtype):
        self.dtype = dtype


class _Names(pickle.Unpickler):
    def find_class(self, module, name):
        if module == "torch" and name in _STORAGES:
            return _Storage(_STORAGES[name])
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuild_tensor
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        raise pickle.UnpicklingError(f"the checkpoint asks for {module}.{name}, which a dictionary of tensors does not need")


class _Zipped(_Names):
    """The zip format: the pickle, and a member for each storage."""

    def __init__(self, archive: zipfile.ZipFile, root: str):
        super().__init__(io.BytesIO(archive.read(root + "data.pkl")))
        self._archive, self._root, self._storages = archive, root, {}

    def persistent_load(self, pid):
        _, storage, key, _, _ = pid
        if key not in self._storages:
            self._storages[key] = np.frombuffer(self._archive.read(f"{self._root}data/{key}"), storage.dtype)
        return self._storages[key]


class _Plain(_Names):
    """The older format: the pickle, and the storages behind it. Until they are read a storage is empty memory."""

    def __init__(self, file):
        super().__init__(file)
        self.storages = {}

    def persistent_load(self, pid):
        _, storage, key, _, count = pid[:5]
        return self.storages.setdefault(key, np.empty(count, storage.dtype))


def _rebuild_tensor(storage, offset, size, stride, *_):
    strides = [step * storage.itemsize for step in stride]
    return np.lib.stride_tricks.as_strided(storage[offset:], size, strides)


def load(path: str) -> dict:
    """What a checkpoint holds: names to numpy arrays, or to dictionaries of the like."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            index = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
            return dict(_Zipped(archive, index[: -len("data.pkl")]).load())
    with open(path, "rb") as file:
        # A magic number, a version and the sizes of the machine's types; the digest has vouched for all of them.
        for _ in range(3):
            _Names(file).load()
        reader = _Plain(file)
        loaded = reader.load()
        for key in _Names(file).load():
            (count,) = struct.unpack("<q", file.read(8))
            storage = reader.storages[key]
            assert count == len(storage), f"storage {key} has {count} values where {len(storage)} are expected"
            storage[:] = np.frombuffer(file.read(storage.nbytes), storage.dtype)
        return dict(loaded)
